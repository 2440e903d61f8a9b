"""Facts about a request: those of `instrument`, of an `instrumented` block, and of a `request` block."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from llama_index_instrumentation.dispatcher import active_instrument_tags

from ragtrace.capture import tags_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ragtrace.capture import Defaults


_asked: ContextVar[dict[str, Any] | None] = ContextVar("ragtrace_llamaindex_request", default=None)


@contextmanager
def request(
    *,
    question: str | None = None,
    workflow: str | None = None,
    session: str | None = None,
    user: str | None = None,
    corpus: str | None = None,
    corpus_version: str | None = None,
    prompt: str | None = None,
    reference: str | None = None,
    labels: Mapping[str, object] | None = None,
    k: int | None = None,
    tags: Iterable[str] = (),
    metadata: Mapping[str, object] | None = None,
) -> Iterator[None]:
    """Describe the runs begun inside the block; tasks that are started in it carry the description along.

    A block inside another adds to it: what it says replaces, tags and metadata add up. Outside `instrument` it does
    nothing.

    Args:
        question: the question itself, where no name of the input tells it.
        workflow: name of the application.
        session: conversation id.
        user: end user's id.
        corpus: name of the index searched.
        corpus_version: its version.
        prompt: name of the prompt template, with its version behind a colon.
        reference: the reference answer.
        labels: ``{passage id: grade 1 to 5}``, or that under ``grades`` beside universe, scale and version.
        k: cut-off of @K metrics; default the number of contexts delivered.
        tags: free labels.
        metadata: further facts; the setting ``span_metadata`` names those that are kept.

    Example:
        >>> with request(session="s-42", tags=["beta"]):
        ...     said()["session"]
        's-42'
    """
    token = _asked.set(
        _merged(
            {
                "question": question,
                "workflow": workflow,
                "session": session,
                "user": user,
                "corpus": corpus,
                "corpus_version": corpus_version,
                "prompt": prompt,
                "reference": reference,
                "labels": labels,
                "k": k,
                "tags": tags,
                "metadata": metadata,
            }
        )
    )
    try:
        yield
    finally:
        _asked.reset(token)


def _merged(facts: dict[str, object]) -> dict[str, object]:
    outer = _asked.get() or {}
    new = {name: value for name, value in facts.items() if value is not None and name != "tags"}
    if "metadata" in new:
        new["metadata"] = {**outer.get("metadata", {}), **_mapping(new["metadata"])}
    return {**outer, **new, "tags": (*outer.get("tags", ()), *tags_of(facts["tags"]))}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def said() -> dict[str, object]:
    """Return what the blocks around the caller say, also LlamaIndex's ``instrument_tags``; empty outside them.

    Example:
        >>> said()
        {}
        >>> from llama_index_instrumentation.dispatcher import instrument_tags
        >>> with instrument_tags({"tenant": "t-1", "tags": ["beta"]}):
        ...     said()
        {'tags': ('beta',), 'metadata': {'tenant': 't-1'}}
    """
    given = active_instrument_tags.get()
    return _with_instrument_tags(_asked.get() or {}, given) if given else _asked.get() or {}


def _with_instrument_tags(asked: dict[str, Any], given: object) -> dict[str, object]:
    """Return what a request says, behind the framework's own tags, whose names and values are metadata."""
    if not isinstance(given, dict):
        return asked
    facts = dict(given)
    labels = facts.pop("tags", ())
    tags = (*tags_of(labels if isinstance(labels, str | list | tuple) else ()), *asked.get("tags", ()))
    return {**asked, "tags": tags, "metadata": {**facts, **asked.get("metadata", {})}}


class Holder:
    """The defaults in force; changed by `install` alone, under its lock.

    Attributes:
        base: those of `instrument`.
        blocks: those of the open `instrumented` blocks of all threads, the newest last.
    """

    def __init__(self) -> None:
        self.base: Defaults | None = None
        self.blocks: tuple[Defaults, ...] = ()

    def current(self) -> Defaults | None:
        """Return those of a run that begins now: of the block around it, else the newest block, else the base."""
        own = inside.get()
        blocks = self.blocks
        if own is not None and any(block is own for block in blocks):
            return own
        return blocks[-1] if blocks else self.base


inside: ContextVar[Defaults | None] = ContextVar("ragtrace_llamaindex_defaults", default=None)
holder = Holder()
