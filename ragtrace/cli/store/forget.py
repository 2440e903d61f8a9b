"""Command ``ragtrace forget``, which erases a trace, session or user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.arguments import Spool, Store
from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import opened_store, store_path
from ragtrace.errors import ConfigError
from ragtrace.model import as_trace_id
from ragtrace.model.printable import count_text

if TYPE_CHECKING:
    from ragtrace.stores.base import Subject

EPILOG = """\
The command erases scores, human labels, records, anchors, and units that wait in a spool. It then writes the file
anew, so that no byte of them is left. That needs the file's size in free disk, and other processes cannot write for
some seconds a gigabyte. Exported spans and metrics, and files put aside (.corrupt-*), stay; erase them yourself.

Exit status: 0 erased (or nothing there), 2 usage or a failure.
"""


def command(
    *,
    trace: Annotated[str | None, typer.Option(metavar="ID", help="Erase this trace.")] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Erase this session.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="Erase this user.")] = None,
    store: Store = None,
    spool: Spool = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only, and erase nothing.")] = False,
) -> int:
    """Erase a trace, a session or a user from the store and the spool."""
    from ragtrace.stores import Erased

    subject, identity = _whom({"trace": trace, "session": session, "user": user})
    erased = Erased()
    for path in _files(store, spool):
        with opened_store(path) as opened:
            erased += (opened.would_forget if dry_run else opened.forget)(subject, identity)
        for aside in sorted(path.parent.glob(f"{path.name}.corrupt-*")):
            say(f"warning: {aside} was put aside as broken and is not read; erase it yourself")
    nouns = {"score": erased.scores, "human label": erased.labels, "record": erased.payloads}
    counts = ", ".join(count_text(count, noun) for noun, count in nouns.items())
    counts += f", {count_text(erased.anchors, 'anchor')}" if erased.anchors else ""
    verb = "would be erased" if dry_run else "erased"
    say(f"{subject} {identity}: {counts}, {count_text(erased.jobs, 'waiting unit')} {verb}")
    return 0


def _whom(given: dict[Subject, str | None]) -> tuple[Subject, str]:
    chosen = [(subject, identity) for subject, identity in given.items() if identity is not None]
    if len(chosen) != 1:
        raise ConfigError("forget: give one of --trace ID, --session ID and --user ID")
    ((subject, identity),) = chosen
    if not identity:
        raise ConfigError("forget: the id is empty")
    return subject, as_trace_id(identity) if subject == "trace" else identity


def _files(store: str | None, given: str | None) -> list[Path]:
    from ragtrace.settings import Settings

    spool = given or Settings.resolve({}).spool.path
    if spool and not Path(spool).is_file():
        if given:
            raise ConfigError(f"--spool {spool}: there is no file; check the path")
        spool = None
    if not store and not Settings.resolve({}).store.path and spool:
        return [Path(spool)]
    path = store_path(store, "forget")
    return [path] if not spool or Path(spool).samefile(path) else [path, Path(spool)]
