"""Recognises names in other spellings, inflections and abbreviations."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache, cached_property
from posixpath import commonprefix
from typing import TYPE_CHECKING

from ragtrace.judges.offline.notation import ORDINALS
from ragtrace.judges.offline.specifics import squeezed
from ragtrace.judges.offline.tables import table
from ragtrace.judges.offline.words import windows

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ragtrace.judges.offline.specifics import Specific

_AROUND = 120  # characters around a name that may be part of its long form
_SHORTEST_STEM = 5  # of "Parisian"; one letter more where only "n" or "an" is added, as in "Maria" and "Marian"
_SHORTEST_PLACE = 4
_MOST_ALIKE = 50  # capitalised words that begin alike
_PEOPLE = re.compile(r"(?:ians?|eans?|ese|ers|ites?|ish)$")
_CAPITAL = re.compile(r"\b[A-Z][^\W\d_]{3,}")
_TOKEN = re.compile(r"[^\W_]+")
_ACRONYM = re.compile(r"\b[A-Z][A-Za-z]{0,5}[A-Z]s?\b")  # of at most 8,000 characters: a sentence in one notation
_EXPANSION = re.compile(  # of at most 8,000 characters: a sentence in one notation
    r"\b[A-Z][\w'-]*(?: (?:(?:of|the|and|for|on|in|de|to|&) ){0,2}[A-Z][\w'-]*){1,7}"
)
_PREFIX = re.compile(r"^(?:non|pre|post|anti|mid|ex|pro|co|self|multi|intra|inter|sub)$")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")  # of at most 8,000 characters: a sentence in one notation
_BETWEEN_PARTS = re.compile(r"[ '\u2019-]+")
_PAIR = re.compile(r"\b([A-Z][a-z]+)(?= ([A-Z][a-z]+))")  # of at most 8,192 characters: a window
_CODE = re.compile(r"[A-Z]{1,8}(?:-\d\w*+)++|[A-Z]{1,5}\d\w*+")
_LETTERS_DIGITS = re.compile(r"(?<=[A-Za-z])(?=\d)|-")
_HYPHENED = re.compile(r"\b([^\W\d_]{2,})-(?=([^\W\d_]{2,}))")
_LETTER_TIMES = re.compile(r"([A-Za-z])([2-4])")
_TIMES_LETTER = re.compile(r"([2-4])([A-Za-z])")
_SMALL = frozenset({"of", "the", "and", "for", "in", "on", "to", "a"})
_STROKES = str.maketrans(
    {"ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i"}
)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})


@dataclass(eq=False)
class KnownNames:
    """The words of given texts, as the parts of names.

    Attributes:
        sentences: the texts' sentences in one notation.
        raw: the texts as written.
        numbers: which "Henry the Eighth" may rest on.
        vocabulary: all words in lower case.
    """

    sentences: Sequence[str]
    raw: str
    numbers: Container[str]
    vocabulary: set[str] = field(default_factory=set)

    def has_quote(self, it: Specific) -> bool:
        """Return whether the texts have a quote, or the words of a title."""
        if it.key in self._joined or squeezed(folded(it.shown)) in self._folded:
            return True
        counted = [word for word in _TOKEN.findall(it.shown) if len(word) > 3 or word.isdigit()]
        is_title = bool(counted) and all(word[0].isupper() or word.isdigit() for word in counted)
        return is_title and all(self._part(word.lower()) is not None for word in counted)

    def wording(self, it: Specific, claim: str) -> str | None:
        """Return the name with the texts' words for its parts."""
        shown = it.shown
        if _CODE.fullmatch(shown):
            return shown if self._has_code(shown) else self._acronym(shown)
        for phrase, others in _phrases():
            if phrase in it.key and not self._has_phrase(phrase):
                for other in filter(self._has_phrase, others):
                    shown = _with_instead(shown, phrase, _capitalised(other))
                    break
        if (whole := self._acronym(shown)) is not None:
            return whole
        for place, word in enumerate(_BETWEEN_PARTS.split(shown)):
            part = word.lower()
            # A first word may be an ordinary one ("Visit Oslo"), and small words and prefixes are no names.
            is_ordinary = place == 0 and " " in shown and "-" not in shown and part not in it.key.split()
            is_small = len(part) < 3 and not any(map(str.isdigit, part))
            if is_ordinary or is_small or _PREFIX.match(part) or not (word[0].isupper() or word[0].isdigit()):
                continue
            has_code = _CODE.fullmatch(word) is not None and self._has_code(word)
            known = part if has_code else self._part(part) or self._acronym(word) or self._closed_up(word)
            if known is None:
                return self._abbreviated(it, claim)
            if known != part:
                shown = shown.replace(word, _capitalised(known))
        return shown

    def _has_code(self, code: str) -> bool:
        """Return whether the texts have a code, with other marks or none between its letters and its digits."""
        apart = squeezed(_LETTERS_DIGITS.sub(" ", code))
        return f" {apart} " in self._joined or apart.replace(" ", "") in self.vocabulary

    def _part(self, part: str) -> str | None:
        """Return the texts' word for one word of a name."""
        for form in (part, part.removesuffix("s"), f"{part}s"):
            if form in self.vocabulary:
                return form if form != part and not part.startswith(form) else part
        for form in folded(part), *_umlauts(part):
            if form in self._spelled:
                return self._spelled[form]
        if part in ORDINALS and str(ORDINALS[part]) in self.numbers:
            return part
        other = next(filter(self._has_phrase, _same().get(part, ())), None)
        return other or self._inflected(part)

    def _inflected(self, part: str) -> str | None:
        """Return "Paris" for "Parisian", and the other way round."""
        for ending in ("ian", "ean", "ese", "n", "an"):
            stem, shortest = part.removesuffix(ending), _SHORTEST_STEM + (len(ending) < 3)
            if stem != part and len(stem) >= shortest and stem in self.vocabulary:
                return stem
            if len(part) >= shortest and part + ending in self.vocabulary:
                return part + ending
        return self._inhabited(part)

    def _inhabited(self, part: str) -> str | None:
        """Return "Vienna" for "Viennese", and the other way round: both begin alike, and one names people."""
        people = _PEOPLE.search(part)
        for other in self._capitalised.get(part[:_SHORTEST_PLACE], ()):
            found = people or _PEOPLE.search(other)
            if found is None or (people and _PEOPLE.search(other)):
                continue
            stem = found.string[: found.start()]
            place = other if people else part
            shared = len(commonprefix((stem, place)))
            if shared >= max(_SHORTEST_PLACE, len(stem) - 2) and len(place) - shared <= 2:
                return other
        return None

    @cached_property
    def _capitalised(self) -> dict[str, list[str]]:
        """Return the capitalised words of the texts by how they begin."""
        found: dict[str, dict[str, None]] = {}
        for word in (it for part in windows(self.raw) for it in _CAPITAL.findall(part)):
            its = found.setdefault(word[:_SHORTEST_PLACE].lower(), {})
            if len(its) < _MOST_ALIKE:
                its[word.lower()] = None
        return {begin: list(its) for begin, its in found.items()}

    def _has_phrase(self, phrase: str) -> bool:
        if phrase.isupper():
            return phrase in self._acronyms
        return phrase in self.vocabulary if " " not in phrase else f" {phrase} " in self._joined

    def _acronym(self, word: str) -> str | None:
        """Return the expansion of "WHO" where the texts have one."""
        letters = _spelled_out(word.removesuffix("s") if word[-1:] == "s" else word)
        if not letters or word.lower() in self.vocabulary:
            return None
        if (found := self._expansions.get(letters)) is not None:
            return found
        other = next((other for other in _same().get(word.lower(), ()) if self._has_phrase(other)), None)
        initials = " ".join(letters)  # "J. R. R." of "JRR"
        return other or (initials if self._has_phrase(initials.lower()) else None)

    def _abbreviated(self, it: Specific, claim: str) -> str | None:
        """Return "WHO" for the name that it abbreviates, where the texts have only that."""
        begin = max(0, it.start - _AROUND)
        near = _EXPANSION.finditer(claim[begin : it.start + len(it.shown) + _AROUND])
        runs = (run[0].removeprefix("The ") for run in near if run.start() <= it.start - begin < run.end())
        for letters in (letters for name in (it.shown, *runs) for letters in _initials(name)):
            if len(letters) > 2 and letters in self._acronyms:
                return self._acronyms[letters]
        return None

    def _closed_up(self, word: str) -> str | None:
        """Return "Word Press" for "WordPress"."""
        parts = _CAMEL.findall(word)
        if len(parts) < 2 or len(word) < 4:
            return None
        apart = " ".join(parts).lower()
        return apart if f" {apart} " in self._joined else None

    @cached_property
    def _joined(self) -> str:
        return f" {squeezed(self.raw)} "

    @cached_property
    def _folded(self) -> str:
        return self._joined if self._joined.isascii() else folded(self._joined)

    @cached_property
    def _spelled(self) -> dict[str, str]:
        """Return the texts' words by their letters without accents, and closed-up pairs of words.

        Such pairs are capitalised or have a hyphen.
        """
        found = {
            form: word for word in self.vocabulary if not word.isascii() for form in (folded(word), *_umlauts(word))
        }
        for left, right in (it for part in windows(self.raw) for it in _PAIR.findall(part)):
            found.setdefault((left + right).lower(), f"{left} {right}")
        for left, right in (it for part in windows(self.raw) for it in _HYPHENED.findall(part)):
            found.setdefault((left + right).lower(), f"{left}-{right}")
        return found

    @cached_property
    def _acronyms(self) -> dict[str, str]:
        return {found.removesuffix("s").upper(): found for one in self.sentences for found in _ACRONYM.findall(one)}

    @cached_property
    def _expansions(self) -> dict[str, str]:
        """Return the capitalised words of the texts by their initials."""
        found: dict[str, str] = {}
        for one in self.sentences:
            for run in _EXPANSION.findall(one):
                its = run.split()
                for first in range(len(its)):
                    for last in range(first + 2, min(len(its), first + 9) + 1):
                        name = " ".join(its[first:last])
                        if its[first][0].isupper() and its[last - 1][0].isupper():
                            for letters in _initials(name):
                                found.setdefault(letters, name)
        return found


