"""`ragtrace plan` over a store and over a labelled file, and what it says where it cannot plan."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

import pytest

from ragtrace.model import JudgeInfo, MetricResult, RagRecord, Score, ScoreKey
from ragtrace.service.rates import second_rates_of
from ragtrace.settings import Settings
from ragtrace.stores.base import Label
from ragtrace.stores.sqlite import SqliteStore
from tests.command_line import ran

if TYPE_CHECKING:
    from pathlib import Path

RUNS, RATE, HOURS = 600, 0.3, 12
PRICES = {"RAGTRACE_PRICE_INPUT_USD_PER_MILLION": "1", "RAGTRACE_PRICE_OUTPUT_USD_PER_MILLION": "4"}


def score(number: int, judge: str, value: float | None, weight: float, at: float, version: str = "v1") -> Score:
    is_paid = judge != "overlap"
    result = MetricResult(
        name="faithfulness",
        state="na" if value is None else "ok",
        value=value,
        reason="abstained" if value is None else None,
        judge=JudgeInfo(model=judge),
        version=f"{judge[:4]}{version}",
        llm_calls=int(is_paid),
        input_tokens=1_000 * is_paid,
        output_tokens=250 * is_paid,
    )
    key = ScoreKey(trace_id=f"{number + 1:032x}", span_id="s", metric="faithfulness", version=result.version)
    return Score(key=key, result=result, weight=weight, scored_at=at)


def made_store(path: Path, *, second: bool = True, labels: int = 0, hours: float = HOURS) -> Path:
    """A store of runs sampled at 1 in 2: the first judge scored all, the second a part."""
    rng, now = random.Random(2), time.time()
    store = SqliteStore(path)
    for number in range(RUNS):
        at = now - 3_600 * hours * (1 - number / RUNS)
        first = None if number % 20 == 0 else rng.betavariate(3, 1.2)
        truth = float(rng.random() < (0.8 if first is None else 0.2 + 0.8 * min(1.0, 1.3 * first)))
        scores = [score(number, "overlap", first, 2.0, at)]
        if second and rng.random() < RATE:
            scores.append(score(number, "openai:m", truth, 2.0 / RATE, at))
        store.emit(RagRecord(id="1", trace_id=f"{number + 1:032x}", span_id="s"), scores)
        if number < labels:
            store.rate([Label(trace_id=f"{number + 1:032x}", value=truth, metric="faithfulness")])
    store.close()
    return path


def planned(*args: object, **env: str) -> dict[str, object]:
    done = ran("plan", *args, "--json", **env)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_store_of_two_judges_is_planned_for_a_budget(tmp_path: Path) -> None:
    store = made_store(tmp_path / "s.sqlite")
    plan = planned(store, "--usd-per-day", 0.3, **PRICES)
    assert plan["first_judge"] == "overlap overv1"
    assert plan["second_judge"] == "openai:m openv1"
    assert plan["calls"] == pytest.approx(150)  # a run costs .002
    assert plan["runs"] == pytest.approx(1_200, rel=0.01)  # 600 in half a day
    assert plan["usd_per_day"] == pytest.approx(0.3)
    assert float(str(plan["width"])) < float(str(plan["uniform_width"]))
    assert 0.7 * RUNS * RATE < float(str(plan["pairs"])) < 1.3 * RUNS * RATE


def test_the_rates_are_a_setting(tmp_path: Path) -> None:
    plan = planned(made_store(tmp_path / "s.sqlite"), "--width", 0.1, **PRICES)
    rates = plan["judge_rates"]
    assert isinstance(rates, dict)
    known = second_rates_of(Settings.resolve({"judge_rates": rates}, environ={}))
    bins = plan["bins"]
    assert isinstance(bins, list)
    for one in bins:
        assert known.of(one["low"]) == pytest.approx(one["rate"], abs=0.001)


def test_the_table_says_what_the_json_says(tmp_path: Path) -> None:
    store = made_store(tmp_path / "s.sqlite")
    plan = planned(store, "--width", 0.1, **PRICES)
    text = ran("plan", store, "--width", 0.1, **PRICES).stdout.decode()
    assert f"{float(str(plan['calls'])):,.0f}" in text
    assert f"{float(str(plan['uniform_width'])):.3f}" in text
    assert "RAGTRACE_FIRST_JUDGE=overlap\n" in text
    assert "RAGTRACE_JUDGE_RATES=0=" in text


def test_labels_of_people_stand_for_a_second_judge(tmp_path: Path) -> None:
    store = made_store(tmp_path / "s.sqlite", second=False, labels=200)
    plan = planned(store, "--width", 0.1)
    assert (plan["second_judge"], plan["pairs"], plan["usd_per_day"]) == ("people", 200, None)


def test_the_latest_version_of_a_judge_counts(tmp_path: Path) -> None:
    path = made_store(tmp_path / "s.sqlite")
    store, later = SqliteStore(path), time.time() + 10
    for number in range(40):
        pair = [score(number, "openai:m", 0.0, 2.0 / RATE, later + number, "v2")]
        store.emit(RagRecord(id="1", trace_id=f"{number + 1:032x}", span_id="s"), pair)
    store.close()
    plan = planned(path, "--width", 0.2, **PRICES)
    assert (plan["second_judge"], plan["pairs"]) == ("openai:m openv2", 40)


def test_a_useless_first_judge_is_named(tmp_path: Path) -> None:
    rng, lines = random.Random(4), []
    for number in range(200):
        said = rng.choice(["The lab is in Oslo.", "The lab breeds llamas in Peru."])
        record = {"id": f"a{number}", "query": "Where?", "answer": said, "contexts": ["The lab is in Oslo."]}
        lines.append(json.dumps({**record, "ok": int(rng.random() < 0.5)}))
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n")
    text = ran("plan", path, "--label", "ok", "--width", 0.2, "--runs-per-day", 5_000).stdout.decode()
    assert "two judges gain next to nothing" in text


def test_a_budget_for_every_run_needs_no_first_judge(tmp_path: Path) -> None:
    given = ("--usd-per-day", 1_000, "--usd-per-run", 0.1)
    text = ran("plan", made_store(tmp_path / "s.sqlite"), *given).stdout.decode()
    assert "no first judge is needed" in text
    assert "gain next to nothing" not in text


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ((), "give either --width W (such as 0.04) or --usd-per-day USD"),
        (("--width", 0.1, "--usd-per-day", 1), "give either --width W"),
        (("--width", -1), "--width -1: write a number above 0"),
        (("--width", 0.001), "gives 0.0"),
        (("--usd-per-day", 1), "no price of the second judge is known; give --usd-per-run USD"),
        (("--usd-per-day", 0.001, "--usd-per-run", 1), "less than two runs at 1 USD each"),
        (("--width", 0.1, "--metric", "mrr"), "no run has a score of mrr by overlap"),
        (("--width", 0.1, "--metric", "nonsense"), "nonsense"),
        (("--width", 0.1, "--label", "ok"), "--label is for a file of records"),
    ],
)
def test_what_cannot_be_planned_is_one_line(tmp_path: Path, args: tuple[object, ...], line: str) -> None:
    done = ran("plan", made_store(tmp_path / "s.sqlite"), *args)
    error = done.stderr.decode()
    assert done.returncode == 2
    assert line in error
    assert error.count("\n") == 1


def test_too_little_data_is_one_line(tmp_path: Path) -> None:
    done = ran("plan", made_store(tmp_path / "s.sqlite", second=False, labels=12), "--width", 0.1)
    assert done.returncode == 2
    assert "12 runs have a score of both overlap overv1 and people, and a plan needs 30" in done.stderr.decode()


def test_a_store_of_minutes_does_not_tell_the_runs_a_day(tmp_path: Path) -> None:
    store = made_store(tmp_path / "s.sqlite", hours=0.1)
    done = ran("plan", store, "--width", 0.1)
    assert (done.returncode, b"give --runs-per-day N" in done.stderr) == (2, True)
    assert planned(store, "--width", 0.1, "--runs-per-day", 1_000)["runs"] == 1_000


@pytest.mark.parametrize(
    ("name", "text", "args", "line"),
    [
        (
            "answers.jsonl",
            '{"id": "1", "query": "?", "answer": "a", "contexts": ["a"]}\n',
            (),
            "give --label FIELD",
        ),
        ("answers.jsonl", "{}\n", ("--label", "ok"), "answers.jsonl"),
        ("nowhere.jsonl", None, ("--label", "ok"), "there is no such file"),
    ],
)
def test_a_file_without_labels_is_one_line(
    tmp_path: Path, name: str, text: str | None, args: tuple[str, ...], line: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    done = ran("plan", path, "--width", 0.1, *args)
    assert done.returncode == 2
    assert line in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
