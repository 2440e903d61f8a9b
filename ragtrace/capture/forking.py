"""What a forked child does at once: it has its parent's memory, and of the parent's threads none."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def in_children(method: Callable[[], object]) -> None:
    """Call a bound method in every forked child, while its object lives; it is not kept alive by this.

    Example:
        >>> class Counter:
        ...     def reset(self) -> None:
        ...         self.count = 0
        >>> in_children(Counter().reset)
    """
    if hasattr(os, "register_at_fork"):
        found = weakref.WeakMethod(method)
        os.register_at_fork(after_in_child=lambda: (living := found()) and living())
