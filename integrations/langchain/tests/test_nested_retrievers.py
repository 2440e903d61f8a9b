"""Retrievers that call others without ``run_manager.get_child()``: one run, one pool, the outer's output chosen."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from integrations.langchain.tests.parts import Broken, Faq, chat, lcel, rescored, shown
from ragtrace.capture import Retrieval
from ragtrace_langchain import instrument, uninstrument
from ragtrace_langchain.open_runs import MAX_NESTED, _retrievers
from tests.kept import ANSWER, ids


@pytest.fixture(autouse=True)
def installed(recorder):
    instrument(recorder)
    yield
    uninstrument()


class Best(BaseRetriever):
    """Asks its retrievers in turn, and keeps two documents, the last found first."""

    parts: list[BaseRetriever]
    keeps: int = 2

    def _get_relevant_documents(self, query, *, run_manager):
        found = [doc for number, part in enumerate(self.parts) for doc in part.invoke(f"{query} {number}")]
        return rescored(found[-self.keeps :])


class AsyncBest(Best):
    async def _aget_relevant_documents(self, query, *, run_manager):
        parts = await asyncio.gather(*(part.ainvoke(query) for part in self.parts))
        return rescored([doc for part in parts for doc in part][-self.keeps :])


class Writes(BaseRetriever):
    """Has a model write the query."""

    inner: BaseRetriever

    def _get_relevant_documents(self, query, *, run_manager):
        return self.inner.invoke(chat("lab city").invoke(query).content)


class Threads(Best):
    def _get_relevant_documents(self, query, *, run_manager):
        with ThreadPoolExecutor() as pool:
            tasks = [pool.submit(copy_context().run, part.invoke, query) for part in self.parts]
            return rescored([doc for task in tasks for doc in task.result()][-self.keeps :])


def six():
    return [Faq(size=2, prefix=f"p{number}-") for number in range(6)]


POOL = [f"p{part}-{rank}" for part in range(6) for rank in range(2)]
CHOSEN = ["p5-1", "p5-0"]
FORMS = {
    "alone": lambda outer: outer,
    "behind a prompt function": lambda outer: RunnableLambda(str.strip) | outer,
    "in a function": lambda outer: RunnableLambda(outer.invoke),
}


class TestOneRun:
    @pytest.mark.parametrize("kind", [Best, AsyncBest, Threads])
    @pytest.mark.parametrize("form", FORMS)
    def test_sync(self, keeper, form, kind):
        FORMS[form](kind(parts=six())).invoke("Where?")
        run = keeper.only
        assert (run.record.query, sorted(ids(run, "retrieved"))) == ("Where?", POOL)
        assert (ids(run, "reranked"), run.record.is_answer_expected) == (CHOSEN, False)

    @pytest.mark.parametrize("kind", [Best, AsyncBest])
    @pytest.mark.parametrize("form", FORMS)
    async def test_async(self, keeper, form, kind):
        await FORMS[form](kind(parts=six())).ainvoke("Where?")
        run = keeper.only
        assert (run.record.query, sorted(ids(run, "retrieved")), ids(run, "reranked")) == ("Where?", POOL, CHOSEN)

    def test_in_a_chain_that_answers(self, keeper):
        assert lcel(Best(parts=six()), reranker=lambda docs: docs).invoke("Where?") == ANSWER
        run = keeper.only
        assert (ids(run, "retrieved"), ids(run, "reranked"), run.prompt_ids) == (POOL, CHOSEN, tuple(CHOSEN))
        assert run.record.answer == ANSWER

    def test_in_another_one(self, keeper):
        middle = [Best(parts=six()[:2], keeps=2), Best(parts=six()[2:], keeps=2)]
        Best(parts=middle).invoke("Where?")
        run = keeper.only
        assert (ids(run, "retrieved"), ids(run, "reranked")) == (POOL, CHOSEN[::-1])
        above = {step.key: step.parent_key for step in run.steps if isinstance(step, Retrieval)}
        roots = [key for key, parent in above.items() if parent is None]
        assert (len(above), len(roots), len([k for k, p in above.items() if p == roots[0]])) == (9, 1, 2)

    def test_a_model_inside_writes_the_query(self, keeper):
        (Writes(inner=Faq(size=2)) | shown | chat()).invoke("Where?")
        assert (keeper.only.record.answer, keeper.only.prompt_ids) == (ANSWER, ("d0", "d1"))

    def test_with_its_child_callbacks_it_is_the_same(self, keeper):
        class Child(Best):
            def _get_relevant_documents(self, query, *, run_manager):
                given = {"callbacks": run_manager.get_child()}
                return rescored([doc for part in self.parts for doc in part.invoke(query, given)][-2:])

        Child(parts=six()).invoke("Where?")
        assert (ids(keeper.only, "retrieved"), ids(keeper.only, "reranked")) == (POOL, CHOSEN)

    def test_in_the_applications_own_run(self, keeper, recorder):
        with recorder.start(query="Where?"):
            Best(parts=six()).invoke("lab")
            chat().invoke("Where?")
        assert (ids(keeper.only, "retrieved"), ids(keeper.only, "reranked")) == (POOL, CHOSEN)


class TestNothingStaysBehind:
    def test_the_next_call_is_a_run_of_its_own(self, keeper):
        Best(parts=six()).invoke("First?")
        Faq(size=1).invoke("Second?")
        assert [(run.record.query, len(run.steps)) for run in keeper.runs] == [("First?", 8), ("Second?", 1)]

    async def test_tasks_side_by_side(self, keeper):
        outers = [AsyncBest(parts=[Faq(size=3, prefix=f"{name}-")]) for name in "xyz"]
        await asyncio.gather(*(outer.ainvoke(name) for outer, name in zip(outers, "xyz", strict=True)))
        found = {run.record.query: (ids(run, "retrieved"), ids(run, "reranked")) for run in keeper.runs}
        assert found == {n: ([f"{n}-{i}" for i in range(3)], [f"{n}-2", f"{n}-1"]) for n in "xyz"}

    def test_after_a_failure(self, keeper):
        outer = Best(parts=[Faq(size=2), Broken()])
        for _ in range(2):
            with pytest.raises(ConnectionError):
                outer.invoke("First?")
        lcel(Faq(size=6)).invoke("Second?")
        assert [run.record.outcome for run in keeper.runs] == ["error", "error", "answered"]
        assert (keeper.runs[2].record.query, len(ids(keeper.runs[2], "retrieved"))) == ("Second?", 6)

    async def test_a_task_of_many_searches_notes_but_the_open_ones(self, keeper):
        for number in range(3 * MAX_NESTED):
            await AsyncBest(parts=[Faq(size=2)]).ainvoke(str(number))
        assert len(keeper.runs) == 3 * MAX_NESTED
        assert len(_retrievers.get()) <= 2
