"""Promises of capture over real spans that one framework alone can show, for LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import (
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from opentelemetry.trace import StatusCode

import ragtrace
from integrations.llamaindex.tests.parts import Best, Broken, Faq, Given, engine, until
from ragtrace.testing.plan import Barrier, plan_of
from ragtrace_llamaindex import instrument, uninstrument
from ragtrace_llamaindex.instrumentation import tracer
from tests.conformance import llamaindex as planned
from tests.e2e import test_faults as faults
from tests.kept import ANSWER
from tests.regressions.seen import (
    DOCUMENTS,
    RERANKED,
    asked_and_answered,
    fact,
    ids,
    read,
    watching,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.regressions.seen import Seen


@pytest.fixture
def seen(seen: Seen) -> Iterator[Seen]:
    instrument()
    yield seen
    uninstrument()


def whole(seen, root, question="Where?", pool=6, delivered=("d5", "d4"), answer=ANSWER):
    """Pool, selection and prompt set with ids, both scores and ranks, under a root with question and answer."""
    assert asked_and_answered(root) == (question, answer, "answered")
    assert len(ids(root, "pool")) == pool
    assert ids(root, "selected") == ids(root, "prompt") == list(delivered)
    found = {row["id"]: row for span in seen.of("retrieval", root) for row in read(span, DOCUMENTS)}
    rows = {row["id"]: row for span in seen.of("rerank", root) for row in read(span, RERANKED)}
    for place, name in enumerate(delivered):
        assert rows[name]["score"] == pytest.approx(read(root, "ragtrace.selected.scores")[place])
        assert rows[name]["retrieval_score"] == pytest.approx(found[name]["score"])
        assert rows[name]["score"] != found[name]["score"]
        assert rows[name]["previous_rank"] == found[name]["rank"]


async def cancelled():
    plan = plan_of(3, question="cancelled?", gate=Barrier())
    task = asyncio.ensure_future(planned.engine(plan).aquery(plan.question))
    await plan.gate.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        pytest.param({"content": "full"}, 62_000, id="full"),
        pytest.param({"content": "none"}, 10_000, id="none"),
    ],
)
def test_what_a_run_sends_is_bounded(settings, most):
    """The CPU of a run is measured in benchmarks/overhead; spans, attributes and bytes are what it depends on."""
    found = [NodeWithScore(node=TextNode(id_=f"d{i}", text=f"{i} ".ljust(800, "x")), score=0.5) for i in range(50)]
    with watching(**settings) as seen:
        instrument()
        engine(Given(found), [Best(top_n=8)]).query("Where?")
        uninstrument()
        assert len(seen.spans) == 4
        assert sum(len(span.attributes) for span in seen.spans) <= 47  # two are the root's messages, with content
        assert seen.wire_bytes() <= most


class Asks(Workflow):
    @step
    async def ask(self, ev: StartEvent) -> InputRequiredEvent:
        await Faq().aretrieve(ev.query)
        return InputRequiredEvent(prefix="Which lab?")  # type: ignore[call-arg]

    @step
    async def answer(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=ev.response)


async def test_an_interrupt_and_a_cancellation_are_no_errors(seen):
    handle = Asks().run(query="Where?")
    async for event in handle.stream_events():
        if isinstance(event, InputRequiredEvent):
            break
    await handle.cancel_run()
    with pytest.raises(BaseException):  # noqa: B017 - the class differs between versions
        await handle
    await until(lambda: seen.roots)
    await cancelled()
    first, second = seen.roots
    assert fact(first, "ragtrace.run.outcome") == "interrupted"
    assert "Which lab?" in fact(first, "ragtrace.run.interrupt")
    assert asked_and_answered(second)[0::2] == ("cancelled?", "cancelled")
    assert {span.status.status_code for span in seen.spans} == {StatusCode.UNSET}
    assert [event.name for span in seen.spans for event in span.events] == []


# Broken from their first line on, these count nothing: guards themselves, and what somebody else's guard stands around.
UNCOUNTED = {
    "ragtrace_llamaindex.instrumentation._take": "the guard of a streamed piece, written out",
    "ragtrace_llamaindex.instrumentation.RagtraceEventHandler.handle": "LlamaIndex's dispatcher swallows what it raises",
    "ragtrace_llamaindex.streams.StreamWatch.__del__": "the interpreter prints what a finaliser raises, and goes on",
}


def answers(_handler=None):
    """A query, a stream that is read, one that is left, an asynchronous query, and a failure; as one text."""
    said = [str(engine().query("Where?")), "".join(engine(streaming=True).query("Where?").response_gen)]
    said.append(next(engine(streaming=True).query("Where?").response_gen))
    said.append(str(asyncio.run(engine().aquery("Where?"))))
    try:
        engine(Broken()).query("Where?")
    except ConnectionError as error:
        said.append(repr(error))
    return "|".join(said)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # finalisers are among what is broken
def test_whatever_of_ours_fails_the_results_are_unchanged(seen, monkeypatch):
    monkeypatch.setattr(faults, "INTEGRATION", "ragtrace_llamaindex")
    uninstrument()
    expected = answers()
    instrument()
    entered = faults.functions_of(faults.entered(answers))
    functions = [one for one in entered if one.__module__.startswith("ragtrace")]
    assert len(functions) > 100
    changed, silent = [], []
    for function in functions:
        whole_code, before = function.__code__, faults.counted()
        faults.builtins.ragtrace_faults = raised = []
        function.__code__ = faults.raising(whole_code)
        try:
            got = answers()
        except Exception as error:
            got = repr(error)
        finally:
            function.__code__ = whole_code
        name = f"{function.__module__}.{function.__qualname__}"
        if got != expected:
            changed.append((name, got))
        # A thread of the scorer counts later than it fails.
        if raised and name not in UNCOUNTED and not faults.eventually(lambda n=before: faults.counted() > n):
            silent.append(name)
        forget()
    assert changed == []
    assert silent == []
    seen.clear()
    engine().query("Where?")
    whole(seen, seen.root)


def forget():
    """Throw away what a broken inside left on the map."""
    ragtrace.recorder().end_all()
    for part in (tracer.spans, tracer.takers, tracer._unstarted, tracer._lazy):
        part.clear()


def test_with_no_network_and_no_judge_the_results_are_unchanged():
    pytest.importorskip("openai", reason="the judge that is away is an OpenAI-compatible server")
    expected = answers()
    ragtrace.configure(
        sample_rate=1.0, judge="openai:none", judge_base_url="http://127.0.0.1:9", judge_api_key="none"
    )
    instrument()
    try:
        assert answers() == expected
    finally:
        uninstrument()
        ragtrace.shutdown(2)


class Fails(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        raise LookupError("the application's own")


def test_the_application_s_own_errors_pass_unchanged(seen):
    with pytest.raises(LookupError, match="the application's own"):
        engine(postprocessors=[Fails()]).query("Where?")
    assert fact(seen.root, "ragtrace.run.outcome") == "error"
