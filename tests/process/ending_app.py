"""An application that ends without a word: ``URL HOW`` asks three questions, and says at last how they ended.

HOW: ``plain``; ``again`` sets ragtrace up before its tracer provider is there, and then anew; ``threadless`` begins
no thread while ``atexit`` runs, as it is from Python 3.12 on.
"""

from __future__ import annotations

import atexit
import json
import sys
import threading
from collections import Counter

import openai.types.chat  # noqa: F401 - at the end of a process there may be no time to import it
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace
from ragtrace.service import current, runtime
from tests.process.observing import ask

runtime._AT_EXIT_S = 60.0  # on a machine that stands still for seconds the 5 of a user's process may be over

exporter = InMemorySpanExporter()


@atexit.register  # the first to be registered is the last to be called
def say():
    ends = {state: n for state, n in ledger.snapshot().items() if n}
    spans = Counter(span.name for span in exporter.get_finished_spans())
    json.dump({"ends": ends, "spans": spans}, sys.stdout)


def begin_none(_):
    raise RuntimeError("can't create new thread at interpreter shutdown")


if __name__ == "__main__":
    url, how = sys.argv[1:]
    if how == "again":
        ragtrace.configure()
    tracer_provider = TracerProvider()
    tracer_provider.add_span_processor(BatchSpanProcessor(exporter))
    judge = {"judge": "openai:m", "judge_base_url": url, "judge_api_key": "k", "metrics": ("faithfulness",)}
    ragtrace.configure(**judge, sample_rate=1.0, tracer_provider=tracer_provider)
    ledger = current().ledger
    if how == "threadless":
        atexit.register(lambda: setattr(threading.Thread, "start", begin_none))
    ask(3)
