"""Tell what came from outside the model: not its own words, but passages in another form, and rows of a database.

Three questions stand here, which both integrations ask. What of a tool's result is new (`OwnWords`)? Which passages
was a text made of (`Origins`)? Which values are rows of a database, and as which texts may a prompt show them
(`rows_in`)?
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, time
from decimal import Decimal
from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.capture.messages import ROLES
from ragtrace.capture.passages import RERANK_SCORE_KEYS
from ragtrace.capture.values import VECTOR, Opaque
from ragtrace.text import MAX_LITERAL_CHARS, MAX_NAME_CHARS, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

# Scripts without blanks between words: Chinese characters by two, and the runs of each Japanese syllabary.
_UNSPACED = ("\u4e00-\u9fff\u3400-\u4dbf\u3005", "\u3041-\u309f", "\u30a1-\u30ff")
_WORD = re.compile(  # of at most 100,000 characters
    rf"[{_UNSPACED[0]}]{{1,2}}|[{_UNSPACED[1]}]+|[{_UNSPACED[2]}]+|[^\W_{''.join(_UNSPACED)}]+"
)
_NAME_PART = re.compile(r"[A-Z]?[^A-Z]+|[A-Z]+")  # of a name in camel case
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf]|([\"'/\\]))")
_UUID = re.compile(r"\b\w{8}-\w{4}-\w{4}-\w{4}-\w{12}\b")
_NUMBERING = re.compile(r"^[ \t]*\d{1,3}[.)](?=\s)", re.MULTILINE)
_LINK = re.compile(r"[^\W\d]\S*[./]\S+")
_UNIT_ENDS = re.compile(r"[\n\r]+|(?<=[.!?;:])\s+|[\"“”«»]+")  # of at most 100,000 characters
_EDGES = " \t\r\n,;:|{}[]()<>\"'`*#=-\N{EN DASH}\N{EM DASH}"
_HEAD_CHARS = 80
_LONGEST_CHARS = 100_000  # of a text that is looked at; a longer one is evidence
_MOST_TEXTS = 512  # of one run's models
_MOST_UNITS = 256  # sentences of one text
_MOST_LEAVES = 1_000
_DEPTH = 6
_TELLING_WORDS = 4  # fewer stand in many another text by chance
_TELLING_CHARS = 20
_MOST_FRAME_WORDS = 8


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words of a line that says only that something was done with the arguments.
_STATUS = _set(
    """
    a acknowledged added affected agent all an and appended applicable applied are as assigned assistant back
    been bytes cart characters chars complete completed connected connecting continue control created current
    delegated deleted done draft edited email ensure entries entry escalated executed file files findings for
    from got handed handing handoff handover has have human i id idea ideas if in instance instances into is it
    item items kept length lines list ll logged made marked me memo memories memory message modified moved my
    new note noted notes now null of off ok okay outline over plan plans please proceed progress recorded
    reflection reflections remaining remember remembered removed renamed replaced report reviewed routed routing
    row rows s saved scheduled scratchpad section sections sent state step steps stored string submitted success
    successful successfully task tasks thank thanks that the them thinking this thought thoughts to todo todos
    track transfer transferred transferring understood updated use user ve was were will with words write
    written wrote you your
    aktualisiert angelegt aufgabe aufgaben der die das eingetragen erfolgreich erledigt erstellt gespeichert
    gemerkt hinzugefügt ist liste notiert notiz notizen vermerkt wurde wurden
    ajouté ajoutée bien c enregistré enregistrée est été fait la le les mis noté notée tâche tâches terminé
    actualizado agregado añadido anotado guardada guardado hecho listo nota notas se tarea tareas
    保存 記録 追加 更新 完了 登録 メモ タスク しました されました を に が は です ました 已 记录 添加 完成 成功
    an danke datei eintrag
    geschrieben und verstanden weitergeleitet übergeben
    au aux avec et mémorisé mémorisée note
    sauvegardé sauvegardée succès transféré transférée à
    agregada con correctamente el exitosamente ha transferido
    éxito
    メモを保存しました 保存しました 記録しました 完了しました メモしました 追加しました
    """
)
_PLACES = _set("am at by from im on per pour um à")  # in a line that says what was done: "booked on Monday at 9"
# Words before what was asked, in front of a result.
_HEADS = _set(
    """
    about answer answers argument arguments asked command fetched find hits input looked output query
    question reply report request response result results retrieved return returned said says search
    searched searching summary topic
    """
)
_SAID = _set("assertion claim content draft false hypothesis premise proposal statement text true verdict your")
# Names of arguments that ask for something, and state nothing.
_REQUESTS = _set("id keyword keywords path q queries query question search search_query term terms title topic url")
_ASKS = _set("q query queries question search_query sub_query sub_question url")
_QUERIES = (_ASKS - {"url"}) | _set("keyword keywords search")  # of what a model searched for before
_VERDICTS = _set(
    """
    confirmed contradicted correct false found incorrect invalid missing never no none not refuted right
    supported true unsupported valid wrong yes
    """
)
# A line that says "done" is what was asked of these.
_READS = _set(
    """
    ask check fetch find get has inspect is list load look lookup query read recall retrieve search show state
    status track verify view where
    """
)
_READ = _set("details history info lookup query search state status")  # the last word of such a tool's name
_WRITES = _set(
    """
    handoff memorise memorize note reflect remember save think todo transfer write
    """
)
# Words of a line that says what was done; a small number beside one counts what it was done with.
_DONE = _set(
    """
    added affected appended created deleted done edited executed marked modified moved recorded remaining removed
    replaced saved sent stored updated written wrote
    """
)
_COUNT = re.compile(r"\d{1,3}")
# Words that a store of notes, or a program, writes beside a sentence that it gives back: with numbers, its labels.
_LABELS = _set(
    """
    age ago attempt chunk confidence count documents found hours importance index iteration level ms minutes page
    priority relevance results round rounds score seconds similarity sources tokens total version weight
    """
)
_LABEL = re.compile(r"\d{1,4}|(?=\w*\d)(?=\w*[a-z])\w{2,36}")  # a number of at most four digits, or an id
_STATED_WORDS = 6  # of a sentence beside which a number may be a label
# What a model keeps for itself; a line that says that it was kept may name its id.
_NOTES = _set("memo memories memory note notes reflection reflections scratchpad thought thoughts todo todos")
_HANDS_OVER = _set("handoff handover transfer")  # in names of tools that only pass a conversation on
_LONGEST_PASSED_ON = 20  # words of the line in which such a tool says so
_STATUS_KEYS = _set(
    """
    ack acknowledged added bytes code created detail details done error errors is_error message msg ok okay
    recorded saved state status status_code statuscode stored succeeded success successful type updated
    written
    """
)
_ID_KEYS = _set(
    """
    created created_at duration elapsed elapsed_ms id key modified saved_at timestamp took updated updated_at uuid
    """
)
_NOTHING = frozenset(("", "none", "null", "undefined", "[]", "{}", '""', "''", "()"))
_LISTS = (_STATUS, _HEADS, _SAID, _VERDICTS, _READS, _READ, _DONE, _WRITES, _NOTES, _HANDS_OVER, _LABELS, _NOTHING)
_FIRST_MARK = "\u1c5a"  # Ol Chiki: letters without case


def _groups() -> dict[tuple[bool, ...], list[str]]:
    groups: dict[tuple[bool, ...], list[str]] = {}
    for word in sorted(word for word in frozenset().union(*_LISTS) if len(word) > 2 and word.isalpha()):
        groups.setdefault(tuple(word in words for words in _LISTS), []).append(word)
    return groups


# The words of the lists above by their kind, each kind with a letter: a masked word ends with that of its kind.
_WORDS_BY_MARK = {chr(ord(_FIRST_MARK) + number): words for number, words in enumerate(_groups().values())}
MARKS = {word: mark for mark, words in _WORDS_BY_MARK.items() for word in words}
"""The letter with which the mask of a word ends that a rule knows, see `ragtrace.capture.masks`."""


def _known(word: str) -> str:
    """Return a word as the lists have it: of a masked one, another of its kind."""
    return _WORDS_BY_MARK[word[-1]][0] if word[-1:] in _WORDS_BY_MARK else word


_MESSAGE_REPR = re.compile(r"^content=['\"\[].*\bresponse_metadata=", re.DOTALL)


class _Words(NamedTuple):
    """A text's words in lower case with a blank on each side, and where each begins and ends in the text."""

    joined: str
    words: list[str]
    spans: list[tuple[int, int]]

    def places_of(self, cuts: Iterable[int]) -> list[int]:
        """Return the places of the first words behind places in the text."""
        begins = [begin for begin, _ in self.spans]
        return [bisect_left(begins, cut) for cut in cuts]


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(escape: re.Match[str]) -> str:
    code, mark = escape.groups()
    return chr(int(code, 16)) if code else mark or " "


