"""A nightly job on Ray: scores the answers of a day, which lie as Parquet in a folder for each region.

Run it: ``python nightly.py`` on sample data. ``--answers FOLDER --out FOLDER`` takes yours.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import ray

import ragtrace

REGIONS = ("eu", "us")
METRICS = "faithfulness,invented_specifics"


def write_sample(folder: Path) -> None:
    """Write 100 answers for each region; in one of them every fourth answer invents a fee."""
    for region in REGIONS:
        fee = " A fee of 30 euros is charged."
        rows = [
            {
                "query": f"Where is lab {number}?",
                "answer": f"Lab {number} is in Oslo." + (fee if region == "us" and number % 4 == 0 else ""),
                "contexts": [f"Lab {number} is in Oslo. It opens at nine."],
            }
            for number in range(100)
        ]
        (folder / f"region={region}").mkdir(parents=True)
        pq.write_table(
            pa.Table.from_pylist(rows), folder / f"region={region}" / "answers.parquet", row_group_size=50
        )


def score(table: pa.Table, judge: str) -> pa.Table:
    """Score one batch on a worker; a broken row has a `score_error` and ends nothing."""
    return ragtrace.batch.score(table, metrics=METRICS, judge=judge)


def with_columns(table: pa.Table) -> pa.Table:
    """Give each metric a column of its own, which dashboards and SQL read more easily."""
    for metric in METRICS.split(","):
        values = [
            next((one["value"] for one in row or () if one["metric"] == metric), None)
            for row in table["scores"].to_pylist()
        ]
        table = table.append_column(metric, pa.array(values, pa.float64()))
    return table


def run(answers: str, out: str, judge: str) -> None:
    """Score a folder of answers into another, and print a line for each region and the worst answers."""
    rows = ray.data.read_parquet(answers, partitioning=ray.data.datasource.Partitioning("hive"))
    scored = rows.map_batches(partial(score, judge=judge), batch_format="pyarrow", batch_size=50)
    scored.map_batches(with_columns, batch_format="pyarrow").write_parquet(out)
    table = pq.read_table(out, columns=["region", "query", "answer", "faithfulness"])
    means = table.group_by("region").aggregate([("faithfulness", "mean"), ("faithfulness", "count")])
    for row in means.sort_by("region").to_pylist():
        print(
            f"{row['region']}: {row['faithfulness_count']} scores, mean faithfulness {row['faithfulness_mean']:.3f}"
        )
    for row in table.sort_by([("faithfulness", "ascending"), ("query", "ascending")]).slice(0, 2).to_pylist():
        print(f"  {row['faithfulness']:.2f} {row['region']}: {row['query']} {row['answer']}")


def main() -> None:
    """Read the arguments, start Ray, and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", help="folder of Parquet with query, answer, contexts; default: sample data")
    parser.add_argument("--out", help="folder for the scored Parquet; default: a folder that is deleted")
    parser.add_argument("--judge", default="overlap", help="overlap (offline), or openai:MODEL")
    parser.add_argument("--address", help="of a running Ray cluster; default: one on this machine")
    args = parser.parse_args()
    local = {} if args.address else {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 200 * 2**20}
    ray.init(args.address, log_to_driver=False, **local)
    with tempfile.TemporaryDirectory() as sample:
        answers = args.answers or f"{sample}/answers"
        if not args.answers:
            write_sample(Path(answers))
        run(answers, args.out or f"{sample}/scored", args.judge)
    ray.shutdown()


if __name__ == "__main__":
    main()
