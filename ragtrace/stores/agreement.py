"""Compare people's ratings of answers with what the judge said of them."""

from __future__ import annotations

from typing import NamedTuple

from ragtrace.stores.base import FEEDBACK, FOREIGN, GOOD

AGREEMENT = f"""
SELECT judged.name AS metric, judged.judge AS judge, judged.version AS version, count(*) AS n,
  sum((human.value >= {GOOD}) = (judged.passed = 1)) AS agreed
FROM scored AS human JOIN scored AS judged ON judged.trace_id = human.trace_id
WHERE human.source = 'human' AND human.scored_at >= :since AND human.name IN ('{FEEDBACK}', judged.name)
  AND human.version NOT LIKE 'human:{FOREIGN}%'
  AND judged.source != 'human' AND judged.passed IS NOT NULL AND judged.judge IS NOT NULL
GROUP BY judged.name, judged.judge, judged.version
"""  # noqa: S608 - constants of our own


class Agreement(NamedTuple):
    """Ratings of traces that a judge scored too, and on how many both said good or both said bad.

    A rating of the answer as a whole is compared with every metric that has a threshold, and a rating of one metric
    with that one. Ratings are no random sample, so this is no estimate over all answers.

    Example:
        >>> Agreement("faithfulness", "overlap", "0a1b2c3d", n=20, agreed=17).agreed
        17
    """

    metric: str
    judge: str
    version: str
    n: int
    agreed: int
