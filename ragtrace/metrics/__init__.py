"""What is computed of a record: one file a metric, the registry, and the arithmetic that the golden vectors check.

Owns: metric declarations, gates, states and reasons. Imports: judges, stats, model, errors; never a concrete judge.
"""
