"""Runs that try again or check their answer: what was given up and what was only copied is no selection."""

from __future__ import annotations

import pytest
from llama_index.core.evaluation import FaithfulnessEvaluator, GuidelineEvaluator, RelevancyEvaluator
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
)
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.settings import Settings
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

from integrations.llamaindex.tests.parts import Best, Broken, Faq, First, Given, Llm, engine, nodes, until
from ragtrace.capture import Rerank, Retrieval
from tests.kept import ANSWER, ids, kinds, scores

BAD = "I do not know."


class Turns(Llm):
    """Gives out its replies in turn, and the last one again and again."""

    replies: list = [ANSWER]  # noqa: RUF012 - a pydantic field
    calls: int = 0

    def _next(self):
        self.says = self.replies[min(self.calls, len(self.replies) - 1)]
        self.calls += 1

    def complete(self, prompt, **kwargs):
        self._next()
        return super().complete(prompt, **kwargs)

    def stream_complete(self, prompt, **kwargs):
        self._next()
        return super().stream_complete(prompt, **kwargs)


class Growing(BaseRetriever):
    """Finds a0, a1, ... at first, then b0, b1, ..."""

    def __init__(self, prefixes="ab", size=4):
        super().__init__()
        self.prefixes = iter(prefixes)
        self.size = size

    def _retrieve(self, query_bundle):
        return nodes(self.size, next(self.prefixes))


@pytest.fixture(autouse=True)
def default_model(monkeypatch):
    monkeypatch.setattr(Settings, "_llm", Llm())  # some parts ask for one even where they do not use it


def relevancy(*replies):
    return RelevancyEvaluator(llm=Turns(replies=list(replies)))


def tried_again(retriever, postprocessors=None, mode="compact", *, streaming=False):
    inner = engine(retriever, postprocessors, Turns(replies=[BAD, ANSWER]), mode, streaming=streaming)
    return RetryQueryEngine(inner, relevancy("NO", "YES"))


def stages(run):
    return ids(run, "retrieved"), ids(run, "reranked"), list(run.prompt_ids or ())


class TestEvaluators:
    def test_an_evaluator_retrieves_nothing(self, keeper):
        assert str(tried_again(Faq(size=4)).query("Where?")) == ANSWER
        run = keeper.only
        assert stages(run) == (["d0", "d1", "d2", "d3"], ["d3", "d2"], ["d3", "d2"])
        assert [one.source for one in run.steps if isinstance(one, Retrieval)] == ["Faq", "Faq"]
        assert run.record.answer == ANSWER

    def test_retry_over_the_sources(self, keeper):
        llm = Turns(replies=[BAD])
        RetrySourceQueryEngine(engine(Faq(size=4), llm=llm), relevancy("NO", "YES"), llm=llm).query("Where?")
        assert stages(keeper.only) == (["d0", "d1", "d2", "d3"], ["d3", "d2"], ["d3", "d2"])
        assert keeper.only.record.answer == ANSWER

    @pytest.mark.parametrize("kind", [FaithfulnessEvaluator, RelevancyEvaluator])
    async def test_in_a_workflow(self, keeper, kind):
        class Checks(Workflow):
            @step
            async def only(self, ev: StartEvent) -> StopEvent:
                response = await engine().aquery(ev.query)
                await kind(llm=Llm(says="YES")).aevaluate_response(query=ev.query, response=response)
                return StopEvent(result={"checked": True})

        await Checks().run(query="Where?")
        await until(lambda: keeper.runs)
        run = keeper.only
        assert (len(ids(run, "retrieved")), *stages(run)[1:]) == (6, ["d5", "d4"], ["d5", "d4"])
        assert run.record.answer == ANSWER  # and not the evaluator's YES

    @pytest.mark.slow
    def test_contexts_that_its_index_splits(self, keeper):
        long = [
            NodeWithScore(node=TextNode(id_=str(i), text=f"{i} " + "word " * 1500), score=1.0) for i in range(2)
        ]
        try:
            SentenceSplitter().split_text(long[0].text)
        except LookupError:
            pytest.skip("this version's splitter loads data of NLTK's, which is not here")
        RetryQueryEngine(engine(Given(long), [], mode="tree_summarize"), relevancy("YES")).query("Where?")
        assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (["0", "1"], ("0", "1"))

    def test_another_index_that_holds_the_same_texts_is_a_retrieval(self, keeper):
        again = nodes(2)
        for i, one in enumerate(again):
            one.node.id_ = f"other{i}"

        class Both(CustomQueryEngine):
            def custom_query(self, query_str):
                found = [*Faq(size=2).retrieve(query_str), *Given(again).retrieve(query_str)]
                return Llm().complete("\n".join(one.text for one in found)).text

        Both().query("Where?")
        assert ids(keeper.only, "retrieved") == ["d0", "d1", "other0", "other1"]


