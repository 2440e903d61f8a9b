"""Long runs of a real service: they are handed over in parts, and read in the pipeline's thread and nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ragtrace
from integrations.langchain.tests import parts as langchain
from integrations.llamaindex.tests import parts as llamaindex
from ragtrace import semconv
from ragtrace.capture import Recorder, Run, internal_errors
from ragtrace.service import current
from ragtrace_langchain import RagtraceHandler
from ragtrace_llamaindex import instrumented
from ragtrace_llamaindex.instrumentation import RagtraceEventHandler, RagtraceSpanHandler
from tests import cpu, make
from tests.kept import ANSWER, Waiting, n_unread
from tests.process.observing import points, providers
from tests.unit.service.test_traces_counted import traces

MOST_MS = 20.0
_READERS = tuple(
    f"ragtrace/capture/{name}.py" for name in ("interpret", "lineage", "told", "reported", "run_reader")
)
# What the application's thread calls of these: it makes an empty `Reported`, and names workflow and corpus.
_BY_ALL = frozenset({"<module>", "__init__", "set_attributes", "_put"})


class Scores:
    """A sink that keeps the records."""

    def __init__(self):
        self.records = []

    def emit(self, record, scores):
        self.records.append(record)


@pytest.fixture
def scores():
    return Scores()


@pytest.fixture
def spans():
    return make.Spans()


@pytest.fixture
def metrics():
    return InMemoryMetricReader()


@pytest.fixture(autouse=True)
def service(scores, spans, metrics):
    before = internal_errors()
    given = providers(tracer_provider=spans.provider, meter_provider=MeterProvider([metrics]))
    ragtrace.configure(sample_rate=1.0, metrics=["no_answer"], sinks=[scores], content="full", **given)
    yield current()
    ragtrace.shutdown(10)
    assert internal_errors() == before


# -- applications --


class Finds(langchain.Faq):
    """Other passages each time, as a search for another question finds them."""

    def _get_relevant_documents(self, query, *, run_manager):
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [one.model_copy(update={"id": f"{query}-{one.id}"}) for one in found]


@tool
def manual(q: str) -> str:
    """Search the manual."""
    return f"Section {q}: the bypass valve opens when pressure passes the limit of its sensor. " * 5


class Asks(langchain.Scripted):
    turns: int

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        number = sum(message.type == "ai" for message in messages)
        call = langchain.calls("manual", f"c{number}", q=f"v{number}")
        self.replies, self.said = [call if number < self.turns else ANSWER], 0
        return super()._generate(messages, stop, run_manager, **kwargs)


def agent(config, steps):
    model = Asks(replies=[ANSWER], turns=steps)
    asked = {"messages": [("user", "When does it open?")]}
    create_agent(model, [manual]).invoke(asked, {"recursion_limit": 100_000, **config})


def loop(config, steps):
    def searches(question):
        found = [Finds(size=4).invoke(f"{question}{number}") for number in range(steps)]
        return langchain.chat().invoke(langchain.shown(found[-1])).content

    RunnableLambda(searches).invoke("Where?", config)


def graph(config, steps):
    def searches(state):
        found = Finds(size=4).invoke(f"Where{state['n']}?")
        return {"n": state["n"] + 1, "docs": [*state["docs"][-40:], *found]}

    made = StateGraph(dict)
    made.add_node("search", lambda state: {**state, **searches(state)})
    made.add_edge(START, "search")
    made.add_conditional_edges("search", lambda state: "search" if state["n"] < steps else END)
    compiled = made.compile()

    def asks(question):
        left = compiled.invoke({"question": question, "n": 0, "docs": []})
        return langchain.chat().invoke(langchain.shown(left["docs"][-4:])).content

    RunnableLambda(asks).invoke("Where?", {"recursion_limit": 100_000, **config})


def engine(_, steps):
    class Searches(Workflow):
        @step
        async def answer(self, event: StartEvent) -> StopEvent:
            finds = llamaindex.Faq()
            found = [finds.retrieve(f"Where{number}?") for number in range(steps)]
            said = llamaindex.Llm().complete("\n".join(one.text for one in found[-1]))
            return StopEvent(result=said.text)

    async def run():
        return await Searches(timeout=600).run(input="Where is the lab?")

    with instrumented():
        asyncio.run(run())


def by_hand(_, steps, chars=60):
    with ragtrace.query("Where is the lab?") as run:
        for number in range(steps):
            words = f"Passage {number} says where the lab is. ".ljust(chars, "x")
            run.retrieved([{"id": f"{number}-{place}", "text": f"{place} {words}"} for place in range(4)])
            run.generated(model="m")
            run.tool_called("look", result=words)
        run.answered(ANSWER)


def large_by_hand(config, steps):
    by_hand(config, steps, 30_000)


APPS = [agent, loop, graph, engine, by_hand, large_by_hand]
TIMES = {agent: 200, loop: 400, graph: 400, engine: 400, by_hand: 400, large_by_hand: 100}


def ask(app, steps):
    app({"callbacks": [RagtraceHandler()]}, steps)


# -- who reads --


@pytest.mark.slow
@pytest.mark.parametrize("app", APPS)
def test_events_are_read_in_the_pipeline_s_thread_only(app, spans):
    """Each call of a reader's function is noted by the interpreter's own hook, with the name of its thread."""
    readers = set()

    def hook(frame, event, _argument):
        code = frame.f_code
        if event != "call" or not code.co_filename.endswith(_READERS):
            return
        if code.co_name not in _BY_ALL:
            readers.add(threading.current_thread().name)

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        ask(app, 110 if app is agent else TIMES[app])
        assert current().pipeline.drain(60)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert readers == {"ragtrace-pipeline"}
    assert [root.name for root in spans.exporter.get_finished_spans() if root.parent is None]


@pytest.mark.slow
@pytest.mark.parametrize("app", APPS)
def test_no_callback_takes_20_ms(app, monkeypatch):
    spent = []
    owners = {
        RagtraceHandler: [name for name in vars(RagtraceHandler) if name.startswith("on_")],
        RagtraceSpanHandler: ["span_enter", "span_exit"],
        RagtraceEventHandler: ["handle"],
        Run: ["retrieved", "generated", "tool_called", "answered", "finish"],
    }
    for owner, names in owners.items():
        for name in names:
            if callable(vars(owner)[name]):
                monkeypatch.setattr(owner, name, cpu.timed(vars(owner)[name], spent))
    longest = []
    for _ in range(3):  # the collector may run in any callback, over what the process holds by then
        cpu.leave_out_what_is_older()
        spent.clear()
        ask(app, TIMES[app])
        assert current().pipeline.drain(120)
        longest.append(max(spent) * 1e3)
    assert len(spent) > TIMES[app] // 2
    assert min(longest) <= MOST_MS * cpu.slower(), longest


# -- what is read --


def told(record):
    """Return a record without what another run of the same application has of its own."""
    passages = [
        (pool.stage, [(one.id, one.text, one.rank, one.score) for one in pool.passages]) for pool in record.pools
    ]
    return (
        record.query,
        record.answer,
        record.outcome,
        record.lossy,
        passages,
        record.selection_source,
        record.usage,
    )


@pytest.mark.slow
@pytest.mark.parametrize("app", [agent, loop, graph, by_hand, large_by_hand])
def test_three_thousand_events_give_the_record_of_a_run_that_is_read_as_a_whole(app, scores, monkeypatch):
    times = 300 if app is large_by_hand else 1_000
    steps = {agent: 250, loop: 1_500, graph: 500}.get(app, times)
    ask(app, steps)
    assert ragtrace.flush(120)
    whole = Waiting()
    recorder = Recorder(whole)
    monkeypatch.setattr(ragtrace, "query", lambda question: recorder.start(query=question))
    app({"callbacks": [RagtraceHandler(recorder)]}, steps)
    whole.process()
    (record,) = scores.records
    assert told(record) == told(whole.only.record)
    assert record.answer == ANSWER


# -- what happens between two parts --


def tells(run, first, last, chars=1):
    for number in range(first, last):
        run.retrieved([{"id": str(number), "text": f"Passage {number}. " * chars}])


def until(holds):
    ends = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_flush_and_another_run_between_two_parts_lose_nothing(scores):
    with ragtrace.query("Where?") as run:
        tells(run, 0, 700)
        assert ragtrace.flush(30)
        assert n_unread(run) > 700
        with ragtrace.query("Other?") as other:
            other.retrieved(["It is there."])
            other.answered("There.")
        tells(run, 700, 1_500)
        assert ragtrace.flush(30)
        run.answered(ANSWER)
    assert ragtrace.flush(30)
    assert [record.query for record in scores.records] == ["Other?", "Where?"]
    assert [one.id for one in scores.records[1].pool("retrieved")] == [str(number) for number in range(256)]


@pytest.mark.parametrize("how", ["shutdown", "sweep", "another thread"])
def test_a_run_that_is_ended_from_outside_has_all_of_its_parts(how, scores, spans):
    run = ragtrace.query("Where?")
    tells(run, 0, 900)
    run.answered(ANSWER)
    if how == "shutdown":
        assert ragtrace.shutdown(30)
    elif how == "sweep":
        current().recorder.sweep(time.monotonic() + 1e6)
    else:
        thread = threading.Thread(target=run.finish)
        thread.start()
        thread.join()
    tells(run, 900, 1_200)  # too late
    ragtrace.flush(30)
    (root,) = [span for span in spans.exporter.get_finished_spans() if span.parent is None]
    ended = "answered" if how == "another thread" else "partial"
    assert (root.attributes[semconv.RUN_OUTCOME], root.attributes["output.value"]) == (ended, ANSWER)
    assert json.loads(root.attributes[semconv.RUN_LOSSY])["steps"] == 900 - 256


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_goes_on_with_a_long_run_keeps_nothing_of_it_and_reads_nothing(scores):
    with ragtrace.query("Where?") as run:
        tells(run, 0, 600)
        child = os.fork()
        if child == 0:
            status = 9
            try:
                tells(run, 600, 3_000)
                run.finish()
                status = len(run._waiting) // 300
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        tells(run, 600, 1_100)
        run.answered(ANSWER)
    assert ragtrace.flush(30)
    (record,) = scores.records
    assert record.lossy["steps"] == 1_100 - 256


def test_a_long_run_that_finds_no_room_is_dropped_and_counted(metrics, spans, monkeypatch):
    """The pipeline's thread stands still: what waits is bounded, and the application goes on."""
    service, stands, goes_on = current(), threading.Event(), threading.Event()
    monkeypatch.setattr("ragtrace.service.pipeline.MOST_CHARS", 2_000_000)
    process = service.pipeline.process

    def held(root, run):
        stands.set()
        assert goes_on.wait(60)
        process(root, run)

    monkeypatch.setattr(service.pipeline, "process", held)
    with ragtrace.query("First?") as run:
        run.answered(ANSWER)
    assert stands.wait(30)
    with ragtrace.query("Where?") as run:
        for number in range(40):
            tells(run, number, number + 1, 10_000)
            assert run.size_chars <= 2_000_000 + 150_000
        assert not run._waiting
        run.answered(ANSWER)
    with ragtrace.query("Next?") as run:
        run.answered(ANSWER)
    goes_on.set()
    assert traces(metrics).get(("dropped", "queue_full")) == 1
    roots = [span for span in spans.exporter.get_finished_spans() if span.parent is None]
    assert len(roots) == 2
    assert points(metrics, semconv.SCORE_MISSING_W)


def test_many_small_events_that_nobody_takes_are_bounded_too(metrics, monkeypatch):
    service, stands, goes_on = current(), threading.Event(), threading.Event()
    monkeypatch.setattr("ragtrace.service.pipeline.MOST_CHARS", 2_000_000)
    monkeypatch.setattr(service.pipeline, "process", lambda *_: (stands.set(), goes_on.wait(60)))
    with ragtrace.query("First?"):
        pass
    assert stands.wait(30)
    with ragtrace.query("Where?") as run:
        for number in range(20_000):
            run.add_tags([str(number)])
            assert len(run._waiting) < 10_000
        assert not run._waiting
    goes_on.set()
    assert traces(metrics).get(("dropped", "queue_full")) == 1