def _words_of(text: str) -> _Words:
    found = list(_WORD.finditer(text, 0, _LONGEST_CHARS))
    words = [one.group().casefold() for one in found]
    return _Words(f" {' '.join(words)} ", words, [one.span() for one in found])


def _normal(text: str) -> str:
    """Return a text's words with one blank around each; a blank where there are none."""
    words = [word.casefold() for word in _WORD.findall(_unescaped(text[:_LONGEST_CHARS]))]
    return f" {' '.join(words)} " if words else " "


def _size(normal: str) -> int:
    return normal.count(" ") - 1


def _leaves(value: object, depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yield the scalars in a value, each with the name that it stands under."""
    if depth > _DEPTH:
        return
    if isinstance(value, Mapping):
        for name, part in value.items():
            if isinstance(part, Mapping | list | tuple | set):
                yield from _leaves(part, depth + 1)
            else:
                yield str(name), part
    elif isinstance(value, list | tuple | set):
        for part in value:
            if isinstance(part, Mapping | list | tuple | set):
                yield from _leaves(part, depth + 1)
            else:
                yield "", part
    else:
        yield "", value


def _names_in(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, Mapping) and depth <= _DEPTH:
        for name, part in value.items():
            yield from _WORD.findall(str(name)[:MAX_NAME_CHARS].casefold())
            yield from _names_in(part, depth + 1)
    elif isinstance(value, list | tuple) and depth <= _DEPTH:
        for part in value:
            yield from _names_in(part, depth + 1)


def _parsed(text: str) -> object:
    """Return the value that a text writes out, as JSON or as Python does; None for other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        return literal_eval(text.strip()) if len(text) <= MAX_LITERAL_CHARS else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _sizes_in(value: object, depth: int = 0) -> Iterator[int]:
    """Yield how many parts each list in a value has."""
    if depth <= _DEPTH and isinstance(value, Mapping | list):
        if isinstance(value, list):
            yield len(value)
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _sizes_in(part, depth + 1)


def _texts_in(value: object) -> list[str]:
    return [str(leaf) for _, leaf in islice(_leaves(value), _MOST_LEAVES) if leaf is not None]


class _Own(NamedTuple):
    """One text of the model: its words, and its sentences' words; a query asks an index for something."""

    whole: str
    units: tuple[str, ...]
    is_query: bool = False

    @property
    def reads_a_database(self) -> bool:
        """Whether it is SQL, SPARQL or Cypher, which has the values that it asks for."""
        joined = self.whole
        is_sql = " select " in joined and (" from " in joined or " where " in joined)
        return is_sql or (" match " in joined and " return " in joined)


def _own(text: str, name: str = "") -> _Own:
    plain = _unescaped(text[:_LONGEST_CHARS])
    whole = _normal(plain)
    units = (_normal(unit) for unit in islice(_UNIT_ENDS.split(plain), _MOST_UNITS))
    return _Own(whole, tuple({*units} - {" ", whole}), name.casefold() in _QUERIES)


class OwnWords:
    """Words of the models of one run: their replies, and what they gave to their tools.

    A result that only repeats such words is no evidence, in whatever frame, order or notation it repeats them, and
    neither is a line that says that something was done.

    Example:
        >>> own = OwnWords()
        >>> own.add({"note": "Books may be kept for 365 days."})
        >>> own.evidence_in("Saved: Books may be kept for 365 days."), own.evidence_in("Books are free.")
        ([], ['Books are free.'])
    """

    __slots__ = ("_read", "_unread")

    def __init__(self) -> None:
        self._read: dict[str, _Own] = {}
        self._unread: list[object] = []

    def add(self, said: object) -> None:
        """Take a reply, or the arguments of a call; it is read when asked for, and nothing follows most answers."""
        self._unread.append(said)

    @property
    def _texts(self) -> dict[str, _Own]:
        unread, self._unread = self._unread, []
        for said in unread:
            for name, leaf in islice(_leaves(said), _MOST_LEAVES):
                if isinstance(leaf, str) and len(self._read) < _MOST_TEXTS:
                    one = _own(leaf, name)
                    if _size(one.whole) > 1:
                        self._read.setdefault(one.whole, one)
        return self._read

    def __bool__(self) -> bool:
        """Tell whether the models have said anything yet."""
        return bool(self._texts)

    def holds(self, text: str, arguments: object = None) -> bool:
        """Tell whether a model of this run said all of a text; `arguments` are of the call that gave it.

        Example:
            >>> own = OwnWords()
            >>> own.add("The lab is in Oslo, at the harbour.")
            >>> own.holds("The lab is in Oslo"), own.holds("The lab is in Rome")
            (True, False)
        """
        if len(text) > _LONGEST_CHARS or not (self._texts or arguments):
            return False
        if arguments is None and not self._begin(text):
            return False
        plain = _unescaped(text)
        words = _words_of(plain)
        if len(words.words) < _TELLING_WORDS:
            return False
        return not self._rest(words, plain, arguments)

    def says(self, value: str) -> bool:
        """Tell whether a model of this run said a value, of whatever length, and not in a query.

        Example:
            >>> own = OwnWords()
            >>> own.add("It may be kept for 28 days.")
            >>> own.says("28 days"), own.says("28 weeks")
            (True, False)
        """
        normal = _normal(value)
        said = (one for one in self._texts.values() if not (one.is_query or one.reads_a_database))
        return normal != " " and any(normal in own.whole for own in said)

    def share(self, text: str) -> float:
        """Return the share of a text's words, 0 to 1, that models of this run said, several in a row.

        Example:
            >>> own = OwnWords()
            >>> own.add("The lab is in Oslo, at the harbour.")
            >>> own.share("# Report: The lab is in Oslo, at the harbour."), own.share("Rome.")
            (0.888..., 0.0)
        """
        plain = _unescaped(text[:_LONGEST_CHARS])
        words = _words_of(plain)
        return 1 - len(self._rest(words, plain)) / len(words.words) if words.words else 0.0

    def _rest(self, words: _Words, plain: str, arguments: object = None) -> list[int]:
        """Return the places of the words that no model of this run said."""
        coverage = _Coverage(words, plain)
        for own in (*self._texts.values(), *map(_own, _texts_in(arguments))):
            coverage.take(own, _TELLING_WORDS)
        return coverage.rest()

    def _begin(self, text: str) -> bool:
        """Tell whether a text of the models has the first two words of a text; most have not."""
        first = _words_of(_unescaped(text[:_HEAD_CHARS])).words
        if len(first) < 3 and len(text) > _HEAD_CHARS:  # the second may be cut
            return True
        start = f" {' '.join(first[:2])} "
        return any(start in own.whole for own in self._texts.values())

    def evidence_in(
        self, text: str, arguments: object = None, name: str = "", inner: Iterable[str] = ()
    ) -> list[str]:
        """Return what a tool's text says beyond the model's own words: the whole text, parts of it, or nothing.

        Statements among the arguments are left out where the text says more; a question that it repeats stays.

        Args:
            text: the result.
            arguments: what the tool was called with.
            name: the tool's name.
            inner: what models said inside the tool.

        Example:
            >>> own = OwnWords()
            >>> own.evidence_in("12", {"a": 3, "b": 4}, "multiply"), own.evidence_in("Saved.", {}, "save_note")
            (['12'], [])
        """
        bare = text.strip()
        if _known(bare.lower()) in _NOTHING or _MESSAGE_REPR.match(bare):
            return []
        if len(text) > _LONGEST_CHARS:
            return [text]
        return _Result(self._texts.values(), bare, arguments, name, inner).evidence(text)


class _Coverage:
    """Words of a text that stand in other texts."""

    def __init__(self, words: _Words, plain: str) -> None:
        self.words, self.plain = words, plain
        self.covered = bytearray(len(words.words))
        self.telling = 0  # words in the longest run that was taken
        starts, at = [], 0
        for word in words.words:
            starts.append(at)
            at += len(word) + 1
        self._starts = starts
        self._segments: list[tuple[int, int]] | None = None

    def rest(self) -> list[int]:
        """Return the places of the words that stand nowhere else."""
        return [place for place, is_covered in enumerate(self.covered) if not is_covered]

    def take(self, own: _Own, least_words: int) -> None:
        """Cover what stands in the text of one of the model's texts, and what of the text stands in that."""
        if _size(own.whole) >= min(least_words, 2):
            self.cover(own.whole)
        telling, self.telling = self.telling, 0
        for unit in sorted(own.units, key=len, reverse=True):
            if _size(unit) >= (1 if self.telling >= _TELLING_WORDS else least_words):
                self.cover(unit)
        self.telling = max(self.telling, telling)
        for start, end in self._in_segments():
            if end - start >= _TELLING_WORDS and not all(self.covered[start:end]):
                # The last word may be cut.
                piece = f" {' '.join(self.words.words[start:end])}"
                if piece in own.whole:
                    self._mark(start, end)

    def cover(self, piece: str, is_taken: Callable[[int], bool] | None = None) -> None:
        """Cover a piece where it stands; `is_taken` is asked with the place of its first word."""
        joined, size = self.words.joined, _size(piece)
        at = joined.find(piece)
        while at >= 0:
            place = bisect_left(self._starts, at)
            if is_taken is None or is_taken(place):
                self._mark(place, place + size)
            at = joined.find(piece, at + len(piece) - 1)

    def leave_out(self, mark: re.Pattern[str]) -> None:
        """Cover what says nothing, as the number of an item: it is no word of the model's."""
        cuts = [cut for found in mark.finditer(self.plain) for cut in found.span()]
        places = iter(self.words.places_of(cuts) if cuts else ())
        for start, end in zip(places, places, strict=True):
            self.covered[start:end] = b"\1" * (end - start)

    def _mark(self, start: int, end: int) -> None:
        self.covered[start:end] = b"\1" * (end - start)
        self.telling = max(self.telling, end - start)

    def _in_segments(self) -> list[tuple[int, int]]:
        """Return the lines and sentences of the text, as places of their first words and behind their last."""
        if self._segments is None:
            cuts = [0, *(cut.end() for cut in _UNIT_ENDS.finditer(self.plain)), len(self.plain) + 1]
            places = self.words.places_of(cuts[: 4 * _MOST_UNITS])
            self._segments = [(one, other) for one, other in pairwise(places) if other > one]
        return self._segments


class _Result:
    """A tool's result, held against the arguments of the call and what models have said."""

    def __init__(self, said: Iterable[_Own], text: str, arguments: object, name: str, inner: Iterable[str]) -> None:
        self.plain = _unescaped(text)
        self.words = _words_of(self.plain)
        self.value = _parsed(text)
        given = _parsed(arguments) or arguments if isinstance(arguments, str) else arguments
        leaves = _texts_in(given)
        self.arguments = [_own(leaf) for leaf in leaves]
        self.statements = [
            _own(str(leaf))
            for key, leaf in islice(_leaves(given), _MOST_LEAVES)
            if isinstance(leaf, str) and key.casefold() not in _REQUESTS and not leaf.rstrip().endswith("?")
        ]
        self.inner = [_own(one) for one in inner if one.strip()]
        self.said = [*self.inner, *said]
        parts = _WORD.findall(name[:MAX_NAME_CHARS])
        self.named = [word.casefold() for part in parts for word in _NAME_PART.findall(part)]
        self.stems = tuple({one.removesuffix("e") for one in self.named})
        self.echoes = {*_names_in(given), *_STATUS, *_HEADS, *_VERDICTS, *_SAID}
        self.frame = {*map(_known, (*self.named, *_names_in(given), *_names_in(self.value)))}

    @property
    def is_reader(self) -> bool:
        """Whether the tool was asked for a state, so that "done" is an answer."""
        named = self.named
        return bool(named) and (named[0] in _READS or named[-1] in _READ)

    def evidence(self, text: str) -> list[str]:
        """Return the text, its parts, or nothing."""
        by_arguments = _Coverage(self.words, self.plain)
        for own in self.arguments:
            by_arguments.take(own, 1)
            if _size(own.whole) == 1:
                by_arguments.cover(own.whole)
        coverage = _Coverage(self.words, self.plain)
        coverage.covered[:] = by_arguments.covered
        coverage.telling = by_arguments.telling
        for own in self.inner:
            coverage.take(own, 1)
        for own in self.said:
            coverage.take(own, _TELLING_WORDS)
        if self._says_nothing_new(coverage):
            return []
        if by_arguments.telling >= _TELLING_WORDS and any(by_arguments.covered):
            return self._parts(text)
        return [text]

    def _says_nothing_new(self, coverage: _Coverage) -> bool:
        words = self.words.words
        if not words or self._is_passed_on(words) or self._is_given_back(words):
            return True
        coverage.leave_out(_NUMBERING)
        is_writer = bool(self.named) and self.named[0] in _WRITES
        is_note = is_writer or not _NOTES.isdisjoint(map(_known, (*self.named, *words)))
        if is_note:
            coverage.leave_out(_UUID)
        rest = [_known(words[place]) for place in coverage.rest()]
        if not rest:
            return True
        is_telling = coverage.telling >= _TELLING_WORDS
        if self.value is not None and isinstance(self.value, Mapping | list):
            return self._is_status_value(coverage)
        has_own = len(rest) < len(words)
        allowed = self.frame | _STATUS
        if self.is_reader and not self.inner and not (is_telling and self._is_stated()):
            return is_telling and all(word in allowed or word in _HEADS for word in rest)
        if self.inner and has_own:
            allowed = allowed | _HEADS
        if is_writer:
            allowed = allowed | {"true", "false"}
        if any(map(self._is_done, rest)):
            allowed = allowed | _PLACES
        others = [word for word in rest if word not in allowed and not word.isdigit() and not self._is_done(word)]
        digits = [word for word in rest if any(map(str.isdigit, word))]
        if not others:
            if len(rest) == len(digits):  # numbers only: of a calculator, or of lines
                return is_writer or (is_telling and self._is_stated())
            are_counts = not _DONE.isdisjoint(rest) and all(map(_COUNT.fullmatch, digits))
            return not digits or has_own or is_writer or (are_counts and not self.is_reader)
        verdicts = {word for word in others if word in _VERDICTS and not (word in _LABELS and self.gives_back)}
        is_said = not verdicts and (not digits or self._are_labels(rest, allowed))
        is_told = bool(self.inner) and len(words) - len(rest) > 1 and len(others) <= _MOST_FRAME_WORDS // 2
        if is_told and is_said:
            return True
        if is_writer and len(rest) <= 2 and digits:  # the id of a note
            return True
        is_frame = len(others) <= min(_MOST_FRAME_WORDS, coverage.telling // 2)
        return is_telling and is_frame and is_said

    @cached_property
    def gives_back(self) -> bool:
        """Whether a tool of notes, or with a model inside, gives back a whole sentence that a model said before."""
        if not self.inner and _NOTES.isdisjoint(map(_known, self.named)):
            return False
        given = {unit for one in self.arguments for unit in (one.whole, *one.units)}
        return any(
            unit in self.words.joined
            for one in self.said
            if not one.is_query
            for unit in (one.whole, *one.units)
            if _size(unit) >= _STATED_WORDS and unit not in given
        )

    def _are_labels(self, rest: Sequence[str], allowed: AbstractSet[str]) -> bool:
        """Tell whether numbers and words beside a sentence that was given back only label it, as a score does."""
        return self.gives_back and all(
            len(word) == 1 or word in _LABELS or word in _HEADS or word in allowed or _LABEL.fullmatch(word)
            for word in rest
        )

    def _is_stated(self) -> bool:
        """Tell whether the text repeats a statement, and not only what was searched for."""
        coverage = _Coverage(self.words, self.plain)
        asked = {one.whole for one in self.arguments} - {one.whole for one in self.statements}
        for own in (*self.statements, *(one for one in self.said if not (one.is_query or one.whole in asked))):
            coverage.take(own, _TELLING_WORDS)
        return coverage.telling >= _TELLING_WORDS

    def _is_passed_on(self, words: Sequence[str]) -> bool:
        """Tell whether a tool handed a conversation over, and says so in one line without a number."""
        named = {*map(_known, self.named)}
        if self.is_reader or named.isdisjoint(_HANDS_OVER) or not ("transfer" not in named or "to" in named):
            return False
        return len(words) <= _LONGEST_PASSED_ON and not any(map(str.isdigit, self.plain))

    def _is_given_back(self, words: Sequence[str]) -> bool:
        """Tell whether a tool gave back some words of an argument and no other, as ``echo Hello World`` does."""
        return (
            len(words) > 1 and not self.is_reader and any(self.words.joined in one.whole for one in self.arguments)
        )

    def _is_done(self, word: str) -> bool:
        """Tell whether a word says that the tool did what its name says: "reviewed" of `review_report`."""
        stems = (word[:-2], word[:-3]) if word.endswith("ed") else ()
        return any(stem in self.stems for stem in stems)

    def _is_status_value(self, coverage: _Coverage) -> bool:
        """Tell whether JSON says nothing but that something was done, or the model's own words."""
        if self.is_reader and coverage.telling < _TELLING_WORDS:
            return False
        leaves = islice(_leaves(self.value), _MOST_LEAVES)
        told = [
            leaf for leaf in leaves if leaf[0].casefold() not in _ID_KEYS and not leaf[0].casefold().endswith("_id")
        ]
        if coverage.telling >= _TELLING_WORDS:
            counts = {*_sizes_in(self.value)} - {0}  # a list beside its length, as a notebook returns its notes
            return all(self._is_status(*leaf) or (type(leaf[1]) is int and leaf[1] in counts) for leaf in told)
        return bool(told) and all(self._is_status(*leaf) for leaf in told)

    def _is_status(self, name: str, leaf: object) -> bool:
        if leaf is None or leaf == "" or (self.inner and isinstance(leaf, str) and _LINK.fullmatch(leaf)):
            return True
        words = _words_of(_unescaped(str(leaf)))
        if any(words.joined == own.whole for own in (*self.arguments, *self.inner)):
            return True
        if not isinstance(leaf, str):
            is_label = name.casefold() in _STATUS_KEYS or (name.casefold() in _LABELS and self.gives_back)
            return isinstance(leaf, bool | int | float) and is_label
        coverage = _Coverage(words, _unescaped(leaf))
        for own in (*self.arguments, *self.said):
            coverage.take(own, _TELLING_WORDS)
        rest = [_known(words.words[place]) for place in coverage.rest()]
        others = [word for word in rest if word not in _STATUS and word not in self.frame and not word.isdigit()]
        return not others or len(others) <= min(_MOST_FRAME_WORDS, coverage.telling // 2)

    def _is_echo(self, start: int) -> bool:
        """Tell whether the words before a statement say that it is repeated: a page may hold the same statement."""
        end = self.words.spans[start][0]
        line = self.plain[:end].rpartition("\n")[2].rstrip()
        if line.rstrip("\"' ").endswith("("):
            return True
        said = [_known(word.casefold()) for word in _WORD.findall(line)][-_TELLING_WORDS:]
        return (
            bool(said)
            and line.rstrip("\"'“« ").endswith((":", "="))
            and all(word in self.echoes for word in said[-2:])
        )

    def _parts(self, text: str) -> list[str]:
        """Return the parts of the text around the statements that it repeats."""
        cut = _Coverage(self.words, self.plain)
        for own in self.statements:
            if _size(own.whole) >= _TELLING_WORDS and len(own.whole) >= _TELLING_CHARS:
                cut.cover(own.whole, self._is_echo)
        if not any(cut.covered):
            return [text]
        found: list[str] = []
        start: int | None = None
        for place, is_cut in enumerate([*cut.covered, 1]):
            if not is_cut and start is None:
                start = place
            elif is_cut and start is not None:
                if any(_known(word) not in _STATUS | _HEADS | self.frame for word in self.words.words[start:place]):
                    begin = self.words.spans[start - 1][1] if start else 0
                    end = self.words.spans[place][0] if place < len(self.words.spans) else len(self.plain)
                    found.append(self.plain[begin:end].lstrip(f"{_EDGES}.!?").rstrip(_EDGES))
                start = None
        return found


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
        if len(held) > 1 and len(alike) == 1 and alike[0] in held:
            return alike  # its neighbours stand beside it
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


_SCALARS = (str, int, float, bool, Decimal, date, time, bytes, type(None))
_UNREAD = frozenset(("bytes", "bytearray", "memoryview", VECTOR))  # what a column may hold beside scalars
_MOST_ROWS = 10_000
_MOST_ROW_TEXTS = 64
_LEAST_VALUES_CHARS = 8
_MOST_NUMBERS = 16  # of a row: more are a vector
_BETWEEN = " | "  # values of a row
_NO_ROWS = re.compile(  # of at most 256 characters: a name
    r"messages?|histor|conversation|chat|todo|tasks?|plan|steps?|question|example|section|feedback|comment|tool|event"
    r"|terms?$|keyword|topic|title|generat|expan|rewrit|schema|column|config|setting|option|metadata|queries|prompt"
    r"|citation|callback|embed|vector",
    re.IGNORECASE,
)
_OF_DATABASE = re.compile(  # of at most 256 characters: a name
    r"(?:^|_)(?:rows?|records?|database|db|sql|cypher|sparql|neo4j|graph|table|tables|dataframe|df|triples?|facts?"
    r"|results?|data|context)(?:$|_)",
    re.IGNORECASE,
)
_OF_MODELS_TOO = re.compile(  # of at most 256 characters: a name
    r"(?:^|_)(?:graph|triples?|facts?|results?|data|context)(?:$|_)", re.IGNORECASE
)


class Rows(NamedTuple):
    """Rows of a database: the forms in which a prompt may show all of them, and each row."""

    source: str
    forms: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_named: bool  # the name says what they are
    is_given: bool = False  # the run was given them, as a profile of its user

    @property
    def may_be_of_a_model(self) -> bool:
        """Whether what a model noted may have the same name."""
        return not self.is_named or _OF_MODELS_TOO.search(self.source[:MAX_NAME_CHARS]) is not None

    def values(self) -> Iterator[str]:
        """Yield the values of the first rows as text."""
        for row in self.rows:
            yield from row[-1].split(_BETWEEN)


def rows_in(value: object, name: str = "", depth: int = 0) -> list[Rows]:
    """Return the rows of databases in a value: lists of mappings or tuples of scalars, also as text.

    Example:
        >>> rows_in([{"town": "Oslo", "rooms": 12}], "records")[0].forms[0]
        "[{'town': 'Oslo', 'rooms': 12}]"
        >>> rows_in([{"role": "user", "content": "Where?"}]), rows_in("In Oslo.")
        ([], [])
    """
    name = name[:MAX_NAME_CHARS]
    if depth > 2 or _NO_ROWS.search(name):
        return []
    if isinstance(value, str):
        read = _parsed(value) if value.startswith("[") and len(value) <= _LONGEST_CHARS else None
        return [rows._replace(forms=(value, *rows.forms)) for rows in rows_in(read, name, depth)] if read else []
    if isinstance(value, Mapping):
        if name and _OF_DATABASE.search(name) and _is_row(value):
            return [_rows([value], name, str(value))]
        return [
            rows
            for key, part in value.items()
            if not isinstance(part, str)
            for rows in rows_in(part, str(key), depth + 1)
        ]
    if not isinstance(value, list | tuple) or not value or len(value) > _MOST_ROWS:
        return []
    if not all(map(_is_row, value)):
        return []
    return [_rows(value, name, str(value))]


def _is_row(part: object) -> bool:
    if isinstance(part, Mapping):
        if not part or "role" in part or "tool_call_id" in part or str(part.get("type")) in ROLES:
            return False
        if _ASKS.issuperset(str(name).casefold() for name in part):  # a query to send, perhaps with its place
            return False
        return all(_is_scalar(one) or _is_scalar_like(one) for one in part.values())
    if not isinstance(part, list | tuple) or not part:
        return False
    if isinstance(part[0], str) and part[0] in ROLES:
        return False
    if len(part) > _MOST_NUMBERS and all(type(one) is float for one in part):
        return False
    return all(_is_scalar(one) or _is_scalar_like(one) for one in part)


def _is_scalar(value: object) -> bool:
    """Tell whether a value may be in a column: a text, a number, a UUID; bytes and vectors too, unread."""
    if isinstance(value, _SCALARS):
        return True
    return value.kind in _UNREAD if type(value) is Opaque else plain(value) is not None


def _is_scalar_like(value: object) -> bool:
    """Tell whether a value holds scalars only, as a node of a graph and a list of labels do, or is numpy's."""
    if isinstance(value, Mapping):
        return all(map(_is_scalar, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_scalar, value))
    return hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0


def _rows(rows: Sequence[object], name: str, written: str) -> Rows:
    forms = [written, json.dumps(rows, default=str, ensure_ascii=False)]
    if isinstance(rows[0], Mapping):
        forms.append(str([tuple(row.values()) for row in rows if isinstance(row, Mapping)]))
    values = [_values_of(row) for row in rows]
    forms.append("\n".join(values))
    each = [
        tuple(dict.fromkeys((str(row), json.dumps(row, default=str, ensure_ascii=False), text)))
        for row, text in zip(rows[:_MOST_ROW_TEXTS], values, strict=False)
    ]
    told = [form for form in dict.fromkeys(forms) if len(form) >= _LEAST_VALUES_CHARS]
    return Rows(name, tuple(told or forms[:1]), tuple(each), bool(_OF_DATABASE.search(name)))


def _values_of(row: object) -> str:
    parts = row.values() if isinstance(row, Mapping) else row if isinstance(row, list | tuple) else (row,)
    return _BETWEEN.join(str(part) for part in parts)
