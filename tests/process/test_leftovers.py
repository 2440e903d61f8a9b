"""A process that captured nothing beside a spool that holds units: they are scored, or it says that another does."""

from __future__ import annotations

import json
import time

import pytest

from tests.process.observing import accounts, ran

pytestmark = pytest.mark.slow

UNITS = 5


def ended(path, how, **settings):
    begun = time.monotonic()
    done = ran("-m", "tests.process.leftovers_app", how, RAGTRACE_SPOOL=str(path), **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr, time.monotonic() - begun


@pytest.mark.parametrize("how", ["configured", "environment"])
def test_a_flush_scores_what_the_spool_holds(five_wait, how):
    said, _, _ = ended(five_wait, how)
    assert (said["is_done"], accounts(five_wait).ends) == (True, {("scored", ""): UNITS})


@pytest.mark.parametrize("how", ["configured", "environment"])
def test_a_flush_says_that_a_worker_scores_what_the_spool_holds(five_wait, how):
    said, log, _ = ended(five_wait, how, RAGTRACE_SCORER="worker")
    assert (said["is_done"], accounts(five_wait).ready) == (True, UNITS)
    assert f"{UNITS} units wait in {five_wait} for `ragtrace worker`" in log
    assert said["took_s"] < 20.0


def test_a_shutdown_keeps_what_the_spool_holds(five_wait):
    said, _, _ = ended(five_wait, "shutdown")
    assert (said["is_done"], accounts(five_wait).ready) == (True, UNITS)


def test_a_forked_child_that_captured_nothing_is_not_held_up_by_a_flush_at_its_end(five_wait):
    _, log, took_s = ended(five_wait, "child")
    assert accounts(five_wait).ready == UNITS
    assert took_s < 20.0, log
