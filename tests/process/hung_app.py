"""An application whose judge hangs: ``FOLDER URL`` shuts down in half a second, again and again, a spool each."""

from __future__ import annotations

import sys
from pathlib import Path

import ragtrace
from ragtrace.capture import internal_errors
from ragtrace.service import current
from tests.guards.processes import until
from tests.process.observing import ask

UNITS = 40
ROUNDS = 25  # without a lock it crashed in the 15th and the 25th

if __name__ == "__main__":
    folder, url = Path(sys.argv[1]), sys.argv[2]
    for number in range(ROUNDS):
        ragtrace.configure(
            spool=str(folder / f"{number}.sqlite"),
            judge="openai:m",
            judge_base_url=url,
            judge_api_key="k",
            metrics=("faithfulness",),
            sample_rate=1.0,
        )
        ask(UNITS)
        service = current()
        until(lambda: (now := current().queue.counters(is_fresh=True)).leased and now.pending == UNITS)
        assert not service.shutdown(0.5)
    found = {site: n for site, n in internal_errors().items() if "queues" in site}
    sys.exit(str(found) if found else 0)
