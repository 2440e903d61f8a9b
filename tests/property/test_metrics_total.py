"""Every registered metric is total: a number in its range or a state with a reason, whatever a judge replies."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragtrace.judges import ChatReply, ConsensusPanel, LLMJudge, PairSignals, ScriptedChat
from ragtrace.metrics import DeepRetriever, EvalContext, MetricOptions, all_metrics, evaluate, output
from ragtrace.model import (
    ERROR_REASONS,
    NA_REASONS,
    SKIP_REASONS,
    AnswerPart,
    Labels,
    MetricResult,
    Passage,
    Pool,
    RagRecord,
)
from ragtrace.prompts import load
from tests.property.replies_at_random import anything, sound
from tests.unit.judges.llm.obedient import parted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

pytestmark = pytest.mark.slow

REPAIR = "An earlier reply was"
WRONG_FORM = "not of the asked form"
TEXTS = ("The lab is in Oslo.", "Tea is served at four.", "  ", "It was built in 2010.")
PASSAGES = tuple(Passage(id=f"p{n}", text=text, rank=n) for n, text in enumerate(TEXTS, start=1))
RICH = RagRecord(
    id="r1",
    trace_id="0" * 32,
    query="Where is the lab?",
    answer="The lab is in Oslo. It was built in 2010.",
    reference="The lab in Oslo is of 2010.",
    pools=(Pool(stage="retrieved", passages=PASSAGES), Pool(stage="used", passages=PASSAGES[:3])),
    answer_parts=(
        AnswerPart(text="The lab is in Oslo.", citations=("p1", "p2", "gone", "p3")),
        AnswerPart(text="It was built in 2010.", citations=()),
    ),
)
GOLD = Labels(grades={f"p{n}": n for n in range(1, 5)}, label_scope="gold")
RECORDS = st.sampled_from([
    RICH,
    replace(RICH, labels=GOLD),
    replace(RICH, labels=Labels(grades={"p1": 5, "p4": 1}, label_scope="cache"), k=2),
    replace(RICH, pools=(Pool(stage="used", passages=(*PASSAGES[:2], PASSAGES[0])),), reference=None),
    replace(RICH, pools=(Pool(stage="used", passages=PASSAGES[:1] * 12),), answer_parts=()),
])  # fmt: skip
# "x" leads the alphabet, since an example that is blank ends at a missing input.
TEXT = st.text("xyz \u00e9\n\ud800", max_size=6)
IDS = st.sampled_from(["p1", "p2", "3", ""])
DRAWN_PASSAGES = st.lists(st.tuples(IDS, TEXT), min_size=1, max_size=4).map(
    lambda made: tuple(Passage(id=i, text=text, rank=n) for n, (i, text) in enumerate(made, start=1))
)
STRANGE = st.none() | st.booleans() | st.integers(-3, 60) | st.floats() | st.text(max_size=8)
ODD_RECORDS = st.builds(
    RagRecord,
    id=st.just("1"),
    query=TEXT,
    answer=TEXT,
    reference=st.none() | TEXT,
    k=st.none() | st.integers(-1, 5),
    pools=st.lists(st.builds(Pool, stage=st.sampled_from(["retrieved", "used"]), passages=DRAWN_PASSAGES), max_size=2)
    .map(tuple),
    answer_parts=st.lists(
        st.builds(AnswerPart, text=TEXT, citations=st.lists(IDS | st.just("gone"), max_size=3).map(tuple)), max_size=3
    ).map(tuple),
    labels=st.none()
    | st.builds(
        Labels,
        grades=st.dictionaries(IDS, st.integers(1, 5)) | st.dictionaries(IDS, STRANGE, max_size=4),
        label_scope=st.sampled_from(["gold", "cache", "pool", "shadow", "stratified"]),
    ),
)  # fmt: skip
OPTIONS = st.builds(
    MetricOptions,
    **{field.name: st.booleans() for field in fields(MetricOptions) if isinstance(field.default, bool)},
    k_values=st.sampled_from([(), (1, 3), (0,), (50,)]),
    n_questions=st.sampled_from([1, 3, 10]),
)
# On which scale the judge grades.
FORMS = st.sampled_from([{}, {"scale": "umbrela"}])
NUMBERS = st.floats() | st.sampled_from([0.0, 1.0, 0.5, -0.1, 1.1, 1e308, 5e-324])


class DrawnChat:
    """Replies with what `reply` gives for the prompt's schema and the data inside the fence."""

    name = "drawn"

    def __init__(self, reply: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]) -> None:
        self._reply = reply
        self.users: list[str] = []

    async def complete(self, *, user: str, schema: Mapping[str, Any], **_: Any) -> ChatReply:
        self.users.append(user)
        made = self._reply(schema, json.loads(parted(user)[1]))
        if isinstance(made, Exception):
            raise made
        return ChatReply(text=made, input_tokens=10, output_tokens=1)

    def repairs(self) -> int:
        return sum(REPAIR in parted(user)[2] for user in self.users)

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


