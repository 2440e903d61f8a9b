"""What a run reports last, and the payload of an interrupt."""

from __future__ import annotations

import threading

from ragtrace.capture import Limits, Recorder, finished_run, internal_errors
from ragtrace.capture.events import Event, Sought
from ragtrace.capture.run_reader import MAX_WAITING
from ragtrace.model import record_from_json, record_to_json


class Kept:
    """Keeps what was captured; stands where the service stands."""

    def __init__(self):
        self.captured = []

    def on_start(self, workflow, started_ns):
        class Ref:
            trace_id, span_id = "0" * 31 + "1", "0" * 15 + "1"

        return Ref()

    def on_end(self, root, run):
        self.captured.append(finished_run(run))


def test_the_sweep_lets_an_integration_report_what_is_open():
    kept = Kept()
    recorder = Recorder(kept, limits=Limits(run_idle_s=1.0))
    run = recorder.start(query="Where?")
    run.before_finish(lambda: run.answered("In Os"))
    recorder.sweep(now=run.last_activity + 2.0)
    assert [c.record.answer for c in kept.captured] == ["In Os"]
    assert kept.captured[0].record.outcome == "partial"


def test_a_report_that_raises_is_counted_and_the_run_ends():
    kept = Kept()
    run = Recorder(kept).start(query="Where?")
    before = sum(internal_errors().values())
    run.before_finish(lambda: 1 / 0)
    run.finish()
    assert len(kept.captured) == 1
    assert sum(internal_errors().values()) == before + 1


def test_a_report_is_made_once_and_not_kept():
    calls = []
    run = Recorder(Kept()).start(query="Where?")
    run.before_finish(lambda: calls.append(1))
    run.finish()
    run.finish()
    assert calls == [1]
    assert run._before_finish == {}


def test_what_is_reported_behind_the_end_is_left_out():
    runs = []
    kept = Kept()
    kept.on_end = lambda _root, run: runs.append(run)
    run = Recorder(kept).start(query="Where?")
    run.answered("In Oslo.")
    run.finish()
    run.set_query("Who?")
    run.retrieved(["The lab is in Oslo."])
    run.failed(ValueError("no"))
    record = finished_run(runs[0]).record
    assert (record.query, record.outcome, record.pools) == ("Where?", "answered", ())


def test_what_comes_behind_the_reading_changes_nothing_that_was_reported():
    runs = []
    kept = Kept()
    kept.on_end = lambda _root, run: runs.append(run)
    run = Recorder(kept).start(query="Where?")
    run.finish()
    reported = run.ended()
    before = {name: repr(value) for name, value in vars(reported).items()}
    for number in range(MAX_WAITING):
        run.add(Event("search", str(number), data=Sought("lab")), chars=9, cut=1)
        run.add_text("The lab is in Oslo.")
    run.take_part()
    assert (run.steps, len(run._waiting), run.size_chars) == ([], 0, 0)
    assert {name: repr(value) for name, value in vars(reported).items()} == before


def test_one_of_many_threads_ends_a_run():
    kept = Kept()
    recorder = Recorder(kept)
    for _ in range(200):
        run = recorder.start(query="Where?")
        meet = threading.Barrier(4)

        def end(run=run, meet=meet):
            meet.wait()
            run.finish()

        threads = [threading.Thread(target=end) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(kept.captured), recorder.open_runs) == (200, 0)


def test_the_payload_of_an_interrupt_is_kept_redacted():
    kept = Kept()
    run = Recorder(kept, redact=lambda text: text.replace("Ada", "[name]")).start(query="Where?")
    run.interrupted({"ask": "May Ada see it?"})
    run.finish("interrupted")
    record = kept.captured[0].record
    assert record.interrupt == "{'ask': 'May [name] see it?'}"
    assert record_from_json(record_to_json(record), fallback_id="1").interrupt == record.interrupt