class TestAttempts:
    def test_a_retry_that_finds_others(self, keeper):
        tried_again(Growing()).query("Where?")
        assert stages(keeper.only) == (
            ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"], ["b3", "b2"], ["b3", "b2"],
        )  # fmt: skip

    def test_a_retry_that_streams(self, keeper):
        assert str(tried_again(Growing(), streaming=True).query("Where?")) == ANSWER
        assert stages(keeper.only)[1:] == (["b3", "b2"], ["b3", "b2"])

    def test_a_retry_that_nobody_reranked(self, keeper):
        tried_again(Growing(size=2), []).query("Where?")
        run = keeper.only
        assert stages(run) == (["a0", "a1", "b0", "b1"], [], ["b0", "b1"])
        assert run.record.selection_source == "prompt"

    def test_a_retry_on_a_guideline(self, keeper):
        judge = Turns(replies=['{"passing": false, "feedback": "No."}', '{"passing": true, "feedback": "Yes."}'])
        inner = engine(Growing(), llm=Turns(replies=[BAD, ANSWER]))
        RetryGuidelineQueryEngine(inner, GuidelineEvaluator(llm=judge)).query("Where?")
        assert stages(keeper.only)[1:] == (["b3", "b2"], ["b3", "b2"])

    @pytest.mark.parametrize("postprocessors", [[], [Best()]])
    def test_an_engine_that_falls_back_on_another(self, keeper, postprocessors):
        engines = [
            engine(Faq(size=2, prefix=prefix), postprocessors, Llm(says=says))
            for prefix, says in (("a", BAD), ("b", ANSWER))
        ]

        class FallsBack(CustomQueryEngine):
            def custom_query(self, query_str):
                said = str(engines[0].query(query_str))
                return str(engines[1].query(query_str)) if said == BAD else said

        FallsBack().query("Where?")
        run = keeper.only
        chosen = ["b1", "b0"] if postprocessors else []
        assert stages(run) == (["a0", "a1", "b0", "b1"], chosen, chosen or ["b0", "b1"])

    @pytest.mark.parametrize("postprocessors", [[], [Best()]])
    def test_an_engine_that_fails_before_another(self, keeper, postprocessors):
        engines = [
            engine(Faq(size=2, prefix="a"), postprocessors, Llm(error=TimeoutError("slow"))),
            engine(Faq(size=2, prefix="b"), postprocessors),
        ]

        class FallsBack(CustomQueryEngine):
            def custom_query(self, query_str):
                try:
                    return str(engines[0].query(query_str))
                except TimeoutError:
                    return str(engines[1].query(query_str))

        FallsBack().query("Where?")
        chosen = ["b1", "b0"] if postprocessors else []
        assert stages(keeper.only) == (["a0", "a1", "b0", "b1"], chosen, chosen or ["b0", "b1"])

    def test_nothing_comes_after_the_engine_that_failed(self, keeper):
        failing = engine(llm=Llm(error=TimeoutError("slow")))

        class Sorry(CustomQueryEngine):
            def custom_query(self, query_str):
                try:
                    return str(failing.query(query_str))
                except TimeoutError:
                    return "Sorry."

        Sorry().query("Where?")
        assert stages(keeper.only)[1:] == (["d5", "d4"], ["d5", "d4"])

    @pytest.mark.parametrize("is_first_answered", [False, True])
    async def test_a_workflow_that_searches_again(self, keeper, is_first_answered):
        class Loops(Workflow):
            @step
            async def only(self, ev: StartEvent) -> StopEvent:
                for prefix, says in (("a", BAD), ("b", ANSWER)):
                    chosen = Best().postprocess_nodes(await Faq(size=4, prefix=prefix).aretrieve(ev.query))
                    if is_first_answered or prefix == "b":
                        reply = await Llm(says=says).acomplete("\n".join(one.text for one in chosen))
                return StopEvent(result=reply.text)

        await Loops().run(query="Where?")
        await until(lambda: keeper.runs)
        assert stages(keeper.only)[1:] == (["b3", "b2"], ["b3", "b2"])

    async def test_a_workflow_that_maps_and_combines_keeps_both(self, keeper):
        class Maps(Workflow):
            @step
            async def only(self, ev: StartEvent) -> StopEvent:
                parts = []
                for prefix in "ab":
                    chosen = Best().postprocess_nodes(await Faq(size=4, prefix=prefix).aretrieve(ev.query))
                    told = await Llm(says=f"Part {prefix}.").acomplete("\n".join(one.text for one in chosen))
                    parts.append(told.text)
                return StopEvent(result=Llm().complete(" ".join(parts)).text)

        await Maps().run(query="Where?")
        await until(lambda: keeper.runs)
        assert stages(keeper.only)[1:] == (["a3", "a2", "b3", "b2"], ["a3", "a2", "b3", "b2"])

    async def test_the_same_again(self, keeper):
        class Loops(Workflow):
            @step
            async def only(self, ev: StartEvent) -> StopEvent:
                for says in (BAD, ANSWER):
                    chosen = Best().postprocess_nodes(await Faq(size=4).aretrieve(ev.query))
                    reply = await Llm(says=says).acomplete("\n".join(one.text for one in chosen))
                return StopEvent(result=reply.text)

        await Loops().run(query="Where?")
        await until(lambda: keeper.runs)
        run = keeper.only
        assert kinds(run) == ["retrieval", "rerank", "chat"] * 2
        assert stages(run)[1:] == (["d3", "d2"], ["d3", "d2"])
        first, second = (one for one in run.steps if isinstance(one, Rerank))
        assert [p.id for p in first.candidates] == [p.id for p in second.candidates] == ["d0", "d1", "d2", "d3"]

    def test_a_retriever_that_fails_before_another(self, keeper):
        class FallsBack(CustomQueryEngine):
            def custom_query(self, query_str):
                try:
                    found = Broken().retrieve(query_str)
                except ConnectionError:
                    found = Best().postprocess_nodes(Faq(size=4).retrieve(query_str))
                return Llm().complete("\n".join(one.text for one in found)).text

        FallsBack().query("Where?")
        assert stages(keeper.only) == (["d0", "d1", "d2", "d3"], ["d3", "d2"], ["d3", "d2"])


