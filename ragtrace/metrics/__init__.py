"""Metrics of a record, one file each, and the arithmetic behind them.

`ragtrace.metrics.ranking.rank` and `ragtrace.metrics.selection.set_family` take ids and grades instead of records,
for a notebook or a batch job.

Owns: metric specs, states and reasons. Imports: judges, stats, model, errors; never a concrete judge.
"""
