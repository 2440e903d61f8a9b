"""Who is measured, where it runs, and what switches its content capture on."""

from __future__ import annotations

from dataclasses import dataclass, field

FRAMEWORKS = ("langchain", "llamaindex")
FLOOR = "floor_same"  # straight-line code that writes ragtrace's spans
BEFORE = "before"  # an earlier commit of ragtrace, measured in the same rounds


@dataclass(frozen=True)
class Candidate:
    """One line of the table.

    Attributes:
        key: its name in orders and on the command line.
        title: its name in the table.
        is_peer: whether it has an environment of its own, made from requirements/overhead/<key>.in.
        variables: environment variables that its own documentation gives to switch content on.
        role: the candidate that its worker is told to be; default its key.
    """

    key: str
    title: str
    is_peer: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    role: str = ""


CANDIDATES = (
    Candidate("bare", "bare application"),
    Candidate("empty", "empty handler"),
    Candidate("minimal", "minimal three-span handler"),
    Candidate(FLOOR, "the same spans, written straight"),
    Candidate("ours", "ragtrace"),
    Candidate(BEFORE, "ragtrace of --against", role="ours"),
    Candidate(
        "otel-genai",
        "OpenTelemetry GenAI",
        is_peer=True,
        variables={"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"},
    ),
    Candidate("openinference", "OpenInference", is_peer=True, variables={"OPENINFERENCE_HIDE_INPUTS": "false"}),
    Candidate("traceloop", "Traceloop OpenLLMetry", is_peer=True, variables={"TRACELOOP_TRACE_CONTENT": "true"}),
)
PEERS = tuple(one.key for one in CANDIDATES if one.is_peer)
TITLES = {one.key: one.title for one in CANDIDATES}
