"""Runs that the garbage collector ends: in any thread, at any point, inside any lock."""

from __future__ import annotations

import gc
import logging
import threading
from queue import SimpleQueue

import pytest

from ragtrace.capture import Recorder, finished_run
from ragtrace.capture import guard as guards
from ragtrace.service import current
from tests.unit.service.test_meeting_threads import ask, start

__all__ = ["start"]
from tests.unit.capture.test_ending import Kept


class Waiting(Kept):
    """Puts ended runs aside, as the pipeline does."""

    def __init__(self):
        super().__init__()
        self.ended = SimpleQueue()

    def on_end(self, root, run):
        self.ended.put(run)


class Stream:
    """Ends its run when it is finalised, as an abandoned generator does; a cycle leaves it to the collector."""

    def __init__(self, run):
        self.run, self.itself = run, self

    def __del__(self):
        self.run.answered("In Os")
        self.run.finish("partial")


def test_a_run_ended_by_the_collector_is_handed_over_whatever_its_thread_holds():
    kept = Waiting()
    recorder = Recorder(kept)
    gc.collect()
    other = recorder.start(query="Other?")
    Stream(recorder.start(query="Where?"))
    with other._lock:
        gc.collect()
    record = finished_run(kept.ended.get_nowait()).record
    assert (record.answer, record.outcome) == ("In Os", "partial")
    assert recorder.open_runs == 1


def test_the_collector_of_one_thread_ends_runs_of_another():
    kept = Waiting()
    recorder = Recorder(kept)
    Stream(recorder.start(query="Where?"))
    collector = threading.Thread(target=gc.collect)
    collector.start()
    collector.join()
    recorder.end_all()
    assert (kept.ended.qsize(), recorder.open_runs) == (1, 0)


@pytest.mark.parametrize("name", ["of the run", "of the counts", "of logging"])
def test_the_collector_waits_for_no_lock_that_another_thread_holds(start, name):
    """The other thread may itself wait for what the collector's thread holds."""
    spans = start(sample_rate=0.0)
    ask()
    assert current().pipeline.drain(30)
    run = current().recorder.start(query="Where?")
    lock = {"of the run": run._lock, "of the counts": guards._lock, "of logging": logging._lock}[name]
    held, let_go = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            let_go.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(30)
    ending = threading.Thread(target=run.finish)
    ending.start()
    ending.join(10)
    has_waited = ending.is_alive()
    let_go.set()
    holder.join()
    ending.join()
    assert not has_waited
    assert current().pipeline.drain(30)
    assert len([span for span in spans.get_finished_spans() if span.parent is None]) == 2
