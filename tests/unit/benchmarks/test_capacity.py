"""The capacity model beside real workers, and its arithmetic."""

from __future__ import annotations

import pytest

from benchmarks.capacity import Load, Plan, main, plan, rate_of_worker, steps, table
from benchmarks.capacity_measured import CALLS, predicted, run, saturated
from ragtrace.settings import Settings
from tests.e2e.howto import FOLDER, blocks, lines


@pytest.mark.slow
def test_the_model_predicts_the_rate_of_real_workers() -> None:
    # Other processes may take the core between two runs, so the slower of the runs around counts, and the bound is wide.
    before = saturated(80).rate
    rates = {case: run(*case, 1, 48).rate for case in ((200, 4), (50, 4))}
    after = saturated(80).rate
    for (latency_ms, at_once), found in rates.items():
        model = predicted(latency_ms, at_once, 1, 1 / min(before, after))
        assert found > 0.5 * model, (latency_ms, at_once, found, model, before, after)
        # No machine is faster than Little's law; a trace of one call in the place of two would be.
        assert found < 1.2 * at_once / (CALLS * latency_ms / 1e3), (latency_ms, at_once, found)


@pytest.mark.parametrize("at_once", [1, 8, 64])
def test_a_worker_follows_little_s_law_until_its_core_is_busy(at_once: int) -> None:
    assert rate_of_worker(at_once, 2.0, 1e-9) == pytest.approx(at_once / 2.0, rel=1e-3)
    assert rate_of_worker(at_once, 0.0, 0.02) == pytest.approx(50.0)
    rate = rate_of_worker(at_once, 0.4, 0.02)
    assert at_once / (0.4 + at_once * 0.02) <= rate <= min(at_once / 0.42, 50.0) + 1e-9


def test_calls_at_once_are_rate_times_latency() -> None:
    found = plan(Load(traces_per_minute=6_000, sample_rate=0.1, calls_per_trace=3, judge_latency_ms=500))
    assert (found.scored, found.judged) == pytest.approx((10.0, 10.0))
    assert found.judge_concurrency == pytest.approx(10 * 3 * 0.5)
    assert found.judge_rpm == pytest.approx(1_800)


def test_every_demand_grows_with_the_traffic_alone() -> None:
    one, ten = (plan(Load(traces_per_minute=n)) for n in (10_000, 100_000))
    for name in ("scored", "judged", "dollars", "kafka_mb", "store_gb_per_day", "judge_tpm"):
        assert getattr(ten, name) == pytest.approx(10 * getattr(one, name)), name
    assert 8 <= ten.workers / one.workers <= 10  # whole workers


def test_the_way_of_each_rate_ends_without_a_bottleneck() -> None:
    for rate in (10, 1_000, 1_000_000):
        *before, last = [found for _, found in steps(Load(traces_per_minute=rate))]
        assert last.bottleneck == "none"
        assert all(found.bottleneck != "none" for found in before)


def test_the_defaults_are_those_of_the_settings() -> None:
    settings, load = Settings.resolve({}, {}), Load()
    assert (load.sample_rate, load.concurrency) == (settings.sample_rate, settings.concurrency)
    assert (load.judge_rpm, load.judge_tpm) == (settings.judge.rpm, settings.judge.tpm)
    assert load.budget == settings.budget.usd_per_day
    assert load.calls_per_trace == CALLS


def test_the_page_has_the_table_and_the_plan_that_the_model_prints(capsys: pytest.CaptureFixture[str]) -> None:
    page = (FOLDER / "capacity.md").read_text(encoding="utf-8")
    assert table() in page
    command, example = blocks("capacity", "sh", after="## Ask it")
    (shown,) = blocks("capacity", "text", after="## Ask it")
    assert main(command.split("benchmarks.capacity ")[1].split()) == 0
    assert lines(capsys.readouterr().out) == lines(shown)
    assert main(example.split("benchmarks.capacity ")[1].split()) == 0
    said = capsys.readouterr().out
    assert "concurrency 8: workers 37, partitions of the topic 37" in said
    assert "concurrency 64: workers 5, partitions of the topic 5" in said
    assert "**37 workers**, and 37 partitions. With 64 at once, 5 workers do" in page


def test_the_advice_keeps_the_sample_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--traces-per-minute", "60000"]) == 0
    said = capsys.readouterr().out
    assert "a concurrency of 128: " in said
    assert "sampling rate" not in said
    assert "two judges" not in said


def test_a_plan_names_its_limits() -> None:
    found = plan(Load(traces_per_minute=1_000_000, budget=0, judge_rpm=0, judge_tpm=0))
    assert isinstance(found, Plan)
    assert found.limits["budget"] == found.limits["judge quota"] == 0.0
    assert found.bottleneck == "workers"
