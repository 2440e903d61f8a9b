"""Runs of a scored file: JSON lines that may still grow, or rows that a caller reads."""

from __future__ import annotations

import gzip
import json
import math
import os
import tempfile
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any, cast

from ragtrace.errors import ConfigError, InputError
from ragtrace.judges.offline.words import is_english
from ragtrace.judges.scales import is_whole
from ragtrace.metrics.consistency.runs import bare
from ragtrace.model.codec import ALIASES, record_from_json
from ragtrace.model.diagnosis import DIAGNOSIS
from ragtrace.model.file_lines import MOST_LINE, FileLine, bounded_lines, json_of_line
from ragtrace.scoring.offline.scored_row import read_score
from ragtrace.stores.run_facts import sign_names
from ragtrace.views.columns import MOST_SEARCHED_CHARS, NAMED, RunFacts, ScoreFacts
from ragtrace.views.label_file import LabelFile
from ragtrace.views.scored_answer import ScoredAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ragtrace.model.reading import Reading
    from ragtrace.views.columns import Builder
    from ragtrace.views.types import NewRating

    Rows = Callable[[Callable[[str], None]], Iterable[tuple[int, Mapping[str, Any]]]]
    """Reads the rows of a source with their numbers; is given a function that takes each broken row's reason."""

_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 256  # of a file, by which one that was written anew is told
_PUBLISH = 10_000
_LANGUAGES = {True: "en", False: "other", None: None}  # as `ragtrace.stores.run_facts` keeps them
_LATEST_TIME = 1e11  # Unix seconds beyond it are of another unit


