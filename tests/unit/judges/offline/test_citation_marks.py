"""The offline judge and citation marks: none costs a supported answer, and what brackets say is judged."""

# ruff: noqa: RUF001

from __future__ import annotations

import pytest

from ragtrace.judges.offline.marks import without_marks
from ragtrace.judges.offline.placed import Placed
from tests.unit.judges.offline.scoring import results

CONTEXTS = (
    "The heater was launched in March 2019 by Brightline in Oslo. It weighs 3.4 kg, and has a warranty of 24 months.",
    "Returns are accepted within 30 days. The stay may last 45 days.",
)
SAID = ("The heater weighs 3.4 kg", "Returns are accepted within 30 days")
PLACES = ("{a} {x}. {b} {x}.", "{a}.{x} {b}.{x}", "{a}. {x} {b}. {x}")
MARKS = (
    # Numbers
    "[7]", "[7][8]", "[7, 8]", "[7; 8]", "[7-9]", "[7] [8]", "[7], [8]", "[7 and 8]", "[7|8]", "[#7]", "(7)", "(7, 8)",
    "(7; 8)", "(7 and 8)", "(7)(8)", "(#7)", "#7", "#12", "^7", "^7,8", "⁷", "⁷⁸", "{7}", "{7,8}", "<7>", "<7,8>", "【7】",
    "〔7〕", "［7］",
    # Labels
    "[doc7]", "[doc_7]", "[Doc 7; Doc 8]", "[chunk-7]", "[S7, S8]", "[1a]", "[b]", "[ii]", "[id:7f3a]", "[@smith2021]",
    "[@smith2021; @doe2022]", "(id: 7f3a)", "(doc 7)", "(Document 7, page 9)", "(documents 7 and 9)", "(Sources: 7, 8)",
    "(via document 7)", "(according to passage 8)", "(see [7], [8])", "(cf. [7])", "[Source 7](https://x.example/a)",
    # Places in files
    "[p. 14]", "(p. 14)", "(pp. 13-15)", "[lines 10-20]", "[L10-L20]", "(handbook.pdf, p. 14)", "[faq.md:7]",
    "[Handbook, section 7]", "(Handbook, p. 14)", "[Handbook §14]", "(docs/faq.md#L7)",
    # Authors
    "(Smith, 2021)", "(Smith et al., 2021)", "(Smith & Doe, 2021)", "[Smith 2021]", "[Smith et al., 2021]",
    # Notations of models and of markup
    "【7†source】", "【7:0†handbook.pdf】", "[7†L3-L5]", "[cite:7,8]", "[cite: 7]", "[cite_start]", "[citation:7]", ":cite[doc-7]",
    "{{cite:7}}", "\\cite{smith2021}", "\\citep[p. 7]{doe2021}", "[7]{.cite}", "[^7]", "[^7^]", "[^note]", "<sup>7,8</sup>",
    '<source id="7"/>', "<cite>7</cite>", "<doc7>", "[7](#7)", "[[7]](#7)", "[7](https://x.example/a)", "[7](handbook.pdf)",
    '<a href="#7">7</a>', "**[7]**", "`[7]`", "[[7]]",
)  # fmt: skip


@pytest.mark.parametrize("mark", MARKS)
async def test_a_mark_costs_nothing(mark: str) -> None:
    bare = await results(f"{SAID[0]}. {SAID[1]}.", *CONTEXTS)
    for place in PLACES:
        answer = place.format(a=SAID[0], b=SAID[1], x=mark)
        found = await results(answer, *CONTEXTS, metrics=("faithfulness", "invented_specifics"))
        assert found["faithfulness"].value == pytest.approx(bare["faithfulness"].value, abs=0.1), answer
        assert found["invented_specifics"].value == 0.0, (answer, found["invented_specifics"].details)


@pytest.mark.parametrize(
    ("answer", "invented"),
    [
        ("The heater is light (3.4 kg).", []),
        ("The heater is light (3.6 kg).", ["3.6 kilogram"]),
        ("You may stay longer (up to 45 days).", []),
        ("You may stay longer (up to 60 days).", ["60 day"]),
        ("The heater was launched long ago (2019).", []),
        ("The heater was launched long ago (2017).", ["2017"]),
        ("The heater was launched in spring (March 2018).", ["2018"]),
        ("The heater is ranked #6.", ["6"]),
        ("The heater holds (files 70 MB or less) anything.", ["70 megabyte"]),
    ],
)
async def test_what_brackets_say_is_judged(answer: str, invented: list[str]) -> None:
    found = (await results(answer, *CONTEXTS, metrics=("invented_specifics",)))["invented_specifics"]
    assert found.details["invented"] == invented


@pytest.mark.parametrize(
    "text",
    [
        "It has twelve (12) rooms.",
        "It won (2-1).",
        "The area is 10 m² and 10^6 bytes.",
        "It leaves from Platform #9.",
        "Version (v2) costs (€30) in section (a).",
        "Set {x} to 5.",
        "It opens at (about 9).",
        "The house [sic] is old [as of today].",
    ],
)
def test_other_brackets_and_signs_stay(text: str) -> None:
    assert without_marks(Placed.whole(text)).text == text
