"""Statistics: intervals, agreement and drift detectors.

Owns: pure arithmetic on scores. Imports: numpy where an array pays, and of ragtrace semconv alone.
"""
