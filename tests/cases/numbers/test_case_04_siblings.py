"""A citation mark of any form changes no verdict; content that looks like a mark is judged."""

from __future__ import annotations

import pytest

from tests.cases.numbers.judging import judged

QUERY = "What should I know?"
PUMP = (
    "The pump was introduced in May 2016 by Northfall in Bergen. It moves 55 litres a minute, has three filters and a "
    "guarantee of 18 months. Spare parts are delivered within 10 working days."
)
CONTEXTS = (PUMP, "The workshop is run by Ingrid Moe.")
FIRST, SECOND = "The pump moves 55 litres a minute", "Spare parts are delivered within 10 working days"
POSITIONS = {
    "before the stop": "{a} {x}. {b} {x}.",
    "after the stop": "{a}.{x} {b}.{x}",
    "after the stop and a blank": "{a}. {x} {b}. {x}",
}
MARKS = (
    "[1; 2]", "[1,2,3]", "[1]-[3]", "(1–3)", "[1] [2]", "[1], [2]", "[#1]", "(#1)", "[A1]", "[1a]", "(i)", "[*]",
    "[^note]", "[^1^]", "<sup>1,2</sup>", "<sup>1</sup><sup>2</sup>", "⁽¹⁾", "⁴", "（1）", "‡", "①",
    "(Doc. 2)", "[Doc-1]", "[DOC_2]", "[source_1]", "[Source #2]", "(Sources: 1, 2)", "[Sources: 1 and 2]",
    "(passages 1 and 2)", "(see document 2)", "(see [1])", "[ref:2]", "[note 3]", "[footnote 2]",
    "[Chunk 1]", "[chunk-3]", "[Excerpt 1]", "[Snippet 2]", "[Result 3]", "[web:1]", "[node_12]", "[ID: 7]",
    "[p. 3]", "(p. 14)", "(pp. 3-5)", "[page 12]", "[1, p. 12]", "[§2]", "[Section 4.1]",
    "[1†L3-L5]", "【2†handbook】", "【3:1†source】",
    "\\citep{a}", "\\citet{smith2019}", "[@smith2019]", "[Smith et al., 2019]", "(Smith and Lee, 2021)",
    "(Smith et al. 2019, p. 12)", "[cite:1,2]", "{{cite:1}}", "[[doc1]](https://example.org/doc1)",
    "[¹](https://example.org/a)", "[2](<https://example.org/b>)", "([source](https://example.org/c))",
    "[kb/returns.md]", "(returns_policy.docx)", "[FAQ.html#parts]", "[manual_v2.pdf, page 7]",
    '<source id="1"/>', "<source>1</source>", '<citation id="2"/>', "[^1][^3]",
)  # fmt: skip

# Content in brackets, in a link's words or beside a mark, which no context has: answer, the part that is invented.
INVENTED = (
    ("The pump moves little water (9.9 litres a minute).", "9.9"),
    ("Spare parts are delivered quickly (up to 45 working days).", "45"),
    ("The pump was introduced in May (and sold 500 times).", "500"),
    ("The pump has three filters [and 7 valves].", "7"),
    ("The pump was introduced by Northfall (based in Stockholm).", "Stockholm"),
    ("The guarantee is long (36 months).", "36"),
    ("The pump costs €89 [1].", "89"),
    ("Spare parts are delivered within 45 working days (1).", "45"),
    ("The pump was introduced in 2021 [2].", "2021"),
    ("The pump was introduced by Northfall (in 2021).", "2021"),
    ("The pump comes with [12 filters](https://example.org/a).", "12"),
    ("The pump moves **9.9 litres** a minute.", "9.9"),
    ("The workshop is run by *Tomas Hagen* [2].", "Hagen"),
    ("The pump weighs 31 kg【1】.", "31"),
    ("The guarantee lasts 48 months¹.", "48"),
)
# Content in brackets that the contexts have.
CONTENT = (
    "The pump moves water quickly (55 litres a minute).",
    "Spare parts are delivered quickly (within 10 working days).",
    "The pump was introduced by Northfall (in Bergen).",
    "The pump has a guarantee (18 months) [1].",
    "The workshop is run by Ingrid Moe (see [2]).",
    "The pump was introduced in 2016 (by Northfall).",
)


@pytest.mark.parametrize("position", POSITIONS)
def test_a_mark_costs_a_supported_answer_nothing(position: str) -> None:
    answers = [POSITIONS[position].format(a=FIRST, b=SECOND, x=mark) for mark in MARKS]
    found = judged([(QUERY, CONTEXTS, answer) for answer in answers])
    wrong = {
        mark: (one.faithfulness, one.specifics)
        for mark, one in zip(MARKS, found, strict=True)
        if not one.is_supported or one.invented != 0.0
    }
    assert wrong == {}


@pytest.mark.parametrize("position", POSITIONS)
def test_a_mark_is_no_claim_and_takes_none_away(position: str) -> None:
    answers = [POSITIONS[position].format(a=FIRST, b=SECOND, x=mark) for mark in MARKS]
    found = judged([(QUERY, CONTEXTS, answer) for answer in answers])
    wrong = {
        mark: [claim["text"] for claim in one.claims]
        for mark, one in zip(MARKS, found, strict=True)
        if not 1 <= len(one.claims) <= 2  # two sentences without a blank may be read as one
    }
    assert wrong == {}


def test_a_mark_hides_no_unsupported_answer() -> None:
    answers = [f"The pump moves 80 litres a minute {mark}. Dogs are welcome on Sundays {mark}." for mark in MARKS]
    found = judged([(QUERY, CONTEXTS, answer) for answer in answers])
    wrong = [mark for mark, one in zip(MARKS, found, strict=True) if not one.is_unsupported or one.invented != 1.0]
    assert wrong == []


def test_content_in_brackets_is_judged() -> None:
    found = judged([(QUERY, CONTEXTS, answer) for answer, _ in INVENTED])
    missed = [
        (answer, one.specifics)
        for (answer, part), one in zip(INVENTED, found, strict=True)
        if not any(part in it for it in one.specifics)
    ]
    assert missed == []


def test_content_in_brackets_that_the_contexts_have_is_supported() -> None:
    found = judged([(QUERY, CONTEXTS, answer) for answer in CONTENT])
    wrong = {
        answer: (one.faithfulness, one.specifics)
        for answer, one in zip(CONTENT, found, strict=True)
        if not one.is_supported or one.invented != 0.0
    }
    assert wrong == {}
