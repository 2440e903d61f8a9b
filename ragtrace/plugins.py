"""Queues and sinks by name: modules of this package, and entry points of other packages."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

from ragtrace.errors import ConfigError, MissingExtra, nearest


def load_plugin(group: str, name: str) -> Any:
    """Return the class or function that makes a queue or a sink.

    It is ``PLUGIN`` of the module of this name in the group's folder, else an entry point of an installed package.

    Args:
        group: ``ragtrace.queues`` or ``ragtrace.sinks``: a folder of this package, and a group of entry points.
        name: of the module or the entry point.

    Raises:
        ConfigError: neither exists, or the entry point cannot be imported.
        MissingExtra: its package is not installed.

    Example:
        >>> load_plugin("ragtrace.sinks", "phoenix").__name__
        'PhoenixSink'
        >>> load_plugin("ragtrace.queues", "kafak")
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: ragtrace.queues has no module and no entry point 'kafak'; did you mean 'kafka'?
    """
    if name.isidentifier() and find_spec(f"{group}.{name}") is not None:
        made_by = getattr(import_module(f"{group}.{name}"), "PLUGIN", None)
        if made_by is not None:
            return made_by
    for point in entry_points(group=group, name=name):
        try:
            return point.load()
        except MissingExtra:
            raise
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"the entry point {name!r} of {group} cannot be imported: {error}") from error
    known = {point.name for point in entry_points(group=group)}
    for module in iter_modules(import_module(group).__path__):
        with suppress(ImportError):  # of an extra that is not installed
            if hasattr(import_module(f"{group}.{module.name}"), "PLUGIN"):
                known.add(module.name)
    raise ConfigError(f"{group} has no module and no entry point {name!r}{nearest(name, known)}")
