"""Text of prompts that nothing explains: what a function of the application wrote there and no event tells of.

A prompt is made of what a run knows (its question, passages, results, replies), of its template, and of the rest.
The rest is evidence that nobody read. A template is known by comparison: it stands in the last prompts of the same
step as well. Text that a step gave out, or that the root was given, needs no comparison; it is named by its place.

Texts are compared by hashes of four words in a row. Python's own `hash` of the words is taken: it needs 0.1 us
where blake2b needs 0.8, its key is the process's own, and the hashes never leave it. Of an earlier prompt nothing
else is kept, so that no text can be read out of the memory.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.capture.attribution import place_of
from ragtrace.capture.values import LISTS, Doc, Prompt, Steer, Turn
from ragtrace.capture.words import SHINGLE, excerpt, hashes, shingles, tokens, unescaped, weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_PROMPTS = 32  # of a run that are looked at
_MOST_STEPS = 64
_MOST_BEFORE = 5  # prompts of a step that are remembered
_MOST_HASHES = 8_192  # of a prompt that are remembered
_MOST_IN_ALL = 131_072  # of all prompts, at about 100 bytes each
_MOST_HELD_CHARS = 200_000  # of a run's values
_MOST_JOINED_CHARS = 50_000  # of a list that is one text
_MOST_PLACES = 4
_FEWEST_WORDS = 8  # of a stretch
_FEWEST_TOGETHER = 12
_FEWEST_USED = 2  # words of the reply, where that is asked for
_FIRST_WORDS = 12
_FIRST_CHARS = 90
_FEWEST_HELD_CHARS = 20
_FEWEST_CUT_CHARS = 40
_FEWEST_MISSING = 5
_CUT_WORD = "0explained0"
_CUT = f" {_CUT_WORD} "
_DEPTH = 6
# Shingles in a row that are missing: at least five where all of a text is, and more in its middle.
_MISSING = re.compile(rb"\x01{5,}")  # one byte a word, of at most 100,000 characters
_STRETCH = re.compile(rb"\x00{8,}")  # 0 for a word that is not covered, of at most 100,000 characters
_REPLIES = attrgetter("replies")


class Prompted(NamedTuple):
    """A prompt that the answer goes back to.

    Attributes:
        step: workflow and names of scopes, outermost first; prompts of one step share a template.
        texts: of its messages but those of the roles tool and assistant.
        replies: how many replies of the run's were known before it, see `Explained.add_reply`.
        reply: what the model said to it, where the run has other evidence. Text without a place then counts only if
            the reply has two words from it that stand nowhere else in the prompt: of examples that are chosen for
            each question a reply has none. "" where nothing else was found: all such text counts.
    """

    step: str
    texts: Sequence[str]
    replies: int = 0
    reply: str = ""


class Unread(NamedTuple):
    """Text of a prompt that nothing explains.

    Attributes:
        place: of the value that holds it, as `state.rows`; "" of text that a function wrote.
        words: how many words it has together; three signs of an unspaced script are one.
        text: its first words.
    """

    place: str
    words: int
    text: str


class Explained:
    """Texts that the events of one run explain; made once for a run.

    A long text is mostly shown as it is. It is then cut out of the prompt, and its words are read only where the
    rest of a prompt needs them.

    Example:
        >>> known = Explained(["Where is Oslo?", "Oslo lies at the head of a fjord, below wooded hills."])
        >>> known.add_reply("At a fjord.")
        >>> known.left_of("Note: Oslo lies at the head of a fjord, below wooded hills.")
        ['note', '0explained0']

    Args:
        texts: the question, the history, texts of passages with their ids and metadata, arguments and results of
            tools, messages of user and assistant in the root's input. Without one nothing is explained.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.hashes: set[int] = set()
        self.short: set[tuple[str, ...]] = set()
        self._long: list[str] = []
        self._found: dict[str, tuple[int, list[tuple[int, int]], int]] = {}  # by text; a message is in many prompts
        self._whole = 0  # how many long texts are among the hashes
        self._replies: list[str] = []
        self._read = 0
        for text in dict.fromkeys(texts):
            self._add(text)

    def add_reply(self, *texts: str) -> None:
        """Add what a model replied, with the arguments of its calls; replies stand in the order of their ends."""
        self._replies.append("\n".join(texts))

    def go_to(self, replies: int) -> None:
        """Explain the first `replies` replies too; it never goes back."""
        for reply in self._replies[self._read : replies]:
            self._add(reply)
        self._read = max(self._read, min(replies, len(self._replies)))

    def left_of(self, text: str) -> list[str]:
        """Return the words of a text, with one in place of each long text that stands in it as it is.

        Texts stand mostly in their order, so that each is looked for behind the last, and cut out once.
        """
        looked, spans, near = self._found.get(text, (0, [], 0))
        for one in self._long[looked:]:
            at = place_of(one, text, near)
            if at >= 0:
                near = at + len(one)
                spans.append((at, near))
        self._found[text] = len(self._long), spans, near
        pieces = []
        end = 0
        for start, stop in sorted(spans):
            if start >= end:
                pieces.append(text[end:start])
            end = max(end, stop)
        return tokens(_CUT.join([*pieces, text[end:]]))

    def read_all(self) -> None:
        """Read the words of the long texts too, so that parts of them are known."""
        for text in self._long[self._whole :]:
            self.hashes.update(hashes(tokens(text)))
        self._whole = len(self._long)

    def _add(self, text: str) -> None:
        plain = unescaped(text).strip()
        if len(plain) >= _FEWEST_CUT_CHARS:
            self._long.append(plain)
            return
        words = tokens(plain)
        if len(words) >= SHINGLE:
            self.hashes.update(hashes(words))
        elif words:
            self.short.add((*words,))


