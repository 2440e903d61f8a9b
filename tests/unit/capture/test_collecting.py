"""Runs that the garbage collector ends: in any thread, at any point, inside any lock."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

from ragtrace.capture import Recorder
from tests.unit.capture.test_ending import Kept


class Stream:
    """Ends its run when it is finalised, as an abandoned generator does; a cycle leaves it to the collector."""

    def __init__(self, run):
        self.run, self.itself = run, self

    def __del__(self):
        self.run.answered("In Os")
        self.run.finish("partial")


def leak(recorder):
    Stream(recorder.start(query="Where?"))


def test_a_run_ended_by_the_collector_takes_no_lock_and_is_handed_on_by_the_sweep():
    kept = Kept()
    recorder = Recorder(kept)
    gc.collect()
    leak(recorder)
    with recorder._lock:  # this thread holds it: taking it again would never return
        gc.collect()
    assert kept.captured == []
    recorder.sweep()
    assert [(c.record.answer, c.record.outcome) for c in kept.captured] == [("In Os", "partial")]
    assert recorder.open_runs == 0


def test_or_by_the_next_run():
    kept = Kept()
    recorder = Recorder(kept)
    leak(recorder)
    gc.collect()
    run = recorder.start(query="Next?")
    assert len(kept.captured) == 1
    run.finish()


def test_at_a_shutdown_no_run_stays_open():
    kept = Kept()
    recorder = Recorder(kept)
    leak(recorder)
    gc.collect()
    recorder.start(query="Open?")
    recorder.end_all()
    assert [c.record.outcome for c in kept.captured] == ["partial", "partial"]
    assert recorder.open_runs == 0


def test_another_thread_that_runs_beside_a_finaliser_hands_its_runs_on():
    """A finaliser that waits leaves the interpreter to others, for as long as it likes: at the process's end too."""
    kept, done = Kept(), threading.Event()
    recorder = Recorder(kept)

    class Waiting:
        def __init__(self):
            self.itself = self

        def __del__(self):
            reached.set()
            done.wait()

    reached = threading.Event()
    Waiting()
    collector = threading.Thread(target=gc.collect)
    collector.start()
    reached.wait()
    recorder.start(query="Where?").finish()
    recorder.end_all()
    handed_on = len(kept.captured)
    done.set()
    collector.join()
    assert handed_on == 1


SIGNALLED = """
import gc, signal
from ragtrace.capture import watch_collector

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

watch_collector()
kept = [[number] for number in range(300_000)]  # so that nearly all of the loop's time is a collection
signal.signal(signal.SIGALRM, stop)
stopped = 0
for turn in range(20):
    signal.setitimer(signal.ITIMER_REAL, 0.01 + turn / 1_000)
    try:
        for _ in range(1_000):
            gc.collect()
    except Stop:
        stopped += 1
print(stopped)
"""


def test_a_signal_that_comes_during_a_collection_still_ends_the_work():
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED], check=False, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("20\n", "")
