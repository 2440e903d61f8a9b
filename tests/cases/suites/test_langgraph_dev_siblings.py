"""Under the rules of ``langgraph dev`` an application's runs are captured, scored and stored as without them.

Each row runs an application of `tests.cases.suites.langgraph_dev` in a process of its own, where a blocking call on a
thread with a running event loop is an error, and looks for runs and scores in the store, for internal errors, for
blocking calls of ragtrace's own, and for warnings in its log.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cases.numbers.reading import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytest.importorskip("blockbuster")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
ANSWER = "You cancel in Settings, under Billing."
OFF = dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none")


@pytest.fixture(scope="module")
def applications() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported the frameworks, and forks a child for each application."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.cases.suites.langgraph_dev"],
        env=environment(**OFF), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process
        process.communicate(timeout=60)
    assert process.returncode == 0


def run(applications: subprocess.Popen[str], task: dict[str, Any], path: Path) -> dict[str, Any]:
    assert applications.stdin is not None
    assert applications.stdout is not None
    applications.stdin.write(f"{json.dumps([task, str(path)])}\n")
    applications.stdin.flush()
    status, told = applications.stdout.readline(), path.read_text(encoding="utf-8")
    assert status == "0\n", told[-6_000:]
    found: dict[str, Any] = json.loads(told.splitlines()[-1])
    return found


@pytest.fixture
def asked(tmp_path: Path, applications: subprocess.Popen[str]) -> Callable[..., dict[str, Any]]:
    """Run applications with a store, and files of their own in the place of ``FOLDER``."""

    def ask(*apps: str, **task: Any) -> dict[str, Any]:
        settings = {"store": "FOLDER/scores.sqlite", **task.pop("settings", {})}
        given = {
            name: it.replace("FOLDER", str(tmp_path)) if isinstance(it, str) else it
            for name, it in settings.items()
        }
        return run(applications, {"apps": apps, **task, "settings": given}, tmp_path / "told")

    return ask


def check(found: dict[str, Any], runs: int = 3, *, before: int = 0) -> None:
    """All was captured, scored and stored, beside what stood there before, and nobody was warned of anything."""
    assert len(found["said"]) == runs
    assert set(found["said"][:3]) == {ANSWER}
    assert found["internal"] == {}
    assert found["blocked"] == []
    assert found["logged"] == []
    assert found["store"].get("runs") == before + runs, found["store"]
    assert found["store"]["faithful"] == before + runs
    assert found["store"]["scores"] >= 4 * (before + runs)
    assert found["store"]["errors"] == 0
    assert found.get("flushed", True) is True
    assert found["ended"] is True


APPLICATIONS = {
    "a chain": ["chain_ainvoke"],
    "chains": ["chain_together", "chain_invoke_on_the_loop", "chain_invoke_in_a_thread", "chain_astream"],
    "event streams": ["chain_events", "graph_events"],
    "a graph": ["graph_ainvoke"],
    "graphs": ["graph_of_coroutines", "graph_in_a_thread", "graph_astream"],
    "an agent": ["agent_ainvoke"],
    "a handler": ["handler_made_on_the_loop"],
    "by hand": ["by_hand"],
    "LlamaIndex": ["engine_aquery", "engine_query_in_a_thread", "workflow_run"],
}


@pytest.mark.parametrize("apps", APPLICATIONS.values(), ids=list(APPLICATIONS))
def test_every_kind_of_application_keeps_its_scores(asked: Callable[..., Any], apps: list[str]) -> None:
    check(asked(*apps), 3 * len(apps))


@pytest.mark.parametrize("how", ["environment", "inside"])
@pytest.mark.parametrize(
    "app", ["chain_ainvoke", "graph_ainvoke", "chain_invoke_in_a_thread", "by_hand", "engine_aquery"]
)
def test_it_may_be_configured_on_the_loop(asked: Callable[..., Any], app: str, how: str) -> None:
    """From RAGTRACE_* variables by the first capture, or by `ragtrace.configure` in a coroutine."""
    check(asked(app, how=how))


SETTINGS: dict[str, dict[str, Any]] = {
    "a spool": {"spool": "FOLDER/spool.sqlite"},
    "a spool in the store": {"spool": "FOLDER/scores.sqlite"},
    "no texts, a small store": {"content": "none", "store_bytes": 1_048_576, "store_scores_days": 0.5},
    "grades, console": {"grade_cache": "FOLDER/grades.sqlite", "console": True},
    "metrics and health": {"metrics_port": 0, "health_port": 0, "spool": "FOLDER/spool.sqlite"},
}


@pytest.mark.parametrize("how", ["hand", "environment"])
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_write_files(asked: Callable[..., Any], name: str, how: str) -> None:
    check(asked("graph_ainvoke", settings=SETTINGS[name], how=how, learnt=2))


JUDGED: dict[str, dict[str, Any]] = {
    "budgets in memory": {"budget_usd_per_day": 5.0},
    "budgets beside a spool": {"spool": "FOLDER/spool.sqlite", "budget_tokens_per_day": 10**6, "judge_rpm": 10**5},
    "a grade cache": {"grade_cache": "FOLDER/grades.sqlite", "spool": "FOLDER/scores.sqlite"},
    "a first judge": {"first_judge": "overlap", "judge_rates": "1.0"},
}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, "hand") for name in JUDGED),
        ("budgets in memory", "environment"),
        ("budgets beside a spool", "environment"),
    ],
)
def test_a_judge_over_http(asked: Callable[..., Any], name: str, how: str) -> None:
    found = asked("chain_ainvoke", settings=JUDGED[name], judge=True, how=how)
    if name == "a first judge":  # two judges, two scores of each run
        assert found["store"].get("faithful") == 6
        found["store"]["faithful"] = 3
    check(found)


def test_canaries_and_anchors_of_a_judge(asked: Callable[..., Any]) -> None:
    settings = {"canary_every_s": 1, "anchors_every_s": 1, "spool": "FOLDER/spool.sqlite", "judge_rpm": 10**5}
    found = asked("slowly", settings=settings, judge=True)
    # The judge of these tests does not know the canaries' texts: what they say of it is a warning of its own.
    found["logged"] = [it for it in found["logged"] if "canar" not in it.lower()]
    check(found)


@pytest.mark.parametrize(
    "settings", [{}, {"spool": "FOLDER/scores.sqlite"}, {"spool": "FOLDER/spool.sqlite"}], ids=json.dumps
)
def test_the_rounds_of_a_second_find_their_files(asked: Callable[..., Any], settings: dict[str, Any]) -> None:
    """Retention, leases, baselines and the mix are looked after about once a second."""
    check(asked("slowly", settings=settings))


@pytest.mark.parametrize("how", ["hand", "environment"])
def test_feedback_given_on_the_loop_is_kept(asked: Callable[..., Any], how: str) -> None:
    found = asked("by_hand_with_feedback", how=how)
    check(found)
    assert found["store"]["people"] == 6


@pytest.mark.parametrize(
    ("ends", "settings"),
    [
        *(
            (ends, {})
            for ends in ("flush on the loop", "shutdown on the loop", "shutdown in a thread", "after the loop")
        ),
        *((ends, {"spool": "FOLDER/scores.sqlite"}) for ends in ("flush on the loop", "all on the loop")),
        ("all on the loop", {"spool": "FOLDER/spool.sqlite"}),
    ],
)
def test_it_may_end_on_the_loop(asked: Callable[..., Any], ends: str, settings: dict[str, Any]) -> None:
    check(asked("graph_ainvoke", ends=ends, settings=settings))


def test_a_spool_keeps_what_an_end_on_the_loop_leaves(asked: Callable[..., Any]) -> None:
    """Without a flush a shutdown finishes the units under way; the others wait in the spool for the next scorer."""
    settings = {"spool": "FOLDER/scores.sqlite"}
    first = asked("graph_ainvoke", ends="shutdown on the loop", settings=settings)
    assert (first["said"], first["internal"], first["blocked"], first["logged"]) == ([ANSWER] * 3, {}, [], [])
    check(asked("graph_ainvoke", settings=settings), before=3)


def test_several_loops_in_threads_of_their_own(asked: Callable[..., Any]) -> None:
    """As with ``BG_JOB_ISOLATED_LOOPS``."""
    found = asked("chain_ainvoke", loops=True)
    assert found.pop("flushed") == [True] * 3
    found["said"] = [answer for answers in found["said"] for answer in answers]
    check(found, 9)


@pytest.mark.parametrize("settings", [{}, {"spool": "FOLDER/scores.sqlite"}], ids=["store", "store and spool"])
def test_a_second_configuration_on_the_loop_goes_on_in_the_same_file(
    asked: Callable[..., Any], settings: dict[str, Any]
) -> None:
    check(asked("by_hand", again=True, settings=settings), 6)


@pytest.mark.parametrize("how", ["hand", "environment"])
def test_a_second_process_goes_on_in_the_same_file(asked: Callable[..., Any], how: str) -> None:
    check(asked("graph_ainvoke", how=how))
    check(asked("graph_ainvoke", how=how), before=3)


@pytest.mark.parametrize("settings", [{}, {"spool": "FOLDER/scores.sqlite"}], ids=["store", "store and spool"])
def test_not_even_a_file_is_read_on_a_loop_of_ours(asked: Callable[..., Any], settings: dict[str, Any]) -> None:
    """The rules that blockbuster has by default, but for locks: the judge's word tables are files too."""
    check(asked("chain_ainvoke", "graph_ainvoke", "by_hand", rules="files", settings=settings), 9)


