"""Several processes before one scorer, minute by minute: the queue stays within ten minutes of service."""

from __future__ import annotations

import math
import random

import pytest

from ragtrace.sampling import Load, Pressure


class Host:
    """Processes that share a queue; `offered` traces a minute each, all wanted, and a scorer of `service` a minute."""

    def __init__(self, offered, service, seed=1):
        self.chance = random.Random(seed)
        self.now, self.backlog, self.served, self.wanted = 0.0, 0.0, 0.0, 0.0
        self.service = service
        self.offered = list(offered)
        self.processes = [self.process() for _ in offered]

    def process(self):
        return Pressure(self.load, clock=lambda: self.now)

    def load(self):
        return Load(size=self.backlog, capacity=10**6, served=int(self.served), wanted=self.wanted)

    def minutes(self, n):
        """Let so many minutes pass; return the largest backlog among them."""
        longest = 0.0
        for _ in range(n * 60):
            self.now += 1.0
            for process, offered in zip(self.processes, self.offered, strict=True):
                for _ in range(self._number(offered / 60)):
                    factor = process.factor(1.0)
                    if self.chance.random() < factor:
                        self.backlog += 1
                        self.wanted += 1 / factor
            done = min(self.backlog, self.service / 60)
            self.backlog -= done
            self.served += done
            longest = max(longest, self.backlog)
        return longest

    def _number(self, rate):
        return math.floor(rate) + (self.chance.random() < rate % 1)

    @property
    def factors(self):
        return [process._factor for process in self.processes]


@pytest.mark.parametrize("offered", [[400], [100] * 4, [370, 10, 10, 10], [25] * 16])
def test_however_the_traffic_is_shared_the_backlog_settles(offered):
    host = Host(offered, service=100)
    host.minutes(60)
    assert host.minutes(120) < 1_300
    served = host.served
    host.minutes(60)
    assert host.served - served == pytest.approx(60 * 100, rel=0.05)  # and the scorer has always something to do


def test_processes_come_to_about_one_factor_also_one_that_begins_late():
    host = Host([150] * 3, service=100)
    host.minutes(60)
    host.offered.append(150)
    host.processes.append(host.process())
    host.minutes(60)
    assert max(host.factors) / min(host.factors) < 1.6
    assert 600 < host.backlog < 1_300


def test_what_is_too_long_is_worked_off_while_scoring_goes_on():
    host = Host([100] * 4, service=100)
    host.minutes(60)
    host.service = 20
    host.minutes(1)
    lowest = 1.0
    for _ in range(150):
        host.minutes(1)
        lowest = min(lowest, *host.factors)
    assert lowest > 0.005
    assert host.backlog < 300


def test_after_an_outage_of_the_scorer_the_processes_do_not_all_come_at_once():
    host = Host([100] * 4, service=100)
    host.minutes(60)
    host.service = 0
    host.minutes(30)
    assert host.factors == [0.0] * 4
    before = host.backlog
    host.service = 100
    assert host.minutes(60) < before + 300  # what all want in a window is 400
    assert host.minutes(60) < 1_300


def test_a_process_alone_counts_its_own_traces():
    now = [0.0]
    pressure = Pressure(lambda: Load(size=560, capacity=2_048, served=int(now[0])), clock=lambda: now[0])
    for minute in range(4):
        now[0] = minute * 60.0
        factors = {pressure.factor(0.5) for _ in range(480)}
    assert [*factors] == [pytest.approx((60 + 0.5 * 40) / 240)]


def test_what_is_not_yet_known_lowers_nothing():
    now, known = [0.0], [None]
    pressure = Pressure(lambda: known[0], clock=lambda: now[0])
    for minute in range(3):
        now[0] = minute * 60.0
        assert {pressure.factor(1.0) for _ in range(500)} == {1.0}
    known[0] = Load(size=0, capacity=2_048, served=10**6, wanted=10.0**6)  # of days, and not of one minute
    now[0] = 180.0
    assert {pressure.factor(1.0) for _ in range(500)} == {1.0}
    known[0] = Load(size=400, capacity=2_048, served=10**6 + 100, wanted=10.0**6 + 400)
    now[0] = 240.0
    assert pressure.factor(1.0) == pytest.approx((100 + 0.5 * 600) / 500)


def test_a_queue_that_nothing_leaves_fills_in_a_few_windows_and_then_takes_none():
    """Else a few runs would be drawn from ever more, and one with the weight of a whole window moves every sum."""
    now, size = [0.0], [0.0]
    pressure = Pressure(lambda: Load(size=size[0], capacity=2_048, served=0), clock=lambda: now[0])
    factors = []
    for minute in range(12):
        now[0] = minute * 60.0
        factors.append([pressure.factor(1.0) for _ in range(300)][-1])
        size[0] += 300 * factors[-1] if minute else 0  # what was drawn before the first turn has ended
    assert factors[-1] == 0.0
    assert min(factor for factor in factors if factor) >= 10 / 300
    size[0] = 100.0  # the judge is back
    now[0] = 12 * 60.0
    assert pressure.factor(1.0) > 0.1
