"""The page docs/how-to/sinks.md: its program runs, and its variables are settings."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ragtrace.settings import Settings, unknown_variables
from ragtrace.sinks import WebhookSink, sinks_of
from tests.command_line import environment
from tests.e2e.howto import blocks
from tests.unit.sinks.scores import RECORD, score
from tests.unit.sinks.server import Scripted

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "sinks"


def test_the_program_prints_what_the_page_shows(tmp_path: Path) -> None:
    (program,), (shown,) = blocks(PAGE, "python"), blocks(PAGE, "text")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout == shown


def test_slack_gets_the_lines_that_the_page_shows() -> None:
    (shown,) = blocks(PAGE, "slack")
    claims = [{"text": "It has a pool on its roof.", "verdict": "not_supported", "support": 0.0}]
    record = replace(
        RECORD,
        trace_id="0af7651916cd43dd8448eb211c80319c",
        environment="production",
        query="Where is the lab?",
    )
    server = Scripted()
    try:
        sink = WebhookSink(server.url, form="slack", content="full", service="shop")
        sink.take_thresholds({"faithfulness": 0.7})
        sink.emit(replace(RECORD, id="2", span_id="c" * 16), [score(value=1.0, passed=True)])
        sink.emit(record, [score(record=record, value=0.5, passed=False, details={"claims": claims})])
        assert sink.close(20)
    finally:
        server.close()
    ((_, _, message),) = server.requests
    told = "\n".join(block["text"]["text"] for block in message["blocks"]).replace("&gt;", ">").splitlines()
    title, *lines = shown.splitlines()
    assert told[1:] == lines
    assert told[0].split(",")[0] == title.split(",")[0]


def test_the_variables_make_the_sinks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, block in zip(("langfuse", "mlflow", "webhook"), blocks(PAGE, "sh"), strict=True):
        variables = {
            key: quoted or plain for key, quoted, plain in re.findall(r"([A-Z_]+)=(?:'([^']*)'|(\S+))", block)
        }
        assert not unknown_variables(variables)
        for key, value in variables.items():
            monkeypatch.setenv(key, value)
        (sink,) = sinks_of(Settings.resolve({}, variables).sinks)
        assert type(sink).__name__.lower() == f"{name}sink"
