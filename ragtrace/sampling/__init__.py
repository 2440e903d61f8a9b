"""Draw the traces that are scored, each with a known probability.

Owns: the draw, the strata, and the pressure that lowers a probability. Imports: model.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.sampling.draw import Draw, draw, uniform
from ragtrace.sampling.pressure import Load, Pressure
from ragtrace.sampling.sampler import Rates, Rule, Sampler

if TYPE_CHECKING:
    from ragtrace.sampling.second import is_drawn_again
    from ragtrace.sampling.strata import forced_reason
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "second": "is_drawn_again",
            "strata": "forced_reason",
        },
    )

__all__ = [
    "Draw",
    "Load",
    "Pressure",
    "Rates",
    "Rule",
    "Sampler",
    "draw",
    "uniform",
]
