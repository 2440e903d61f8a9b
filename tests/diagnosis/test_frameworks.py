"""30 runs of the bed through each kind of application, behind each extractor: the verdicts that the evidence allows.

With labels 28 of 30 are right. Without labels none is wrong: a stage that cannot be known is `undetermined`. Both hold
with the bed's judge and with the offline one.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest
from msgspec.structs import replace

from ragtrace.judges import Judge, LLMJudge, OverlapEmbedder, OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import verdict_of
from ragtrace.settings import DEFAULT_METRICS
from tests.diagnosis.bed import cases
from tests.diagnosis.frameworks import EXTRACTORS, LANGCHAIN, captured_through
from tests.diagnosis.llamaindex import LLAMAINDEX
from tests.diagnosis.world import WorldJudge

if TYPE_CHECKING:
    from ragtrace.model import RagRecord, Verdict
    from tests.diagnosis.bed import Case
    from tests.diagnosis.frameworks import Framework

DRAWN = random.Random(30).sample(cases(), 30)
FRAMEWORKS: dict[str, Framework] = {
    **{f"langchain {name}": one for name, one in LANGCHAIN.items()},
    **{f"llamaindex {name}": one for name, one in LLAMAINDEX.items()},
}

JUDGES: dict[str, Judge] = {
    "world": LLMJudge(WorldJudge(required={case.query: case.required for case in DRAWN}), grade_cache="off"),
    "overlap": OverlapJudge(),
}
# The records of all frameworks are alike to a judge: the offline one reads those of two.
RUNS = [
    *(("world", name) for name in FRAMEWORKS),
    *(("overlap", name) for name in ("langchain chain", "llamaindex engine")),
]
# Of the verdicts without labels. The offline judge never knows whether the contexts hold the answer.
LEAST_RIGHT = {"world": 24, "overlap": 13}


class Found(NamedTuple):
    """The verdict on a run, and the right one."""

    case: Case
    right: Verdict
    verdict: Verdict | None


async def diagnosed(record: RagRecord, judge: str) -> Verdict | None:
    ctx = EvalContext(record, judge=JUDGES[judge], embedder=OverlapEmbedder())
    results = await evaluate(select(DEFAULT_METRICS), ctx)
    return next(verdict_of(result) for result in results if result.name == "diagnosis")


def told(found: list[Found]) -> str:
    return "\n".join(f"{it.case.fault}: {it.verdict}, right is {it.right}" for it in found)


@pytest.mark.parametrize(("judge", "name"), RUNS)
@pytest.mark.parametrize("extractor", EXTRACTORS)
async def test_with_labels_the_verdict_is_right_and_without_them_none_is_wrong(
    judge: str, name: str, extractor: str
) -> None:
    records = [captured_through(FRAMEWORKS[name], case, extractor, case.labels) for case in DRAWN]
    found = [
        Found(case, case.expected("labels"), await diagnosed(record, judge))
        for case, record in zip(DRAWN, records, strict=True)
    ]
    wrong = [it for it in found if it.verdict != it.right]
    assert len(wrong) <= 2, told(wrong)
    found = [
        Found(case, case.expected("neither"), await diagnosed(replace(record, labels=None), judge))
        for case, record in zip(DRAWN, records, strict=True)
    ]
    wrong = [it for it in found if it.verdict not in {it.right, "undetermined"}]
    assert not wrong, told(wrong)
    right = sum(it.verdict == it.right for it in found)
    assert right >= LEAST_RIGHT[judge], told([it for it in found if it.verdict != it.right])


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_labels_alone_tell_a_record_with_them_from_one_without(name: str) -> None:
    case = DRAWN[0]
    labelled, plain = (captured_through(FRAMEWORKS[name], case, "none", given) for given in (case.labels, None))
    assert labelled.labels is not None
    assert plain.labels is None
    assert (labelled.query, labelled.answer, labelled.pools) == (plain.query, plain.answer, plain.pools)