class TestWrittenInPlace:
    def test_an_engine_that_cuts_the_retriever_s_own_list(self, keeper):
        class Cuts(CustomQueryEngine):
            def custom_query(self, query_str):
                found = Faq(size=4).retrieve(query_str)
                found.reverse()
                del found[2:]
                return str(get_response_synthesizer(llm=Llm()).synthesize(query_str, found))

        Cuts().query("Where?")
        assert stages(keeper.only) == (["d0", "d1", "d2", "d3"], ["d3", "d2"], ["d3", "d2"])

    def test_a_postprocessor_that_writes_texts(self, keeper):
        class Shortens(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                for one in nodes:
                    one.node.text = f"Short {one.node.id_}."
                return nodes

        engine(Faq(size=2), [Shortens()]).query("Where?")
        run = keeper.only
        assert [p.text[:7] for p in run.record.pool("retrieved")] == ["Passage", "Passage"]
        assert [p.text for p in run.record.pool("reranked")] == ["Short d0.", "Short d1."]

    def test_a_postprocessor_that_empties_the_list(self, keeper):
        class Clears(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                web = NodeWithScore(
                    node=TextNode(id_="web", text="The web says that the lab is in Oslo."), score=0.5
                )
                nodes[:] = [web]
                return nodes

        engine(Faq(size=4), [Clears()]).query("Where?")
        assert stages(keeper.only) == (["d0", "d1", "d2", "d3"], ["web"], ["web"])


class TestNumpy:
    def test_metadata_and_scores_of_copied_nodes(self, keeper):
        numpy = pytest.importorskip("numpy")

        class Copies(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                made = [one.model_copy(deep=True) for one in nodes[::-1][:2]]
                for i, one in enumerate(made):
                    one.score = numpy.float32(0.5 - i / 4)
                return made

        found = nodes(4)
        for i, one in enumerate(found):
            one.node.metadata["vector"] = numpy.arange(3) + i
        engine(Given(found), [Copies(), First(n=9)]).query("Where?")
        assert stages(keeper.only) == (["d0", "d1", "d2", "d3"], ["d3", "d2"], ["d3", "d2"])
        assert scores(keeper.only, "reranked") == [0.5, 0.25]

    def test_a_score_that_cannot_be_compared(self, keeper):
        numpy = pytest.importorskip("numpy")

        class Odd(BaseNodePostprocessor):
            def _postprocess_nodes(self, nodes, query_bundle=None):
                for one in nodes:
                    one.score = numpy.array([0.5, 0.2])
                return nodes

        engine(Faq(size=2), [Odd()]).query("Where?")
        assert stages(keeper.only) == (["d0", "d1"], ["d0", "d1"], ["d0", "d1"])
