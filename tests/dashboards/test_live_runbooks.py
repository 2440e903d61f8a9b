"""Each query of the runbooks gives an answer on a real Prometheus with a backfilled month."""

from __future__ import annotations

import pytest

from tests.dashboards.month import Month
from tests.dashboards.server import backfill, needs_prometheus, serving
from tests.dashboards.test_runbooks import ALERTS, PAGES, blocks

pytestmark = [pytest.mark.slow, needs_prometheus]
END = 1_780_002_000 // 7_200 * 7_200
PASTED = [
    (name, expr)
    for name in ALERTS
    for expr in blocks(PAGES[name].split("## The rule in full")[0])
    if "ragtrace:" not in expr
]
"""Of raw series: recorded ones have no past in a month that was backfilled."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    backfill(folder, Month.until(END).text())
    with serving(folder) as found:
        yield found


@pytest.mark.parametrize(("name", "expr"), PASTED, ids=[f"{name} {at}" for at, (name, _) in enumerate(PASTED)])
def test_it_answers(server, name, expr):
    found = server.ask(expr, END)
    assert found, expr
    assert all(it["value"][1] != "NaN" for it in found), expr
