"""The scorer: takes units, runs metrics, keeps the accounts.

Owns: when and how often a record is scored. Imports: metrics, queues, judges' protocols, capture's loss counter.
"""

from ragtrace.scoring.ledger import Ledger
from ragtrace.scoring.scorer import Scorer, weight_of
from ragtrace.scoring.worker import Outcome, Worker

__all__ = ["Ledger", "Outcome", "Scorer", "Worker", "weight_of"]
