"""Model calls of a run: what goes in, what comes out, what streams."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded, prompt_text
from ragtrace.model import Message, added_usage
from ragtrace_llamaindex.models import (
    asked_of,
    facts_in,
    is_in_process,
    messages_of,
    model_of,
    provider_of,
    reply_in,
    usage_in,
)

if TYPE_CHECKING:
    from inspect import BoundArguments

    from ragtrace_llamaindex.tree import ModelCall

_provider = lru_cache(maxsize=256)(provider_of)
_in_process = lru_cache(maxsize=256)(is_in_process)


@guarded
def take_asked(node: ModelCall, bound: BoundArguments, instance: Any) -> None:
    """Take the rendered prompt of a model call."""
    owner: Any = type(instance)
    node.model = model_of(instance)
    node.provider = _provider(owner)
    node.is_in_process = _in_process(owner)
    if node.kind == "embedding":
        node.operation = "embeddings"
        return
    asked = asked_of(bound)
    node.operation = "text_completion" if isinstance(asked, str) else "chat"
    node.messages = messages_of(asked)
    run = node.tree.run
    root = node.tree.root
    if run is not None and not node.is_inner and root is not None and root.kind != "retriever":
        run.add_prompt(prompt_text(node.messages))


@guarded
def report_call(node: ModelCall, response: Any, error: BaseException | None, ended_ns: int) -> None:
    """Report a model call that has ended, with what it said by then."""
    tree = node.tree
    run = tree.run
    stream, node.stream = node.stream, None  # the two refer to each other
    if run is None:
        return
    reply = reply_in(response)
    streamed = stream.text if stream is not None else ""
    said = reply.content if reply is not None else ""
    text = streamed if len(streamed) > len(said) else said  # a last chunk may hold the whole or its own piece
    usage = usage_in(response)
    if not node.is_inner and node.kind == "model":
        with tree.lock:  # calls in parallel add up
            tree.last_text = text or tree.last_text
            tree.last_model = node.model
            tree.usage = added_usage(tree.usage, usage)
    if reply is None or text is streamed:
        outputs = (Message(role="assistant", content=text),) if text else ()
    else:
        outputs = (reply,)
    response_model, response_id, reasons = facts_in(response)
    run.generated(
        operation=node.operation,
        model=node.model,
        provider=node.provider,
        response_model=response_model,
        response_id=response_id,
        inputs=node.messages,
        outputs=outputs,
        usage=usage,
        finish_reasons=reasons,
        first_chunk_s=node.first_chunk_s,
        is_in_process=node.is_in_process,
        started_ns=node.started_ns,
        ended_ns=ended_ns,
        parent_key=node.within_key,
        error=error,
    )
