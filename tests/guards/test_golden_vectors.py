"""Golden vectors through `ragtrace score` and a judge's server: the numbers that other systems publish, and edges.

A vector whose number no command gives is computed by tests/golden: statistics, and set metrics of other parameters.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.guards.golden import replies
from tests.guards.golden.loading import COPY, Vector, edges, folder, na_reason, vectors
from tests.guards.judge_server import Answer, JudgeServer, completion, refusal
from tests.guards.scoring import Scored, score
from tests.guards.setting_up import judge_variables, judged_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.guards.judge_server import Request

TOLERANCE = 1e-9
# The vectors name no reasons here; ours say which of the two it was.
CITATION_REASONS = {"no_parts", "no_citations"}
# A vector fails within the process, without an error of a server.
OVER_HTTP = {"judge_error": "judge_unavailable"}
ERRORS = {"zero_embedding", "invalid_grade"}
DEFAULT_SET = {"alpha": 1.0, "cap4": 1.0, "cap3": 0.25, "harm_max": 2}
OF_TESTS_GOLDEN = {"bootstrap_mean_ci", "consistency_stats", "krippendorff_alpha", "rouge"}
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "golden"


def texts(ids: Sequence[str]) -> list[dict[str, str]]:
    return [{"id": one, "text": one} for one in ids]


def answered(inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a row of the fields that a vector has under one of their names; a null is a missing field."""
    contexts = replies.first(inputs, "contexts", "retrieved_contexts")
    row = {
        "query": replies.first(inputs, "query", "user_input"),
        "answer": replies.first(inputs, "answer", "response"),
        "reference": inputs.get("reference"),
        "contexts": None
        if contexts is None
        else [{"id": f"ctx-{n}", "text": it} for n, it in enumerate(contexts, 1)],
        **more,
    }
    return {name: value for name, value in row.items() if value is not None}


def cited(inputs: dict[str, Any]) -> dict[str, Any]:
    given = inputs.get("passages") or {}
    by_id = given if isinstance(given, dict) else {str(n): text for n, text in enumerate(given, start=1)}
    parts = [
        {"text": part["text"], "citations": [str(it) for it in part.get("citations") or ()]}
        for part in inputs.get("parts") or ()
    ]
    return {
        "query": inputs.get("query") or "q",
        "answer": " ".join(part["text"] for part in parts),
        "answer_parts": parts,
        "contexts": [{"id": name, "text": text} for name, text in by_id.items()],
    }


def precise(inputs: dict[str, Any]) -> dict[str, Any]:
    target = "reference" if inputs.get("mode") == "with_reference" else "answer"
    return answered(inputs) | {target: inputs.get("reference_or_answer") or ""}


def told(inputs: dict[str, Any]) -> dict[str, Any]:
    """Verdicts of nuggets are about no text."""
    return {"answer": "ans", "contexts": texts(["What the nuggets are made of."])} | answered(inputs)


def ranked(inputs: dict[str, Any]) -> dict[str, Any]:
    grades = {name: replies.GRADES[value] for name, value in inputs["labels"].items()}
    assert inputs.get("rel_threshold", 2) == 2, "the lowest grade that counts as relevant is no setting"
    labels = {"grades": grades, "scale": "umbrela_mapped"}
    return {"pool": texts(inputs["ranked"]), "labels": labels, "k": inputs["k"]}


def delivered(inputs: dict[str, Any]) -> dict[str, Any]:
    pool, topk = texts(inputs["pool"]), texts(inputs["topk"])
    return {"pool": pool, "contexts": topk, "labels": inputs["labels"], "k": inputs["k"]}


def graded(inputs: dict[str, Any]) -> dict[str, Any]:
    number = inputs["passages"]
    count = number if isinstance(number, int) else len(number)
    return answered(inputs) | {"pool": texts([f"d{place}" for place in range(count)])}


def compared(inputs: dict[str, Any]) -> dict[str, Any]:
    """Both sides; one without a vector is blank."""
    sides = {"answer": similar(inputs, "answer", "a")[0], "reference": similar(inputs, "reference", "b")[0]}
    return answered(inputs) | sides


