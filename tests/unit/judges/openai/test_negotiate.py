from __future__ import annotations

from ragtrace.judges.openai.negotiate import Dialect, Ladder


def test_a_late_refusal_does_not_step_twice() -> None:
    ladder = Ladder()
    first = ladder.current
    assert ladder.adapt(first, "response_format")
    assert ladder.adapt(first, "response_format")  # a call that was under way with the first rung
    assert ladder.current.rung == "schema"


def test_a_settled_ladder_ignores_bare_refusals() -> None:
    ladder = Ladder()
    ladder.settle(ladder.current)
    assert not ladder.adapt(ladder.current, "boom")
    ladder.reset()
    assert ladder.adapt(ladder.current, "json_schema is not supported any more")
    assert ladder.current.rung == "schema"


def test_the_lowest_rung_has_none_below() -> None:
    assert Dialect(rung="text").down() is None
    assert Dialect(rung="text").after("response_format") is None


def test_a_parameter_that_is_refused_twice_is_no_news() -> None:
    dialect = Dialect().after("seed is not allowed")
    assert dialect is not None
    assert dialect.without == {"seed"}
    assert dialect.after("seed is not allowed") is None
    renamed = Dialect().after("max_tokens")
    assert renamed is not None
    assert renamed.after("max_completion_tokens") is None


def test_a_late_success_of_an_older_dialect_unsettles_nothing():
    ladder = Ladder()
    older = ladder.current
    assert ladder.adapt(older, "response_format is not supported", "response_format")
    ladder.settle(ladder.current)
    ladder.settle(older)
    assert ladder.is_settled
