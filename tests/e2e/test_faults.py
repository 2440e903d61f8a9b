"""Every internal function in turn made to raise: the chain's results are unchanged and the loss is counted.

The functions that a run really enters, in the application's thread and in the scorer's, are found by a profile
of one run. Each one's code is then replaced by code that raises, so that no import of it can miss the fault.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace.capture import losses
from ragtrace.service import current
from ragtrace_langchain import RagtraceHandler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOME = str(Path(ragtrace.__file__).parent)
INTEGRATION = "ragtrace_langchain"
# The one guard and its counter are the exception that the promise names.
EXEMPT = ("capture/guard.py",)
SETTLE_S = 5.0


class InjectedFault(Exception):
    pass


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
    lines += ["        raise InjectedFault", "    return fault"]
    scope: dict[str, Any] = {"InjectedFault": InjectedFault}
    exec("\n".join(lines), scope)  # noqa: S102 - the text is made above
    made: CodeType = scope["outer"]().__code__
    # The function's own globals lack the exception's name; the builtins have a fitting one.
    return made.replace(co_names=tuple("RuntimeError" if n == "InjectedFault" else n for n in made.co_names))


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
    return [thing for thing in gc.get_objects() if isinstance(thing, FunctionType) and thing.__code__ in codes]


@pytest.fixture
def running() -> Iterator[tuple[InMemorySpanExporter, RagtraceHandler]]:
    exporter = InMemorySpanExporter()
    tracer_provider = TracerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    ragtrace.configure(
        sample_rate=1.0, content="full", tracer_provider=tracer_provider, meter_provider=MeterProvider()
    )
    yield exporter, RagtraceHandler()
    ragtrace.shutdown(10)


def accounts() -> tuple[int, int, int]:
    """Read the counters without calling into the code under test."""
    service = current()
    assert service is not None
    ends = service.ledger._ends
    bad = sum(count for (state, _), count in list(ends.items()) if state in {"dropped", "failed"})
    return sum(losses().values()), bad, sum(ends.values())


def settle(before: int) -> None:
    """Wait until one more unit has ended, or give up: with some faults it never does."""
    deadline = time.monotonic() + SETTLE_S
    while accounts()[2] <= before and time.monotonic() < deadline:
        time.sleep(0.005)


def test_any_function_may_raise(running: tuple[InMemorySpanExporter, RagtraceHandler]) -> None:
    exporter, handler = running
    expected = str(chain().invoke("How long does a refund take?").content)
    # The scorer's thread begins with the first run and so under the profile.
    codes = entered(lambda: (answer(RagtraceHandler()), ragtrace.flush(30)))
    waiting = {"flush", "wait_settled", "current"}  # what this test itself calls to look
    functions = [f for f in functions_of(codes) if f.__name__ not in waiting]
    assert len(functions) > 60, "the profile saw too little to prove anything"
    silent, changed = [], []
    for function in functions:
        whole = function.__code__
        lost, bad, ended = accounts()
        function.__code__ = raising(whole)
        try:
            got = answer(RagtraceHandler())
            settle(ended)
        except Exception as error:
            got = f"raised {error!r}"
        finally:
            function.__code__ = whole
        name = f"{function.__module__}.{function.__qualname__}"
        if got != expected:
            changed.append(name)
        if accounts()[:2] == (lost, bad) and not states_error(exporter):
            silent.append(name)
        exporter.clear()
    assert changed == []
    assert silent == []
    assert answer(handler) == expected
    assert ragtrace.flush(30)


def states_error(exporter: InMemorySpanExporter) -> bool:
    """Whether the fault shows as scores of state ``error``: that is counted by ragtrace.evaluations."""
    return any(
        str(value) == "error" and name.endswith(".state")
        for span in exporter.get_finished_spans()
        for name, value in (span.attributes or {}).items()
    )
