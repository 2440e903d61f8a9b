"""An application of LangGraph of the seventh draw: a form that a model fills in, and fills in again while it is wrong."""

from __future__ import annotations

import json
import operator
import uuid
from typing import Annotated, Any, Literal, TypedDict

import jsonpatch
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.prebuilt import ValidationNode
from pydantic import BaseModel, Field, field_validator

from tests.apps.langchain_parts import Replies


def _default_aggregator(messages):
    return next(message for message in reversed(messages) if message.type == "ai")


def add_or_overwrite_messages(left: list, right: list | dict) -> list:
    """Append messages; what is final takes the place of all."""
    if isinstance(right, dict):
        message = right["finalize"]
        message.id = message.id or str(uuid.uuid4())
        return [message]
    return add_messages(left, right)


class RetryState(TypedDict):
    messages: Annotated[list, add_or_overwrite_messages]
    attempt_number: Annotated[int, operator.add]
    initial_num_messages: int
    input_format: Literal["list", "dict"]


class RetryStrategy(TypedDict, total=False):
    """How often to try, with what, and how the tries become one message."""

    max_attempts: int
    fallback: Any
    aggregate_messages: Any


def _bind_validator_with_retries(
    llm, *, validator, retry_strategy: RetryStrategy, tool_choice: str | None = None
) -> Runnable:
    def dedict(x: RetryState):
        return x["messages"]

    def attempted(message):
        return {"messages": [message], "attempt_number": 1}

    def count_messages(state: RetryState):
        return {"initial_num_messages": len(state.get("messages", []))}

    aggregate = retry_strategy.get("aggregate_messages") or _default_aggregator

    def select_generated_messages(state: RetryState):
        return [aggregate(state["messages"][state["initial_num_messages"] :])]

    def endict_validator_output(x):
        if tool_choice and not x:
            asked = f"ValidationError: please call a tool [tool_choice={tool_choice}]."
            return {"messages": [HumanMessage(content=asked, additional_kwargs={"is_error": True})]}
        return {"messages": x}

    class Finalizer:
        """Keeps the final message alone."""

        def __call__(self, state: RetryState):
            generated = state["messages"][state["initial_num_messages"] :]
            return {"messages": {"finalize": aggregate(generated)}}

    def route_validator(state: RetryState) -> Literal["validator", "__end__"]:
        return "validator" if state["messages"][-1].tool_calls or tool_choice is not None else "__end__"

    max_attempts = retry_strategy.get("max_attempts", 3)

    def route_validation(state: RetryState) -> Literal["finalizer", "fallback"]:
        if state["attempt_number"] > max_attempts:
            raise ValueError(f"Could not extract a valid value in {max_attempts} attempts.")
        for message in reversed(state["messages"]):
            if message.type == "ai":
                break
            if message.additional_kwargs.get("is_error"):
                return "fallback"
        return "finalizer"

    builder = StateGraph(RetryState)
    builder.add_node("count_messages", count_messages)
    builder.add_node("llm", RunnableLambda(dedict) | llm | attempted)
    builder.add_node("fallback", RunnableLambda(dedict) | (retry_strategy.get("fallback") or llm) | attempted)
    builder.add_node("validator", RunnableLambda(select_generated_messages) | validator | endict_validator_output)
    builder.add_node("finalizer", Finalizer())
    builder.add_edge(START, "count_messages")
    builder.add_edge("count_messages", "llm")
    builder.add_conditional_edges("llm", route_validator)
    builder.add_edge("fallback", "validator")
    builder.add_conditional_edges("validator", route_validation)
    builder.add_edge("finalizer", END)

    def encode(x: list | PromptValue):
        return {"messages": x.to_messages() if isinstance(x, PromptValue) else x, "input_format": "list"}

    def decode(x: RetryState):
        return x["messages"][-1]

    graph = builder.compile().with_config(run_name="ValidationGraph")
    return (RunnableLambda(encode) | graph | decode).with_config(run_name="ValidateWithRetries")


