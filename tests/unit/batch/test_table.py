"""`ragtrace.batch.score`: a table in, the same table with scores out."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ragtrace
from ragtrace.batch import output_schema, score
from ragtrace.errors import ConfigError

ROWS = [
    {
        "id": f"r{i}",
        "query": f"Where is lab {i % 7}?",
        "answer": f"Lab {i % 7} is in Oslo." if i % 5 else "In Bergen, since 1999.",
        "contexts": [f"Lab {i % 7} is in Oslo.", "The canteen opens at noon."],
        "other": i,
    }
    for i in range(40)
]
TABLE = pa.Table.from_pylist(ROWS)
WHOLE = score(TABLE)


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, len(ROWS)), max_size=5), jobs=st.sampled_from([1, 3, 16]))
def test_a_table_gives_the_same_however_it_is_split(cuts, jobs):
    edges = [0, *sorted(cuts), len(ROWS)]
    parts = [score(TABLE.slice(a, b - a), jobs=jobs) for a, b in pairwise(edges)]
    assert pa.concat_tables(parts).combine_chunks().equals(WHOLE.combine_chunks())


def test_every_score_carries_what_it_takes_to_trust_it():
    assert WHOLE["other"].to_pylist() == [row["other"] for row in ROWS]
    found = {one["metric"]: one for one in WHOLE["scores"][1].as_py()}
    faithful = found["faithfulness"]
    assert faithful["value"] == 1.0
    assert (faithful["state"], faithful["judge"]) == ("ok", "overlap")
    assert faithful["version"]
    assert json.loads(faithful["details"])["n_claims"] == 1
    assert set(faithful) == set(ragtrace.batch.SCORE_COLUMNS)


def test_an_empty_table_has_the_same_schema():
    scored = score(TABLE.slice(0, 0))
    assert len(scored) == 0
    assert scored.schema.equals(WHOLE.schema)
    assert scored.schema.equals(output_schema(TABLE.schema))


def test_a_broken_row_has_an_error_and_no_number():
    table = pa.table({"query": ["Where?", "Why?"], "answer": ["In Oslo.", "So."], "k": [2.5, None]})
    scored = score(table).to_pylist()
    assert scored[0]["scores"] is None
    assert scored[0]["score_error"] == "field 'k': expected `int | null`, got `float`"
    assert scored[1]["score_error"] is None
    assert scored[1]["scores"]


def test_contexts_may_be_structs_and_labels_a_map():
    schema = pa.schema([
        ("question", pa.string()),
        ("contexts", pa.list_(pa.struct([("id", pa.string()), ("text", pa.string()), ("score", pa.float64())]))),
        ("labels", pa.map_(pa.string(), pa.int64())),
    ])  # fmt: skip
    row = {
        "question": "Where?",
        "contexts": [{"id": "d1", "text": "Noon."}, {"id": "d2", "text": "Oslo."}],
        "labels": [("d1", 1), ("d2", 5)],
    }
    scored = score(pa.Table.from_pylist([row], schema=schema), metrics="mrr").to_pylist()[0]
    assert scored["score_error"] is None
    assert next((one["metric"], one["value"], one["k"]) for one in scored["scores"]) == ("mrr", 0.5, None)


def test_columns_of_an_earlier_run_are_replaced():
    again = score(WHOLE, metrics="faithfulness")
    assert again.column_names == WHOLE.column_names
    assert {one["metric"] for row in again["scores"].to_pylist() for one in row} == {"faithfulness"}


def test_parquet_keeps_the_scores(tmp_path):
    pq.write_table(WHOLE, tmp_path / "scored.parquet")
    assert pq.read_table(tmp_path / "scored.parquet").equals(WHOLE)


def test_a_running_loop_is_no_hindrance():
    async def inside():
        return score(TABLE.slice(0, 3))

    assert asyncio.run(inside()).equals(WHOLE.slice(0, 3).combine_chunks())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"metrics": "faithfulnes"}, "faithfulness"), ({"jobs": 0}, "jobs=0"), ({"metric_rate": 3}, "metric_rates")],
)
def test_a_wrong_setting_is_one_clear_line(wrong, said):
    with pytest.raises(ConfigError, match=said) as caught:
        score(TABLE, **wrong)
    assert "\n" not in str(caught.value)
