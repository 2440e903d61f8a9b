"""The scorer: takes units, runs metrics, keeps the accounts.

Owns: when and how often a record is scored. Imports: metrics, queues, judges' protocols, capture's loss counter.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.scoring.ledger import Ledger
from ragtrace.scoring.scorer import Scorer, weight_of
from ragtrace.scoring.worker import Outcome, Worker

if TYPE_CHECKING:
    from ragtrace.scoring.background_task import BackgroundTask
    from ragtrace.scoring.canary.canaries import Canaries
    from ragtrace.scoring.canary.pairs import canary_pairs
    from ragtrace.scoring.daemon_threads import DaemonThreads
    from ragtrace.scoring.investigation.comparison import NoMetric, TooFewScores
    from ragtrace.scoring.investigation.runs import RunScore, ScoredSource, StoreSource
    from ragtrace.scoring.investigation.search import investigated
    from ragtrace.scoring.investigation.verdicts import NO_VERDICT, verdict_shares
    from ragtrace.scoring.limits import Blocked, Caps, JudgeLimiter, Prices
    from ragtrace.scoring.limits.breaker import Breaker
    from ragtrace.scoring.limits.bucket import Bucket
    from ragtrace.scoring.limits.budget import Budget, Refusal, Reservation
    from ragtrace.scoring.limits.judge_limiter import JudgePermit
    from ragtrace.scoring.limits.pace import Pace, Purse
    from ragtrace.scoring.limits.trouble import Trouble
    from ragtrace.scoring.offline.calibration import Calibration, Rated, calibrate
    from ragtrace.scoring.offline.comparison import ComparedFile, compare
    from ragtrace.scoring.offline.file import score_stream
    from ragtrace.scoring.offline.human_labels import FORM_OF, LabelForm, form_of
    from ragtrace.scoring.offline.rescore import Rescoring
    from ragtrace.scoring.offline.scored_row import clusters_of, ends_of, scored_row
    from ragtrace.scoring.scorer import postponed, verdict_of
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "background_task": "BackgroundTask",
            "canary.canaries": "Canaries",
            "canary.pairs": "canary_pairs",
            "daemon_threads": "DaemonThreads",
            "investigation.comparison": "NoMetric TooFewScores",
            "investigation.runs": "RunScore ScoredSource StoreSource",
            "investigation.search": "investigated",
            "investigation.verdicts": "NO_VERDICT verdict_shares",
            "limits": "Blocked Caps JudgeLimiter Prices",
            "limits.breaker": "Breaker",
            "limits.bucket": "Bucket",
            "limits.budget": "Budget Refusal Reservation",
            "limits.judge_limiter": "JudgePermit",
            "limits.pace": "Pace Purse",
            "limits.trouble": "Trouble",
            "offline.calibration": "Calibration Rated calibrate",
            "offline.comparison": "ComparedFile compare",
            "offline.file": "score_stream",
            "offline.human_labels": "FORM_OF LabelForm form_of",
            "offline.rescore": "Rescoring",
            "offline.scored_row": "clusters_of ends_of scored_row",
            "scorer": "postponed verdict_of",
        },
    )

__all__ = [
    "Ledger",
    "Outcome",
    "Scorer",
    "Worker",
    "weight_of",
]
