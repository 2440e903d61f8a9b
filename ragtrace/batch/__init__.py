"""Scores of tables and of files at scale, one function for every engine.

`score` takes a table of records and returns it with their scores. Ray Data's ``map_batches``, Spark's
``mapInArrow`` and Dask's ``map_partitions`` call it on their workers. ``ragtrace score --engine`` scores files.
"""

from ragtrace.batch.table import SCORE_COLUMNS, output_schema, score

__all__ = ["SCORE_COLUMNS", "output_schema", "score"]
