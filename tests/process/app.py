"""An application of the worker's test: ``PATH FIRST LAST`` asks so many questions of a real chain, and ends."""

from __future__ import annotations

import sys

import ragtrace
from integrations.langchain.tests.parts import lcel
from ragtrace_langchain import RagtraceHandler

if __name__ == "__main__":
    path, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ragtrace.configure(spool=path, scorer="worker", sample_rate=1.0)
    chain, handler = lcel(), RagtraceHandler()
    for number in range(first, last):
        chain.invoke(f"{number}?", {"callbacks": [handler]})
    sys.exit(0 if ragtrace.shutdown(20) else 1)
