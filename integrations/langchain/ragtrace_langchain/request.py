"""Per-request data: what `config["metadata"]` and tags say of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import Defaults, describe, guarded, shown, tags_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.capture import Run

PREFIX = "ragtrace."
_OWN = {name: PREFIX + name for name in ("session", "user", "corpus", "corpus_version", "k", "reference", "labels")}
# Names that applications and LangGraph use already, for what is not given under our own.
_COMMON = {
    "session": ("session_id", "conversation_id", "thread_id"),
    "user": ("user_id",),
}
_DESCRIBED = ("session", "user", "corpus", "corpus_version", "k")
# Tags that LangChain and LangGraph set on their own steps.
_INNER_TAGS = ("seq:step:", "map:key:", "graph:step:", "langsmith:")
_NOTHING = Defaults()
_OWN_NAMES = frozenset({"LangGraph", "unnamed"})


def workflow_of(defaults: Defaults, metadata: Mapping[str, Any], name: str) -> str | None:
    """Return a run's workflow: ``ragtrace.workflow``, then the handler's argument, then the name given to the root.

    None where there is none of these: LangChain's own names are not given. The recorder's setting then holds.

    Example:
        >>> workflow_of(Defaults(workflow="support"), {}, "RunnableSequence")
        'support'
        >>> workflow_of(Defaults(), {}, "LangGraph") is None
        True
    """
    given = None if name in _OWN_NAMES or name.startswith("Runnable") else name
    return shown(metadata.get(f"{PREFIX}workflow")) or defaults.workflow or given


def said_in(defaults: Defaults, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request's metadata say: under our own keys, and under common ones what is else unknown.

    Example:
        >>> said_in(Defaults(user="u1"), {"thread_id": 7, "user_id": 8, "ragtrace.k": 4})
        {'k': 4, 'session': 7}
    """
    said = {name: metadata[key] for name, key in _OWN.items() if key in metadata}
    for name, keys in _COMMON.items():
        if not shown(said.get(name)) and not getattr(defaults, name):
            said.update((name, metadata[key]) for key in reversed(keys) if shown(metadata.get(key)))
    return said


@guarded
def describe_configured(run: Run, configurable: Mapping[str, Any]) -> None:
    """Write what a call is configured with onto a run that nothing else says it of.

    LangGraph copies a thread's id into the metadata; what looks up a conversation's memory does not.
    """
    for name, keys in _COMMON.items():
        if name not in run.facts:
            run.set_attributes(
                **{name: next((shown(configurable[key]) for key in keys if shown(configurable.get(key))), None)}
            )


@guarded
def describe_request(run: Run, defaults: Defaults, metadata: Mapping[str, Any], tags: Iterable[str] | None) -> None:
    """Write the per-request data onto a run."""
    own = [tag for tag in tags_of(tags) if not tag.startswith(_INNER_TAGS)]
    if metadata or own or defaults != _NOTHING:
        describe(run, defaults, {**said_in(defaults, metadata), "tags": own, "metadata": metadata})


@guarded
def describe_joined(run: Run, defaults: Defaults, metadata: Mapping[str, Any], tags: Iterable[str] | None) -> None:
    """Write the per-request data of a chain onto the application's own run, where that says nothing of it."""
    own = [tag for tag in tags_of(tags) if not tag.startswith(_INNER_TAGS)]
    if metadata or own or defaults != _NOTHING:
        said = {**{name: getattr(defaults, name) for name in _DESCRIBED}, **said_in(defaults, metadata)}
        missing = {name: value for name, value in said.items() if name not in run.facts}
        describe(run, Defaults(tags=defaults.tags), {**missing, "tags": own, "metadata": metadata})
