"""Prints the versions of the packages that integrations are tested on: ``python -m ragtrace.testing.versions``."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

TESTED = (
    "langchain-core",
    "langchain",
    "langgraph",
    "llama-index-core",
    "llama-index-instrumentation",
    "llama-index-workflows",
    "opentelemetry-sdk",
)


def installed(names: tuple[str, ...] = TESTED) -> str:
    """Return names and installed versions on one line; what is missing says so.

    Example:
        >>> installed(("no-such-package",))
        'no-such-package: missing'
    """
    return ", ".join(_shown(name) for name in names)


def _shown(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name}: missing"


if __name__ == "__main__":
    print(installed())  # noqa: T201 - it is a command
