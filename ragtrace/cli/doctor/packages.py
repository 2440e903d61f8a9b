"""Checks the installed packages for conflicts, old versions and missing extras."""

from __future__ import annotations

import re
from importlib import metadata
from typing import NamedTuple

from ragtrace.cli.doctor.check_result import CheckResult

OURS = "ragtrace-otel"
_INSTALL = "pip install . in a clone"  # until the first release
STRANGER = "ragtrace"  # a distribution of that name belongs to another project, and its files would overwrite ours
SHOWN = ("opentelemetry-sdk", "langchain-core", "llama-index-core", "openai")
_RELEASE = re.compile(r"\d+(?:\.\d+)*+")
_REQUIREMENT = re.compile(  # of at most 512 characters: a line of our own metadata
    r"([A-Za-z0-9._-]+)[^;]*?>=\s*([0-9][0-9.]*)(?:.*extra == ['\"]([\w-]+)['\"])?"
)


class Floor(NamedTuple):
    """Oldest supported version of a package, and its extra ("" = always installed)."""

    package: str
    version: str
    extra: str


def check_packages() -> list[CheckResult]:
    """Check the packages of this environment."""
    floors = own_floors()
    return [_stranger(), _versions(floors), _extras(floors)]


def own_floors(name: str = OURS) -> list[Floor] | None:
    """Return the floors in our own metadata; None without an installation."""
    try:
        requires = metadata.requires(name)
    except metadata.PackageNotFoundError:
        return None
    found = [_REQUIREMENT.match(line) for line in requires or ()]
    return [Floor(match[1], match[2], match[3] or "") for match in found if match and match[3] != "all"]


def installed(package: str) -> str | None:
    """Return the version of an installed distribution, None when there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def is_older(version: str, floor: str) -> bool:
    """Return whether a version is below a floor, by its numbers alone.

    Example:
        >>> is_older("1.9.2", "1.10"), is_older("2.0rc1", "1.45"), is_older("1.45", "1.45.0")
        (True, False, False)
    """
    here, least = _numbers(version), _numbers(floor)
    length = max(len(here), len(least))
    return here + [0] * (length - len(here)) < least + [0] * (length - len(least))


def _numbers(version: str) -> list[int]:
    release = _RELEASE.match(version)
    return [int(part) for part in release[0].split(".")] if release else []


def _stranger() -> CheckResult:
    version = installed(STRANGER)
    if version is None:
        return CheckResult("conflicts", "ok", f"no package that takes the place of {OURS}")
    said = f"{STRANGER} {version} is installed beside {OURS}; it is another project, with files of the same names"
    todo = f"pip uninstall {STRANGER} {OURS}, then {_INSTALL}"
    return CheckResult("conflicts", "fail", said, todo)


def _versions(floors: list[Floor] | None) -> CheckResult:
    if floors is None:
        said = f"{OURS} is not installed here, only imported; versions cannot be compared"
        return CheckResult("versions", "warn", said, _INSTALL)
    known = {floor: installed(floor.package) for floor in floors}
    wrong = {
        floor.package: f"{floor.package} {version or 'is missing'} (needs {floor.version})"
        for floor, version in known.items()
        if (version is not None and is_older(version, floor.version)) or (version is None and not floor.extra)
    }
    if wrong:
        wanted = " ".join(f'"{floor.package}>={floor.version}"' for floor in floors if floor.package in wrong)
        return CheckResult("versions", "fail", "; ".join(wrong.values()), f"pip install --upgrade {wanted}")
    said = ", ".join(
        f"{floor.package} {version}" for floor, version in known.items() if version and floor.package in SHOWN
    )
    return CheckResult("versions", "ok", said)


def _extras(floors: list[Floor] | None) -> CheckResult:
    parts: dict[str, list[bool]] = {}
    for floor in floors or ():
        if floor.extra:
            parts.setdefault(floor.extra, []).append(installed(floor.package) is not None)
    there = sorted(name for name, is_there in parts.items() if all(is_there))
    absent = sorted(name for name, is_there in parts.items() if not any(is_there))
    halves = sorted(name for name, is_there in parts.items() if any(is_there) and not all(is_there))
    said = f"there: {', '.join(there) or 'none'}; not there: {', '.join([*absent, *halves]) or 'none'}"
    return CheckResult("extras", "ok", said)
