"""``ragtrace worker`` over the spool of real applications, and alone on an empty file."""

from __future__ import annotations

import re
import signal
import textwrap
import urllib.request

import pytest
import yaml

from tests.guards.processes import until
from tests.process.observing import accounts, ran, start, worker

pytestmark = pytest.mark.slow


def scored(path):
    return accounts(path).ends.get(("scored", ""), 0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spool.sqlite"


def test_one_worker_scores_what_two_applications_ask(path):
    apps = [start("-m", "tests.process.app", path, first, first + 40) for first in (0, 40)]
    assert [app.wait(120) for app in apps] == [0, 0]
    assert accounts(path).pending == 80
    done = worker(path, "--once")
    _, said = done.communicate(timeout=120)
    assert done.returncode == 0, said
    assert accounts(path).ends == {("scored", ""): 80}
    assert "stopped; 80 scored, 0 pending" in said
    _, again = worker(path, "--once").communicate(timeout=120)
    assert "stopped; nothing scored since the start; in all 80 scored, 0 pending" in again
    assert "empty spool" not in said + again


def test_a_path_without_a_file_is_told_and_made(path):
    process = worker(path, "--once")
    _, said = process.communicate(timeout=60)
    assert (process.returncode, path.exists()) == (0, True)
    assert f"there was no file {path}: made an empty spool" in said


def test_a_comma_at_the_end_of_the_metrics_is_none(path):
    process = worker(path, "--once", "--metrics", "faithfulness,")
    _, said = process.communicate(timeout=60)
    assert (process.returncode, "stopped; nothing scored" in said) == (0, True), said


DEADLINE = "Invalid value for '--deadline': Input should be"


@pytest.mark.parametrize(
    ("args", "env", "words"),
    [
        ([], {}, "worker: there is no spool: give --spool FILE or --queue ADDRESS, or set RAGTRACE_SPOOL\n"),
        (["--spool", "/no/folder/spool"], {}, "spool: the spool "),
        (["--spool", "s"], {"RAGTRACE_ENABLED": "0"}, "worker: RAGTRACE_ENABLED turns ragtrace off"),
        (
            ["--spool", "s", "--judge", "openai:m", "--once"],
            {"RAGTRACE_JUDGE_BASE_URL": "http://[bad/v1"},
            "RAGTRACE_JUDGE_BASE_URL has no valid host and port",
        ),
        *((["--spool", "s", f"--deadline={it}"], {}, DEADLINE) for it in ("nan", "inf")),
    ],
)
def test_what_cannot_be_is_one_line(tmp_path, args, env, words):
    done = ran("-m", "ragtrace", "worker", *(tmp_path / it if it == "s" else it for it in args), **env)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ragtrace: {words}")
    assert done.stderr.count("\n") == 1


def test_once_ends_beside_a_collector_that_does_not_answer(five_wait):
    collector = {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    process = worker(five_wait, "--once", "--deadline", "2", **collector)
    _, said = process.communicate(timeout=60)
    assert accounts(five_wait).ends == {("scored", ""): 5}
    assert process.returncode == 1
    assert re.search(
        r"every sampled trace was scored; not sent: \d metrics reports?; what waits in the spool", said
    )


def test_a_worker_s_endpoint_shows_scores_and_no_count_of_captured_traces(five_wait):
    process = worker(five_wait, "--metrics-port", "0")
    said = [process.stderr.readline() for _ in range(3)]
    target = re.search(r"metrics at http://(127\.0\.0\.1:\d+)/metrics; for prometheus\.yml:", said[1])[1]
    config = yaml.safe_load(said[2].removeprefix("ragtrace worker: "))
    assert config == {"scrape_configs": [{"job_name": "ragtrace", "static_configs": [{"targets": [target]}]}]}
    until(lambda: scored(five_wait) == 5, running=process)
    page = urllib.request.urlopen(f"http://{target}/metrics").read().decode()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert "ragtrace_evaluations_total{" in page
    assert "ragtrace_traces_total" not in page


def test_help_shows_a_scrape_config_that_prometheus_reads():
    done = ran("-m", "ragtrace", "worker", "--help")
    text = textwrap.dedent(done.stdout[done.stdout.index("\n", done.stdout.index("here):")) :])
    (job,) = yaml.safe_load(text.partition("Exit status")[0])["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:9464"]}]