def similar(inputs: dict[str, Any], name: str, short: str) -> tuple[str, list[float] | None]:
    row = replies.first(inputs, short, f"{name}_embedding")
    given = inputs.get(name)
    return ("" if row is None else name) if given is None else given, row


class Form(NamedTuple):
    """How the vectors of a metric are scored.

    Attributes:
        metrics: what the command computes.
        row: the line of a vector's inputs.
        reply: what the judge says.
        keys: the number's name in the scores, by its name in the vector; "" is a vector's only number.
        more: further options of the command.
        marks: texts that name the record, so that the judge's server knows it.
    """

    metrics: str
    row: Callable[[dict[str, Any]], dict[str, Any]]
    reply: Callable[[dict[str, Any], dict[str, Any]], Any]
    keys: dict[str, str]
    more: tuple[str, ...] = ()
    marks: tuple[str, ...] = ("query", "reference", "answer")


def keys(*names: str, of: str = "{}") -> dict[str, str]:
    return {name: of.format(name) for name in names}


FACTUAL = keys("precision", "recall", of="factual_correctness_{}") | {"f1": "factual_correctness"}
K = ("--k-values", "1,3,5")
FORMS: dict[str, Form] = {
    "faithfulness": Form("faithfulness", answered, replies.faithfulness, {"": "faithfulness"}),
    "answer_relevancy": Form("answer_relevancy", answered, replies.answer_relevancy, {"": "answer_relevancy"}),
    "citations": Form(
        "citations", cited, replies.citations, keys("precision", "recall", "f1", "precision_micro", of="citation_{}")
    ),
    "context_precision": Form("context_precision", precise, replies.context_precision, {"": "context_precision"}),
    "context_recall": Form("context_recall", answered, replies.context_recall, {"": "context_recall"}),
    "no_answer": Form("no_answer", answered, replies.no_answer, {"attempted": "answered"}, marks=("query",)),
    "rank_metrics": Form(
        "p_at_k,ap_at_k_retrieved,mrr,ndcg", ranked, replies.nothing,
        keys("p_at_k", "ap_at_k_retrieved", "mrr", "ndcg_at_k"),
    ),
    "set_metrics": Form(
        "ra_nwg,precision4,harm", delivered, replies.nothing,
        keys("ra_nwg", "proc", "pct_proc", "n_recall4", "n_recall5", "precision4", "harm", of="{}_at_k"),
    ),
    "umbrela": Form("p_at_k,ap_at_k_retrieved,mrr", graded, replies.grades, {"mrr": "mrr"}, K),
    "umbrela, its own scale": Form(
        "p_at_k,ap_at_k_retrieved,mrr", graded, replies.umbrela_grades, {"mrr": "mrr"}, (*K, "--grading", "umbrela")
    ),
    "nuggets": Form(
        "nuggets", told, replies.nuggets,
        keys("all", "vital", "weighted", "all_strict", "vital_strict", "weighted_strict", of="nuggets_{}"),
    ),
    "noise_sensitivity": Form(
        "noise_sensitivity", answered, replies.noise_sensitivity,
        keys("relevant", "irrelevant", "unattributed", of="noise_sensitivity_{}") | keys("incorrect_rate"),
    ),
    "factual_correctness": Form("factual_correctness", answered, replies.factual_correctness, FACTUAL),
    "factual_correctness_ore": Form(
        # These records bring no texts: the verdicts say what was found in them.
        "factual_correctness", lambda _: {"answer": "a", "reference": "r"}, replies.factual_correctness, FACTUAL,
    ),
    "context_entities_recall": Form(
        "context_entities_recall", answered, replies.context_entities_recall, {"": "context_entities_recall"}
    ),
    "semantic_similarity": Form("semantic_similarity", compared, replies.nothing, {"": "semantic_similarity"}),
}  # fmt: skip


