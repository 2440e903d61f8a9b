"""Pool, selection and prompt set in every form in which people write a chain."""

from __future__ import annotations

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool, tool

from integrations.langchain.tests.parts import PROMPT, Compressor, Faq, chat, lcel, rerank, rescored, shown
from ragtrace.capture import Generation, Rerank, Retrieval
from tests.kept import ANSWER, ids, kinds, scores, step


def answering(retriever):
    return {"context": retriever | shown, "question": RunnablePassthrough()} | PROMPT | chat() | StrOutputParser()


def compressing(base, **options):
    return ContextualCompressionRetriever(base_retriever=base, base_compressor=Compressor(**options))


class TestLcel:
    def test_formatter_that_loses_a_passage(self, keeper, config):
        chain = Faq(size=3) | (lambda docs: shown(docs[:2])) | chat()
        chain.invoke("Where?", config)
        assert keeper.only.prompt_ids == ("d0", "d1")
        assert keeper.only.record.selection_source == "prompt"

    def test_state_dict_with_assign(self, keeper, config):
        chain = (
            RunnablePassthrough.assign(docs=lambda x: Faq().invoke(x["question"]))
            .assign(docs=RunnableLambda(lambda x: rerank(x["docs"]), name="best"))
            .assign(context=lambda x: shown(x["docs"]))
            | PROMPT
            | chat()
        )
        chain.invoke({"question": "Where?"}, config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "rerank", "chat"]
        assert ids(run, "used") == ["d3", "d2"]
        assert step(run, Rerank).model == "best"
        assert run.record.answer == ANSWER

    def test_two_rerankers_the_last_wins(self, keeper, config):
        chain = Faq() | RunnableLambda(lambda d: d[:4]) | RunnableLambda(rerank, name="cross") | shown | chat()
        chain.invoke("Where?", config)
        run = keeper.only
        first, second = (s for s in run.steps if isinstance(s, Rerank))
        assert (len(first.candidates), len(first.passages)) == (6, 4)
        assert ([p.id for p in second.candidates], second.model) == (["d0", "d1", "d2", "d3"], "cross")
        assert ids(run, "reranked") == ["d3", "d2"]

    def test_scores_written_into_the_same_documents(self, keeper, config):
        def in_place(docs):
            for i, document in enumerate(docs):
                document.metadata["score"] = i / 10
            return sorted(docs, key=lambda d: -d.metadata["score"])[:2]

        lcel(reranker=in_place).invoke("Where?", config)
        run = keeper.only
        assert scores(run, "retrieved")[:2] == pytest.approx([1.0, 0.99])
        assert list(zip(ids(run, "reranked"), scores(run, "reranked"), strict=True)) == [("d5", 0.5), ("d4", 0.4)]

    def test_reranker_that_loses_ids_and_gives_no_score(self, keeper, config):
        lcel(reranker=lambda docs: [Document(page_content=d.page_content) for d in docs[2:4]]).invoke("?", config)
        assert ids(keeper.only, "reranked") == ["d2", "d3"]
        assert scores(keeper.only, "reranked") == [None, None]

    def test_reranker_that_keeps_the_order_but_scores(self, keeper, config):
        lcel(Faq(size=1), reranker=rescored).invoke("?", config)
        assert scores(keeper.only, "reranked") == [0.9]

    def test_search_without_a_retriever_is_a_retrieval(self, keeper, config):
        search = RunnableLambda(lambda q: Faq()._get_relevant_documents(q, run_manager=None), name="search")
        (search | RunnableLambda(rerank) | shown | chat()).invoke("?", config)
        run = keeper.only
        assert step(run, Retrieval).source == "search"
        assert (len(ids(run, "retrieved")), ids(run, "reranked")) == (6, ["d3", "d2"])

    def test_one_function_that_retrieves_and_reranks(self, keeper, config):
        def find(question):
            return rerank(Faq().invoke(question))

        (RunnableLambda(find) | shown | chat()).invoke("?", config)
        assert ids(keeper.only, "reranked") == ["d3", "d2"]
        assert step(keeper.only, Rerank).model == "find"

    def test_filter_that_drops_everything(self, keeper, config):
        (Faq() | RunnableLambda(lambda docs: [], name="grade") | shown | chat()).invoke("?", config)
        assert step(keeper.only, Rerank).passages == ()
        assert len(ids(keeper.only, "retrieved")) == 6

    def test_merged_passages_are_a_selection_without_ranks(self, keeper, config):
        merge = RunnableLambda(lambda docs: [Document(page_content=shown(docs), id="all")], name="merge")
        (Faq(size=2) | merge | shown | chat()).invoke("?", config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "chat"]
        assert ids(run, "reranked") == ids(run, "used") == ["all"]

    def test_reranker_that_asks_a_model(self, keeper, config):
        judge = chat("d3 is best")

        def ask(docs):
            judge.invoke("Which is best?\n" + shown(docs))
            return [docs[3]]

        (Faq() | RunnableLambda(ask) | shown | chat()).invoke("?", config)
        assert ids(keeper.only, "reranked") == ids(keeper.only, "used") == ["d3"]
        assert keeper.only.record.answer == ANSWER

    def test_sources_beside_the_answer_are_no_selection(self, keeper, config):
        def generate(docs):
            return {"answer": chat().invoke(shown(docs)).content, "sources": docs[:1]}

        (Faq(size=3) | RunnableLambda(generate)).invoke("?", config)
        run = keeper.only
        assert ids(run, "reranked") == []
        assert ids(run, "used") == ["d0", "d1", "d2"]
        assert run.record.answer == ANSWER

    def test_chunks_that_share_an_id_of_their_source_stay_apart(self, keeper, config):
        def search(question):
            return [Document(page_content=f"chunk {i}", metadata={"doc_id": "book"}) for i in range(3)]

        (RunnableLambda(search) | RunnableLambda(lambda d: d[1:]) | shown | chat()).invoke("?", config)
        assert [p.text for p in keeper.only.record.pool("retrieved")] == ["chunk 0", "chunk 1", "chunk 2"]
        assert [p.text for p in keeper.only.record.pool("reranked")] == ["chunk 1", "chunk 2"]