class DrawnEmbedder:
    """Gives rows that were drawn, in turn; an exception is raised."""

    name = "drawn"

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    async def embed(self, texts: Sequence[str]) -> Any:
        if isinstance(self._rows, Exception):
            raise self._rows
        return np.array([self._rows[place % len(self._rows)] for place in range(len(texts))])

    async def aclose(self) -> None:
        """Nothing is open."""


class DrawnPairs:
    """A pair scorer that gives what was drawn."""

    name = "drawn"

    def __init__(self, numbers: Any) -> None:
        self._numbers = numbers

    def __call__(self, pairs: list[tuple[str, str]]) -> Any:
        if isinstance(self._numbers, Exception):
            raise self._numbers
        return self._numbers if isinstance(self._numbers, str) else list(self._numbers)[: len(pairs)]


class DrawnPairModel(DrawnPairs):
    """The same as a model that knows its window and tells contradictions apart."""

    version = "0"
    window = 64

    def size(self, premise: str, hypothesis: str) -> int:
        return len(premise.split()) + len(hypothesis.split())

    def signals(self, pairs: list[tuple[str, str]]) -> list[PairSignals]:
        return [PairSignals(consistency=number, contradiction=number) for number in self(pairs)]


def check(result: MetricResult) -> None:
    if result.state == "ok":
        bounds = output(result.name)
        assert result.value is not None
        assert math.isfinite(result.value)
        assert bounds.low <= result.value <= bounds.high
    else:
        assert result.value is None
        assert result.reason != "internal_error", result.details
        known = {"na": NA_REASONS, "error": ERROR_REASONS, "skipped": SKIP_REASONS}[result.state]
        assert result.reason in known or str(result.reason).startswith("missing_input:")
    json.dumps(dict(result.details), allow_nan=False)


SHADOWS = st.sampled_from([["one more", "and another"], [], None, [None, 3, {"text": 4}]])


@pytest.mark.parametrize("name", list(all_metrics()))
def test_every_metric_is_total(name: str) -> None:
    """Half of the examples have a judge of good will, so that the arithmetic behind the parser is reached as well."""
    metric = all_metrics()[name]
    seen: set[str] = set()

    @given(st.data())
    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def total(data: st.DataObject) -> None:
        replies = data.draw(st.sampled_from([sound_text, anything]))
        chat = DrawnChat(lambda schema, shown: data.draw(replies(schema, shown)))
        rows = st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=4)
        vectors = data.draw(rows | st.sampled_from([[[1.0]], [["x"]], [[]], OSError("gone")]))
        numbers = data.draw(
            st.lists(st.floats(0, 1), min_size=40, max_size=40)
            | st.lists(NUMBERS | st.sampled_from([None, "x"]), max_size=40)
            | st.sampled_from(["0.5", OSError("gone")])
        )
        deeper = data.draw(SHADOWS)
        case = EvalContext(
            data.draw(RECORDS),
            judge=LLMJudge(chat, **data.draw(FORMS)),
            embedder=DrawnEmbedder(vectors),
            pairs=data.draw(st.sampled_from([DrawnPairs, DrawnPairModel]))(numbers),
            options=data.draw(OPTIONS),
            deep_retriever=DeepRetriever(lambda _query, _top_k: deeper, rate=1.0),
        )
        results = asyncio.run(evaluate([metric], case))
        assert {result.name for result in results} == {one.name for one in metric.spec.outputs}
        for result in results:
            check(result)
        seen.update(result.state for result in results)
        assert sum(result.llm_calls for result in results) == len(chat.users)
        assert chat.repairs() <= len(evaluations(chat))

    needs = {*metric.spec.needs}
    # What needs several runs is computed over files alone, and is na of any one record.
    wanted = set() if "runs" in needs else {"ok"}
    if {"judge", "embedder", "pairs"} & needs:
        wanted.add("error")
    for _ in range(8):  # sixty draws missed `ok` of faithfulness once in some dozens of runs
        total()
        if wanted <= seen:
            break
    assert wanted <= seen
    assert ("ok" in seen) == ("runs" not in needs)


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_record_breaks_a_metric_under_one_judge_or_a_panel(data: st.DataObject) -> None:
    replies = data.draw(st.sampled_from([sound_text, anything]))
    chat = DrawnChat(lambda schema, shown: data.draw(replies(schema, shown)))
    judge = LLMJudge(chat, **data.draw(FORMS))
    if data.draw(st.booleans()):
        judge = ConsensusPanel([judge, LLMJudge(ScriptedChat(always={"attempted": True, "grade": 4}))], repeats=2)
    embedder = DrawnEmbedder(data.draw(st.sampled_from([[[1.0, 0.0], [0.6, 0.8]], [[0.0, 0.0]]])))
    metrics = list(all_metrics().values())
    ctx = EvalContext(data.draw(ODD_RECORDS), judge=judge, embedder=embedder, options=data.draw(OPTIONS))
    for result in asyncio.run(evaluate(metrics, ctx)):
        check(result)


