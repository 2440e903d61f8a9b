"""The garbage collector in the middle of ragtrace's own calls; shared by the tests of both integrations."""

from __future__ import annotations

import gc
import sys
import threading

from tests.cpu import leave_out_what_is_older
from tests.sweeping import WAIT_S

_CALLED = {
    "add",
    "event",
    "_of",
    "_append",
    "_hand_part",
    "take_part",
    "_read_event",
    "_conclude",
    "_forget",
    "_put",
    "_tell",
    "finish",
}


def collects_at(place):
    """Have this thread collect once, when it has called as many of our functions as `place` says."""
    left = [place]

    def profile(frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_name in _CALLED and "ragtrace" in code.co_filename:
            left[0] -= 1
            if left[0] < 0:
                sys.setprofile(None)
                gc.collect()

    sys.setprofile(profile)


def ends_uncollected(work, *args):
    """Run a function in a thread, while nothing is collected that it does not collect itself; tell whether it ended."""
    done = threading.Thread(target=work, args=args, daemon=True)
    leave_out_what_is_older()
    gc.disable()
    try:
        done.start()
        done.join(WAIT_S)
    finally:
        gc.enable()
    return not done.is_alive()
