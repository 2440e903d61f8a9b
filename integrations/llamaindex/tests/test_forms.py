"""Pool, selection and prompt set in every form that users write."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.indices.vector_store import VectorStoreIndex
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor import MetadataReplacementPostProcessor, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine, RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    BaseRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
)
from llama_index.core.schema import IndexNode, NodeRelationship, NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index_instrumentation import get_dispatcher

from integrations.llamaindex.tests.parts import Best, Faq, First, Given, InPlace, Llm, checked, engine, nodes, until
from ragtrace.capture import Generation, Rerank, Retrieval
from ragtrace.model import Message
from ragtrace_llamaindex import mark_selected
from tests.kept import ANSWER, ids, kinds, scores, step


class TestRerankers:
    def test_scores_written_into_the_same_objects_and_list(self, keeper):
        engine(postprocessors=[InPlace()]).query("Where?")
        run = keeper.only
        assert scores(run, "retrieved") == pytest.approx([1 - i / 100 for i in range(6)])
        assert list(zip(ids(run, "reranked"), scores(run, "reranked"), strict=True)) == [("d5", 0.5), ("d4", 0.4)]
        assert len(step(run, Rerank).candidates) == 6

    def test_a_carried_score_is_not_the_reranker_s(self, keeper):
        engine(postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.975)]).query("Where?")
        assert list(zip(ids(keeper.only, "reranked"), scores(keeper.only, "reranked"), strict=True)) == [
            ("d0", None),
            ("d1", None),
            ("d2", None),
        ]

    def test_a_new_score_that_happens_to_be_the_old_one_counts_beside_others_that_differ(self, keeper):
        class Half(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                nodes[1].score = 0.1
                return nodes[:2]

        engine(postprocessors=[Half()]).query("Where?")
        assert scores(keeper.only, "reranked") == [1.0, 0.1]

    def test_several_in_a_row_the_last_is_the_selection(self, keeper):
        engine(postprocessors=[First(n=4), Best(), First(n=9)]).query("Where?")
        run = keeper.only
        first, second = (one for one in run.steps if isinstance(one, Rerank))
        assert ([p.id for p in first.passages], first.model) == (["d0", "d1", "d2", "d3"], "First")
        assert [p.id for p in second.candidates] == ["d0", "d1", "d2", "d3"]
        assert ids(run, "reranked") == ["d3", "d2"]

    def test_what_changes_nothing_is_none(self, keeper):
        engine(postprocessors=[First(n=9)]).query("Where?")
        assert (kinds(keeper.only), ids(keeper.only, "reranked")) == (["retrieval", "chat"], [])
        assert keeper.only.record.selection_source == "retriever"

    def test_what_drops_everything(self, keeper):
        engine(postprocessors=[First(n=0)]).query("Where?")
        assert (step(keeper.only, Rerank).passages, keeper.only.record.answer) == ((), "Empty Response")

    def test_rewritten_texts_are_a_selection_without_a_step(self, keeper):
        found = nodes(2)
        for one in found:
            one.node.metadata["window"] = f"A wider window around {one.node.node_id}."
        replace = MetadataReplacementPostProcessor(target_metadata_key="window")
        engine(Given(found), [replace]).query("Where?")
        run = keeper.only
        assert [p.text[:7] for p in run.record.pool("retrieved")] == ["Passage", "Passage"]
        assert run.record.pool("reranked")[1].text == "A wider window around d1."
        assert run.prompt_ids == ("d0", "d1")

    def test_events_name_model_and_top_n(self, keeper):
        dispatcher = get_dispatcher("tests.rerank")

        class Cross(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=1, model_name="cross-1"))
                dispatcher.event(ReRankEndEvent(nodes=nodes[2:3]))
                return nodes[2:3]

        engine(postprocessors=[Cross()]).query("Where?")
        chosen = step(keeper.only, Rerank)
        assert (chosen.model, chosen.top_n, ids(keeper.only, "reranked")) == ("cross-1", 1, ["d2"])

    async def test_an_async_one_that_leaves_no_span(self, keeper):
        class Async(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                raise NotImplementedError

            async def _apostprocess_nodes(self, nodes, query_bundle=None):
                await asyncio.sleep(0)
                return nodes[3:1:-1]

        await engine(postprocessors=[Async()]).aquery("Where?")
        run = keeper.only
        assert (ids(run, "reranked"), run.prompt_ids) == (["d3", "d2"], ("d3", "d2"))

    def test_a_reranker_that_asks_a_model(self, keeper):
        class Asks(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                Llm(says="d3").complete("Which?" + "".join(one.text for one in nodes))
                return [nodes[3]]

        engine(postprocessors=[Asks()]).query("Where?")
        assert (ids(keeper.only, "reranked"), keeper.only.prompt_ids) == (["d3"], ("d3",))
        assert keeper.only.record.answer == ANSWER

    def test_mark_selected(self, keeper):
        class Own(CustomQueryEngine):
            def custom_query(self, query_str):
                found = Faq().retrieve(query_str)
                chosen = mark_selected([found[4], found[1]])
                return Llm().complete("\n".join(one.text for one in chosen)).text

        Own().query("Where?")
        run = keeper.only
        assert (ids(run, "reranked"), run.record.selection_source) == (["d4", "d1"], "explicit")
        assert (run.prompt_ids, run.record.answer, run.record.query) == (("d4", "d1"), ANSWER, "Where?")

    def test_what_is_marked_comes_before_what_is_inferred(self, keeper):
        class Marks(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                mark_selected(nodes[:1])
                return nodes[:3]

        engine(postprocessors=[Marks()]).query("Where?")
        assert (ids(keeper.only, "reranked"), keeper.only.record.selection_source) == (["d0"], "explicit")


class TestPromptSet:
    @pytest.mark.parametrize("mode", ["refine", "compact", "tree_summarize", "simple_summarize", "accumulate"])
    def test_used_is_what_stands_in_any_prompt(self, keeper, mode):
        engine(mode=mode, postprocessors=[First(n=3)]).query("Where?")
        run = keeper.only
        calls = [one for one in run.steps if isinstance(one, Generation)]
        assert len(calls) == (3 if mode in {"refine", "accumulate"} else 1)
        assert (run.prompt_ids, ids(run, "used")) == (("d0", "d1", "d2"), ["d0", "d1", "d2"])

    @pytest.mark.parametrize("mode", ["refine", "compact", "tree_summarize"])
    def test_streaming(self, keeper, mode):
        assert str(engine(mode=mode, postprocessors=[First(n=3)], streaming=True).query("Where?")) == ANSWER
        assert (keeper.only.prompt_ids, keeper.only.record.answer) == (("d0", "d1", "d2"), ANSWER)

    def test_a_tree_over_long_passages(self, keeper):
        found = [
            NodeWithScore(node=TextNode(id_=str(i), text=f"{i} " + "word " * 1500), score=1.0) for i in range(6)
        ]
        engine(Given(found), [], mode="tree_summarize").query("Where?")
        run = keeper.only
        assert len([one for one in run.steps if isinstance(one, Generation)]) > 2
        assert run.prompt_ids == tuple("012345")

    def test_a_passage_split_over_two_prompts_was_shown_whole(self, keeper):
        text = " ".join(f"word{i}" for i in range(3000))
        engine(Given([NodeWithScore(node=TextNode(id_="long", text=text), score=1.0)]), []).query("Where?")
        (used,) = keeper.only.record.pool("used")
        assert (used.text, used.truncated) == (text, 0)

    def test_a_prompt_that_shows_fewer(self, keeper):
        class Own(CustomQueryEngine):
            def custom_query(self, query_str):
                return Llm().complete(Faq().retrieve(query_str)[1].text).text

        Own().query("Where?")
        assert (ids(keeper.only, "used"), keeper.only.record.selection_source) == (["d1"], "prompt")


class TestComposites:
    @pytest.mark.parametrize("is_async", [False, True])
    def test_fusion(self, keeper, is_async):
        fused = QueryFusionRetriever(
            [Faq(size=3), Faq(size=3, prefix="w")], llm=Llm(says="other"), num_queries=2, similarity_top_k=4,
            use_async=is_async,
        )  # fmt: skip
        engine(fused, []).query("Where?")
        run = keeper.only
        retrievals = [one for one in run.steps if isinstance(one, Retrieval)]
        leaves, outer = retrievals[:-1], retrievals[-1]
        assert {leaf.parent_key for leaf in leaves} == {outer.key}
        assert sorted((leaf.query, leaf.top_k) for leaf in leaves) == [("Where?", 3)] * 2 + [("other", 3)] * 2
        assert (outer.source, outer.top_k, outer.parent_key) == ("QueryFusionRetriever", 4, None)
        assert ids(run, "retrieved") == [p.id for p in outer.passages]
        assert (len(ids(run, "retrieved")), ids(run, "reranked")) == (4, [])
        assert set(run.prompt_ids) == set(ids(run, "retrieved"))

    def test_a_reranker_behind_a_fusion(self, keeper):
        fused = QueryFusionRetriever(
            [Faq(size=3), Faq(size=3, prefix="w")], llm=Llm(), num_queries=1, similarity_top_k=6, use_async=False
        )
        engine(fused).query("Where?")
        run = keeper.only
        assert (len(ids(run, "retrieved")), len(ids(run, "reranked"))) == (6, 2)
        assert ids(run, "reranked") == ids(run, "retrieved")[:-3:-1]

    def test_router(self, keeper):
        tools = [RetrieverTool.from_defaults(Faq(prefix=p, size=2), description=p) for p in "ab"]
        engine(RouterRetriever(selector=Second(), retriever_tools=tools, llm=Llm()), []).query("Where?")
        run = keeper.only
        assert ids(run, "retrieved") == ["b0", "b1"]
        assert [one.source for one in run.steps if isinstance(one, Retrieval)] == ["Faq", "RouterRetriever"]

    def test_recursive(self, keeper):
        pointer = NodeWithScore(node=IndexNode(id_="p", text="About labs", index_id="labs"), score=0.7)
        retrievers = {"root": Given([pointer]), "labs": Faq(size=2)}
        engine(RecursiveRetriever("root", retriever_dict=retrievers), []).query("Where?")
        assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == ["d0", "d1"]

    @pytest.mark.parametrize(
        ("inside", "behind", "selection"),
        [
            ([], [], []),
            ([], [SimilarityPostprocessor(similarity_cutoff=0.5)], ["o0", "o1", "p"]),
            ([First(n=1)], [], ["o0", "p", "r0"]),
        ],
    )
    def test_recursive_into_engines(self, keeper, inside, behind, selection):
        top = [
            NodeWithScore(node=IndexNode(id_="i1", text="About Oslo", index_id="oslo"), score=0.9),
            NodeWithScore(node=TextNode(id_="p", text="A passage of the top."), score=0.8),
            NodeWithScore(node=IndexNode(id_="i2", text="About Rome", index_id="rome"), score=0.3),
        ]
        engines = {
            "oslo": engine(Faq(2, "o"), inside, Llm(says="Oslo has had a lab since 1999.")),
            "rome": engine(Faq(2, "r"), inside, Llm(says="Rome has no lab of any kind.")),
        }
        recursive = RecursiveRetriever("root", retriever_dict={"root": Given(top)}, query_engine_dict=engines)
        engine(recursive, behind).query("Where?")
        run = keeper.only
        pool = ["i1", "p", "i2", "o0", "o1", "r0", "r1"] if inside else ["o0", "o1", "p", "r0", "r1"]
        assert (ids(run, "retrieved"), ids(run, "reranked")) == (pool, selection)
        assert (list(run.prompt_ids), run.record.answer) == (selection or pool, ANSWER)

    def test_recursive_into_engines_alone(self, keeper):
        pointer = NodeWithScore(node=IndexNode(id_="i", text="About Oslo", index_id="oslo"), score=0.9)
        engines = {"oslo": engine(Faq(2, "o"), [])}
        RecursiveRetriever("root", {"root": Given([pointer])}, query_engine_dict=engines).retrieve("Where?")
        run = keeper.only
        assert (ids(run, "retrieved"), run.record.answer, run.prompt_ids) == (["o0", "o1"], "", None)
        assert not run.record.is_answer_expected

    def test_auto_merging(self, keeper):
        whole = TextNode(id_="whole", text="The whole chapter about the lab.")
        parts = nodes(2)
        for one in parts:
            one.node.relationships[NodeRelationship.PARENT] = whole.as_related_node_info()
        whole.relationships[NodeRelationship.CHILD] = [one.node.as_related_node_info() for one in parts]
        store = SimpleDocumentStore()
        store.add_documents([whole, *(one.node for one in parts)])
        merging = AutoMergingRetriever(Given(parts), StorageContext.from_defaults(docstore=store))
        engine(merging, []).query("Where?")
        run = keeper.only
        assert (ids(run, "retrieved"), run.prompt_ids) == (["whole"], ("whole",))
        assert [p.id for p in run.steps[0].passages] == ["d0", "d1"]

    def test_a_retriever_that_reranks_what_another_found(self, keeper):
        class Choosing(BaseRetriever):
            def _retrieve(self, query_bundle):
                return Best().postprocess_nodes(Faq().retrieve(query_bundle))

        engine(Choosing(), []).query("Where?")
        run = keeper.only
        assert (len(ids(run, "retrieved")), ids(run, "reranked")) == (6, ["d5", "d4"])
        assert scores(run, "reranked") == [0.9, 0.8]

    def test_a_retriever_that_cuts_what_another_found(self, keeper):
        class Cutting(BaseRetriever):
            def _retrieve(self, query_bundle):
                return Faq().retrieve(query_bundle)[3:1:-1]

        Cutting().retrieve("Where?")
        run = keeper.only
        assert (len(ids(run, "retrieved")), ids(run, "reranked")) == (6, ["d3", "d2"])
        assert run.record.selection_source == "retriever"

    def test_a_real_index(self, keeper):
        index = VectorStoreIndex([one.node for one in nodes(4)], embed_model=MockEmbedding(embed_dim=4))
        assert keeper.begun == 0  # building it is no run
        index.as_query_engine(llm=Llm(), similarity_top_k=3).query("Where?")
        run = keeper.only
        assert len(ids(run, "retrieved")) == 3
        embedding = run.steps[0]
        assert (embedding.operation, embedding.outputs) == ("embeddings", ())
        assert step_of(run, Retrieval).top_k == 3


def step_of(run, kind):
    return next(one for one in run.steps if isinstance(one, kind))


class Second(BaseSelector):
    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts_dict):
        pass

    def _select(self, choices, query):
        return SelectorResult(selections=[SingleSelection(index=1, reason="")])

    async def _aselect(self, choices, query):
        return self._select(choices, query)


class OneEach(BaseQuestionGenerator):
    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def generate(self, tools, query):
        return [SubQuestion(sub_question=f"{tool.name}?", tool_name=tool.name) for tool in tools]

    async def agenerate(self, tools, query):
        return self.generate(tools, query)


class TestEngines:
    def test_router(self, keeper):
        tools = [QueryEngineTool.from_defaults(engine(Faq(prefix=p)), description=p) for p in "ab"]
        RouterQueryEngine(selector=Second(), query_engine_tools=tools, llm=Llm()).query("Where?")
        run = keeper.only
        assert (run.record.workflow, run.record.query, run.record.answer) == ("RouterQueryEngine", "Where?", ANSWER)
        assert (ids(run, "reranked"), kinds(run)) == (["b5", "b4"], ["retrieval", "rerank", "chat"])

    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize("prefixes", ["ab", "aa"])
    def test_sub_questions(self, keeper, is_async, prefixes):
        tools = [
            QueryEngineTool.from_defaults(engine(Faq(prefix=p), [First(n=1 + i)]), name=f"t{i}", description=p)
            for i, p in enumerate(prefixes)
        ]
        synthesizer = get_response_synthesizer(llm=Llm())
        SubQuestionQueryEngine(OneEach(), synthesizer, tools, use_async=is_async, verbose=False).query("Both?")
        run = keeper.only
        size = 6 * len(set(prefixes))  # a passage found twice stands once
        assert (run.record.query, run.record.answer, len(ids(run, "retrieved"))) == ("Both?", ANSWER, size)
        expected = ["a0", "b0", "b1"] if prefixes == "ab" else ["a0", "a1"]
        assert sorted(ids(run, "reranked")) == sorted(run.prompt_ids) == expected
        assert [p.rank for p in run.record.pool("reranked")] == list(range(1, len(expected) + 1))
        assert {one.query for one in run.steps if isinstance(one, Retrieval)} == {"t0?", "t1?"}

    def test_a_synthesizer_alone(self, keeper):
        get_response_synthesizer(llm=Llm()).synthesize("Where?", nodes=nodes(2))
        run = keeper.only
        assert (run.record.query, run.record.answer, ids(run, "retrieved")) == ("Where?", ANSWER, ["d0", "d1"])


HISTORY = [ChatMessage("Hi", role="user"), ChatMessage("Hello", role="assistant")]
CHATS = {
    "context": lambda: ContextChatEngine.from_defaults(Faq(), llm=Llm(), node_postprocessors=[Best()]),
    "condense plus context": lambda: CondensePlusContextChatEngine.from_defaults(
        Faq(), llm=Llm(), node_postprocessors=[Best()]
    ),
    "condense": lambda: CondenseQuestionChatEngine.from_defaults(engine(), llm=Llm()),
    "simple": lambda: SimpleChatEngine.from_defaults(llm=Llm()),
}


class TestFusedByHand:
    """Several retrievers, and a few lines of an application's own between them and a synthesizer."""

    @staticmethod
    def asked(make, keeper):
        class Own(CustomQueryEngine):
            def custom_query(self, query_str):
                return str(get_response_synthesizer(llm=Llm()).synthesize(query_str, make(query_str)))

        Own().query("Where?")
        run = keeper.only
        return ids(run, "reranked"), list(run.prompt_ids), run.record.selection_source

    def test_the_best_of_two_lists(self, keeper):
        def fused(query):
            words, meaning = Faq(size=3, prefix="w").retrieve(query), Faq(size=3, prefix="m").retrieve(query)
            return [NodeWithScore(node=one.node, score=s) for one, s in ((meaning[1], 0.5), (words[0], 0.25))]

        assert self.asked(fused, keeper) == (["m1", "w0"], ["m1", "w0"], "framework")
        assert ids(keeper.only, "retrieved") == ["w0", "w1", "w2", "m0", "m1", "m2"]
        assert scores(keeper.only, "reranked") == [0.5, 0.25]

    def test_the_best_come_from_one_of_them(self, keeper):
        def fused(query):
            Faq(size=3, prefix="w").retrieve(query)
            return Faq(size=3, prefix="m").retrieve(query)[1:]

        assert self.asked(fused, keeper)[:2] == (["m1", "m2"], ["m1", "m2"])

    @pytest.mark.parametrize("order", ["wm", "mw", "m"])
    def test_whole_lists_are_no_choice(self, keeper, order):
        def joined(query):
            found = {prefix: Faq(size=2, prefix=prefix).retrieve(query) for prefix in "wm"}
            return [one for prefix in order for one in found[prefix]]

        assert self.asked(joined, keeper)[0] == []

    def test_a_choice_for_each_question(self, keeper):
        class Own(CustomQueryEngine):
            def custom_query(self, query_str):
                parts = []
                for prefix in "ab":
                    llm = Llm(says=f"This is what we found for part {prefix}.")
                    best = Faq(size=3, prefix=prefix).retrieve(query_str)[1:]
                    parts.append(str(get_response_synthesizer(llm=llm).synthesize(query_str, best)))
                return Llm().complete("\n".join(parts)).text

        Own().query("Both?")
        run = keeper.only
        assert ids(run, "reranked") == list(run.prompt_ids) == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize("name", CHATS)
