"""Which settings hold: those of `instrument`, or of the innermost `instrumented` block."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.capture import Recorder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """Where runs go, and what is said of each where the request says nothing."""

    recorder: Recorder | None = None
    workflow: str | None = None
    session: str | None = None
    user: str | None = None
    corpus: str | None = None
    corpus_version: str | None = None
    k: int | None = None
    tags: tuple[str, ...] = ()


class Holder:
    """The settings in force; changed by `install` alone, under its lock.

    Attributes:
        base: those of `instrument`.
        blocks: those of the open `instrumented` blocks of all threads, the newest last.
    """

    def __init__(self) -> None:
        self.base: Settings | None = None
        self.blocks: tuple[Settings, ...] = ()

    def current(self) -> Settings | None:
        """Return those of a run that begins now: of the block around it, else the newest block, else the base."""
        own = inside.get()
        blocks = self.blocks
        if own is not None and own in blocks:
            return own
        return blocks[-1] if blocks else self.base


inside: ContextVar[Settings | None] = ContextVar("ragtrace_llamaindex_settings", default=None)
holder = Holder()
