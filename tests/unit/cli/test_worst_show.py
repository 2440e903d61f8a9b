"""`ragtrace worst` and `ragtrace show` over a scored file and over a store, and the texts of an export."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ragtrace.cli import main
from ragtrace.model import Passage, Pool, record_from_json
from tests import make

TRACES = ["a1" * 16, "b2" * 16, "c3" * 16]
VALUES = [0.2, 1.0, 0.6]
FEE = "A fee of 40 euros applies."


def score(value, metric="faithfulness", **fields):
    claims = (
        [{"text": FEE, "verdict": "contradicted", "support": 0.0, "reason": "40 is nowhere"}] if value < 1 else []
    )
    details = {"claims": [{"text": "Cancel.", "verdict": "supported", "support": 1.0}, *claims]}
    return {"state": "ok", "value": value, "passed": value >= 0.8, "details": details, "judge": "overlap", **fields}


@pytest.fixture
def scored(tmp_path):
    """Three scored lines, as `ragtrace score` writes them."""
    path = tmp_path / "scored.jsonl"
    lines = [
        {
            "id": f"q{i}",
            "query": f"How do I cancel? {i}",
            "answer": f"Cancel.\n{FEE}",
            "pool": [{"id": "p1", "text": "In Settings.", "score": 0.9}, {"id": "p2", "text": "We are\nin Oslo."}],
            "selection": [{"id": "p2", "text": "We are\nin Oslo."}],
            "contexts": ["We are\nin Oslo."],
            "scores": {
                "mrr": score(1.0),
                "faithfulness": score(value),
                "nuggets": {"state": "na", "reason": "no_claims"},
            },
        }
        for i, value in enumerate(VALUES, start=1)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def store(tmp_path):
    """Three traces in a store that keeps texts; the second one is good, and so its texts are gone."""
    path = tmp_path / "store.sqlite"
    kept = make.store(path, has_content=True, payload_share=0.0)
    for trace, value in zip(TRACES, VALUES, strict=True):
        found = Passage(id="p1", text="In Settings.", rank=1, score=0.9)
        pools = (Pool(stage="retrieved", passages=(found,)), Pool(stage="used", passages=(found,)))
        record = make.record(
            id=trace, trace_id=trace, query="How do I cancel?", answer=f"Cancel. {FEE}", pools=pools
        )
        given = score(value)
        named = {name: given[name] for name in ("state", "value", "passed", "details")}
        kept.emit(record, [make.score(record, **named)])
    kept.close()
    return path


@pytest.fixture
def shown(capsys):
    def run(*args, status=0):
        assert main([str(arg) for arg in args]) == status
        out = capsys.readouterr()
        return out.out if status == 0 else out.err

    return run


def test_the_worst_lines_of_a_file(scored, shown):
    assert shown("worst", scored).splitlines() == [
        "2 worst of 3 answers by faithfulness (higher is better); left out: 1 with the best value",
        "",
        f"0.20  {scored}:1  How do I cancel? 1",
        f"      contradicted (0.00): {FEE}",
        f"0.60  {scored}:3  How do I cancel? 3",
        f"      contradicted (0.00): {FEE}",
        "",
        f"The whole answer: ragtrace show {scored} 1",
    ]
    one = shown("worst", scored, "-n", "1")
    assert "0.60" not in one
    assert "left out" not in one, "it is one of the two worst that -n leaves out"
    assert shown("worst", scored, "--metric", "mrr") == "Each of 3 answers has the best mrr.\n"


def test_one_answer_with_the_best_score_is_the_only_one(scored, shown):
    scored.write_text(scored.read_text().splitlines()[0] + "\n")
    assert shown("worst", scored, "--metric", "mrr") == "The only answer has the best mrr.\n"


def test_a_store_without_a_run_speaks_of_the_sample(tmp_path, shown):
    path = tmp_path / "empty.sqlite"
    make.store(path).close()
    said = shown("worst", path, status=2)
    assert "no answer has a score of faithfulness; no run is scored yet, and a low sample_rate leaves" in said


def test_a_store_without_a_value_says_why(tmp_path, shown):
    path = tmp_path / "foreign.sqlite"
    kept = make.store(path)
    record = make.record(id=TRACES[0], trace_id=TRACES[0])
    kept.emit(record, [make.score(record, state="na", reason="unsupported_language")])
    kept.close()
    said = shown("worst", path, status=2)
    assert "no answer has a score of faithfulness (unsupported_language in 1 answer); choose another" in said


def test_the_worst_traces_of_a_store(store, shown, monkeypatch):
    lines = shown("worst", store).splitlines()
    assert lines[2:4] == [f"0.20  trace {TRACES[0]}  How do I cancel?", f"      contradicted (0.00): {FEE}"]
    monkeypatch.setenv("RAGTRACE_STORE", str(store))
    assert shown("worst").splitlines()[:4] == lines[:4]


def test_the_answers_that_people_rated_worst(store, shown, tmp_path):
    rated = [(TRACES[0], "ada", 1.0), (TRACES[1], "ada", 0.0), (TRACES[1], "bo", 0.5), (TRACES[2], "bo", 0.75)]
    unscored = "d4" * 16
    labels = tmp_path / "labels.jsonl"
    labels.write_text(
        "".join(
            json.dumps({"trace_id": trace, "rater": rater, "value": value}) + "\n"
            for trace, rater, value in [*rated, (unscored, "ada", 0.5)]
        )
    )
    assert main(["feedback", str(labels), "--store", str(store)]) == 0
    shown("worst", store)  # empties what was printed
    assert shown("worst", store, "--metric", "feedback").splitlines() == [
        "3 worst of 4 answers by people's ratings (feedback, higher is better); left out: 1 with the best value",
        "",
        f"0.25  trace {TRACES[1]}  (no texts were kept)",
        f"0.50  trace {unscored}  (no texts were kept)",
        f"0.75  trace {TRACES[2]}  How do I cancel?",
        f"      contradicted (0.00): {FEE}",
        "",
        f"The whole answer: ragtrace show {store} {TRACES[1]}",
    ]
    assert "feedback" in shown("show", store, unscored)


@pytest.mark.parametrize("content", ["full", "none"])
def test_show_lists_each_rating_with_its_rater_and_comment(store, shown, tmp_path, monkeypatch, content):
    monkeypatch.setenv("RAGTRACE_CONTENT", content)
    labels = tmp_path / "labels.jsonl"
    rated = [
        {"rater": "Ann", "value": 0.0, "comment": "The fee\nis " + "wrong " * 40},
        {"rater": "Bob", "value": 0.2},
        {"value": 0.5, "comment": "Too short."},
        {"rater": "Ann", "metric": "correctness", "value": 1.0},
    ]
    labels.write_text("".join(json.dumps({"trace_id": TRACES[0], **one}) + "\n" for one in rated))
    assert main(["feedback", str(labels), "--store", str(store)]) == 0
    shown("worst", store)  # empties what was printed
    assert f"0.23  trace {TRACES[0]}" in shown("worst", store, "--metric", "feedback")
    lines = shown("show", store, TRACES[0]).splitlines()
    of_ann = ["      The fee is " + " ".join(["wrong"] * 17), "      " + " ".join(["wrong"] * 19)]
    of_ann.append("      " + " ".join(["wrong"] * 4))
    kept = content == "full"
    assert lines[lines.index("Scores") + 1 :] == [
        "  faithfulness    0.200  LOW",
        "  correctness     1.000        rater Ann",
        "  feedback        0.000        rater Ann",
        *(of_ann if kept else []),
        "  feedback        0.200        rater Bob",
        "  feedback        0.500        a person",
        *(["      Too short."] if kept else []),
    ]


def test_ratings_of_a_metric_rank_where_no_judge_scored_it(store, shown, tmp_path):
    rated = [(TRACES[0], "hallucination", 1.0), (TRACES[1], "hallucination", 0.0), (TRACES[1], "faithfulness", 0.0)]
    labels = tmp_path / "labels.jsonl"
    labels.write_text(
        "".join(
            json.dumps({"trace_id": trace, "metric": metric, "value": value}) + "\n"
            for trace, metric, value in rated
        )
    )
    assert main(["feedback", str(labels), "--store", str(store)]) == 0
    text = shown("worst", store, "--metric", "hallucination")
    assert "1 worst of 2 answers by people's ratings (hallucination, higher is better)" in text
    assert f"0.00  trace {TRACES[1]}" in text
    assert "2 worst of 3 answers by faithfulness" in shown("worst", store, "--metric", "faithfulness")


def test_one_answer_of_a_file_whole(scored, shown):
    text = shown("show", scored, "1")
    assert text.splitlines() == [
        f"{scored}:1  id q1  workflow rag",
        "",
        "Question",
        "  How do I cancel? 1",
        "",
        "Passages: 2 retrieved, 1 selected, 1 in the prompt",
        "      rank  selected    prompt    score  id  text",
        "         1         -         -      0.9  p1  In Settings.",
        "         2         1         1           p2  We are in Oslo.",
        "",
        "Answer",
        "  Cancel.",
        f"  {FEE} [bad claim 1]",
        "",
        "Bad claims",
        f"  1. contradicted (0.00): {FEE}",
        "     40 is nowhere",
        "",
        "Scores",
        "  mrr             1.000        overlap",
        "  faithfulness    0.200  LOW   overlap",
        "  nuggets       na: no_claims",
    ]
    assert shown("show", scored, "q1") == text == shown("show", scored, "--id", "q1")


def test_texts_of_tools_are_listed_below_the_passages(tmp_path, shown):
    told = [{"id": "t1", "text": "The fee is\n9 euros.", "source": "fees"}, {"id": "t2", "text": "Open."}]
    pool = [{"id": "p1", "text": "In Settings.", "score": 0.9}]
    lines = [
        {"query": "?", "answer": "!", "unranked_contexts": told, "scores": {}, **own}
        for own in ({"pool": pool}, {})
    ]
    path = tmp_path / "told.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    block = [
        "Texts of tools, without rank: 2",
        "  tool  id  text",
        "  fees  t1  The fee is 9 euros.",
        "        t2  Open.",
    ]
    first, second = (shown("show", path, number).split("\n\n") for number in ("1", "2"))
    assert first[2].splitlines()[0] == "Passages: 1 retrieved"
    assert "t1" not in first[2]
    assert first[3].splitlines() == second[2].splitlines() == block
    assert "        The fee is" in shown("show", path, "1", "--full")


READING = {
    "question": {"place": "input.body", "how": "guess"},
    "answers": [{"place": "output"}],
    "sources": [{"name": "faq", "kind": "search", "passages": 2, "chosen": 2, "shown": 0}],
    "signs": [{"name": "question_guessed", "about": "input.body", "text": "How\nso?", "declare": "question=..."}],
}


def test_what_capture_read_of_an_answer(scored, shown):
    first, *others = scored.read_text().splitlines()
    scored.write_text("\n".join([json.dumps(json.loads(first) | {"reading": READING}), *others]) + "\n")
    lines = shown("show", scored, "1").splitlines()
    sentence = "the question stands under a name that says nothing of it"
    assert lines[lines.index("Read") + 1 : lines.index("Bad claims") - 1] == [
        "  question from input.body (guess); answer from output",
        "  evidence: 2 passages of retriever `faq` (0 in the prompt)",
        rf'  unsure: question_guessed: {sentence} (input.body) "How\nso?".  Declare: question=...',
    ]
    assert "Read" not in shown("show", scored, "2").splitlines()


def test_what_capture_read_of_a_trace_whose_texts_are_gone(tmp_path, shown):
    path = tmp_path / "bare.sqlite"
    kept = make.store(path)
    record = replace(record_from_json({"reading": READING}, fallback_id="1"), trace_id=TRACES[0], span_id="s" * 16)
    kept.emit(record, [make.score(record)])
    kept.close()
    lines = shown("show", path, TRACES[0]).splitlines()
    (unsure,) = (line for line in lines if "unsure" in line)
    assert unsure.endswith("(input.body).  Declare: question=...")


@pytest.fixture
def signed(scored):
    """Give the first and the second line a reading, the first with a sign."""
    lines = [json.loads(line) for line in scored.read_text().splitlines()]
    lines[0]["reading"], lines[1]["reading"] = READING, {**READING, "signs": []}
    scored.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return scored


@pytest.mark.parametrize(
    ("sign", "said"), [("any", " with a sign"), ("question_guessed", " with the sign question_guessed")]
)
def test_the_worst_of_those_with_a_sign(signed, store, shown, sign, said):
    lines = shown("worst", signed, "--sign", sign).splitlines()
    assert lines[0] == f"1 worst of 1 answer{said} by faithfulness (higher is better)"
    assert lines[2].startswith(f"0.20  {signed}:1 ")
    kept = make.store(store, has_content=True)
    record = replace(record_from_json({"reading": READING}, fallback_id="1"), trace_id="d4" * 16, span_id="s" * 16)
    kept.emit(record, [make.score(record, value=0.4)])
    kept.close()
    lines = shown("worst", store, "--sign", sign).splitlines()
    assert lines[0] == f"1 worst of 1 answer{said} by faithfulness (higher is better)"
    assert lines[2].startswith(f"0.40  trace {'d4' * 16}")


def test_no_answer_with_a_sign_is_no_error(signed, store, shown):
    none = "No answer with the sign tool_unused has a score of faithfulness.\n"
    assert [shown("worst", source, "--sign", "tool_unused") for source in (signed, store)] == [none] * 2


def test_one_trace_of_a_store_by_its_first_digits(store, shown):
    text = shown("show", store, "a1a1a1")
    assert text.startswith(f"trace {TRACES[0]}  workflow rag\n")
    assert f"  Cancel. {FEE} [bad claim 1]\n" in text
    gone = shown("show", store, TRACES[1])
    assert "none are kept: with content=full the store keeps low runs" in gone
    assert "faithfulness    1.000" in gone


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("worst",), "give a file that `ragtrace score` wrote, or a store, or set RAGTRACE_STORE"),
        (("worst", "gone.jsonl"), "gone.jsonl: there is no such file; check the path"),
        (("worst", "PLAIN"), "PLAIN:1: no scores here; score the file first: ragtrace score FILE --out SCORED"),
        (("worst", "SCORED", "--metric", "none"), "SCORED: no answer has a score of none; choose another --metric"),
        (
            ("worst", "SCORED", "--sign", "question_gessed"),
            "--sign question_gessed: there is no such sign; did you mean 'question_guessed'?",
        ),
        (("show", "SCORED"), "show: name one answer by its line, id or trace id: ragtrace show SCORED 1"),
        (
            ("show", "SCORED", "9"),
            "SCORED: there is no good line 9, the last is 3; for a record of that id: --id 9",
        ),
        (("show", "SCORED", "q9"), "SCORED: there is no record q9"),
        (("show", "STORE", "a1"), "a1: give a trace id, or at least 6 of its first digits"),
        (("show", "STORE", "ffffff"), "ffffff: no such trace in the store; `ragtrace worst STORE` lists some"),
    ],
)
def test_what_is_wrong_is_one_line(scored, store, shown, tmp_path, args, said):
    plain = tmp_path / "plain.jsonl"
    plain.write_text('{"query": "Where?"}\n')
    names = {"SCORED": str(scored), "STORE": str(store), "PLAIN": str(plain)}
    expected = (
        said.replace("SCORED: ", f"{scored}: ").replace("SCORED 1", f"{scored} 1").replace("PLAIN", str(plain))
    )
    assert shown(*(names.get(arg, arg) for arg in args), status=2) == f"ragtrace: {expected}\n"


def test_an_export_brings_the_texts_that_were_kept(store, shown):
    rows = {
        row["trace_id"]: row
        for row in map(json.loads, shown("export", "--store", store, "--out", "-").splitlines())
    }
    low, good = rows[TRACES[0]], rows[TRACES[1]]
    assert (low["query"], low["answer"]) == ("How do I cancel?", f"Cancel. {FEE}")
    assert low["contexts"] == [{"id": "p1", "text": "In Settings."}]
    assert (good["query"], good["answer"], good["contexts"]) == (None, None, None)
    bare = map(json.loads, shown("export", "--store", store, "--out", "-", "--no-texts").splitlines())
    assert {row["query"] for row in bare} == {None}
