"""Model calls of a run: what goes in, what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded, prompt_text
from ragtrace.model import added_usage
from ragtrace_langchain.beginnings import ask
from ragtrace_langchain.control import is_control_flow
from ragtrace_langchain.extract import turns_in
from ragtrace_langchain.models import model_facts, reply_of
from ragtrace_langchain.selection import take_prompt, take_shown_tools

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.outputs import LLMResult

    from ragtrace_langchain.models import Reply
    from ragtrace_langchain.tree import ModelCall


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
    node.messages = turns_in(prompt)
    for above in node.enclosing():
        above.has_model = True
    if node.parent is None:
        ask(node.tree, prompt)
    if node.within is None:  # a prompt inside a retriever asks for other queries, not for the answer
        take_shown_tools(node, prompt)
        take_prompt(node.tree)
        node.tree.run.prompted(prompt_text(node.messages))


@guarded
def report_call(node: ModelCall, response: LLMResult | None, error: BaseException | None) -> None:
    """Report a model call that has ended, with what it said by then."""
    reply = reply_of(response)
    text = reply.text or "".join(node.streamed)
    tree = node.tree
    if node.within is None:
        with tree.lock:  # calls in parallel add up
            tree.last_text = text or tree.last_text
            tree.last_called = reply.called
            tree.last_model = node.facts.model if node.facts else node.name
            tree.usage = added_usage(tree.usage, reply.usage)
    _generated(node, reply, text, None if error is None or is_control_flow(error) else error)


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
