"""Limits of a judge: rates, budgets, concurrency, and a circuit breaker.

Owns: whether an attempt may be made now. Imports: the judges' protocol of a limiter, the queues' clock, settings.
"""

from ragtrace.scoring.limits.blocked import Blocked
from ragtrace.scoring.limits.budget import Caps
from ragtrace.scoring.limits.judge_limiter import JudgeLimiter, LimiterReading
from ragtrace.scoring.limits.prices import Prices

__all__ = ["Blocked", "Caps", "JudgeLimiter", "LimiterReading", "Prices"]
