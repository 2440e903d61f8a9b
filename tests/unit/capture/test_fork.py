"""Locks in a forked child: of the parent's threads none lives there to give one back."""

from __future__ import annotations

import subprocess
import sys

import pytest

HELD = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and later: a process with threads forks
{made}
held, done = threading.Event(), threading.Event()

def hold():
    with lock:
        held.set()
        done.wait()

threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if not child:
    with lock:
        os._exit(7)
_, status = os.waitpid(child, 0)
done.set()
print(os.waitstatus_to_exitcode(status))
"""
MADE = (
    "from ragtrace.judges.cache.grade_cache import GradeLru; lock = (kept := GradeLru())._lock",
    "from ragtrace.judges.cache.nugget_cache import NuggetLru; lock = (kept := NuggetLru())._lock",
    "from ragtrace.judges.openai.negotiate import ladder_for; lock = ladder_for('http://localhost/v1', 'm')._lock",
)


@pytest.mark.parametrize("made", MADE)
def test_a_lock_that_another_thread_holds_is_free_in_a_forked_child(made):
    done = subprocess.run(
        [sys.executable, "-c", HELD.format(made=made)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("7\n", "")
