"""What happened inside a run, step by step: the raw material of the child spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ragtrace.model import Message, Passage, RagRecord, Usage

Operation = Literal["chat", "text_completion", "embeddings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a step failed: the exception's type and its clamped, redacted message."""

    kind: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """One retriever call. `key` and `parent_key` link a leaf to its composite retriever. Times are Unix ns."""

    started_ns: int
    ended_ns: int
    query: str
    passages: tuple[Passage, ...]
    source: str | None = None
    top_k: int | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    """One reranker call: what came in, what came out in its new order, with the reranker's own scores."""

    started_ns: int
    ended_ns: int
    candidates: tuple[Passage, ...]
    passages: tuple[Passage, ...]
    model: str | None = None
    top_n: int | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One model call. `first_chunk_s`: seconds from its start to the first streamed chunk."""

    started_ns: int
    ended_ns: int
    operation: Operation = "chat"
    model: str | None = None
    provider: str | None = None
    response_model: str | None = None
    response_id: str | None = None
    inputs: tuple[Message, ...] = ()
    outputs: tuple[Message, ...] = ()
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    first_chunk_s: float | None = None
    is_in_process: bool = False
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool by the application or its agent; arguments and result are text, "" when unknown."""

    started_ns: int
    ended_ns: int
    name: str
    arguments: str = ""
    result: str = ""
    call_id: str | None = None
    description: str | None = None
    key: str | None = None
    parent_key: str | None = None
    failure: Failure | None = None


Step = Retrieval | Rerank | Generation | ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished run: its record, its steps in the order in which they ended, and what made it fail."""

    record: RagRecord
    steps: tuple[Step, ...]
    started_ns: int
    ended_ns: int
    failure: Failure | None = None
    prompt_ids: tuple[str, ...] | None = None
