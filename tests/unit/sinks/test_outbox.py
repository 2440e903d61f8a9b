"""The outbox: what is taken is delivered or counted, whatever the other side does."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

from ragtrace.capture import internal_errors
from ragtrace.sinks import Attempt, Outbox
from ragtrace.sinks import outbox as outbox_module

OK = Attempt(is_delivered=True)
AGAIN = Attempt(may_repeat=True)
LATE_S = 30.0  # of a busy machine; what is waited for in error lasts longer


class Other:
    """The other side: delivers by a script, then everything; can be held back."""

    def __init__(self, *script: Attempt) -> None:
        self.script = list(script)
        self.batches: list[list[Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def __call__(self, batch: Any) -> Attempt:
        self.batches.append(list(batch))
        self.entered.set()
        assert self.gate.wait(2 * LATE_S)
        return self.script.pop(0) if self.script else OK

    @property
    def items(self) -> list[Any]:
        return [item for batch in self.batches for item in batch]


def lost_at(site: str) -> int:
    return internal_errors().get(site, 0)


@pytest.fixture
def make(request):
    """Make outboxes of the test's own site, closed at its end."""
    made: list[Outbox[Any]] = []

    def outbox(deliver: Any, **options: Any) -> Outbox[Any]:
        made.append(Outbox(deliver, site=request.node.name, **options))
        return made[-1]

    yield outbox
    for each in made:
        each.close(1)


def test_items_arrive_once_in_order_and_in_batches(make) -> None:
    other = Other()
    outbox = make(other, batch=10)
    for first in range(0, 100, 4):
        outbox.offer(range(first, first + 4))
    assert outbox.flush(10)
    assert other.items == list(range(100))
    assert max(map(len, other.batches)) <= 10
    assert outbox.close(30)
    assert outbox.pending == 0


def test_offering_never_waits_and_what_does_not_fit_is_counted(make, request) -> None:
    other = Other()
    other.gate.clear()
    outbox = make(other, capacity=5, batch=2)
    outbox.offer([0, 1])
    assert other.entered.wait(30)
    started = time.monotonic()
    outbox.offer(range(2, 12))
    assert time.monotonic() - started < LATE_S
    assert lost_at(f"{request.node.name}.full") == 5
    other.gate.set()
    assert not outbox.flush(10), "something was lost"
    assert outbox.flush(10), "but not since"
    assert other.items == list(range(7)), "the newest go"


def test_a_failure_that_may_pass_is_tried_again(make) -> None:
    other = Other(AGAIN, AGAIN)
    outbox = make(other, backoff_s=0.01)
    outbox.offer(["a"])
    assert outbox.flush(10)
    assert other.items == ["a", "a", "a"]


def test_attempts_are_bounded_and_the_next_batch_gets_its_own(make, request) -> None:
    other = Other(*[AGAIN] * 3)
    outbox = make(other, backoff_s=0.01, attempts=3, batch=1)
    outbox.offer(["a", "b"])
    assert not outbox.flush(10)
    assert other.items == ["a", "a", "a", "b"]
    assert lost_at(f"{request.node.name}.unreachable") == 1


def test_a_refusal_for_its_contents_costs_the_guilty_item_alone(make, request) -> None:
    def deliver(batch: Any) -> Attempt:
        if 7 in batch:
            return Attempt(may_split=True)
        seen.extend(batch)
        return OK

    seen: list[int] = []
    outbox = make(deliver)
    outbox.offer(range(20))
    assert not outbox.flush(10)
    assert seen == [n for n in range(20) if n != 7]
    assert lost_at(f"{request.node.name}.refused") == 1


def test_an_error_of_our_own_is_a_counted_refusal_and_the_thread_lives_on(make, request, caplog) -> None:
    def deliver(batch: Any) -> Attempt:
        if batch == ["bad"]:
            raise RuntimeError("inside")
        return OK

    outbox = make(deliver, batch=1)
    outbox.offer(["bad", "good"])
    assert not outbox.flush(10)
    assert lost_at(f"{request.node.name}.refused") == 1
    assert "RuntimeError" in caplog.text
    assert outbox.close(30)


def test_flush_keeps_its_deadline_and_ends_a_wait_between_attempts(make) -> None:
    other = Other(AGAIN, AGAIN, AGAIN)
    outbox = make(other, backoff_s=60.0, longest_wait_s=60.0)
    outbox.offer(["a"])
    assert other.entered.wait(30)
    started = time.monotonic()
    assert outbox.flush(10), "the second attempt is made at once, the others soon"
    assert time.monotonic() - started < LATE_S
    other.gate.clear()
    outbox.offer(["b"])
    started = time.monotonic()
    assert not outbox.flush(0.2)
    assert 0.15 < time.monotonic() - started < LATE_S
    other.gate.set()
    assert outbox.close(30)


def test_close_delivers_what_is_there(make, request) -> None:
    other = Other(AGAIN)
    outbox = make(other, backoff_s=60.0, longest_wait_s=60.0, batch=3)
    outbox.offer(range(9))
    assert outbox.close(10)
    assert sorted(set(other.items)) == list(range(9))
    outbox.offer([1])
    assert lost_at(f"{request.node.name}.closed") == 1, "after close"
    assert outbox.close(30), "a second call does nothing"


def test_close_keeps_its_deadline_and_counts_what_is_left_once(make, request) -> None:
    other = Other()
    other.gate.clear()
    outbox = make(other, batch=3)
    outbox.offer(range(10))
    assert other.entered.wait(30)
    started = time.monotonic()
    assert not outbox.close(0.2)
    assert time.monotonic() - started < LATE_S
    assert lost_at(f"{request.node.name}.closed") == 10
    other.gate.set()
    outbox._thread.join(LATE_S)
    assert not outbox._thread.is_alive()
    assert len(other.batches) == 1, "nothing is sent behind the deadline"
    assert lost_at(f"{request.node.name}.closed") == 10
    assert lost_at(f"{request.node.name}.unreachable") == 0


