"""An application that ends in the way ``HOW`` says; the environment says where its spans go."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import ragtrace
from tests.process.observing import ask

LIMIT_S = float(os.environ.get("LIMIT_S", "1.5"))


@ragtrace.metric(needs=("answer",))
def hangs(answer: str) -> float:
    """Never returns."""
    time.sleep(3_600.0)
    return float(bool(answer))


@ragtrace.metric(needs=("answer",))
async def waits(answer: str) -> float:
    """Never returns, and lets others go on."""
    await asyncio.sleep(3_600.0)
    return float(bool(answer))


class Sink:
    """A sink whose ``emit`` or ``close`` does what its name says."""

    def __init__(self, how: str) -> None:
        self._how = how

    def emit(self, record: object, scores: object) -> None:
        if self._how == "emit hangs":
            time.sleep(3_600.0)

    def close(self, timeout_s: float) -> None:
        if self._how == "close raises":
            raise RuntimeError("the password of Ada")
        if self._how == "close hangs":
            time.sleep(3_600.0)


def wrong_calls() -> None:
    """Call everything as nobody should."""
    with ragtrace.query("Where is the lab?") as run:
        for call in (run.set_history, run.label_passages, run.labels, run.retrieved, run.used, run.failed):
            call("secret of Ada")
        run.generated(inputs=5)
        run.answered("In Oslo.", parts=5)
        run.set_k("secret of Ada")
        run.labels({"a": "secret of Ada"})  # type: ignore[dict-item]
        run.feedback("secret of Ada")
        run.add_tags(5)
        run.add_metadata(5)
    ragtrace.feedback("secret of Ada", 1.0)
    ragtrace.feedback("4bf92f3577b34da6a3ce929d0e0e4736", 5.0)
    ragtrace.query(5, tags=5, k="secret of Ada").finish()
    ragtrace.flush("secret of Ada")
    from ragtrace_langchain import mark_selected

    mark_selected(5)


def redacts_badly(text: str) -> str:
    """Raise with a text of the application's."""
    raise ValueError(text)


if __name__ == "__main__":
    how = sys.argv[1]
    given = {"hangs": "hangs,faithfulness", "waits": "waits,faithfulness"}
    ragtrace.configure(
        sample_rate=1.0,
        metrics=given.get(how, "faithfulness"),
        sinks=[Sink(how)] if how.startswith(("emit", "close")) else [],
        redact=redacts_badly if how == "redact raises" else None,
    )
    if how == "wrong calls":
        wrong_calls()
        limit: object = "secret of Ada"
    else:
        ask(3)
        time.sleep(1.0)
        limit = LIMIT_S
    sys.stdout.write("whole\n" if ragtrace.shutdown(limit) else "not whole\n")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a hanging metric holds no test up
