from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.judges.openai.negotiate import Dialect, Ladder, json_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', '{"a": 1}'),
        (' \n{"a": {"b": "}"}}\n', '{"a": {"b": "}"}}'),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
        ('He said "so {what}". {"a": "\\"}{"} Bye.', '{"a": "\\"}{"}'),
        ('<think>{"a": 0}</think>{"a": 1}', '{"a": 1}'),
        ('<think>{"a": </think>ok {"a": 1}.', '{"a": 1}'),
        ('first {"a": 1} then {"a": 2}.', '{"a": 2}'),
        ('quoted {"a": 5}, verdict: {"a": 1,', 'quoted {"a": 5}, verdict: {"a": 1,'),
        ("no object", "no object"),
        ("", ""),
        ("}{", "}{"),
    ],
)
def test_json_text(text: str, expected: str) -> None:
    assert json_text(text) == expected


@given(
    st.text(alphabet=st.characters(exclude_characters='{}"\\')),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(), max_size=4),
    st.text(alphabet=st.characters(exclude_characters='{}"\\')),
)
def test_an_object_among_words_is_found(before: str, value: dict[str, Any], after: str) -> None:
    assert json.loads(json_text(f"{before}{json.dumps(value)}{after}")) == value


def test_long_nesting_takes_linear_time() -> None:
    assert json_text("x" + "{" * 1_000_000).startswith("x{")


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
