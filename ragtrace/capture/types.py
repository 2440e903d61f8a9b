"""The types of capture: steps of a run, a finished run, and what a recorder is configured with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field

from ragtrace.capture.declared import NOTHING, Declared, Place
from ragtrace.model import Found, How, Message, Passage, RagRecord, Usage
from ragtrace.model.passage import IdKey
from ragtrace.model.reading import Kind
from ragtrace.text import MAX_RECORD_CHARS, MAX_TEXT_CHARS

if TYPE_CHECKING:
    from ragtrace.capture.recorded import RecordedRun
    from ragtrace.capture.run import Run

Operation = Literal["chat", "text_completion", "embeddings"]


class Failure(Struct, frozen=True, kw_only=True):
    """How a step failed: the exception's type and its clamped, redacted message."""

    kind: str
    message: str = ""


class Retrieval(Struct, frozen=True, kw_only=True):
    """One retriever call. `key` and `parent_key` link a leaf to its composite retriever. Times are Unix ns."""

    started_ns: int
    ended_ns: int
    query: str
    passages: tuple[Passage, ...]
    source: str | None = None
    top_k: int | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


class Rerank(Struct, frozen=True, kw_only=True):
    """One reranker call: what came in, what came out in its new order, with the reranker's own scores."""

    started_ns: int
    ended_ns: int
    candidates: tuple[Passage, ...]
    passages: tuple[Passage, ...]
    model: str | None = None
    top_n: int | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


class Generation(Struct, frozen=True, kw_only=True):
    """One model call.

    Attributes:
        first_chunk_s: seconds from its start to the first streamed chunk.
        chunks: number of streamed chunks.
        request: its parameters, by the names that `read_request` gives them.
        server_address: host of the model's server.
        server_port: its port.
    """

    started_ns: int
    ended_ns: int
    operation: Operation = "chat"
    model: str | None = None
    provider: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    inputs: tuple[Message, ...] = ()
    outputs: tuple[Message, ...] = ()
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    first_chunk_s: float | None = None
    chunks: int | None = None
    request: Mapping[str, Any] = {}
    server_address: str | None = None
    server_port: int | None = None
    is_in_process: bool = False
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


class ToolCall(Struct, frozen=True, kw_only=True):
    """One call of a tool by the application or its agent; arguments and result are text, "" when unknown."""

    started_ns: int
    ended_ns: int
    name: str
    arguments: str = ""
    result: str = ""
    call_id: str | None = None
    description: str | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


class Agent(Struct, frozen=True, kw_only=True):
    """One run of an agent; its model and tool calls name its `key` as their `parent_key`."""

    started_ns: int
    ended_ns: int
    name: str
    description: str | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


Step = Retrieval | Rerank | Generation | ToolCall | Agent


class Limits(Struct, frozen=True, kw_only=True):
    """Limits of one run and one process; the record's `lossy` counts what they cut.

    Sizes are in characters, so that a text in any language is cut at the same length.
    """

    passage_chars: int = MAX_RECORD_CHARS
    record_chars: int = MAX_RECORD_CHARS  # of all passages' texts, and of a prompt
    fact_chars: int = MAX_RECORD_CHARS  # of all passages' ids, sources and metadata
    text_chars: int = MAX_TEXT_CHARS  # of an answer, a query, a reference, a message, and of the whole history
    open_runs: int = 4_096
    run_idle_s: float = 600.0


class LeftOut(Struct, frozen=True):
    """A text of a tool that is no evidence.

    Attributes:
        name: of the tool.
        text: its words.
        is_part: the rest of the tool's text is evidence.
        is_declared: the application says that it is none.
        is_unused: nothing that was said later has a word of it.
    """

    name: str
    text: str
    is_part: bool = False
    is_declared: bool = False
    is_unused: bool = False


class PromptNote(Struct, frozen=True):
    """A rendered prompt of a model.

    Attributes:
        step: names of the scopes around the call, outermost first.
        texts: of its messages but those of the roles tool and assistant.
        told: how much models had said before it.
    """

    step: str
    texts: tuple[str, ...]
    told: int


