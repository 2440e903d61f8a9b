"""Only questions are runs: evaluators, ingestion, graders and parts called on their own are none."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core import DocumentSummaryIndex, KeywordTableIndex, Settings, TreeIndex, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.evaluation import (
    BatchEvalRunner,
    ContextRelevancyEvaluator,
    CorrectnessEvaluator,
    FaithfulnessEvaluator,
    GuidelineEvaluator,
    RelevancyEvaluator,
    RetrieverEvaluator,
)
from llama_index.core.extractors import KeywordExtractor, TitleExtractor
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.program import LLMTextCompletionProgram
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import CustomQueryEngine, TransformQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import Document
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel

from integrations.llamaindex.tests.parts import Best, Faq, Given, Llm, checked, engine, nodes
from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, answer_lacking, evaluate, select
from tests.kept import ANSWER, ids, kinds


class Grade(BaseModel):
    is_good: bool


EMBEDDING = MockEmbedding(embed_dim=8)
GRADE = '{"is_good": true}'


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    monkeypatch.setattr(Settings, "_embed_model", EMBEDDING)
    monkeypatch.setattr(Settings, "_llm", Llm())


def documents():
    return [Document(text=f"Passage {i} says Oslo.", id_=f"x{i}") for i in range(3)]


def pieces():
    return SentenceSplitter()(documents())


def evaluated(evaluator):
    return evaluator.evaluate(
        query="Where?", response="In Oslo.", contexts=["The lab is in Oslo."], reference="Oslo"
    )


def retriever_evaluated():
    judge = RetrieverEvaluator.from_metric_names(["mrr"], retriever=Faq())
    return judge.evaluate(query="Where?", expected_ids=["d1"])


def selected():
    says = '[{"choice": 1, "reason": "x"}]'
    choices = [ToolMetadata(name="faq", description="faq"), ToolMetadata(name="web", description="web")]
    return LLMSingleSelector.from_defaults(llm=Llm(says=says)).select(choices, "Where?")


def programmed():
    made = LLMTextCompletionProgram.from_defaults(
        output_cls=Grade, prompt_template_str="Grade {x}", llm=Llm(says=GRADE)
    )
    return made(x=1)


def piped(*transformations):
    return IngestionPipeline(transformations=[SentenceSplitter(), *transformations]).run(documents=documents())


NO_QUESTIONS = {
    "faithfulness evaluator": lambda: evaluated(FaithfulnessEvaluator(llm=Llm(says="YES"))),
    "relevancy evaluator": lambda: evaluated(RelevancyEvaluator(llm=Llm(says="YES"))),
    "correctness evaluator": lambda: evaluated(CorrectnessEvaluator(llm=Llm(says="4.0\nfine"))),
    "context evaluator": lambda: evaluated(ContextRelevancyEvaluator(llm=Llm(says="[RESULT] 2"))),
    "guideline evaluator": lambda: evaluated(GuidelineEvaluator(llm=Llm(says='{"passing": true, "feedback": ""}'))),
    "retriever evaluator": retriever_evaluated,
    "pipeline": lambda: piped(EMBEDDING),
    "pipeline that asks a model": lambda: piped(TitleExtractor(llm=Llm()), KeywordExtractor(llm=Llm())),
    "extractor": lambda: KeywordExtractor(llm=Llm()).extract(pieces()),
    "vector index": lambda: VectorStoreIndex.from_documents(documents(), embed_model=EMBEDDING),
    "summary index": lambda: DocumentSummaryIndex.from_documents(documents(), llm=Llm(), embed_model=EMBEDDING),
    "tree index": lambda: TreeIndex.from_documents(documents(), llm=Llm(), num_children=2),
    "keyword index": lambda: KeywordTableIndex.from_documents(documents(), llm=Llm()),
    "query embedding": lambda: EMBEDDING.get_query_embedding("Where?"),
    "text embeddings": lambda: EMBEDDING.get_text_embedding_batch(["a", "b"]),
    "prompt": lambda: PromptTemplate("{x}").format(x=1),
    "parser": lambda: PydanticOutputParser(Grade).parse(GRADE),
    "template": lambda: Llm().predict(PromptTemplate("Grade {x}"), x=1),
    "grader": lambda: Llm(says=GRADE).structured_predict(Grade, PromptTemplate("Grade {x}"), x=1),
    "program": programmed,
    "selector": selected,
    "HyDE": lambda: HyDEQueryTransform(llm=Llm()).run("Where?"),
    "text tool": lambda: FunctionTool.from_defaults(lambda x: x, name="t", description="d")("Where?"),
    "postprocessor": lambda: Best().postprocess_nodes(nodes()),
    "model that reranks": lambda: LLMRerank(llm=Llm(says="Doc: 1, Relevance: 5")).postprocess_nodes(
        nodes(), query_str="Where?"
    ),
}


@pytest.mark.parametrize("name", NO_QUESTIONS)
@pytest.mark.parametrize("is_in_loop", [False, True])
def test_no_run(keeper, name, is_in_loop):
    async def in_loop():
        return NO_QUESTIONS[name]()

    assert (asyncio.run(in_loop()) if is_in_loop else NO_QUESTIONS[name]()) is not None
    assert [run.record.query for run in keeper.runs] == []


async def test_an_awaited_pipeline_and_evaluator_are_no_runs(keeper):
    await IngestionPipeline(transformations=[SentenceSplitter(), TitleExtractor(llm=Llm())]).arun(
        documents=documents()
    )
    await FaithfulnessEvaluator(llm=Llm(says="YES")).aevaluate(response="In Oslo.", contexts=["In Oslo."])
    assert keeper.runs == []


def test_the_questions_of_a_batch_evaluation_are_runs(keeper):
    runner = BatchEvalRunner({"faithfulness": FaithfulnessEvaluator(llm=Llm(says="YES"))})
    assert runner.evaluate_queries(engine(), queries=["Where?"])["faithfulness"][0].passing
    checked(keeper.only)


class Searching(Workflow):
    """Has a model write the query, and returns the nodes."""

    @step
    async def search(self, ev: StartEvent) -> StopEvent:
        written = await Llm(says="lab city").acomplete(ev.query)
        return StopEvent(result=await Faq(size=2).aretrieve(written.text))


def search_workflow():
    return asyncio.run(_searched())


async def _searched():
    return await Searching().run(query="Where?")


def transformed():
    inner = engine(Faq(size=2), [], mode="no_text")
    return TransformQueryEngine(inner, HyDEQueryTransform(llm=Llm())).query("Where?")


def context_of(question):
    return "\n\n".join(one.text for one in Faq(size=2).retrieve(question))


SEARCHES = {
    "retriever": lambda: Faq(size=2).retrieve("Where?"),
    "no text": lambda: engine(Faq(size=2), [], mode="no_text").query("Where?"),
    "context only": lambda: engine(Faq(size=2), [], mode="context_only").query("Where?"),
    "HyDE without an answer": transformed,
    "workflow that writes its query": search_workflow,
    "function that joins the passages": lambda: get_dispatcher("tests.app").span(context_of)("Where?"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_expects_no_answer(keeper, name):
    SEARCHES[name]()
    record = keeper.only.record
    assert (record.query, record.answer, record.outcome) == ("Where?", "", "answered")
    assert answer_lacking(record) == "no_answer_expected"
    assert ids(keeper.only, "retrieved") == ["d0", "d1"]


class Quoting(CustomQueryEngine):
    """Asks a model that is none of LlamaIndex's."""

    def custom_query(self, query_str):
        Faq(size=2).retrieve(query_str)
        return ANSWER


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda: Quoting().query("Where?"), ANSWER),
        (lambda: engine(Given([])).query("Where?"), "Empty Response"),
    ],
)
def test_an_answer_is_expected(keeper, ask, answer):
    ask()
    record = keeper.only.record
    assert (record.answer, record.is_answer_expected) == (answer, True)


