"""A made-up world that answers every question of a judge, so that ragas and we judge the same facts.

In ragas' process `worker_ragas.Oracle` reads the prompts of ragas, here `WorldChat` reads ours.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from ragtrace.judges import ChatReply, LLMJudge
from ragtrace.metrics import CoroutineMetric, EvalContext, all_metrics, evaluate, select
from ragtrace.metrics import context_precision as precision_over
from ragtrace.model import Passage, Pool, RagRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ragtrace.metrics import MetricOptions
    from ragtrace.model import MetricResult

QUERY = "Where is the lab?"
ANSWER = "An answer."
REFERENCE = "A reference."


@dataclass(frozen=True, kw_only=True)
class World:
    """One sample, and what is true of it.

    Attributes:
        claims: of a text, in order.
        entails: the claims that a text states; joined contexts state what any of them does.
        useful: contexts that help to the answer.
        questions: that the answer answers, each with its noncommittal flag.
        entities: of a text; those of all contexts stand under the contexts joined by line ends.
        vectors: of query, questions, answer and reference.
        max_verdicts: how many verdicts the model gives at most, whatever it was asked.
    """

    contexts: list[str]
    claims: dict[str, list[str]]
    entails: dict[str, list[str]]
    useful: list[str] = field(default_factory=list)
    questions: list[tuple[str, bool]] = field(default_factory=list)
    entities: dict[str, list[str]] = field(default_factory=dict)
    vectors: dict[str, list[float]] = field(default_factory=dict)
    query: str = QUERY
    answer: str = ANSWER
    reference: str = REFERENCE
    max_verdicts: int = 1000

    def job(self) -> dict[str, Any]:
        """The world as the peers' process takes it."""
        return asdict(self)

    def but(self, **changes: Any) -> World:
        """The same with changes."""
        return dataclasses.replace(self, **changes)

    @property
    def joined(self) -> str:
        """All contexts as ragas joins them."""
        return "\n".join(self.contexts)


def world(n_answer: int = 0, n_reference: int = 0, *, right: int = 0, covered: int = 0, **given: Any) -> World:
    """A world of one context, where the reference states `right` claims of the answer, and this `covered` facts."""
    claims = {
        ANSWER: [f"claim {place}" for place in range(n_answer)],
        REFERENCE: [f"fact {place}" for place in range(n_reference)],
    }
    entails = {REFERENCE: claims[ANSWER][:right], ANSWER: claims[REFERENCE][:covered]}
    return World(**{"contexts": ["context 0"], "claims": claims, "entails": entails} | given)


def random_worlds(number: int, seed: int) -> list[World]:
    """Worlds of 1 to 5 contexts, 1 to 6 claims and 1 to 5 facts, where each holds or not by a draw."""
    return [_random_world(random.Random(f"{seed}/{place}")) for place in range(number)]


def _random_world(draw: random.Random) -> World:
    contexts = [f"context {place}" for place in range(draw.randint(1, 5))]
    claims = {
        ANSWER: [f"claim {place}" for place in range(draw.randint(1, 6))],
        REFERENCE: [f"fact {place}" for place in range(draw.randint(1, 5))],
    }
    every = [*claims[ANSWER], *claims[REFERENCE]]
    share = draw.random()
    states = {text: [one for one in every if draw.random() < share] for text in (*contexts, ANSWER, REFERENCE)}
    names = [f"entity {place}" for place in range(8)]
    questions = [(f"question {place}?", draw.random() < 0.6) for place in range(3)]
    return World(
        contexts=contexts,
        claims=claims,
        entails=states,
        useful=[text for text in contexts if draw.random() < 0.5],
        questions=questions,
        entities={
            REFERENCE: draw.sample(names, draw.randint(1, 5)),
            "\n".join(contexts): draw.sample(names, draw.randint(0, 6)),
        },
        # No cosine below zero, where we cut and ragas does not.
        vectors={
            text: [draw.random() + 0.01 for _ in range(4)]
            for text in (QUERY, ANSWER, REFERENCE, *(text for text, _ in questions))
        },
    )


