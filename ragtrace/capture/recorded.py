"""Runs as lines of JSON: their events, as capture reads them, and what it makes of them again.

A run is a line that begins it, a line for each event, and a line that ends it; each has the run's number. Values
that JSON has not are objects with one name, their kind. An object that occurs again in a run is named by its place
among those before it: a step that handed a list on is told from one that made another.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from inspect import signature
from math import isfinite
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct, convert
from msgspec.structs import FieldInfo, fields, replace

from ragtrace.capture.assembly import finished_run
from ragtrace.capture.declared import Declared
from ragtrace.capture.events import Asked, Asking, Began, Chosen, Ended, Event, Gave, Marked, Node, Said, Sought
from ragtrace.capture.names import PICTURE_KEYS, RERANK_SCORE_KEYS, ROLES
from ragtrace.capture.pictures import PICTURE, picture_key, picture_of
from ragtrace.capture.reported import REPORTS, Reported
from ragtrace.capture.run import Run
from ragtrace.capture.types import Failure, Limits, RunConfig
from ragtrace.capture.values import Doc, Fields, Opaque, Prompt, Redacted, Steer, Turn
from ragtrace.errors import InputError
from ragtrace.model import AnswerPart, Call, Message, Outcome, Passage, Usage
from ragtrace.model.printable import printable
from ragtrace.model.reading import How
from ragtrace.text import cut, plain, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ragtrace.capture.masks import Masker
    from ragtrace.capture.past import PastRuns
    from ragtrace.capture.types import FinishedRun, RunProcessor

FORMAT = 1
T = TypeVar("T")


@cache
def _fields_of(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    """Return the fields of a class; msgspec would read its annotations anew for each object."""
    return fields(kind)


class RecordedRun(Struct, frozen=True):
    """A run as it is written and read.

    Attributes:
        workflow: name of its application.
        started_ns: Unix ns.
        events: in the order in which capture read them.
        outcome: how its opener ended it; None where the events tell.
        ended_ns: Unix ns.
        is_whole: all of its lines were there.
        line: number of its last line, from 1.
    """

    workflow: str
    started_ns: int
    events: list[Event] = []
    outcome: Outcome | None = None
    ended_ns: int = 0
    is_whole: bool = True
    line: int = 0


_STRUCTS: dict[str, type[Struct]] = {
    kind.__name__: kind
    for kind in (
        Event, Node, Began, Gave, Sought, Asked, Said, Chosen, Marked, Doc, Turn, Prompt, Steer, Opaque, Failure,
        Usage, Asking, Ended, Passage, Message, Call, AnswerPart,
    )
}  # fmt: skip
# How a field is masked that is no value of the application's: not at all, or as a name. All others are texts.
_OURS = frozenset(
    {
        ("Event", "kind"), ("Event", "id"), ("Event", "parent"), ("Event", "teller"), ("Asked", "operation"),
        ("Sought", "fuses"), ("Ended", "outcome"), ("Chosen", "source"), ("Doc", "label"),
    }
)  # fmt: skip
_IDS = frozenset({("Event", "id"), ("Event", "parent")})
_NAMES = frozenset(
    {
        ("Event", "name"), ("Node", "path"), ("Turn", "name"), ("Failure", "kind"), ("Opaque", "kind"),
        ("Said", "finish_reasons"), ("Call", "name"),
    }
)  # fmt: skip
_ROLES = frozenset({("Turn", "role"), ("Message", "role")})
_NAMING_KEYS = frozenset({"type", "name", "role"})  # of blocks and calls
# What a report is given: words of ours, names, and ids under names. All stand in a file as JSON has them.
_GIVEN_OURS = frozenset({"operation", "label_scope", "scale", "selection_source", "outcome", "how"})
_GIVEN_NAMES = frozenset({"name", "finish_reasons"})
_GIVEN_PLAINLY = _GIVEN_OURS | _GIVEN_NAMES | {"grades", "labels"}
# What the events of a kind hold.
_HELD: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("chain", "tool"), (Began, Gave, NoneType)),
    "search": (Sought, list, Gave, NoneType),  # a LlamaIndex step that failed ends with `Gave`, of whatever kind
    "model": (Asked, Said, Gave, NoneType),
    "choice": (Chosen, Gave, NoneType),
    "mark": (Marked,),
    "told": (NoneType,),
    "ask": (Asking,),
    "offer": (dict,),
    "answer": (str,),
    "report": (dict,),
    "end": (str, Ended, NoneType),
}
_SCORES = frozenset(RERANK_SCORE_KEYS)
_TIMES = frozenset({"started_ns", "ended_ns", "first_chunk_ns"})
_INT64 = 1 << 63
_MOST_SHOWN = 32  # characters of what a file says of itself
_SCALARS: dict[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "float": float,
    "int": lambda text: int(text, 16),
    "bytes": b64decode,
}


# -- writing --


def head(*, is_masked: bool) -> bytes:
    """Return the first line of a file."""
    return _line({"ragtrace": "events", "format": FORMAT, "masked": is_masked})


def lines_of(
    run: RecordedRun, number: int, masker: Masker | None = None, redact: Callable[[str], str] | None = None
) -> Iterator[bytes]:
    """Yield the lines of a run.

    Args:
        run: the run.
        number: by which it is told from the others.
        masker: masks its words; None leaves them.
        redact: applied to every text before that.
    """
    writer = _Writer(masker, redact)
    yield _line({"run": number, "begin": {"workflow": writer.text(run.workflow), "started_ns": run.started_ns}})
    for event in run.events:
        yield _line({"run": number, "event": writer.value(event)})
    yield _line({"run": number, "end": {"outcome": run.outcome, "ended_ns": run.ended_ns}})


def _line(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


class _Writer:
    """Turns the values of one run into those of JSON."""

    def __init__(self, masker: Masker | None, redact: Callable[[str], str] | None) -> None:
        self._masker = masker
        self._redact = redact
        self._numbers: dict[str, str] = {}
        self._met: dict[int, tuple[int, object]] = {}  # place and object by its id, which it keeps while it is here

    def text(self, text: str) -> str:
        """Return a text as it is written."""
        text = text if self._redact is None else self._redact(text)
        return text if self._masker is None else self._masker.text(text)

    def name(self, name: str) -> str:
        """Return the name of a field, a step or a tool as it is written."""
        return name if self._masker is None else self._masker.name(name)

    def value(self, value: Any, key: object = None, *, is_scored: bool = False, is_passage: bool = False) -> object:
        """Return a value; `key` is the name that it is under, `is_scored` says that a number is a score."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value, is_score=is_scored or key in _SCORES)
        if not isinstance(value, str | Struct | dict | list | tuple):
            return self._scalar(value)
        met = self._met.get(id(value))
        if met is not None:
            return {"again": met[0]}
        self._met[id(value)] = (len(self._met), value)
        if type(value) is Redacted:
            told = [self.text(value), value.mark, value.is_begin, value.is_end]
            return {"redacted": told}
        if isinstance(value, str):
            if self._masker is not None and (picture := _picture(value, key, is_passage=is_passage)):
                link = self._masker.link(picture)
                return picture_key(link) if key == PICTURE else link
            is_name = key in _NAMING_KEYS and len(value.split()) == 1
            return self._role(value) if key == "role" else self.name(value) if is_name else self.text(value)
        if isinstance(value, Struct):
            return {type(value).__name__: self._fields(value)}
        if isinstance(value, dict):
            pairs = [[self._key(name), self.value(part, name)] for name, part in value.items()]
            return {"fields" if type(value) is Fields else "dict": pairs}
        is_pair = len(value) == 2 and type(value[0]) is Doc and isinstance(value[1], float)  # with its score
        is_turn = len(value) == 2 and isinstance(value[0], str) and value[0] in ROLES  # ("user", "Where?")
        keys = ("role", None) if is_turn else (None,) * len(value)
        parts = [self.value(part, key, is_scored=is_pair) for key, part in zip(keys, value, strict=True)]
        return parts if isinstance(value, list) else {"tuple": parts}

    def _fields(self, value: Struct) -> dict[str, object]:
        if isinstance(value, Event) and value.kind == "report":
            given = {name: self._given(name, one) for name, one in value.data.items()}
            return {"kind": value.kind, "name": value.name, "data": given}
        kind = type(value).__name__
        found: dict[str, object] = {}
        for one in _fields_of(type(value)):
            part = getattr(value, one.name)
            place = (kind, one.name)
            if not one.required and type(part) is type(one.default) and part == one.default:
                continue
            if place in _IDS:
                found[one.name] = part if self._masker is None or not part else self._numbered(part)
            elif part is None or place in _OURS or isinstance(part, int | float):
                found[one.name] = part
            elif place in _ROLES:
                found[one.name] = self._role(part)
            elif place in _NAMES:
                found[one.name] = (
                    self.name(part) if isinstance(part, str) else {"tuple": list(map(self.name, part))}
                )
            elif place == ("Asked", "request"):
                found[one.name] = self._request(part)
            elif place == ("Event", "data") and isinstance(part, str) and value.kind == "end":  # type: ignore[attr-defined] # an outcome
                found[one.name] = part
            else:
                found[one.name] = self.value(part, is_passage=one.name == "text" and kind in {"Doc", "Passage"})
        return found

    def _given(self, name: str, value: Any) -> object:
        """Return what a report was given under a name."""
        if name in _GIVEN_OURS or isinstance(value, int | float):
            return value
        if name in _GIVEN_NAMES:
            return self.name(value) if isinstance(value, str) else list(map(self.name, value))
        if name == "grades":  # ids of passages
            return {self.text(one): grade for one, grade in value.items()}
        if name == "labels":
            return {self.text(label): self.text(one) for label, one in value.items()}
        if name == "request":
            return self._request(value)
        if isinstance(value, Declared):
            return value.renamed(self.name).said()
        return self.value(value)

    def _request(self, parameters: Mapping[str, Any]) -> object:
        """Return the parameters of a model call, whose numbers but the seed are no facts of the application's."""
        told = parameters if self._masker is None or "seed" not in parameters else {**parameters, "seed": 0}
        return {"dict": [[name, self.value(one, is_scored=True)] for name, one in told.items()]}

    def _numbered(self, name: str) -> str:
        """Return the number of a step by its id, which may be made of the names of an application's classes."""
        return self._numbers.setdefault(name, str(len(self._numbers) + 1))

    def _role(self, role: str) -> str:
        return role if role in ROLES else self.text(role)

    def _key(self, name: object) -> object:
        return self.name(name) if isinstance(name, str) else self.value(name)

    def _number(self, number: Any, *, is_score: bool) -> object:
        plainly = float.__float__(number) if isinstance(number, float) else int.__int__(number)
        if not isfinite(plainly):
            return {"float": repr(plainly)}
        masked = plainly if is_score or self._masker is None else self._masker.number(plainly)
        if type(masked) is int and not -_INT64 <= masked < _INT64:
            return {"int": f"{masked:x}"}
        return masked

    def _scalar(self, value: object) -> object:
        """Return a date, a decimal number or another value of one part."""
        for kind, name in ((datetime, "datetime"), (date, "date"), (time, "time")):
            if isinstance(value, kind):
                return {name: self._readable(value.isoformat(), name)}
        if isinstance(value, Decimal):
            return {"decimal": self._readable(str(value), "decimal")}
        if isinstance(value, bytes | bytearray):  # data of a file or a picture
            return {"bytes": "" if self._masker is not None else b64encode(value).decode()}
        scalar = plain(value)
        return self.value(shown(value) if scalar is None else scalar)

    def _readable(self, written: str, kind: str) -> str:
        """Return a scalar as it is written, masked where the mask is one of its kind."""
        masked = written if self._masker is None else self._masker.text(written)
        try:
            _SCALARS[kind](masked)
        except (ValueError, ArithmeticError):  # the 29th of February, an exponent
            return {"time": "00:00", "decimal": "0"}.get(kind, "1111-11-11")
        return masked


