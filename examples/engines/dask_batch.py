"""Scores Parquet with Dask: each row group is a task that calls `ragtrace.batch.score` on a worker.

Needs ``pip install distributed ".[lake]"`` in a clone, on the workers too.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

import ragtrace

ROWS = [
    {"query": f"Where is lab {i}?", "answer": f"Lab {i} is in Oslo.", "contexts": [f"Lab {i} is in Oslo."]}
    for i in range(200)
]


def score(group: int, path: str) -> pa.Table:
    """Read and score one row group."""
    table = pq.ParquetFile(path).read_row_group(group)
    return ragtrace.batch.score(table, metrics="faithfulness", judge="overlap")


def main() -> None:
    """Score a file of four row groups with two workers."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "answers.parquet")
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=50)
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        with cluster, Client(cluster) as client:
            futures = client.map(score, range(pq.ParquetFile(path).num_row_groups), path=path)
            scored = pa.concat_tables(client.gather(futures))
    values = [scores[0]["value"] for scores in scored["scores"].to_pylist()]
    print(f"{len(scored)} rows, mean faithfulness {sum(values) / len(values):.3f}, first: {scored['query'][0]}")


if __name__ == "__main__":  # the workers import this file
    main()
