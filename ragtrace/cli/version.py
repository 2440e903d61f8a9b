"""``ragtrace version``."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata
from typing import Any

from ragtrace._version import __version__


def add_parser(commands: Any) -> None:
    """Add the command."""
    commands.add_parser("version", help="print versions of ragtrace and what it stands on")


def run(args: argparse.Namespace) -> int:
    """Print one line a package."""
    del args
    print(f"ragtrace {__version__} (Python {platform.python_version()})")
    for name in ("opentelemetry-sdk", "langchain-core", "openai", "numpy", "pydantic"):
        try:
            print(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed")
    return 0