def _picture(text: str, key: object, *, is_passage: bool) -> str | None:
    """Return the key of a picture, where a text is its key, its data or, where one is looked for, a link to it."""
    if key == PICTURE and text.startswith(f"{PICTURE}:"):
        return text
    if key in PICTURE_KEYS:
        return picture_key(text)
    is_data = is_passage or not text[:64].partition("://")[1]
    return picture_of(Passage(id="", text=text, rank=1)) if is_data else None


# -- reading --


def read_runs(lines: Iterable[bytes]) -> Iterator[RecordedRun]:
    """Yield the runs of a file in the order in which they began; a run whose end is missing is not whole.

    A last line without a line break is half of one, and left out: its process was killed.

    Raises:
        InputError: a line is none of such a file; it begins with the line's number.
    """
    open_runs: dict[int, tuple[RecordedRun, _Reader]] = {}
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break
        try:
            told = json.loads(line)
            if "ragtrace" in told:
                _check_format(told["format"], number)
                continue
            name = told["run"]
            if "begin" in told:
                begun = RecordedRun(**told["begin"], events=[])
                _check(begun)
                if name in open_runs:
                    yield _unended(open_runs.pop(name)[0], number - 1)
                open_runs[name] = (begun, _Reader())
            elif "event" in told:
                begun, reader = open_runs[name]
                begun.events.append(_event(reader.value(told["event"])))
            else:
                begun, reader = open_runs.pop(name)
                ended = replace(begun, **told["end"], line=number)
                _check(ended)
                yield ended
        except InputError:
            raise
        except Exception as error:  # a file may hold anything
            raise InputError(f"{number}: is no line of recorded events") from error
    for begun, _ in open_runs.values():
        yield _unended(begun, number)


