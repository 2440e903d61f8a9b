"""``ragtrace score`` as a person runs it: the real program, real files, pipes, signals and exit statuses."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.model import SCHEMA
from tests.command_line import environment
from tests.command_line import ran as ragtrace
from tests.guards.processes import until

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = [sys.executable, "-m", "ragtrace"]


def record(i: int, **more: Any) -> dict[str, Any]:
    context = f"Ticket {i} was opened in Oslo on Monday. A refund takes five working days."
    return {
        "query": f"Where is ticket {i}?",
        "answer": f"Ticket {i} was opened in Oslo.",
        "contexts": [context],
        **more,
    }


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8"
    )
    return path


def rows(text: bytes | Path) -> list[dict[str, Any]]:
    raw = text.read_bytes() if isinstance(text, Path) else text
    return [json.loads(line) for line in raw.splitlines()]


def table_row(text: bytes, metric: str) -> list[str]:
    return next(line.split() for line in text.decode().splitlines() if line.startswith(f"{metric} "))


# What goes in and what comes out


def test_lines_keep_what_they_said_and_gain_id_and_scores(tmp_path: Path) -> None:
    given = [
        record(1, id="a", colour="blue", note="Zürich \u2028 \ud800"),
        record(2, id=7, nested={"x": [1, None]}),
        record(3, scores={"of": "an earlier run"}),
    ]
    out = tmp_path / "out.jsonl"
    done = ragtrace("score", write(tmp_path / "in.jsonl", given), "--metrics", "faithfulness", "--out", out)
    assert done.returncode == 0, done.stderr
    found = rows(out)
    assert [row["id"] for row in found] == ["a", 7, 3]
    for row, line in zip(found, given, strict=True):
        scores = row.pop("scores")
        assert row == {**{k: v for k, v in line.items() if k != "scores"}, "id": row["id"]}
        assert set(scores) == {"faithfulness"}
        score = scores["faithfulness"]
        assert {"state", "value", "passed", "reason", "details", "judge", "version"} <= set(score)
        assert (score["state"], score["value"], score["passed"], score["judge"]) == ("ok", 1.0, True, "overlap")
    assert done.stderr == b""
    assert table_row(done.stdout, "faithfulness")[1:3] == ["3", "1.000"]


def test_gzip_on_standard_input_and_lines_on_standard_output() -> None:
    packed = gzip.compress("".join(json.dumps(record(i)) + "\n" for i in range(5)).encode())
    done = ragtrace("score", "-", "--metrics", "faithfulness,no_answer", stdin=packed)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows(done.stdout)] == [1, 2, 3, 4, 5]
    assert table_row(done.stderr, "faithfulness")[1] == "5"
    assert table_row(done.stderr, "answered")[1] == "5"


def test_gzip_is_known_by_its_content_not_its_name(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(gzip.compress(json.dumps(record(1)).encode()))
    plain = write(tmp_path / "in.gz", [record(1)])
    for path in (tmp_path / "in.jsonl", plain):
        assert len(rows(ragtrace("score", path, "--metrics", "faithfulness").stdout)) == 1


def test_standard_error_is_quiet_unless_it_is_a_terminal(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [record(i) for i in range(3)])
    leader, follower = pty.openpty()
    command = [*COMMAND, "score", str(path), "--metrics", "faithfulness", "--out", str(tmp_path / "out.jsonl")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=follower, env=environment(TERM="xterm", COLUMNS="100")
    ) as run:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # the other end is closed: Linux says so with an error
                break
            if not part:
                break
            shown += part
    os.close(leader)
    assert run.returncode == 0
    assert b"scoring" in shown
    assert ragtrace(*command[3:-1], tmp_path / "again.jsonl").stderr == b""


def test_the_cut_offs_of_k_metrics_may_be_several(tmp_path: Path) -> None:
    graded = record(1, contexts=[{"id": i, "text": i} for i in "abcd"], labels={"a": 5, "b": 1, "c": 4, "d": 2})
    path = write(tmp_path / "in.jsonl", [graded])
    args = ("score", path, "--metrics", "p_at_k", "--k-values", "2,4")
    done = ragtrace(*args, "--fail-under", "p_at_k@4=0.5", "--fail-under", "p_at_k@2=0.5")
    assert done.returncode == 0, done.stderr
    scores = rows(done.stdout)[0]["scores"]
    assert {key: (score["value"], score["k"]) for key, score in scores.items()} == {
        "p_at_k": (0.5, 2),
        "p_at_k@4": (0.5, 4),
    }
    assert ragtrace(*args, "--fail-under", "p_at_k@9=0.5").returncode == 2


# Bad input


def test_broken_lines_are_reported_counted_and_the_rest_is_scored(tmp_path: Path) -> None:
    lines = [
        record(1),
        '{"query": "cut',
        "",
        record(4),
        '["a list"]',
        '{"answer": 3}',
        '{"answer": "a", "x": NaN}',
        '{"answer": "a", "x": 1e999}',
        '{"answer": "a", "x": ' + "9" * 5_000 + "}",
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
        record(11),
    ]
    path = write(tmp_path / "in.jsonl", lines)
    path.write_bytes(path.read_bytes() + b'{"answer": "\xff"}\n')
    done = ragtrace("score", path, "--metrics", "faithfulness")
    assert done.returncode == 1
    assert [row["id"] for row in rows(done.stdout)] == [1, 4, 11]
    said = done.stderr.decode()
    for number in (2, 5, 6, 7, 8, 9, 10, 12):
        assert f"\n{path}:{number}: " in f"\n{said}"
    assert "field 'answer': expected `str | null`, got `int`" in said
    assert "3 scored, 8 broken" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_in_another_unicode_form_is_one_line(
    tmp_path: Path, encoding: str, packed: Callable[[bytes], bytes]
) -> None:
    text = "".join(json.dumps(record(i)) + "\n" for i in range(3)).encode(encoding)
    path = tmp_path / "in.jsonl"
    path.write_bytes(packed(text))
    done = ragtrace("score", path, "--metrics", "faithfulness")
    assert (done.returncode, done.stdout) == (1, b"")
    told = [line for line in done.stderr.decode().splitlines() if line.startswith(str(path))]
    assert told == [f"{path}:1: this is UTF-16 or UTF-32; write it as UTF-8"]


def test_utf_8_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(json.dumps(record(1)).encode("utf-8-sig"))
    assert ragtrace("score", tmp_path / "in.jsonl", "--metrics", "faithfulness").returncode == 0


def test_an_answer_of_another_name_is_no_answer_of_nothing(tmp_path: Path) -> None:
    other = {"prompt": "Where?", "completion": "In Oslo.", "documents": ["It is in Oslo."]}
    path = write(tmp_path / "in.jsonl", [other, {**other, "query": "Where?"}, {}, record(1, answer="")])
    done = ragtrace("score", path, "--metrics", "faithfulness,no_answer,context_precision")
    scores = [row["scores"] for row in rows(done.stdout)]
    scores.sort(key=lambda one: one["answered"]["state"])
    assert [one["answered"]["reason"] for one in scores] == ["missing_input:answer"] * 3 + [None]
    assert [one["faithfulness"]["reason"] for one in scores] == ["missing_input:answer"] * 3 + ["no_answer"]
    assert scores[3]["answered"]["value"] == 0.0
    (told,) = [line for line in done.stderr.decode().splitlines() if "not part of a record" in line]
    assert told.endswith(": prompt (2), completion (2), documents (2)")


def test_lines_that_were_scored_once_hold_no_unknown_field(tmp_path: Path) -> None:
    first = ragtrace("score", write(tmp_path / "in.jsonl", [record(1, id="a", outcome="answered")]))
    again = ragtrace("score", "-", stdin=first.stdout)
    assert (again.returncode, b"not part of a record" in again.stderr) == (0, False)


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_gzip_file_is_scored_up_to_the_damage(tmp_path: Path, damage: str) -> None:
    text = "".join(json.dumps(record(i, noise=os.urandom(300).hex())) + "\n" for i in range(400)).encode()
    packed = bytearray(gzip.compress(text))
    middle = len(packed) // 2
    if damage == "cut":
        del packed[middle:]
    else:
        packed[middle : middle + 50] = bytes(50)
    (tmp_path / "in.gz").write_bytes(packed)
    done = ragtrace("score", tmp_path / "in.gz", "--metrics", "faithfulness", "--out", tmp_path / "out.jsonl")
    assert done.returncode == 1
    assert b"in.gz:" in done.stderr
    assert b"Traceback" not in done.stderr
    assert 0 < len(rows(tmp_path / "out.jsonl")) < 400


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--metrics", "fathfulness"], "did you mean 'faithfulness'"),
        (["--judge", "overlpa"], "did you mean 'overlap'"),
        (["--grading", "umbrla"], "did you mean 'umbrela'"),
        (["--grading", "umbrela"], "judge 'overlap' grades on direct5 alone"),
        (["--judge", "openai:m"], "OPENAI_API_KEY"),
        (["--judge", "openai"], "openai:MODEL"),
        (["--embedder", "overlp"], "did you mean 'overlap'"),
        (["--k-values", "3,x"], "--k-values"),
        (["--fail-under", "fathfulness=.8"], "did you mean 'faithfulness'"),
        (["--fail-under", "faithfulness=nan"], "METRIC=NUMBER"),
        (["--resume"], "--resume needs --out"),
    ],
)
def test_usage_errors_are_one_line_exit_2_and_no_work(tmp_path: Path, args: list[str], said: str) -> None:
    out = tmp_path / "out.jsonl"
    where = [] if args == ["--resume"] else ["--out", str(out)]
    done = ragtrace("score", write(tmp_path / "in.jsonl", [record(1)]), *args, *where)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
    assert done.stdout == b""
    assert not out.exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--versio"], "--version"),
        (["score"], "PATH"),
        (["score", "no-such-file.jsonl"], "no-such-file.jsonl: No such file or directory"),
        (["score", "."], "--out: . is scored in parts"),
    ],
)
def test_unknown_names_are_one_line(args: list[str], said: str) -> None:
    done = ragtrace(*args)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_an_existing_out_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [record(1)])
    notes = tmp_path / "notes.txt"
    notes.write_text("precious")
    for more in ([], ["--resume"]):
        done = ragtrace("score", path, "--out", notes, *more)
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1
        assert notes.read_text() == "precious"


# Thresholds


def test_exit_statuses_of_thresholds(tmp_path: Path) -> None:
    good, broken, empty = tmp_path / "good", tmp_path / "broken", tmp_path / "empty"
    write(good, [record(1), record(2, answer="Bananas grow on Mars every winter.")])
    write(broken, [record(1), "{"])
    write(empty, [])

    def status(path: Path, *limits: str, metrics: str = "faithfulness,answer_relevancy") -> int:
        asked = [part for limit in limits for part in ("--fail-under", limit)]
        return ragtrace("score", path, "--metrics", metrics, *asked).returncode

    assert status(good, "faithfulness=0.1") == 0
    assert status(good, "faithfulness=0.99") == 3
    assert status(good, "faithfulness=0.1", "faithfulness=0.99") == 3
    assert status(good, "answer_relevancy=0") == 3, "na everywhere: n = 0"
    assert status(broken, "faithfulness=0.1") == 1
    assert status(broken, "faithfulness=1.1") == 3
    assert status(empty) == 0
    assert status(empty, "faithfulness=0") == 3


# Going on after the worst


def resumed(path: Path, out: Path, *more: str) -> subprocess.CompletedProcess[bytes]:
    return ragtrace("score", path, "--metrics", "faithfulness", "--out", out, "--resume", *more)


@pytest.mark.slow
def test_a_killed_run_is_gone_on_with_and_nothing_is_scored_twice_or_lost(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [record(i, id=f"r{i}") for i in range(3_000)])
    out = tmp_path / "out.jsonl"
    command = [*COMMAND, "score", str(path), "--metrics", "faithfulness", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as run:
        until(lambda: out.exists() and out.stat().st_size > 20_000, running=run)
        run.kill()
    before = out.read_bytes()
    n_before = before.count(b"\n")
    assert 10 < n_before < 3_000
    torn = before + b'{"id": "r2999", "query": "torn in the mid'
    out.write_bytes(torn)
    done = resumed(path, out)
    assert done.returncode == 0, done.stderr
    found = rows(out)
    assert Counter(row["id"] for row in found) == Counter(f"r{i}" for i in range(3_000))
    assert out.read_bytes()[: len(before)] == before, "what was scored stands as it stood"
    assert table_row(done.stdout, "faithfulness")[1] == "3000", "the summary covers old and new"


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_written_and_says_how_to_go_on(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [record(i) for i in range(3_000)])
    out = tmp_path / "out.jsonl"
    command = [*COMMAND, "score", str(path), "--metrics", "faithfulness", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as run:
        until(lambda: out.exists() and out.stat().st_size > 20_000, running=run)
        run.send_signal(signal.SIGINT)
        shown, said = run.communicate(timeout=60)
    assert run.returncode == 130
    n = len(rows(out))
    assert 10 < n < 3_000
    assert table_row(shown, "faithfulness")[1] == str(n)
    assert b"--resume goes on" in said
    assert b"Traceback" not in said
    assert resumed(path, out).returncode == 0
    assert sorted(row["id"] for row in rows(out)) == list(range(1, 3_001))


def test_lines_of_one_id_do_not_collide_on_resume(tmp_path: Path) -> None:
    """An id given twice, an id that is another line's number, and a line without an id."""
    given = [record(1, id="x"), record(2, id="4"), record(3, id="x"), record(4), record(5, id="x")]
    path, out = write(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    for limit in range(1, 6):
        assert resumed(path, out, "--limit", str(limit)).returncode == 0
        assert [row["query"] for row in rows(out)] == [line["query"] for line in given[:limit]]
    assert [row["id"] for row in rows(out)] == ["x", "4", "x", 4, "x"]
    size = out.stat().st_size
    assert resumed(path, out).returncode == 0
    assert out.stat().st_size == size


def test_a_scored_file_can_be_read_again_and_resumed_onto_itself(tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    ragtrace(
        "score", write(tmp_path / "in.jsonl", [record(1, id="a")]), "--metrics", "faithfulness", "--out", first
    )
    assert ragtrace("score", first, "--metrics", "no_answer", "--out", second).returncode == 0
    assert set(rows(second)[0]["scores"]) == {"answered"}
    before = first.read_bytes()
    assert resumed(first, first).returncode == 0
    assert first.read_bytes() == before


def test_resuming_says_what_was_there_and_what_it_lacks(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.jsonl", [record(n) for n in range(5)]), tmp_path / "out.jsonl"
    assert resumed(path, out, "--limit", "3").stdout.decode().splitlines()[-1] == (
        f"3 scored now in {out}, 0 there already, 0 broken"
    )
    assert resumed(path, out).stdout.decode().splitlines()[-1] == (
        f"2 scored now in {out}, 3 there already, 0 broken"
    )
    done = ragtrace("score", path, "--metrics", "faithfulness,no_answer", "--out", out, "--resume")
    assert done.returncode == 0
    assert done.stdout.decode().splitlines()[-2:] == [
        "warning: answered: 5 of 5 lines scored without it",
        f"0 scored now in {out}, 5 there already, 0 broken",
    ]


def test_resuming_with_another_judge_is_told(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.jsonl", [record(1)]), tmp_path / "out.jsonl"
    assert resumed(path, out).returncode == 0
    url = "http://127.0.0.1:9/v1"
    done = resumed(path, out, "--judge", "openai:m", "--base-url", url)
    said = done.stdout.decode().splitlines()
    assert said[-1] == f"0 scored now in {out}, 1 there already, 0 broken"
    assert re.fullmatch(
        r"warning: faithfulness: asked of openai:m \w+, but every score is of overlap \w+", said[-2]
    )


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [record(i) for i in range(2_000)])
    to_file = ["--out", str(tmp_path / "out.jsonl"), "--limit", "3"]
    score = ["score", str(path), "--metrics", "faithfulness"]
    for args in (score, [*score, *to_file], ["metrics"]):
        with subprocess.Popen(
            [*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        ) as run:
            assert run.stdout is not None
            assert run.stderr is not None
            run.stdout.close()
            assert run.stderr.read() == b""
        assert run.returncode == 141


# Judges that do not answer


@pytest.mark.slow
def test_a_judge_that_is_down_gives_errors_with_a_reason_and_no_number(tmp_path: Path) -> None:
    path, out = write(tmp_path / "in.jsonl", [record(i) for i in range(4)]), tmp_path / "out.jsonl"
    args = ["--judge", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "--metrics", "faithfulness"]
    done = ragtrace("score", path, *args, "--out", out)
    assert done.returncode == 3, done.stderr
    said = "ragtrace: no value of faithfulness: 4 scores are errors, 4 of them judge_unavailable"
    assert done.stderr.decode().splitlines()[-1] == said
    for row in rows(out):
        score = row["scores"]["faithfulness"]
        assert (score["state"], score["value"], score["reason"]) == ("error", None, "judge_unavailable")
        assert score["judge"] == "openai:m"
    assert table_row(done.stdout, "faithfulness") == ["faithfulness", "0", "4", "judge_unavailable"]
    again = ragtrace("score", path, *args, "--fail-under", "faithfulness=0")
    assert again.returncode == 3
    assert b"(n = 0)" in again.stderr


def test_a_file_without_anything_to_judge_is_no_failure_of_the_judge(tmp_path: Path) -> None:
    unanswered = {"query": "Where?", "contexts": ["The lab is in Oslo."]}
    for name, lines in {"na": [unanswered], "empty": []}.items():
        done = ragtrace("score", write(tmp_path / name, lines), "--metrics", "faithfulness")
        assert done.returncode == 0, done.stderr


# Sizes


MEASURE = """
import resource, sys
from ragtrace.cli import main
status = main(sys.argv[1:])
print(status, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak_mib(n: int) -> int:
        path = tmp_path / f"{n}.jsonl"
        padding = "x" * 10_000
        with path.open("w") as out:
            for i in range(n):
                out.write(json.dumps(record(i, padding=padding)) + "\n")
        args = [sys.executable, "-c", MEASURE, "score", str(path), "--metrics", "no_answer", "--out", "/dev/null"]
        done = subprocess.run(args, capture_output=True, timeout=120, check=True, env=environment())
        status, peak = done.stderr.split()[-2:]
        assert status == b"0"
        return int(peak)

    assert peak_mib(6_000) - peak_mib(300) < 20, "the larger file has 60 MB more"


# The other commands


def test_schema_metrics_version(tmp_path: Path) -> None:
    assert json.loads(ragtrace("schema").stdout) == SCHEMA
    table = ragtrace("metrics").stdout.decode()
    for word in ("faithfulness", "ndcg_at_k", "needs", "direction", "calls", "source", "labels"):
        assert word in table
    assert ragtrace("--version").stdout.startswith(b"ragtrace ")
    assert ragtrace("version").stdout.startswith(b"ragtrace ")
    usage = ragtrace()
    assert usage.returncode == 2
    assert b"score" in usage.stdout


def test_the_version_is_told_without_loading_what_scores() -> None:
    probe = (
        "import sys; from ragtrace.cli import main\n"
        "try: main(['--version'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'openai', 'pydantic', 'langchain_core', 'rich', 'opentelemetry.sdk'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=True, env=environment())
    assert done.stdout.splitlines()[-1] == b"[]"


# What people said of the same answers


def test_records_of_ragas_and_deepeval_are_scored_and_what_no_metric_reads_is_named(tmp_path: Path) -> None:
    ragas = {"user_input": "Where?", "response": "In Oslo.", "retrieved_contexts": ["The lab is in Oslo."]}
    deepeval = {"input": "Where?", "actual_output": "In Oslo.", "retrieval_context": ["The lab is in Oslo."]}
    path = write(tmp_path / "in.jsonl", [ragas, {**deepeval, "context": ["ideal"], "reference_contexts": ["x"]}])
    done = ragtrace("score", path, "--metrics", "faithfulness")
    assert [row["scores"]["faithfulness"]["value"] for row in rows(done.stdout)] == [1.0, 1.0]
    assert "`ragtrace schema`): context (1), reference_contexts (1)" in done.stderr.decode()


def test_a_file_that_is_no_json_lines_ends_after_a_few_lines_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# Title\n\n" + "Some prose.\n" * 150)
    done = ragtrace("score", path, "--out", tmp_path / "out.jsonl")
    said = done.stderr.decode().splitlines()
    assert (done.returncode, len(said)) == (2, 6)
    assert said[-1].startswith(
        f"ragtrace: {path} does not look like JSON lines: none of its first 5 lines is JSON; "
    )
    assert not (tmp_path / "out.jsonl").exists()


def test_many_broken_lines_are_counted_beyond_the_first_ten(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [record(1), *[{"query": 3}] * 40])
    done = ragtrace("score", path, "--metrics", "faithfulness")
    said = done.stderr.decode()
    assert done.returncode == 1
    assert said.count(": field 'query': expected `str | null`") == 10
    assert f"{path}: 30 more broken lines\n" in said
    assert "1 scored, 40 broken" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"query": "a", "answer": "b', "the line ends too early, at column 28"),
        ('{"query": "a", "answer"', "the line ends too early, at column 24"),
        ('{"query": "a",', "the line ends too early, at column 15"),
        ('{"query": tru}', "Expecting value at column 11"),
    ],
)
def test_a_truncated_line_is_told_at_its_end(tmp_path: Path, text: str, said: str) -> None:
    done = ragtrace("score", write(tmp_path / "in.jsonl", [text, record(2)]), "--metrics", "faithfulness")
    assert done.stderr.decode().splitlines()[0] == f"{tmp_path / 'in.jsonl'}:1: not JSON: {said}"


def test_a_model_s_name_as_judge_is_told_the_form_that_takes_a_model(tmp_path: Path) -> None:
    done = ragtrace("score", write(tmp_path / "in.jsonl", [record(1)]), "--judge", "gpt-4o")
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "ragtrace: unknown judge 'gpt-4o'; did you mean 'openai:gpt-4o'? Judges: openai:MODEL, overlap\n"
    )


def test_score_ends_with_the_three_worst_also_of_an_earlier_run(tmp_path: Path) -> None:
    bad = [record(i, id=f"bad{i}", answer="Nobody knows the penguins of Bergen.") for i in range(1, 6)]
    first = write(tmp_path / "first.jsonl", bad[:1])
    out = tmp_path / "out.jsonl"
    ragtrace("score", first, "--out", out, "--metrics", "faithfulness")
    path = write(tmp_path / "in.jsonl", [*bad, record(9, id="good")])
    done = ragtrace("score", path, "--out", out, "--resume", "--metrics", "faithfulness")
    said = done.stdout.decode().split("Worst by faithfulness:\n")[1].splitlines()
    assert [line.split()[1] for line in said[::2][:3]] == [str(out), f"{path}:2", f"{path}:3"]
    assert said[-1] == f"The whole answer: ragtrace show {out} --id bad1"
    assert len(said) == 7
