"""Two judges through a running service: a part is judged by the second, and the combined mean is that of all."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import TracerProvider

import ragtrace
from ragtrace.errors import ConfigError
from ragtrace.queues import Unit
from ragtrace.sampling import is_drawn_again
from ragtrace.service import current
from tests import make
from tests.guards.judge_server import Answer, Request, completion, refusal
from tests.guards.processes import until
from tests.process.observing import SeededIds, points

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.guards.judge_server import JudgeServer

pytestmark = pytest.mark.slow

RUNS = 500
SEED = 2
RATES = {"0": 0.4, "0.8": 0.15, "none": 0.4}
CITATIONS = "citation_f1"
COMBINED = "ragtrace.evaluation.score.combined"


def is_right(number: int) -> bool:
    """The truth: four in five; two of ten wrong answers look right to the offline judge."""
    return number % 5 != 0


def answer_of(number: int) -> str:
    looks_right = is_right(number) or number % 25 == 0
    return f"The laboratory {number} is in Oslo." if looks_right else f"Laboratory {number} breeds purple llamas."


def ask_all(count: int = RUNS) -> list[str]:
    ids = []
    for number in range(count):
        with ragtrace.query("Where is the laboratory?", workflow="labs") as run:
            run.retrieved([{"id": "a", "text": f"The laboratory {number} is in Oslo.", "score": 1.0}])
            run.answered(answer_of(number), model="m")
            ids.append(run.trace_id)
    return ids


def judged(request: Request) -> Answer:
    text = str(request.body["messages"])
    found = re.search(r"aboratory (\d+) (?:is|breeds)", text[text.index("answer") :])
    assert found is not None
    verdict = "supported" if is_right(int(found[1])) else "not_supported"
    return Answer(
        200,
        completion(
            {
                "attempted": True,
                "noncommittal": False,
                "claims": ["It is there."],
                "verdicts": [{"id": 1, "sources": [1], "reason": "", "verdict": verdict}],
                "citations": [],
            }
        ),
    )


def test_the_combined_mean_is_that_of_all_runs(server: JudgeServer, start: Callable[..., object]) -> None:
    server.always = judged
    reader = start(
        first_judge="overlap",
        judge_rates=RATES,
        metrics=["faithfulness", "answer_similarity", "citations"],
        # A 95 % interval misses for 1 draw in 20: one of a seed. `stats/test_two_phase.py` counts misses over many.
        tracer_provider=TracerProvider(id_generator=SeededIds(SEED)),
    )
    ids = ask_all()
    assert ragtrace.flush(60)
    truth = sum(map(is_right, range(RUNS))) / RUNS
    calls = len(server.requests)
    assert 0.1 * RUNS < calls < 0.35 * RUNS

    n = points(reader, "ragtrace.score.n")
    weights = points(reader, "ragtrace.score.w")
    faith = ("gen_ai.evaluation.name", "faithfulness")
    first = [key for key in n if faith in key and ("ragtrace.judge.model", "overlap") in key]
    second = [key for key in n if faith in key and ("ragtrace.judge.model", "openai:m") in key]
    assert sum(n[key] for key in first) == sum(weights[key] for key in first) == RUNS
    assert sum(n[key] for key in second) == calls
    expected = sum(1 / rate_of(number) for number, id_ in enumerate(ids) if is_drawn_again(id_, rate_of(number)))
    assert sum(weights[key] for key in second) == pytest.approx(expected)

    results = points(reader, "ragtrace.evaluations")
    similar = [value for key, value in results.items() if ("gen_ai.evaluation.name", "answer_similarity") in key]
    assert sum(similar) == RUNS  # no judge is asked, so once a run
    cited = {key: v for key, v in results.items() if ("gen_ai.evaluation.name", CITATIONS) in key and v}
    assert sum(cited.values()) == calls  # the offline judge cannot
    assert all(("ragtrace.judge.model", "openai:m") in key for key in cited)
    due = points(reader, "ragtrace.score.due.w")
    assert sum(v for key, v in due.items() if faith in key) == pytest.approx(expected)  # of one judge

    (mean,) = points(reader, f"{COMBINED}.mean").values()
    ((key, low),) = points(reader, f"{COMBINED}.low").items()
    (high,) = points(reader, f"{COMBINED}.high").values()
    assert low <= truth <= high
    assert mean == pytest.approx(truth, abs=0.05)
    assert {
        ("ragtrace.judge.model", "openai:m"),
        ("ragtrace.first_judge.model", "overlap"),
        ("gen_ai.workflow.name", "labs"),
        faith,
    } <= set(key)
    (window_low,) = (v for k, v in points(reader, "ragtrace.evaluation.score.window.low").items() if k in second)
    (window_high,) = (v for k, v in points(reader, "ragtrace.evaluation.score.window.high").items() if k in second)
    assert high - low < window_high - window_low  # of the second judge's part alone


def rate_of(number: int) -> float:
    return 0.15 if answer_of(number).endswith("Oslo.") else 0.4


def test_a_judge_that_is_away_holds_up_its_part_alone(server: JudgeServer, start: Callable[..., object]) -> None:
    server.always = lambda _: refusal(401, "wrong key")
    reader = start(first_judge="overlap", judge_rates="0.2", metrics=["faithfulness"])
    ids = ask_all(60)
    drawn = sum(is_drawn_again(id_, 0.2) for id_ in ids)
    assert 0 < drawn < 60
    until(lambda: current().ledger.pending == drawn, 30)
    assert sum(points(reader, "ragtrace.score.n").values()) == 60 - drawn


def test_after_a_quarter_of_an_hour_the_first_scores_leave_alone(
    server: JudgeServer, start: Callable[..., object]
) -> None:
    server.always = lambda _: refusal(401, "wrong key")
    reader = start(first_judge="overlap", judge_rates="1.0", metrics=["faithfulness"])
    text = "The laboratory 7 is in Oslo."
    record = make.record(text, answer=text, ended=time.time() - 1_000.0)
    current().ledger.offer()
    current().queue.put(Unit(record=record))
    assert ragtrace.flush(20)
    results = points(reader, "ragtrace.evaluations")
    overlap = [
        v
        for key, v in results.items()
        if {("ragtrace.judge.model", "overlap"), ("ragtrace.outcome", "ok")} <= set(key)
    ]
    away = [
        v
        for key, v in results.items()
        if {("ragtrace.judge.model", "openai:m"), ("ragtrace.outcome", "error")} <= set(key)
    ]
    assert sum(overlap) == sum(away) == 1
    assert current().ledger.pending == 0


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"first_judge": "openai:n"}, "take an offline judge, overlap"),
        ({"judge": "overlap", "first_judge": "overlap"}, "are both 'overlap'"),
        ({"first_judge": "overlap", "judge_rates": "0"}, "must be above 0"),
        ({"first_judge": "overlap", "judge_rates": "0.5=0.1"}, "no rate from the score 0 on"),
        ({"first_judge": "overlap", "judge_rates": "0=0.2,2=0.1"}, "a score lies between 0 and 1"),
        ({"first_judge": "overlap", "judge_rates": "0=0.2,0.5"}, "'0.5' is no SCORE=RATE"),
    ],
)
def test_wrong_settings_are_one_line(server: JudgeServer, settings: dict[str, str], line: str) -> None:
    given = {"judge": "openai:m", "judge_base_url": server.url, **settings}
    with pytest.raises(ConfigError, match=re.escape(line)) as error:
        ragtrace.configure(**given)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
