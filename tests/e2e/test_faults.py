"""Every internal function in turn made to raise: the chain's results are unchanged and the loss is counted.

The functions that a run really enters, in the application's thread and in the scorer's, are found by a profile
of one run. Each one's code is then replaced by code that raises, so that no import of it can miss the fault.
"""

from __future__ import annotations

import builtins
import gc
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace.capture import guard
from ragtrace.service import runtime
from ragtrace_langchain import RagtraceHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOME = str(Path(ragtrace.__file__).parent)
INTEGRATION = "ragtrace_langchain"
# The one guard and its counter are the exception that the promise names.
EXEMPT = ("capture/guard.py",)
SETTLE_S = 0.5


class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(
                id=f"d{i}", page_content=f"Passage {i}: refunds take {i} days.", metadata={"score": 1.0 / (i + 1)}
            )
            for i in range(50)
        ]


def chain() -> Any:
    context = Retriever() | RunnableLambda(lambda docs: docs[:8], name="rerank")
    joined = context | RunnableLambda(lambda docs: "\n".join(d.page_content for d in docs), name="join")
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    model = FakeListChatModel(responses=["Refunds take 3 days."])
    return {"context": joined, "question": RunnablePassthrough()} | prompt | model


def answer(handler: RagtraceHandler) -> str:
    return str(chain().invoke("How long does a refund take?", config={"callbacks": [handler]}).content)


def is_ours(code: CodeType) -> bool:
    name = code.co_filename
    ours = name.startswith(HOME) or INTEGRATION in name
    return ours and not any(name.endswith(part) for part in EXEMPT) and not code.co_name.startswith("<")


def raising(code: CodeType) -> CodeType:
    """Return code that raises, with as many free variables as `code`, so that it fits the same function."""
    free = ", ".join(code.co_freevars)
    lines = ["def outer():"]
    lines += [f"    {name} = None" for name in code.co_freevars]
    lines += ["    def fault(*args, **kwargs):"]
    lines += [f"        ({free},)"] if free else []
    # Builtins alone: the code runs with the globals of the function it is put into.
    lines += [
        "        __import__('builtins').ragtrace_faults.append(1)",
        "        raise RuntimeError",
        "    return fault",
    ]
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)  # noqa: S102 - the text is made above
    made: CodeType = scope["outer"]().__code__
    return made


def entered(work: Callable[[], object]) -> set[CodeType]:
    seen: set[CodeType] = set()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and is_ours(frame.f_code):
            seen.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def functions_of(codes: set[CodeType]) -> list[FunctionType]:
    gc.unfreeze()  # the root conftest.py froze every imported module's functions
    try:
        return [thing for thing in gc.get_objects() if isinstance(thing, FunctionType) and thing.__code__ in codes]
    finally:
        gc.freeze()


@pytest.fixture
def running() -> Iterator[tuple[InMemorySpanExporter, RagtraceHandler]]:
    exporter = InMemorySpanExporter()
    tracer_provider = TracerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    ragtrace.configure(
        sample_rate=1.0,
        content="full",
        metrics=["faithfulness", "answer_similarity", "no_answer", "citations", "p_at_k"],
        tracer_provider=tracer_provider,
        meter_provider=MeterProvider(),
        logger_provider=LoggerProvider(),
    )
    yield exporter, RagtraceHandler()
    ragtrace.shutdown(10)


def ended() -> int:
    """Traces that ended, read without calling into the code under test."""
    service = current_service()
    return sum(list(service.ledger._ends.values()))


def counted() -> int:
    """Everything that counts a loss: the guard's sites, and traces that were dropped or failed."""
    ends = list(current_service().ledger._ends.items())
    return sum(guard._losses.values()) + sum(n for (state, _), n in ends if state in {"dropped", "failed"})


def current_service() -> Any:
    return runtime._state.service


def settle(offered: int, before: int) -> None:
    """Wait until what was offered has ended, or give up: with some faults it never does."""
    with suppress(RuntimeError):  # the fault may stand in here
        current_service().pipeline.drain(SETTLE_S)
    if current_service().ledger._offered == offered:
        return
    deadline = time.monotonic() + SETTLE_S
    while ended() <= before and time.monotonic() < deadline:
        time.sleep(0.002)


# Entered once, when the scorer's thread begins; a fault there later is never reached.
ONCE = {"Worker._run", "Worker._main", "Worker.start", "Pipeline._run", "Pipeline._start"}


@pytest.mark.slow
def test_10_any_function_may_raise(running: tuple[InMemorySpanExporter, RagtraceHandler]) -> None:
    exporter, handler = running
    expected = str(chain().invoke("How long does a refund take?").content)
    # The scorer's thread begins with the first run and so under the profile.
    codes = entered(lambda: (answer(RagtraceHandler()), ragtrace.flush(30)))
    waiting = {"flush", "wait_settled", "drain"}  # what this test itself calls
    functions = [f for f in functions_of(codes) if f.__name__ not in waiting and f.__qualname__ not in ONCE]
    assert len(functions) > 100, "the profile saw too little to prove anything"
    verdicts = [verdict(function, exporter, expected) for function in functions]
    names = [f"{function.__module__}.{function.__qualname__}" for function in functions]
    assert [name for name, said in zip(names, verdicts, strict=True) if "changed" in said] == []
    assert [name for name, said in zip(names, verdicts, strict=True) if said == "silent"] == []
    reached = sum(said != "not reached" for said in verdicts)
    assert reached > 0.8 * len(functions), [
        n for n, said in zip(names, verdicts, strict=True) if said == "not reached"
    ]
    # Whole again: what a broken account left pending stays so, but new work is scored.
    before = ended()
    assert answer(handler) == expected
    deadline = time.monotonic() + 30
    while ended() <= before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended() > before


def verdict(function: FunctionType, exporter: InMemorySpanExporter, expected: str) -> str:
    """Break one function, run the chain, mend it, and say what was seen."""
    whole = function.__code__
    offered, before, losses_before = current_service().ledger._offered, ended(), counted()
    builtins.ragtrace_faults = faults = []  # type: ignore[attr-defined]
    function.__code__ = raising(whole)
    try:
        got = answer(RagtraceHandler())
        settle(offered, before)
    except Exception as error:
        got = f"raised {error!r}"
    finally:
        function.__code__ = whole
    if got != expected:
        return f"changed: {got}"
    is_counted = eventually(lambda: not faults or counted() > losses_before or states_error(exporter))
    exporter.clear()
    if not faults:
        return "not reached"
    return "counted" if is_counted else "silent"


def eventually(holds: Callable[[], bool], limit_s: float = 20.0) -> bool:
    """Whether something holds within a while: on a busy machine a thread counts later than it fails."""
    deadline = time.monotonic() + limit_s
    while not (found := holds()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return found


def states_error(exporter: InMemorySpanExporter) -> bool:
    """Whether the fault shows as scores of state ``error``: that is counted by ragtrace.evaluations."""
    return any(
        str(value) == "error" and name.endswith(".state")
        for span in exporter.get_finished_spans()
        for name, value in (span.attributes or {}).items()
    )
