"""Draw the traces that are scored, each with a known probability.

Owns: the draw, the strata, and the pressure that lowers a probability. Imports: model.
"""

from ragtrace.sampling.draw import Draw, draw, uniform
from ragtrace.sampling.pressure import Load, Pressure
from ragtrace.sampling.sampler import Rates, Rule, Sampler

__all__ = ["Draw", "Load", "Pressure", "Rates", "Rule", "Sampler", "draw", "uniform"]
