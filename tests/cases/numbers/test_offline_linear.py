"""The offline judge reads ten times as much context in at most twelve times as long."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING

import pytest

from ragtrace.judges import OverlapJudge
from tests import cpu, make

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.model import RagRecord

SMALL, LARGE = 100_000, 1_000_000
MOST = 12.0
ROUNDS = 12
ANSWER = (
    "The parcel to Oslo weighs 3.4 kg and arrives on 5 March 2024. Maria Berg pays 12 euros for it. "
    "Returns are accepted within 30 days. There are four warehouses, and 20 % of the parcels are late."
)
LAST = "The lighthouse keeper Astrid Vik repaired 37 lamps."  # the end of each text; to support it is to read all
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstv" for vowel in "aeiou"]
SUBJECTS = (
    "parcel",
    "warehouse",
    "customer",
    "driver",
    "invoice",
    "contract",
    "return",
    "delivery",
    "office",
    "manager",
)
VERBS = ("reaches", "leaves", "confirms", "repeats", "changes", "describes", "counts", "follows", "moves", "keeps")


def word(draw: random.Random) -> str:
    return "".join(draw.choices(SYLLABLES, k=draw.randint(2, 4)))


def prose(draw: random.Random) -> str:
    words = " ".join(word(draw) for _ in range(draw.randint(3, 14)))
    end = draw.choice(
        ("", f" on {draw.randint(1, 28)} May {draw.randint(1990, 2025)}", f" for {draw.randint(2, 900)} euros")
    )
    return f"The {draw.choice(SUBJECTS)} {draw.choice(VERBS)} the {word(draw)} {words}{end}. " + draw.choice(
        ("", "", "\n\n")
    )


def unbroken(draw: random.Random) -> str:
    return f"{word(draw)} "


def numbers(draw: random.Random) -> str:
    return f"Item {draw.randint(1, 99_999)} costs {draw.uniform(1, 900):,.2f} euros and weighs {draw.randint(2, 9_000)} g. "


def lines(draw: random.Random) -> str:
    return numbers(draw).removesuffix(". ") + "\n"


def table_rows(draw: random.Random) -> str:
    return f"| the {draw.choice(SUBJECTS)} of {word(draw)} | {draw.randint(1, 99_999)} euros |\n"


def names(draw: random.Random) -> str:
    first, last, town = (word(draw).capitalize() for _ in range(3))
    return f"{first} {last} of {town} met {word(draw).capitalize()} {word(draw).capitalize()}. "


def repeated(_: random.Random) -> str:
    return "It is free. "


def short(draw: random.Random) -> str:
    return f"The {draw.choice(SUBJECTS)} {draw.choice(VERBS)} it with {word(draw)}. "


FORMS: dict[str, Callable[[random.Random], str]] = {
    "prose": prose,
    "one line": unbroken,
    "numbers": numbers,
    "lines": lines,
    "table rows": table_rows,
    "names": names,
    "short sentences": short,
    "one sentence repeated": repeated,
}


def text_of(form: str, size: int) -> str:
    draw, parts, length = random.Random(size), [], 0
    while length < size:
        parts.append(FORMS[form](draw))
        length += len(parts[-1])
    return "".join(parts)[: size - len(LAST) - 1] + " " + LAST


def record(contexts: list[str]) -> RagRecord:
    return make.record(*contexts, query="When?", answer=f"{ANSWER} {LAST}")


def seconds(contexts: list[str]) -> float:
    """Return the process CPU time of one audit."""
    given, start = record(contexts), time.process_time()
    audit = asyncio.run(OverlapJudge().audit(given))
    taken = time.process_time() - start
    assert audit.claims[-1].text == LAST
    assert audit.claims[-1].verdict == "supported"  # it has read the text to its end
    return taken


def refuse_more_than_linear(small: list[str], large: list[str]) -> None:
    """Fail where `large` takes more than `MOST` times as long in every round.

    Reading all of `large` again for each part of it would take a hundred times as long, and so fails every round; a
    busy machine, whose caches a large text feels more than a small one, spoils some of them.
    """
    cpu.leave_out_what_is_older()
    fast, slow = seconds(small), seconds(large)
    for _ in range(ROUNDS):
        fast, slow = min(fast, seconds(small), seconds(small)), min(slow, seconds(large))
        if slow <= MOST * fast:
            return
    raise AssertionError(f"{slow:.3f} s after {fast:.3f} s: {slow / fast:.1f} times as long")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_one_context_of_ten_times_the_size_takes_at_most_twelve_times_as_long(form: str) -> None:
    refuse_more_than_linear([text_of(form, SMALL)], [text_of(form, LARGE)])


@pytest.mark.slow
def test_ten_times_as_many_contexts_take_at_most_twelve_times_as_long() -> None:
    def cut(size: int) -> list[str]:
        text = text_of("prose", size)
        return [text[start : start + 5_000] for start in range(0, size, 5_000)]

    refuse_more_than_linear(cut(SMALL), cut(LARGE))
