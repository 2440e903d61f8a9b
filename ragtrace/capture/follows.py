"""Runs that follow another run: checks of its answer.

An application may open a root of its own for a check. Such a root searches nothing and is given the answer of the
other run. It is known by that, and by no word of a verdict. A grader of passages that is called before its run is a
run like others: it has left when the run begins that would show it.

Of earlier runs only hashes are kept, as `hash` makes them in this process, with trace ids: no text can be read out.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.capture.words import hashes, tokens, weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_ANSWERS = 256  # of earlier runs
_MOST_HASHES = 1_024  # of an answer
_ANSWER_SHINGLE = 8
_FEWEST_TOKENS = 3  # of an answer that is known again
_FEWEST_WORDS = 2  # of the same: three signs of an unspaced script are one
_SHARE = 0.5


class Root(NamedTuple):
    """A root that ended, as `followed` needs it.

    Attributes:
        trace_id: of its run.
        question: that the run was asked; "" where none was read.
        answer: "" where it has none: nothing follows it.
        given: texts of its input, or of its prompt where it is a bare model. Without messages of the role assistant
            and without what was said before the last message of a user: that is history, and not given.
        is_alone: it searched nothing and called no tool.
    """

    trace_id: str
    question: str = ""
    answer: str = ""
    given: Sequence[str] = ()
    is_alone: bool = False


class _Answer(NamedTuple):
    """An answer: hashes of eight tokens in a row each, or of all tokens where it has fewer."""

    trace_id: str
    question: int
    size: int
    hashes: array[int]


class Before:
    """The last 256 answers of this process by hashes.

    At most 1,024 hashes of an answer are kept, its first ones. Only one thread may use it: the pipeline's.
    """

    def __init__(self) -> None:
        self._answers: dict[int, _Answer] = {}  # by their numbers, in their order
        self._numbers: dict[int, int] = {}  # of the latest answer with a hash
        self._sizes: dict[int, int] = {}  # how many answers have so many tokens in a row
        self._next = 0

    def __len__(self) -> int:
        return len(self._answers)

    def add(self, root: Root, follows: str | None = None) -> None:
        """Remember a root that ended, behind `followed`.

        Args:
            root: one without an answer is no run that others follow.
            follows: the run that it follows: who is given its answer follows that run too.
        """
        answer = _answer_of(root, follows or root.trace_id)
        if answer is not None:
            self._remember(answer)

    def held_in(self, texts: Sequence[str]) -> Iterable[_Answer]:
        """Yield the answers that stand in some texts, the latest first."""
        read = [*map(tokens, texts)]
        given = {size: _hashes(read, size) for size in self._sizes}
        numbers = {self._numbers[one] for some in given.values() for one in some if one in self._numbers}
        for number in sorted(numbers, reverse=True):
            answer = self._answers[number]
            if _is_held(answer, given[answer.size]):
                yield answer

    def _remember(self, answer: _Answer) -> None:
        self._answers[self._next] = answer
        self._numbers.update(dict.fromkeys(answer.hashes, self._next))
        self._sizes[answer.size] = self._sizes.get(answer.size, 0) + 1
        self._next += 1
        if len(self._answers) > MOST_ANSWERS:
            number = next(iter(self._answers))
            oldest = self._answers.pop(number)
            for one in oldest.hashes:
                if self._numbers.get(one) == number:
                    del self._numbers[one]
            self._sizes[oldest.size] -= 1
            if not self._sizes[oldest.size]:
                del self._sizes[oldest.size]


def followed(root: Root, before: Before) -> str | None:
    """Return the trace id of the run whose answer a root was given and that it asks nothing new of; else None.

    It searched nothing, called no tool, and was given half of the answer's eight words in a row, or a shorter
    answer of at least three words as it is. Its question is blank, or that run's, or holds that answer. Of several
    runs it is the latest. A root that was given nothing follows none. What it was given is read to 100,000
    characters a text.

    Example:
        >>> before = Before()
        >>> before.add(Root("a", "Who built the mole?", "Convicts built it, from 1861 to 1868."))
        >>> followed(Root("b", given=["Is it true? Convicts built it, from 1861 to 1868."], is_alone=True), before)
        'a'
    """
    if not root.is_alone or not root.given:
        return None
    asked = tokens(root.question)
    question = hash((*asked,))
    for answer in before.held_in(root.given):
        if not asked or question == answer.question or _is_held(answer, _hashes((asked,), answer.size)):
            return answer.trace_id
    return None


def _answer_of(root: Root, trace_id: str) -> _Answer | None:
    words = tokens(root.answer)
    size = min(len(words), _ANSWER_SHINGLE)
    if size < _FEWEST_TOKENS or weight(words) < _FEWEST_WORDS:
        return None
    some = array("q", hashes(words[: _MOST_HASHES + size - 1], size))
    return _Answer(trace_id, hash((*tokens(root.question),)), size, some)


def _hashes(texts: Iterable[list[str]], size: int) -> set[int]:
    """Return the hashes of so many tokens in a row, of the tokens of each text by itself."""
    return {one for words in texts for one in hashes(words, size)}


def _is_held(answer: _Answer, given: set[int]) -> bool:
    return sum(map(given.__contains__, answer.hashes)) >= _SHARE * len(answer.hashes)
