"""A small world of statements, and a judge that knows its texts and nothing of any fault."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragtrace.judges import ChatReply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUBJECTS = (
    "Amber", "Birch", "Cobalt", "Delta", "Ember", "Falcon", "Garnet", "Harbour", "Iris", "Juniper", "Kestrel", "Lagoon",
)  # fmt: skip
# By attribute: the question, the statement, and the values that it may have.
ATTRIBUTES = {
    "fee": ("what does the {s} plan cost a month", "The {s} plan costs {v} euros a month.", "12 19 24 35"),
    "notice": (
        "how many days of notice does the {s} contract need",
        "The {s} contract needs {v} days of notice.",
        "7 14 30 60",
    ),
    "branch": (
        "when does the {s} branch open",
        "The {s} branch opens at {v} in the morning.",
        "seven eight nine ten",
    ),
    "limit": ("how large is the {s} transfer limit", "The {s} transfer limit is {v} gigabytes.", "5 20 50 80"),
    "seats": ("how many seats does the {s} licence hold", "The {s} licence holds {v} seats.", "3 8 15 40"),
}
EXTRAS = (
    ("The {s} account includes a free visit each spring.", "what does the {s} account include"),
    ("The {s} team won a prize for its {w} service.", "what did the {s} team win for its {w} service"),
)
FILLER = {
    "Green tea is sold in bags of 100 grams.": "how is green tea packed",
    "Whales sing in winter near the northern coast.": "where do whales sing",
    "The old bridge was painted red by volunteers.": "who painted the old bridge",
    "Bread is baked daily before sunrise.": "how often is bread baked",
    "The museum keeps forty clocks from Vienna.": "which clocks does the museum keep",
    "Rain fell on nine of ten June days.": "how much rain fell in June",
    "The orchestra rehearses on Mondays.": "on which weekday does the orchestra rehearse",
}
PADDING = ("See the handbook for more.", "This page was checked in May.", "Ask the desk if in doubt.")
REFUSALS = (
    "I do not know.",
    "The documents do not say that.",
    "I cannot answer this from what I was given.",
)
EVASIONS = ("That depends on many things.", "Thank you for this interesting question.")


def question(subject: str, attributes: Sequence[str]) -> str:
    """Return a question on one attribute, or on several at once."""
    asked = ", and ".join(ATTRIBUTES[name][0].format(s=subject) for name in attributes)
    return f"{asked[0].upper()}{asked[1:]}?"


def statement(subject: str, attribute: str, *, is_true: bool = True) -> str:
    """Return the true statement on an attribute, or one with another value."""
    values = ATTRIBUTES[attribute][2].split()
    place = (SUBJECTS.index(subject) + list(ATTRIBUTES).index(attribute) + (not is_true)) % len(values)
    return ATTRIBUTES[attribute][1].format(s=subject, v=values[place])


def _opposites() -> dict[str, str]:
    pairs = [(subject, name) for subject in SUBJECTS for name in ATTRIBUTES]
    return {statement(*pair, is_true=False): statement(*pair) for pair in pairs}


def _questions() -> dict[str, str]:
    found = dict(FILLER)
    for subject in SUBJECTS:
        for name, (asked, _, _) in ATTRIBUTES.items():
            for is_true in (True, False):
                found[statement(subject, name, is_true=is_true)] = asked.format(s=subject)
        for said, asked in EXTRAS:
            for word in ("winter", "night"):
                found[said.format(s=subject, w=word)] = asked.format(s=subject, w=word)
    return found


OPPOSITES = _opposites()
QUESTIONS = _questions()


@dataclass
class WorldJudge:
    """A `ragtrace.judges.llm.chat.ChatModel` that reads the data of each prompt as a careful person would.

    It knows which statements a question asks for, which statement contradicts which, and which question a sentence
    answers. What the application did it sees from the texts alone.

    Attributes:
        required: the statements that each question asks for.
        asked: the name of each prompt, in order.
    """

    required: Mapping[str, tuple[str, ...]]
    name: str = "world"
    asked: list[str] = field(default_factory=list)

    async def complete(self, *, user: str, schema_name: str, **_: Any) -> ChatReply:
        return ChatReply(text=json.dumps(self.reply(schema_name, user)), input_tokens=100, output_tokens=20)

    def reply(self, prompt: str, user: str) -> dict[str, Any]:
        """Return the reply to a prompt by its name."""
        self.asked.append(prompt)
        data = json.loads(user.split("<data-", 1)[1].split("\n")[1])
        replies: dict[str, Any] = {"audit": self._audit, "grades": self._grades, "questions": self._written}
        found: dict[str, Any] = replies[prompt](data)
        return found

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""

    def _audit(self, data: Mapping[str, Any]) -> dict[str, Any]:
        contexts, answer = data["contexts"], data["answer"].strip()
        needed = self.required[data["query"]]
        is_attempt = answer not in REFUSALS and bool(answer)
        claims = sentences(answer) if is_attempt and answer not in EVASIONS else []
        return {
            "sufficient": all(any(one in text for text in contexts.values()) for one in needed),
            "attempted": is_attempt,
            "noncommittal": answer in EVASIONS or not is_attempt,
            "claims": claims,
            "verdicts": [{"id": n, **_verdict(claim, contexts)} for n, claim in enumerate(claims, start=1)],
            "citations": [],
        }

    def _grades(self, data: Mapping[str, Any]) -> dict[str, Any]:
        needed = self.required[data["query"]]
        subject = next(name for name in SUBJECTS if name in data["query"])
        return {
            "grades": [
                {"id": int(number), "grade": _grade(text, needed, subject)}
                for number, text in data["passages"].items()
            ]
        }

    def _written(self, data: Mapping[str, Any]) -> dict[str, Any]:
        answer = data["answer"].strip()
        is_empty = answer in {*REFUSALS, *EVASIONS}
        found = ["what can be said"] if is_empty else [QUESTIONS[one] for one in sentences(answer)]
        return {"questions": [{"question": f"{one}?", "noncommittal": is_empty} for one in found]}


class RewordingJudge(WorldJudge):
    """The same judge, whose questions share no word with the one that was asked, as those of a model often do."""

    def _written(self, data: Mapping[str, Any]) -> dict[str, Any]:
        rows = super()._written(data)["questions"]
        return {"questions": [{**row, "question": "Which fact has somebody stated here?"} for row in rows]}


@dataclass
class ErringJudge(WorldJudge):
    """The same judge with mistakes: of sufficiency, of single claims, and of grades by one.

    Attributes:
        sufficiency: share of wrong words on sufficiency; .07 is that of the language model in the paper.
        claims: share of claims called not supported, or supported, against the texts.
        grades: share of grades that are one too high or too low.
    """

    sufficiency: float = 0.07
    claims: float = 0.03
    grades: float = 0.1
    rng: random.Random = field(default_factory=lambda: random.Random(15))

    def reply(self, prompt: str, user: str) -> dict[str, Any]:
        """Return the reply to a prompt, with mistakes at random."""
        found = super().reply(prompt, user)
        if prompt == "audit":
            found["sufficient"] ^= self.rng.random() < self.sufficiency
            for row in found["verdicts"]:
                if self.rng.random() < self.claims:
                    row["verdict"] = "supported" if row["verdict"] == "not_supported" else "not_supported"
        for row in found.get("grades", ()):
            if self.rng.random() < self.grades:
                row["grade"] = min(5, max(1, row["grade"] + self.rng.choice((-1, 1))))
        return found


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [one for one in re.split(r"(?<=[.!?])\s+", text.strip()) if one]


def _verdict(claim: str, contexts: Mapping[str, str]) -> dict[str, Any]:
    holding = [int(number) for number, text in contexts.items() if claim in text]
    if holding:
        return {"verdict": "supported", "sources": holding, "reason": ""}
    other = OPPOSITES.get(claim)
    against = [int(number) for number, text in contexts.items() if other is not None and other in text]
    word = "contradicted" if against else "not_supported"
    return {"verdict": word, "sources": against, "reason": "it stands otherwise" if against else "it is nowhere"}


def _grade(text: str, needed: Sequence[str], subject: str) -> int:
    held = sum(one in text for one in needed)
    if held:
        return 5 if held == len(needed) else 4
    return 3 if subject in text else 1