class TestComposites:
    def test_compression_retriever(self, keeper, config):
        answering(compressing(Faq())).invoke("Where?", config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "rerank", "retrieval", "chat"]
        assert len(ids(run, "retrieved")) == 6
        assert ids(run, "reranked") == ids(run, "used") == ["d5", "d4"]
        assert scores(run, "reranked") == [0.9, 0.8]
        assert run.record.selection_source == "retriever"
        leaf, outer = (s for s in run.steps if isinstance(s, Retrieval))
        assert (leaf.parent_key, outer.source) == (outer.key, "ContextualCompressionRetriever")
        assert outer.parent_key is None
        assert step(run, Rerank).parent_key == outer.key
        assert [p.score for p in outer.passages] == pytest.approx([0.95, 0.96])  # the retriever's, as they came

    def test_ensemble_is_a_fusion(self, keeper, config):
        fused = EnsembleRetriever(retrievers=[Faq(size=2), Faq(size=3, prefix="w")], weights=[0.9, 0.1])
        answering(fused).invoke("Where?", config)
        run = keeper.only
        assert ids(run, "retrieved") == ["d0", "d1", "w0", "w1", "w2"]
        assert ids(run, "reranked") == []
        assert kinds(run) == ["retrieval", "retrieval", "retrieval", "chat"]

    def test_compressor_over_ensemble(self, keeper, config):
        fused = EnsembleRetriever(retrievers=[Faq(size=2), Faq(size=2, prefix="w")], weights=[0.9, 0.1])
        answering(compressing(fused)).invoke("Where?", config)
        run = keeper.only
        assert ids(run, "retrieved") == ["d0", "d1", "w0", "w1"]
        assert ids(run, "reranked") == ["w1", "w0"]
        assert [p.id for p in step(run, Rerank).candidates] == ["d0", "d1", "w0", "w1"]

    def test_ensemble_over_compressors(self, keeper, config):
        parts = [compressing(Faq(size=4)), compressing(Faq(size=4, prefix="w"), top_n=1)]
        answering(EnsembleRetriever(retrievers=parts, weights=[0.5, 0.5])).invoke("Where?", config)
        run = keeper.only
        assert len(ids(run, "retrieved")) == 8
        assert sorted(ids(run, "reranked")) == ["d2", "d3", "w3"]
        assert set(scores(run, "reranked")) == {0.9, 0.8}
        assert set(run.prompt_ids) == {"d2", "d3", "w3"}

    def test_multi_query(self, keeper, config):
        model = FakeListLLM(responses=["first\nsecond"])
        answering(MultiQueryRetriever.from_llm(Faq(size=3), model)).invoke("Where?", config)
        run = keeper.only
        assert ids(run, "retrieved") == ["d0", "d1", "d2"]
        leaves = [s for s in run.steps if isinstance(s, Retrieval) and s.parent_key]
        assert [leaf.query for leaf in leaves] == ["first", "second"]
        assert run.record.model == "FakeListChatModel"
        assert run.prompt_ids == ("d0", "d1", "d2")
        rewriting = next(s for s in run.steps if isinstance(s, Generation))
        assert (rewriting.operation, rewriting.parent_key) == ("text_completion", leaves[0].parent_key)

    def test_an_ensemble_beside_a_plain_retriever(self, keeper, config):
        fused = EnsembleRetriever(retrievers=[Faq(size=2), Faq(size=2)], weights=[0.5, 0.5])
        both = RunnableParallel(a=fused, b=Faq(size=2, prefix="w"))
        (both | (lambda x: shown([*x["a"], *x["b"]])) | chat()).invoke("Where?", config)
        assert sorted(ids(keeper.only, "retrieved")) == ["d0", "d1", "w0", "w1"]
        assert sorted(keeper.only.prompt_ids) == ["d0", "d1", "w0", "w1"]

    def test_two_compressors_side_by_side(self, keeper, config):
        both = RunnableParallel(a=compressing(Faq()), b=compressing(Faq(prefix="w")))
        (both | (lambda x: shown([*x["a"], *x["b"]])) | chat()).invoke("Where?", config)
        assert sorted(ids(keeper.only, "reranked")) == ["d4", "d5", "w4", "w5"]
        assert sorted(keeper.only.prompt_ids) == ["d4", "d5", "w4", "w5"]
        assert len(ids(keeper.only, "retrieved")) == 12


