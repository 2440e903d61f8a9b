"""Reads the human labels of a file before any judge is asked."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.io.jsonl_reader import open_lines, read_lines
from ragtrace.errors import ConfigError, InputError, nearest
from ragtrace.scoring.offline.human_labels import LabelForm, Ratings, form_of, ratings_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.cli.io.jsonl_reader import Line

_ABSENT = object()


@dataclass(slots=True)
class Labelled:
    """Facts of a file of labelled records, without its texts.

    Attributes:
        form: the labels' scale.
        ratings: of each line by its number, empty where it has no label.
        chars: length of each line's answer.
        kept_for: of each line by its number, why a store kept it; missing where the line does not say so.
    """

    form: LabelForm
    ratings: dict[int, Ratings] = field(default_factory=dict)
    chars: dict[int, int] = field(default_factory=dict)
    kept_for: dict[int, str] = field(default_factory=dict)


def good_lines(name: str, limit: int | None) -> Iterator[Line]:
    """Yield the lines of a file, all of which must be good.

    Raises:
        InputError: of the first line that is not, as ``file:line: reason``.
    """

    def refuse(line: str) -> None:
        raise InputError(f"{line}; mend the line or remove it")

    with open_lines(name) as stream:
        yield from islice(read_lines(stream, name, refuse), limit)


def read_labelled(
    name: str,
    paths: Sequence[str],
    *,
    limit: int | None = None,
    is_inverted: bool = False,
    high_from: float | None = None,
) -> Labelled:
    """Read the labels of a file.

    Args:
        name: the file; standard input and pipes are refused, since they can be read only once.
        paths: fields that hold a label, one or more; ``a.b`` is the field b of a.
        limit: read no further than so many lines.
        is_inverted: a high label stands for a low score.
        high_from: labels at or above it are of the high class, as they are after turning.

    Raises:
        InputError: a broken line, or a label of no scale, as ``file:line: reason``.
        ConfigError: the file cannot be read twice, it has no label at all, or `high_from` is outside the scale.
    """
    if name == "-" or _is_read_once(Path(name)):
        raise ConfigError(f"{name}: calibrate reads its file twice; write the records to a file and name that")
    found: dict[int, Ratings] = {}
    labelled = Labelled(form=form_of({}))
    names: set[str] = set()
    for line in good_lines(name, limit):
        given = json.loads(line.rest)
        names.update(given)
        found[line.number] = _ratings(given, paths, f"{name}:{line.number}")
        labelled.chars[line.number] = len(line.record.answer)
        if isinstance(why := given.get("kept_for"), str):
            labelled.kept_for[line.number] = why
    if not any(found.values()):
        fields = " or ".join(map(repr, paths))
        raise ConfigError(f"{name}: no line has a label in {fields}{nearest(paths[0], names)}")
    try:
        form = form_of(found)
    except InputError as error:
        raise InputError(f"{name}:{error}") from None
    labelled.form = _with_high_from(form, high_from)
    labelled.ratings = {line: form.turned(one) if is_inverted else one for line, one in found.items()}
    return labelled


def _is_read_once(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def _ratings(given: dict[str, object], paths: Sequence[str], where: str) -> Ratings:
    ratings: list[float | None] = []
    for path in paths:
        value = _at(given, path)
        try:
            ratings += ratings_in(None if value is _ABSENT else value) or (None,)
        except InputError as error:
            raise InputError(f"{where}: {path}: {error}") from None
    return tuple(ratings) if any(rating is not None for rating in ratings) else ()


def _at(given: object, path: str) -> object:
    if isinstance(given, dict) and path in given:
        return given[path]
    head, dot, rest = path.partition(".")
    return _at(given[head], rest) if dot and isinstance(given, dict) and head in given else _ABSENT


def _with_high_from(form: LabelForm, high_from: float | None) -> LabelForm:
    if high_from is None:
        return form
    if not form.low < high_from <= form.high:
        raise ConfigError(f"--high-from {high_from:g} must be above {form.low:g} and at most {form.high:g}")
    return replace(form, high_from=high_from)
