"""`ragtrace investigate` over a store and over a scored file, and what it says where it cannot tell."""

from __future__ import annotations

import asyncio
import io
import json
import random
import time

import pytest

from ragtrace.cli import main
from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import Labels, Passage, Pool, record_to_json, score_to_json
from ragtrace.views import Views
from tests import make
from tests.ui.scored import client_of

HOUR = 3_600.0
LINES = 200


def values(*, falls):
    """Yield number, tag and score of the runs; in the later half those of the tag beta fall."""
    draw = random.Random(3)
    for n in range(LINES):
        tag = "beta" if n % 2 else "stable"
        mean = 0.4 if falls and tag == "beta" and n >= LINES // 2 else 0.9
        yield n, tag, min(max(draw.gauss(mean, 0.05), 0.0), 1.0)


def scored_file(tmp_path, *, falls=True, times=True):
    path = tmp_path / "scored.jsonl"
    lines = [
        {
            "id": f"q{n}", "query": f"How do I cancel order {n}?", "answer": "In Settings.", "tags": [tag],
            **({"started": 1_800_000_000.0 + 60 * n, "ended": 1_800_000_001.0 + 60 * n} if times else {}),
            "scores": {"faithfulness": {"state": "ok", "value": value, "version": "v", "judge": "overlap"}},
        }
        for n, tag, value in values(falls=falls)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def store(tmp_path):
    """Two days of runs with texts; the fall began a day ago."""
    return running_store(tmp_path, hours=48)


def running_store(tmp_path, *, hours, until=0.0):
    """Write a store with runs of some hours until some hours ago; the fall began in the middle."""
    path, now = tmp_path / "store.sqlite", time.time() - until * HOUR
    wall = [now]
    kept = make.store(path, has_content=True, payload_share=0.0, wall=lambda: wall[0])
    for n, tag, value in values(falls=True):
        wall[0] = now - (LINES - n) * hours * HOUR / LINES
        record = make.record(n=n + 1, query=f"How do I cancel order {n}?", answer="In Settings.", tags=(tag,))
        kept.emit(record, [make.score(record, "faithfulness", value, passed=value >= 0.8, at=wall[0])])
    kept.close()
    return path


def test_a_store_tells_what_fell_and_where_and_shows_examples(store, capsys):
    assert main(["investigate", str(store)]) == 0
    said = capsys.readouterr().out
    for part in ("faithfulness fell by 0.", "1. tag beta: all of the change", "How do I cancel order", "Next"):
        assert part in said
    trace = said.split(f"ragtrace show {store} ")[1].split()[0]
    assert main(["show", str(store), trace]) == 0


def test_the_setting_or_the_option_names_the_store(store, capsys, monkeypatch):
    assert main(["investigate", "--store", str(store), "--metric", "faithfulness", "--workflow", "rag"]) == 0
    monkeypatch.setenv("RAGTRACE_STORE", str(store))
    assert main(["investigate"]) == 0
    one, other = capsys.readouterr().out.split("What", 2)[1:]
    assert one.splitlines()[0] == other.splitlines()[0]


def test_json_holds_the_figures(store, capsys):
    assert main(["investigate", str(store), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["is_fallen"], found["changed_at"]) == (True, found["since"])
    [part] = found["explained"]["slices"]
    assert part["slice"] == {"dimension": "tag", "value": "beta"}
    assert part["explained"] == pytest.approx(found["explained"]["change"]["value"], abs=0.05)
    assert len(found["examples"]) == 3


@pytest.mark.parametrize("options", [[], ["--metric", "faithfulness"], ["--before", "23h"]])
@pytest.mark.parametrize("hours", [1, 26])
def test_a_young_store_is_split_at_its_surest_step(tmp_path, capsys, hours, options):
    if "--before" in options:
        hours = 1
    path, now = running_store(tmp_path, hours=hours), time.time()
    assert main(["investigate", str(path), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["is_fallen"], found["warnings"]) == (True, [])
    assert found["changed_at"] == pytest.approx(now - hours * HOUR / 2, abs=0.05 * hours * HOUR)
    assert client_of(path).get("/investigate").text.count("1. tag beta") == 1


def test_where_a_store_is_split_is_what_the_pages_say(tmp_path, capsys):
    path = running_store(tmp_path, hours=1)
    assert main(["investigate", str(path), "--json"]) == 0
    found, shown = json.loads(capsys.readouterr().out), Views.of_store(path).investigate()
    assert (found["metric"], found["changed_at"]) == (shown.metric, pytest.approx(shown.since))
    assert [it["trace_id"] for it in found["examples"]] == [*shown.example_ids]


def test_a_store_is_split_where_it_is_told(tmp_path, capsys):
    path = running_store(tmp_path, hours=1)
    assert main(["investigate", str(path), "--since", "29m", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changed_at"] == pytest.approx(time.time() - 29 * 60.0, abs=60.0)
    assert found["explained"]["change"]["window"]["n"] == pytest.approx(LINES * 29 / 60, abs=3)


def test_a_store_that_got_no_run_for_a_day_is_looked_at_until_its_last_run(tmp_path, capsys):
    path = running_store(tmp_path, hours=72, until=25.0)
    assert main(["investigate", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changed_at"] == pytest.approx(time.time() - 61 * HOUR, abs=3 * HOUR)


FEW = "scores are too few: 20 of different sessions or questions are needed in the window and before it"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--since", "24h"], f"faithfulness: 200 {FEW}; choose another --since, or wait"),
        (["--before", "6m"], f"{FEW}; take longer periods, or wait"),
        (["--until", "2d"], "faithfulness: there is no score in this time; choose other times"),
        (["--before", "2d", "--until", "2d"], "each must lie before the next"),
    ],
)
def test_a_store_that_cannot_be_split_says_why(tmp_path, capsys, options, said):
    path = running_store(tmp_path, hours=1)
    assert main(["investigate", str(path), *options]) == 2
    shown = capsys.readouterr()
    assert (shown.out, said in shown.err) == ("", True)


def test_a_file_is_split_at_its_surest_step(tmp_path, capsys):
    path = scored_file(tmp_path)
    assert main(["investigate", str(path)]) == 0
    said = capsys.readouterr().out
    assert "tag beta" in said
    assert "about 2027-01-15 09:4" in said  # line 101 of 200
    record = said.split(f"ragtrace show {path} --id ")[1].split()[0]
    assert record.startswith("q")
    assert main(["show", str(path), "--id", record]) == 0


def test_a_file_on_standard_input_is_read_once(tmp_path, capsys, monkeypatch):
    scored = scored_file(tmp_path).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(scored))))
    assert main(["investigate", "-"]) == 0
    said = capsys.readouterr().out
    assert "tag beta" in said
    assert "ragtrace show FILE --id q" in said


def test_a_broken_line_is_told_once(tmp_path, capsys):
    path = scored_file(tmp_path)
    path.write_text("{oops\n" + path.read_text())
    assert main(["investigate", str(path)]) == 0
    assert capsys.readouterr().err.count("scored.jsonl:1: not JSON") == 1


def test_a_file_is_split_where_it_is_told(tmp_path, capsys):
    path = scored_file(tmp_path)
    assert main(["investigate", str(path), "--since", "100m", "--before", "1d"]) == 0
    said = capsys.readouterr().out
    assert said.count("100 scores)") == 2
    assert "tag beta" in said


def test_where_nothing_fell_it_says_so_with_the_largest_movement_and_has_answered(tmp_path, capsys):
    path = scored_file(tmp_path, falls=False)
    assert main(["investigate", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "What      faithfulness: nothing is shown to have fallen"
    assert said[1].startswith("          faithfulness moved most, by -0.030 (")
    assert said[1].endswith("; this may be chance")
    assert len(said) == 4
    assert main(["investigate", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["is_fallen"], found["changed_at"], found["verdict"], found["replaced"]) == (False, None, None, [])
    assert 1_800_000_000.0 < found["since"] < found["until"]


def steady_store(tmp_path):
    path, now = tmp_path / "store.sqlite", time.time()
    kept = make.store(path)
    for n, tag, value in values(falls=False):
        record = make.record(n=n + 1, tags=(tag,), ended=now - (LINES - n) * 600.0)
        kept.emit(record, [make.score(record, "faithfulness", value, at=now)])
    kept.close()
    return path


@pytest.mark.parametrize("kind", ["store", "file"])
@pytest.mark.parametrize(
    ("state", "options", "usual", "checked"),
    [
        ("fell", [], 0, 3),
        ("stayed", [], 0, 0),
        ("fell", ["--before", "BEFORE"], 2, 4),
        ("fell", ["--metric", "mrr"], 2, 2),
    ],
)
def test_the_status_of_a_check_tells_what_fell_what_stayed_and_what_nobody_can_tell(
    tmp_path, capsys, kind, state, options, usual, checked
):
    path = {
        ("store", "fell"): lambda: running_store(tmp_path, hours=48),
        ("store", "stayed"): lambda: steady_store(tmp_path),
        ("file", "fell"): lambda: scored_file(tmp_path),
        ("file", "stayed"): lambda: scored_file(tmp_path, falls=False),
    }[kind, state]()
    few = "8h" if kind == "store" else "33m"
    given = ["investigate", str(path), *(few if it == "BEFORE" else it for it in options)]
    assert main(given) == usual
    said = capsys.readouterr()
    assert main([*given, "--check"]) == checked
    again = capsys.readouterr()
    if checked == 4:
        assert (said.out, again.err) == ("", "")
        assert said.err.endswith(again.out)
        assert FEW in again.out
    else:
        assert (again.out, again.err) == (said.out, said.err)
        assert main([*given, "--check", "--json"]) == checked


def test_too_few_scores_of_one_metric_are_told_whatever_metric_has_none(tmp_path, capsys):
    """The other metric was scored before the time that is looked at."""
    path, now = tmp_path / "store.sqlite", time.time()
    kept = make.store(path)
    for n in range(1, 61):
        is_old = n <= 30
        record = make.record(n=n, ended=now - (40 * 86_400.0 if is_old else 60.0 * (61 - n)))
        metric = "invented_specifics" if is_old else "faithfulness"
        kept.emit(record, [make.score(record, metric, 0.5, at=now)])
    kept.close()
    assert main(["investigate", str(path), "--check"]) == 4
    assert "faithfulness: 30 scores are too few" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--metric", "mrr"], "or a metric that has scores: faithfulness"),
        (["--workflow", "nobody"], "no record is of this --workflow"),
        (["--since", "10m"], "in the window and before it; choose another --since, or wait"),
        (["--since", "1h", "--before", "30m"], "each must lie before the next"),
        (["--since", "yesterday"], "is not a moment"),
    ],
)
def test_wrong_and_too_few_are_one_line(tmp_path, capsys, options, said):
    assert main(["investigate", str(scored_file(tmp_path)), *options]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_file_without_times_cannot_be_split(tmp_path, capsys):
    assert main(["investigate", str(scored_file(tmp_path, times=False))]) == 2
    assert "no times" in capsys.readouterr().err


def labelled(n, id_of_passage):
    passage = Passage(id=id_of_passage(n), text=f"Order {n} is cancelled in Settings.", rank=1)
    return make.record(
        n=n + 1, query=f"How do I cancel order {n}?", answer=passage.text, labels=Labels(grades={f"doc-{n}": 5}),
        pools=(Pool(stage="retrieved", passages=(passage,)),), started=1e9 + 60 * n, ended=1e9 + 60 * n,
    )  # fmt: skip


def really_scored(record):
    context = EvalContext(record, judge=OverlapJudge())
    return asyncio.run(evaluate(select(["faithfulness", "diagnosis"]), context))


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_file_whose_labels_match_no_passage_says_so(tmp_path, capsys, is_seen):
    path = tmp_path / "scored.jsonl"
    records = [labelled(n, lambda n: f"doc-{n}" if is_seen and n == 70 else f"{n}#0") for n in range(80)]
    path.write_text(
        "".join(
            json.dumps({**record_to_json(it), "scores": {r.key: score_to_json(r) for r in really_scored(it)}})
            + "\n"
            for it in records
        )
    )
    assert main(["investigate", str(path), "--metric", "faithfulness", "--since", "40m", "--json"]) == 0
    out, told = capsys.readouterr()
    found = json.loads(out)
    assert found["shares"]
    assert told == "".join(f"ragtrace: warning: {one}\n" for one in found["warnings"])
    said = "no label id was ever seen in a pool (80 labelled runs)"
    assert [one.partition(":")[0] for one in found["warnings"]] == ([] if is_seen else [said])
    assert main(["investigate", str(path), "--workflow", "nobody"]) == 2
    assert "warning" not in capsys.readouterr().err


def test_two_stores_are_refused(store, capsys):
    assert main(["investigate", str(store), "--store", str(store)]) == 2
    assert "give the store once" in capsys.readouterr().err


def inventing_file(tmp_path):
    """Half-way the app begins to invent numbers in every other answer; the mean of faithfulness stays as it is.

    The lowest scores of faithfulness are those of another fault, which is as frequent before as after.
    """
    path, draw, lines = tmp_path / "scored.jsonl", random.Random(5), []
    for n in range(2 * LINES):
        tag = "app" if n % 2 else "web"
        is_inventing, is_lost = tag == "app" and n >= LINES and n % 4 == 1, n % 10 == 4
        value = 0.1 if is_lost else min(max(draw.gauss(0.85, 0.05), 0.0), 1.0)
        verdict = "lost_in_rerank" if is_lost else "unsupported" if is_inventing else "ok"
        details = {"verdict": verdict, "claims": [], "invented": [f"{n} euros"] if is_inventing else []}
        scores = {
            "faithfulness": (value, {}),
            "invented_specifics": (float(is_inventing), {"invented": details["invented"]}),
            "diagnosis": (float(verdict == "ok"), details),
        }
        lines.append({
            "id": f"q{n}", "query": f"How do I cancel order {n}?", "answer": f"Pay {n} euros.", "tags": [tag],
            "ended": 1_800_000_000.0 + 60 * n,
            "scores": {
                name: {"state": "ok", "value": it, "version": "v", "judge": "overlap", "details": more}
                for name, (it, more) in scores.items()
            },
        })  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("metric", [[], ["--metric", "invented_specifics"]])
def test_a_rise_of_inventions_is_explained_by_the_runs_that_rose(tmp_path, capsys, metric):
    path = inventing_file(tmp_path)
    assert main(["investigate", str(path), *metric]) == 0
    said = capsys.readouterr().out
    assert "invented_specifics rose, and lower is better, by" in said
    assert "the model: unsupported grew from" in said
    assert "1. tag app: all of the change" in said
    examples = said.partition("Examples")[2].partition("Next")[0].splitlines()
    assert [line.split()[0] for line in examples[0::3]] == ["1.00"] * 3
    assert [line.split()[-1] for line in examples[0::3]] == ["unsupported"] * 3
    assert all(line.strip().startswith("invented: ") for line in examples[2::3])


def test_the_page_shows_the_same_metric_and_the_same_examples(tmp_path, capsys):
    path = inventing_file(tmp_path)
    views = Views.of_file(path)
    found = views.investigate()
    assert (found.metric, found.verdict, found.is_fallen) == ("invented_specifics", "unsupported", True)
    shown = views.lines(found.example_ids, found.metric)
    assert [(it.value, it.verdict, it.claim.partition(":")[0]) for it in shown] == [
        (1.0, "unsupported", "invented")
    ] * 3
    assert main(["investigate", str(path)]) == 0
    said = capsys.readouterr().out
    assert all(it.query in said and it.claim in said for it in shown)
    client = client_of(path)
    html = client.get("/investigate").text
    assert all(it.query in html for it in shown)
    assert "verdict=unsupported" in client.get("/").text, "the worst of these runs are those of the verdict"
