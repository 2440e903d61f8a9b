"""Panels over real HTTP: seeds, one series for all repeats, what cannot be a panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import ConfigError
from ragtrace.judges import (
    ConsensusPanel,
    JudgePanel,
    JudgeParameters,
    LLMJudge,
    OpenAIChat,
    OverlapJudge,
    Reseeded,
    ScriptedChat,
    make_judge,
    make_judges,
)
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.scoring import Caps, JudgeLimiter
from tests.guards.judge_server import Answer, completion, refusal
from tests.unit.judges.records import record

if TYPE_CHECKING:
    from tests.guards.judge_server import JudgeServer, Request


def graded(request: Request) -> Answer:
    """The grade hangs on the seed, as it may at a real server."""
    grade = {42: 5, 43: 4, 44: 3}.get(request.body.get("seed", 0), 1)
    return Answer(body=completion({"attempted": True, "reason": "", "grade": grade}))


async def score(judge: Any, name: str = "faithfulness_1to5") -> Any:
    try:
        return (await evaluate(select([name]), EvalContext(record("The lab is in Oslo."), judge=judge)))[0]
    finally:
        await judge.aclose()


@pytest.mark.parametrize("limiter", [None, JudgeLimiter(host="here", caps=Caps())], ids=["free", "limited"])
async def test_each_repeat_sends_a_seed_of_its_own(judge_server: JudgeServer, limiter: JudgeLimiter | None) -> None:
    judge_server.always = graded
    panel = make_judges("openai:seeds", JudgeParameters(base_url=judge_server.url, limiter=limiter), repeats=3)
    found = await score(panel)
    assert sorted(request.body["seed"] for request in judge_server.requests) == [42, 43, 44]
    assert sorted(found.details["panel"]["judges"][0]["scores"]) == [3.0, 4.0, 5.0]
    assert (found.value, found.llm_calls, found.input_tokens, found.output_tokens) == (4.0, 3, 360, 21)
    bodies = [{**request.body, "seed": 0, "messages": 0} for request in judge_server.requests]
    assert bodies[0] == bodies[1] == bodies[2]


async def test_one_run_sends_the_seed_42(judge_server: JudgeServer) -> None:
    judge_server.always = graded
    found = await score(make_judges("openai:one-seed", JudgeParameters(base_url=judge_server.url)))
    assert (judge_server.requests[0].body["seed"], found.value) == (42, 5.0)
    assert "panel" not in found.details


async def test_a_server_that_refuses_a_seed_gets_none(judge_server: JudgeServer) -> None:
    judge_server.always = lambda request: (
        refusal(400, "Unknown parameter: 'seed'", param="seed") if "seed" in request.body else graded(request)
    )
    found = await score(make_judges("openai:seedless", JudgeParameters(base_url=judge_server.url), repeats=2))
    assert found.details["panel"]["judges"][0]["scores"] == [1.0, 1.0]


async def test_several_models_at_one_server(judge_server: JudgeServer) -> None:
    judge_server.always = graded
    found = await score(
        make_judges(
            "openai:p1, openai:p2", JudgeParameters(base_url=judge_server.url), repeats=2, consensus="median"
        )
    )
    asked = sorted((request.body["model"], request.body["seed"]) for request in judge_server.requests)
    assert asked == [("p1", 42), ("p1", 43), ("p2", 42), ("p2", 43)]
    assert (found.value, found.details["panel"]["mean_abs_diff"]) == (4.5, 0.0)


def test_the_seed_is_part_of_nothing_but_the_request() -> None:
    judge = LLMJudge(OpenAIChat("m", base_url="http://127.0.0.1:9/v1"))
    again = judge.with_seed(43)
    assert (again.name, again.tasks) == (judge.name, judge.tasks)
    assert {task: again.version(task) for task in judge.tasks} == {
        task: judge.version(task) for task in judge.tasks
    }
    assert again.nugget_cache is not judge.nugget_cache


def test_protocols() -> None:
    panel = ConsensusPanel([LLMJudge(ScriptedChat())], repeats=2)
    assert isinstance(panel, JudgePanel)
    assert not isinstance(panel.members[0], JudgePanel)
    assert isinstance(panel.members[0], Reseeded)
    assert not isinstance(OverlapJudge(), Reseeded)
    assert panel.tasks == frozenset()


def test_one_name_and_one_run_is_no_panel() -> None:
    assert isinstance(make_judges("overlap"), OverlapJudge)
    key = JudgeParameters(api_key="k")
    assert make_judges("openai:m", key).version("audit") == make_judge("openai:m", key).version("audit")


@pytest.mark.parametrize(
    ("spec", "form", "message"),
    [
        ("", {}, "a name is missing"),
        ("openai:a,,openai:b", {}, "a name is missing"),
        ("openai:a,", {}, "a name is missing"),
        ("openai:a,openai:a", {}, "holds openai:a twice"),
        ("overlap", {"repeats": 2}, "'overlap' never changes its mind"),
        ("openai:a,overlap", {"repeats": 2}, "'overlap' never changes its mind"),
        ("openai:a", {"repeats": 21}, "repeats of a panel are 1 to 20, got 21"),
        ("openai:a", {"repeats": 0}, "repeats of a panel are 1 to 20, got 0"),
        ("openai:a", {"consensus": "median"}, "taken over several judges"),
        ("openai:a,openai:b", {"consensus": "mode"}, "is mean or median, got 'mode'"),
        ("openai:a,openia:b", {}, "unknown judge 'openia'; did you mean 'openai'"),
        ("openai:a,openai:", {}, "needs a model"),
    ],
)
def test_what_is_no_panel_is_said_in_one_line(spec: str, form: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_judges(spec, JudgeParameters(api_key="k"), **form)
    assert "\n" not in str(caught.value)


def test_a_panel_needs_a_judge() -> None:
    with pytest.raises(ConfigError, match="at least one judge"):
        ConsensusPanel([])
