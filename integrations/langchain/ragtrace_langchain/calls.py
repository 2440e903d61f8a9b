"""Model and tool calls of a run: their inputs and outputs."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from ragtrace.capture import guarded, prompt_text
from ragtrace.model import added_usage
from ragtrace_langchain.beginnings import ask
from ragtrace_langchain.control import is_control_flow
from ragtrace_langchain.documents import documents_in, new_documents, text_of
from ragtrace_langchain.extract import content_text, turns_in
from ragtrace_langchain.models import model_facts, reply_of
from ragtrace_langchain.selection import take_prompt, take_shown_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.outputs import LLMResult

    from ragtrace_langchain.models import Reply
    from ragtrace_langchain.tree import ModelCall, ToolCall


@guarded
def take_asked(
    node: ModelCall,
    prompt: Sequence[Any],
    serialized: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    kwargs: Mapping[str, Any],
) -> None:
    """Take the rendered prompt of a model call."""
    node.facts = model_facts(serialized, metadata, kwargs.get("invocation_params"), node.name)
    node.messages = turns_in(prompt, is_prompt=True)
    for above in node.enclosing():
        above.has_model = True
    tree = node.tree
    if not tree.has_query and (node.parent is None or tree.is_block(node.parent)):
        ask(tree, prompt)
    if node.within is None:  # a prompt inside a retriever asks for other queries, not for the answer
        tree.has_model = True
        tree.spoken_ns = node.started_ns
        take_shown_tools(node, prompt)
        if tree.waiting is not None:
            take_prompt(tree)
        tree.run.add_prompt(prompt_text(node.messages))


@guarded
def report_call(node: ModelCall, response: LLMResult | None, error: BaseException | None) -> None:
    """Report a model call that has ended, with what it said by then."""
    reply = reply_of(response)
    text = reply.text or "".join(node.streamed)
    tree = node.tree
    if node.within is None:
        with tree.lock:  # calls in parallel add up
            tree.spoken_ns = time.time_ns()
            tree.last_text = text or tree.last_text
            tree.last_called = reply.called
            tree.last_model = node.facts.model if node.facts else node.name
            tree.usage = added_usage(tree.usage, reply.usage)
    _generated(node, reply, text, None if error is None or is_control_flow(error) else error)


@guarded
def report_tool(node: ToolCall, output: Any, error: BaseException | None) -> None:
    """Report a tool call that has ended; one that found documents is a search."""
    if new_documents(output, node.inputs):
        node.tree.has_retriever = True
        node.tree.searched_ns = node.started_ns
    node.tree.run.tool_called(
        node.name,
        arguments=_arguments(node.arguments),
        result=_result(output),
        call_id=node.call_id or getattr(output, "tool_call_id", None),
        description=node.description,
        started_ns=node.started_ns,
        key=node.call_key,
        parent_key=node.parent.within_key if node.parent is not None else None,
        error=None if error is None or is_control_flow(error) else error,
    )


def _arguments(given: Any) -> Any:
    return json.dumps(given, default=str, ensure_ascii=False) if isinstance(given, dict) else given


def _result(output: Any) -> Any:
    if isinstance(output, ToolMessage):
        return content_text(output.content, is_prompt=True)
    documents = documents_in(output)
    return output if documents is None else "\n\n".join(map(text_of, documents))


def _generated(node: ModelCall, reply: Reply, text: str, error: BaseException | None) -> None:
    facts = node.facts
    outputs = reply.outputs or (turns_in([("assistant", text)]) if text else ())
    node.tree.run.generated(
        operation=node.operation,
        model=facts.model if facts else node.name,
        provider=facts.provider if facts else None,
        response_model=reply.response_model,
        response_id=reply.response_id,
        inputs=node.messages,
        outputs=outputs,
        usage=reply.usage,
        finish_reasons=reply.finish_reasons,
        first_chunk_s=node.first_chunk_s,
        is_in_process=facts.is_in_process if facts else False,
        started_ns=node.started_ns,
        key=node.key or None,
        parent_key=node.within_key,
        error=error,
    )
