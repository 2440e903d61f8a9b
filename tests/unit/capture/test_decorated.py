"""`ragtrace.evidence` on functions of every kind: what they report, and that nothing else of them changes."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from ragtrace.capture import Recorder, internal_errors
from ragtrace.capture.declared import noted
from ragtrace.errors import ConfigError
from tests.kept import Keeper, ids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

PAGES = [{"id": "p1", "text": "The laboratory is in Oslo."}, {"id": "p2", "text": "It opens at 8."}]


@pytest.fixture(autouse=True)
def nothing_is_lost() -> Iterator[None]:
    before = internal_errors()
    yield
    assert internal_errors() == before


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def recorder(keeper: Keeper) -> Recorder:
    return Recorder(keeper)


@ragtrace.evidence
def search(question: str) -> list[dict[str, str]]:
    """Return pages."""
    return PAGES


@ragtrace.evidence
async def search_later(question: str) -> list[dict[str, str]]:
    await asyncio.sleep(0)
    return PAGES


@ragtrace.evidence
def search_each(question: str) -> Iterator[dict[str, str]]:
    got = yield PAGES[0]
    yield {"id": "p2", "text": got or PAGES[1]["text"]}
    return "done"


@ragtrace.evidence
async def search_each_later(question: str) -> AsyncIterator[dict[str, str]]:
    got = yield PAGES[0]
    await asyncio.sleep(0)
    yield {"id": "p2", "text": got or PAGES[1]["text"]}


async def all_of(found: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in found]


WAYS: list[Callable[[], Any]] = [
    lambda: search("Where?"),
    lambda: asyncio.run(search_later("Where?")),
    lambda: list(search_each("Where?")),
    lambda: asyncio.run(all_of(search_each_later("Where?"))),
]


@pytest.mark.parametrize("way", WAYS, ids=["plain", "coroutine", "generator", "async generator"])
def test_what_a_function_returns_is_a_search(way: Callable[[], Any], recorder: Recorder, keeper: Keeper) -> None:
    with recorder.start(query="Where?") as run:
        assert way() == PAGES
        run.answered("In Oslo.")
    assert ids(keeper.only, "retrieved") == ["p1", "p2"]
    assert keeper.only.steps[0].source.startswith("search")


@pytest.mark.parametrize("way", WAYS, ids=["plain", "coroutine", "generator", "async generator"])
def test_outside_a_run_it_does_nothing(way: Callable[[], Any]) -> None:
    assert way() == PAGES


def test_functions_keep_their_kind() -> None:
    assert inspect.iscoroutinefunction(search_later)
    assert inspect.isgeneratorfunction(search_each)
    assert inspect.isasyncgenfunction(search_each_later)
    assert not inspect.iscoroutinefunction(search)
    assert (search.__name__, search.__doc__) == ("search", "Return pages.")
    assert list(inspect.signature(search).parameters) == ["question"]


@pytest.mark.parametrize("given", ["The laboratory is in Oslo.", ["The laboratory is in Oslo.", " ", "At 8."]])
def test_a_text_has_no_rank(given: str | list[str], recorder: Recorder, keeper: Keeper) -> None:
    texts = [text for text in ([given] if isinstance(given, str) else given) if text.strip()]
    fetch = ragtrace.evidence(lambda: given)
    with recorder.start(query="Where?") as run:
        assert fetch() is given
        run.add_prompt(f"Answer from this: {' and '.join(texts)}")
        run.answered("In Oslo.")
    assert [passage.text for passage in keeper.only.record.contexts] == texts
    assert keeper.only.steps == ()  # no search
    assert [one.how for one in keeper.only.record.reading.sources] == ["decorator"]
    assert keeper.only.record.signs == ()


def test_a_content_with_its_artifact_is_the_artifact(recorder: Recorder, keeper: Keeper) -> None:
    found = ragtrace.evidence(lambda: ("2 pages", PAGES))
    with recorder.start(query="Where?"):
        found()
    assert ids(keeper.only, "retrieved") == ["p1", "p2"]


@pytest.mark.parametrize("given", [None, 3, b"", True, iter("ab"), ""])
def test_what_is_no_evidence_is_not_reported(given: object, recorder: Recorder, keeper: Keeper) -> None:
    function = ragtrace.evidence(lambda: given)
    with recorder.start(query="Where?") as run:
        assert function() is given
        run.answered("In Oslo.")
    assert keeper.only.record.contexts == ()
    assert keeper.only.steps == ()


def test_an_iterator_is_left_as_it_is(recorder: Recorder) -> None:
    with recorder.start(query="Where?"):
        assert list(ragtrace.evidence(lambda: iter(PAGES))()) == PAGES


def test_an_empty_list_is_a_search_that_found_nothing(recorder: Recorder, keeper: Keeper) -> None:
    with recorder.start(query="Where?"):
        ragtrace.evidence(lambda: [*()])()
    (step,) = keeper.only.steps
    assert step.passages == ()


def test_an_error_passes(recorder: Recorder, keeper: Keeper) -> None:
    error = ValueError("no index")

    @ragtrace.evidence
    def broken() -> str:
        raise error

    with recorder.start(query="Where?"), pytest.raises(ValueError, match="no index") as raised:
        broken()
    assert raised.value is error
    assert keeper.only.steps == ()


async def test_a_cancellation_passes(recorder: Recorder, keeper: Keeper) -> None:
    @ragtrace.evidence
    async def waits() -> str:
        await asyncio.Event().wait()
        return "never"

    with recorder.start(query="Where?"):
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert keeper.only.steps == ()


def test_a_generator_is_as_lazy_as_it_was_and_reports_what_was_read(recorder: Recorder, keeper: Keeper) -> None:
    made = []

    @ragtrace.evidence
    def each() -> Iterator[dict[str, str]]:
        try:
            for page in PAGES:
                made.append(page["id"])
                yield page
        finally:
            made.append("closed")

    with recorder.start(query="Where?"):
        found: Any = each()
        assert made == []
        next(found)
        assert made == ["p1"]
        found.close()
    assert made == ["p1", "closed"]
    assert ids(keeper.only, "retrieved") == ["p1"]


def test_a_generator_takes_what_is_sent_and_thrown() -> None:
    found: Any = search_each("Where?")
    assert next(found) is PAGES[0]
    assert found.send("Sent.")["text"] == "Sent."
    with pytest.raises(StopIteration) as end:
        next(found)
    assert end.value.value == "done"
    found = search_each("Where?")
    next(found)
    with pytest.raises(KeyError):
        found.throw(KeyError("k"))


async def test_an_async_generator_takes_what_is_sent_and_thrown_and_is_closed() -> None:
    met = []

    @ragtrace.evidence
    async def each() -> AsyncIterator[str]:
        try:
            while True:
                try:
                    met.append((yield "a"))
                except KeyError:
                    met.append("caught")
        finally:
            await asyncio.sleep(0)
            met.append("closed")

    found: Any = each()
    assert await anext(found) == "a"
    assert await found.asend("sent") == "a"
    assert await found.athrow(KeyError("k")) == "a"
    await found.aclose()
    assert met == ["sent", "caught", "closed"]
    with contextlib.suppress(StopAsyncIteration):
        await anext(found)
    one: Any = search_each_later("Where?")
    await anext(one)
    with pytest.raises(ValueError, match="thrown"):
        await one.athrow(ValueError("thrown"))


async def test_results_of_tasks_side_by_side_go_to_their_runs(recorder: Recorder, keeper: Keeper) -> None:
    @ragtrace.evidence
    async def found(name: str) -> list[dict[str, str]]:
        await asyncio.sleep(0)
        return [{"id": name, "text": f"Page {name}."}]

    async def ask(name: str) -> None:
        async with recorder.start(query=name):
            await found(name)

    await asyncio.gather(*(ask(f"p{number}") for number in range(5)))
    assert {run.record.query: ids(run, "retrieved") for run in keeper.runs} == {
        f"p{number}": [f"p{number}"] for number in range(5)
    }


def test_methods_of_every_kind_are_decorated(recorder: Recorder, keeper: Keeper) -> None:
    class Index:
        @ragtrace.evidence
        def own(self) -> list[dict[str, str]]:
            return PAGES[:1]

        @ragtrace.evidence
        @staticmethod
        def of_none() -> list[dict[str, str]]:
            return PAGES[1:]

        @ragtrace.evidence
        @classmethod
        def of_class(cls) -> str:
            return cls.__name__

    with recorder.start(query="Where?"):
        assert Index().own() == PAGES[:1]
        assert Index.of_none() == PAGES[1:]
        assert Index.of_class() == "Index"
    assert ids(keeper.only, "retrieved") == ["p1", "p2"]


def test_a_tool_comes_back_and_its_name_is_noted() -> None:
    tool = SimpleNamespace(name="kb_of_this_test")
    other = SimpleNamespace(metadata=SimpleNamespace(name="notes_of_this_test"))
    assert ragtrace.evidence(tool) is tool
    assert ragtrace.evidence(False)(other) is other
    known = dict(noted().evidence)
    assert (known["kb_of_this_test"], known["notes_of_this_test"]) == (True, False)
    before = noted()
    ragtrace.evidence(tool)
    assert noted() is before


def test_a_function_that_is_none_comes_back() -> None:
    def think() -> str:
        return "Hm."

    assert ragtrace.evidence(False)(think) is think
    assert dict(noted().evidence)["think"] is False


@pytest.mark.parametrize("given", [SimpleNamespace(), 7, Keeper])
def test_what_has_no_name_is_refused(given: object) -> None:
    with pytest.raises(ConfigError, match="without a name; decorate the function in it, or declare"):
        ragtrace.evidence(given)
