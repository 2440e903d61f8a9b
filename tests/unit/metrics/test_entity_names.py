"""Spellings of one entity, and names within a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.metrics import folded, names_in, normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Oslo", "OSLO"),
        ("Inc.", "Inc"),
        ("New\u00a0 York", "new york"),
        ("\uff21\uff23\uff2d\uff25", "Acme"),
        ("\u00c5ngstr\u00f6m", "A\u030angstro\u0308m"),
        ("Stra\u00dfe", "STRASSE"),
        ("\u00ab Oslo \u00bb", "**Oslo**"),
        ("`pip`", '"pip"'),
        ("\u300c\u6771\u4eac\u300d", "\u6771\u4eac"),
    ],
)
def test_spellings_of_one_name(one, other) -> None:
    assert normalised(one) == normalised(other) != ""


@pytest.mark.parametrize(("one", "other"), [("C#", "C"), ("C++", "C"), ("40 %", "40"), ("AT&T", "ATT")])
def test_signs_that_carry_meaning_stay(one, other) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        ("Rome", "Jerome in Romeo", False),
        ("Rome", "Jerome in Rome.", True),
        ("Rome", "(ROME)", True),
        ("10", "2010 or 100", False),
        ("10", "at 10:00", True),
        ("C#", "in C# and F#", True),
        ("C#", "in C", False),
        ("U.S.", "the U.S. army", True),
        ("New York", "New\n York", True),
        ("\u5965\u65af\u9646", "\u5b9e\u9a8c\u5ba4\u4f4d\u4e8e\u5965\u65af\u9646\u5e02\u4e2d\u5fc3", True),
        ("\uc624\uc2ac\ub85c", "\uc624\uc2ac\ub85c\uc5d0 \uc788\ub2e4", True),
        ("IBM", "IBM\u306e\u672c\u793e", True),
        ("\u0930\u093e\u092e", "\u0930\u093e\u092e\u0947\u0936\u094d\u0935\u0930", False),
        ("Oslo", "", False),
    ],
)
def test_names_within_a_text(name, text, is_named) -> None:
    names = frozenset({normalised(name)})
    assert names_in(names, folded(text)) == (names if is_named else frozenset())


@given(st.text())
def test_normalising_twice_changes_nothing(text) -> None:
    assert normalised(normalised(text)) == normalised(text)


@given(st.text(), st.text(), st.text())
def test_a_name_set_apart_is_found(before, name, after) -> None:
    kept = normalised(name)
    if kept:
        assert names_in(frozenset({kept}), folded(f"{before} {kept} {after}")) == {kept}
