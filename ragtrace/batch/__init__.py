"""Scores of tables and of files at scale, one function for every engine.

`score` takes a table of records and returns it with their scores. Ray Data's ``map_batches``, Spark's
``mapInArrow`` and Dask's ``map_partitions`` call it on their workers. ``ragtrace score --engine`` scores files.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.batch.engines import load_engine
    from ragtrace.batch.readers import reader_of
    from ragtrace.batch.reading import Broken, read_rows
    from ragtrace.batch.rows import record_of, score_rows
    from ragtrace.batch.table import SCORE_COLUMNS, output_schema, score, scorer_settings
    from ragtrace.batch.work import BatchJob, score_part
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "engines": "load_engine",
            "readers": "reader_of",
            "reading": "Broken read_rows",
            "rows": "record_of score_rows",
            "table": "SCORE_COLUMNS output_schema score scorer_settings",
            "work": "BatchJob score_part",
        },
    )

__all__ = [
    "SCORE_COLUMNS",
    "output_schema",
    "score",
]
