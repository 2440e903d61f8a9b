"""A process that captured nothing beside a spool that holds units: they are scored, or it says that another does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tests.process.test_worker_command import QUIET, ROOT, accounts, start

pytestmark = pytest.mark.slow

UNITS = 5


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "spool.sqlite"
    assert start("-m", "tests.process.app", path, 0, UNITS).wait(120) == 0
    return path


def ended(path, how, **settings):
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tests.process.leftovers_app", how],
        env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT), "RAGTRACE_SPOOL": str(path), **settings},
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr, time.monotonic() - begun


@pytest.mark.parametrize("how", ["configured", "environment"])
def test_a_flush_scores_what_the_spool_holds(path, how):
    said, _, _ = ended(path, how)
    assert (said["is_done"], accounts(path).ends) == (True, {("scored", ""): UNITS})


@pytest.mark.parametrize("how", ["configured", "environment"])
def test_a_flush_says_that_a_worker_scores_what_the_spool_holds(path, how):
    said, log, _ = ended(path, how, RAGTRACE_SCORER="worker")
    assert (said["is_done"], accounts(path).ready) == (True, UNITS)
    assert f"{UNITS} units wait in the spool {path} for `ragtrace worker`" in log
    assert said["took_s"] < 20.0


def test_a_shutdown_keeps_what_the_spool_holds(path):
    said, _, _ = ended(path, "shutdown")
    assert (said["is_done"], accounts(path).ready) == (True, UNITS)


def test_a_forked_child_that_captured_nothing_is_not_held_up_by_a_flush_at_its_end(path):
    _, log, took_s = ended(path, "child")
    assert accounts(path).ready == UNITS
    assert took_s < 20.0, log
