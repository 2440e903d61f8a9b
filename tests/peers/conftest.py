"""One worker with the peers' libraries for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.peers.process import Peers, peers_python

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    worker = Peers(peers_python(), tmp_path_factory.mktemp("peers"))
    try:
        yield worker
    finally:
        worker.stop()
