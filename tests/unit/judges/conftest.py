from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.judges.judge_server import JudgeServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    server = JudgeServer()
    server.start()
    yield server
    server.stop()
