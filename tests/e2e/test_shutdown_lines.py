"""What a person reads at a shutdown: lines that do not contradict each other, and that name what failed."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from ragtrace.service import ShutdownReport
from ragtrace.testing.otlp import OtlpReceiver
from tests.process.observing import QUIET, ran

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCORED, SENT = "every sampled trace was scored", "everything captured was sent"
OPEN = dict.fromkeys(QUIET, "otlp")  # exporters that are on, whatever this process has


def stopped(how: str, **env: str) -> tuple[str, list[str]]:
    """Return what an application printed, and its log."""
    done = ran("-m", "tests.e2e.stopping_app", how, **env)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr.splitlines()


def at_shutdown(log: list[str]) -> str:
    (line,) = [line for line in log if line.startswith("ragtrace: shutdown, limit")]
    return line.partition(" s: ")[2]


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a collector that takes nothing."""
    with OtlpReceiver(status=503) as receiver:
        yield receiver.endpoint


def sent_to(endpoint: str) -> dict[str, str]:
    return {**OPEN, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("kept", [{}, {"RAGTRACE_SPOOL": "spool"}], ids=["in memory", "in a spool"])
@pytest.mark.parametrize("how", ["hangs", "waits", "emit hangs"])
def test_beside_what_hangs_a_shutdown_does_not_say_that_all_was_scored(
    how: str, kept: dict[str, str], tmp_path: Path
) -> None:
    env = {name: str(tmp_path / file) for name, file in kept.items()}
    printed, log = stopped(how, **env)
    said = at_shutdown(log)
    assert printed == "not whole\n"
    assert SCORED not in said
    assert "not ended: the scorer" in said
    left = r"\d units? in the spool, kept for the next scorer" if kept else r"^not scored: [1-3] traces?"
    assert re.search(left, said), said


@pytest.mark.slow
def test_without_a_collector_nothing_was_sent(tmp_path: Path) -> None:
    everything = {**dict.fromkeys(QUIET, ""), "RAGTRACE_SPOOL": str(tmp_path / "spool")}
    _, log = stopped("hangs", **everything)
    assert any("no OpenTelemetry collector answers" in line for line in log)
    said = at_shutdown(log)
    assert re.search(r"not sent, as no collector answers: \d spans", said), said
    assert SENT not in "\n".join(log)


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [True, False])
def test_what_a_collector_did_not_take_is_named_and_not_called_sent(refusing: str, *, is_there: bool) -> None:
    printed, log = stopped("plain", **sent_to(refusing if is_there else "http://127.0.0.1:9"))
    said = at_shutdown(log)
    assert printed == "not whole\n"
    assert said.startswith(f"{SCORED}; not sent: ")
    assert SENT not in said
    assert not [line for line in log if "(loss)" in line or "(Exception)" in line], log
    named = [line for line in log if re.match(r"ragtrace: (spans|events|metrics) could not be ", line)]
    assert named, log


@pytest.mark.slow
def test_beside_a_collector_that_takes_everything_there_is_no_line_at_all() -> None:
    with OtlpReceiver() as receiver:
        assert stopped("plain", **sent_to(receiver.endpoint)) == ("whole\n", [])


@pytest.mark.slow
def test_what_was_sent_is_said_beside_what_was_not_scored() -> None:
    judge = {
        "RAGTRACE_JUDGE": "openai:m",
        "RAGTRACE_JUDGE_BASE_URL": "http://127.0.0.1:9/v1",
        "OPENAI_API_KEY": "k",
    }
    with OtlpReceiver() as receiver:
        _, log = stopped("plain", LIMIT_S="10", **judge, **sent_to(receiver.endpoint))
    why = (
        "http://127.0.0.1:9/v1 cannot be reached or broke the connection "
        "(connection refused: is the server up, and the port right?)"
    )
    assert at_shutdown(log) == f"not scored: 3 traces ({why}); {SENT}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "cause"), [("close raises", "RuntimeError at e2e/stopping_app.py:"), ("close hangs", "")]
)
def test_a_sink_that_does_not_end_is_named(how: str, cause: str) -> None:
    printed, log = stopped(how)
    assert printed == "not whole\n"
    assert at_shutdown(log) == f"{SCORED}; not ended: the sink Sink"
    if cause:
        assert any("the sink Sink could not be flushed or ended within" in line and cause in line for line in log)
    assert "Ada" not in "\n".join(log)


@pytest.mark.slow
def test_wrong_calls_are_no_lost_data_and_quote_nothing() -> None:
    _, log = stopped("wrong calls")
    said = "\n".join(log)
    assert "lost data" not in said
    assert "Ada" not in said
    for call in (
        "run.set_history(str)",
        "run.label_passages(str)",
        "run.labels(str)",
        "run.generated(inputs=int)",
        "run.answered(str, parts=int)",
        "run.set_k(str)",
        "run.labels()",
        "run.feedback()",
        "ragtrace.feedback()",
        "mark_selected(int)",
    ):
        assert len([line for line in log if f"wrong call {call}: " in line]) == (
            2 if call == "ragtrace.feedback()" else 1
        )
    assert "ragtrace.flush(str) takes seconds, and waits its 30 s instead" in said
    assert "ragtrace.shutdown(str) takes seconds, and waits its 30 s instead" in said
    assert all(line.startswith("ragtrace: ") for line in log), said


@pytest.mark.slow
def test_a_redaction_that_raises_is_named_without_the_text() -> None:
    _, log = stopped("redact raises")
    (line,) = [line for line in log if "redact" in line]
    assert re.search(
        r"the setting redact raised ValueError at e2e/stopping_app\.py:\d+, so the text is left out", line
    )
    assert "Oslo" not in "\n".join(log)


PARTS = {
    "unscored": (0, 2),
    "why": ("", "judge:80 has not answered for 3 s"),
    "is_scored": (True, False),
    "unended": ((), ("the scorer",)),
    "unsent": ({}, {"spans": 1}),
    "unheard": ({}, {"events": 2}),
    "sent": (0, 4),
    "undelivered": ((), ("not delivered to langfuse: 1 score (refused)",)),
    "keeper": ("", "spool"),
    "waiting": (0, 3),
    "unwritten": (0, 5),
    "has_store": (False, True),
}


def test_no_report_says_what_it_denies() -> None:
    for values in itertools.product(*PARTS.values()):
        report = ShutdownReport(**dict(zip(PARTS, values, strict=True)))
        said = str(report)
        assert not (SENT in said and ("not sent" in said or "not ended" in said or "not delivered" in said)), said
        assert not (SCORED in said and ("not scored" in said or "units in the spool" in said)), said
        denied = re.search("not scored|not written|not ended|not sent: |not delivered", said)
        assert report.is_whole == (denied is None), said
