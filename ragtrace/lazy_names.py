"""Names that a package gives from its modules, each imported when it is first used."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's `__getattr__`; `homes` has a module's names, with blanks between, by the module.

    A name that is also a module's cannot be lazy: once the module is imported, the package's name is the module.

    Example:
        >>> given = lazy_names("ragtrace.stats", {"agreement": "Level pearson", "intervals": "wilson"})
        >>> given("wilson").__module__
        'ragtrace.stats.intervals'
    """
    home_of = {name: f"{package}.{module}" for module, names in homes.items() for name in names.split()}

    def given(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return given