def _check_format(given: object, number: int) -> None:
    if given != FORMAT:
        raise InputError(
            f"{number}: written in format {printable(cut(given, _MOST_SHOWN)[0])}, of another version of ragtrace"
        )


def _event(value: object) -> Event:
    if type(value) is not Event:
        raise TypeError
    data: Any = value.data
    if not isinstance(data, _HELD[value.kind]) or (type(data) is list and set(map(type, data)) - {Doc}):
        raise TypeError
    if value.kind == "report":
        if value.name not in REPORTS:
            raise TypeError
        signature(getattr(Reported, value.name)).bind(None, **cast("dict[str, Any]", data))
    return value


def _check(value: Struct) -> None:
    """Refuse a value with a field of another type."""
    convert({name: getattr(value, name) for name in value.__struct_fields__}, type(value))
    for name in _TIMES.intersection(value.__struct_fields__):
        if not 0 <= (getattr(value, name) or 0) < _INT64:
            raise ValueError(name)


def _plainly(told: Any) -> Any:
    return tuple(told) if isinstance(told, list) else told


def _unended(begun: RecordedRun, line: int) -> RecordedRun:
    ended_ns = max((event.ended_ns or event.started_ns for event in begun.events), default=begun.started_ns)
    return replace(begun, ended_ns=ended_ns, is_whole=False, line=line)