class WorldChat:
    """A chat model that answers our prompts from a world."""

    name = "world"

    def __init__(self, of: World) -> None:
        self.world = of
        self.calls = 0

    async def complete(self, *, user: str, schema_name: str, **_: Any) -> ChatReply:
        self.calls += 1
        found = re.search(r"<data-(\d+)>\n(.*)\n</data-\1>", user, re.DOTALL)
        assert found is not None
        return ChatReply(text=json.dumps(getattr(self, f"_{schema_name}")(json.loads(found[2]))))

    def _sources(self, claim: str, contexts: Mapping[str, str]) -> list[int]:
        return [int(number) for number, text in contexts.items() if claim in self.world.entails.get(text, [])]

    def _cut(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return list(rows[: self.world.max_verdicts])

    def _audit(self, data: dict[str, Any]) -> dict[str, Any]:
        claims = self.world.claims.get(data["answer"], [])
        rows = [
            {
                "id": place,
                "verdict": "supported" if self._sources(claim, data["contexts"]) else "not_supported",
                "sources": self._sources(claim, data["contexts"]),
                "reason": "",
            }
            for place, claim in enumerate(claims, start=1)
        ]
        flags = {"attempted": True, "noncommittal": False}
        return flags | {"claims": claims, "verdicts": self._cut(rows), "citations": []}

    def _relevance(self, data: dict[str, Any]) -> dict[str, Any]:
        shown = data["contexts"].items()
        rows = [{"id": int(number), "relevant": text in self.world.useful} for number, text in shown]
        return {"verdicts": self._cut(rows)}

    def _facts(self, data: dict[str, Any]) -> dict[str, Any]:
        facts = self.world.claims.get(data["reference"], [])
        rows = [
            {"id": place, "sources": self._sources(fact, data["contexts"])} for place, fact in enumerate(facts, 1)
        ]
        return {"facts": facts, "attributions": self._cut(rows)}

    def _questions(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"questions": [{"question": text, "noncommittal": flag} for text, flag in self.world.questions]}

    def _entities(self, data: dict[str, Any]) -> dict[str, Any]:
        joined = "\n".join(data["contexts"].values())
        return self._reference_entities(data) | {"context_entities": self.world.entities.get(joined, [])}

    def _reference_entities(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"reference_entities": self.world.entities.get(data["reference"], [])}

    def _claims(self, data: dict[str, Any]) -> dict[str, Any]:
        return {f"{text}_claims": self.world.claims.get(data[text], []) for text in ("answer", "reference")}

    def _claim_verdicts(self, data: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {
                "id": int(number),
                "verdict": "supported" if claim in self.world.entails.get(data[other], []) else "not_supported",
            }
            for text, other in (("answer", "reference"), ("reference", "answer"))
            for number, claim in data[f"{text}_claims"].items()
        ]
        return {"verdicts": self._cut(rows)}

    def _claim_sources(self, data: dict[str, Any]) -> dict[str, Any]:
        rows = [
            {"id": int(number), "sources": self._sources(claim, data["contexts"])}
            for number, claim in data["claims"].items()
        ]
        return {"table": self._cut(rows)}

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


class WorldEmbedder:
    """The vectors of a world."""

    name = "world"

    def __init__(self, of: World) -> None:
        self._by_text = of.vectors

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([self._by_text[text] for text in texts], dtype=np.float64)

    async def aclose(self) -> None:
        """Nothing is open."""


async def ours(metric: str, of: World, options: MetricOptions | None = None) -> dict[str, MetricResult]:
    """Our results of a metric over a world, by the names of the outputs."""
    passages = tuple(Passage(id=f"p{n}", text=text, rank=n) for n, text in enumerate(of.contexts, start=1))
    record = RagRecord(
        id="1",
        query=of.query,
        answer=of.answer,
        reference=of.reference,
        pools=(Pool(stage="used", passages=passages),),
    )
    if metric == "context_precision":
        record = replace(record, reference=None)
    chosen = (
        [CoroutineMetric(all_metrics()["context_precision"].spec, partial(precision_over, needs_reference=True))]
        if metric == "context_precision_with_reference"
        else select([metric])
    )
    case = EvalContext(record, judge=LLMJudge(WorldChat(of)), embedder=WorldEmbedder(of), options=options)
    return {result.name: result for result in await evaluate(chosen, case)}