def test_close_while_the_other_side_is_away_ends_in_time(make, request) -> None:
    other = Other(*[AGAIN] * 100)
    outbox = make(other, batch=2, attempts=100, backoff_s=0.02)
    outbox.offer(range(6))
    started = time.monotonic()
    assert not outbox.close(0.3)
    assert time.monotonic() - started < 5
    outbox._thread.join(LATE_S)
    total = lost_at(f"{request.node.name}.closed") + lost_at(f"{request.node.name}.unreachable")
    assert total == 6, "each item once"


def test_close_uses_its_time_however_few_attempts_there_are(make, request, monkeypatch) -> None:
    monkeypatch.setattr(outbox_module, "_HURRIED_WAIT_S", 0.01)
    other = Other(*[AGAIN] * 20)
    outbox = make(other, attempts=2)
    outbox.offer(["a"])
    assert outbox.close(LATE_S)
    assert other.items == ["a"] * 21
    away = make(lambda _: AGAIN, attempts=2, batch=1)
    away.offer(range(3))
    assert not away.close(0.3)
    assert away.lost("score") == "3 scores (unreachable)"
    assert lost_at(f"{request.node.name}.unreachable") == 3


def test_the_first_undelivered_item_is_one_line_in_the_log(request, caplog) -> None:
    outbox = Outbox(lambda _: Attempt(), site=request.node.name, complaint="scores are not delivered to b", batch=1)
    outbox.offer(range(3))
    assert not outbox.close(LATE_S)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["scores are not delivered to b: refused"]


def test_the_wait_that_is_asked_for_is_kept_within_the_limit(make) -> None:
    other = Other(Attempt(may_repeat=True, wait_s=0.3), Attempt(may_repeat=True, wait_s=3_600.0))
    outbox = make(other, backoff_s=0.001, longest_wait_s=0.4)
    started = time.monotonic()
    outbox.offer(["a"])
    deadline = time.monotonic() + LATE_S
    while outbox.pending and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 0.65 < time.monotonic() - started < LATE_S
    assert len(other.batches) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_child_begins_empty_and_delivers_its_own(make) -> None:
    other = Other()
    other.gate.clear()
    outbox = make(other)
    outbox.offer(["parent"])
    assert other.entered.wait(30)
    outbox.offer(["parent too"])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        try:
            other.gate = threading.Event()
            other.gate.set()
            other.batches.clear()
            is_empty = outbox.pending == 0
            outbox.offer(["child"])
            is_flushed = outbox.flush(5)
            os.write(write, f"{is_empty} {is_flushed} {other.items}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1_000).decode() == "True True ['child']"
    other.gate.set()
    assert outbox.flush(30)
    assert other.items == ["parent", "parent too"]


def test_many_threads_offer_at_once_and_nothing_is_lost_or_doubled(make) -> None:
    other = Other()
    outbox = make(other, capacity=100_000)
    threads = [
        threading.Thread(target=lambda first=first: [outbox.offer([first + n]) for n in range(200)])
        for first in range(0, 4_000, 200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outbox.flush(20)
    assert sorted(other.items) == list(range(4_000))


def test_where_no_thread_begins_the_end_delivers(make, monkeypatch) -> None:
    def begin_none(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", begin_none)
    other = Other()
    outbox = make(other)
    outbox.offer([0, 1])
    outbox.offer([2])
    assert outbox.close(30)
    assert other.items == [0, 1, 2]


def test_items_that_fail_alone_come_later_behind_what_waits(make) -> None:
    other = Other(Attempt(is_delivered=True, later=["b"], refused=1), OK, OK)
    other.gate.clear()
    outbox = make(other, backoff_s=0.05)
    outbox.offer(["a", "b", "c"])
    assert other.entered.wait(LATE_S)
    outbox.offer(["d"])
    other.gate.set()
    assert not outbox.flush(LATE_S), "one was refused"
    assert other.batches == [["a", "b", "c"], ["d"], ["b"]]


def test_an_item_that_always_fails_alone_is_lost_after_its_attempts(make, request) -> None:
    other = Other(*[Attempt(is_delivered=True, later=["b"])] * 9)
    outbox = make(other, backoff_s=0.01, attempts=4)
    outbox.offer(["b"])
    assert not outbox.flush(LATE_S)
    assert 4 <= len(other.batches) <= 9
    assert lost_at(f"{request.node.name}.unreachable") == 1


def test_items_linger_for_more_and_batches_keep_their_interval(make) -> None:
    other = Other()
    outbox = make(other, linger_s=0.3, interval_s=3_600.0)
    for item in "abc":
        outbox.offer([item])
    assert other.entered.wait(LATE_S)
    assert outbox.flush(LATE_S)
    outbox.offer(["d"])
    assert outbox.flush(LATE_S), "what the interval holds is not waited for"
    assert other.batches == [["a", "b", "c"]]
    assert outbox.close(LATE_S)
    assert other.batches == [["a", "b", "c"], ["d"]]


def test_close_counts_what_was_to_come_later(make, request) -> None:
    other = Other(Attempt(is_delivered=True, later=["a", "b"]))
    outbox = make(other, backoff_s=3_600.0, longest_wait_s=3_600.0)
    outbox.offer(["a", "b"])
    assert other.entered.wait(LATE_S)
    assert not outbox.close(0.0)
    assert lost_at(f"{request.node.name}.closed") == 2
