"""Fit the attributes of a span into its bytes, once: texts by what the trace has left, lists by rank."""

from __future__ import annotations

import sys
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ragtrace import semconv
from ragtrace.telemetry.spans.limits import DEFAULT_COUNT
from ragtrace.telemetry.wire import NO_LIMITS, AttributeLimits, clean_value, cut_value, longest, to_json
from ragtrace.text import fit, length_before_cut, share_of, size_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opentelemetry.util.types import AnyValue

MAX_ATTRIBUTES = 512  # where the SDK has no limit
RESERVED_ATTRIBUTES = 24  # for our own names, and a few that the application's span processors add
UNLIMITED = sys.maxsize
_MOST_CHARACTER_BYTES = 4  # in UTF-8
_NUMBER_BYTES = 8
_LEAST_TEXT = 40  # bytes of a text that is cut: its mark
_DOCUMENTS = 0.75  # of the texts of a trace
_MOST_MARK_BYTES = 512  # of the names of what was cut
_MARK_SHARE = 16  # of the budget, where that is less


class Limit(NamedTuple):
    """Bytes and attributes that a value of a span may take.

    Attributes:
        texts: bytes; over them texts are cut or left out, and ids, scores and ranks stay.
        whole: bytes of names and values; over them the lowest ranks go too.
        attribute: characters of one attribute, the SDK's own limit; a text beyond it is cut by the budget.
        attributes: number of attributes.
        sent: texts that an earlier span of the trace carries.
    """

    texts: int = UNLIMITED
    whole: int = UNLIMITED
    attribute: int = UNLIMITED
    attributes: int = DEFAULT_COUNT
    sent: Collection[str] = ()


