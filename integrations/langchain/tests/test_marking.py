"""What an application says itself: marked selections and traced compressors."""

from __future__ import annotations

import contextvars
import itertools
import threading

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool

from integrations.langchain.tests.parts import PROMPT, Compressor, Faq, chat, lcel, rescored, shown
from ragtrace.capture import Recorder, Rerank, Retrieval
from ragtrace_langchain import TracedCompressor, mark_retrieved, mark_selected
from tests.kept import Waiting, ids, kinds, scores, step


def answered_from(context):
    return {"context": context, "question": RunnablePassthrough()} | PROMPT | chat()


class TestMarkSelected:
    def test_a_function_that_filters_and_formats(self, keeper, config):
        def context(documents):
            return shown(mark_selected(documents[2:4]))

        answered_from(Faq() | RunnableLambda(context)).invoke("Where?", config)
        run = keeper.only
        assert (ids(run, "reranked"), run.record.selection_source) == (["d2", "d3"], "explicit")
        assert run.prompt_ids == ("d2", "d3")
        assert len(ids(run, "retrieved")) == 6

    def test_it_stands_before_what_is_inferred_later(self, keeper, config):
        def pick(documents):
            mark_selected(documents[:1])
            return documents[1:4]

        lcel(reranker=pick).invoke("Where?", config)
        assert (ids(keeper.only, "reranked"), keeper.only.record.selection_source) == (["d0"], "explicit")

    def test_scores_of_a_reranker_are_apart(self, keeper, config):
        answered_from(Faq() | (lambda docs: shown(mark_selected(rescored(docs[:2]))))).invoke("Where?", config)
        run = keeper.only
        assert (ids(run, "reranked"), scores(run, "reranked")) == (["d1", "d0"], [0.9, 0.8])
        assert scores(run, "retrieved")[:2] == [1.0, 0.99]

    async def test_in_a_task(self, keeper, config):
        async def context(documents):
            return shown(mark_selected(documents[4:]))

        await answered_from(Faq() | RunnableLambda(context)).ainvoke("Where?", config)
        assert ids(keeper.only, "reranked") == ["d4", "d5"]

    def test_in_a_thread_with_a_copied_context(self, keeper, config):
        def context(documents):
            copied = contextvars.copy_context()
            thread = threading.Thread(target=copied.run, args=(mark_selected, documents[:1]))
            thread.start()
            thread.join()
            return shown(documents[:1])

        answered_from(Faq() | RunnableLambda(context)).invoke("Where?", config)
        assert ids(keeper.only, "reranked") == ["d0"]

    def test_several_marks_add_up(self, keeper, config):
        def context(documents):
            mark_selected(documents[1:2])
            mark_selected(documents[:2])
            return shown(documents[:2])

        answered_from(Faq() | RunnableLambda(context)).invoke("Where?", config)
        chosen = keeper.only.record.pool("reranked")
        assert [(p.id, p.rank) for p in chosen] == [("d1", 1), ("d0", 2)]

    def test_outside_a_run_it_only_returns(self, keeper):
        documents = [Document(page_content="a")]
        assert mark_selected(documents) is documents
        assert keeper.begun == 0

    def test_what_is_no_list_harms_nothing(self, keeper, config, loses):
        answered_from(Faq() | (lambda docs: shown(docs) + str(mark_selected(None)))).invoke("Where?", config)
        assert keeper.only.record.outcome == "answered"


def found(query="Where?"):
    return Faq()._get_relevant_documents(query, run_manager=None)


