"""ragas' metrics with a model that answers from a world; see `tests.peers.worlds.World`. Run by build/peers alone.

ragas has two forms of each metric: ``legacy`` (`ragas.metrics`) and ``collections`` (`ragas.metrics.collections`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

from langchain_core.outputs import Generation, LLMResult
from ragas import metrics as legacy
from ragas.dataset_schema import SingleTurnSample
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM
from ragas.metrics import collections

if TYPE_CHECKING:
    from collections.abc import Mapping

logging.getLogger("ragas").setLevel(logging.ERROR)


class Oracle:
    """Reads the input that stands at the end of a prompt of ragas, and answers it from the world."""

    def __init__(self, world: Mapping[str, Any]) -> None:
        self.world = world
        self.calls = 0

    def reply(self, prompt: str) -> dict[str, Any]:
        """The reply to a prompt, with the fields of every prompt that takes such an input."""
        place = self.calls
        self.calls += 1
        given = json.loads(prompt.rsplit("input: ", 1)[1].rsplit("Output:", 1)[0])
        if "statements" in given:
            return {"statements": self._verdicts(given["context"], given["statements"])}
        if "context" in given:
            return self._contextual(given["context"], given["answer"])
        if "question" in given:
            return {"statements": self._claims(given.get("answer", given.get("text")))}
        if "response" in given:
            return self._question(place) | {"claims": self._claims(given["response"])}
        return {"entities": self.world["entities"].get(given["text"], [])}

    def _claims(self, text: str) -> list[str]:
        return self.world["claims"].get(text, [])

    def _entailed(self, text: str) -> set[str]:
        """What a text states; contexts are joined by line ends."""
        by_text = self.world["entails"]
        return {claim for part in [text, *text.split("\n")] for claim in by_text.get(part, [])}

    def _verdicts(self, context: str, statements: list[str]) -> list[dict[str, Any]]:
        entailed = self._entailed(context)
        answered = statements[: self.world.get("max_verdicts", len(statements))]
        return [{"statement": one, "reason": "", "verdict": int(one in entailed)} for one in answered]

    def _contextual(self, context: str, answer: str) -> dict[str, Any]:
        entailed = self._entailed(context)
        rows = [
            {"statement": one, "reason": "", "attributed": int(one in entailed)} for one in self._claims(answer)
        ]
        return {"reason": "", "verdict": int(context in self.world["useful"]), "classifications": rows}

    def _question(self, place: int) -> dict[str, Any]:
        questions = self.world["questions"]
        text, flag = questions[place % len(questions)] if questions else ("", False)
        return {"question": text, "noncommittal": int(flag)}


class LegacyModel(BaseRagasLLM):
    """The oracle as a model of the legacy metrics; n completions count as n calls."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__()
        self.oracle = oracle

    def generate_text(self, prompt: Any, n: int = 1, **_: Any) -> LLMResult:
        replies = [json.dumps(self.oracle.reply(prompt.to_string())) for _ in range(n)]
        return LLMResult(generations=[[Generation(text=reply) for reply in replies]])

    async def agenerate_text(self, prompt: Any, n: int = 1, **_: Any) -> LLMResult:
        return self.generate_text(prompt, n)

    def is_finished(self, response: LLMResult) -> bool:
        return True


class CollectionsModel(InstructorBaseRagasLLM):
    """The oracle as a model of the metrics in collections."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle

    def generate(self, prompt: str, response_model: Any) -> Any:
        return response_model.model_validate(self.oracle.reply(prompt))

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        return self.generate(prompt, response_model)


class Vectors(BaseRagasEmbedding):
    """The vectors of the world, by text."""

    def __init__(self, by_text: Mapping[str, list[float]]) -> None:
        super().__init__()
        self._by_text = by_text

    def embed_text(self, text: str, **_: Any) -> list[float]:
        return self._by_text[text]

    async def aembed_text(self, text: str, **_: Any) -> list[float]:
        return self._by_text[text]

    embed_query = embed_text

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._by_text[text] for text in texts]


LEGACY = {
    "faithfulness": legacy.Faithfulness,
    "answer_relevancy": legacy.ResponseRelevancy,
    "context_precision": legacy.LLMContextPrecisionWithoutReference,
    "context_precision_with_reference": legacy.LLMContextPrecisionWithReference,
    "context_recall": legacy.LLMContextRecall,
    "context_entities_recall": legacy.ContextEntityRecall,
    "noise_sensitivity": legacy.NoiseSensitivity,
    "factual_correctness": legacy.FactualCorrectness,
    "semantic_similarity": legacy.SemanticSimilarity,
}
COLLECTIONS = {
    "faithfulness": collections.Faithfulness,
    "answer_relevancy": collections.AnswerRelevancy,
    "context_precision": collections.ContextPrecisionWithoutReference,
    "context_precision_with_reference": collections.ContextPrecisionWithReference,
    "context_recall": collections.ContextRecall,
    "context_entities_recall": collections.ContextEntityRecall,
    "noise_sensitivity": collections.NoiseSensitivity,
    "factual_correctness": collections.FactualCorrectness,
    "semantic_similarity": collections.SemanticSimilarity,
}
INPUTS = {
    "faithfulness": ("user_input", "response", "retrieved_contexts"),
    "answer_relevancy": ("user_input", "response"),
    "context_precision": ("user_input", "response", "retrieved_contexts"),
    "context_precision_with_reference": ("user_input", "reference", "retrieved_contexts"),
    "context_recall": ("user_input", "retrieved_contexts", "reference"),
    "context_entities_recall": ("reference", "retrieved_contexts"),
    "noise_sensitivity": ("user_input", "response", "reference", "retrieved_contexts"),
    "factual_correctness": ("response", "reference"),
    "semantic_similarity": ("reference", "response"),
}


async def _scored(metric: str, form: str, world: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    sample = {
        "user_input": world["query"],
        "response": world["answer"],
        "reference": world["reference"],
        "retrieved_contexts": world["contexts"],
    }
    given = {name: sample[name] for name in INPUTS[metric]}
    oracle, vectors = Oracle(world), Vectors(world["vectors"])
    try:
        if form == "legacy":
            made = LEGACY[metric](**options)
            made.llm, made.embeddings = LegacyModel(oracle), vectors
            value = await made.single_turn_ascore(SingleTurnSample(**given))
        else:
            takes = {"llm": CollectionsModel(oracle), "embeddings": vectors}
            wanted = {"answer_relevancy": ("llm", "embeddings"), "semantic_similarity": ("embeddings",)}
            parts = {name: takes[name] for name in wanted.get(metric, ("llm",))}
            value = (await COLLECTIONS[metric](**parts, **options).ascore(**given)).value
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error), "calls": oracle.calls}
    return {"value": float(value), "calls": oracle.calls}


def score(metric: str, form: str, worlds: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    """The value, or the error, and the calls of a metric for each world."""

    async def all_of_them() -> list[dict[str, Any]]:
        return [await _scored(metric, form, world, options) for world in worlds]

    return asyncio.run(all_of_them())