class Value:
    """A value that is written once its limit is known.

    Attributes:
        texts: those that `write` wrote, which no later span repeats.
        is_cut: whether `write` left out what it does not tell itself.
    """

    texts: Collection[str] = ()
    is_cut = False

    def most(self, left: int, reserve: int) -> int:  # noqa: ARG002 - of ids and numbers there is no most
        """Return the bytes of texts that it may take of those that a trace has left, and of their reserve."""
        return UNLIMITED

    def takes(self, written: Mapping[str, AnyValue], reserve: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the bytes of texts that were written, and what they leave of the reserve."""
        return 0, reserve

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the attributes of this value within a limit; none where it cannot be cut that far."""
        raise NotImplementedError


class Said(Value):
    """A text that the reserve is for: a question, an answer, messages."""

    def takes(self, written: Mapping[str, AnyValue], reserve: int) -> tuple[int, int]:
        """Return the bytes that were written; they are taken from the reserve first."""
        size = sum(map(_value_bytes, written.values()))
        return size, max(reserve - size, 0)


class Text(Said):
    """A text of the application; a cut says so.

    Args:
        text: the text.
        share: of the reserve that it may take.
    """

    def __init__(self, text: str, share: float) -> None:
        self.text, self.share = text, share

    def most(self, left: int, reserve: int) -> int:  # noqa: ARG002
        """Return its share of the reserve."""
        return int(reserve * self.share)

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the text, cut at its end; one that is JSON stays JSON."""
        text, room = clean_value(self.text), limit.whole - len(name)
        kept = cut_value(text, min(max(limit.texts, _LEAST_TEXT), room))
        self.is_cut = not says_cut(text, kept)
        return {} if kept is None or room < 0 else {name: kept}


class Json(Value):
    """A value as one JSON document, which stays one where it is cut."""

    def __init__(self, value: object) -> None:
        self.value = value

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:
        """Return the document, cut to its room."""
        text = to_json(self.value)
        kept = cut_value(text, limit.whole - len(name))
        self.is_cut = kept != text
        return {} if kept is None else {name: kept}


class Lists(Value):
    """Lists by rank, one JSON document each, that lose the same lowest ranks."""

    def __init__(self, lists: Mapping[str, Sequence[object]]) -> None:
        self.lists = lists

    def write(self, name: str, limit: Limit) -> dict[str, AnyValue]:  # noqa: ARG002 - the lists have names
        """Return the documents."""
        written: dict[str, AnyValue] = {each: to_json(list(rows)) for each, rows in self.lists.items()}
        sizes = [len(each) + size_bytes(str(text)) for each, text in written.items()]
        self.is_cut = False
        if sum(sizes) <= limit.whole and all(len(str(text)) <= limit.attribute for text in written.values()):
            return written
        room = limit.whole - sum(len(each) + 2 for each in self.lists)
        kept = ranks_within(list(self.lists.values()), room, limit.attribute)
        self.is_cut = True
        return {each: to_json(list(rows[:kept])) for each, rows in self.lists.items()}


def ranks_within(lists: Sequence[Sequence[object]], whole: int, each: int) -> int:
    """Return how many ranks of some lists take at most `whole` bytes together and `each` bytes in one document.

    Example:
        >>> ranks_within([["a", "b"], [0.5, 0.25]], 12, 99)
        1
    """
    sizes = [[size_bytes(to_json(row)) + 1 for row in rows] for rows in lists]
    ranks = [sum(of) for of in zip_longest(*sizes, fillvalue=0)]
    return min(len(fit(ranks, int, whole)), *(len(fit(column, int, each - 1)) for column in sizes))


class Budget:
    """The bytes of the spans of one trace; not thread-safe, one for each run.

    Texts of all spans take at most `span_bytes` together. Documents leave a quarter of them in reserve for
    questions, answers and messages. Names and values of a span take at most `span_bytes` too.

    Args:
        span_bytes: of one span, and of the texts of all spans.
        limits: the SDK's own. What is over them is cut here: the SDK cuts JSON in the middle, drops the oldest
            attributes, and says nothing.

    Attributes:
        left: bytes of texts.
        reserve: the part of `left` that documents leave alone.
        sent: texts that a span carries already.

    Example:
        >>> lists = Lists({"ragtrace.prompt.ids": ["a", "b", "c"]})
        >>> found = Budget(600).fit({"ragtrace.prompt.ids": lists, "user.id": "u" * 9_000, "session.id": None})
        >>> found["ragtrace.prompt.ids"], len(found["user.id"]), found["ragtrace.span.cut"]
        ('["a","b","c"]', 505, ('user.id',))
        >>> Budget(600, limits=AttributeLimits(length=40)).fit({"user.id": '["' + "u" * 99 + '"]'})
        {'user.id': '["uuuuuuuuuuuuuuu…[cut, 99 characters]"]', 'ragtrace.span.cut': ('user.id',)}
    """

    def __init__(self, span_bytes: int, *, limits: AttributeLimits = NO_LIMITS) -> None:
        self.span_bytes = span_bytes
        self.left = span_bytes
        self.reserve = span_bytes - int(span_bytes * _DOCUMENTS)
        self.sent: set[str] = set()
        self._attribute = UNLIMITED if limits.length is None else limits.length
        self._attributes = MAX_ATTRIBUTES if limits.most is None else limits.most
        self._short: dict[str, None] = {}  # attributes of the span in `fit` that are over a limit of the SDK

    def fit(self, attributes: Mapping[str, object], *, taken: int = 0, names: int = 0) -> dict[str, AnyValue]:
        """Return the attributes of one span, clean, in at most `span_bytes` of names and values.

        None is left out. Over the budget lists by rank lose their lowest ranks, and texts their end. Of too many
        attributes the last are left out. ``ragtrace.span.cut`` then names the attributes that are not whole.

        Args:
            attributes: values as the SDK takes them, or a `Value` each; the most needed first.
            taken: bytes of attributes that the span has already.
            names: how many it has.
        """
        before = self.left, self.reserve
        self._short = {}
        kept: dict[str, AnyValue] = {}
        for name, value in attributes.items():
            if type(value) is str and value.isascii() and len(value) <= self._attribute:  # nearly all of them
                kept[name] = value
            elif value is not None:
                kept.update(self._written(name, value, before[1]))
        room, most = self.span_bytes - taken, max(self._attributes - names, 0)
        kept = self._marked(kept, most)
        if sum([len(name) + _most_bytes(value) for name, value in kept.items()]) > room and bytes_of(kept) > room:
            self.left, self.reserve = before
            kept = self._marked(self._cut(attributes, room), most)
        for value in attributes.values():
            if isinstance(value, Value) and value.texts:
                self.sent.update(value.texts)
        return kept

    def _marked(self, kept: dict[str, AnyValue], most: int) -> dict[str, AnyValue]:
        """Return at most so many attributes, with the names of those that are not whole."""
        cut = kept.pop(semconv.SPAN_CUT, None)
        short = dict.fromkeys(map(str, cut if isinstance(cut, tuple) else ())) | self._short
        if len(kept) + bool(short) > most:
            over = list(kept)[max(most - 1, 0) :]
            short |= dict.fromkeys(over)
            kept = dict(list(kept.items())[: max(most - 1, 0)])
        if short and most:
            names = [name[: self._attribute] for name in short]
            told = fit(names, size_bytes, self._mark_bytes(self.span_bytes))
            kept[semconv.SPAN_CUT] = told
        return kept

    def _mark_bytes(self, budget: int) -> int:
        return min(_MOST_MARK_BYTES, budget // _MARK_SHARE)

    def _write(self, name: str, value: Value, reserve: int, whole: int = UNLIMITED) -> dict[str, AnyValue]:
        """Write a value and take its texts from what is left; `reserve` is that of the span's beginning."""
        texts = min(value.most(self.left, reserve), whole)
        written = value.write(name, Limit(texts, whole, self._attribute, self._attributes, self.sent))
        size, self.reserve = value.takes(written, self.reserve)
        self.left = max(self.left - size, 0)
        return written

    def _cut(self, attributes: Mapping[str, object], budget: int) -> dict[str, AnyValue]:
        """Return the attributes, of which the largest are cut to the share at which all fit."""
        before = self.left, self.reserve
        whole = {name: self._written(name, value, before[1]) for name, value in attributes.items()}
        self.left, self.reserve = before
        sizes = {name: bytes_of(written) for name, written in whole.items()}
        mark = self._mark_bytes(budget)
        room = budget - mark - len(semconv.SPAN_CUT)
        share, total = share_of(list(sizes.values()), room), sum(sizes.values())
        most: dict[str, int] = {}
        shortened: list[str] = []
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            if sizes[name] > share or total > room:
                most[name] = share
                total -= sizes[name] - min(sizes[name], share)
                shortened += [each for each, value in whole[name].items() if isinstance(value, str | tuple)]
        kept: dict[str, AnyValue] = {}
        for name, value in attributes.items():
            kept |= self._written(name, value, before[1], most.get(name, UNLIMITED))
        return {**kept, semconv.SPAN_CUT: tuple(shortened)}

    def _written(self, name: str, value: object, reserve: int, whole: int = UNLIMITED) -> dict[str, AnyValue]:
        """Return the attributes of a value within its room and the SDK's limit on each."""
        if isinstance(value, Value):
            written = self._write(name, value, reserve, whole)
            if value.is_cut:
                self._short[name] = None
        else:
            written = _plain(name, value, whole)
        if self._attribute == UNLIMITED:
            return written
        found: dict[str, AnyValue] = {}
        for each, one in written.items():
            if longest(one) > self._attribute:
                self._short[each] = None
                if (shorter := cut_value(one, self._attribute, len)) is not None:
                    found[each] = shorter
            else:
                found[each] = one
        return found


def says_cut(text: str, kept: object) -> bool:
    """Return whether a text is whole, or ends with the mark of its cut.

    Example:
        >>> says_cut("Oslo", "Oslo"), says_cut("Oslo" * 9, "O…[cut, 36 characters]"), says_cut("Oslo", "Os")
        (True, True, False)
    """
    return kept == text or (isinstance(kept, str) and length_before_cut(kept) == len(text))


def _plain(name: str, value: object, whole: int) -> dict[str, AnyValue]:
    """Return a value as the SDK takes it, cut to its room with its name; none where it cannot be cut that far."""
    cleaned = None if value is None else clean_value(value)
    if cleaned is None:
        return {}
    if whole == UNLIMITED:
        return {name: cleaned}
    room = whole - len(name)
    if isinstance(cleaned, str):
        cleaned = cut_value(cleaned, room)
    elif isinstance(cleaned, tuple):
        cleaned = fit(cleaned, _value_bytes, room)
    return {name: cleaned} if cleaned is not None and _value_bytes(cleaned) <= room else {}


def _most_bytes(value: object) -> int:
    """Return a bound on the bytes of a value that costs no encoding."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value) * _MOST_CHARACTER_BYTES
    return _value_bytes(value) if isinstance(value, tuple) else _NUMBER_BYTES


def bytes_of(attributes: Mapping[str, object]) -> int:
    return sum(len(name) + _value_bytes(value) for name, value in attributes.items())


def _value_bytes(value: object) -> int:
    if isinstance(value, str):
        return size_bytes(value)
    return sum(map(_value_bytes, value)) if isinstance(value, tuple) else _NUMBER_BYTES
