"""Invented specifics: what no context holds, in any notation, and how far its mean moves."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import MetricResult, RagRecord, record_from_json
from ragtrace.service import watched
from ragtrace.settings import Settings
from tests import make

if TYPE_CHECKING:
    from pathlib import Path

CONTEXT = (
    "The Oslo lab opened on 5 November 2010 with twelve rooms. Maria Berg leads it. A visit costs €30 and takes 2 hours. "
    "She called it “a house for every student of the north”. Doors open at 9:30 on Mondays. "
    "More: lab.example/rooms"
)


def record(answer: str, **facts) -> RagRecord:
    return make.record(CONTEXT, query="What about room 7?", answer=answer, **facts)


async def result(answer: str, judge=None, **facts) -> MetricResult:
    case = EvalContext(record(answer, **facts), judge=judge)
    return (await evaluate(select(["invented_specifics"]), case))[0]


@pytest.mark.parametrize(
    ("answer", "invented"),
    [
        ("The lab opened in 2010 and has 12 rooms.", []),
        ("It opened on November 5, 2010.", []),
        ("It opened on 2010/11/05.", []),
        ("It opened on 05.11.2010.", []),
        ("It opened on 5-Nov-2010.", []),
        ("It opened on 06.11.2010.", ["6 November 2010"]),
        ("A visit costs 30 euros and takes two hours.", []),
        ("The doors open at 9:30 am on Monday.", []),
        ("Maria Berg's lab is in Oslo.", []),
        ('She called it "a house for every student of the north".', []),
        ("Room 7 is not mentioned, but there are twelve.", []),
        ("The lab [1] has twelve rooms [2], see [the page](https://lab.example/rooms).", []),
        ("The lab has twelve rooms, see [the page](https://example.com/2024/99).", ["https://example.com/2024/99"]),
        ("The lab has twelve rooms [[2]](https://example.com/2024/99).", []),
        ("1. The lab has twelve rooms.\n2. A visit takes two hours.", []),
        ("The lab opened in 2011.", ["2011"]),
        ("It has 40 rooms and 12 doors.", ["40"]),
        ("A visit costs 30 dollars.", ["30 dollar"]),
        ("It opened on 6 November 2010.", ["6 November 2010"]),
        ("It opened in December.", ["December"]),
        ("Doors open at 10:15.", ["10:15"]),
        ("Doors open on Friday.", ["Friday"]),
        ("The lab is led by Harald Nyman.", ["Harald Nyman"]),
        ('She called it "the best place in the whole world".', ["the best place in the whole world"]),
    ],
)
@pytest.mark.parametrize("has_judge", [True, False])
async def test_what_no_context_holds_is_listed(answer: str, invented: list[str], *, has_judge: bool) -> None:
    found = await result(answer, OverlapJudge() if has_judge else None)
    assert found.details["invented"] == invented
    assert (found.value, found.passed) == (float(bool(invented)), not invented)


@pytest.mark.parametrize(
    ("answer", "facts", "reason"),
    [
        ("", {}, "no_answer"),
        ("The lab", {"outcome": "partial"}, "partial_run"),
        ("I don't know.", {}, "abstained"),
        ("Das Labor wurde im Jahr 2011 von der Stadt gebaut.", {}, "unsupported_language"),
        ("The lab is in Oslo.", {"pools": ()}, "no_contexts"),
    ],
)
async def test_it_is_na_with_its_reason(answer: str, facts: dict, reason: str) -> None:
    found = await evaluate(select(["invented_specifics"]), EvalContext(replace(record(answer), **facts)))
    assert (found[0].state, found[0].reason) == ("na", reason)


async def test_it_is_the_same_series_under_every_judge_and_asks_none() -> None:
    chat = ScriptedChat([])
    offline, with_model = (
        await result("It has 40 rooms.", OverlapJudge()),
        await result("It has 40 rooms.", LLMJudge(chat)),
    )
    assert (offline.version, offline.judge, offline.details) == (
        with_model.version,
        with_model.judge,
        with_model.details,
    )
    assert offline.judge.model == "overlap"
    assert with_model.llm_calls == 0


async def test_one_pass_serves_faithfulness_too() -> None:
    class Counting(OverlapJudge):
        asked = 0

        async def audit(self, record):
            self.asked += 1
            return await super().audit(record)

    judge = Counting()
    await evaluate(
        select(["faithfulness", "invented_specifics"]), EvalContext(record("It has 40 rooms."), judge=judge)
    )
    assert judge.asked == 1


def test_it_is_watched_by_default() -> None:
    metrics = select(Settings.resolve({}, {}).metrics)
    outputs = {output.name: output for metric in metrics for output in metric.spec.outputs}
    assert "invented_specifics" in watched(outputs)
    assert outputs["invented_specifics"].direction == "down"


def with_invention(answer: str, i: int) -> str:
    """Return an answer in which a model invented one number or one name, in turn."""
    numbers = list(re.finditer(r"(?<![\w.,\[])\d+(?![\w.,\]])", answer))
    names = list(re.finditer(r"(?<=[a-z] )[A-Z][a-z]{3,}\b", answer))
    found, new = (
        (numbers, str(7013 + i)) if numbers and (i % 2 or not names) else (names, f"Vorlund{'abcdefgh'[i % 8]}")
    )
    if not found:
        return f"{answer} This was introduced by Halvar Quist in {1907 + i % 80}."
    chosen = found[i % len(found)]
    return f"{answer[: chosen.start()]}{new}{answer[chosen.end() :]}"


@pytest.mark.slow
async def test_a_model_that_invents_in_one_answer_of_ten_moves_its_mean(shared_dir: Path) -> None:
    path = shared_dir / "data" / "faith_mtrag_dev.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not there")
    moves: dict[str, list[float]] = {"faithfulness": [], "invented_specifics": []}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            given = record_from_json(json.loads(line), fallback_id=str(i))
            changed = replace(given, answer=with_invention(given.answer, i))
            before, after = [
                {
                    r.name: r.value
                    for r in await evaluate(select(list(moves)), EvalContext(one, judge=OverlapJudge()))
                }
                for one in (given, changed)
            ]
            for name, steps in moves.items():
                if before[name] is not None and after[name] is not None:
                    steps.append(after[name] - before[name])
    mean = {name: 0.1 * sum(steps) / len(steps) for name, steps in moves.items()}
    assert 0.056 <= mean["invented_specifics"] <= 0.094, mean
    assert mean["faithfulness"] < 0.0
