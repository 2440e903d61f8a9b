"""Lists the licence of each dependency by extra, and refuses licences that are not on the list.

``python -m scripts.licences`` compares ``docs/reference/third-party.md`` with the installed packages; ``--write``
writes it. Each extra is resolved from the metadata of this environment, so versions are those of the lock file.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageMetadata, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/third-party.md"
NAME = "ragtrace-otel"
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT", "MIT-0",
    "MIT-CMU", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
"""Licences that ask for no more than a notice; MPL-2.0 covers its own files alone."""

_CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "BSD License": "BSD",
    "3-Clause BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_HEAD = """\
# Licences of dependencies

ragtrace is under Apache-2.0. The wheel holds two JavaScript libraries, with their licences. Everything else is
installed beside it, by these extras. The licences are those that the packages' metadata state, on Linux and
Python 3.11. `make licences` compares this page with the installed packages, and refuses a licence that is not on
the list in `scripts/licences.py`.

| package | licence | brought by |
|---|---|---|
"""
_VENDORED = "| htmx (in the wheel) | 0BSD | `ui` |\n| uPlot (in the wheel) | MIT | `ui` |\n"


def licence(metadata: PackageMetadata) -> str:
    """Return a package's licence as an SPDX expression, as far as its metadata tell.

    A package that states none returns ``unknown``.
    """
    classified = [
        it.split(" :: ")[-1] for it in metadata.get_all("Classifier") or () if it.startswith("License ::")
    ]
    stated = ((metadata.get_all("License") or [""])[0]).strip().splitlines()
    # Some state the whole text of the licence, whose first line may be its name.
    first = _CLASSIFIED.get(stated[0].strip(), stated[0].strip()) if stated else ""
    known = [_CLASSIFIED[it] for it in classified if it in _CLASSIFIED]
    if expression := metadata.get_all("License-Expression"):
        return str(expression[0])
    if is_allowed(first):
        return first
    return " OR ".join(dict.fromkeys(known)) or "unknown"


def is_allowed(expression: str) -> bool:
    """Return whether every licence that an expression asks for, or one of its alternatives, is on the list.

    Example:
        >>> is_allowed("MPL-2.0 AND (Apache-2.0 OR GPL-3.0)"), is_allowed("MIT AND GPL-3.0"), is_allowed("unknown")
        (True, False, False)
    """
    without = re.sub(r"\(([^()]*)\)", lambda found: "MIT" if is_allowed(found[1]) else "refused", expression)
    return any(all(it.strip() in ALLOWED for it in part.split(" AND ")) for part in without.split(" OR "))


def closure(extra: str) -> set[str]:
    """Return the names of all packages that an extra brings; an empty extra means the base."""
    seen: dict[str, set[str]] = {}
    waiting = [(NAME, {extra})]
    while waiting:
        name, extras = waiting.pop()
        if name in seen and extras <= seen[name]:
            continue
        seen[name] = seen.get(name, set()) | extras
        for line in distribution(name).requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": it}) for it in seen[name] | {""}):
                waiting.append((canonicalize_name(needed.name), set(needed.extras)))
    return set(seen) - {NAME}


def by_package() -> dict[str, list[str]]:
    """Return the extras that bring each package, by its name; of the base it is ``base`` alone."""
    base = closure("")
    found = {name: ["base"] for name in base}
    for extra in sorted(set(distribution(NAME).metadata.get_all("Provides-Extra") or ()) - {"all"}):
        for name in closure(extra) - base:
            found.setdefault(name, []).append(extra)
    return dict(sorted(found.items()))


def page(packages: dict[str, list[str]]) -> str:
    """Return the page of all dependencies."""
    rows = "".join(
        f"| {name} | {licence(distribution(name).metadata)} | {', '.join(f'`{it}`' for it in extras)} |\n"
        for name, extras in packages.items()
    )
    return f"{_HEAD}{_VENDORED}{rows}"


def main(*, write: bool) -> int:
    """Check the licences and the page, or write the page; return the exit status."""
    packages = by_package()
    stated = {name: licence(distribution(name).metadata) for name in packages}
    refused = [f"{name}: {it} is not on the list of licences" for name, it in stated.items() if not is_allowed(it)]
    text = page(packages)
    if write:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        refused.append(f"{PAGE.name} is not current; run python -m scripts.licences --write")
    print("\n".join(refused) or f"{len(packages)} packages, all licences on the list")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(write="--write" in sys.argv))
