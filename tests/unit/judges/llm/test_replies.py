"""From the text of a reply to its form: what is read, what stays a failure, and what it costs."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import Field

from ragtrace.errors import JudgeInvalidOutput
from ragtrace.judges.llm.nuggets import AssignmentRow
from ragtrace.judges.llm.replies import (
    _ASIDE,
    _DECLINES,
    _MARK,
    MAX_REPLY_CHARS,
    AuditRepair,
    CitationRow,
    Flag,
    Form,
    Listed,
    SufficiencyReply,
    VerdictRow,
    Whole,
    aligned,
    read,
)
from ragtrace.judges.stances import ABSENT, AGAINST, EITHER, SIDES
from ragtrace.prompts import PROMPT_IDS
from tests import cpu

if TYPE_CHECKING:
    from collections.abc import Callable


class Small(Form):
    a: Whole


class Wide(Form):
    sure: Flag | None = None
    many: Listed[Whole] = Field(default=[])


@pytest.mark.parametrize(
    ("text", "a"),
    [
        ('{"a": 1}', 1),
        (' \n{"a": 1, "b": {"a": 2}}\n', 1),
        ('{"a": 1, "b": "</think>{\\"a\\": 2}"}', 1),
        ('```json\n{"a": 1}\n```', 1),
        ('{"a": 1}\n```', 1),
        ('He said "so {what}". {"a": 1, "b": "\\"}{"} Bye.', 1),
        ('{"a": 1} where {braces} stand, {"id": 2} too, {"id": 3, ...}, {} and {1, 2', 1),
        ('{"a": 1} ends with </p> and a } at the end }', 1),
        ('<think>{"a": 0}</think>{"a": 1}', 1),
        ('<think>{"a": </think>ok {"a": 1}.', 1),
        ('<think>it begins with {" and</think>{"a": 1}', 1),
        ('<think>it says "</think>"</think>{"a": 1}', 1),
        ('{"a": 0} is a draft</think>{"a": 1}', 1),
        ('<think>hm</think>{"a": 1, "b": "the tag </think> is quoted"}', 1),
        ('<think>hm</think>```json\n{"a": 1, "b": "</think>"}``` as {said}', 1),
        ('{"result": {"a": 1}}', 1),
        ('{"a": {"a": 1}}', 1),
        ('{"name": "small", "arguments": {"a": 1}}', 1),
        ('<tool_call>\n{"name": "small", "arguments": {"a": 1}}\n</tool_call>', 1),
        ('{"note": "none", "draft": {"b": 0}, "final": {"a": 1}}', 1),
        ('{"b": 0} {"a": 1} {"c": {"b": 2}}', 1),
        ('[{"a": 1}]', 1),
        ('In the form {"a": int}: {"a": 1}', 1),
        ('{"a": 1}<think>or {"a": 2}?</think>', 1),
        ('<THINK>{"a": 0}</THINK>{"a": 1}', 1),
        ('[THINK]{"a": 0}[/THINK]{"a": 1}', 1),
        ('<thinking>{"a": 0}</thinking>{"a": 1}', 1),
        ('<|channel|>analysis<|message|>{"a": 0}<|end|><|channel|>final<|message|>{"a": 1}', 1),
        ('{"a": 1} The <think> tag is the answer\'s.', 1),
        ('<think>what <think> means, {"a": 0}</think>{"a": 1}', 1),
        *(
            (f'{begin}Perhaps {{"a": 0}}.{end}\n{{"a": 1}}', 1)
            for begin, end in (
                ("<thought>", "</thought>"), ("<thoughts>", "</thoughts>"), ("<reasoning>", "</reasoning>"),
                ("<reflection>", "</reflection>"), ("<analysis>", "</analysis>"), ("<draft>", "</draft>"),
                ("<scratchpad>", "</scratchpad>"), ("<inner_monologue>", "</inner_monologue>"),
                ("<antThinking>", "</antThinking>"), ("<seed:think>", "</seed:think>"), ("<think >", "</think >"),
                ('<think type="a">', "</think>"), ("◁think▷", "◁/think▷"), ("<unused94>thought\n", "<unused95>"),
                ("<|START_THINKING|>", "<|END_THINKING|>"), ("<|begin_of_thought|>", "<|end_of_thought|>"),
                ("<|think|>", "<|/think|>"), ("<|channel>thought\n", "<channel|>"),
            )
        ),
        ('{"a": 1}<|end|>\n', 1),
        ('<reasoning>hm</reasoning><answer>{"a": 1}</answer>', 1),
        ('{"error": null, "refusal": "", "result": {"a": 1}}', 1),
        ('{"a": 1, "error": null}', 1),
        ('{"a": 1, "a": 1}', 1),
        ('It says e.g. thirty days. So:\n\n```json\n{"a": 1}\n```', 1),
        ('In the example of Norway nothing is said. Result:\n{"a": 1}', 1),
        ('{"a": 1} An empty one would be {"a": null}.', 1),
        ('{"a": "12"}', 12),
        ('{"a": " -7 "}', -7),
    ],
)  # fmt: skip
def test_one_reply_is_found(text: str, a: int) -> None:
    assert read(Small, text).a == a


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "empty"),
        ("no object", "not JSON"),
        ("}{", "not JSON"),
        ('first {"a": 1} then {"a": 2}.', "2 objects could be"),
        ('{"a": 1}{"a": 1}', "2 objects could be"),
        ('{"draft": {"a": 1}, "final": {"a": 2}}', "2 objects could be"),
        ('quoted {"a": 5}, verdict: {"a": 1,', "not JSON"),
        ('quoted {"a": 5}, verdict: {"a": t', "not JSON"),
        ('quoted {"a": 5}, verdict: {"a": "x', "not JSON"),
        ('quoted {"a": 5}, verdict: {"a": one}', "not JSON"),
        ('quoted {"a": 5}, verdict: {"result": {"a": one}}', "not JSON"),
        ('{"draft": {"a": 1}, "final": {"a": one}}', "not JSON"),
        ('[{"a": 1}, {"a": 2}]', "2 objects could be"),
        ('<think>{"a": 1}</think><think>{"a": 2}</think>', "not JSON"),
        ('<think>{"a": 1}</think>', "not JSON"),
        ('<think>{"a": 1} or so', "not JSON"),
        ('<think>{"a": 1} what <think> means</think>', "not JSON"),
        ('{"a": 1} and {"a": 2} or {"a": one}', "not JSON"),
        ('<think>{"a": 1}</think>I cannot judge this.', "not JSON"),
        ('"{\\"a\\": 1}"', "an object"),
        ('{"result": {"audit": {"a": 1}}}', "a: Field required"),
        ('{"a": [1], "b": {"a": 1}}', "a: Input should be"),
        ('{"a": "1.0"}', "a: Input should be"),
        ('{"a": 1.0}', "a: Input should be"),
        ('{"a": true}', "a: Input should be"),
        ('{"a": "\u0661"}', "a: Input should be"),
        ('{"a": "one"}', "a: Input should be"),
        ('{"a": "12345678901234567890"}', "a: Input should be"),
        ('x {"a": %s} x' % ("9" * 10_000), "not JSON"),
        ("\ud800", "nicode"),
    ],
)
def test_what_is_no_reply_or_two_is_an_error(text: str, fault: str) -> None:
    with pytest.raises(JudgeInvalidOutput, match=fault):
        read(Small, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 2, "a": 1}',
        'Here: {"a": 2, "a": 1}',
        '{"result": {"a": 2, "a": 1}}',
        '{"a": 1, "b": {"c": 1, "c": 2}}',
        '{"a": 1, "error": "I cannot judge this"}',
        'Sorry: {"a": 1, "refusal": true}',
        '{"error": "I cannot judge this", "result": {"a": 1}}',
        '{"Refusal": "no", "result": {"a": 1}}',
        '{"example": {"a": 1}}',
        '{"draft": {"a": 1}, "final": null}',
        '{"thoughts": {"a": 1}, "verdict": "I cannot judge this"}',
        '{"first": {"a": 1}, "final": {"a": "unsure"}}',
        'I cannot judge this. For example: {"a": 1}',
        'This is an example.\n\n{"a": 1}',
        'The form is, e.g. for one claim,\n```json\n{"a": 1}\n```',
        '{"a": 1} Correction: {"a": "unsure"}',
        '{"a": 1} Correction: {"a": 1.5, "b": 0}',
        '{"a": 1} Or rather {"result": {"a": 2}}',
        '{"a": 1} Or rather {"result": {"a": "unsure"}}',
        '<thought>{"a": 1}</thought>I cannot judge this.',
        '<reasoning>Perhaps {"a": 1}',
        '<|START_THINKING|>{"a": 1}<|END_THINKING|>',
        '<|channel|>analysis<|message|>{"a": 1}<|end|>',
    ],
)
def test_an_object_that_may_be_no_verdict_is_an_error(text: str) -> None:
    with pytest.raises(JudgeInvalidOutput):
        read(Small, text)


def test_null_is_an_empty_list_or_text_where_the_field_may_be_left_out() -> None:
    row = read(VerdictRow, '{"id": 1, "verdict": "not_supported", "sources": null, "reason": null}')
    assert (row.sources, row.reason) == ([], "")
    assert read(AuditRepair, '{"verdicts": null, "citations": null}') == AuditRepair(verdicts=[], citations=[])


def test_a_reply_without_any_field_of_its_form_is_none() -> None:
    for text in ("{}", '{"note": 1}', '{"note": {"other": 1}}'):
        with pytest.raises(JudgeInvalidOutput, match="none of the fields"):
            read(Wide, text)
    assert read(Wide, '{"result": {"many": ["1", 2]}}').many == [1, 2]
    assert read(AuditRepair, 'Here: {"audit": {"verdicts": []}} and {"id": 1}').verdicts == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (True, True), ("true", True), ("True", True), ("YES", True), (" yes. ", True), ("`true`", True),
        (False, False), ("FALSE", False), ("No", False), (None, None),
        (1, "error"), (0, "error"), ("1", "error"), ("maybe", "error"), ("", "error"), ("not yes", "error"),
        ([], "error"), ("y", "error"),
    ],
)  # fmt: skip
def test_a_flag_may_be_a_word(said: object, meant: object) -> None:
    text = json.dumps({"sure": said})
    if meant == "error":
        with pytest.raises(JudgeInvalidOutput):
            read(Wide, text)
    else:
        assert read(Wide, text).sure is meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *((word, "supported") for word in ("supported", "Supported", "SUPPORTED", " supported.", "**Supported**", "yes", "Yes.")),
        *((word, "not_supported") for word in ("not supported", "Not-Supported", "NOT_SUPPORTED", "NotSupported", "No")),
        ("Contradicted", "contradicted"),
        *((word, "not_supported") for word in ("unsupported", "!supported", "`!supported`", "un-supported", "isn't supported")),
        *((word, "not_supported") for word in ("not fully supported", "No, not supported")),
        *((word, "not_supported") for word in ("NOT ENOUGH INFO", "insufficient evidence", "no support", "cannot be verified")),
        *((word, "not_supported") for word in ("SUPPORTED: false", "is_supported = No", "entailed: none", "hallucinated: yes")),
        *((word, "supported") for word in ("SUPPORTED: true", "is_supported = Yes", "no hallucination", "not hallucinated", "hallucinated: no")),
        *((word, None) for word in ("contradicted: no", "unsupported: false", "contradiction: none", "not fully hallucinated")),
        *((word, "not_supported") for word in ("**Not** supported", "not **supported**", "un_supported", "UN SUPPORTED")),
        *((word, "not_supported") for word in ("cannot be determined", "irrelevant", "not given", "not in context")),
        *((word, "contradicted") for word in ("contradiction", "REFUTES", "no: contradicted", "contradicted by the context")),
        *((word, None) for word in ("maybe", "partially", "partially supported", "supported?", "supported or not", "supported, contradicted", "not contradicted")),
        *((word, None) for word in ("!yes", "", " ", "yes and no", "in correct", "supported: maybe", "unclear", "supported 0", 1, 0, None, ["supported"], "not " * 99)),
    ],
)  # fmt: skip
def test_a_verdict_is_one_of_three_words_however_it_is_written(said: object, meant: str | None) -> None:
    """A word of no known side is none: nobody knows what it means."""
    text = json.dumps({"id": 1, "verdict": said})
    if meant is None:
        with pytest.raises(JudgeInvalidOutput, match="verdict"):
            read(VerdictRow, text)
    else:
        assert read(VerdictRow, text).verdict == meant


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("FULL", "full"), ("yes", "full"), ("supports", "full"), ("full support", "full"), ("Partial", "partial"),
        ("partly supported", "partial"), ("not fully supported", "partial"), ("no", "none"), ("No support.", "none"),
        ("contradicts", "none"), ("unsure", None),
    ],
)  # fmt: skip
def test_a_citation_s_support_is_full_partial_or_none(said: str, meant: str | None) -> None:
    text = json.dumps({"part": "1", "cites": "2", "support": said})
    if meant is None:
        with pytest.raises(JudgeInvalidOutput, match="support"):
            read(CitationRow, text)
    else:
        assert read(CitationRow, text) == CitationRow(part=1, cites="2", support=meant)


GOOD_WORDS = sorted(SIDES.good)
BAD_WORDS = sorted(SIDES.bad)
DENIED = [word for _, words in EITHER for word in words.split()]
NEGATED = ("not {}", "NOT_{}", "not-{}", "Not {}.", "is not {}", "isn't {}", "non-{}", "not {} by the context")
SPELLED: tuple[Callable[[str], str], ...] = (str, str.upper, str.capitalize, "**{}**".format, " {}. ".format)


def verdict(said: object) -> str:
    return read(VerdictRow, json.dumps({"id": 1, "verdict": said})).verdict


def support(said: object) -> str:
    return read(CitationRow, json.dumps({"part": 1, "cites": "1", "support": said})).support


def nugget(said: object) -> str:
    return read(AssignmentRow, json.dumps({"id": 1, "support": said})).support


@pytest.mark.parametrize("spell", SPELLED)
@pytest.mark.parametrize(("good", "bad"), [*ABSENT, *AGAINST])
def test_of_each_pair_both_words_are_read_in_each_form(good: str, bad: str, spell: Callable[[str], str]) -> None:
    for word in good.split():
        found = [form(spell(word)) for form in (verdict, support, nugget)]
        assert found == ["supported", "full", "support"], word
    for word in bad.split():
        found = [form(spell(word)) for form in (verdict, support, nugget)]
        assert found[0] in {"not_supported", "contradicted"}, word
        assert found[1:] == ["none", "not_support"], word


@pytest.mark.parametrize("negation", NEGATED)
@pytest.mark.parametrize("word", [word for word in GOOD_WORDS if word not in {"yes", "full"}])
def test_every_word_for_is_read_with_its_negation(word: str, negation: str) -> None:
    denied = negation.format(word)
    assert (verdict(denied), support(denied), nugget(denied)) == ("not_supported", "none", "not_support")


@pytest.mark.parametrize("negation", NEGATED)
@pytest.mark.parametrize("word", DENIED)
def test_a_fault_that_is_there_or_not_is_read_with_its_negation(word: str, negation: str) -> None:
    denied = negation.format(word)
    assert (verdict(denied), support(denied), nugget(denied)) == ("supported", "full", "support")


@pytest.mark.parametrize(
    "word", ["unsupported", "inaccurate", "incorrect", "nonfactual", "untrue", "invalid", "unverifiable"]
)
def test_a_prefix_negates_too(word: str) -> None:
    assert (verdict(word), support(word), nugget(word)) == ("not_supported", "none", "not_support")


def test_no_word_is_on_two_sides_also_by_a_prefix() -> None:
    assert not set(GOOD_WORDS) & set(BAD_WORDS)
    assert [word for word in GOOD_WORDS if SIDES.stance_of(word) != "for"] == []
    assert [word for word in BAD_WORDS if SIDES.stance_of(word) not in {"absent", "against"}] == []


def test_true_and_false_are_read_as_their_words() -> None:
    assert [verdict(True), support(True), nugget(True)] == ["supported", "full", "support"]
    assert [verdict(False), support(False), nugget(False)] == ["not_supported", "none", "not_support"]


class Named(Form):
    relevant: Flag | None = None
    sufficient: Flag | None = None
    noncommittal: Flag | None = None


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("relevant", "Relevant", ("irrelevant", "not relevant", "NOT_RELEVANT", "isn't relevant")),
        ("sufficient", "sufficient.", ("insufficient", "not sufficient")),
        ("noncommittal", "noncommittal", ("committal", "not noncommittal")),
    ],
)
def test_a_flag_may_be_its_own_name(name: str, yes: str, no: tuple[str, ...]) -> None:
    assert getattr(read(Named, json.dumps({name: yes})), name) is True
    assert [getattr(read(Named, json.dumps({name: word})), name) for word in no] == [False] * len(no)
    for other in ("supported", "partially", f"{name}?", "maybe"):
        with pytest.raises(JudgeInvalidOutput):
            read(Named, json.dumps({name: other}))


@pytest.mark.parametrize("nothing", [None, [], "", "none", "N/A", "null", "-", ["none"], [None], [""]])
def test_a_claim_without_support_may_say_in_any_way_that_nothing_shows_it(nothing: object) -> None:
    row = read(VerdictRow, json.dumps({"id": 1, "verdict": "no", "sources": nothing}))
    assert (row.sources, row.named_contexts) == ([], [])


def test_a_source_that_is_none_puts_only_a_verdict_in_doubt_that_needs_it() -> None:
    rows = [read(VerdictRow, json.dumps({"id": 1, "verdict": word, "sources": [0]})) for word in ("yes", "no")]
    assert [aligned([row], 1, 2)[1] for row in rows] == [[1], []]


@pytest.mark.parametrize("sources", ["none of the contexts", ["none of them"], "not found", False, {}])
def test_no_verdict_without_support_depends_on_its_sources(sources: object) -> None:
    row = {"id": 1, "verdict": "unsupported", "sources": sources}
    assert read(VerdictRow, json.dumps(row)) == VerdictRow(id=1, verdict="not_supported", sources=[])
    with pytest.raises(JudgeInvalidOutput, match="sources"):
        read(VerdictRow, json.dumps(row | {"verdict": "supported"}))


@pytest.mark.parametrize("reason", [None, 0, False, [], {"text": "no"}, ["it rains"]])
def test_a_reason_of_another_form_costs_no_verdict(reason: object) -> None:
    assert read(VerdictRow, json.dumps({"id": 1, "verdict": "no", "reason": reason})).reason == ""


PLAIN = st.text(alphabet=st.characters(exclude_characters='{}"\\', exclude_categories=["Cs"]))


@given(
    PLAIN, st.dictionaries(st.text(min_size=2, max_size=5), st.text(max_size=5) | st.integers(), max_size=4), PLAIN
)
def test_an_object_among_words_is_found(before: str, others: dict[str, Any], after: str) -> None:
    assume(not any(map(_MARK.search, (before, after))))  # an object behind "<thinking>" is a thought
    assume(not _ASIDE.search(before))  # and one behind "draft" may be no verdict
    assume(_DECLINES.isdisjoint(name.casefold() for name in others))  # and one with an error is none
    assert (
        read(
            Small,
            f"{before.replace('</think>', '')}{json.dumps({**others, 'a': 3})} {after.replace('</think>', '')}",
        ).a
        == 3
    )


NESTED = '{"a": ["</think>", '


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"',
        "{}",
        '{"a":[',
        '{"b":0}',
        'x{"</think>',
        "</think>",
        NESTED,
        '{"a":"</think>',
        "{ ",
        '{"a":1,"x":"\\"',
        "<think ",
        "<|end|> ",
        "e.g. {",
    ],
)
@pytest.mark.parametrize("end", ["", "}", '"' + "1," * 200_000])
@pytest.mark.parametrize("times", [500, MAX_REPLY_CHARS])
def test_a_megabyte_of_braces_takes_linear_time_and_little_memory(piece: str, end: str, times: int) -> None:
    text = (piece * times)[: MAX_REPLY_CHARS - len(end)] + end
    before_s = time.thread_time()
    tracemalloc.start()
    try:
        with pytest.raises(JudgeInvalidOutput):
            read(Small, text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    taken_s = time.thread_time() - before_s
    assert taken_s < 2.0 or taken_s < 2.0 * cpu.slower()
    assert peak < 30_000_000


@pytest.mark.parametrize("prompt_id", PROMPT_IDS)
def test_the_name_of_a_prompt_may_wrap_the_reply(prompt_id: str) -> None:
    assert read(SufficiencyReply, json.dumps({prompt_id: {"sufficient": False}})).sufficient is False