@pytest.mark.parametrize("spool", ["FOLDER/scores.sqlite", "FOLDER/spool.sqlite"])
def test_a_worker_scores_what_the_application_captured(
    asked: Callable[..., Any], tmp_path: Path, spool: str
) -> None:
    found = asked("graph_ainvoke", settings={"spool": spool, "scorer": "worker"}, how="environment")
    assert (found["said"], found["flushed"], found["ended"]) == ([ANSWER] * 3, True, True)
    assert (found["internal"], found["blocked"], found["logged"]) == ({}, [], [])
    ours = {"RAGTRACE_STORE": str(tmp_path / "scores.sqlite"), "RAGTRACE_CONTENT": "full"}
    command = [sys.executable, "-m", "ragtrace", "worker", "--once", "--spool"]
    done = subprocess.run(
        [*command, spool.replace("FOLDER", str(tmp_path))],
        env=environment(**OFF, **ours), cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check(asked("by_hand", rules="none"), before=3)


@pytest.mark.parametrize("task", [{}, {"judge": True}, {"how": "inside"}], ids=json.dumps)
def test_without_the_rules_the_same_holds(asked: Callable[..., Any], task: dict[str, Any]) -> None:
    """What the other tests expect is what comes without blockbuster."""
    check(asked("graph_ainvoke", "chain_ainvoke", rules="none", **task), 6)
