"""Reads English sentences, terms, and the language."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ragtrace.judges.offline.tables import table
from ragtrace.judges.offline.tables import words as word_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_STOP = frozenset(
    (
        "a an the and or but if of to in on at by for with from as is are was were be been being it its "
        "this that these those he she they him his her their we you i me my your our us do does did not "
        "no nor so than then there here which who whom whose what when where why how can could may might "
        "must shall should will would have has had having about into over under up down out off again "
        "more most some any each other such only own same too very just also am "
    ).split()
)
_WORD = re.compile(  # of at most 8,192 characters: a window
    r"[^\W_]+(?:['’][^\W_]+)?|\d[\d.,]*\d"
)
_SENTENCE_END = re.compile(  # of at most 8,192 characters: a window
    r"(?<=[.!?。！？])(?<!\b[DM]r\.)(?<!\bM[rs]s\.)(?<!\bMs\.)(?<!\bProf\.)(?<!\b[ei]\.[ge]\.)(?<!\bvs\.)"
    r"(?<!\b[Aa]pprox\.)(?<!\b[Mm]ax\.)(?<!\b[Ii]ncl\.)(?<!\b[Ee]xcl\.)(?<!\b[Tt]el\.)(?<!\bRs\.)(?<!\bca\.)(?<!\bpp\.)"
    r"(?!(?<=\b(?:No|kr|Fr)\.)\s\d)(?!(?<=\bmin\.)\s[a-z\d])"
    r"[\"')\]]*+\s++|\n++"
)
LONGEST = 2_000  # characters of a sentence; a longer one is cut, as some comparisons would cost its square
WINDOW = 8_192  # characters of a text that one pattern reads at a time, since it holds the interpreter's lock
LIST_MARK = re.compile(r"^(?:[-*•#>]++|\d{1,3}[.)])\s++")
KEPT = 512  # texts of which the reading is kept: a sentence is read for several comparisons
_LONGEST_KEPT = 32  # characters of a word whose stem is kept
_DOUBLING = frozenset({"ing", "ed"})
_SUFFIXES = ("ingly", "edly", "ing", "ied", "ies", "ed", "es", "ly", "s")

_SAMPLE = 4000
_FEWEST_WORDS = 3
_MOST_ENGLISH = 0.5
# A sample is what each of these reads.
_LETTERS = re.compile(r"[^\W\d_]")  # of at most 4,000 characters
_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")  # of at most 4,000 characters
_LETTERS_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")  # of at most 4,000 characters
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|[\w.-]{1,64}@[\w.-]+")  # of at most 4,000 characters


class TermPlaces:
    """Places of terms, read for those that are asked for: a text may have a hundred thousand.

    Example:
        >>> TermPlaces([frozenset({"lab", "oslo"}), frozenset({"oslo"})]).of({"oslo", "bergen"})
        {'oslo': [0, 1]}
    """

    def __init__(self, terms_at: Sequence[frozenset[str]]) -> None:
        """Take the terms of each place; nothing is read yet."""
        self._terms_at = terms_at
        self._known: dict[str, list[int]] = {}

    def of(self, terms: Iterable[str]) -> dict[str, list[int]]:
        """Return the places of the terms that stand somewhere; many terms at once are read in one pass."""
        asked = {*terms}
        unread = asked - self._known.keys()
        if unread:
            self._known.update((term, []) for term in unread)
            for place, its in enumerate(self._terms_at):
                if not unread.isdisjoint(its):
                    for term in unread & its:
                        self._known[term].append(place)
        return {term: places for term in asked if (places := self._known[term])}


def sentences(text: str) -> list[str]:
    """Return the sentences of a text without list marks.

    Lines end sentences too; a blank text gives none. A sentence of more than 2,000 characters is cut at a blank.

    Example:
        >>> sentences("It opened in 2010. It is in Oslo.")
        ['It opened in 2010.', 'It is in Oslo.']
    """
    parts = (text[start:end] for start, end in parts_of(text) if start < end)
    whole = (LIST_MARK.sub("", part.strip().replace("**", ""), count=1) for part in parts)
    parts = (part for sentence in whole for part in pieces(sentence))
    return [part for part in parts if part.strip()]


def parts_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the sentences of a text, with their list marks."""
    begin = 0
    for start, end in windows_of(text):
        for found in _SENTENCE_END.finditer(text, start, end):
            yield begin, found.start()
            begin = found.end()
    yield begin, len(text)


def windows_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of parts that end behind a line, else behind a blank, else at their full length."""
    start = 0
    while len(text) - start > WINDOW:
        end = text.rfind("\n", start, start + WINDOW) + 1 or text.rfind(" ", start, start + WINDOW) + 1
        end = end or start + WINDOW
        yield start, end
        start = end
    yield start, len(text)


def pieces(text: str) -> list[str]:
    """Return a text, or pieces of at most 2,000 characters, which end at a blank where they have one."""
    return [text[start:end] for start, end in spans_of_pieces(text)]


def spans_of_pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the pieces of a text."""
    start = 0
    while len(text) - start > LONGEST:
        blank = text.rfind(" ", start, start + LONGEST)
        end = blank if blank > start else start + LONGEST
        yield start, end
        start = end
    yield start, len(text)


