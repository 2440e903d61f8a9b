"""Judges and embedders by name, one file a name.

A file defines ``judge``, ``embedder``, or both. Each takes the text after the colon and `JudgeParameters`.
``IS_OFFLINE`` says that it costs nothing and always returns the same. A file is imported when its name is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from ragtrace.judges.cache.grade_cache import GradeCache
    from ragtrace.judges.limiter import RateLimiter
    from ragtrace.modes import Grading


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeParameters:
    """Settings of a judge or an embedder.

    Attributes:
        base_url: an OpenAI-compatible server; with it a key is optional.
        api_key: its key.
        timeout_s: limit of one attempt, in seconds.
        grade_batch: passages that ``openai`` grades in one call, 1 to 10.
        grading: scale on which ``openai`` grades.
        limiter: admits every attempt of ``openai``; None admits all.
        grade_cache: keeps the grades of ``openai``; None gives each judge a memory of its own.
    """

    base_url: str | None = None
    api_key: str | None = None
    timeout_s: float = 45.0
    grade_batch: int = 10
    grading: Grading = "direct5"
    limiter: RateLimiter | None = None
    grade_cache: GradeCache | Literal["off"] | None = None

    def refuse_forms(self, name: str) -> None:
        """Raise ConfigError for a form of judging that only ``openai`` has."""
        if self.grading != "direct5":
            raise ConfigError(
                f"judge {name!r} grades on direct5 alone, got {self.grading!r}: use openai:MODEL, or direct5"
            )
