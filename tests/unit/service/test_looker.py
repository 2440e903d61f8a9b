"""Looks for falls, each a real process at a real store: what they export, tell, and leave to others."""

from __future__ import annotations

import asyncio
import logging
import random
import time

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from ragtrace import semconv
from ragtrace.service.looker import GAUGES, Looker
from tests import make

HOUR = 3_600.0


class Logs:
    """A provider, and the records that its logger emitted."""

    def __init__(self):
        self._exporter = InMemoryLogRecordExporter()
        self.provider = LoggerProvider()
        self.provider.add_log_record_processor(SimpleLogRecordProcessor(self._exporter))
        self.logger = self.provider.get_logger("test")

    @property
    def records(self):
        return [it.log_record for it in self._exporter.get_finished_logs()]


@pytest.fixture
def logs():
    made = Logs()
    yield made
    made.provider.shutdown()


def filled(path, *, hours=0.0, n=1_500, seed=1):
    """Make a store of three days, in which the model "new" answers worse for the last hours."""
    draw, now = random.Random(seed), time.time()
    store = make.store(path, wall=lambda: now)
    for i in range(n):
        ago = 72.0 * (1.0 - (i + 0.5) / n)
        add(store, draw, i, now - ago * HOUR, is_bad=ago < hours)
    store.close()
    return path


def add(store, draw, i, at, *, is_bad):
    model = "new" if i % 2 else "old"
    mean = 0.55 if is_bad and model == "new" else 0.9
    record = make.record(n=i, model=model, tags=("app",), started=at - 1.0, ended=at, workflow="desk")
    value = min(max(draw.gauss(mean, 0.08), 0.0), 1.0)
    store.emit(record, [make.score(record, "faithfulness", value, version="v1", at=at)])


async def once(looker):
    """Look once, as the scorer's loop does."""
    looker.tick()
    await looker._background.task


def look(looker):
    asyncio.run(once(looker))


def read(looker):
    return {name: looker.points(field) for name, field in GAUGES.items()}


def looker_of(path, logger, **given):
    return Looker(path, logger, first_after_s=0.0, again_after_s=0.0, **given)


def test_a_fall_is_exported_with_its_part_and_told_once(tmp_path, logs):
    looker = looker_of(filled(tmp_path / "store", hours=6.0), logs.logger)
    look(looker)
    look(looker)
    found = read(looker)
    about = {semconv.GEN_AI_EVALUATION_NAME: "faithfulness", semconv.GEN_AI_WORKFLOW_NAME: "desk"}
    assert found[semconv.INVESTIGATION_FOUND] == [(1.0, about)]
    [(size, _)], [(low, _)], [(high, _)] = (
        found[name] for name in (semconv.INVESTIGATION_SIZE, semconv.INVESTIGATION_LOW, semconv.INVESTIGATION_HIGH)
    )
    assert low < size < high
    assert size == pytest.approx(0.175, abs=0.05)
    [(since, _)] = found[semconv.INVESTIGATION_SINCE]
    assert since == pytest.approx(time.time() - 6 * HOUR, abs=HOUR)
    [(share, part)] = found[semconv.INVESTIGATION_PART]
    assert share > 0.8
    assert part == about | {
        semconv.INVESTIGATION_DIMENSION: "model",
        semconv.INVESTIGATION_VALUE: "new",
        semconv.INVESTIGATION_RANK: 1,
        semconv.INVESTIGATION_HOW: "worse",
    }
    assert sum(map(len, found.values())) <= 11
    [record] = logs.records
    assert record.event_name == semconv.EVENT_INVESTIGATION
    assert record.attributes[semconv.INVESTIGATION_SINCE] == since


def test_a_quiet_store_has_nothing_but_the_time_of_the_look(tmp_path, logs):
    looker = looker_of(filled(tmp_path / "store"), logs.logger)
    assert not any(read(looker).values())  # before the first look
    look(looker)
    found = {name: points for name, points in read(looker).items() if points}
    assert set(found) == {semconv.INVESTIGATION_FOUND, semconv.INVESTIGATION_LOOKED}
    assert found[semconv.INVESTIGATION_FOUND][0][0] == 0.0
    assert not logs.records


def test_a_fall_is_over_after_two_looks_that_do_not_find_it(tmp_path, logs):
    path = filled(tmp_path / "store", hours=6.0)
    looker = looker_of(path, logs.logger)
    look(looker)
    path.unlink()
    filled(path)
    seen = []
    for _ in range(2):
        look(looker)
        seen.append([value for value, _ in looker.points("is_found")])
    assert seen == [[1.0], [0.0]]
    assert not looker.points("size")


def test_one_of_two_scorers_looks_and_the_other_follows_it(tmp_path, logs):
    path = filled(tmp_path / "store", n=100)
    first, second = (looker_of(path, logs.logger) for _ in range(2))

    async def looks():
        await once(first)
        await once(second)
        held = bool(first.points("looked")), bool(second.points("looked"))
        await first.aclose()
        await once(second)
        return held

    assert asyncio.run(looks()) == (True, False)
    assert second.points("looked")


def test_a_look_that_fails_says_so_and_the_next_one_comes_later(tmp_path, logs, caplog):
    path = tmp_path / "store"
    path.write_text("no database")
    looker = Looker(path, logs.logger, first_after_s=0.0, again_after_s=900.0)
    with caplog.at_level(logging.WARNING, "ragtrace"):
        look(looker)
    assert "the look for falls" in caplog.text
    assert "in 30 minutes" in caplog.text
    assert not looker.points("looked")


def test_the_end_of_the_scorer_ends_a_look(tmp_path, logs, caplog):
    looker = looker_of(filled(tmp_path / "store", n=100), logs.logger)

    async def ended():
        looker.tick()
        while looker._process is None:  # noqa: ASYNC110 - it begins in another thread
            await asyncio.sleep(0.01)
        process = looker._process
        await looker.aclose()
        return process

    process = asyncio.run(ended())
    assert process.returncode is not None
    assert not caplog.text