def windows(text: str) -> list[str]:
    """Return the parts of a text that one pattern reads at a time: at most 8,192 characters."""
    return [text[start:end] for start, end in windows_of(text)]


def stems(text: str) -> list[str]:
    """Return terms in order, without stop words and common endings.

    Example:
        >>> stems("The refunds are paid within days.")
        ['refund', 'paid', 'within', 'day']
    """
    return list(_stems_in(text))


@lru_cache(maxsize=KEPT)
def _stems_in(text: str) -> tuple[str, ...]:
    lowered = text.lower()
    said = _WORD.findall(lowered) if len(lowered) <= WINDOW else _words_of_long(lowered)
    return tuple(
        [found for word in said if (found := _stem_of(word) if len(word) <= _LONGEST_KEPT else _stemmed(word))]
    )


def stem(word: str) -> str:
    """Return the stem of one word in lower case, a stop word as it is.

    Example:
        >>> stem("refunds"), stem("the")
        ('refund', 'the')
    """
    return (_stem_of(word) if len(word) <= _LONGEST_KEPT else _stemmed(word)) or word


def _stemmed(written: str) -> str:
    """Return the stem of a word, "" of a stop word."""
    if written in _STOP:
        return ""
    word = written.replace("’", "'").removesuffix("'s")
    if len(word) <= 5:
        if len(word) == 5 and word.endswith(("ies", "ied")):
            return f"{word[:2]}y"
        return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
    if word.endswith(_SUFFIXES):
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
                word = word[: -len(suffix)] + ("y" if suffix in {"ied", "ies"} else "")
                if suffix in _DOUBLING and len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt":
                    word = word[:-1]
                break
    return word.removesuffix("e")


@cache
def irregular() -> Mapping[str, str]:
    """Return the first form of each irregular verb by its others."""
    rows = (line.split("/") for line in " ".join(table("words.txt")["irregular"]).split())
    return {form: first for first, *forms in rows for form in forms}


_stem_of = lru_cache(maxsize=4_096)(_stemmed)


def verb_forms(word: str) -> tuple[str, ...]:
    """Return the stems of a verb's forms, as short words keep their endings.

    Example:
        >>> verb_forms("add")
        ('add', 'added')
    """
    bare = word.removesuffix("e")
    return tuple(dict.fromkeys(map(stem, (word, f"{word}s", f"{bare}ed", f"{bare}ing"))))


def forget_stems() -> None:
    """Forget the terms of earlier texts."""
    _stems_in.cache_clear()


def _words_of_long(text: str) -> list[str]:
    return [word for start, end in windows_of(text) for word in _WORD.findall(text, start, end)]


def is_english(text: str) -> bool | None:
    """Return whether a text is English.

    None where too little of it tells (a name, a number, a list of names).

    Example:
        >>> is_english("The lab is in Oslo."), is_english("Das Labor ist in Oslo."), is_english("Oslo, 2010")
        (True, False, None)
    """
    sample = _ADDRESS.sub(" ", text[:_SAMPLE])
    if _LETTERS.search(sample) is None:
        return None
    if not sample.isascii() and len(_LATIN.findall(sample)) < _MOST_ENGLISH * len(_LETTERS.findall(sample)):
        return False
    english, foreign, shared = word_list("english"), word_list("others"), word_list("shared")
    said = _LETTERS_WORD.findall(sample.lower().replace("\u2019", "'"))
    ours = sum(map(english.__contains__, said)) - 0.5 * sum(map((english & shared).__contains__, said))
    others = 0 if foreign.isdisjoint(said) else sum(word.lower() in foreign for word in _uttered(sample))
    has_own = any(word in english and word not in shared for word in said)
    if ours > others or (has_own and ours == others):
        return True
    if others >= 2 or (others and sum(word.islower() for word in _LETTERS_WORD.findall(sample)) >= _FEWEST_WORDS):
        return False
    return False if _looks_foreign(sample, said, ours) else None


def _uttered(sample: str) -> list[str]:
    """Return the words that are no part of a name.

    These are the first word, small words, and words before a small one.
    """
    said = _LETTERS_WORD.findall(sample.replace("\u2019", "'"))
    if sample.isupper():
        return said
    pairs = zip(said, [*said[1:], ""], strict=True)
    return [*said[:1], *(word for word, behind in [*pairs][1:] if word.islower() or behind.islower())]


def _looks_foreign(sample: str, said: list[str], ours: float) -> bool:
    """Return whether a text has foreign letters and no English function word."""
    if ours >= 1.0 or len(said) < _FEWEST_WORDS:
        return False
    small = [word for word in _LETTERS_WORD.findall(sample) if word.islower()]
    return sum(not word.isascii() for word in small) * 4 >= max(len(said), 4)


def is_readable(answer: str, contexts: list[str]) -> bool:
    """Return whether answer and contexts are probably English.

    Of contexts in several languages the English ones must be at least half of the text with a known language.

    Example:
        >>> is_readable("It costs twelve euros.", ["Der Tisch kostet zwölf Euro und ist aus Holz."])
        False
    """
    if is_english(answer) is False:
        return False
    sizes = {True: 0, False: 0}
    for text in contexts:
        found = is_english(text)
        if found is not None:
            sizes[found] += min(len(text), _SAMPLE)
    return sizes[False] <= sizes[True]
