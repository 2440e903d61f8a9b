"""Runs that the garbage collector ends: in any thread, at any point, inside any lock."""

from __future__ import annotations

import gc
import threading
from queue import SimpleQueue

from ragtrace.capture import Recorder, finished_run
from tests.unit.capture.test_ending import Kept


class Waiting(Kept):
    """Puts ended runs aside, as the pipeline does."""

    def __init__(self):
        super().__init__()
        self.ended = SimpleQueue()

    def on_end(self, root, ended):
        self.ended.put(ended)


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
