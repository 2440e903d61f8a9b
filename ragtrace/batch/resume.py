"""Begins and resumes a run by the outputs that exist, and reads them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from ragtrace.batch.fields import ERROR, SCORES, read_fields
from ragtrace.batch.files import OutputFolder
from ragtrace.batch.reading import ROWS
from ragtrace.batch.rows import fallback_id, json_text
from ragtrace.batch.table import SCORE_COLUMNS, arrow
from ragtrace.errors import ConfigError, InputError
from ragtrace.model.file_lines import MOST_REQUEST, bounded_lines, json_of_line
from ragtrace.settings import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob
    from ragtrace.model.codec import ScoreJson

_MANIFEST = "_ragtrace.json"
_OPTIONS = {
    "metrics": "--metrics", "judge": "--judge", "judge_repeats": "--judge-repeats", "consensus": "--consensus",
    "judge_base_url": "--base-url", "metric_options_grading": "--grading", "grade_cache": "--grade-cache",
    "embedder": "--embedder", "pairs": "--pairs", "metric_options_k_values": "--k-values",
}  # fmt: skip


@dataclass(slots=True)
class Resumed:
    """Parts of a run: those whose output exists, with their broken rows and unread fields, and the others."""

    done: Sequence[Part]
    left: Sequence[Part]
    broken: int = 0
    unread: Counter[str] = field(default_factory=Counter)


def begin(parts: Sequence[Part], job: BatchJob, *, is_resumed: bool) -> Resumed:
    """Tell which parts are done, and note settings and files in the output folder.

    Raises:
        ConfigError: the folder has outputs and `is_resumed` is false, other settings made them, or a file has
            another size now.
    """
    out = OutputFolder(job.out)
    names = out.names()
    done = [part for part in parts if part.name in names]
    manifest = {"settings": _plain(job.settings), "sizes": {part.path: part.size for part in parts}}
    if _MANIFEST in names:
        if not is_resumed:
            raise ConfigError(
                f"--out {job.out}: a run wrote there; --resume goes on with it, or choose another folder"
            )
        with out.open(_MANIFEST) as stream:
            manifest["sizes"] = _agreed(json.load(stream), manifest, job.out) | manifest["sizes"]
    elif names:
        raise ConfigError(f"--out {job.out}: the folder has other files; choose an empty one")
    out.write(_MANIFEST, json_text(manifest).encode())
    resumed = Resumed(done, [part for part in parts if part.name not in names])
    for part in done:
        if part.note in names:
            with out.open(part.note) as stream:
                note = json.load(stream)
            resumed.broken += note["broken"]
            resumed.unread.update(note.get("unread", {}))
    return resumed


def read_scored(job: BatchJob, part: Part) -> Iterator[tuple[Mapping[str, Any], dict[str, ScoreJson]]]:
    """Yield the rows of an output with their scores by name; rows without scores are left out."""
    with OutputFolder(job.out).open(part.name) as stream:
        if part.output == "jsonl":
            for one in bounded_lines(stream, most=MOST_REQUEST):
                row = json_of_line(one.bytes(), is_large=True, takes_nan=True)
                yield row, row["scores"]
            return
        for row in parquet_rows(stream, part.name):
            if row[SCORES] is not None:
                line = scored_line(row)
                yield line, line["scores"]


def parquet_rows(stream: IO[bytes], where: str) -> Iterator[dict[str, Any]]:
    """Yield each row of a scored Parquet file, which `scored_line` reads; some have no scores.

    Args:
        stream: the file.
        where: its name, for the error.

    Raises:
        ConfigError: it is not Parquet, or has no column of scores.
        OSError: it cannot be read.
        ValueError: its pages are broken; pyarrow's ArrowInvalid.
        MissingExtra: pyarrow is not installed.
    """
    parquet = arrow("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(stream, page_checksum_verification=True)
    except ValueError:
        raise ConfigError(f"{where}: not a Parquet file; check the path") from None
    if not _has_scores(file.schema_arrow):
        raise ConfigError(
            f"{where}: no column of scores here; score the file first: ragtrace score FILE --out FOLDER"
        )
    for batch in file.iter_batches(batch_size=ROWS):
        yield from batch.to_pylist(maps_as_pydicts="lossy")


def _has_scores(schema: Any) -> bool:
    kind = getattr(schema.field(SCORES).type, "value_type", None) if SCORES in schema.names else None
    names = {kind.field(place).name for place in range(kind.num_fields)} if kind is not None else set()
    return names.issuperset(SCORE_COLUMNS)


def scored_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of a scored table in the form of a scored line.

    Raises:
        InputError: its scores are of another form.
    """
    given = read_fields({name: row[name] for name in row if name not in {SCORES, ERROR}}).values
    identity = given.pop("id", None) or fallback_id(given)
    try:
        scores = {one["metric"]: one | {"details": json.loads(one["details"])} for one in row[SCORES]}
    except (ValueError, TypeError, RecursionError):
        raise InputError("a score is null, or its details are not JSON") from None
    return {"id": identity, **given, SCORES: scores}


def _agreed(before: dict[str, Any], now: dict[str, Any], out: str) -> dict[str, int]:
    """Return the sizes that an earlier run noted."""
    if not before["settings"].keys() <= TABLE.keys():
        raise ConfigError(f"--out {out}: an earlier version began it, with other settings; choose another --out")
    for name in sorted({*before["settings"], *now["settings"]}):
        was, wanted = before["settings"].get(name), now["settings"].get(name)
        if was != wanted:
            option = _OPTIONS.get(name, f"RAGTRACE_{name.upper()}")
            advice = f"leave {option} out" if was is None else f"give {_given(option, was)} again"
            raise ConfigError(
                f"--out {out}: its run had {_given(option, was)}, this one has {_given(option, wanted)}; "
                f"{advice}, or choose another --out"
            )
    sizes: dict[str, int] = before["sizes"]
    changed = [path for path, size in now["sizes"].items() if sizes.get(path, size) != size]
    if changed:
        raise ConfigError(f"{changed[0]}: the file has changed since --out {out} was begun; choose another folder")
    return sizes


def _given(option: str, value: object) -> str:
    """Return an option with its value as it is typed."""
    if value is None:
        return f"no {option}"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"{option} {text}" if option.startswith("--") else f"{option}={text}"


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json_text(dict(settings)))
    return plain
