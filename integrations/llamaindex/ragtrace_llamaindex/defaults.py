"""Which defaults hold: those of `instrument`, or of the innermost `instrumented` block."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.capture import Defaults


class Holder:
    """The defaults in force; changed by `install` alone, under its lock.

    Attributes:
        base: those of `instrument`.
        blocks: those of the open `instrumented` blocks of all threads, the newest last.
    """

    def __init__(self) -> None:
        self.base: Defaults | None = None
        self.blocks: tuple[Defaults, ...] = ()

    def current(self) -> Defaults | None:
        """Return those of a run that begins now: of the block around it, else the newest block, else the base."""
        own = inside.get()
        blocks = self.blocks
        if own is not None and any(block is own for block in blocks):
            return own
        return blocks[-1] if blocks else self.base


inside: ContextVar[Defaults | None] = ContextVar("ragtrace_llamaindex_defaults", default=None)
holder = Holder()