class Findings(Struct):
    """Places of what an interpreter reports of a run, and values that were there beside it.

    Attributes:
        question: None where the application said it itself.
        answers: () where the application said it itself.
        asked_at: a place to declare where the question was not read from one.
        answered_at: the same of the answer.
        left_out: texts of tools that are no evidence.
        unused: names of tools of whose texts nothing said later has a word, and that count all the same.
        hows: how sources are known that were named or declared, by name.
        unmatched: passages that were delivered, where the prompt shows none of them.
        prompts: by their text.
        told: replies of models, and what they gave to tools, as it came.
        held: the last values of each field that steps gave out and the root was given, by their places.
        given: texts that the root was given, less what a model had said, or a person before.
        talk: texts of the messages in the root's input.
        explained: texts that are declared to be no evidence.
        missing: what was declared and is not there, each with its place.
        unheeded: names that are declared to be no evidence, or in part, and that brought what always counts.
        may_follow: nothing declares that it follows no other run.
        root: name of the root, as `roots` has it; "" of a block, and of a name with words that are redacted.
    """

    question: Found | None = None
    answers: tuple[Found, ...] = ()
    asked_at: str = ""
    answered_at: str = ""
    left_out: list[LeftOut] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    hows: dict[str, How] = field(default_factory=dict)
    unmatched: int = 0
    prompts: dict[str, PromptNote] = field(default_factory=dict)
    told: list[object] = field(default_factory=list)
    held: dict[str, list[object]] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    talk: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    unheeded: dict[str, Kind] = field(default_factory=dict)
    may_follow: bool = True
    root: str = ""

    def stays(self, name: str, kind: Kind, declared: tuple[bool | Place, How] | None) -> None:
        """Note a name of which something counts that no declaration takes away."""
        if declared is not None and declared[0] is not True:
            self.unheeded.setdefault(name, kind)


class FinishedRun(Struct, frozen=True, kw_only=True):
    """A finished run: its record, its steps in the order in which they ended, and what made it fail."""

    record: RagRecord
    steps: tuple[Step, ...]
    started_ns: int
    ended_ns: int
    failure: Failure | None = None
    prompt_ids: tuple[str, ...] | None = None


class TraceRef(Protocol):
    """A started root span: its ids, and whatever its processor needs to end it."""

    trace_id: str
    span_id: str


class RunProcessor(Protocol):
    """Takes the runs of a recorder. Called in the application's thread: it must neither wait nor do I/O.

    One that has ``on_part(ref, run) -> bool`` too is called with a long run that is open, again and again: it has a
    thread of its own call ``run.take_part()``, or returns False where it has no room, and the run is lost. The
    garbage collector may call it too. To one that has it not a run is handed over once.
    """

    def on_start(self, workflow: str, started_ns: int) -> TraceRef:
        """Begin the trace of a run."""
        ...

    def on_end(self, ref: TraceRef, run: Run) -> None:
        """Take a run that has ended. The garbage collector may call it, inside any lock: it must take none."""
        ...


class EventSink(Protocol):
    """Takes what happened in each run, for a bug report. Called in the pipeline's thread."""

    def write(self, run: RecordedRun, redact: Callable[[str], str] | None) -> None:
        """Keep the events of a run that was read, with every text redacted; never raises."""
        ...


class RunConfig(Struct, frozen=True, kw_only=True):
    """Immutable run configuration, replaced atomically by `configure()`.

    Attributes:
        processor: takes finished runs; None keeps nothing (recording is then cheap and harmless).
        redact: applied to every text before it is kept.
        id_key: key of the ids that are made of texts; None makes plain hashes, and where texts are redacted hashes
            with the key of the process.
        workflow: name of runs that give none.
        environment: deployment name written on every record.
        corpus: name of the index, of runs that give none.
        span_metadata: names of request metadata that `Run.add_metadata` keeps.
        events: takes what happened in each run; None keeps none of it.
        declared: what the settings say of where things stand.
        is_replayed: the events come from a file, which holds the declarations too.
    """

    processor: RunProcessor | None = None
    redact: Callable[[str], str] | None = None
    id_key: IdKey | None = None
    workflow: str = "rag"
    environment: str | None = None
    corpus: str | None = None
    span_metadata: tuple[str, ...] = ()
    events: EventSink | None = None
    declared: Declared = NOTHING
    is_replayed: bool = False
