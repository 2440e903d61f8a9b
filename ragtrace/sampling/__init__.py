"""Which traces are scored, and with what probability.

Owns: the draw. Imports: the standard library alone.
"""

from ragtrace.sampling.draw import Draw, draw, uniform

__all__ = ["Draw", "draw", "uniform"]
