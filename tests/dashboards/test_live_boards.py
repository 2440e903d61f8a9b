"""Every expression of every board on a real Prometheus with a backfilled month: nothing is empty, numbers are right."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from ragtrace_dashboards.boards import boards
from ragtrace_dashboards.config import Config
from tests.dashboards import lint
from tests.dashboards.month import AN_HOUR, DAY, METRICS, Month
from tests.dashboards.promql import filled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None or shutil.which("promtool") is None,
        reason="prometheus and promtool are not on this machine",
    ),
]
END = 1_780_002_000 // 7_200 * 7_200
BOARDS = boards(Config())
ASKED = [(uid, where, expr) for uid, board in BOARDS.items() for where, expr in lint.expressions(board)]
QUIET = {"annotation Releases", "annotation Drift alarms"}  # a month without a release, and none in five minutes


class Server:
    """A Prometheus over blocks made from the month."""

    def __init__(self, port: int, month: Month) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self.month = month

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=5):  # noqa: S310 - http on loopback
                return True
        except OSError:
            return False

    def ask(self, expr: str, at: float = END):
        """Result of an instant query."""
        body = urllib.parse.urlencode({"query": expr, "time": at}).encode()
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/query", data=body, timeout=120) as reply:  # noqa: S310 - http on loopback
                return json.load(reply)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{error.read().decode()} for {expr}") from error

    def series(self, expr: str, begin: float, end: float, step: float):
        """Result of a range query."""
        query = urllib.parse.urlencode({"query": expr, "start": begin, "end": end, "step": step})
        with urllib.request.urlopen(f"{self._url}/api/v1/query_range?{query}", timeout=120) as reply:  # noqa: S310 - http on loopback
            return json.load(reply)["data"]["result"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    month = Month.until(END)
    with (folder / "month.txt").open("w") as out:
        out.writelines(month.text())
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=720h", "--quiet"]
    subprocess.run([*blocks, folder / "month.txt", folder / "data"], check=True, capture_output=True, timeout=240)
    (folder / "prometheus.yml").write_text("global: {}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
    ]  # fmt: skip
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        found, deadline = Server(port, month), time.monotonic() + 60
        while not found.is_ready():
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield found
        process.terminate()


@pytest.mark.parametrize(("uid", "where", "expr"), ASKED, ids=[f"{uid} {where}" for uid, where, _ in ASKED])
def test_it_shows_something(server, uid, where, expr):
    values = {"metric": "harm_at_k|faithfulness"}
    found = server.ask(filled(expr, **values))
    if where in QUIET:
        return
    assert found, expr
    assert all(it["value"][1] != "NaN" for it in found), expr


def targets(uid, number, **values):
    panel = next(it for it in BOARDS[uid]["panels"] if it["id"] == number)
    return {it["refId"]: filled(it["expr"], **values) for it in panel["targets"]}


def by_metric(result):
    return {it["metric"]["gen_ai_evaluation_name"]: float(it["value"][1]) for it in result}


def test_the_table_has_the_means_and_the_drop(server):
    table = {ref: by_metric(server.ask(expr)) for ref, expr in targets("ragtrace-overview", 11).items()}
    assert all(set(column) == set(METRICS) for column in table.values())
    for metric in METRICS:
        month = server.month
        assert table["mean"][metric] == pytest.approx(month.mean(metric, END - DAY, END), abs=0.002)
        assert table["base"][metric] == pytest.approx(month.mean(metric, END - 15 * DAY, END - DAY), abs=0.002)
        assert table["low"][metric] < table["mean"][metric] < table["high"][metric]
        assert table["n"][metric] == pytest.approx(24 * AN_HOUR, rel=0.02)
    assert table["z"]["faithfulness"] > 4
    assert all(z < 3 for metric, z in table["z"].items() if metric != "faithfulness")


def test_less_harm_is_no_drop_and_more_is(server):
    """The bad side of harm is up: its z has the other sign than the same move of another metric."""
    expr = targets("ragtrace-overview", 11)["z"]
    renamed = expr.replace('!~"harm_at_k"', '!~"faithfulness"').replace('=~"harm_at_k"', '=~"faithfulness"')
    assert by_metric(server.ask(expr))["faithfulness"] > 4
    assert by_metric(server.ask(renamed))["faithfulness"] < -4


def test_the_trend_falls_out_of_its_band(server):
    asked = targets("ragtrace-investigate", 11, metric="faithfulness")
    drawn = {ref: server.series(expr, END - 3 * DAY, END, 7_200)[0]["values"] for ref, expr in asked.items()}
    base = [float(value) for _, value in drawn["baseline"]]
    upper = [float(value) for _, value in drawn["upper"]]
    assert len(set(base)) == 1  # one look for the whole picture
    assert upper[0] > base[0]
    assert upper[-1] < base[-1]
