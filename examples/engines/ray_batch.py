"""Scores a dataset with Ray Data: ``map_batches`` calls `ragtrace.batch.score` on every worker.

Needs ``pip install "ray[data]" "ragtrace-otel[lake]"``, on the workers too.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import ray

import ragtrace

ROWS = [
    {"query": f"Where is lab {i}?", "answer": f"Lab {i} is in Oslo.", "contexts": [f"Lab {i} is in Oslo."]}
    for i in range(200)
]


def score(table: pa.Table) -> pa.Table:
    """Score one batch; a broken row has a `score_error` and ends nothing."""
    return ragtrace.batch.score(table, metrics="faithfulness", judge="overlap")


with tempfile.TemporaryDirectory() as folder:
    pq.write_table(pa.Table.from_pylist(ROWS), Path(folder) / "answers.parquet", row_group_size=50)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=200 * 2**20,
        log_to_driver=False,
    )
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    answers = ray.data.read_parquet(str(Path(folder) / "answers.parquet"))
    scored = answers.map_batches(score, batch_format="pyarrow", batch_size=50)
    rows = scored.take_all()
    ray.shutdown()

values = [row["scores"][0]["value"] for row in rows]
print(f"{len(rows)} rows, mean faithfulness {sum(values) / len(values):.3f}, first: {rows[0]['query']}")
