"""The limits of what a judge may take: rates, money, concurrency, and leaving a broken judge alone.

Owns: whether an attempt may be made now. Imports: the judges' protocol of a gate, the queues' clock, settings.
"""

from ragtrace.scoring.limits.books import Caps
from ragtrace.scoring.limits.closed import Closed
from ragtrace.scoring.limits.judge_gate import GateReading, JudgeGate
from ragtrace.scoring.limits.prices import Prices

__all__ = ["Caps", "Closed", "GateReading", "JudgeGate", "Prices"]