class _Reader:
    """Turns the values of JSON into those of one run; places are counted as the writer counted them."""

    def __init__(self) -> None:
        self._met: list[Any] = []
        self._open: set[int] = set()  # places of what is being read: none of it is in itself

    def value(self, told: Any) -> Any:
        """Return a value."""
        if isinstance(told, str):
            self._met.append(told)
            return told
        if isinstance(told, list):
            made: list[Any] = []
            place = self._begin(made)
            made.extend(self.value(part) for part in told)
            return self._end(place, made)
        if not isinstance(told, dict):
            return told
        ((kind, inner),) = told.items()
        if kind == "again":
            if type(inner) is not int or inner < 0 or inner in self._open:
                raise ValueError
            return self._met[inner]
        if kind in {"dict", "fields"}:
            held: dict[Any, Any] = Fields() if kind == "fields" else {}
            place = self._begin(held)
            for name, part in inner:
                key = name if isinstance(name, str) else self.value(name)
                held[key] = self.value(part)
            return self._end(place, held)
        if kind in _SCALARS:
            return _SCALARS[kind](inner)
        if kind == "redacted":
            text, mark, is_begin, is_end = inner
            known = Redacted(text, convert(mark, str))
            known.is_begin, known.is_end = bool(is_begin), bool(is_end)
            self._met.append(known)
            return known
        place = self._begin(None)
        if kind == "tuple":
            return self._end(place, tuple([self.value(part) for part in inner]))
        return self._end(place, self._struct(_STRUCTS[kind], inner))

    def _begin(self, made: object) -> int:
        place = len(self._met)
        self._met.append(made)
        self._open.add(place)
        return place

    def _end(self, place: int, made: T) -> T:
        self._met[place] = made
        self._open.discard(place)
        return made

    def _struct(self, kind: type[Struct], told: dict[str, Any]) -> Struct:
        of = told.get("kind") if kind is Event else None
        made = kind(**{name: self._field(kind.__name__, name, part, of) for name, part in told.items()})
        _check(made)
        return made

    def _field(self, kind: str, name: str, part: Any, of: str | None) -> Any:
        place = (kind, name)
        if of == "report" and name == "data":
            return {key: self._given(key, one) for key, one in part.items()}
        is_outcome = of == "end" and name == "data" and isinstance(part, str)
        if place in _OURS or place in _ROLES or is_outcome:
            return part
        if place in _NAMES:
            return part if isinstance(part, str) else tuple(part["tuple"])
        if place == ("Asked", "request"):
            return {name: self.value(one) for name, one in part["dict"]}
        return self.value(part)

    def _given(self, name: str, told: Any) -> Any:
        """Return what a report was given under a name."""
        if name == "declared":
            return Declared.of(**told)
        if name == "how":
            return convert(told, How)
        return _plainly(told) if name in _GIVEN_PLAINLY else self.value(told)


# -- what capture makes of a run --


class _Keeper:
    """Gives the run that is replayed its ids."""

    trace_id = span_id = "0"

    def on_start(self, workflow: str, started_ns: int) -> _Keeper:  # noqa: ARG002 - as a processor is called
        return self

    def on_end(self, ref: object, run: Run) -> None:
        """Leave the run to `replayed`."""


def replayed(run: RecordedRun, past: PastRuns | None = None) -> FinishedRun | None:
    """Return what capture makes of a run's events; None where they are no question.

    Args:
        run: the run.
        past: what is remembered of earlier runs; the runs of a file share it.
    """
    return finished_run(run_again(run, past))


def run_again(run: RecordedRun, past: PastRuns | None = None) -> Run:
    """Return a run that has ended with a run's events, which nobody has read yet; see `replayed`."""
    config = RunConfig(processor=cast("RunProcessor", _Keeper()), is_replayed=True)
    again = Run(config, Limits(), run.started_ns, {}, past)
    again.begin(run.workflow, is_kept=True)
    for event in run.events:
        again.add(event)
    again.finish(run.outcome, ended_ns=run.ended_ns)
    return again
