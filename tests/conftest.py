"""Fixtures of all tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.judges.openai.judge_server import JudgeServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of labelled data beside the checkout; a user's machine has none."""
    folder = ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("the labelled data folder ../shared is not on this machine")
    return folder


@pytest.fixture
def judge_server() -> Iterator[JudgeServer]:
    """A real server on loopback; what it answers is set on it."""
    server = JudgeServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def switching() -> Iterator[None]:
    """Switch threads after nearly every bytecode: what takes weeks in production comes within a second."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
