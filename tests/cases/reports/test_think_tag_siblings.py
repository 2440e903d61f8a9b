"""What models of 7B really reply is read as what it says, and what they did not say never becomes a number.

Each row is a reply of a real HTTP server to the calls behind `ragtrace.batch.score`. A row that is read gives the same
scores, with the same details, as the plain reply of the asked form, and with as many calls: none is a repair.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

import ragtrace
from tests.guards.judge_server import Answer, completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.guards.judge_server import JudgeServer

    Scored = Callable[..., tuple[list[dict[str, Any]], int]]

pa = pytest.importorskip("pyarrow")
FACTS = ["The return window is thirty days from delivery.", "Shipping to Norway takes five working days."]
CLAIM = "The return window is thirty days."
ROW = {"query": "How long may I return it?", "answer": CLAIM, "contexts": FACTS, "reference": "Thirty days."}
models = itertools.count()


@pytest.fixture
def scored(judge_server: JudgeServer) -> Scored:
    """Score a row with a judge that replies in turn, the last reply again and again; return scores and calls."""

    def score(metric: str, replies: list[Any], **more: Any) -> tuple[list[dict[str, Any]], int]:
        # A text, a value to write as JSON, or a message; each call of this function asks a model of its own.
        bodies = [_body(reply) for reply in replies]
        judge_server.answers = [Answer(200, body) for body in bodies[:-1]]
        judge_server.always = lambda _: Answer(200, bodies[-1])
        before = len(judge_server.requests)
        table = ragtrace.batch.score(
            pa.Table.from_pylist([{**ROW, **more}]), judge=f"openai:think-{next(models)}",
            judge_base_url=judge_server.url, judge_api_key="k", metrics=[metric],
        )  # fmt: skip
        found = [
            {**{name: one[name] for name in ("metric", "value", "state", "reason")}, "details": one["details"]}
            for one in table.to_pylist()[0]["scores"]
        ]
        return found, len(judge_server.requests) - before

    return score


class Message(dict):  # type: ignore[type-arg]
    """A message of the model, with the reason for which it stopped."""


def _body(reply: Any) -> dict[str, Any]:
    if not isinstance(reply, Message):
        return completion(reply)
    body = completion("")
    reason = reply.pop("finish_reason", "stop")
    body["choices"][0] = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **reply}}
    return body


def audit(verdict: Any = "supported", *, claim: str = CLAIM, reason: str = "", **more: Any) -> dict[str, Any]:
    sources = [1] if verdict == "supported" else []
    row = {"id": 1, "verdict": verdict, "sources": sources, "reason": reason}
    form = {"sufficient": True, "attempted": True, "noncommittal": False, "claims": [claim], "verdicts": [row]}
    return {**form, "citations": [], **more}


def row(**more: Any) -> dict[str, Any]:
    """The audit with a verdict row of other values."""
    return audit(verdicts=[{"id": 1, "verdict": "supported", "sources": [1], "reason": "", **more}])


def graded(grade: Any) -> dict[str, Any]:
    """The reply to faithfulness_1to5."""
    return {"attempted": True, "reason": "", "grade": grade}


RIGHT = json.dumps(audit())
DRAFT = json.dumps(audit("not_supported"))  # of the right form, and not what the judge says in the end


def assert_read(scored: Scored, reply: Any, plain: Any = None, metric: str = "faithfulness") -> None:
    """The reply gives what the plain form gives, at the first asking."""
    wanted, calls = scored(metric, [audit() if plain is None else plain])
    assert [one["state"] for one in wanted] == ["ok"] * len(wanted), "the plain form is read"
    assert scored(metric, [reply]) == (wanted, calls)


def assert_error(scored: Scored, reply: Any, metric: str = "faithfulness") -> None:
    found, calls = scored(metric, [reply])
    got = {(one["value"], one["state"], one["reason"]) for one in found}
    assert got == {(None, "error", "judge_invalid_output")}
    assert calls == 2, "asked again once"


# -- sound JSON that quotes a tag --

QUOTED = [
    "The answer closes its thoughts with </think>.",
    "It begins with <think> and goes on.",
    "It says <think>thirty</think> days.",
    "</think>",
    "Two ends: </think> and </think>",
    'It says "</think>" in quotes.',
    'It says "<think>{\\"a\\": 1}</think>" in a string.',
    "A backslash before it \\</think>\\",
    "<|channel|>analysis<|message|>thirty<|end|>",
    "It ends with </thinking> and [/THINK].",
    "It shows ```json\n{}\n``` and </think>.",
    "Braces } and { beside </think> {.",
]
# What stands around the JSON: as it comes, in a fence, among prose, behind thoughts.
AROUND: dict[str, Callable[[dict[str, Any]], Any]] = {
    "plain": json.dumps,
    "written in lines": lambda form: json.dumps(form, indent=2),
    "with escaped letters": lambda form: json.dumps(form).replace("<", "\\u003c").replace(">", "\\u003e"),
    "blanks around it": lambda form: f"\n\n {json.dumps(form)}\n",
    "a fence": lambda form: f"```json\n{json.dumps(form, indent=1)}\n```",
    "a fence without a name": lambda form: f"```\n{json.dumps(form)}\n```",
    "prose around it": lambda form: f"Here is the JSON:\n{json.dumps(form)}\nI hope this helps.",
    "thoughts": lambda form: f"<think>Is it supported? Yes.</think>\n\n{json.dumps(form)}",
    "thoughts with a draft": lambda form: f"<think>First {DRAFT}, no.</think>{json.dumps(form)}",
    "thoughts twice": lambda form: f"<think>hm</think><think>{DRAFT}</think>{json.dumps(form)}",
    "thoughts without their begin": lambda form: f"Is it supported? {DRAFT}</think>{json.dumps(form)}",
    "thoughts and a fence": lambda form: f"<think>hm</think>\n```json\n{json.dumps(form, indent=2)}\n```",
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("claim", QUOTED)
def test_a_claim_may_quote_a_tag(scored: Scored, claim: str, around: str) -> None:
    found, calls = scored("faithfulness", [AROUND[around](audit(claim=claim))])
    assert [(one["value"], one["state"], one["reason"]) for one in found] == [(1.0, "ok", None)]
    assert [one["text"] for one in json.loads(found[0]["details"])["claims"]] == [claim.strip()]
    assert calls == 1


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("reason", ["what stands before </think> is in no context", "no <think>hm</think> in it"])
def test_a_reason_may_quote_a_tag(scored: Scored, reason: str, around: str) -> None:
    found, calls = scored("faithfulness", [AROUND[around](audit("not_supported", reason=reason))])
    assert [(one["value"], one["state"]) for one in found] == [(0.0, "ok")]
    assert json.loads(found[0]["details"])["claims"][0]["reason"] == reason
    assert calls == 1


def test_texts_of_other_metrics_may_quote_a_tag(scored: Scored) -> None:
    grade = {"attempted": True, "grade": 2, "reason": "it is only <think>thoughts</think> and nothing else"}
    found, calls = scored("faithfulness_1to5", [json.dumps(grade)])
    assert (found[0]["value"], json.loads(found[0]["details"])["reason"], calls) == (2.0, grade["reason"], 1)
    facts = {"facts": ["It ends with </think>."], "attributions": [{"id": 1, "sources": [1]}]}
    found, calls = scored("context_recall", [json.dumps(facts)])
    assert (found[0]["value"], json.loads(found[0]["details"])["facts"][0]["text"], calls) == (
        1.0,
        facts["facts"][0],
        1,
    )


# -- thoughts --

READ = {
    "a draft in thoughts": f"<think>Maybe {DRAFT}</think>{RIGHT}",
    "several thoughts with drafts": f"<think>{DRAFT}</think>\n<think>{DRAFT}</think>\n{RIGHT}",
    "empty thoughts": f"<think>\n\n</think>\n\n{RIGHT}",
    "thoughts whose begin the template wrote": f"Maybe {DRAFT} or not.\n</think>\n{RIGHT}",
    "an open object in thoughts": f'<think>{{"attempted": </think>{RIGHT}',
    "thoughts that quote the tag": f'<think>It says "</think>" there. {DRAFT}</think>{RIGHT}',
    "thoughts with an apostrophe and a quote": f"<think>It's \"so</think>{RIGHT}",
    "another tag": f"<thinking>{DRAFT}</thinking>{RIGHT}",
    "brackets": f"[THINK]{DRAFT}[/THINK]{RIGHT}",
    "channels": f"<|channel|>analysis<|message|>{DRAFT}<|end|><|start|>assistant<|channel|>final<|message|>{RIGHT}",
    "capitals": f"<THINK>{DRAFT}</THINK>{RIGHT}",
    "thoughts after it": f"{RIGHT}\n<think>That was all.</think>",
    "thoughts with braces after it": f'{RIGHT}\n<think>{{"attempted": false}} it was not.</think>',
    "thoughts before and after it": f"<think>hm</think>{RIGHT}<think>done</think>",
    "a draft in thoughts after it": f"{RIGHT}\n<think>Or rather {DRAFT}?</think>",
}
NO_REPLY = {
    "thoughts alone": "<think>It is supported.</think>",
    "a draft in thoughts alone": f"<think>{DRAFT}</think>",
    "a draft in thoughts, then words": f"<think>{DRAFT}</think>I cannot judge this.",
    "a draft before an end, and nothing": f"{DRAFT}</think>",
    "a draft in thoughts, then a cut reply": f"<think>{DRAFT}</think>{RIGHT[:-20]}",
    "thoughts without an end": "<think>It is supported, since the first context says",
    "thoughts without an end, over a cut reply": f"<think>Let me write: {RIGHT[:-20]}",
    "a cut reply": RIGHT[:-2],
    "a cut reply that quotes a tag": json.dumps(audit(claim="It ends with </think>."))[:-2],
    "a cut reply behind a draft": f"First {DRAFT}, then {RIGHT[:-2]}",
    "words": "The claim is supported.",
    "Python": repr(audit()),
    "Python in a fence": f"```python\n{audit()!r}\n```",
    "single quotes": RIGHT.replace('"', "'"),
    "Python's names": RIGHT.replace("true", "True").replace("false", "False"),
    "a list of texts": json.dumps([CLAIM]),
    "a number": "1",
    "null": "null",
    "an object of another form": json.dumps({"score": 1.0}),
}


@pytest.mark.parametrize("name", READ)
def test_thoughts_are_left_out(scored: Scored, name: str) -> None:
    assert_read(scored, READ[name])


@pytest.mark.parametrize("name", NO_REPLY)
def test_what_is_no_reply_is_an_error(scored: Scored, name: str) -> None:
    assert_error(scored, NO_REPLY[name])


# -- text around the object --

AMONG_TEXT = {
    "a word in braces": f"{RIGHT}\n\nNote: {{this}} is the JSON that you asked for.",
    "two words in braces": f"{RIGHT}\nI filled in {{claims}} and {{verdicts}}.",
    "nested braces": f"{RIGHT}\nThe form was {{claims: {{text}}}}.",
    "empty braces": f"{RIGHT} {{}}",
    "another object": f'{RIGHT}\n{{"note": "done"}}',
    "one brace too many": f"{RIGHT}\n}}",
    "braces before it": f"Here is the {{JSON}}:\n{RIGHT}",
    "another object before it": f'You gave {{"query": "?"}}, so: {RIGHT}',
    "the form before it": f'In the form {{"attempted": bool, "claims": [...]}}:\n{RIGHT}',
    "braces before and after it": f"For {{1}}: {RIGHT} - see {{1}}.",
    "a fence, and braces": f"```json\n{RIGHT}\n```\nAll {{claims}} were judged.",
    "a fence, and an object": f'```json\n{RIGHT}\n```\nAn empty one would be {{"claims": []}}.',
    "thoughts, and braces": f"<think>{DRAFT}</think>{RIGHT}\nThat is {{all}}.",
    "quotes and braces": f'{RIGHT}\nIt\'s "{{so}}", I think.',
    "a list of one": f"[{RIGHT}]",
    "an end of text": f"{RIGHT}<|im_end|>",
}


@pytest.mark.parametrize("name", AMONG_TEXT)
def test_text_around_the_object_is_left_out(scored: Scored, name: str) -> None:
    assert_read(scored, AMONG_TEXT[name])


# -- a call of a tool in the place of a text --


def called(arguments: Any, name: str = "audit", **more: Any) -> Message:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return Message({"content": None, "tool_calls": [call], "finish_reason": "tool_calls", **more})


def legacy(arguments: Any, **more: Any) -> Message:
    call = {"name": "audit", "arguments": arguments}
    return Message({"content": None, "function_call": call, "finish_reason": "function_call", **more})


QUOTING = json.dumps(audit(claim=CLAIM, reason="it ends with </think>"))
CALLS: dict[str, Callable[[], Message]] = {
    "a call": lambda: called(RIGHT),
    "a call, stopped": lambda: called(RIGHT, finish_reason="stop"),
    "an empty text": lambda: called(RIGHT, content=""),
    "no text at all": lambda: Message({k: v for k, v in called(RIGHT).items() if k != "content"}),
    "words before the call": lambda: called(RIGHT, content="I call the tool."),
    "another name": lambda: called(RIGHT, name="json"),
    "an object": lambda: called(audit()),
    "in lines": lambda: called(json.dumps(audit(), indent=2)),
    "wrapped": lambda: called(json.dumps({"result": audit()})),
    "thoughts in the text": lambda: called(RIGHT, content=f"<think>{DRAFT}</think>"),
    "a legacy call": lambda: legacy(RIGHT),
    "a legacy call, stopped": lambda: legacy(RIGHT, finish_reason="stop"),
    "a legacy call, empty text": lambda: legacy(RIGHT, content=""),
    "a legacy call beside no calls": lambda: legacy(RIGHT, tool_calls=None),
    "no calls": lambda: Message({"content": RIGHT, "tool_calls": [], "function_call": None}),
}
WRONG_CALLS: dict[str, Callable[[], Message]] = {
    "no function": lambda: Message({"content": None, "tool_calls": [{"id": "1"}], "finish_reason": "tool_calls"}),
    "no object": lambda: Message({"content": None, "tool_calls": [None], "finish_reason": "tool_calls"}),
    "a text for calls": lambda: Message({"content": None, "tool_calls": RIGHT, "finish_reason": "tool_calls"}),
    "a function that is a text": lambda: Message(
        {"content": None, "tool_calls": [{"function": RIGHT}], "finish_reason": "tool_calls"}
    ),
    "no arguments": lambda: called(None),
    "empty arguments": lambda: called(""),
    "an empty object": lambda: called("{}"),
    "a number": lambda: called(4),
    "a cut object": lambda: called(RIGHT[:-2]),
    "Python": lambda: called(repr(audit())),
    "another form": lambda: called('{"query": "?"}'),
    "a legacy call, cut": lambda: legacy(RIGHT[:-2]),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_arguments_of_a_call_are_read(scored: Scored, name: str) -> None:
    assert_read(scored, CALLS[name]())


def test_the_arguments_of_a_call_may_quote_a_tag(scored: Scored) -> None:
    assert_read(scored, called(QUOTING), QUOTING)


def test_the_arguments_of_a_call_grade_passages(scored: Scored) -> None:
    grades = {"grades": [{"id": 1, "grade": 5}, {"id": 2, "grade": 1}]}
    assert_read(scored, called(json.dumps(grades), name="grades"), grades, "p_at_k")


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_call_without_a_reply_is_an_error(scored: Scored, name: str) -> None:
    message = WRONG_CALLS[name]()
    found, _ = scored("faithfulness", [message])
    assert [(one["value"], one["state"], one["reason"]) for one in found] == [
        (None, "error", "judge_invalid_output")
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (called(RIGHT[:-2], finish_reason="length"), "judge_truncated"),
        (called(RIGHT, finish_reason="length"), "judge_truncated"),
        (called(RIGHT, finish_reason="content_filter"), "judge_filtered"),
        (called(RIGHT, refusal="I cannot judge this."), "judge_refused"),
    ],
    ids=["cut", "at the limit", "filtered", "refused"],
)
def test_a_call_that_was_stopped_says_why(scored: Scored, message: Message, reason: str) -> None:
    plain = Message({"content": RIGHT, **{k: v for k, v in message.items() if k in {"finish_reason", "refusal"}}})
    wanted, _ = scored("faithfulness", [plain])
    assert [(one["value"], one["state"], one["reason"]) for one in wanted] == [(None, "error", reason)]
    found, _ = scored("faithfulness", [message])
    assert [(one["value"], one["state"], one["reason"]) for one in found] == [(None, "error", reason)]


# -- an object around the object --

WRAPPED = {
    **{key: json.dumps({key: audit()}) for key in ("result", "response", "output", "answer", "audit")},
    "in lines": json.dumps({"result": audit()}, indent=2),
    "in a fence": f"```json\n{json.dumps({'result': audit()})}\n```",
    "behind thoughts": f"<think>{DRAFT}</think>{json.dumps({'response': audit()})}",
    "before braces": f"{json.dumps({'output': audit()})}\nThat is {{all}}.",
}
OF_OTHER_METRICS = {
    "p_at_k": {"grades": [{"id": 1, "grade": 5}, {"id": 2, "grade": 1}]},
    "faithfulness_1to5": {"attempted": True, "grade": 4, "reason": "so"},
    "context_precision": {"verdicts": [{"id": 1, "relevant": True}, {"id": 2, "relevant": False}]},
    "context_recall": {"facts": ["a", "b"], "attributions": [{"id": 1, "sources": [1]}, {"id": 2, "sources": []}]},
}
NOT_WRAPPED = {
    "two that fit": {"result": audit(), "response": audit("not_supported")},
    "two that fit under other names": {"first": audit("not_supported"), "second": audit()},
    "nothing in it": {"result": {}},
    "null in it": {"result": None},
    "words in it": {"result": "supported"},
    "a number in it": {"result": 1},
    "another form in it": {"result": {"score": 1.0}},
    "half of the form in it": {"result": {"attempted": True, "noncommittal": False}},
    "a wrong verdict in it": {"result": audit("maybe")},
}


@pytest.mark.parametrize("name", WRAPPED)
def test_an_object_around_the_reply_is_taken_off(scored: Scored, name: str) -> None:
    assert_read(scored, WRAPPED[name])


@pytest.mark.parametrize("key", ["result", "response"])
@pytest.mark.parametrize("metric", OF_OTHER_METRICS)
def test_an_object_around_another_reply_is_taken_off(scored: Scored, metric: str, key: str) -> None:
    form = OF_OTHER_METRICS[metric]
    assert_read(scored, {key: form}, form, metric)


@pytest.mark.parametrize("name", NOT_WRAPPED)
def test_an_object_around_no_one_reply_is_an_error(scored: Scored, name: str) -> None:
    assert_error(scored, NOT_WRAPPED[name])


# -- values in other letters --

NOT = audit("not_supported")
VALUES: list[tuple[str, Any, Any, str]] = [
    ("an id", row(id="1"), None, "faithfulness"),
    ("a source", row(sources="1"), None, "faithfulness"),
    ("a listed source", row(sources=["1"]), None, "faithfulness"),
    ("two sources", row(sources=["1", "2"]), row(sources=[1, 2]), "faithfulness"),
    ("a mixed list of sources", row(sources=[1, "2"]), row(sources=[1, 2]), "faithfulness"),
    ("id and source", row(id="1", sources=["2"]), row(sources=[2]), "faithfulness"),
    *(
        (f"attempted {yes!r}", audit(attempted=yes), None, "faithfulness")
        for yes in ("true", "True", "TRUE", "yes", "Yes", "YES")
    ),
    *(
        (f"noncommittal {no!r}", audit(noncommittal=no), None, "faithfulness")
        for no in ("false", "False", "FALSE", "no", "No", "NO")
    ),
    ("sufficient yes", audit(sufficient="yes"), audit(sufficient=True), "context_sufficiency"),
    ("sufficient no", audit(sufficient="no"), audit(sufficient=False), "context_sufficiency"),
    ("sufficient false", audit(sufficient="false"), audit(sufficient=False), "context_sufficiency"),
    ("not attempted", audit(attempted="no", claims=[], verdicts=[]), audit(attempted=False, claims=[], verdicts=[]), "no_answer"),
    *(
        (f"a verdict {word!r}", row(verdict=word), None, "faithfulness")
        for word in ("Supported", "SUPPORTED", "yes", "Yes", "YES", " supported ")
    ),
    *(
        (f"a verdict {word!r}", audit(word), NOT, "faithfulness")
        for word in (
            "not supported", "Not supported", "NOT SUPPORTED", "Not_Supported", "Not-Supported", "not-supported", "no",
            "No",
        )
    ),
    *(
        (f"a verdict {word!r}", audit(word), audit("contradicted"), "contradictions")
        for word in ("Contradicted", "CONTRADICTED", " contradicted")
    ),
    (
        "grades and ids", {"grades": [{"id": "1", "grade": "5"}, {"id": "2", "grade": "1"}]},
        {"grades": [{"id": 1, "grade": 5}, {"id": 2, "grade": 1}]}, "p_at_k",
    ),
    (
        "one grade of two", {"grades": [{"id": 1, "grade": "1"}, {"id": 2, "grade": 4}]},
        {"grades": [{"id": 1, "grade": 1}, {"id": 2, "grade": 4}]}, "p_at_k",
    ),
    ("a grade", graded("4"), graded(4), "faithfulness_1to5"),
    ("the lowest grade", graded("1"), graded(1), "faithfulness_1to5"),
    (
        "relevant", {"verdicts": [{"id": "1", "relevant": "yes"}, {"id": "2", "relevant": "no"}]},
        {"verdicts": [{"id": 1, "relevant": True}, {"id": 2, "relevant": False}]}, "context_precision",
    ),
    (
        "relevant in capitals", {"verdicts": [{"id": 1, "relevant": "False"}, {"id": 2, "relevant": "True"}]},
        {"verdicts": [{"id": 1, "relevant": False}, {"id": 2, "relevant": True}]}, "context_precision",
    ),
    (
        "facts", {"facts": ["a", "b"], "attributions": [{"id": "1", "sources": ["1"]}, {"id": "2", "sources": []}]},
        {"facts": ["a", "b"], "attributions": [{"id": 1, "sources": [1]}, {"id": 2, "sources": []}]}, "context_recall",
    ),
    ("all at once", {"result": {**row(id="1", verdict="Supported", sources="1"), "attempted": "yes"}}, None, "faithfulness"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "plain", "metric"), [one[1:] for one in VALUES], ids=[f"{metric}-{it}" for it, _, _, metric in VALUES]
)
def test_values_in_other_letters_are_read(scored: Scored, reply: Any, plain: Any, metric: str) -> None:
    assert_read(scored, reply, plain, metric)


def test_verdicts_of_two_texts_in_other_letters_are_read(scored: Scored) -> None:
    claims = {"answer_claims": ["a b"], "reference_claims": ["c d"]}
    plain = {"verdicts": [{"id": 1, "verdict": "supported"}, {"id": 2, "verdict": "contradicted"}]}
    other = {"verdicts": [{"id": "1", "verdict": "Supported"}, {"id": "2", "verdict": "CONTRADICTED"}]}
    wanted = scored("factual_correctness", [claims, plain])
    assert [one["state"] for one in wanted[0]] == ["ok"] * len(wanted[0])
    assert scored("factual_correctness", [claims, other]) == wanted


def test_nuggets_in_other_letters_are_read(scored: Scored) -> None:
    def replies(importance: Any, support: Any, number: Any) -> list[Any]:
        labels = {"labels": [{"id": number, "importance": importance}]}
        return [{"nuggets": ["thirty days"]}, labels, {"assignments": [{"id": number, "support": support}]}]

    wanted = scored("nuggets", replies("vital", "partial_support", 1))
    assert [one["state"] for one in wanted[0]] == ["ok"] * len(wanted[0])
    assert scored("nuggets", replies("Vital", "Partial support", "1")) == wanted
    assert scored("nuggets", replies("VITAL", "partial-support", 1)) == wanted


def test_citations_in_other_letters_are_read(scored: Scored) -> None:
    def reply(part: Any, support: str) -> dict[str, Any]:
        return audit(citations=[{"part": part, "cites": "1", "support": support}])

    cited = {"answer": "The return window is thirty days [1]."}
    wanted = scored("citations", [reply(1, "full")], **cited)
    assert [one["state"] for one in wanted[0]] == ["ok"] * len(wanted[0])
    assert scored("citations", [reply("1", "Full")], **cited) == wanted


WRONG = [
    *((f"a verdict {word!r}", audit(word), "faithfulness") for word in (
        "maybe", "unknown", "", "partially supported", "partially_supported", "not sure", "supported?", "yes and no",
        "supported or not supported", "not not supported", "n/a", "1", 1, 0.9, None, ["supported"], {"is": "supported"},
    )),
    *((f"attempted {word!r}", audit(attempted=word), "faithfulness") for word in (
        "maybe", "", "partly", "yes, mostly", "n/a", None, 2, [True],
    )),
    *((f"noncommittal {word!r}", audit(noncommittal=word), "faithfulness") for word in ("maybe", "", "not really", None)),
    *((f"an id {word!r}", row(id=word), "faithfulness") for word in (
        "one", "", "1.5", 1.5, "first", "c1", "1,2", True, None, [1],
    )),
    *((f"sources {word!r}", row(sources=word), "faithfulness") for word in (["one"], "the first", [1.5], ["1.5"], [True], {"1": 1})),
    *((f"a grade {word!r}", graded(word), "faithfulness_1to5") for word in (
        "four", "", "4.5", 4.5, "4/5", "6", "0", "-4", 6, 0, True, None, [4], "4 or 5", "high",
    )),
    *((f"a listed grade {word!r}", {"grades": [{"id": 1, "grade": word}, {"id": 2, "grade": 4}]}, "p_at_k") for word in (
        "four", "", "4.5", 4.5, "9", True, None, "yes",
    )),
    *((f"relevant {word!r}", {"verdicts": [{"id": 1, "relevant": word}, {"id": 2, "relevant": True}]}, "context_precision") for word in (
        "somewhat", "", None, 2,
    )),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "metric"), [one[1:] for one in WRONG], ids=[f"{metric}-{it}" for it, _, metric in WRONG]
)
def test_a_value_outside_of_the_form_never_becomes_a_number(scored: Scored, reply: Any, metric: str) -> None:
    assert_error(scored, reply, metric)


def test_a_repaired_reply_is_read_after_a_wrong_one(scored: Scored) -> None:
    wanted, _ = scored("faithfulness", [audit()])
    assert scored("faithfulness", [audit("maybe"), audit()]) == (wanted, 2)
    assert scored("faithfulness", [repr(audit()), f"```json\n{json.dumps({'result': row(id='1')})}\n```"]) == (
        wanted,
        2,
    )
