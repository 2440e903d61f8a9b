"""Which scores decide whether a unit has its end, and what they say."""

from __future__ import annotations

import pytest

from ragtrace.judges import LLMJudge, OverlapEmbedder, ScriptedChat
from ragtrace.metrics import MetricOptions, select
from ragtrace.model import JudgeInfo, Score
from ragtrace.queues import MAX_ATTEMPTS
from ragtrace.scoring import Scorer, verdict_of
from tests import make

JUDGE = LLMJudge(ScriptedChat(always={}))


def score(model: str | None, said: str | None) -> Score:
    """Make a score: None is a value, ``na:...`` has no number by right, anything else is an error."""
    state = "ok" if said is None else "na" if said.startswith("na:") else "error"
    judge = JudgeInfo(model=model) if model else None
    return make.score(metric="m", value=1.0, state=state, reason=said and said.removeprefix("na:"), judge=judge)


def deciding(*scores: Score) -> list[Score]:
    scorer = Scorer(
        metrics=tuple(select(("answer_similarity",))),
        judge=JUDGE,
        embedder=OverlapEmbedder(),
        options=MetricOptions(),
    )
    return scorer.deciding(scores)


OFFLINE = score("embedder:overlap", None)
TIMEOUT, REFUSED, VALUE = (score(JUDGE.name, said) for said in ("judge_timeout", "judge_refused", None))
OVER = score(JUDGE.name, "budget_exceeded")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((OFFLINE, TIMEOUT), "again"),  # a number that costs no call is not what the unit was drawn for
        ((OFFLINE, TIMEOUT, VALUE), "scored"),
        ((OFFLINE, REFUSED), "invalid"),
        ((OFFLINE, REFUSED, TIMEOUT), "again"),  # one may pass
        ((OFFLINE, REFUSED, OVER), "again"),
        ((OFFLINE, score(JUDGE.name, "na:no_claims")), "scored"),
        ((score("embedder:e", "judge_timeout"), score(JUDGE.name, "na:no_claims")), "again"),
        ((OFFLINE, score(None, "internal_error")), "scored"),
        ((score("embedder:e", "judge_timeout"),), "again"),
        ((), "scored"),
    ],
)
def test_the_judge_s_verdicts_decide_where_it_gave_or_failed_any(scores, expected) -> None:
    outcome = verdict_of(deciding(*scores), 1)
    assert ("again" if outcome.retry_in_s is not None else outcome.state) == expected


def test_the_last_attempt_ends_apart_from_what_was_scored() -> None:
    outcome = verdict_of(deciding(OFFLINE, TIMEOUT), MAX_ATTEMPTS)
    assert (outcome.state, outcome.reason, outcome.retry_in_s) == ("invalid", "judge_timeout", None)
