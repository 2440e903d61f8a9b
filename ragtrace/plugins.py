"""Queues and sinks of other packages, found by their entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from ragtrace.errors import ConfigError


def load_plugin(group: str, name: str) -> Any:
    """Return the object behind an installed entry point.

    Args:
        group: ``ragtrace.queues`` or ``ragtrace.sinks``.
        name: of the entry point.

    Raises:
        ConfigError: no installed package has it, or it cannot be imported.

    Example:
        >>> load_plugin("ragtrace.queues", "kafka")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: no installed package has the entry point 'kafka' in the group ragtrace.queues
    """
    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"the entry point {name!r} of {group} cannot be imported: {error}") from error
    raise ConfigError(f"no installed package has the entry point {name!r} in the group {group}")
