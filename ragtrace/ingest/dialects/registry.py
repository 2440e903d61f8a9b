"""Dialects by name: each module of this folder that has a ``DIALECT``."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.ingest.dialects.base import SpanDialect


@cache
def all_dialects() -> Mapping[str, SpanDialect]:
    """Return every dialect by name; ragtrace's own comes first.

    Example:
        >>> next(iter(all_dialects()))
        'ragtrace'
    """
    names = [item.name for item in iter_modules([str(Path(__file__).parent)])]
    names.sort(key=lambda name: (name != "ragtrace", name))
    modules = (import_module(f"ragtrace.ingest.dialects.{name}") for name in names)
    return {found.name: found for module in modules if (found := getattr(module, "DIALECT", None)) is not None}
