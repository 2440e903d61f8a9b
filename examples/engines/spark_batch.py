"""Scores a dataframe with Spark: ``mapInArrow`` calls `ragtrace.batch.score` on every executor.

Needs ``pip install pyspark ".[lake]"`` in a clone and Java 17 or later, on the executors too.
"""

import os
import sys
import tempfile
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, count, explode

import ragtrace

ROWS = [
    {"query": f"Where is lab {i}?", "answer": f"Lab {i} is in Oslo.", "contexts": [f"Lab {i} is in Oslo."]}
    for i in range(200)
]
KINDS = {"string": "string", "double": "double", "bool": "boolean", "int64": "bigint"}
SCORES = ", ".join(f"{name}: {KINDS[kind]}" for name, kind in ragtrace.batch.SCORE_COLUMNS.items())


def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Score the batches of one partition."""
    for batch in batches:
        table = ragtrace.batch.score(pa.Table.from_batches([batch]), metrics="faithfulness", judge="overlap")
        yield from table.to_batches()


os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
local = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
spark = SparkSession.builder.master("local[2]").config(map=local).getOrCreate()
answers = spark.createDataFrame(ROWS, "query string, answer string, contexts array<string>")
schema = f"query string, answer string, contexts array<string>, scores array<struct<{SCORES}>>, score_error string"
scored = answers.repartition(2).mapInArrow(score, schema)
with tempfile.TemporaryDirectory() as folder:
    scored.write.mode("overwrite").parquet(folder)
    one_each = spark.read.parquet(folder).select(explode("scores").alias("score"))
    summary = one_each.groupBy("score.metric").agg(avg("score.value").alias("mean"), count("score").alias("rows"))
    for row in summary.collect():
        print(f"{row['metric']}: {row['mean']:.3f} over {row['rows']} rows")
spark.stop()
