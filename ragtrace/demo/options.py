"""Options of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

DEFAULT_OUT = Path("ragtrace-demo.jsonl")
DEFAULT_PORT = 9464
BASELINE = 100
STACK_QUESTIONS = 500
STACK_RATE = 10.0
"""Pace of a run with the stack: three times what its windows need, so that a busy machine may ask more slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Choices of one demo run, as the flags of ``ragtrace demo`` make them.

    Attributes:
        questions: how many are asked, at least 1.
        rate: questions a second, above 0.
        is_fast: asks without a pause.
        seed: of the order of questions, of the wording and of the incident.
        has_incident: whether half-way the answerer begins to invent facts.
        out: the file for the scored records.
        port: of the OpenMetrics endpoint; a taken one is replaced by a free one.
        otlp: URL of a collector that gets everything as well.
        judge: ``overlap`` or ``openai:MODEL``.
        model: a real model answers instead of the offline answerer.
        base_url: its OpenAI-compatible server, and that of the judge.
        stack: ``local`` = Prometheus and Alertmanager run beside it.
        save_svg: the last frame of the view is saved there as a picture.

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

    @property
    def baseline(self) -> int:
        """Scores of the detector's baseline: 100, and less when few questions are asked."""
        return max(2, min(BASELINE, self.questions // 3))
