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
MADE = ("from ragtrace.capture.fork import ForkSafeLock; lock = ForkSafeLock()",)


@pytest.mark.parametrize("made", MADE)
def test_a_lock_that_another_thread_holds_is_free_in_a_forked_child(made):
    done = subprocess.run(
        [sys.executable, "-c", HELD.format(made=made)], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("7\n", "")
