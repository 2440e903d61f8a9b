"""One MLflow server for all tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.mlflow.server import Mlflow, mlflow_python

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlflow]:
    server = Mlflow(mlflow_python(), tmp_path_factory.mktemp("mlflow"))
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()
