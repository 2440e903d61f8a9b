"""A text of any kind in any field takes the offline judge at most a second, and stops no other thread."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from ragtrace.judges import OverlapEmbedder, OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import AnswerPart, Message
from ragtrace.text import MAX_TEXT_CHARS
from tests import cpu, make

if TYPE_CHECKING:
    from ragtrace.model import RagRecord

FACT = "The lab costs 12 euros in Oslo since March 2024, and it has 9 rooms."
PARTS = (
    *" \t\n\\\"'1ab[(<{*_`|#-.,~=:/é一\u0301\u200b\ue000\U0001f600",
    "a ", "Ab ", "a. ", "A b. ", "1 ", "1,", "1.", "10", "[1] ", "\n- ", "- a\n", "| a ", "|-", "\n|a", "&amp;", "http://",
    "http://a.b ", "a@", "a@b.c ", "<td>", "<tr>", "</tr>", "<tr><td>a</td></tr>", "<code>", "```\n", "`a` ", "9 weeks ",
    "[a](", "(1, ", "WHO ", "AbCd ", "World Health Organization ", "one third of ", "a, b and ", "Oslo is in ", "\r\n",
    "It is not free. ", "Oslo costs 12 euros. ", '"a b c" ', "5 euros and 7 dollars, ", "2024-03-05 ", "9:30 ", "1/2/2024 ",
    "The lab costs 12 euros in Oslo. It has no room.\n", '{"a":', "[[", "sources:\n- a\n\n",
    "the lab, the lab and the lab has 9 rooms, ",
)  # fmt: skip
BESIDE_OTHERS_S = (
    2.0  # each takes at most 1 s by itself; other tests run beside this one, and all metrics are asked
)
FIELDS = ("query", "answer", "context", "contexts", "reference", "citation", "tool")


def _distinct(n: int, seed: int = 0) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=7)) for _ in range(n // 8))


def _texts() -> dict[str, str]:
    pumped = {part: (part * (MAX_TEXT_CHARS // len(part) + 1))[:MAX_TEXT_CHARS] for part in PARTS}
    words = _distinct(MAX_TEXT_CHARS).split()
    return pumped | {
        "distinct words": " ".join(words),
        "distinct names": " ".join(map(str.capitalize, words)),
        "distinct sentences": "".join(f"The lab costs {i} euros in {word}. " for i, word in enumerate(words))[
            :MAX_TEXT_CHARS
        ],
        "a table": "| lab | price |\n|---|---|\n" + "| Oslo | 12 |\n" * (MAX_TEXT_CHARS // 14),
    }


TEXTS = _texts()


def record_with(field: str, text: str) -> RagRecord:
    """Return a record with a long text in one field."""
    facts = {"query": "What does the lab cost?", "answer": FACT, "reference": FACT}
    contexts = [FACT, "It is new."]
    if field in facts:
        facts[field] = text
    elif field == "context":
        contexts.append(text)
    elif field == "contexts":
        contexts += [text[at : at + 8_192] for at in range(0, len(text), 8_192)]
    parts = (
        AnswerPart(
            text=text if field == "citation" else FACT, citations=("p1", text if field == "citation" else "p2")
        ),
    )
    history = (Message(role="tool", content=text),) if field == "tool" else ()
    return make.record(*contexts, history=history, answer_parts=parts, **facts)


def judged(record: RagRecord) -> None:
    """Score a record by the offline judge with every metric."""
    ctx = EvalContext(record, judge=OverlapJudge(), embedder=OverlapEmbedder())
    asyncio.run(evaluate(select(["all"]), ctx))


def seconds(record: RagRecord) -> float:
    """Return the CPU of one evaluation."""
    return cpu.seconds(lambda: judged(record), rounds=1)


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
def test_a_long_text_of_any_kind_takes_at_most_a_second(field: str) -> None:
    judged(record_with("answer", FACT))
    records = {name: record_with(field, text) for name, text in TEXTS.items()}
    slow = {name: taken for name, record in records.items() if (taken := seconds(record)) > BESIDE_OTHERS_S}

    most_s = BESIDE_OTHERS_S * cpu.slower()
    assert not {name: again for name in slow if (again := seconds(records[name])) > most_s}


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a. ", "1 ", "It is not free. ", "[1] ", "AbCd "])
def test_a_long_answer_over_a_long_context_takes_at_most_two_seconds(part: str) -> None:
    judged(record_with("answer", FACT))

    assert seconds(make.record(FACT, TEXTS[part], answer=TEXTS[part], reference=FACT)) < 2.0 * cpu.slower()


def test_an_answer_beyond_its_bound_is_truncated() -> None:
    text = " ".join(["The lab costs 12 euros in Oslo"] * 2_000)
    audit = asyncio.run(OverlapJudge().audit(make.record(FACT, answer=text)))

    assert audit.truncated
    assert not asyncio.run(OverlapJudge().audit(make.record(FACT, answer=FACT))).truncated