def sound_text(schema: Mapping[str, Any], shown: Mapping[str, Any]) -> st.SearchStrategy[str]:
    return sound(schema, shown).map(json.dumps)


def evaluations(chat: DrawnChat) -> set[str]:
    """Grades are an evaluation of their own, shared between metrics; all else that one metric asks is one."""
    of_grades = {f"{load(name).task}\n" for name in ("grades", "umbrela")}
    return {"grades" if parted(user)[0] in of_grades else "own" for user in chat.users}


@pytest.mark.parametrize("name", list(all_metrics()))
def test_a_reply_of_the_schema_is_never_of_another_form(name: str) -> None:
    """A server with structured output holds to the schema; then no call is spent on a reply's form."""

    @given(st.data())
    @settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def fits(data: st.DataObject) -> None:
        chat = DrawnChat(lambda schema, shown: data.draw(sound_text(schema, shown)))
        case = EvalContext(
            replace(RICH, labels=None),
            judge=LLMJudge(chat, **data.draw(FORMS)),
            embedder=DrawnEmbedder([[1.0, 0.0], [0.6, 0.8]]),
            options=data.draw(OPTIONS),
        )
        results = asyncio.run(evaluate([all_metrics()[name]], case))
        assert not [user for user in chat.users if WRONG_FORM in parted(user)[2]]
        assert "judge_invalid_output" not in {result.reason for result in results}

    fits()


@pytest.mark.parametrize("name", list(all_metrics()))
async def test_a_reply_of_100_mb_is_refused_by_its_size(name: str) -> None:
    """It would be a sound reply if it were parsed: white space may stand around JSON. After one repair it is an error."""
    metric = all_metrics()[name]
    rng = np.random.default_rng(0)
    blanks = " " * 100_000_000
    huge = DrawnChat(lambda schema, shown: written(schema, rng) + blanks)
    embedder = DrawnEmbedder([[1.0, 0.0], [0.6, 0.8]])
    is_of_labels = "labels" in metric.spec.needs and not metric.spec.reads  # labels alone decide on a diagnosis
    record = replace(RICH, labels=GOLD) if is_of_labels else RICH
    results = await evaluate([metric], EvalContext(record, judge=LLMJudge(huge), embedder=embedder))
    if not huge.users:
        assert "judge" not in metric.spec.needs or {*metric.spec.needs} & {"labels", "embedder"}
        return
    assert len(huge.users) == 2
    assert huge.repairs() == 1
    assert {(result.state, result.reason) for result in results} == {("error", "judge_invalid_output")}


def written(schema: Mapping[str, Any], rng: np.random.Generator) -> str:
    """The smallest value of a schema."""
    empty: dict[str, Any] = {"string": "", "boolean": True, "integer": 1, "array": []}
    return json.dumps({name: empty[node["type"]] for name, node in schema["properties"].items()})
