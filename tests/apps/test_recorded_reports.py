"""What an application reports by hand is in the file of events, and makes the same run again."""

from __future__ import annotations

import inspect
import json
import random
import re

import pytest

from ragtrace.capture.masks import Masker
from ragtrace.capture.recorded import head
from ragtrace.capture.reported import REPORTS, Reported
from ragtrace.capture.run import Run
from ragtrace.cli.main import main
from ragtrace.model import Message
from tests.apps.langgraph_apps import CorrectiveRag
from tests.apps.test_recorded import lines, recorded, replay, told, words_of

LEFT_OUT = {"add_metadata", "feedback"}  # metadata of a request, and what a person said of an answer
OUT_OF_MODEL = {
    "answer": "Pack it within thirty days [1].",
    "question": "How long may I send it back?",
}
PASSAGES = [
    {"id": "faq-7", "text": "Pack it within thirty days of delivery.", "score": 0.9, "metadata": {"page": "seven"}},
    {"id": "faq-9", "text": "Shipping to islands costs eleven.", "score": 0.4},
]


class ByHand:
    """An application of plain functions that reports all that can be reported."""

    def capturing(self, way, recorder):
        return recorder.start(
            query=OUT_OF_MODEL["question"], user="zebedee", session="monday", corpus="handbook", tags=("beta",)
        )

    def run(self, form, run):
        run.set_history([Message(role="user", content="Hello"), Message(role="assistant", content="Good morning")])
        run.add_metadata({"tenant": "acme"})
        run.retrieved(PASSAGES, source="handbook", top_k=20, key="hop", query="return period")
        run.retrieved(PASSAGES[:1], parent_key="hop")
        run.reranked(PASSAGES[:1], model="shortest", top_n=1)
        run.label_passages({"1": "faq-7"})
        run.add_prompt(f"[1] {PASSAGES[0]['text']} Answer the customer.")
        run.used(PASSAGES[:1])
        run.tool_called("clock", arguments={"zone": "Oslo"}, result="noon", call_id="c1")
        run.generated(
            model="gpt-small",
            inputs=[Message(role="user", content="Answer the customer.")],
            outputs=[Message(role="assistant", content=OUT_OF_MODEL["answer"])],
            finish_reasons=["stop"],
            request={"temperature": 0.5},
        )
        run.answered(
            OUT_OF_MODEL["answer"],
            model="gpt-small",
            usage={"prompt_tokens": 120, "completion_tokens": 9},
            parts=[{"text": OUT_OF_MODEL["answer"], "citations": ["faq-7"]}],
        )
        run.reference("Thirty days.")
        run.labels({"faq-7": 5, "faq-9": 1}, label_scope="gold", version="march")
        run.set_k(3)
        run.feedback(1.0, "Splendid")


class Failing(ByHand):
    """One whose search fails, and that has no answer to give."""

    def run(self, form, run):
        run.retrieved(None, error=TimeoutError("the index is away"))
        run.answered(object())
        run.failed(ValueError("no answer was made"))


@pytest.mark.parametrize("kind", [ByHand, Failing])
@pytest.mark.parametrize("is_masked", [False, True], ids=["plain", "masked"])
def test_a_file_makes_the_same_run_again(kind, is_masked, caplog):
    kept, runs = recorded(kind, "ask", "query")
    written = lines(runs, Masker() if is_masked else None)
    (before,), (after,) = kept.runs, replay(written)
    assert told([after]) == told([before])
    assert after.record.labels and before.record.labels if kind is ByHand else after.record.labels is None
    for one in (before, after):
        assert (one.record.k, one.record.usage and one.record.usage.input_tokens) == (
            (3, 120) if kind is ByHand else (None, None)
        )
    if kind is ByHand:
        graded = [
            [one.record.labels.grades.get(passage.id) for passage in one.record.pool("retrieved")]
            for one in (before, after)
        ]
        assert graded == [[5, 1], [5, 1]]
    if not is_masked:
        assert after.steps == before.steps


def test_a_file_holds_no_person_and_no_word_that_is_masked():
    _, runs = recorded(ByHand, "ask", "query")
    plain, masked = lines(runs, None), lines(runs, Masker())
    assert words_of(plain) & words_of(masked) == set()
    for written in (b"".join(plain), b"".join(masked)):
        assert not any(word in written for word in (b"zebedee", b"monday", b"acme", b"Splendid"))


def test_each_report_is_recorded_or_left_out_by_name():
    assert set(re.findall(r"self\._tell\(\s*\"(\w+)\"", inspect.getsource(Run))) == REPORTS
    assert LEFT_OUT < REPORTS
    assert all(callable(getattr(Reported, name)) for name in REPORTS)


ODD = [
    None, True, -1, 10**30, float("inf"), "\x1b[31mred\nline\u2028", "", [], {}, [[1]], {"a": 1}, {"again": 0},
    {"again": -1}, {"again": 10**9}, {"int": "f" * 9_000}, {"decimal": "NaN"}, {"dict": [["a", 1]]}, {"tuple": []},
    {"Doc": {"text": "x"}}, {"Turn": {"role": "user"}}, {"redacted": ["a", 1, 1, 1]}, {"date": "x"}, "\ud800",
]  # fmt: skip


GONE = object()


def places(value, at=()):
    """Yield the place of each part of a line."""
    yield at
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*at, key))


def changed(line, at, odd):
    """Return a line with another part at a place, or with none."""
    value = {"line": json.loads(line)}
    held, (*path, last) = value, ("line", *at)
    for key in path:
        held = held[key]
    if odd is GONE:
        del held[last]
    else:
        held[last] = odd
    return json.dumps(value.get("line")).encode() + b"\n"


@pytest.mark.parametrize("kind", [ByHand, CorrectiveRag], ids=["by hand", "a graph"])
def test_a_changed_line_is_one_line_of_error_or_none(kind, tmp_path, capsys):
    way = "query" if kind is ByHand else next(way for way in kind.captures if way != "none")
    whole = lines(recorded(kind, "ask", way)[1], None)
    path, rng = tmp_path / "events.jsonl", random.Random(7)
    for _ in range(400):
        number = rng.randrange(len(whole))
        at = rng.choice(list(places(json.loads(whole[number]))))
        line = changed(whole[number], at, rng.choice([*ODD, GONE]))
        path.write_bytes(b"".join([*whole[:number], line, *whole[number + 1 :]]))
        status = main(["replay", str(path)])
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert status == 0 or (status, said.err.count("\n")) == (2, 1), (at, said.err)
        assert status == 0 or said.err.startswith(f"ragtrace: {path}:"), said.err


def test_a_value_that_holds_itself_is_none(tmp_path, capsys):
    path = tmp_path / "events.jsonl"
    begin = b'{"run":1,"begin":{"workflow":"a","started_ns":1}}\n'
    event = b'{"run":1,"event":{"Event":{"kind":"chain","data":{"Began":{"value":[{"again":2}]}}}}}\n'
    path.write_bytes(b"".join([head(is_masked=False), begin, event]))
    assert main(["replay", str(path)]) == 2
    assert capsys.readouterr().err == f"ragtrace: {path}:3: is no line of recorded events\n"
