"""Reports that a command writes beside its table."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def check_reports(reports: Mapping[str, Path | None], *, taken: Iterable[str | None]) -> None:
    """Refuse reports that cannot be written, before any work.

    Args:
        reports: the file of each flag; None where the flag is not given.
        taken: files that the command reads or writes; ``-`` and None are passed over.

    Raises:
        ConfigError: a report has the path of another file, is a folder or stands in none, or a plot has
            another form.
        MissingExtra: a plot needs matplotlib.
    """
    known = {Path(name).resolve() for name in taken if name not in {None, "-"}}
    for flag, path in reports.items():
        if path is None:
            continue
        if path.resolve() in known:
            raise ConfigError(f"{flag} {path} is read or written already; choose another")
        if path.is_dir() or not path.resolve().parent.is_dir():
            raise ConfigError(f"{flag} {path}: cannot be written there; name a file in a folder that exists")
        known.add(path.resolve())
    if plot := reports.get("--plot"):
        from ragtrace.report.calibration_plot import check_plot

        check_plot(plot)


def write_json(path: Path | None, report: Mapping[str, object]) -> None:
    """Write the report of ``--json``; nothing without a path.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is not None:
        with written("--json", path):
            path.write_text(f"{json.dumps(report, indent=2)}\n", encoding="utf-8")


@contextmanager
def written(flag: str, path: Path) -> Iterator[None]:
    """Name the flag and the file of a report that cannot be written.

    Raises:
        ConfigError: on an OSError inside.
    """
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{flag} {path}: {error.strerror or error}; choose another file") from None