class FileRuns:
    """Runs of a scored file.

    Lines of a plain file are read again where they stand. Other rows are copied to an unnamed temporary file.

    Args:
        path: the file; with `rows` any name.
        rows: reads all rows; None for JSON lines, plain or gzip.
        as_record: gives a row the fields of a record, for rows in the columns of other tools.
    """

    is_store = False

    def __init__(
        self, path: Path, *, rows: Rows | None = None, as_record: Callable[[Any], Any] | None = None
    ) -> None:
        self.name = str(path)
        self._path = path
        self._rows = rows
        self._as_record = as_record or (lambda row: row)
        self._lines: IO[bytes] | None = None
        self._offset = self._number = 0
        self._broken = self._unscored = 0
        self._first_broken = ""
        self._head = b""
        self._labels = LabelFile(path.with_name(f"{path.name}.labels.jsonl"))
        if rows is None and not path.is_file():
            raise ConfigError(f"{path}: there is no file; check the path")

    def state(self) -> object:
        """Return a value that changes with the file or its labels."""
        return (*_stat(self._path), *_stat(self._labels.path))

    def load(self, builder: Builder, publish: Callable[[str], None]) -> None:
        """Read everything into an empty builder; `publish` is told how far it is."""
        self._offset = self._number = self._broken = self._unscored = 0
        self._first_broken = ""
        self._lines = None
        self._head = _head(self._path)
        if self._rows is not None:
            self._copy(builder, self._rows(self._note), publish)
        elif self._head.startswith(_GZIP):
            self._copy(builder, self._unpacked(), publish)
        else:
            self._follow(builder, publish)
        self._labels.read_into(builder)

    def update(self, builder: Builder) -> bool:
        """Read the new lines of a file that grew; False where everything has to be read again."""
        is_plain = self._rows is None and not self._head.startswith(_GZIP)
        size = self._path.stat().st_size if self._path.is_file() else 0
        head = _head(self._path)
        grew = is_plain and size >= self._offset and head.startswith(self._head)
        if not grew and (is_plain or head != self._head):
            return False
        if is_plain:
            self._head = head
            self._follow(builder, lambda _text: None)
        self._labels.read_into(builder)
        return True

    def notes(self) -> tuple[str, ...]:
        """Return remarks on rows that were left out or have no scores."""
        found = []
        if self._broken:
            found.append(f"broken rows that were left out: {self._broken} (the first: {self._first_broken})")
        if self._unscored:
            found.append(f"rows without scores: {self._unscored}; `ragtrace score` writes them")
        return tuple(found)

    def answer(self, run_id: str, place: int) -> ScoredAnswer:
        """Return one whole run.

        Raises:
            LookupError: the file changed, and the row is gone.
        """
        given = self.row(place)
        try:
            record = record_from_json(self._as_record(given), fallback_id=run_id)
        except InputError as error:
            raise LookupError(f"row {run_id} cannot be read as a record: {error}") from None
        scores = given.get("scores")
        return ScoredAnswer(
            place=f"{self.name}:{run_id}",
            name=run_id,
            record=record,
            scores=scores if isinstance(scores, dict) else {},
            ratings=self._labels.ratings_of(run_id),
        )

    def row(self, place: int) -> dict[str, Any]:
        """Return one row as it stands in the file.

        Raises:
            LookupError: it is gone.
        """
        if self._lines is None:
            raise LookupError("the file is being read again")
        try:
            return json_of_line(_line_at(self._lines.fileno(), place), takes_nan=True)
        except InputError:
            raise LookupError("the file changed; load the page again") from None

    def record_row(self, place: int) -> Any:
        """Return one row with the fields of a record.

        Raises:
            LookupError: it is gone.
            InputError: a field has a wrong form.
        """
        return self._as_record(self.row(place))

    def label_refusal(self) -> str | None:
        """Return why no rating can be kept; None where it can."""
        return self._labels.refusal()

    def rate(self, ratings: Sequence[NewRating], places: Mapping[str, int]) -> int:
        """Write people's ratings to the file of labels; return how many."""
        return self._labels.write([(rating, self.row(places[rating.run_id])) for rating in ratings])

    def _follow(self, builder: Builder, publish: Callable[[str], None]) -> None:
        """Read whole lines from where the last reading ended; a last line without its end waits."""
        if self._lines is None:
            self._lines = self._path.open("rb")
        size = os.fstat(self._lines.fileno()).st_size
        self._lines.seek(self._offset)
        before = self._number
        for line in bounded_lines(self._lines, start=self._offset, end=size):
            is_whole = bool(line.broken) or line.raw.endswith(b"\n") or (line.end >= size and _is_json(line.raw))
            if not is_whole:
                return
            self._number, self._offset = before + line.number, line.end
            self._take(builder, partial(_object, line), self._number, line.start)
            if self._number % _PUBLISH == 0:
                total = int(size / self._offset * self._number)
                publish(f"reading: {self._number:,} of about {total:,} rows")

    def _copy(
        self,
        builder: Builder,
        rows: Iterable[tuple[int, FileLine | Mapping[str, Any]]],
        publish: Callable[[str], None],
    ) -> None:
        copied = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as its rows are shown
        self._lines, offset = copied, 0
        for number, row in rows:
            read = partial(_object, row) if isinstance(row, FileLine) else partial(dict[str, Any], row)
            if self._take(builder, read, number, offset):
                raw = row.raw if isinstance(row, FileLine) else json.dumps(row).encode()
                offset += copied.write(raw.rstrip(b"\n") + b"\n")
            if number % _PUBLISH == 0:
                copied.flush()
                publish(f"reading: {number:,} rows")
        copied.flush()

    def _unpacked(self) -> Iterator[tuple[int, FileLine]]:
        number = 0
        try:
            with gzip.open(self._path) as stream:
                for line in bounded_lines(cast("IO[bytes]", stream)):
                    number = line.number
                    yield number, line
        except OSError as error:
            self._note(f"row {number + 1}: the file cannot be read on from here ({error})")

    def _take(self, builder: Builder, read: Callable[[], Mapping[str, Any]], number: int, offset: int) -> bool:
        """Give a row to the builder; False where it is broken."""
        try:
            given = read()
            facts = _facts(self._as_record(given), number, offset)
            scores = list(_scores(given.get("scores")))
        except InputError as error:
            self._note(f"row {number}: {error}")
            return False
        self._unscored += not scores
        builder.score(builder.put(facts), scores)
        return True

    def _note(self, reason: str) -> None:
        self._broken += 1
        self._first_broken = self._first_broken or reason


def _object(line: FileLine) -> dict[str, Any]:
    return json_of_line(line.bytes(), takes_nan=True)


