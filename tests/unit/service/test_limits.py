"""The limiter that settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ragtrace.errors import ConfigError
from ragtrace.judges import AttemptResult, JudgeRequest
from ragtrace.service import build_limiter, build_prices, is_limited
from ragtrace.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


async def test_processes_with_one_spool_share_the_file_beside_it(tmp_path: Path) -> None:
    settings = Settings.resolve({"spool": str(tmp_path / "spool.sqlite"), "budget_usd_per_day": 0.0}, {})
    one, other = build_limiter(settings), build_limiter(settings)
    (await one.acquire(JudgeRequest(model="m", request_bytes=10))).release(
        AttemptResult(fate="answered", input_tokens=5)
    )
    assert (tmp_path / "spool.sqlite.limits").exists()
    assert other.reading().budget_tokens == 20_000_000 - 5
    assert other.reading().budget_usd is None
    one.close()
    other.close()


def test_limits_are_for_what_may_cost_something() -> None:
    paid = (
        {"judge": "openai:m"},
        {"judge": "overlap,openai:m"},
        {"judge": "somebodys:m"},
        {"embedder": "openai:e"},
    )
    offline = ({}, {"judge": " overlap "}, {"embedder": "local"}, {"embedder": "local:/opt/openai/vectors"})
    assert [given for given in (*paid, *offline) if is_limited(Settings.resolve(given, {}))] == [*paid]


def test_every_limit_can_be_turned_off_by_a_variable() -> None:
    names = ("JUDGE_RPM", "JUDGE_TPM", "BUDGET_USD_PER_DAY", "BUDGET_TOKENS_PER_DAY")
    settings = Settings.resolve({}, {f"RAGTRACE_{name}": "0" for name in names})
    reading = build_limiter(settings).reading()
    assert (reading.budget_usd, reading.budget_tokens) == (None, None)


def test_prices_of_ones_own_come_from_variables() -> None:
    env = {"RAGTRACE_PRICE_INPUT_USD_PER_MILLION": "2", "RAGTRACE_PRICE_OUTPUT_USD_PER_MILLION": "8.5"}
    assert build_prices(Settings.resolve({}, env)).price_of("any", 1_000_000, 1_000_000) == 10.5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"judge_rpm": -1}, "at least 0"),
        ({"budget_usd_per_day": -0.5}, "at least 0"),
        ({"price_input_usd_per_million": -1.0}, "at least 0"),
        ({"concurrency": 0}, "above 0"),
        ({"budget_usd_per_day": float("nan")}, "finite"),
    ],
)
def test_a_limit_below_zero_is_one_clear_line(given: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Settings.resolve(given, {})


def test_one_price_without_the_other_is_a_clear_line() -> None:
    with pytest.raises(ConfigError, match="or neither"):
        build_limiter(Settings.resolve({"price_input_usd_per_million": 1.0}, {}))


def test_a_password_in_the_base_url_is_no_part_of_the_hosts_name() -> None:
    settings = Settings.resolve({"judge_base_url": "http://user:secret@judge:8000/v1"}, {})
    assert build_limiter(settings).host == "judge:8000"
