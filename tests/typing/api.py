"""Code as users write it: mypy and pyright check its types, and nothing runs it.

A line with an ignore comment is a mistake that both must find: an ignore without a mistake is an error of mypy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import ragtrace
from ragtrace.capture import Recorder, Run, current_run
from ragtrace.capture.events import Event
from ragtrace.judges import Audit, Claim, Judge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from sqlite3 import Connection

    from ragtrace.model import End
    from ragtrace.queues import Job, Queue, QueueStats, Unit
    from ragtrace.sinks import Sink


def configured() -> None:
    """Settings by flat names and by groups."""
    ragtrace.configure(judge="overlap", sample_rate=0.1, metrics="faithfulness", judge_rpm=60, store="scores.db")
    ragtrace.configure(
        judge={"name": "openai:gpt-5-mini", "api_key": "secret", "timeout_s": 20.0},
        budget={"usd_per_day": 2.0},
        store={"path": "scores.db", "texts": "all"},
        spool="spool.db",
        anchors={"usd_per_day": 1.0},
        metrics_port=9464,
        metrics=["faithfulness", "ra_nwg"],
        content="full",
        sinks=[Printer()],
        redact=lambda text: text.replace("Ada", "[name]"),
    )
    ragtrace.configure(judge_rmp=60)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ragtrace.configure(judge_rpm="60")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ragtrace.configure(content="full", store="scores.db", store_texts="all")
    ragtrace.configure(store_texts="some")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ragtrace.configure(content="half")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def asked(question: str) -> str:
    """A run reported by hand."""
    with ragtrace.query(question, workflow="support", session="s-42", tags=["beta"]) as run:
        assert_type(run, Run)
        run.retrieved([{"id": "faq-7", "text": "Cancel in settings.", "score": 0.9}], source="faq", top_k=1)
        run.reranked(["Cancel in settings."], model="my-reranker")
        run.used("Context: Cancel in settings.")
        run.labels({"faq-7": 5})
        run.answered("In settings.", model="my-model", usage={"input_tokens": 120, "output_tokens": 18})
    assert_type(run.trace_id, str)
    assert_type(ragtrace.flush(10.0), bool)
    return run.trace_id


async def asked_async(question: str) -> None:
    """The same in a coroutine."""
    async with ragtrace.query(question) as run:
        assert_type(run, Run)
        run.finish("partial")


@ragtrace.evidence
def page_of(address: str) -> str:
    """Return the text of a page."""
    return address


@ragtrace.evidence(False)
async def think(thought: str) -> str:
    """Return a thought."""
    return thought


async def declared() -> None:
    """Declarations: a decorated function has the type that it had, and the settings are known by name."""
    assert_type(page_of("lab"), str)
    assert_type(await think("Hm."), str)
    assert_type(ragtrace.evidence("tool"), str)
    page_of(7)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    ragtrace.configure(reading={"question": "input.ticket.body"}, reading_evidence={"web": True, "think": False})
    ragtrace.configure(reading_evidence=["web"], reading_roots="a,b", reading_follows=False)


def integrated() -> None:
    """A run as integrations use it."""
    assert_type(ragtrace.recorder(), Recorder)
    run = ragtrace.recorder().start(query="Where is the lab?")
    assert_type(run, Run)
    assert_type(current_run(), Run | None)
    run.add(Event("answer", data="In Oslo."), chars=8)
    assert_type(run.selection, tuple[ragtrace.Passage, ...] | None)


@ragtrace.metric(needs=("answer",), range=(0, 2000))
def answer_length(ctx: ragtrace.EvalContext) -> float:
    """A metric as a function."""
    assert_type(ctx.record, ragtrace.RagRecord)
    return float(len(ctx.record.answer))


assert_type(answer_length(ragtrace.EvalContext(ragtrace.RagRecord(id="1"))), float)


@ragtrace.metric
class Politeness:
    """A metric as a class."""

    spec = ragtrace.MetricSpec(
        name="politeness",
        summary="1 where the answer says please.",
        needs=("answer",),
        calls="none",
        outputs=(ragtrace.Output(name="politeness"),),
        source="our style guide",
    )

    async def compute(self, ctx: ragtrace.EvalContext) -> list[ragtrace.MetricResult]:
        """Look for a word."""
        is_polite = "please" in ctx.record.answer
        return [ragtrace.MetricResult(name="politeness", state="ok", value=float(is_polite))]


assert_type(Politeness(), Politeness)


class Copied(Judge):
    """A judge that looks for the answer in the passages."""

    name, tasks = "copied", frozenset({"audit"})

    async def audit(self, record: ragtrace.RagRecord) -> Audit:
        """Judge the whole answer as one claim."""
        is_copied = any(record.answer in passage.text for passage in record.contexts)
        verdict = Claim(text=record.answer, verdict="supported" if is_copied else "not_supported", support=1.0)
        return Audit(attempted=True, noncommittal=False, claims=(verdict,))


class Printer:
    """A sink."""

    def emit(self, record: ragtrace.RagRecord, scores: Sequence[ragtrace.Score]) -> None:
        """Take what was scored."""
        for score in scores:
            assert_type(score.result.value, float | None)
            assert_type(score.result.name, str)


class Nowhere:
    """A queue that keeps nothing."""

    is_shared = False

    def put(self, unit: Unit) -> list[Unit]:
        return [unit]

    def on_put(self, wake: Callable[[], None] | None) -> None: ...

    def lease(self, limit: int) -> list[Job]:
        return []

    def ack(self, job: Job, state: End, reason: str = "", also: Callable[[Connection], None] | None = None) -> bool:
        return False

    def nack(self, job: Job, delay_s: float = 0.0, reason: str = "", *, is_attempt: bool = True) -> bool:
        return False

    def heartbeat(self, held: Sequence[Job]) -> None: ...

    def requeue_expired(self) -> None: ...

    def next_due_s(self) -> float | None:
        return None

    def stats(self) -> list[QueueStats]:
        return []

    def flush(self, timeout_s: float) -> bool:
        return True

    def close(self, timeout_s: float) -> bool:
        return True


def judge_of() -> Judge:
    """Return a judge."""
    return Copied()


def sink_of() -> Sink:
    """Return a sink."""
    return Printer()


def queue_of() -> Queue:
    """Return a queue."""
    return Nowhere()
