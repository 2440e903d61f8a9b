"""No circle: what the scorer does itself makes no trace of ours and is never scored."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import openai
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from opentelemetry import context, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
import ragtrace_langchain
from ragtrace.judges import ChatReply, LLMJudge, registry
from ragtrace.scoring import Canaries
from ragtrace.service import current
from tests.guards.judge_server import Answer, JudgeServer, Request, completion
from tests.unit.judges.llm.obedient import Reply, parted

if TYPE_CHECKING:
    from collections.abc import Iterator

METRICS = ["faithfulness", "answer_relevancy"]


def judged(request: Request) -> Answer:
    schema = request.body["response_format"]["json_schema"]["schema"]
    return Answer(200, completion(reply(request.body["messages"][-1]["content"], schema)))


def reply(user: str, schema: Any) -> dict[str, Any]:
    return Reply(json.loads(parted(user)[1]), obeys=False).of(schema)


@pytest.fixture
def judge_server(judge_server: JudgeServer) -> JudgeServer:
    judge_server.always = judged
    return judge_server


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracers(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def everything_traced(tracers: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LangChain by ourselves, and the OpenAI client as its instrumentations do it: a span a call unless suppressed."""
    tracer = tracers.get_tracer("openai-client")
    honest = openai.AsyncOpenAI.request

    async def request(self: Any, *args: Any, **kwargs: Any) -> Any:
        if context.get_value("suppress_instrumentation"):
            return await honest(self, *args, **kwargs)
        with tracer.start_as_current_span("chat m"):
            return await honest(self, *args, **kwargs)

    monkeypatch.setattr(openai.AsyncOpenAI, "request", request)
    ragtrace_langchain.instrument(workflow="support")
    yield
    ragtrace_langchain.uninstrument()


def configure(tracers: TracerProvider, **settings: Any) -> None:
    ragtrace.configure(
        sample_rate=1.0,
        metrics=METRICS,
        tracer_provider=tracers,
        meter_provider=MeterProvider(shutdown_on_exit=False),
        logger_provider=LoggerProvider(shutdown_on_exit=False),
        **settings,
    )


def offered() -> int:
    return current().ledger.snapshot()["offered"]


def scopes(exporter: InMemorySpanExporter) -> set[str]:
    return {span.instrumentation_scope.name for span in exporter.get_finished_spans()}


def roots(exporter: InMemorySpanExporter) -> list[str]:
    return [span.name for span in exporter.get_finished_spans() if span.parent is None]


@pytest.mark.usefixtures("everything_traced")
def test_the_judges_own_calls_are_in_nobodys_trace(
    service: Any, chain: Any, judge_server: JudgeServer, tracers: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    configure(tracers, judge="openai:m", judge_base_url=judge_server.url, judge_api_key="k")
    for _ in range(3):
        chain.invoke("How long does a refund take?")
    assert service.flush(30)
    assert len(judge_server.requests) >= 6, "the judge was asked, else this test says nothing"
    assert offered() == 3
    assert len(roots(exporter)) == 3
    assert scopes(exporter) == {"ragtrace"}


@pytest.mark.usefixtures("everything_traced")
async def test_the_applications_own_openai_calls_are_still_traced(
    judge_server: JudgeServer, exporter: InMemorySpanExporter
) -> None:
    """The control of the test above: the stand-in for an instrumentation does write spans."""
    judge_server.always = lambda _: Answer(200, completion("Hello"))
    async with openai.AsyncOpenAI(base_url=judge_server.url, api_key="k") as client:
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
    assert scopes(exporter) == {"openai-client"}


class ChainChat:
    """A judge's model that is itself a LangChain chain, as a third party may well build it."""

    name = "chain"

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, *, user: str, schema: Any, **_: Any) -> ChatReply:
        self.calls += 1
        model = FakeListChatModel(responses=[json.dumps(reply(user, schema))])
        said = await (RunnableLambda(lambda text: text) | model).ainvoke(user)
        # A client without async support is called in a thread.
        await asyncio.to_thread((RunnableLambda(lambda text: text) | model).invoke, user)
        return ChatReply(text=str(said.content))

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.fixture
def chain_chat(monkeypatch: pytest.MonkeyPatch) -> ChainChat:
    """An installed judge of a third party, found through its entry point as any other."""
    chat = ChainChat()

    class Entry:
        name, value = "chain", "somewhere:chain"

        @staticmethod
        def load() -> Any:
            return lambda model, **_: LLMJudge(chat)

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry] if group == "ragtrace.judges" else [])
    return chat


@pytest.mark.usefixtures("everything_traced")
def test_a_judge_built_on_a_traced_framework_is_not_scored_in_a_circle(
    service: Any, chain: Any, chain_chat: ChainChat, tracers: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    configure(tracers, judge="chain")
    chain.invoke("How long does a refund take?")
    assert service.flush(30)
    assert chain_chat.calls == 2
    assert offered() == 1
    assert len(roots(exporter)) == 1
    chain.invoke("And then?")
    assert service.flush(30)
    assert offered() == 2, "the application itself is captured as before"


@pytest.mark.usefixtures("everything_traced")
async def test_canaries_are_not_captured_either(
    service: Any, chain_chat: ChainChat, tracers: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    configure(tracers, judge="overlap")
    found = await Canaries(LLMJudge(chain_chat), every_s=60.0).round()
    assert chain_chat.calls >= found.llm_calls > 0
    assert service.flush(10)
    assert (offered(), roots(exporter)) == (0, [])


def test_a_run_inside_own_work_costs_no_span_and_one_after_it_does(
    service: Any, tracers: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    from ragtrace.capture import own_work

    configure(tracers)
    with own_work(), ragtrace.query("inside") as run:
        run.answered("x")
    with ragtrace.query("outside") as run:
        run.answered("x")
    assert service.flush(10)
    assert offered() == 1
    assert trace.get_current_span() is trace.INVALID_SPAN