async def scored(record, judge):
    results = await evaluate(select(["no_answer", "faithfulness", "diagnosis"]), EvalContext(record, judge=judge))
    return {it.key: it for it in results}


@pytest.mark.parametrize("judge", [OverlapJudge(), LLMJudge(ScriptedChat([]))], ids=["offline", "not asked"])
@pytest.mark.parametrize(
    ("made", "verdict"),
    [(lambda: engine(Given([])), "rightly_refused"), (lambda: engine(Faq(), llm=Llm(says="")), "undetermined")],
    ids=["nothing retrieved", "the model said nothing"],
)
async def test_an_empty_response_is_no_answer(keeper, judge, made, verdict):
    assert str(await made().aquery("Where is the lab?")) == "Empty Response"
    found = await scored(keeper.only.record, judge)
    assert found["answered"].value == 0.0
    assert found["faithfulness"].value is None
    assert (found["diagnosis"].details["attempted"], found["diagnosis"].details["verdict"]) == (False, verdict)


async def test_an_answer_about_empty_responses_is_one(keeper):
    await engine(Faq(), llm=Llm(says="Empty Response bodies have the status 204.")).aquery("What is a 204?")
    assert (await scored(keeper.only.record, OverlapJudge()))["answered"].value == 1.0


def test_nodes_that_a_synthesizer_is_given_are_a_question(keeper):
    get_response_synthesizer(llm=Llm()).synthesize("Where?", nodes(2))
    assert (kinds(keeper.only), keeper.only.record.answer) == (["retrieval", "chat"], ANSWER)
