"""Threads that meet inside one run: what one writes while another reads or ends it is never a loss."""

from __future__ import annotations

import gc
import random
import threading
import time

import pytest

from ragtrace.capture import RecentIds, Recorder, internal_errors
from ragtrace.model import Message
from ragtrace.text import clean_metadata
from tests.unit.capture.test_ending import Kept

SECONDS = 2.0


def together(*works, seconds=SECONDS):
    """Call each work over and over in its own thread; return what they raised."""
    raised, ends_at = [], time.monotonic() + seconds

    def turn(work):
        while time.monotonic() < ends_at and not raised:
            try:
                work()
            except Exception as error:
                raised.append(error)

    threads = [threading.Thread(target=turn, args=(work,)) for work in works]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return raised


SAID = [Message(role="user", content="Oslo. Where?")]
REPORTS = (
    lambda run: run.set_query("Where?"),
    lambda run: run.set_attributes(session="s", user="u", corpus="c", model="m", environment="e"),
    lambda run: run.add_tags(["a", "b"]),
    lambda run: run.set_history(SAID),
    lambda run: run.retrieved([{"id": "a", "text": "Oslo.", "metadata": {"page": 1}}], key="r", is_fused=True),
    lambda run: run.retrieved(["Bergen."], key="l", parent_key="r"),
    lambda run: run.reranked([{"id": "a", "text": "Oslo."}]),
    lambda run: run.used("Oslo. Where?"),
    lambda run: run.add_prompt("Oslo. Where?"),
    lambda run: run.generated(model="m", inputs=SAID, outputs=SAID),
    lambda run: run.answered("In Oslo." * 20_000, model="m", usage={"input_tokens": 1}, parts=[{"text": "a"}]),
    lambda run: run.labels({"a": 5}),
    lambda run: run.feedback(0.5),
    lambda run: run.interrupted("wait"),
    lambda run: run.prompt_contains([]),
    lambda run: run.candidates(),
)


@pytest.mark.usefixtures("switching")
def test_steps_that_report_while_their_run_is_ended_lose_nothing():
    kept, before = Kept(), internal_errors()
    recorder = Recorder(kept)
    runs = [recorder.start(query="0")]

    def end():
        time.sleep(0.001)
        runs.append(recorder.start(query=str(len(runs))))
        runs[-2].finish()
        recorder.sweep()

    def report():
        run = runs[-1]
        for work in random.sample(REPORTS, len(REPORTS)):
            work(run)

    assert together(report, report, report, end, lambda: gc.collect(0)) == []
    recorder.end_all()
    # An answer that lost the race is said to be missing.
    missing = dict.fromkeys(("ragtrace.capture.run.answered_late", "ragtrace.capture.assembly.answer"), 0)
    assert internal_errors() | missing == before | missing
    assert len(kept.captured) == len(runs)


@pytest.mark.usefixtures("switching")
def test_metadata_that_the_application_writes_to_meanwhile_are_read():
    metadata = {f"k{number}": number for number in range(12)}

    def write():
        if metadata.pop("relevance_score", None) is None:
            metadata["relevance_score"] = 0.5

    assert together(lambda: clean_metadata(metadata), write) == []


class Counted(set):
    """A set whose size lets another thread go first, as a switch at that place does."""

    def __len__(self):
        self.meanwhile()
        return super().__len__()

    def meanwhile(self):
        """Do nothing yet."""


def test_two_threads_that_bury_the_last_name_together_keep_both():
    buried = RecentIds(1)
    buried.add("a")
    names = buried._now = Counted(buried._now)

    def other():
        names.meanwhile = lambda: None
        buried.add("b")

    names.meanwhile = other
    buried.add("c")
    assert [name in buried for name in "abc"] == [True, True, True]
