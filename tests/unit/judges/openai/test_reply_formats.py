"""Every prompt's reply, in each format that models of 7B give, over HTTP: the same scores in as many calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.judges import LLMJudge
from ragtrace.metrics import EvalContext, evaluate
from ragtrace.prompts import PROMPT_IDS
from tests.guards.judge_server import Answer, completion
from tests.unit.judges.llm.obedient import Reply, parted
from tests.unit.judges.llm.test_injection import JUDGED, Signs, record, scored, values
from tests.unit.judges.openai.asking import chat_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.guards.judge_server import JudgeServer, Request

WORDS = {True: "Yes", False: "FALSE"}


def respelled(value: Any, node: Mapping[str, Any]) -> Any:
    """A reply with numbers and booleans as text, and words in other letters."""
    if node["type"] == "object":
        return {name: respelled(inner, node["properties"][name]) for name, inner in value.items()}
    if node["type"] == "array":
        return [respelled(inner, node["items"]) for inner in value]
    if "enum" in node and node["type"] == "string":
        return value.replace("_", " ").capitalize()
    return WORDS[value] if node["type"] == "boolean" else str(value)


def said(content: str | None, **more: Any) -> dict[str, Any]:
    body = completion(content)
    body["choices"][0]["message"] |= more
    return body


def called(reply: Any, name: str) -> dict[str, Any]:
    return said(None, tool_calls=[{"id": "c", "function": {"name": name, "arguments": json.dumps(reply)}}])


FORMATS: dict[str, Callable[[Any, str, Mapping[str, Any]], dict[str, Any]]] = {
    "a tool call": lambda reply, name, _: called(reply, name),
    "a legacy call": lambda reply, name, _: said("", function_call={"name": name, "arguments": json.dumps(reply)}),
    "a wrapper": lambda reply, *_: said(json.dumps({"result": reply})),
    "a wrapper under the prompt's name": lambda reply, name, _: said(json.dumps({name: reply})),
    "a call as text": lambda reply, name, _: said(json.dumps({"name": name, "arguments": reply})),
    "braces behind it": lambda reply, *_: said(f'{json.dumps(reply)}\nI used {{"note": "x"}} and {{so}}.'),
    "thoughts and a fence": lambda reply, *_: said(
        f"<think>{{}}</think>\n```json\n{json.dumps(reply, indent=1)}\n```"
    ),
    "other letters": lambda reply, _, schema: said(json.dumps(respelled(reply, schema))),
    "all of it": lambda reply, name, schema: called({"result": respelled(reply, schema)}, name),
}


@pytest.mark.parametrize("name", FORMATS)
async def test_every_prompt_is_read_in_each_format(judge_server: JudgeServer, name: str) -> None:
    asked: list[str] = []
    unsaid = ""

    def answer(request: Request) -> Answer:
        form = request.body["response_format"]["json_schema"]
        reply = Reply(json.loads(parted(request.body["messages"][1]["content"])[1]), obeys=False).of(form["schema"])
        if form["name"] == "audit":
            reply.pop(unsaid, None)
        asked.append(form["name"])
        return Answer(200, FORMATS[name](reply, form["name"], form["schema"]))

    judge_server.always = answer
    model = chat_of(judge_server)
    for metric, way in JUDGED:
        wanted, plain = await scored([metric], record(), way)
        unsaid = way.unsaid
        before = len(asked)
        case = EvalContext(record(), judge=LLMJudge(model, **way.form), embedder=Signs(), options=way.options)
        assert values(await evaluate([metric], case)) == values(wanted), metric.spec.name
        assert asked[before:] == plain.prompts, metric.spec.name
    await model.aclose()
    assert set(asked) == set(PROMPT_IDS)
