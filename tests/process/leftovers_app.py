"""A process that captures nothing: ``HOW`` is what it does about the units that its spool holds.

HOW: ``configured`` calls configure and flush; ``environment`` calls flush first of all; ``shutdown`` sets ragtrace up
and shuts it down; ``child`` forks a child that captures nothing and flushes at its end.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time

import ragtrace

if __name__ == "__main__":
    how = sys.argv[1]
    if how != "environment":
        ragtrace.configure()
    begun = time.monotonic()
    if how == "child" and (child := os.fork()):
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    is_done = None
    if how == "child":
        atexit.register(ragtrace.flush)
    elif how == "shutdown":
        is_done = ragtrace.shutdown(20.0)
    else:
        is_done = ragtrace.flush(60.0)
    json.dump({"is_done": is_done, "took_s": time.monotonic() - begun}, sys.stdout)
