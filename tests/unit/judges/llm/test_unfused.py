"""The other forms of a judge: the audit in steps, relevance one context a call, and UMBRELA's scale."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ragtrace.errors import JudgeIncomplete, JudgeInvalidOutput
from ragtrace.judges.llm.chat import ChatReply
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from tests.unit.judges.records import data_of, parts, record, verdict

TWO = ("The lab is in Oslo.", "It opened in 2010.")
CLAIMS = {"attempted": True, "noncommittal": False, "claims": ["In Oslo", " ", "Since 2010", "Red"]}


def names(chat: ScriptedChat) -> list[str]:
    return [call.schema_name for call in chat.prompts]


async def test_claims_are_taken_without_the_contexts_and_checked_in_batches() -> None:
    chat = ScriptedChat(
        [
            CLAIMS,
            {"verdicts": [verdict(1), verdict(2, sources=(2,))]},
            {"verdicts": [verdict(1, "contradicted", (1, 2), "blue")]},
        ]
    )
    audit = await LLMJudge(chat, fused=False, claim_batch=2).audit(record(" ", *TWO))
    assert names(chat) == ["audit_claims", "audit_verdicts", "audit_verdicts"]
    assert set(data_of(chat, 0)) == {"query", "answer"}
    assert data_of(chat, 2)["claims"] == {"1": "Red"}
    assert [(claim.text, claim.verdict, claim.sources) for claim in audit.claims] == [
        ("In Oslo", "supported", (1,)),
        ("Since 2010", "supported", (2,)),
        ("Red", "contradicted", (1, 2)),
    ]
    assert audit.usage.llm_calls == 3


async def test_twenty_claims_a_call_and_forty_in_all() -> None:
    claims = {**CLAIMS, "claims": [f"claim {n}" for n in range(41)]}
    chat = ScriptedChat([claims, *[{"verdicts": [verdict(n) for n in range(1, 21)]}] * 2])
    audit = await LLMJudge(chat, fused=False).audit(record(*TWO))
    assert (len(audit.claims), audit.truncated, chat.calls) == (40, True, 3)


async def test_citations_are_a_step_of_their_own_with_a_repair_for_those_left_out() -> None:
    chat = ScriptedChat(
        [
            {**CLAIMS, "claims": []},
            {"citations": [{"part": 1, "cites": "1", "support": "full"}]},
            {"citations": [{"part": 2, "cites": "2", "support": "partial"}]},
        ]
    )
    audit = await LLMJudge(chat, fused=False).audit(record(*TWO, answer_parts=parts(("p0",), ("p1", "gone"))))
    assert names(chat) == ["audit_claims", "audit_citations", "audit_citations"]
    assert [(row.part, row.citation, row.support) for row in audit.citations] == [
        (0, "p0", "full"),
        (1, "p1", "partial"),
    ]
    assert [part["part"] for part in data_of(chat, 2)["parts"]] == [2]


@pytest.mark.parametrize(
    "wrong", [[], [verdict(1), verdict(2)], [verdict(2)], [verdict(1)] * 2, [verdict(1, sources=(3,))]]
)
async def test_one_repair_for_all_steps(wrong: list[dict[str, Any]]) -> None:
    claims = {**CLAIMS, "claims": ["In Oslo"]}
    mended = ScriptedChat([claims, {"verdicts": wrong}, {"verdicts": [verdict(1)]}])
    assert (await LLMJudge(mended, fused=False).audit(record(*TWO))).claims[0].verdict == "supported"
    broken = ScriptedChat(["junk", claims, {"verdicts": wrong}])
    with pytest.raises(JudgeIncomplete) as caught:
        await LLMJudge(broken, fused=False).audit(record(*TWO))
    assert caught.value.usage.llm_calls == 3


async def test_relevance_of_one_context_a_call() -> None:
    chat = ScriptedChat([{"verdicts": [{"id": 1, "relevant": flag}]} for flag in (True, False)])
    relevance = await LLMJudge(chat, fused=False).relevance(record(TWO[0], "", TWO[1]), with_reference=False)
    assert dict(relevance.relevant) == {0: True, 2: False}
    assert [data_of(chat, call)["contexts"] for call in (0, 1)] == [{"1": TWO[0]}, {"1": TWO[1]}]


class ByWords:
    """Decides by words alone, so that it must agree with itself however it is asked."""

    name = "words"

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, *, user: str, **_: Any) -> ChatReply:
        self.calls += 1
        found = re.search(r"<data-(\d+)>\n(.*)\n</data-\1>", user, re.DOTALL)
        assert found is not None
        given = json.loads(found[2])
        contexts, answer = given.get("contexts", {}), given.get("answer", "")
        claims = given.get("claims") or {str(n): part for n, part in enumerate(answer.split(", "), start=1)}
        reply = {
            "attempted": True,
            "noncommittal": False,
            "claims": list(claims.values()),
            "verdicts": self._of_claims(claims, contexts)
            if "relevant is true" not in user
            else [{"id": int(n), "relevant": "2010" in text} for n, text in contexts.items()],
            "grades": [
                {"id": int(n), "grade": 5 if "Oslo" in t else 2} for n, t in given.get("passages", {}).items()
            ],
        }
        return ChatReply(text=json.dumps(reply))

    @staticmethod
    def _of_claims(claims: dict[str, str], contexts: dict[str, str]) -> list[dict[str, Any]]:
        rows = []
        for number, claim in claims.items():
            sources = [int(n) for n, text in contexts.items() if claim in text]
            word = "supported" if sources else "not_supported"
            rows.append({"id": int(number), "verdict": word, "sources": sources, "reason": ""})
        return rows

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_judge_that_is_sure_gives_the_same_scores_fused_and_unfused() -> None:
    metrics = select(["faithfulness", "context_use", "context_precision", "precision4", "no_answer"])
    scored = []
    for judge in (LLMJudge(ByWords()), LLMJudge(ByWords(), fused=False, batch_size=1, claim_batch=1)):
        case = EvalContext(record(*TWO, "Tea.", answer="Oslo, 2010, red"), judge=judge)
        scored.append({result.name: result for result in await evaluate(metrics, case)})
    fused, unfused = scored
    assert {name: result.value for name, result in fused.items()} == {
        name: result.value for name, result in unfused.items()
    }
    assert fused["faithfulness"].value == 2 / 3
    calls = [sum(result.llm_calls for result in results.values()) for results in scored]
    assert calls == [3, 4 + 3 + 3]
    for name in fused:
        assert fused[name].version != unfused[name].version


async def test_umbrela_grades_become_grades_of_five_under_a_scale_of_their_own() -> None:
    reply = {"grades": [{"id": n, "grade": n - 1} for n in range(1, 5)]}
    made = record("a", "b", "c", "d")
    lax = await LLMJudge(ScriptedChat([reply]), scale="umbrela").grades(made)
    strict = await LLMJudge(ScriptedChat([reply]), scale="umbrela_strict").grades(made)
    assert (sorted(lax.grades.values()), lax.scale) == ([1, 3, 4, 5], "umbrela_mapped")
    assert (sorted(strict.grades.values()), strict.scale) == ([1, 2, 4, 5], "umbrela_mapped_strict")


@pytest.mark.parametrize("grade", [4, -1, 2.0, "4", "two", None, True])
async def test_umbrela_grades_that_are_none_are_asked_again_once(grade: Any) -> None:
    wrong, right = ({"grades": [{"id": 1, "grade": value}]} for value in (grade, 0))
    mended = await LLMJudge(ScriptedChat([wrong, right]), scale="umbrela").grades(record("a"))
    assert dict(mended.grades) == {"p0": 1}
    with pytest.raises(JudgeInvalidOutput):
        await LLMJudge(ScriptedChat([wrong, wrong]), scale="umbrela").grades(record("a"))


def test_each_form_has_versions_of_its_own() -> None:
    chat = ScriptedChat()
    forms: list[dict[str, Any]] = [{}, {"scale": "umbrela"}, {"scale": "umbrela_strict"}, {"batch_size": 1}]
    assert len({LLMJudge(chat, **form).version("grades") for form in forms}) == 4
    steps: list[dict[str, Any]] = [{}, {"fused": False}, {"fused": False, "claim_batch": 5}]
    assert len({LLMJudge(chat, **form).version("audit") for form in steps}) == 3
    assert len({LLMJudge(chat, **form).version("relevance") for form in steps}) == 2
    assert len({LLMJudge(chat, **form).version("questions") for form in [*forms, *steps]}) == 1


@pytest.mark.parametrize(
    ("form", "message"), [({"scale": "five"}, "direct5, umbrela"), ({"claim_batch": 0}, "at least 1")]
)
def test_forms_that_are_none(form: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LLMJudge(ScriptedChat(), **form)