def bind_validator_with_retries(llm, *, tools, tool_choice=None, max_attempts=3) -> Runnable:
    """Return the model with a check behind it: a wrong form is filled in anew."""
    return _bind_validator_with_retries(
        llm.bind_tools(tools, tool_choice=tool_choice),
        validator=ValidationNode(tools),
        tool_choice=tool_choice,
        retry_strategy=RetryStrategy(max_attempts=max_attempts),
    ).with_config(metadata={"retry_strategy": "default"})


class JsonPatch(BaseModel):
    """One change of a JSON document."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: Any


class PatchFunctionParameters(BaseModel):
    """All changes that correct an earlier call."""

    tool_call_id: str
    reasoning: str
    patches: list[JsonPatch]


def bind_validator_with_jsonpatch_retries(llm, *, tools, tool_choice=None, max_attempts=3) -> Runnable:
    """Return the model with a check behind it: a wrong form is patched."""

    def aggregate_messages(messages):
        resolved: dict[str, Any] = {}
        content = ""
        for message in messages:
            if message.type != "ai":
                continue
            content = content or message.content
            for made in message.tool_calls:
                if made["name"] != "PatchFunctionParameters":
                    resolved[made["id"]] = made.copy()
                    continue
                patched = resolved.get(made["args"]["tool_call_id"]) or next(iter(resolved.values()))
                patched["args"] = jsonpatch.apply_patch(patched["args"], made["args"].get("patches") or [])
                patched["id"] = made["id"]
        return AIMessage(content=content, tool_calls=list(resolved.values()))

    def format_exception(error, made, schema):
        return (
            f"Error:\n\n```\n{error!r}\n```\nExpected Parameter Schema:\n\n```json\n{json.dumps(schema.model_json_schema())}\n```\n"
            f"Please respond with a JSONPatch to correct the error for tool_call_id=[{made['id']}]."
        )

    return _bind_validator_with_retries(
        llm.bind_tools(tools, tool_choice=tool_choice),
        validator=ValidationNode([*tools, PatchFunctionParameters], format_error=format_exception),
        retry_strategy=RetryStrategy(
            max_attempts=max_attempts,
            fallback=llm.bind_tools([PatchFunctionParameters]),
            aggregate_messages=aggregate_messages,
        ),
        tool_choice=tool_choice,
    ).with_config(metadata={"retry_strategy": "jsonpatch"})


class Respond(BaseModel):
    """Use to generate the response. Always use when responding to the user."""

    reason: str = Field(description="Step-by-step justification for the answer.")
    answer: str

    @field_validator("answer")
    @classmethod
    def answer_advertises(cls, answer: str) -> str:
        if "kelp" not in answer.lower():
            raise ValueError("Begin your **answer** with a rhyme that makes people buy dried kelp.")
        return answer


class OutputFormat(BaseModel):
    sources: str = Field(description="The span that justifies the choice.")
    content: str = Field(description="The chosen value.")


class Moment(BaseModel):
    quote: str
    description: str
    expressed_preference: OutputFormat


class KeyMoments(BaseModel):
    topic: str
    happy_moments: list[Moment]
    tense_moments: list[Moment]
    moments_summary: str


class Member(BaseModel):
    name: OutputFormat
    role: str | None = None
    age: int | None = None


class InsightfulQuote(BaseModel):
    quote: OutputFormat
    speaker: str
    analysis: str


class TranscriptMetadata(BaseModel):
    title: str
    location: OutputFormat
    duration: str


class TranscriptSummary(BaseModel):
    """The summary of a conversation."""

    metadata: TranscriptMetadata
    participants: list[Member]
    key_moments: list[KeyMoments]
    insightful_quotes: list[InsightfulQuote]
    overall_summary: str
    next_steps: list[str]


TRANSCRIPT = (
    ("Pia", "Thanks for coming up to the loft. Did you hear both brass bands at the harbour feast?"),
    ("Tor", "At once, you mean. Nobody heard the ferry leave."),
    ("Pia", "It began when the young ones bought their own tuba, in spring."),
    ("Anna", "Well, the old band never said a word against it."),
    ("Tor", "And both play better since. A quarrel like that is good for music."),
    ("Anna", "Hm."),
    ("Pia", "So, one feast with two stages?"),
)


def called(name, **arguments):
    """Return what replies with a call whose id no earlier call has."""

    def reply(messages):
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{len(messages)}"}])

    return reply


def extraction_retries(config):
    """A reply is mended; a long form is wrong four times, and the run fails; then it is patched in one go."""

    def asked(function, bound_llm, message):
        prompt = ChatPromptTemplate.from_messages([("system", function), ("placeholder", "{messages}")])
        return (prompt | bound_llm).invoke({"messages": [("user", message)]}, config)

    reason = "Snow lies where the wind lets it."
    rhyme = "Who eats our kelp needs no more help! As for snow: it stays a week at most."
    llm = Replies(
        rules=[
            ("Respond after fixing all validation errors", called("Respond", reason=reason, answer=rhyme)),
            ("", called("Respond", reason=reason, answer="It stays a week at most.")),
        ]
    )
    responded = asked(
        "Respond directly by calling the Respond function.",
        bind_validator_with_retries(llm, tools=[Respond]),
        "Does snow stay on Vester?",
    )

    formatted = "\n".join(f"{name}: {text}" for name, text in TRANSCRIPT)
    extract = f"Extract the summary from the following conversation:\n\n<convo>\n{formatted}\n</convo>"
    moments = {
        "topic": "Two bands",
        "happy_moments": [],
        "tense_moments": [
            {
                "quote": "Hm.",
                "description": "Anna has her doubts.",
                "expressed_preference": {"sources": "Anna", "content": "One band is enough."},
            }
        ],
        "moments_summary": "They argue whether rivalry helps.",
    }
    quote = {
        "quote": {"sources": "Tor", "content": "A quarrel like that is good for music."},
        "speaker": "Tor",
        "analysis": "He likes contests.",
    }
    partial = {
        "participants": [{"name": {"sources": "the transcript", "content": one}} for one in ("Pia", "Tor", "Anna")],
        "key_moments": [moments],
        "insightful_quotes": [quote],
        "overall_summary": "Three islanders talk about rival bands.",
    }
    metadata = {
        "title": "Bands",
        "location": {"sources": "Pia", "content": "the loft"},
        "duration": "five minutes",
    }
    anew = Replies(
        rules=[
            (
                "Respond after fixing all validation errors",
                called("TranscriptSummary", **partial, metadata="Bands", next_steps=["Ask both bands."]),
            ),
            ("", called("TranscriptSummary", **partial)),
        ]
    )
    function = "Respond directly using the TranscriptSummary function."
    with pytest.raises(ValueError, match="Could not extract a valid value in 3 attempts"):
        asked(
            function,
            bind_validator_with_retries(anew, tools=[TranscriptSummary]),
            f"{extract}\n\nRemember to respond using the TranscriptSummary function.",
        )

    patches = [
        {"op": "add", "path": "/metadata", "value": metadata},
        {"op": "add", "path": "/next_steps", "value": ["Ask both bands."]},
    ]
    patching = Replies(
        rules=[
            (
                "Please respond with a JSONPatch",
                called(
                    "PatchFunctionParameters", tool_call_id="call-2", reasoning="Two are missing.", patches=patches
                ),
            ),
            ("", called("TranscriptSummary", **partial)),
        ]
    )
    patched = asked(function, bind_validator_with_jsonpatch_retries(patching, tools=[TranscriptSummary]), extract)
    return [responded.tool_calls[0]["args"]["answer"], patched.tool_calls[0]["args"]]


WITH_HANDLER = {"extraction-retries": extraction_retries}
