"""``ragtrace version``."""

from __future__ import annotations

import argparse
import platform
from typing import Any

from ragtrace._version import __version__
from ragtrace.cli.doctor.packages import SHOWN, installed
from ragtrace.cli.io.say import say


def add_parser(commands: Any) -> None:
    """Add the command."""
    commands.add_parser("version", help="print versions of ragtrace and what it stands on")


def run(args: argparse.Namespace) -> int:
    """Print one line a package."""
    del args
    say(f"ragtrace {__version__} (Python {platform.python_version()})")
    for name in (*SHOWN, "numpy", "pydantic"):
        say(f"{name} {installed(name) or 'is not installed'}")
    return 0
