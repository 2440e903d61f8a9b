"""What a person reads where the judge fails: one line live, the summary of a scored file, and `ragtrace doctor`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from tests.command_line import environment as bare
from tests.guards.judge_server import Answer, completion, refusal
from tests.guards.processes import closed_port, got, is_up, until
from tests.process.observing import QUIET, ROOT, environment, ran
from tests.process.test_limits_wired import GOOD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.guards.judge_server import JudgeServer

KEY = "sk-a-secret-of-the-judge"
DOCTOR = "`ragtrace doctor` asks the judge one question"
DOCTOR_TOO = (401, 404)  # says the same sentence of them as the application
WAITING = "sampled runs wait without a score and are tried again"
WITHIN_S = 5.0
BELOW_ONE = "one call of the judge may take more than the budget of a day: raise budget_usd_per_day or"


def judge(server: JudgeServer | str, **more: str) -> dict[str, str]:
    url = server if isinstance(server, str) else server.url
    return {"RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_BASE_URL": url, "OPENAI_API_KEY": KEY, **more}


def told(said: str) -> list[tuple[float, str]]:
    """Return the lines of the log on the judge, with their seconds."""
    lines = [line.split(" ", 1) for line in said.splitlines() if DOCTOR in line and "shutdown" not in line]
    return [(float(at), text) for at, text in lines]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "more", "cause", "then"),
    [
        (
            "none",
            {},
            r"http://127\.0\.0\.1:9/v1 cannot be reached or broke the connection \(connection refused: ",
            WAITING,
        ),
        ("silence", {}, r"127\.0\.0\.1:\d+ has not answered for 3 s", "the judge is waited for"),
        (401, {}, r"refuses the API key \(401\): check judge_api_key", "asked again every 5 min"),
        (402, {}, r"refuses the judge's calls \(402\): the account has no money left", "asked again every 5 min"),
        (404, {}, r"has no such model or path \(404\): check the model's name", WAITING),
        ("unknown", {}, r"has no such model or path \(404\): check the model's name", "asked again every 5 min"),
        (503, {}, r"/v1 answered 503", WAITING),
        (400, {}, r"/v1 answered 400", WAITING),
        (500, {}, r"/v1 answered 500", WAITING),
        ("prose", {}, r"openai:m answers, and no score can be made of it \(judge_invalid_output\)", "get no score"),
        ("good", {"RAGTRACE_BUDGET_TOKENS_PER_DAY": "10"}, BELOW_ONE, "no run is scored before that"),
        (
            "good",
            {
                "RAGTRACE_BUDGET_USD_PER_DAY": "0.000001",
                "RAGTRACE_PRICE_INPUT_USD_PER_MILLION": "1",
                "RAGTRACE_PRICE_OUTPUT_USD_PER_MILLION": "1",
            },
            BELOW_ONE,
            "no run is scored before that",
        ),
        (
            "dear",
            {"RAGTRACE_BUDGET_TOKENS_PER_DAY": "12000"},
            "the judge's budget has nothing left",
            "until 00:00 UTC",
        ),
    ],
)
def test_an_application_says_once_and_soon_why_it_has_no_scores(
    judge_server: JudgeServer, answer: str | int, more: dict[str, str], cause: str, then: str
) -> None:
    end = Event()
    usage = {"prompt_tokens": 1_000, "completion_tokens": 4_500}
    replies = {
        "none": Answer(200, {}),
        "silence": Answer(200, completion(GOOD), hold=end),
        "prose": Answer(200, completion("It is fine.")),
        "unknown": refusal(404, f"The model `m` does not exist: {KEY} Where is the lab?"),
        "good": Answer(200, completion(GOOD)),
        "dear": Answer(200, completion(GOOD, usage=usage)),
    }
    refused = refusal(answer, f"no: {KEY} Where is the lab?") if isinstance(answer, int) else replies[answer]
    judge_server.always = lambda _: refused
    url = "http://127.0.0.1:9/v1" if answer == "none" else judge_server
    done = ran("-m", "tests.e2e.judged_app", "5", "1", **judge(url, **more))
    end.set()
    assert done.returncode == 0, done.stderr
    (line,) = told(done.stderr)
    at_s, text = line
    assert re.search(cause, text), text
    assert then in text
    assert at_s <= WITHIN_S, text
    assert KEY not in done.stderr
    assert "Where is the lab?" not in text
    assert "Traceback" not in done.stderr
    assert text.count("\n") == 0
    if answer in DOCTOR_TOO:
        why = text.removeprefix("ragtrace: ").partition(";")[0]
        assert examined(**judge(judge_server)).startswith(f"fail  judge         {why}")


@pytest.mark.slow
@pytest.mark.parametrize("answer", [Answer(429, {}), Answer(200, {"error": {"message": "slow down", "code": 429}})])
def test_a_judge_that_limits_the_rate_is_named_within_fifteen_seconds(
    judge_server: JudgeServer, answer: Answer
) -> None:
    judge_server.always = lambda _: answer
    done = ran("-m", "tests.e2e.judged_app", "10", "4", **judge(judge_server))
    ((at_s, text),) = told(done.stderr)
    assert "limits the rate (429)" in text
    assert WAITING in text
    assert at_s <= 15.0, text
    assert "10 traces (http://" in done.stderr.splitlines()[-1], "the shutdown line names it too"
    assert len(judge_server.requests) <= 12


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--preload"]], ids=["forked before", "forked after the import"])
def test_under_gunicorn_each_process_says_it_once(judge_server: JudgeServer, options: list[str]) -> None:
    judge_server.always = lambda _: refusal(401, "no")
    port = closed_port()
    command = ["gunicorn", "tests.e2e.judged_web", *options, "--workers", "4", "--bind", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        [sys.executable, "-m", *command],
        env=environment(**judge(judge_server)), cwd=ROOT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(lambda: is_up(port) or server.poll() is not None)
        pids: set[str] = set()
        deadline = time.monotonic() + 60.0
        with ThreadPoolExecutor(8) as pool:
            while len(pids) < 4 and time.monotonic() < deadline:
                pids |= {pid for _, pid in pool.map(lambda n: got(port, f"/{n}"), range(40))}
        time.sleep(WITHIN_S)
    finally:
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=60)
    lines = [line for line in said.splitlines() if DOCTOR in line]
    assert 1 < len(lines) <= len(pids), said
    assert len(set(lines)) == 1
    assert "refuses the API key (401)" in lines[0]
    assert KEY not in said


@pytest.mark.slow
def test_an_application_of_one_second_says_it_when_it_ends(judge_server: JudgeServer) -> None:
    done = ran("-m", "tests.e2e.judged_app", "1", "10", **judge("http://127.0.0.1:9/v1"))
    last = done.stderr.splitlines()[-1]
    assert "not scored: 1 trace (http://127.0.0.1:9/v1 cannot be reached or broke the connection" in last
    assert done.stdout == "not whole\n"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "runs.jsonl"
    rows = [
        {"query": f"Where is lab {n}?", "answer": "The lab is in Oslo.", "contexts": ["The lab is in Oslo."]}
        for n in range(6)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def scored(*args: object, **env: str) -> subprocess.CompletedProcess[str]:
    words = ["score", *args, "--metrics", "faithfulness"]
    return subprocess.run(
        [sys.executable, "-m", "ragtrace", *map(str, words)],
        env=bare(**QUIET, **env), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


PRICED = {"RAGTRACE_PRICE_INPUT_USD_PER_MILLION": "10", "RAGTRACE_PRICE_OUTPUT_USD_PER_MILLION": "100"}


@pytest.mark.slow
@pytest.mark.parametrize(("status", "message"), [(401, "refuses the API key (401)"), (500, "answered 500: no")])
def test_a_scored_file_s_summary_has_the_most_frequent_failure(
    judge_server: JudgeServer, lines: Path, tmp_path: Path, status: int, message: str
) -> None:
    judge_server.always = lambda request: (
        Answer(200, completion(GOOD)) if "lab 5" in str(request.body) else refusal(status, "no")
    )
    done = scored(lines, "--out", tmp_path / "out.jsonl", **judge(judge_server))
    (warning,) = [line for line in done.stdout.splitlines() if "the judge failed" in line]
    assert warning.startswith("warning: the judge failed on 5 of 6 lines, on 5 of them: http://127.0.0.1:")
    assert message in warning
    assert warning.endswith(DOCTOR)
    assert len([line for line in done.stderr.splitlines() if DOCTOR in line]) <= 1
    assert KEY not in done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.slow
def test_a_scored_file_tells_calls_tokens_and_dollars(
    judge_server: JudgeServer, lines: Path, tmp_path: Path
) -> None:
    judge_server.always = lambda _: Answer(200, completion(GOOD))
    done = scored(lines, "--out", tmp_path / "out.jsonl", **judge(judge_server, **PRICED))
    # 120 prompt tokens and 7 of the reply a call: 6 * (120 * 10 + 7 * 100) / 10^6 dollars
    assert "6 calls of the judge, 762 tokens, 0.0114 US dollars\n" in done.stdout
    assert (done.returncode, len(judge_server.requests)) == (0, 6)


@pytest.mark.slow
def test_after_max_calls_no_call_is_made_and_a_resumed_run_goes_on(
    judge_server: JudgeServer, lines: Path, tmp_path: Path
) -> None:
    judge_server.always = lambda _: Answer(200, completion(GOOD))
    out = tmp_path / "out.jsonl"
    done = scored(lines, "--out", out, "--max-calls", 4, **judge(judge_server))
    assert len(judge_server.requests) == 4
    assert "4 scored in" in done.stdout
    assert "4 calls of the judge, 508 tokens, their price is not known" in done.stdout
    left = "ragtrace: 2 lines left unscored (budget_exceeded: the 4 calls of --max-calls are made); "
    assert f"{left}the same command with --resume goes on" in done.stderr
    assert done.returncode == 1
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["scores"]["faithfulness"]["state"] for row in rows] == ["ok"] * 4
    again = scored(lines, "--out", out, "--max-calls", 4, "--resume", **judge(judge_server))
    assert (again.returncode, len(judge_server.requests)) == (0, 6)
    assert "2 scored now" in again.stdout
    assert len(out.read_text().splitlines()) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget",
    [
        {"RAGTRACE_BUDGET_TOKENS_PER_DAY": "10"},
        {"RAGTRACE_BUDGET_USD_PER_DAY": "0.000001", **PRICED},
    ],
)
def test_a_budget_below_one_call_is_said_and_leaves_every_line(
    judge_server: JudgeServer, lines: Path, tmp_path: Path, budget: dict[str, str]
) -> None:
    done = scored(lines, "--out", tmp_path / "out.jsonl", **judge(judge_server, **budget))
    assert f"ragtrace: 6 lines left unscored (budget_exceeded: {BELOW_ONE}" in done.stderr
    assert "0 scored in" in done.stdout
    assert "no record in" not in done.stdout
    assert (done.returncode, judge_server.requests) == (1, [])
    (live,) = [line for line in done.stderr.splitlines() if DOCTOR in line]
    assert BELOW_ONE in live
    assert "the rest is left unscored" in live


@pytest.mark.slow
def test_a_budget_that_is_spent_half_way_leaves_the_rest(
    judge_server: JudgeServer, lines: Path, tmp_path: Path
) -> None:
    judge_server.always = lambda _: Answer(
        200, completion(GOOD, usage={"prompt_tokens": 2_000, "completion_tokens": 4_000})
    )
    out = tmp_path / "out.jsonl"
    budget = {"RAGTRACE_BUDGET_TOKENS_PER_DAY": "24000"}
    done = scored(lines, "--out", out, "--jobs", 1, **judge(judge_server, **budget))
    written = len(out.read_text().splitlines())
    assert 0 < written < 6
    left = f"ragtrace: {6 - written} lines left unscored (budget_exceeded: the judge's budget has nothing left"
    assert left in done.stderr
    assert done.returncode == 1
    assert sum(6_000 for _ in judge_server.requests) <= 24_000


@pytest.mark.slow
def test_the_parts_of_a_folder_obey_the_budget_too(judge_server: JudgeServer, lines: Path, tmp_path: Path) -> None:
    judge_server.always = lambda _: Answer(200, completion(GOOD))
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in "ab":
        (folder / f"{name}.jsonl").write_text(lines.read_text())
    out = tmp_path / "out"
    spent = {"RAGTRACE_BUDGET_TOKENS_PER_DAY": "10"}
    done = scored(folder, "--out", out, **judge(judge_server, **spent))
    assert "2 parts failed: --resume tries again" in done.stdout
    assert f"JudgeOverBudget: {BELOW_ONE}" in done.stderr
    assert (done.returncode, judge_server.requests) == (1, [])
    again = scored(folder, "--out", out, "--resume", **judge(judge_server, **PRICED))
    assert "12 calls of the judge, 1,524 tokens, 0.0228 US dollars" in again.stdout
    assert again.returncode == 0
    refused = scored(folder, "--out", out, "--resume", "--max-calls", 3, **judge(judge_server))
    assert (refused.returncode, "--max-calls: it is for one local file" in refused.stderr) == (2, True)


def examined(**env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ragtrace", "doctor"],
        env=bare(**QUIET, **env), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert KEY not in done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if re.match(r"\w+ +judge ", line)]
    return line


@pytest.mark.slow
def test_doctor_finds_a_budget_that_pays_for_no_call(judge_server: JudgeServer, tmp_path: Path) -> None:
    below: dict[str, Any] = {"RAGTRACE_BUDGET_TOKENS_PER_DAY": "10", "RAGTRACE_SPOOL": str(tmp_path / "spool")}
    assert BELOW_ONE in examined(**judge(judge_server, **below))
    assert judge_server.requests == []
    assert list(tmp_path.iterdir()) == [], "doctor makes no file"


@pytest.mark.slow
def test_a_store_without_scores_leads_to_doctor(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    app = judge("http://127.0.0.1:9/v1", RAGTRACE_STORE=str(store), RAGTRACE_BUDGET_TOKENS_PER_DAY="10")
    ran("-m", "tests.e2e.judged_app", "1", "1", **app)
    done = ran("-m", "ragtrace", "worst", store)
    assert "no answer has a score of faithfulness" in done.stderr
    assert "let `ragtrace doctor` tell why the judge gives none" in done.stderr
    assert done.returncode == 2
