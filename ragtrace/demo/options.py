"""Options of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DEFAULT_OUT = Path("ragtrace-demo.jsonl")
DEFAULT_PORT = 9464
STACK_QUESTIONS = 500
STACK_RATE = 10.0
"""Pace of a run with the stack: three times what its windows need, so that a busy machine may ask more slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Choices of one demo run, as the flags of ``ragtrace demo`` make them.

    Attributes:
        port: of the OpenMetrics endpoint; a taken one is replaced by a free one.
        model: a real model answers instead of the offline answerer.
        base_url: OpenAI-compatible server of the model and of the judge.

    Example:
        >>> DemoOptions().incident_at, DemoOptions(has_incident=False).incident_at
        (151, None)
    """

    questions: int = 300
    rate: float = 5.0
    is_fast: bool = False
    seed: int = 0
    has_incident: bool = True
    out: Path = DEFAULT_OUT
    port: int = DEFAULT_PORT
    otlp: str | None = None
    judge: str = "overlap"
    model: str | None = None
    base_url: str | None = None
    stack: Literal["local"] | None = None
    save_svg: Path | None = None

    @property
    def incident_at(self) -> int | None:
        """Number of the question with which the incident begins; None without one."""
        return self.questions // 2 + 1 if self.has_incident else None