def _facts(given: Mapping[str, Any], number: int, offset: int) -> RunFacts:
    """Return the facts of a row; other fields are read when the run is shown."""
    query, answer = (_first_text(given, name) for name in ("query", "answer"))
    contexts = next((given[name] for name in ("contexts", "selection", "pool") if given.get(name)), ())
    named = {name: _text(given.get(name)) for name in NAMED}
    workflow = named["workflow"] = named["workflow"] or "rag"
    session, user = named["session"], named["user"]
    named["language"] = _LANGUAGES[is_english(query)]
    named["tags"] = _listed(given.get("tags"))
    named["sources"] = _listed(dict.fromkeys((*_sources(contexts), *_sources(given.get("unranked_contexts")))))
    reading = _reading(given.get("reading"))
    named["signs"] = None if reading is None else sign_names(reading)
    question = bare(query) if query else ""
    kind, unit = _unit(session, user, (workflow, str(given.get("history") or ""), question) if question else None)
    cutoff = given.get("k")
    names = (str(number), _text(given.get("id")) or "", _text(given.get("trace_id")) or "")
    return RunFacts(
        id=str(number),
        at=_time(given.get("ended")) or _time(given.get("started")) or math.nan,
        unit=unit or ("runs", number),
        unit_kind=kind,
        place=offset,
        query=query if query or answer else None,
        searched="\n".join((*names, f"{query}\n{answer}"[:MOST_SEARCHED_CHARS])).casefold(),
        verdict=_verdict(given.get("scores")),
        named=tuple(named[name] for name in NAMED),
        numbers=(
            cutoff if is_whole(cutoff) else len(contexts) or -1,
            len(query),
            len(answer),
            -1 if reading is None else int(reading.is_signed),
        ),
        kept_for=_text(given.get("kept_for")),
    )


def _reading(given: object) -> Reading | None:
    return None if given is None else record_from_json({"reading": given}, fallback_id="").reading


def _unit(session: str | None, user: str | None, question: object) -> tuple[str, object]:
    for kind, key in (("sessions", session), ("users", user), ("questions", question)):
        if key:
            return kind, (kind, key)
    return "runs", None


def _scores(given: object) -> Iterator[ScoreFacts]:
    if given is None:
        return
    if not isinstance(given, dict):
        raise InputError("field 'scores' is no object")
    for name, score in given.items():
        found = read_score(name, score)
        passed = score.get("passed")
        yield ScoreFacts(
            key=found.key,
            state=found.state,
            value=found.value,
            reason=found.reason,
            passed=passed if isinstance(passed, bool) else None,
        )


def _first_text(given: Mapping[str, Any], field: str) -> str:
    for name in (field, *ALIASES[field]):
        value = given.get(name)
        if value is not None:
            if not isinstance(value, str):
                raise InputError(f"field {name!r} is no text")
            return value
    return ""


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def _listed(names: object) -> str | None:
    return (
        json.dumps([str(name)[:128] for name in names][:32]) if isinstance(names, list | dict) and names else None
    )


def _sources(contexts: object) -> Iterator[str]:
    for one in contexts if isinstance(contexts, list) else ():
        source = one.get("source") if isinstance(one, dict) else None
        if isinstance(source, str) and source:
            yield source


def _time(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    with suppress(OverflowError):
        return float(value) if is_number and 0.0 < float(value) < _LATEST_TIME else None  # type: ignore[arg-type]
    return None


def _verdict(scores: object) -> str | None:
    score = scores.get(DIAGNOSIS) if isinstance(scores, dict) else None
    details = score.get("details") if isinstance(score, dict) else None
    verdict = details.get("verdict") if isinstance(details, dict) else None
    return verdict if isinstance(verdict, str) else None


def _is_json(raw: bytes) -> bool:
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(raw), dict)
    return False


def _line_at(descriptor: int, offset: int) -> bytes:
    """Return the line at an offset; safe in several threads."""
    found = bytearray()
    while len(found) <= MOST_LINE and (part := os.pread(descriptor, 65_536, offset + len(found))):
        found += part
        if b"\n" in part:
            break
    return bytes(found.partition(b"\n")[0])


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def _stat(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns
