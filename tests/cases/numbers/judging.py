"""Scores of the offline judge for a table of questions, contexts and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.batch import score_rows
from ragtrace.judges import OverlapJudge
from ragtrace.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

THRESHOLD = OverlapJudge.thresholds["faithfulness"]


class Judged(NamedTuple):
    """What the metrics say of one answer."""

    answered: float | None
    faithfulness: float | None
    claims: list[dict[str, Any]]
    invented: float | None
    specifics: list[str]

    @property
    def is_supported(self) -> bool:
        """Whether faithfulness has a value at or above the judge's threshold."""
        return self.faithfulness is not None and self.faithfulness >= THRESHOLD

    @property
    def is_unsupported(self) -> bool:
        """Whether faithfulness has a value below the judge's threshold."""
        return self.faithfulness is not None and self.faithfulness < THRESHOLD

    @property
    def verdicts(self) -> list[str]:
        """The verdict of each claim."""
        return [claim["verdict"] for claim in self.claims]


def judged(rows: Sequence[tuple[str, str | Sequence[str], str]]) -> list[Judged]:
    """Return what the offline judge says of each (question, context or contexts, answer)."""
    given = {
        "judge": "overlap",
        "metrics": "faithfulness,no_answer,invented_specifics",
        "grade_cache": "off",
    }
    records = [
        {"query": query, "contexts": [contexts] if isinstance(contexts, str) else list(contexts), "answer": answer}
        for query, contexts, answer in rows
    ]
    found = []
    for scored in score_rows(records, Settings.resolve(given, environ={}), jobs=1):
        assert scored.error is None
        faithful, invented = scored.scores["faithfulness"], scored.scores["invented_specifics"]
        found.append(
            Judged(
                scored.scores["answered"]["value"],
                faithful["value"],
                (faithful["details"] or {}).get("claims", []),
                invented["value"],
                (invented["details"] or {}).get("invented", []),
            )
        )
    return found