class TestMarkRetrieved:
    def test_a_function_that_searches_and_formats(self, keeper, config):
        def context(question):
            return shown(mark_selected(mark_retrieved(found(), source="faq")[:2]))

        answered_from(RunnableLambda(context)).invoke("Where?", config)
        run = keeper.only
        assert (len(ids(run, "retrieved")), ids(run, "reranked"), run.prompt_ids) == (6, ["d0", "d1"], ("d0", "d1"))
        search = step(run, Retrieval)
        assert (search.source, search.query, search.passages[0].score) == ("faq", "Where?", 1.0)
        assert (run.record.selection_source, run.record.lossy) == ("explicit", {})

    def test_in_a_retriever_what_it_returns_was_chosen(self, keeper, config):
        class Chooses(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                documents = mark_retrieved(found()[:3])
                return [documents[2], documents[0]]

        for asked in (answered_from(Chooses() | shown), Chooses()):
            asked.invoke("Where?", config)
        for run in keeper.runs:
            assert (ids(run, "retrieved"), ids(run, "reranked")) == (["d0", "d1", "d2"], ["d2", "d0"])
        assert keeper.runs[0].prompt_ids == ("d2", "d0")

    def test_several_marks_add_up_and_none_counts_twice(self, keeper, config):
        def context(question):
            mark_retrieved(found()[:2])
            mark_retrieved(found()[:1])
            return shown(mark_retrieved(found()[1:4]))

        answered_from(RunnableLambda(context)).invoke("Where?", config)
        assert ids(keeper.only, "retrieved") == ["d0", "d1", "d2", "d3"]
        assert keeper.only.prompt_ids == ("d1", "d2", "d3")

    def test_beside_a_retriever(self, keeper, config):
        def context(documents):
            return shown(
                [*documents, *mark_retrieved(Faq(prefix="w")._get_relevant_documents("", run_manager=None))]
            )

        answered_from(Faq(size=2) | RunnableLambda(context)).invoke("Where?", config)
        assert ids(keeper.only, "retrieved")[:3] == ["d0", "d1", "w0"]
        assert len(keeper.only.prompt_ids) == 8

    def test_what_is_marked_and_returned_counts_once(self, keeper, config):
        search = RunnableLambda(lambda question: mark_retrieved(found()), name="search")
        answered_from(search | (lambda docs: docs[:2]) | shown).invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]
        assert (len(ids(keeper.only, "retrieved")), keeper.only.prompt_ids) == (6, ("d0", "d1"))

    @pytest.mark.parametrize(
        "items",
        [
            [{"id": "d0", "text": "The lab is here."}, {"id": "d1", "text": "The lab was there."}],
            [
                (Document(id="d0", page_content="The lab is here."), 0.9),
                (Document(id="d1", page_content="b c"), 0.1),
            ],
        ],
    )
    def test_other_forms_of_documents(self, keeper, config, items):
        def context(question):
            mark_retrieved(items)
            return "The lab is here."

        answered_from(RunnableLambda(context)).invoke("?", config)
        assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["d0", "d1"], ("d0",))

    def test_texts_with_their_scores(self, keeper, config):
        answered_from(
            RunnableLambda(lambda q: mark_retrieved([("It is here.", 0.9), ("It is there.", 0.4)])[0][0])
        ).invoke("Where?", config)
        assert scores(keeper.only, "retrieved") == [0.9, 0.4]
        assert [p.text for p in keeper.only.record.contexts] == ["It is here."]

    def test_a_search_that_found_nothing(self, keeper, config):
        answered_from(RunnableLambda(lambda question: shown(mark_retrieved([])))).invoke("?", config)
        assert [pool.stage for pool in keeper.only.record.pools] == ["retrieved"]

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_in_middleware(self, keeper, config, is_async):
        agents = pytest.importorskip("langchain.agents")
        middleware = pytest.importorskip("langchain.agents.middleware")

        @middleware.dynamic_prompt
        def with_context(request):
            return f"Use the following context:\n{shown(mark_retrieved(found()[:2], source='faq'))}"

        agent = agents.create_agent(chat(), [], middleware=[with_context])
        asked = {"messages": [("user", "Where?")]}
        await agent.ainvoke(asked, config) if is_async else agent.invoke(asked, config)
        run = keeper.only
        assert (ids(run, "retrieved"), run.prompt_ids, run.record.lossy) == (["d0", "d1"], ("d0", "d1"), {})

    def test_in_a_tool(self, keeper, config):
        agents = pytest.importorskip("langchain.agents")

        @tool("lookup")
        def lookup(query: str):
            """Look it up."""
            return "Found:\n" + shown(mark_retrieved(found()[:2]))

        called = AIMessage("", tool_calls=[{"name": "lookup", "args": {"query": "lab"}, "id": "1"}])
        model = ToolModel(messages=iter([called, AIMessage("In Oslo.")]))
        agents.create_agent(model, [lookup]).invoke({"messages": [("user", "Where?")]}, config)
        run = keeper.only
        assert (ids(run, "retrieved"), run.prompt_ids) == (["d0", "d1"], ("d0", "d1"))
        assert step(run, Retrieval).source == "lookup"

    def test_in_a_run_by_hand(self, keeper, recorder):
        with recorder.start(query="Where?") as run:
            documents = mark_retrieved(found()[:3], source="faq")
            mark_retrieved([Document(page_content=documents[0].page_content)])
            mark_selected([{"text": documents[1].page_content, "rerank_score": 0.7}])
            run.answered("In Oslo.")
        done = keeper.only
        assert (ids(done, "retrieved"), ids(done, "reranked")) == (["d0", "d1", "d2"], ["d1"])
        assert (scores(done, "reranked"), done.record.pool("retrieved")[0].source) == ([0.7], "faq")

    def test_in_a_run_by_hand_nothing_is_read_before_its_end(self):
        keeper = Waiting()
        with Recorder(keeper).start(query="Where?") as run:
            run.retrieved([{"id": f"d{n}", "text": one.page_content} for n, one in enumerate(found()[:3])])
            mark_retrieved([Document(page_content=one.page_content) for one in found()[1:5]])
            mark_selected([Document(page_content=found()[2].page_content, metadata={"id": "7"})])
            assert run.steps == []
            run.answered("In Oslo.")
        keeper.process()
        done = keeper.only
        assert (ids(done, "retrieved")[:3], ids(done, "reranked")) == (["d0", "d1", "d2"], ["d2"])
        assert len(ids(done, "retrieved")) == 5

    def test_in_a_chain_inside_a_run_by_hand(self, keeper, recorder, config):
        with recorder.start(query="Where?"):
            answered_from(RunnableLambda(lambda q: shown(mark_retrieved(found()[:2])))).invoke("Where?", config)
            mark_retrieved(found()[1:3])
        run = keeper.only
        assert (ids(run, "retrieved"), run.prompt_ids) == (["d0", "d1", "d2"], ("d0", "d1"))

    def test_outside_a_run_it_only_returns(self, keeper):
        documents = [Document(page_content="a")]
        assert mark_retrieved(documents) is documents
        assert keeper.begun == 0

    def test_what_is_no_list_harms_nothing(self, keeper, config, loses):
        answered_from(RunnableLambda(lambda question: str(mark_retrieved(None)))).invoke("Where?", config)
        assert keeper.only.record.outcome == "answered"


