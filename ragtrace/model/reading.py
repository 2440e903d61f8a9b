"""Readings: places of question and answers, sources of evidence, and signs of what is unsure, of one run."""

from __future__ import annotations

import json
from typing import Final, Literal, get_args

from msgspec import Struct

How = Literal["call", "metadata", "decorator", "handler", "settings", "framework", "structure", "guess"]
"""How a fact of a run is known, the surest first.

- call: the application said it in its code, as `ragtrace.query` or `mark_retrieved` does.
- metadata: the request said it.
- decorator, handler, settings: a declaration says where it stands, see `ragtrace.capture.declared`.
- framework: LangChain or LlamaIndex says so of a typed value or a field of its own.
- structure: it is the only value of its kind, such as a tool's result or the last message of a person.
- guess: none of these; a sign says so.
"""

SignName = Literal[
    "question_guessed",
    "answer_guessed",
    "several_answers",
    "evidence_unread",
    "own_words_left_out",
    "tool_text_guessed",
    "tool_unused",
    "follows_answer",
    "declared_missing",
]

Kind = Literal["search", "tool", "state", "marked"]
"""What brings evidence: a search (passages in an order), a tool or a state (texts), a mark of the application's."""

SIGNS: dict[SignName, str] = {
    "question_guessed": "the question stands under a name that says nothing of it",
    "answer_guessed": "no field and no message holds the answer",
    "several_answers": "branches answered side by side, and none of them is the answer",
    "evidence_unread": "a prompt shows text that came from no source that is known",
    "own_words_left_out": "sentences of a tool's text are left out, since a model said them first",
    "tool_text_guessed": "a tool's plain text counts as evidence, and nobody declared it",
    "tool_unused": "nothing that a model said later has a word of a tool's text",
    "follows_answer": "it was given the answer of a run before it, and asked nothing new",
    "declared_missing": "a declared place holds nothing",
}
"""What a sign says of its run."""

ANY_SIGN: Final = "any"
"""Stands for every run that counts as signed, see `Reading.is_signed`."""

IN_PROMPT: Final = "prompt"
"""What a sign is about where a prompt shows text of no source that is known."""

_OF_ROOTS = frozenset({"question_guessed", "follows_answer"})  # of a call that may be no run

assert tuple(SIGNS) == get_args(SignName)  # noqa: S101 - the two say the same


class Found(Struct, frozen=True, omit_defaults=True):
    """Place of a question or an answer, and how it is known.

    Attributes:
        place: such as ``input.question`` or ``output.messages[-1]``; "" where it was told and not read.
        how: see `How`.
    """

    place: str = ""
    how: How = "structure"


class Source(Struct, frozen=True, omit_defaults=True):
    """Something that brought evidence, or whose texts were left out.

    Attributes:
        name: of the retriever or the tool.
        kind: see `Kind`.
        passages: how many it brought.
        chosen: how many of these a later step chose; all of them where nothing chose.
        shown: how many of them stand in the prompts of the answer; None where no prompt was seen.
        left_out: how many of its texts are no evidence.
        why: why these were left out; of a declaration that leaves nothing out, why not.
        how: see `How`.
    """

    name: str
    kind: Kind
    passages: int = 0
    chosen: int = 0
    shown: int | None = None
    left_out: int = 0
    why: str = ""
    how: How = "structure"


class Sign(Struct, frozen=True, omit_defaults=True):
    """Something that capture is unsure of.

    Attributes:
        name: see `SIGNS`.
        about: the place or the source that it is about.
        text: the words that it is about, cut; "" without content.
        declare: the argument that settles it, ready to copy; "" where none does.
    """

    name: SignName
    about: str = ""
    text: str = ""
    declare: str = ""


