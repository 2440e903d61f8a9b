"""Passages that a text was made of, and the order in which results of several searches are shown."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.capture.names import RERANK_SCORE_KEYS
from ragtrace.capture.words import unescaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Scripts without blanks between words: Chinese characters by two, and the runs of each Japanese syllabary.
_UNSPACED = ("\u4e00-\u9fff\u3400-\u4dbf\u3005", "\u3041-\u309f", "\u30a1-\u30ff")
_WORD = re.compile(  # of at most 100,000 characters
    rf"[{_UNSPACED[0]}]{{1,2}}|[{_UNSPACED[1]}]+|[{_UNSPACED[2]}]+|[^\W_{''.join(_UNSPACED)}]+"
)
_UNIT_ENDS = re.compile(r"[\n\r]+|(?<=[.!?;:])\s+|[\"“”«»]+")  # of at most 100,000 characters
_LONGEST_CHARS = 100_000  # of a text that is looked at
_MOST_UNITS = 256  # sentences of one text
_TELLING_WORDS = 4  # fewer stand in many another text by chance


def _normal(text: str) -> str:
    """Return a text's words with one blank around each; a blank where there are none."""
    words = [word.casefold() for word in _WORD.findall(unescaped(text[:_LONGEST_CHARS]))]
    return f" {' '.join(words)} " if words else " "


def _size(normal: str) -> int:
    return normal.count(" ") - 1


class _Own(NamedTuple):
    """A text's words, and its sentences' words."""

    whole: str
    units: tuple[str, ...]


def _own(text: str) -> _Own:
    plain = unescaped(text[:_LONGEST_CHARS])
    whole = _normal(plain)
    units = (_normal(unit) for unit in islice(_UNIT_ENDS.split(plain), _MOST_UNITS))
    return _Own(whole, tuple({*units} - {" ", whole}))


class Origin(NamedTuple):
    """A passage that a text may have been made of."""

    text: str
    facts: Mapping[str, object]


_LEAST_PART_CHARS = 8
_SAME_WORDS = 0.75  # of a text's words, in the passage that it is a shorter form of
_SOME_WORDS = 0.3  # of a text's words, in the passage whose metadata it has
_JOINED_WORDS = 1.2  # times the words of the passages in it: more was added than headers
_HEADER_WORDS = 8
_LEAST_SHARED = 5
_SCORES = frozenset(RERANK_SCORE_KEYS)


