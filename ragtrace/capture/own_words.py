"""First speakers of a run: a sentence that a model said first is the model's, in any language.

What comes back from a tool and was a model's is no evidence, in whatever frame it comes back. What a source said
first stays evidence, also where a model repeats it and a tool finds it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ragtrace.capture.words import MOST_CHARS, SHINGLE, hashes, scalars, tokens, units, weight, written_value

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Speaker = Literal["model", "evidence"]
_FEW_WORDS = 3  # a text of so few says something only where a reply repeats it
_MOST_TEXTS = 1_024  # of one run that are remembered
_MOST_UNITS = 1_024  # sentences of one text; what is behind them counts as new
_COVERED = b"\1"


class Part(NamedTuple):
    """A sentence of a tool's text.

    Attributes:
        text: its words as they are.
        size: how many tokens it has.
        own: how many of them a model said first, several in a row.
        new: the others.
        fresh: those of these that no model had used at all.
    """

    text: str
    size: int
    own: int
    new: tuple[str, ...]
    fresh: tuple[str, ...]

    @property
    def is_mostly_own(self) -> bool:
        """Whether most of it, a statement of four words at least, was a model's first."""
        return self.own >= max(SHINGLE, self.size / 2)


class Kept(NamedTuple):
    """Evidence in a text, and the sentences that are left out as the models' own."""

    evidence: str
    own: tuple[str, ...] = ()


class FirstSpeakers:
    """First speakers of one run. Not thread-safe.

    Example:
        >>> first = FirstSpeakers()
        >>> first.add("evidence", "Books may be kept for 28 days.")
        >>> first.add("model", "Books may be kept for 28 days. The mayor brings them by bicycle.")
        >>> first.owns("The mayor brings them by bicycle."), first.owns("Books may be kept for 28 days.")
        (True, False)
    """

    def __init__(self) -> None:
        self._unread: list[tuple[Speaker, object]] = []
        self._heard: set[int] = set()  # hashes of four tokens in a row, whoever said them
        self._own: set[int] = set()  # those that a model said first
        self._said: set[int] = set()  # those that a model said
        self._words: set[str] = set()  # of models
        self._count = 0

    def add(self, speaker: Speaker, said: object) -> None:
        """Take a text, or a value with texts in it, when it is said; it is read once something is asked."""
        if self._count < _MOST_TEXTS:
            self._count += 1
            self._unread.append((speaker, said))

    def owns(self, text: str, arguments: object = None) -> bool:
        """Tell whether a model said all of a text first; `arguments` are those of the call that gave it.

        A text of fewer than four words is nobody's.
        """
        self._read()
        given = texts_of(arguments)
        if not (self._words or given):
            return False
        parts = self._parts(text, given)
        return sum(part.size for part in parts) >= SHINGLE and all(
            part.own == part.size or (part.is_mostly_own and not part.fresh) for part in parts
        )

    def share(self, text: str) -> float:
        """Return the share of a text's words, 0 to 1, that models said, several in a row.

        Example:
            >>> first = FirstSpeakers()
            >>> first.add("model", "The lab is in Oslo, at the harbour.")
            >>> first.share("# Report: The lab is in Oslo, at the harbour."), first.share("Rome.")
            (0.888..., 0.0)
        """
        self._read()
        words = tokens(text)
        covered = _cover(words, self._said, ())
        return sum(covered) / len(words) if words else 0.0

    def parts(self, text: str, arguments: object = None) -> list[Part]:
        """Return the sentences of a tool's text; what was given in its call is the model's, however short it is."""
        self._read()
        return self._parts(text, texts_of(arguments))

    def _parts(self, text: str, arguments: Sequence[str]) -> list[Part]:
        given = [words for one in arguments if (words := tokens(one))]
        now = {one for words in given for one in hashes(words)} - self._heard
        asked = frozenset(word for words in given for word in words)
        short = [words for words in given if len(words) < SHINGLE]
        found = []
        every = units(text)
        for unit in every[:_MOST_UNITS]:
            words = tokens(unit)
            covered = _cover(words, self._own, now)
            for one in short:
                _cover_run(words, one, covered)
            new = tuple(word for word, is_own in zip(words, covered, strict=True) if not is_own)
            fresh = tuple(word for word in new if not (word in self._words or word in asked))
            found.append(Part(unit.strip(), len(words), sum(covered), new, fresh))
        if rest := ("\n".join(every[_MOST_UNITS:]) + text[MOST_CHARS:]).strip():
            words = tokens(rest)
            found.append(Part(rest, len(words), 0, tuple(words), tuple(words)))
        return found

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for speaker, said in unread:
            texts = [said] if isinstance(said, str) else map(str, scalars(said))
            for unit in (one for text in texts for one in units(text)[:_MOST_UNITS]):
                words = tokens(unit)
                grams = set(hashes(words))
                if speaker == "model":
                    self._words.update(words)
                    self._said |= grams
                    self._own |= grams - self._heard
                self._heard |= grams


def decide(text: str, parts: Sequence[Part], later: Collection[str]) -> Kept:
    """Return what of a text counts, once it is known what was said behind it.

    A sentence is the models' where most of it, a statement of four words at least, was theirs first, and no later
    reply says what is new in it. A text without one counts whole, unless it only repeats the arguments. What is
    left of three words or fewer counts where a later reply says it.

    Args:
        text: what a tool gave out.
        parts: its sentences, as they were when it gave it out.
        later: the words of all that models said behind it.

    Example:
        >>> first = FirstSpeakers()
        >>> first.add("model", "Loans last a year, I guess.")
        >>> said = "You said: Loans last a year, I guess. The handbook says: 28 days."
        >>> decide(said, first.parts(said), {"28", "days"}).evidence
        'The handbook says: 28 days.'
    """
    own = [part for part in parts if part.is_mostly_own and not _is_used(part.fresh, later)]
    left = [part for part in parts if part not in own]
    told = tuple(part.text for part in own)
    if not any(part.new for part in left):
        return Kept("", told)
    words = [word for part in left for word in part.new]
    is_value = not own and written_value(text) is not None  # rows and results: a status in one supports nothing
    if not is_value and weight(words) <= _FEW_WORDS and not _is_used(words, later):
        return Kept("", told)
    return Kept("\n".join(part.text for part in left) if own else text, told)


def _is_used(words: Sequence[str], said: Collection[str]) -> bool:
    return sum(word in said for word in words) * 2 >= len(words) > 0


def _cover(words: Sequence[str], known: Collection[int], also: Collection[int]) -> bytearray:
    covered = bytearray(len(words))
    for at, one in enumerate(hashes(words)):
        if one in known or one in also:
            covered[at : at + SHINGLE] = _COVERED * SHINGLE
    return covered


def _cover_run(words: Sequence[str], run: Sequence[str], covered: bytearray) -> None:
    size = len(run)
    for at, word in enumerate(words):
        if word == run[0] and list(words[at : at + size]) == list(run):
            covered[at : at + size] = _COVERED * size


def texts_of(arguments: object) -> list[str]:
    """Return the texts of a call's arguments, which may be written as JSON.

    Example:
        >>> texts_of({"query": "lab", "top_k": 4}), texts_of('{"query": "lab"}'), texts_of("lab")
        (['lab', '4'], ['lab'], ['lab'])
    """
    value = written_value(arguments) if isinstance(arguments, str) else arguments
    texts = [arguments] if isinstance(arguments, str) and value is None else map(str, scalars(value))
    return [text for text in texts if text]
