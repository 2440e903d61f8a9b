"""Prices: one's own, the list's, and none."""

from __future__ import annotations

import logging
import sys

import pytest

from ragtrace.errors import ConfigError
from ragtrace.scoring import Prices
from ragtrace.scoring.limits import prices


@pytest.fixture(autouse=True)
def nothing_said() -> None:
    prices._unknown.clear()


def test_the_list_knows_the_price_of_openai_models() -> None:
    pytest.importorskip("genai_prices", reason="the extra prices is not installed")
    assert Prices().price_of("openai:gpt-4o-mini", 1_000_000, 1_000) == pytest.approx(0.1506)


def test_a_model_served_at_home_has_no_price_of_someone_elses() -> None:
    assert Prices(base_url="http://10.0.0.7:8000/v1").price_of("gpt-4o-mini", 1_000_000, 0) is None


def test_ones_own_price_goes_first() -> None:
    own = Prices(input_usd_per_million=3.0, output_usd_per_million=0.0)
    assert own.price_of("openai:gpt-4o-mini", 1_000_000, 1_000) == 3.0


def test_an_unknown_price_is_none_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ragtrace"):
        for _ in range(3):
            assert Prices().price_of("nonesuch", 10, 10) is None
    [said] = caplog.messages
    assert "the price of nonesuch is not known: only the token budget holds" in said


def test_without_the_extra_nothing_is_raised_and_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert Prices().price_of("gpt-4o-mini", 10, 10) is None
    assert 'pip install ".[prices]"' in caplog.text


def test_no_tokens_cost_nothing_whatever_the_model() -> None:
    assert Prices().price_of("overlap", 0, 0) == 0.0


@pytest.mark.parametrize("own", [(1.0, None), (None, 1.0), (-1.0, 1.0), (float("nan"), 1.0)])
def test_half_a_price_or_a_negative_one_is_refused(own: tuple[float | None, float | None]) -> None:
    with pytest.raises(ConfigError, match="price_input_usd_per_million"):
        Prices(input_usd_per_million=own[0], output_usd_per_million=own[1])
