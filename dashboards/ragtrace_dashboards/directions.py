"""Of which exported metrics less is better. A test compares it with the registry, which this room cannot import."""

from __future__ import annotations

from typing import Final

LOWER_IS_BETTER: Final = (
    "contradicted_rate",
    "harm_at_k",
    "incorrect_rate",
    "invented_specifics",
    "noise_sensitivity_irrelevant",
    "noise_sensitivity_relevant",
    "noise_sensitivity_unattributed",
    "pair_contradiction",
    "score_cv",
    "score_std",
)
