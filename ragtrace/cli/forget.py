"""``ragtrace forget``: erases a trace, a session or a user from a store and a spool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.cli.io.say import say
from ragtrace.cli.io.stored import add_store, failures, open_store, store_path
from ragtrace.errors import ConfigError
from ragtrace.model import as_trace_id

if TYPE_CHECKING:
    from ragtrace.stores.base import Erased, Subject

EPILOG = """\
Erased are scores, human labels, records, and units that wait in a spool. The file is written anew afterwards, so
that no byte of them is left in it; that needs its size in free disk, and keeps other processes from writing for
some seconds a gigabyte. Spans and metrics that were exported are elsewhere, and files put aside (.corrupt-*) are
not read; both are yours to erase.
Exit status: 0 erased (or nothing there), 2 usage or a failure.
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "forget",
        help="erase a trace, a session or a user from the store and the spool",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    who = parser.add_mutually_exclusive_group(required=True)
    for subject in ("trace", "session", "user"):
        who.add_argument(f"--{subject}", metavar="ID", help=f"erase this {subject}")
    add_store(parser)
    parser.add_argument("--spool", metavar="PATH", help="the spool's file; default RAGTRACE_SPOOL")
    parser.add_argument("--dry-run", action="store_true", help="only say how many of what")


def run(args: argparse.Namespace) -> int:
    """Erase, and say how many of what."""
    from ragtrace.stores import Erased

    subject, identity = _whom(args)
    erased = Erased()
    for path in _files(args):
        store = open_store(path)
        with failures(path):
            erased += (store.would_forget if args.dry_run else store.forget)(subject, identity)
        store.close()
        for aside in sorted(path.parent.glob(f"{path.name}.corrupt-*")):
            say(f"warning: {aside} was put aside as broken and is not read; erase it yourself")
    verb = "would be erased" if args.dry_run else "erased"
    say(f"{subject} {identity}: {_shown(erased)} {verb}")
    return 0


def _whom(args: argparse.Namespace) -> tuple[Subject, str]:
    subjects: tuple[Subject, ...] = ("trace", "session", "user")
    for subject in subjects:
        identity = getattr(args, subject)
        if identity:
            return subject, as_trace_id(identity) if subject == "trace" else identity
    raise ConfigError("forget: an empty id names nobody")


def _files(args: argparse.Namespace) -> list[Path]:
    """Return the files to erase from: the store, and the spool where it is another file."""
    from ragtrace.settings import Settings

    spool = args.spool or Settings.resolve({}).spool
    if spool and not Path(spool).is_file():
        if args.spool:
            raise ConfigError(f"--spool {spool}: there is no file; check the path")
        spool = None
    if not args.store and not Settings.resolve({}).store and spool:
        return [Path(spool)]
    path = store_path(args)
    return [path] if not spool or Path(spool).samefile(path) else [path, Path(spool)]


def _shown(erased: Erased) -> str:
    counts = {
        "scores": erased.scores,
        "human labels": erased.labels,
        "records": erased.payloads,
        "waiting units": erased.jobs,
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items())
