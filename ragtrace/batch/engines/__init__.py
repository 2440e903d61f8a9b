"""Engines that run parts on workers, one file each.

A module has ``run``. It yields a result for every part, whatever happens to a worker. Workers need ragtrace, the
packages of judge and file system, and their credentials in the environment.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Protocol, cast

from ragtrace.batch.work import reason_of
from ragtrace.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.batch.parts import Part
    from ragtrace.batch.work import BatchJob, PartResult

_INSTALLED_BY = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}


class Engine(Protocol):
    """Runs `ragtrace.batch.work.score_part` over parts."""

    def __call__(self, job: BatchJob, parts: Sequence[Part], workers: int | None) -> Iterator[PartResult]:
        """Yield the result of each part as it ends."""
        ...


@contextmanager
def starting(name: str) -> Iterator[None]:
    """Turn every failure of an engine's start into one line.

    Example:
        >>> with starting("ray"):
        ...     raise TimeoutError("no raylet")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: --engine ray: it does not start (TimeoutError: no raylet)
    """
    try:
        yield
    except Exception as error:
        raise ConfigError(f"--engine {name}: it does not start ({reason_of(error)})") from error


def engine_names() -> list[str]:
    """Return the names of the engines.

    Example:
        >>> engine_names()
        ['dask', 'local', 'ray', 'spark']
    """
    return sorted(module.name for module in iter_modules(__path__))


def load_engine(name: str) -> Engine:
    """Return an engine by name.

    Raises:
        ConfigError: an unknown name, or its package is not installed.

    Example:
        >>> load_engine("flink")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: --engine flink: unknown; valid: dask, local, ray, spark
    """
    known = engine_names()
    if name not in known:
        raise ConfigError(f"--engine {name}: unknown{nearest(name, known)}")
    try:
        return cast("Engine", import_module(f"{__name__}.{name}").run)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        package = _INSTALLED_BY.get(name, missing)
        raise ConfigError(f"--engine {name}: {missing} is not installed: pip install {package}") from None
