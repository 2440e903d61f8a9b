"""Only the lowest unfinished offset is committed, in whatever order offsets finish."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from ragtrace.queues import MOST_METADATA, PartitionLog

OFFSETS = st.lists(st.integers(0, 5_000), unique=True, min_size=1, max_size=60).map(sorted)


@given(OFFSETS, st.data())
def test_the_watermark_is_the_lowest_unfinished_offset(offsets, data):
    log, finished = PartitionLog(), set()
    for offset in offsets:
        assert log.begin(offset)
    for offset in data.draw(st.permutations(offsets)):
        assert log.finish(offset)
        finished.add(offset)
        left = [one for one in offsets if one not in finished]
        assert log.position == (left[0] if left else offsets[-1] + 1)
        assert log.ahead == sum(one > log.position for one in finished)
    assert log.metadata() == ""


@given(OFFSETS, st.data())
def test_the_next_owner_begins_exactly_what_is_unfinished(offsets, data):
    log = PartitionLog()
    for offset in offsets:
        log.begin(offset)
    finished = data.draw(st.sets(st.sampled_from(offsets)))
    for offset in finished:
        log.finish(offset)
    after = PartitionLog(log.position, log.metadata())
    assert [one for one in offsets if after.begin(one)] == [one for one in offsets if one not in finished]
    for offset in set(offsets) - finished:
        after.finish(offset)
    assert (after.position, after.ahead) == (offsets[-1] + 1, 0)


def test_an_offset_counts_once():
    log = PartitionLog()
    assert (log.begin(3), log.begin(3), log.finish(3), log.finish(3), log.finish(9)) == (
        True, False, True, False, False,
    )  # fmt: skip


def test_metadata_stays_within_what_a_broker_keeps():
    log = PartitionLog()
    for offset in range(100_000):
        log.begin(offset)
    for offset in range(1, 100_000):
        log.finish(offset)
    assert len(log.metadata()) <= MOST_METADATA + 4 + len("0:")
    after = PartitionLog(log.position, log.metadata())
    known = after.ahead
    assert known > 20_000
    assert sum(map(after.begin, range(100_000))) == 100_000 - known  # what was left out is repeated, never lost


@pytest.mark.parametrize("text", ["", None, "another program's", "é", "5:é", "4:AQ=="])
def test_metadata_of_another_program_or_offset_names_nothing(text):
    assert PartitionLog(5, text).ahead == 0
