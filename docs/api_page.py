"""The public Python names: a table for the repository, and whole docstrings for the site's Markdown."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = (
    "ragtrace",
    "ragtrace.model",
    "ragtrace.capture",
    "ragtrace.metrics.base",
    "ragtrace.judges.base",
    "ragtrace.sinks.base",
    "ragtrace.queues.base",
    "ragtrace.errors",
)
MARK = "<!-- whole docstrings: {} -->"
"""Stands behind each table; in the site the docstrings of the module replace it."""


def page() -> str:
    """Return the page: a section a module, with one row a public name."""
    sections = "\n".join(
        f"## `{name}`\n\n{_first_line(_module(name))}\n\n| name | meaning |\n|---|---|\n{_rows(name)}\n"
        f"{MARK.format(name)}\n"
        for name in MODULES
    )
    return f"""# Python API

The public names, each with the first line of its docstring. Applications need `ragtrace` alone. The other modules
are for packages that bring a metric, a judge, a sink, a queue or an integration. `help(ragtrace.query)` prints a
docstring whole, and so does the site that `make docs` builds. [Stability and
deprecation](../stability.md) says which names stay, and how one goes.

{sections}"""


def whole(name: str) -> str:
    """Return a module's public names with their parameters and docstrings."""
    parts = []
    for member, target in _members(name):
        parts += [f"### {name}.{member}", _signature(member, target), target.docstring.value]
    return "\n\n".join(part for part in parts if part)


@lru_cache
def _module(name: str) -> Any:
    return griffe.load(name, search_paths=[".", "integrations/langchain", "integrations/llamaindex"])


def _members(name: str) -> Iterator[tuple[str, Any]]:
    module = _module(name)
    listed = None if module.exports is None else set(map(str, module.exports))
    for member in module.members.values():
        if member.name.startswith("_") or (member.is_alias and (listed is None or member.name not in listed)):
            continue
        try:
            target = member.final_target if member.is_alias else member
        except (griffe.AliasResolutionError, griffe.CyclicAliasError):
            continue
        if target.docstring is not None and not target.is_module and (listed is None or member.name in listed):
            yield member.name, target


def _rows(name: str) -> str:
    return "".join(f"| `{member}` | {_first_line(target)} |\n" for member, target in _members(name))


def _first_line(target: Any) -> str:
    text = target.docstring.value if target.docstring else ""
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|").replace("``", "`").strip()


def _signature(name: str, target: Any) -> str:
    return f"`{name}({', '.join(it.name for it in target.parameters)})`" if target.is_function else ""
