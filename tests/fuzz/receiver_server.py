"""A receiver with small limits; prints its ports, and a report as JSON when its standard input ends.

``python -m tests.fuzz.receiver_server [LIMITS]`` with limits as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from pathlib import Path

from ragtrace.capture import internal_errors
from ragtrace.ingest import ListenAddress, Receiver, ReceiverLimits
from tests.unit.ingest.receiving.requests import Kept

TOKEN = "open sesame"
MIB = 2**20
LIMITS = {
    "request_bytes": MIB, "inflated_bytes": 4 * MIB, "json_bytes": MIB, "span_bytes": MIB, "items": 5_000,
    "in_flight_bytes": 16 * MIB, "head_timeout_s": 2.0, "body_timeout_s": 2.0, "idle_timeout_s": 30.0,
}  # fmt: skip


def memory_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def main() -> None:
    logged: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: logged.append(f"{record.name}: {record.getMessage()[:300]}")  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    kept = Kept(lambda trace_id: trace_id[15] < 128, keeps=False)
    limits = ReceiverLimits(**(LIMITS | json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}")))
    said: list[str] = []  # the first refusal of each kind, which is no failure
    receiver = Receiver(
        kept, grpc=ListenAddress(), http=ListenAddress(), token=TOKEN, limits=limits, say=said.append
    )
    receiver.start()
    before = memory_mb("VmRSS")
    print(json.dumps([receiver.http_port, receiver.grpc_port]), flush=True)  # noqa: T201 - for the driver
    sys.stdin.read()
    peak = memory_mb("VmHWM")
    receiver.stop(2.0)
    time.sleep(0.2)
    report = {
        "memory_mb": round(peak - before, 1), "refused": receiver.refused, "requests": kept.requests, "taken": kept.taken,
        "losses": internal_errors(), "logged": logged,
        "threads": [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()],
        "free": receiver._service._room._free == limits.in_flight_bytes,
    }  # fmt: skip
    print(json.dumps(report), flush=True)  # noqa: T201 - for the driver


if __name__ == "__main__":
    main()
