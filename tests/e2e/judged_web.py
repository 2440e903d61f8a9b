"""A web application that answers with runs of its own, and scores them in its own process."""

from __future__ import annotations

import os

import openai.types.chat  # noqa: F401 - its import takes seconds on a busy machine

import ragtrace
from tests.process.observing import ask

ragtrace.configure(sample_rate=1.0, metrics=["faithfulness"])


def application(environ, start_response):
    ask()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