class TestChatEngines:
    def checked(self, run, name):
        record = run.record
        assert (record.query, record.answer, record.outcome) == ("Where?", ANSWER, "answered")
        assert record.history == (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))
        if name != "simple":
            assert (len(ids(run, "retrieved")), ids(run, "reranked"), run.prompt_ids) == (
                6,
                ["d5", "d4"],
                ("d5", "d4"),
            )

    def test_chat(self, keeper, name):
        CHATS[name]().chat("Where?", chat_history=list(HISTORY))
        self.checked(keeper.only, name)

    async def test_achat(self, keeper, name):
        await CHATS[name]().achat("Where?", chat_history=list(HISTORY))
        self.checked(keeper.only, name)

    async def test_stream(self, keeper, name):
        response = CHATS[name]().stream_chat("Where?", chat_history=list(HISTORY))
        assert "".join(response.response_gen) == ANSWER
        await until(lambda: keeper.runs)  # a thread of the engine's writes the history
        self.checked(keeper.only, name)

    async def test_astream(self, keeper, name):
        response = await CHATS[name]().astream_chat("Where?", chat_history=list(HISTORY))
        assert "".join([piece async for piece in response.async_response_gen()]) == ANSWER
        await until(lambda: keeper.runs)
        self.checked(keeper.only, name)


def test_two_requests_of_one_chat(keeper):
    chat = ContextChatEngine.from_defaults(Faq(), llm=Llm(), node_postprocessors=[Best()])
    chat.chat("a?")
    chat.chat("Where?")
    checked(keeper.runs[1])
