"""An application with a judge of the environment: it asks a question a second, and prints when; then it shuts down.

Each line of the log has its second since the first question, so that a test reads what a person sees and when.
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress

import ragtrace
from tests.process.observing import ask

BEGAN = time.monotonic()


class Timed(logging.Formatter):
    """Puts the seconds since the start before a line."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{time.monotonic() - BEGAN:.1f} {record.getMessage()}"


if __name__ == "__main__":
    seconds, limit_s = int(sys.argv[1]), float(sys.argv[2])
    handler = logging.StreamHandler()
    handler.setFormatter(Timed())
    logging.getLogger().addHandler(handler)
    ragtrace.configure(sample_rate=1.0, metrics=["faithfulness"])
    # Their imports take seconds on a busy machine, and are no part of the wait.
    with suppress(ImportError):
        import genai_prices  # noqa: F401
    import openai.types.chat  # noqa: F401

    import ragtrace.judges.openai.http_client

    BEGAN = time.monotonic()
    for _ in range(seconds):
        ask()
        time.sleep(1.0)
    sys.stdout.write("whole\n" if ragtrace.shutdown(limit_s) else "not whole\n")