class Reading(Struct, frozen=True, omit_defaults=True):
    """Places, sources and signs that capture read of a run.

    Attributes:
        question: where it was read; None where the run has none.
        answers: where the answer was read; several of branches side by side, none where there is no answer.
        sources: what brought evidence, in the order in which it was met.
        signs: what is unsure.
        roots: where an application has several roots, the name of this run's and then those of the others.
    """

    question: Found | None = None
    answers: tuple[Found, ...] = ()
    sources: tuple[Source, ...] = ()
    signs: tuple[Sign, ...] = ()
    roots: tuple[str, ...] = ()

    @property
    def is_signed(self) -> bool:
        """Whether the run counts as signed: a guessed text of a tool makes it so where nothing else was found.

        Example:
            >>> guessed = Sign("tool_text_guessed", "search")
            >>> Reading(signs=(guessed,), sources=(Source("search", "tool", 1, how="guess"),)).is_signed
            True
            >>> found = Source("faq", "search", 3)
            >>> Reading(signs=(guessed,), sources=(found,)).is_signed
            False
        """
        if any(sign.name != "tool_text_guessed" for sign in self.signs):
            return True
        return bool(self.signs) and not any(one.passages for one in self.sources if one.how != "guess")

    @property
    def counted_as(self) -> frozenset[str]:
        """Names that the run counts under: those of its signs, and `ANY_SIGN` where it counts as signed.

        Example:
            >>> sorted(Reading(signs=(Sign("several_answers"),)).counted_as)
            ['any', 'several_answers']
        """
        names = {sign.name for sign in self.signs}
        return frozenset((*names, ANY_SIGN) if self.is_signed else names)


def signed_text(signed: int, runs: int) -> str:
    """Return how many of some runs carry a sign, as it stands beside their mean.

    Example:
        >>> signed_text(12, 1240), signed_text(1, 1)
        ('12 of 1,240 runs carry a sign', '1 of 1 run carries a sign')
    """
    return f"{signed:,d} of {runs:,d} run{'s' * (runs != 1)} {'carries' if signed == 1 else 'carry'} a sign"


def preview(reading: Reading) -> list[str]:
    r"""Return what was read of a run in at most three lines: where, which evidence, and what is unsure.

    Example:
        >>> search = Source("faq", "search", passages=5, chosen=3, shown=3)
        >>> found = Found("state.messages[-1]"), (Found("output.messages[-1]"),)
        >>> print(*preview(Reading(*found, (search,))), sep="\n")
        question from state.messages[-1]; answer from output.messages[-1]
        evidence: 5 passages of retriever `faq` (3 chosen, 3 in the prompt)
        >>> follows = Sign("follows_answer", declare="follows=False")
        >>> told = preview(Reading(*found, signs=(follows,), roots=("Check", "Rag")))
        >>> told[0].partition("; root ")[2], told[2].partition("no run: ")[2]
        ('`Check`', 'roots=["Rag"]')
    """
    answers = " and ".join(map(_told, reading.answers)) or "none"
    question = "none" if reading.question is None else _told(reading.question)
    root = f"; root `{reading.roots[0]}`" if reading.roots else ""
    lines = [f"question {question}; answer {answers}{root}"]
    sources = [text for one in reading.sources if (text := _brought(one))]
    left = [
        f"of {_named(one)} {one.left_out or 'nothing'} left out ({one.why})"
        for one in reading.sources
        if one.left_out or one.why
    ]
    lines.append(f"evidence: {'; '.join([', '.join(sources) or 'none', *left])}")
    unsure = [_unsure(sign, reading.roots[1:]) for sign in reading.signs]
    return [*lines, f"unsure: {' | '.join(unsure)}"] if unsure else lines


def _told(found: Found) -> str:
    if not found.place:
        return "as the request told it" if found.how == "metadata" else "as the application told it"
    place = f"from {found.place}"
    return place if found.how in {"structure", "framework"} else f"{place} ({found.how})"


def _named(source: Source) -> str:
    kind = {"search": "retriever", "marked": "mark"}.get(source.kind, source.kind)
    return f"{kind} `{source.name}`"


def _brought(source: Source) -> str:
    if not source.passages and (source.left_out or source.why or source.kind != "search"):
        return ""
    what = "text" if source.kind in {"tool", "state"} else "passage"
    count = f"{source.passages} {what}{'' if source.passages == 1 else 's'} of {_named(source)}"
    if not source.passages:
        return count
    is_chosen = source.chosen != source.passages
    told = [f"{source.chosen} chosen"] if is_chosen else []
    if source.shown is not None:
        told.append(f"{source.shown} in the prompt")
    if source.how == "guess":
        told.append("guessed")
    return f"{count} ({', '.join(told)})" if told else count


def _unsure(sign: Sign, others: tuple[str, ...]) -> str:
    about = f" ({sign.about})" if sign.about else ""
    text = f' "{sign.text}"' if sign.text else ""
    declare = f".  Declare: {sign.declare}" if sign.declare else ""
    if others and sign.name in _OF_ROOTS:
        declare += f".  Where it is no run: roots={json.dumps(others, ensure_ascii=False)}"
    return f"{sign.name}: {SIGNS[sign.name]}{about}{text}{declare}"