class Origins:
    """Finds the passages that texts were made of: extracts, parts, widened and summarised passages.

    Args:
        passages: what a step was given.

    Example:
        >>> given = [Origin("The lab is in Oslo. It opens at 8.", {}), Origin("Fees are 6 euros.", {})]
        >>> Origins(given).of("It opens at 8.", {}), Origins(given).of("Rome has seven hills.", {})
        ([0], [])
    """

    def __init__(self, passages: Sequence[Origin]) -> None:
        self._facts = [_told(one.facts) for one in passages]
        self._normal = [_normal(one.text[:_LONGEST_CHARS]) for one in passages]
        self._sets: list[frozenset[str]] | None = None

    def of(
        self, text: str, facts: Mapping[str, object], *, is_written: bool = False, is_given: bool = True
    ) -> list[int]:
        """Return the places of the passages that a text was made of, several where it joins them; [] for a new one.

        Args:
            text: the text.
            facts: its metadata.
            is_written: a model wrote the text, so that metadata are enough.
            is_given: the step that made the text was given the passages; else only their words count.
        """
        own, told = _own(text), _told(facts)
        if own.whole == " ":
            return []
        alike = [place for place, given in enumerate(self._facts) if given and _has_all(told, given)]
        held = self._held(own.whole)
        if len(held) > 1 and len(alike) == 1 and alike[0] in held and not self.is_join(text, held):
            return alike  # more than its neighbours stands beside it
        parts = [] if held else self._parts(own)
        if parts:
            return [next((place for place in parts if place in alike), parts[0])]
        pieces = [] if alike else self._pieces(own)
        if len(pieces) > len(held) and {*pieces} >= {*held}:
            return pieces
        if held:
            return held
        return self._reworded(own.whole, alike, is_written=is_written) if is_given else []

    def is_join(self, text: str, places: Sequence[int]) -> bool:
        """Tell whether a text is hardly more than these passages, one behind the other."""
        return (
            _size(_normal(text))
            <= _JOINED_WORDS * sum(_size(self._normal[place]) for place in places) + _HEADER_WORDS
        )

    def _held(self, whole: str) -> list[int]:
        """Return the passages that stand in a text, less those that stand in another one of them."""
        held = [
            place
            for place, normal in enumerate(self._normal)
            if len(normal) >= _LEAST_PART_CHARS and _size(normal) > 1 and normal in whole
        ]
        return [
            place
            for place in held
            if not any(
                self._normal[place] in self._normal[other]
                and (self._normal[place] != self._normal[other] or other < place)
                for other in held
                if other != place
            )
        ]

    def _parts(self, own: _Own) -> list[int]:
        """Return the passages in which all of a text stands, in one piece or sentence by sentence."""
        if len(own.whole) < _LEAST_PART_CHARS:
            return []
        whole = [place for place, normal in enumerate(self._normal) if own.whole in normal]
        units = [unit for unit in own.units if _size(unit) > 1]
        if whole or not units:
            return whole
        return [place for place, normal in enumerate(self._normal) if all(unit in normal for unit in units)]

    def _pieces(self, own: _Own) -> list[int]:
        """Return the passages out of whose sentences a text was put together; [] where one has none of them."""
        sentences = [unit for unit in own.units if _size(unit) > 1]
        places = [
            next((place for place, normal in enumerate(self._normal) if sentence in normal), -1)
            for sentence in sentences
            if _size(sentence) >= _TELLING_WORDS
        ]
        return sorted({*places}) if len(places) == len(sentences) and -1 not in places else []

    def _reworded(self, whole: str, alike: Sequence[int], *, is_written: bool) -> list[int]:
        if self._sets is None:
            self._sets = [frozenset(normal.split()) for normal in self._normal]
        words = frozenset(whole.split())
        shared = {place: len(words & given) for place, given in enumerate(self._sets)}
        if alike:
            best = max(alike, key=lambda place: shared[place])
            is_only = len(alike) == 1 or sum(shared[place] == shared[best] for place in alike) == 1
            if is_only and (is_written or shared[best] >= _SOME_WORDS * len(words)):
                return [best]
        best = max(shared, key=lambda place: shared[place], default=-1)
        is_form = best >= 0 and shared[best] >= max(_LEAST_SHARED, _SAME_WORDS * len(words))
        return [best] if is_form else []


def _told(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if name not in _SCORES and value is not None}


def _has_all(facts: Mapping[str, object], given: Mapping[str, object]) -> bool:
    try:
        return all(name in facts and bool(facts[name] == value) for name, value in given.items())
    except Exception:  # an application's value may raise anything here; it is then another one
        return False


def by_first_shown(searches: Sequence[Sequence[str]], shown: Iterable[str]) -> list[str]:
    """Return what several searches found in the order in which their results are shown, each once.

    Within one result its own order stays. A search of which nothing is shown stays behind the one before it.

    Example:
        >>> by_first_shown([["soup"], ["loan", "fine"]], ["loan", "soup"])
        ['loan', 'fine', 'soup']
    """
    order: list[int] = []
    left = list(shown)
    while left:
        own = [
            (_agreeing(part, left), -place)
            for place, part in enumerate(searches)
            if place not in order and left[0] in part
        ]
        place = -max(own)[1] if own else -1
        if place >= 0:
            order.append(place)
        done = {left[0], *(searches[place] if place >= 0 else ())}
        left = [key for key in left if key not in done]
    for place in range(len(searches)):
        if place not in order:
            before = [at for at, other in enumerate(order) if other == place - 1]
            order.insert(before[0] + 1 if before else 0, place)
    return list(dict.fromkeys(key for place in order for key in searches[place]))


def _agreeing(part: Sequence[str], shown: Sequence[str]) -> int:
    """Return how many of the next keys shown are those of a result, in its order."""
    own = [key for key in part if key in set(shown)]
    return next(
        (at for at, (one, other) in enumerate(zip(own, shown, strict=False)) if one != other),
        min(len(own), len(shown)),
    )