def folded(text: str) -> str:
    """Return a text in lower case without accents.

    Example:
        >>> folded("São Tomé"), folded("Tromsø")
        ('sao tome', 'tromso')
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.lower().translate(_STROKES))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def _umlauts(word: str) -> tuple[str, ...]:
    """Return the spelling of "Müller" as "mueller"."""
    spelled = word.lower().translate(_UMLAUTS)
    return (spelled,) if spelled != word.lower() else ()


def _with_instead(text: str, phrase: str, other: str) -> str:
    """Return a text with another phrase in place of one, in any case."""
    lowered, parts, at = text.lower(), [], 0
    if len(lowered) != len(text):
        return text
    while (place := lowered.find(phrase, at)) >= 0:
        parts += [text[at:place], other]
        at = place + len(phrase)
    return "".join([*parts, text[at:]])


def _capitalised(words: str) -> str:
    return words.title() if words.islower() else words


@cache
def _same() -> dict[str, tuple[str, ...]]:
    """Return for each word of a name the others that mean the same."""
    found: dict[str, tuple[str, ...]] = {}
    for lines in table("names.txt").values():
        for line in lines:
            group = [word.replace("_", " ") for word in line.split()]
            for word in group:
                found[word.lower()] = (*found.get(word.lower(), ()), *(it for it in group if it != word))
    return found


@cache
def _phrases() -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((word, others) for word, others in _same().items() if " " in word)


def _initials(name: str) -> list[str]:
    """Return the initials of a name, without and with its small words.

    Example:
        >>> _initials("Department of Defense")
        ['DD', 'DOD']
    """
    its = _TOKEN.findall(name)
    large = "".join(word[0] for word in its if word[0].isupper())
    every = "".join(word[0] for word in its).upper()
    return list(dict.fromkeys((large, every)))


def _spelled_out(word: str) -> str:
    """Return the initials that an acronym stands for; "" for another word.

    Example:
        >>> _spelled_out("DoD"), _spelled_out("IC3"), _spelled_out("Oslo")
        ('DOD', 'ICCC', '')
    """
    if not 1 < len(word) <= 7 or sum(letter.isupper() for letter in word) < 2:
        return ""
    again = _LETTER_TIMES.sub(lambda it: it[1] * int(it[2]), word)
    before = _TIMES_LETTER.sub(lambda it: it[2] * int(it[1]), again)
    return before.upper() if before.isalpha() else ""


def abbreviates_words_before(it: Specific, text: str) -> bool:
    """Return whether a name in brackets has the initials of the words before it."""
    letters = _spelled_out(it.shown.removesuffix("s"))
    before = text[max(0, it.start - _AROUND) : it.start].rstrip()
    if len(letters) < 2 or not before.endswith("("):
        return False
    its = _TOKEN.findall(before)[-2 * len(letters) :]
    return any(
        "".join(word[0] for word in some).upper() == letters
        for some in (its[-len(letters) :], [word for word in its if word.lower() not in _SMALL][-len(letters) :])
    )
