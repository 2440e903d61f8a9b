"""Begins and resumes a run by the outputs that exist, and reads them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ragtrace.batch.files import OutputFolder
from ragtrace.batch.readers import reader_of
from ragtrace.batch.rows import json_text
from ragtrace.batch.table import arrow
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob
    from ragtrace.model.codec import ScoreJson

_MANIFEST = "_ragtrace.json"


@dataclass(frozen=True, slots=True)
class Resumed:
    """Parts of a run: those whose output exists, and the others."""

    done: Sequence[Part]
    left: Sequence[Part]


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
    return Resumed(done, [part for part in parts if part.name not in names])


def read_scored(job: BatchJob, part: Part) -> Iterator[tuple[Mapping[str, Any], dict[str, ScoreJson]]]:
    """Yield the rows of an output with their scores by name; rows without scores are left out."""
    read = reader_of(part.format).record or dict
    with OutputFolder(job.out).open(part.name) as stream:
        if part.output == "jsonl":
            for line in stream:
                row = json.loads(line)
                yield read(row), row["scores"]
            return
        for batch in arrow("pyarrow.parquet").ParquetFile(stream).iter_batches():
            for row in batch.to_pylist(maps_as_pydicts="lossy"):
                if row["scores"] is not None:
                    yield read(row), {one["metric"]: _score(one) for one in row["scores"]}


def _score(one: dict[str, Any]) -> ScoreJson:
    return cast("ScoreJson", one | {"details": json.loads(one["details"])})


def _agreed(before: dict[str, Any], now: dict[str, Any], out: str) -> dict[str, int]:
    """Return the sizes that an earlier run noted."""
    for name in sorted({*before["settings"], *now["settings"]}):
        was, wanted = before["settings"].get(name), now["settings"].get(name)
        if was != wanted:
            raise ConfigError(
                f"--out {out}: its run had {name}={was}, this one has {name}={wanted}; choose another"
            )
    sizes: dict[str, int] = before["sizes"]
    changed = [path for path, size in now["sizes"].items() if sizes.get(path, size) != size]
    if changed:
        raise ConfigError(f"{changed[0]}: the file has changed since --out {out} was begun; choose another folder")
    return sizes


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json_text(dict(settings)))
    return plain
