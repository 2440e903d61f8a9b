"""A record is cut by its characters when it is made: every script keeps as many passages, and every queue takes it."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ragtrace.capture import Limits, Recorder, internal_errors
from ragtrace.model import Labels, Message
from ragtrace.queues import MOST_BYTES, MemoryQueue, SqliteQueue, Unit, from_bytes, to_bytes
from tests.kept import Keeper

SCRIPTS = {
    "english": "The parcel goes back to the warehouse. ",
    "russian": "Посылка возвращается обратно на склад. ",
    "chinese": "包裹会退回仓库退款需要五个工作日。",
    "arabic": "يعود الطرد إلى المستودع خلال خمسة أيام. ",
    "emoji": "📦🏬💸🕔📅🙂🙃😀😃😄",
    "quotes and backslashes": '\\"\'\\\\""\\',
    "control characters": "\x00\x01\x07\x1b\x1f\x7f\x85",
}
PASSAGES, CHARS = 50, 32_000  # 1,600,000 characters, of which 1,048,576 are kept


def text_of(script: str, number: int) -> str:
    return f"{number:02d} {SCRIPTS[script] * CHARS}"[:CHARS]


def captured(script: str):
    keeper = Keeper()
    with Recorder(keeper).start(query="How long does a refund take?") as run:
        pool = [{"id": f"d{n}", "text": text_of(script, n), "score": 1.0} for n in range(PASSAGES)]
        run.retrieved(pool)
        run.reranked(pool[::-1])
        run.used(pool[40:20:-1])
        run.answered(text_of(script, 99))
    return keeper.runs[0].record


def with_text(record, stage):
    return [p.id for p in record.pool(stage) if p.text]


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_same_length_keeps_the_same_passages_in_every_language(script):
    record = captured(script)
    delivered = [f"d{n}" for n in range(40, 20, -1)]
    assert with_text(record, "used") == delivered
    assert with_text(record, "reranked") == [f"d{n}" for n in range(49, 20, -1)] + ["d20", "d19", "d18"]
    assert [len(record.pool(stage)) for stage in ("retrieved", "reranked", "used")] == [50, 50, 20]
    assert record.lossy["passage_texts"] == 18
    assert {p.truncated for p in record.pool("retrieved") if not p.text} == {CHARS}
    assert len(record.answer) == CHARS


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_memory_queue_and_a_spool_give_the_same_record(script, tmp_path):
    ends = Counter()
    record = captured(script)
    spool = SqliteQueue(tmp_path / "spool", ended=lambda *end: ends.update([end]))
    memory = MemoryQueue()
    given = []
    for queue in (memory, spool):
        assert queue.put(Unit(record=record)) == []
        assert queue.flush(30)
        (job,) = queue.lease(9)
        given.append(job.unit.record)
    spool.close()
    assert given == [record, record]
    assert ends == {("spooled", ""): 1}


def hostile_record(seed: int):
    """Return the record of a run in which everything is long, and of a script that JSON makes longer."""
    rng = random.Random(seed)
    keeper = Keeper()
    long = rng.choice(list(SCRIPTS.values())) * 10_000
    facts = {f"{n}{long[:500]}": rng.choice([long, [long[:20]] * 40, 1 << 62, 0.1, True]) for n in range(30)}
    pool = [
        {"id": f"{n} {long[:300]}", "text": f"{n} {long}", "score": rng.random(), "metadata": facts}
        for n in range(rng.choice([3, 50, 400, 2_000]))
    ]
    limits = Limits(text_chars=rng.choice([65_536, 1_000]))
    with Recorder(keeper, limits=limits).start(query=long, session=long, user=long, tags=[long] * 99) as run:
        run.retrieved(pool, source=long)
        run.reranked(pool)
        run.used(pool)
        run.set_history([Message(role="user", content=long)] * 99)
        parts = [{"text": long, "citations": [p["id"] for p in pool[:300]]}] * 40
        run.answered(long, model=long, parts=parts, usage={"input_tokens": 10**5000, "output_tokens": 1})
        run.reference(long)
        run.interrupted(long)
        run.labels({f"{n}{long[:300]}": 5 for n in range(rng.choice([10, 4_000]))})
        for _ in range(99):
            run.feedback(0.5, comment=long, source=long)
    return keeper.runs[0].record


@pytest.mark.parametrize("seed", range(12))
def test_whatever_an_application_reports_fits_a_queue(seed):
    record = hostile_record(seed)
    payload = to_bytes(Unit(record=record))
    assert len(payload) <= MOST_BYTES
    assert MemoryQueue().put(Unit(record=record)) == []
    assert from_bytes(payload, key="k", age_s=0.0, now=0.0).record == record
    assert {"answer_parts", "feedback", "history"} <= {*record.lossy}


def test_labels_are_kept_whole_or_not_at_all():
    keeper = Keeper()
    for size in (1_000, 30_000):
        with Recorder(keeper).start(query="q") as run:
            run.labels({f"passage {n}": 5 for n in range(size)})
    kept, dropped = (one.record for one in keeper.runs)
    assert kept.labels == Labels(grades={f"passage {n}": 5 for n in range(1_000)})
    assert (dropped.labels, dropped.lossy) == (None, {"labels": 30_000})


def test_a_pool_of_many_long_ids_loses_its_lowest_ranks_and_keeps_what_was_delivered():
    keeper = Keeper()
    pool = [{"id": f"{n:05d}" + "x" * 240, "text": f"Passage {n}."} for n in range(5_000)]
    with Recorder(keeper).start(query="q") as run:
        run.retrieved(pool)
        run.used(pool[-3:])
    record = keeper.runs[0].record
    assert [p.id[:5] for p in record.contexts] == ["04997", "04998", "04999"]
    ids = [p.id[:5] for p in record.pool("retrieved")]
    assert 3_000 < len(ids) < 5_000
    assert ids == [f"{n:05d}" for n in range(len(ids))]
    assert record.lossy == {"passages": 5_000 - len(ids)}


def test_the_oldest_turns_of_a_long_conversation_go_first():
    keeper = Keeper()
    with Recorder(keeper).start(query="q") as run:
        run.set_history([Message(role="user", content=f"{n:02d}" + "x" * 9_998) for n in range(40)])
    record = keeper.runs[0].record
    assert [turn.content[:2] for turn in record.history] == [f"{n:02d}" for n in range(14, 40)]
    assert record.lossy == {"history": 14}


GRADES = [2.5, "3", None, float("nan"), -1, 10**5_000, True, b"1", object(), {"a": {}}, [[[]]]]


@pytest.mark.parametrize("grade", GRADES, ids=lambda grade: type(grade).__name__)
def test_labels_with_a_grade_that_is_no_whole_number_lose_the_labels_alone(grade):
    """A spool could not write or read such a record, and the unit was lost."""
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.retrieved([{"id": "a", "text": "Oslo."}])
        run.labels({"b": 5, "a": grade})
        run.answered("Oslo.")
    record = keeper.runs[0].record
    assert record.labels is None
    assert internal_errors()["ragtrace.capture.run.labels"] >= 1
    unit = Unit(record=record)
    assert from_bytes(to_bytes(unit), key="k", age_s=0.0, now=0.0).record == record


def test_grades_of_an_array_are_whole_numbers():
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.labels({"a": np.int64(4)})
    record = keeper.runs[0].record
    assert record.labels == Labels(grades={"a": 4})
    assert from_bytes(to_bytes(Unit(record=record)), key="k", age_s=0.0, now=0.0).record.labels == record.labels