class Memory:
    """Hashes of what the last prompts of each step held beside what was explained; of one process.

    It keeps at most 64 steps, the one used last longest, at most 5 prompts of each, and at most 131,072 hashes.
    Only one thread may use it: the pipeline's.
    """

    def __init__(self) -> None:
        self._steps: OrderedDict[str, deque[frozenset[int]]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def before(self, step: str) -> Sequence[frozenset[int]]:
        """Return the hashes of the last prompts of a step, the latest first; nothing for one that is new."""
        return (*self._steps.get(step, ()),)

    def add(self, step: str, left: set[int]) -> None:
        """Remember a prompt; one with more than 8,192 hashes is not."""
        if len(left) > _MOST_HASHES:
            return
        prompts = self._steps.setdefault(step, deque())
        self._steps.move_to_end(step)
        prompts.appendleft(frozenset(left))
        self._size += len(left)
        if len(prompts) > _MOST_BEFORE:
            self._size -= len(prompts.pop())
        while len(self._steps) > _MOST_STEPS or self._size > _MOST_IN_ALL:
            _, dropped = self._steps.popitem(last=False)
            self._size -= sum(map(len, dropped))


def unread(
    prompts: Sequence[Prompted], explained: Explained, held: Iterable[tuple[str, str]], memory: Memory
) -> list[Unread]:
    """Return text of a run's prompts that nothing explains, that of a place first; remember the prompts.

    A stretch is at least 8 words in a row. It counts where it stands in a value that is held, or where the last
    prompts of its step do not have it; the first prompt of a step is not compared. Less than 12 words together are
    nothing. Text that stands in several values has the place of the first. A value that is a whole message is
    compared as well, since instructions are handed on like that. One that is the whole prompt was rendered by a
    step.

    Args:
        prompts: those that the answer goes back to, at most the last 32; without one there is nothing to tell.
        explained: what is known; it takes up the replies on its way.
        held: what steps gave out and what the root was given, by places, see `held_in`; at most 200,000 characters.
        memory: of the process; changed.
    """
    values = _values(held, explained)
    found: dict[str, tuple[float, str]] = {}
    for prompt in sorted(prompts[-MOST_PROMPTS:], key=_REPLIES):
        explained.go_to(prompt.replies)
        for place, words, text in _unread_in(prompt, explained, values, memory):
            if words > found.get(place, (0,))[0]:
                found[place] = words, text
    placed = sorted(
        (Unread(place, round(words), text) for place, (words, text) in found.items() if place), key=_words
    )
    written = [Unread("", round(words), text) for place, (words, text) in found.items() if not place]
    return [*placed[:_MOST_PLACES], *written]


def held_in(value: object, place: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value with their places; a list as one text, without the names in it and with them.

    Messages, documents and rendered prompts are left out: they are read elsewhere. So is a text of less than 20
    characters, and what is nested deeper than 6. Of a list of more than 50,000 characters each part stands alone.

    Args:
        value: as events hold it.
        place: of the value, such as "input", "state" or "output of load".
        depth: of the value in the one that it was read from.

    Example:
        >>> [*held_in({"rows": [{"town": "Oslo", "hotel": "Zur alten Post"}, {"town": "Rome"}]}, "state")][0]
        ('state.rows', 'Oslo Zur alten Post Rome')
    """
    if isinstance(value, str):
        if len(value) >= _FEWEST_HELD_CHARS:
            yield place, value
    elif isinstance(value, Steer):
        yield from held_in(value.update, place, depth)
    elif depth >= _DEPTH or isinstance(value, Turn | Prompt | Doc):
        return
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from held_in(part, f"{place}.{name}", depth + 1)
    elif isinstance(value, LISTS):
        joined = " ".join(_cells(value, depth, is_named=False))
        if len(joined) > _MOST_JOINED_CHARS:
            for part in value:
                yield from held_in(part, f"{place}[*]", depth + 1)
        elif len(joined) >= _FEWEST_HELD_CHARS:
            yield place, joined
            yield place, " ".join(_cells(value, depth, is_named=True))


def _cells(value: object, depth: int, *, is_named: bool) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items() if depth < _DEPTH else ():
            if is_named:
                yield str(name)
            yield from _cells(part, depth + 1, is_named=is_named)
    elif isinstance(value, LISTS):
        for part in value if depth < _DEPTH else ():
            yield from _cells(part, depth + 1, is_named=is_named)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def _words(found: Unread) -> int:
    return -found.words


class _Value(NamedTuple):
    """A value that is held: its text, and what is not explained of it."""

    place: str
    text: str
    hashes: set[int]


def _values(held: Iterable[tuple[str, str]], explained: Explained) -> list[_Value]:
    places: dict[str, str] = {}
    room = _MOST_HELD_CHARS
    for place, text in held:
        plain = unescaped(text).strip()
        if _FEWEST_HELD_CHARS <= len(plain) <= room and plain not in places:
            room -= len(plain)
            places[plain] = place
    read = (_Value(place, text, _hashes_in(text, explained)) for text, place in places.items())
    return [one for one in read if one.hashes]


def _hashes_in(text: str, explained: Explained) -> set[int]:
    """Return the hashes of what is left of a text without what is explained.

    They are none of a text that is mostly explained: what is left is a frame around it.
    """
    words = explained.left_of(text)
    if 2 * sum(word != _CUT_WORD for word in words) < len(tokens(text)):
        return set()
    return {number for number, some in zip(hashes(words), shingles(words), strict=True) if _CUT_WORD not in some}


class _Text:
    """A text of a prompt: its words, with one in place of each explained text, and their hashes."""

    def __init__(self, text: str, explained: Explained) -> None:
        self.whole = unescaped(text)
        self.words = explained.left_of(self.whole)
        self.row = hashes(self.words)
        self.left = set(self.row) - explained.hashes

    def covered(self, missing: set[int], short: set[tuple[str, ...]]) -> bytearray:
        """Return a byte for each word: 0 where each shingle with it is missing, and no short value has it."""
        words = self.words
        covered = bytearray(b"\1") * len(words)
        flags = self._flags(missing)
        for run in _MISSING.finditer(flags):
            start = run.start() + SHINGLE - 1 if run.start() else 0
            end = run.end() if run.end() < len(flags) else len(words)
            if end - start >= _FEWEST_WORDS:
                covered[start:end] = bytes(map(_CUT_WORD.__eq__, words[start:end]))
                if short:
                    _cover_short(covered, words, start, end, short)
        return covered

    def excerpt(self, some: list[str]) -> str:
        """Return some of the words as the text has them."""
        words = tokens(self.whole)
        at = next((at for at in range(len(words)) if words[at : at + len(some)] == some), 0)
        return excerpt(self.whole, at, at + len(some))[:_FIRST_CHARS]

    def has_stretch(self, missing: set[int]) -> bool:
        """Tell whether so many shingles in a row are missing that there may be a stretch."""
        return len(missing) >= _FEWEST_MISSING and _MISSING.search(self._flags(missing)) is not None

    def _flags(self, missing: set[int]) -> bytes:
        return bytes(map(missing.__contains__, self.row))


def _unread_in(
    prompt: Prompted, explained: Explained, values: Sequence[_Value], memory: Memory
) -> Iterator[tuple[str, float, str]]:
    """Yield places, words and first words of what one prompt has unread; remember it."""
    before = memory.before(prompt.step)
    texts = [_Text(text, explained) for text in prompt.texts]
    is_open = any(
        (before and one.has_stretch(one.left.difference(*before)))
        or any(not one.left.isdisjoint(value.hashes) for value in values)
        for one in texts
    )
    if is_open:
        explained.read_all()
        for one in texts:
            one.left -= explained.hashes
    left = set().union(*[one.left for one in texts])
    memory.add(prompt.step, left)
    if not is_open:
        return
    totals = _Totals()
    rendered = " ".join(" ".join(one.whole for one in texts).split())
    for one in texts:
        fresh = one.left.difference(*before) if before else set()
        covered: bytearray | None = None
        for value in values:
            if one.left.isdisjoint(value.hashes) or " ".join(value.text.split()) == rendered:
                continue
            if value.text != one.whole.strip():
                covered = covered or one.covered(one.left, explained.short)
                totals.add(value.place, one, _shared(covered, one.row, value.hashes))
            else:
                # A message that is the value: a document that differs each time, or instructions.
                totals.add(value.place, one, one.covered(fresh if before else one.left, explained.short))
                fresh = set()
        if fresh and len(left) <= _MOST_HASHES:
            rest = one.covered(fresh, explained.short)
            if covered is not None:
                _cover_too(rest, covered)
            totals.add("", one, rest)
    yield from totals.told(prompt.reply, texts)


class _Totals:
    """The stretches of one prompt, by place."""

    def __init__(self) -> None:
        self._stretches: dict[str, list[tuple[float, _Text, list[str]]]] = {}

    def add(self, place: str, text: _Text, covered: bytearray) -> None:
        """Add the stretches that are not covered."""
        for run in _STRETCH.finditer(bytes(covered)):
            some = text.words[run.start() : run.end()]
            size = weight(some)
            if size >= _FEWEST_WORDS:
                self._stretches.setdefault(place, []).append((size, text, some))

    def told(self, reply: str, texts: Sequence[_Text]) -> Iterator[tuple[str, float, str]]:
        """Yield places that have enough words, with their words and the first of them."""
        for place, stretches in self._stretches.items():
            total = sum(size for size, _, _ in stretches)
            if total < _FEWEST_TOGETHER:
                continue
            if reply and not place:
                alone = Counter(word for _, _, some in stretches for word in some)
                shown = Counter(word for text in texts for word in tokens(text.whole))
                used = [word for word in {*tokens(reply)} if 0 < alone[word] == shown[word]]
                if weight(used) < _FEWEST_USED:
                    continue
            _, text, some = stretches[0]
            yield place, total, text.excerpt(some[:_FIRST_WORDS])


def _cover_short(
    covered: bytearray, words: Sequence[str], start: int, end: int, short: set[tuple[str, ...]]
) -> None:
    for size in range(1, SHINGLE):
        for at in range(max(start - size + 1, 0), end):
            if (*words[at : at + size],) in short:
                covered[at : at + size] = b"\1" * len(words[at : at + size])


def _shared(covered: bytearray, row: Sequence[int], value: set[int]) -> bytearray:
    """Return 0 for each word that was not covered and that a value has; cover a stretch of these by 2."""
    shared = bytearray(b"\1") * len(covered)
    for at, one in enumerate(map(value.__contains__, row)):
        if one:
            shared[at : at + SHINGLE] = covered[at : at + SHINGLE]
    for run in _STRETCH.finditer(bytes(shared)):
        covered[run.start() : run.end()] = b"\2" * (run.end() - run.start())
    return shared


def _cover_too(rest: bytearray, covered: bytearray) -> None:
    """Cover the words that stand in a value, which `_shared` covered."""
    for at, one in enumerate(covered):
        if one > 1:
            rest[at] = 1