class ToolModel(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


class Named(Compressor):
    model: str = "bge-reranker"


class Down(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        raise ConnectionError("reranker is down")


def compressing(base, retriever=None):
    return ContextualCompressionRetriever(
        base_compressor=TracedCompressor(base=base), base_retriever=retriever or Faq()
    )


class TestTracedCompressor:
    def check(self, run, source="explicit"):
        assert kinds(run).count("rerank") == 1
        one = step(run, Rerank)
        assert (one.model, one.top_n, len(one.candidates)) == ("bge-reranker", 2, 6)
        assert (ids(run, "reranked"), scores(run, "reranked")) == (["d5", "d4"], [0.9, 0.8])
        assert (run.record.selection_source, run.prompt_ids) == (source, ("d5", "d4"))

    def test_in_a_chain(self, keeper, config):
        answered_from(compressing(Named()) | shown).invoke("Where?", config)
        self.check(keeper.only)

    async def test_async(self, keeper, config):
        await answered_from(compressing(Named()) | shown).ainvoke("Where?", config)
        self.check(keeper.only)

    def test_a_bare_retriever(self, keeper, config):
        assert len(compressing(Named()).invoke("Where?", config)) == 2
        run = keeper.only
        assert (kinds(run).count("rerank"), ids(run, "reranked"), run.record.selection_source) == (
            1,
            ["d5", "d4"],
            "explicit",
        )

    def test_by_hand_in_a_function(self, keeper, config):
        def context(question):
            return shown(TracedCompressor(base=Named()).compress_documents(Faq().invoke(question), question))

        answered_from(RunnableLambda(context)).invoke("Where?", config)
        self.check(keeper.only)

    def test_a_later_step_may_still_narrow(self, keeper, config):
        answered_from(compressing(Named()) | (lambda docs: docs[:1]) | shown).invoke("Where?", config)
        assert ids(keeper.only, "reranked") == ["d5"]

    def test_two_in_an_ensemble_deliver_both(self, keeper, config):
        parts = [compressing(Named()), compressing(Named(), Faq(prefix="e"))]
        answered_from(EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5]) | shown).invoke("Where?", config)
        run = keeper.only
        assert kinds(run).count("rerank") == 2
        assert set(ids(run, "reranked")) == {"d5", "d4", "e5", "e4"}
        assert len(ids(run, "retrieved")) == 12

    def test_an_error_is_that_of_the_compressor(self, keeper, config):
        with pytest.raises(ConnectionError, match="reranker is down"):
            answered_from(compressing(Down()) | shown).invoke("Where?", config)
        run = keeper.only
        assert (run.record.outcome, step(run, Rerank).failure.kind) == ("error", "ConnectionError")
        assert (step(run, Rerank).model, ids(run, "retrieved")[:1]) == ("Down", ["d0"])

    def test_outside_a_run_it_is_the_compressor(self, keeper):
        documents = Faq().invoke("Where?")
        assert TracedCompressor(base=Named()).compress_documents(documents, "?") == Named().compress_documents(
            documents, "?"
        )
        assert keeper.begun == 0


@pytest.mark.parametrize("mark", [mark_retrieved, mark_selected])
def test_a_generator_is_read_by_the_application_as_if_nothing_had_marked_it(keeper, recorder, mark):
    with recorder.start(query="Where?"):
        left = list(mark(one for one in found()[:3]))
    assert [one.id for one in left] == ["d0", "d1", "d2"]
    assert [len(pool.passages) for pool in keeper.only.record.pools] == [3]


@pytest.mark.parametrize("mark", [mark_retrieved, mark_selected])
def test_documents_without_an_end_are_marked_up_to_10000(keeper, recorder, mark):
    with recorder.start(query="Where?"):
        mark(Document(id=f"d{n}", page_content=f"Passage {n}.") for n in itertools.count())
    record = keeper.only.record
    assert [len(pool.passages) for pool in record.pools] == [10_000]
    assert record.lossy == {"passages": 1, "contexts_truncated": 1}