def is_scored(vector: Vector) -> bool:
    """Whether a command gives the numbers of a vector; tests/golden computes the others."""
    metric, inputs = vector.record["metric"], vector.record["inputs"]
    if metric == "set_metrics":
        return DEFAULT_SET | (inputs.get("params") or {}) == DEFAULT_SET
    return metric in FORMS or metric.startswith("judge_aggregate")


class Judge:
    """A judge's server that knows by a mark in the texts which record it is asked about.

    Attributes:
        asked: how many requests there were about each mark.
    """

    def __init__(self, form: Form, records: dict[str, dict[str, Any]], server: JudgeServer) -> None:
        self.asked: Counter[str] = Counter()
        self._form, self._records = form, records
        self._rows = dict(row for record in records.values() for row in embeddings(record))
        server.always = self.answer

    def answer(self, request: Request) -> Answer:
        if "input" in request.body:
            return self._embedded(request.body["input"])
        text = request.body["messages"][-1]["content"]
        mark, data = mark_in(text), data_in(text)
        self.asked[mark] += 1
        record = self._records[mark]
        if replies.fails(record.get("judge_verdicts")):
            return refusal(400, "the golden vector is not answered")
        return Answer(200, completion(self._form.reply(record, data)))

    def _embedded(self, given: list[str]) -> Answer:
        rows = [{"index": place, "embedding": self._rows[text]} for place, text in enumerate(given)]
        return Answer(200, {"data": rows, "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def mark_in(text: str) -> str:
    found = re.search(r"vector-\d+", text)
    assert found is not None, text
    return found[0]


def data_in(text: str) -> dict[str, Any]:
    found = re.search(r"<data-(\d+)>\n(.*)\n</data-\1>", text, re.DOTALL)
    assert found is not None, text
    return dict(json.loads(found[2]))


def embeddings(record: dict[str, Any]) -> Iterator[tuple[str, list[float]]]:
    """Yield each text that is embedded for a record, with its vector."""
    row, inputs = record["row"], record["inputs"]
    if record["metric"] == "answer_relevancy":
        yield row["query"], inputs.get("query_embedding")
        for text, place in replies.questions(record):
            yield text, inputs["question_embeddings"][place]
    if record["metric"] == "semantic_similarity":
        for name, short in (("answer", "a"), ("reference", "b")):
            yield row[name], similar(inputs, name, short)[1] or []


def marked(row: dict[str, Any], mark: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a row whose texts name its mark; a text that is blank stays so."""
    row = {"query": "q"} | row
    return row | {name: f"{row[name]} ({mark})" for name in names if row.get(name, "").strip()}


def scored(
    folder: Path, form: Form, chosen: Sequence[Vector], server: JudgeServer
) -> tuple[Scored, Judge, list[dict[str, Any]]]:
    records = {}
    for number, vector in enumerate(chosen):
        mark = f"vector-{number}"
        row = marked(form.row(vector.record["inputs"]), mark, form.marks) | {"id": mark}
        records[mark] = vector.record | {"id": vector.name, "mark": mark, "row": row}
    judge = Judge(form, records, server)
    options = [*judged_by(server.url), "--metrics", form.metrics, *form.more]
    rows = [record["row"] for record in records.values()]
    return score(folder, rows, *options, variables=judge_variables()), judge, list(records.values())


def same(found: Any, expected: Any) -> bool:
    """Whether two numbers, lists or tables of them are equal, but for the tolerance that the vectors state."""
    if expected is None or isinstance(expected, str):
        return bool(found == expected)
    return bool(found == pytest.approx(expected, rel=0, abs=TOLERANCE))


def differences(record: dict[str, Any], score: dict[str, Any], expected: Any) -> Iterator[str]:
    """Yield what is not as a record says of one number."""
    name, value, state, reason = record["id"], score["value"], score["state"], score["reason"]
    if expected is not None:
        if state != "ok" or not same(value, expected):
            yield f"{name}: expected {expected}, got {value} ({state}, {reason})"
        return
    wanted = na_reason(record)
    if value is not None or state == "ok":
        yield f"{name}: expected no value, got {value} ({state})"
    if wanted is not None:
        wanted = OVER_HTTP.get(wanted, wanted)
        kind = "error" if wanted.startswith("judge_") or wanted in ERRORS else "na"
        if (reason, state) != (wanted, kind):
            yield f"{name}: expected {kind}, {wanted}, got {state}, {reason}"


def of_numbers(form: Form, record: dict[str, Any], scores: dict[str, Any]) -> Iterator[str]:
    expected = record["expected"]
    by_name = expected if isinstance(expected, dict) else {"": expected}
    for name, key in form.keys.items():
        if expected is None:
            yield from differences(record, scores[key], None)
        elif name in by_name and scores[key]["reason"] not in CITATION_REASONS:
            value = by_name[name]
            yield from differences(record, scores[key], float(value) if isinstance(value, bool) else value)
        elif by_name.get(name) is not None:
            yield f"{record['id']}: {key} has no value"


def of_details(record: dict[str, Any], scores: dict[str, Any], asked: int) -> Iterator[str]:
    """Yield what is not as a record says beside its numbers."""
    metric, expected = record["metric"], record["expected"] or {}
    told: dict[str, Any] = {}
    if metric == "citations":
        told = scores["citation_recall"]["details"]
        names = {"dangling", "dangling_rate", "cited_parts", "cited_part_rate", "parts"} & set(told)
    elif metric == "set_metrics":
        told = scores["ra_nwg_at_k"]["details"]
        names = set(expected) - set(FORMS[metric].keys) - {"na"}
    elif metric == "umbrela":
        told = scores["mrr"]["details"] | {"grades_1_5": scores["mrr"]["details"].get("grades")}
        names = {"grades_1_5"}
    elif metric == "context_precision" and scores[metric]["state"] != "error":
        told, expected, names = scores[metric]["details"], record["inputs"], {"mode"}
    elif metric == "no_answer":
        told, names = {"short_circuit": not asked}, {"short_circuit"}
    else:
        return
    for name in names & set(expected):
        if not same(told.get(name), expected[name]):
            yield f"{record['id']}: {name} is {told.get(name)}, expected {expected[name]}"


def at_each_k(record: dict[str, Any], scores: dict[str, Any]) -> Iterator[str]:
    expected = record["expected"]
    for name, by_k in (("p_at_k", expected["p_at"]), ("ap_at_k_retrieved", expected["ap_retrieved_at"])):
        for k, value in by_k.items():
            score = next(it for key, it in scores.items() if key.startswith(name) and it["k"] == int(k))
            yield from differences(record, score, value)


FOLDER = folder()
VECTORS = [*(vectors(FOLDER) if FOLDER.is_dir() else []), *edges()]


def of_metric(name: str) -> list[Vector]:
    return [vector for vector in VECTORS if vector.record["metric"] == name and is_scored(vector)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_vectors(tmp_path: Path, judge_server: JudgeServer, name: str) -> None:
    form, (metric, _, scale) = FORMS[name], name.partition(", ")
    chosen = of_metric(metric)
    assert chosen, f"{FOLDER} holds no vectors of {metric}"
    done, judge, records = scored(tmp_path, form, chosen, judge_server)
    assert done.status == 0, done.said
    wrong: list[str] = []
    for record in records:
        scores = done.scores[record["mark"]]
        wrong += of_numbers(form, record, scores)
        wrong += of_details(record, scores, judge.asked[record["mark"]])
        if metric == "umbrela" and record["expected"]:
            wrong += at_each_k(record, scores)
            scales = {score["label_scale"] for score in scores.values()}
            wrong += [] if scales == {"umbrela_mapped" if scale else "direct5"} else [f"{record['id']}: {scales}"]
    assert not wrong, "\n".join(wrong)


def panels() -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Vectors of panels by how many judges are asked how often."""
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for vector in VECTORS:
        if vector.record["metric"].startswith("judge_aggregate"):
            runs = runs_of(vector.record)
            (repeats,) = {len(row) for row in runs}
            found.setdefault((len(runs), repeats), []).append(vector.record)
    return found


def runs_of(record: dict[str, Any]) -> list[list[Any]]:
    runs: list[list[Any]] = record["judge_verdicts"]["runs_per_judge_0_means_failed"]
    return runs


class Panel:
    """Judges of one server, told apart by their models; each seed of a judge is a run, and a repair has its reply."""

    def __init__(self, records: Sequence[dict[str, Any]]) -> None:
        self._records = records
        self._seeds: dict[tuple[str, str], list[int]] = {}
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Answer:
        model, mark = request.body["model"], mark_in(request.body["messages"][-1]["content"])
        with self._lock:
            seeds = self._seeds.setdefault((mark, model), [])
            if request.body["seed"] not in seeds:
                seeds.append(request.body["seed"])
            run = seeds.index(request.body["seed"])
        said = runs_of(self._records[int(mark.removeprefix("vector-"))])[int(model)][run]
        if said == replies.EXCEPTION:
            return refusal(400, "the golden vector is not answered")
        return Answer(200, completion({"attempted": True, "reason": "", "grade": said}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judges", "repeats", "threshold"),
    [
        (*shape, threshold)
        for shape, records in panels().items()
        for threshold in (3, 4)
        if threshold == 3 or records[2:]
    ],
)
def test_panels(tmp_path: Path, judge_server: JudgeServer, judges: int, repeats: int, threshold: int) -> None:
    records = panels()[judges, repeats]
    judge_server.always = Panel(records).answer
    lab = {"query": "Where is the lab?", "answer": "In Oslo.", "contexts": texts(["The lab is in Oslo."])}
    rows = [marked(lab, f"vector-{number}", ("query",)) | {"id": str(number)} for number in range(len(records))]
    models = [str(number) for number in range(judges)]
    options = [*judged_by(judge_server.url, *models, repeats=repeats), "--metrics", "faithfulness_1to5"]
    done = score(tmp_path, rows, *options, variables=judge_variables(threshold_1to5=threshold))
    wrong = [
        f"{record.get('id')}: {it}"
        for number, record in enumerate(records)
        for it in of_a_panel(record, done.scores[str(number)], threshold)
    ]
    assert not wrong, "\n".join(wrong)


def of_a_panel(record: dict[str, Any], scores: dict[str, Any], threshold: int) -> Iterator[str]:
    expected = record["expected"]
    grade, share = scores["faithfulness_1to5"], scores["faithfulness_1to5_normalised"]
    if not (same(grade["value"], expected["score_1_5"]) and same(share["value"], expected["score_0_1"])):
        yield f"{grade['value']}, {share['value']}"
    if (grade["state"] == "error") != (expected["score_1_5"] is None):
        yield f"{grade['state']}, {grade['reason']}"
    # Without a score nothing passes; ours says neither.
    if {bool(grade["passed"]), bool(share["passed"])} != {expected[f"passed_{threshold}"]}:
        yield f"passed is {grade['passed']}, {share['passed']}"
    panel = grade["details"].get("panel")
    if panel is None:  # one judge that is asked once
        return
    for found, wanted in zip(panel["judges"], expected["per_judge"], strict=True):
        if not all(same(found[name], value) for name, value in wanted.items()):
            yield f"a judge is {found}, expected {wanted}"
    if grade["reason"] != na_reason(record):
        yield f"the reason is {grade['reason']}"
    if not same(panel["mean_abs_diff"], expected["mean_abs_diff"]):
        yield f"the mean difference is {panel['mean_abs_diff']}, expected {expected['mean_abs_diff']}"


def test_every_vector_is_computed() -> None:
    known = {*FORMS, *OF_TESTS_GOLDEN}
    strange = {
        vector.record["metric"] for vector in VECTORS if not vector.record["metric"].startswith("judge_aggregate")
    }
    assert strange <= known, f"nothing computes {strange - known}"


def test_the_copy_is_the_one_of_the_specification() -> None:
    if not SHARED.is_dir():
        pytest.skip("the specification's vectors in ../shared/golden are not on this machine")
    theirs = {path.name: path.read_bytes() for path in SHARED.glob("*.json")}
    assert theirs == {path.name: path.read_bytes() for path in COPY.glob("*.json")}
