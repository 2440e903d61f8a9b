"""Worlds that run side by side: each takes its own time, most of which it waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.cases.numbers.reading import world as run_world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from tests.cases.numbers.reading import Reading

AT_ONCE = 2


@pytest.fixture(scope="module")
def _running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Reading]]]:
    """Run all worlds that tests of this module ask for, two at a time and in their order."""
    drawn = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    asked = [it.params["seen"] for it in drawn if it is not None and "seen" in it.params]
    pool, folder = ThreadPoolExecutor(AT_ONCE), tmp_path_factory.mktemp("worlds")
    yield {name: pool.submit(run_world, name, WORLD_SPOOL=str(folder / "spool.sqlite")) for name in asked}
    pool.shutdown(cancel_futures=True)


@pytest.fixture
def seen(request: pytest.FixtureRequest, _running: dict[str, Future[Reading]]) -> Reading:
    """What the world of that name printed; a test names it as its parameter."""
    return _running[request.param].result()
