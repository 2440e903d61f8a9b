"""The offline judge's time grows with the size of a text, not with its square."""

from __future__ import annotations

import asyncio

import pytest

from ragtrace.judges import OverlapJudge
from tests import cpu, make

FACT = "The lab costs 12 euros in Oslo since March 2024."
FORMS = {
    "blanks": " ",
    "open brackets": "[",
    "image links": "![a](",
    "unclosed markers": "[1, ",
    "full stops": ".",
    "slashes": "/",
    "numbers with commas": "1,",
    "numbers with blanks": "1 ",
    "negative numbers": "-1 ",
    "dates without line ends": "2024-03-05 ",
    "backticks": "` ",
    "emoji": "\U0001f600",
    "names": "Oslo ",
    "acronyms": "WHO ",
    "long names": "World Health Organization ",
    "times": "9:30 ",
    "ordinals": "the 7th floor ",
    "members of a list": "a, b and ",
    "weekdays": "Mon, ",
    "prices": "5 euros and 7 dollars, ",
    "fractions": "one third of ",
    "marks in round brackets": "(1, ",
    "authors": "(Smith, 2019; ",
    "raised numbers": "¹,",
    "domains": "a.b/",
    "addresses": "x@",
    "links": "http://!",
    "inline code": "`a` ",
    "table rows": "<tr>",
    "words of a list": "- a\n",
    "short claims": "It is not free. ",
}


def seconds(answer: str, context: str) -> float:
    record = make.record(context, answer=answer)
    return cpu.seconds(lambda: asyncio.run(OverlapJudge().audit(record)), rounds=2)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_text_of_four_times_the_size_takes_far_less_than_its_square(form: str) -> None:
    def both(n: int) -> float:
        text = FORMS[form] * (n // len(FORMS[form]))
        return seconds(f"{text} Oslo.", FACT) + seconds(FACT, f"{text} {FACT}")

    both(100)  # compiles the patterns
    small, large = both(6_000), both(24_000)
    assert large < 9 * max(small, 0.002)