class TestRoots:
    def test_bare_retriever(self, keeper, config):
        Faq(size=2).invoke("Where?", config)
        run = keeper.only
        assert (run.record.workflow, run.record.query, run.record.answer) == ("Faq", "Where?", "")
        assert ids(run, "retrieved") == ["d0", "d1"]

    def test_bare_chat_model(self, keeper, config):
        chat().invoke("Where?", config)
        run = keeper.only
        assert (run.record.workflow, run.record.query, run.record.answer) == ("FakeListChatModel", "Where?", ANSWER)
        assert run.record.pools == ()

    def test_bare_text_model(self, keeper, config):
        FakeListLLM(responses=[ANSWER]).invoke("Where?", config)
        assert (keeper.only.record.query, keeper.only.record.answer) == ("Where?", ANSWER)
        assert step(keeper.only, Generation).operation == "text_completion"

    def test_tool_with_a_retriever(self, keeper, config):
        create_retriever_tool(Faq(size=2), "search", "Searches.").invoke({"query": "Where?"}, config)
        assert (ids(keeper.only, "retrieved"), keeper.only.record.query) == (["d0", "d1"], "Where?")

    @pytest.mark.parametrize("is_alone", [True, False])
    def test_tool_with_documents_as_its_artifact(self, keeper, config, is_alone):
        @tool(response_format="content_and_artifact")
        def search(query: str):
            """Searches."""
            found = Faq(size=2)._get_relevant_documents(query, run_manager=None)
            return shown(found), found

        call = {"name": "search", "args": {"query": "the lab"}, "id": "1", "type": "tool_call"}
        chain = RunnableLambda(lambda question: call) | search
        if not is_alone:
            chain = chain | (lambda message: message.content) | chat()
        chain.invoke("Where?", config)
        found = step(keeper.only, Retrieval)
        assert (found.source, found.query, [p.id for p in found.passages]) == ("search", "the lab", ["d0", "d1"])
        assert keeper.only.prompt_ids == (None if is_alone else ("d0", "d1"))

    def test_tool_that_hands_on_a_part_as_its_artifact(self, keeper, config):
        @tool(response_format="content_and_artifact")
        def search(query: str):
            """Searches."""
            found = Faq(size=4).invoke(query)[::2]
            return shown(found), found

        call = {"name": "search", "args": {"query": "the lab"}, "id": "1", "type": "tool_call"}
        (RunnableLambda(lambda question: call) | search | (lambda said: said.content) | chat()).invoke("?", config)
        assert (ids(keeper.only, "retrieved"), ids(keeper.only, "reranked")) == (
            ["d0", "d1", "d2", "d3"],
            ["d0", "d2"],
        )
