"""Statistics: intervals, weighted sums and drift detectors.

Owns: pure arithmetic on scores. Imports: numpy where an array pays, and nothing of ragtrace.
"""
