"""What is computed of a record: one file a metric, the registry, and the arithmetic that the golden vectors check.

Arithmetic that takes ids and grades instead of records, for a notebook or a batch of one's own: `rank` (also what
no metric exports: AP over all relevant, AP over min(relevant, K), MRR@K, nDCG with gain 2^g - 1), `set_family` for
one query, and `set_batch` for many at once.

Owns: metric specs, required, states and reasons. Imports: judges, stats, model, errors; never a concrete judge.
"""
