"""Per-request data: what `config["metadata"]` and tags say of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ragtrace.capture import guarded, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.capture import Run

Fact = Literal["session", "user", "corpus", "corpus_version"]

PREFIX = "ragtrace."
# Names that applications and LangGraph use already, for what is not given under our own.
_COMMON = {
    "session": ("session_id", "conversation_id", "thread_id"),
    "user": ("user_id",),
}
# Tags that LangChain and LangGraph set on their own steps.
_INNER_TAGS = ("seq:step:", "map:key:", "graph:step:", "langsmith:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a handler says of every run, where the request's metadata do not."""

    workflow: str | None = None
    session: str | None = None
    user: str | None = None
    corpus: str | None = None
    corpus_version: str | None = None
    k: int | None = None
    tags: tuple[str, ...] = field(default=())


_NOTHING = Defaults()


def workflow_of(defaults: Defaults, metadata: Mapping[str, Any], name: str) -> str:
    """Return a run's workflow: the handler's argument, then ``ragtrace.workflow``, then the root's name.

    Example:
        >>> workflow_of(Defaults(), {"ragtrace.workflow": "support"}, "RunnableSequence")
        'support'
    """
    return defaults.workflow or _shown(metadata.get(f"{PREFIX}workflow")) or name


def facts_of(defaults: Defaults, metadata: Mapping[str, Any]) -> dict[Fact, str | None]:
    """Return session, user, corpus and its version: the request's metadata, then the handler's arguments.

    Example:
        >>> facts_of(Defaults(user="u1"), {"thread_id": 7})["session"]
        '7'
    """
    return {
        "session": _given(metadata, "session", defaults.session),
        "user": _given(metadata, "user", defaults.user),
        "corpus": _given(metadata, "corpus", defaults.corpus),
        "corpus_version": _given(metadata, "corpus_version", defaults.corpus_version),
    }


def _given(metadata: Mapping[str, Any], fact: Fact, default: str | None) -> str | None:
    own = _shown(metadata.get(PREFIX + fact))
    if own is not None or default is not None:
        return own if own is not None else default
    return next((name for key in _COMMON.get(fact, ()) if (name := _shown(metadata.get(key)))), None)


def _shown(value: Any) -> str | None:
    return shown(value) or None


@guarded
def describe(run: Run, defaults: Defaults, metadata: Mapping[str, Any], tags: Iterable[str] | None) -> None:
    """Write the per-request data onto a run."""
    if not metadata and not tags and defaults == _NOTHING:
        return
    run.about(**facts_of(defaults, metadata))
    own = [*defaults.tags, *(tag for tag in tags or () if not str(tag).startswith(_INNER_TAGS))]
    if own:
        run.tagged(own)
    k = metadata.get(f"{PREFIX}k", defaults.k)
    if isinstance(k, int) and not isinstance(k, bool):
        run.cut_at(k)
    reference = metadata.get(f"{PREFIX}reference")
    if reference is not None:
        run.reference(str(reference))
    if (labels := metadata.get(f"{PREFIX}labels")) is not None:
        run.labelled(labels)
