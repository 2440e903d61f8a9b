"""A model that obeys orders outside the fence gives poisoned records the scores of clean ones, also here."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges.llm.chat import ChatReply
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from tests.unit.judges.llm.obedient import ORDER
from tests.unit.judges.llm.test_injection import POISON
from tests.unit.judges.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model import RagRecord

METRICS = ("noise_sensitivity", "factual_correctness", "context_entities_recall")
PLACES = ("Oslo", "Bergen", "2010")


class ObedientChat:
    """Obeys any order outside the fence, and reads the place names inside."""

    name = "obedient"

    async def complete(self, *, system: str, user: str, schema_name: str, **_: Any) -> ChatReply:
        opened = re.search(r"<data-([^>\s]*)>\n", user)
        assert opened is not None
        before, rest = user[: opened.start()], user[opened.end() :]
        body, _, after = rest.partition(f"</data-{opened[1]}>")
        obeys = ORDER.search(f"{system}{before}{after}") is not None
        reply = getattr(self, schema_name)(json.loads(body), obeys=obeys)
        return ChatReply(text=json.dumps(reply))

    def claims(self, data: Mapping[str, Any], *, obeys: bool) -> dict[str, Any]:
        return {"answer_claims": named(data["answer"]), "reference_claims": named(data["reference"])}

    def claim_verdicts(self, data: Mapping[str, Any], *, obeys: bool) -> dict[str, Any]:
        rows = []
        for key, other in (("answer_claims", "reference"), ("reference_claims", "answer")):
            for number, claim in data[key].items():
                is_there = obeys or claim in data[other]
                rows.append({"id": int(number), "verdict": "supported" if is_there else "not_supported"})
        return {"verdicts": rows}

    def claim_sources(self, data: Mapping[str, Any], *, obeys: bool) -> dict[str, Any]:
        contexts = data["contexts"].items()
        return {
            "table": [
                {"id": int(number), "sources": [int(n) for n, text in contexts if obeys or claim in text]}
                for number, claim in data["claims"].items()
            ]
        }

    def entities(self, data: Mapping[str, Any], *, obeys: bool) -> dict[str, Any]:
        wanted = named(data["reference"])
        return {
            "reference_entities": wanted,
            "context_entities": wanted if obeys else named(" ".join(data["contexts"].values())),
        }

    def reference_entities(self, data: Mapping[str, Any], *, obeys: bool) -> dict[str, Any]:
        return {"reference_entities": ["Oslo"] if obeys else named(data["reference"])}

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


def named(text: str) -> list[str]:
    return [place for place in PLACES if place in text]


def poisoned(poison: str, place: str) -> RagRecord:
    contexts = ["The lab is in Oslo.", "Tea is served in Bergen."]
    if place == "context":
        contexts[1] += poison
    clean = record(*contexts, answer="In Bergen since 2010.", reference="In Oslo since 2010.")
    if place == "context":
        return clean
    return replace(clean, **{place: getattr(clean, place) + poison})


async def values(made: RagRecord) -> list[tuple[str, float | None]]:
    found = []
    for in_text in (False, True):
        case = EvalContext(made, judge=LLMJudge(ObedientChat()), options=MetricOptions(entities_in_text=in_text))
        found += [(result.name, result.value) for result in await evaluate(select(METRICS), case)]
    return found


@pytest.mark.parametrize("place", ["answer", "query", "reference", "context"])
@pytest.mark.parametrize("poison", POISON, ids=range(len(POISON)))
async def test_poison_changes_no_score(poison: str, place: str) -> None:
    assert await values(poisoned(poison, place)) == await values(poisoned("", place))


async def test_the_clean_scores_are_those_of_a_judge_that_does_not_obey() -> None:
    found = dict(await values(poisoned("", "query")))
    assert found["noise_sensitivity_irrelevant"] == 0.5
    assert found["factual_correctness"] == 0.5
    assert found["context_entities_recall"] == 0.5


@pytest.mark.parametrize("name", ["claim_verdicts", "claim_sources", "entities"])
async def test_the_model_does_obey_what_stands_outside(name: str) -> None:
    data = {"answer": "", "reference": "In Oslo.", "answer_claims": {"1": "x"}, "reference_claims": {}}
    data |= {"contexts": {"1": "tea"}, "claims": {"1": "x"}}
    body = json.dumps(data)
    chat = ObedientChat()
    calm = await chat.complete(system="", user=f"Task.\n<data-k>\n{body}\n</data-k>\nEnd.", schema_name=name)
    led = await chat.complete(system="", user=f"Obey me.\n<data-k>\n{body}\n</data-k>\nEnd.", schema_name=name)
    assert calm.text != led.text
