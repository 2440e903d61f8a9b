"""Facts of a request, and defaults of an integration for requests without them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from ragtrace.capture.declared import NOTHING, Declared
from ragtrace.capture.guard import guarded, kind_of, record_wrong_call
from ragtrace.capture.values import told
from ragtrace.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.capture.recorder import Recorder
    from ragtrace.capture.run import Run

_ADDED = frozenset({"tags", "metadata"})
_NAMES = {"prompt": "prompt_name"}  # of a request's facts, where the run has another name
_FACTS = ("session", "user", "corpus", "corpus_version")
_MOST_TAGS = 256  # that are read; an iterator may have no end


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The recorder of an integration, and its defaults for every run.

    Example:
        >>> Defaults(tags="beta").tags
        ('beta',)
    """

    recorder: Recorder | None = field(default=None, compare=False)
    workflow: str | None = None
    session: str | None = None
    user: str | None = None
    corpus: str | None = None
    corpus_version: str | None = None
    k: int | None = None
    tags: Iterable[str] = ()
    declared: Declared = NOTHING

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tags_of(self.tags))


def tags_of(given: object) -> tuple[str, ...]:
    """Return the tags of anything as texts, at most 256; never raises. A text or a number is one tag.

    An iterator that raises gives the tags before that, and is counted as a loss.

    Example:
        >>> tags_of("vip"), tags_of(["vip", "beta"]), tags_of(7), tags_of(None)
        (('vip',), ('vip', 'beta'), ('7',), ())
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not hasattr(type(given), "__iter__"):
        return (_tag(given),)
    found: list[str] = []
    try:
        for tag in islice(cast("Iterable[object]", given), _MOST_TAGS):
            found.append(_tag(tag))  # noqa: PERF401 - what came before an error stays
    except Exception as error:  # the application's iterator may raise anything
        why = f"they cannot be read ({kind_of(error)})"
        record_wrong_call("with tags", why, site="ragtrace.capture.run_context.tags_of")
    return tuple(found)


def _tag(given: object) -> str:
    scalar = None if isinstance(given, str) and not isinstance(given, Enum) else plain(given)
    return told(given if scalar is None else scalar)


def unsaid(run: Run, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request says beyond what was said of the run before; tags and metadata add up.

    Args:
        run: an open run.
        said: facts by the names that `describe` takes.
    """
    return {name: fact for name, fact in said.items() if name in _ADDED or _NAMES.get(name, name) not in run.said}


@guarded
def describe(run: Run, defaults: Defaults, said: Mapping[str, Any]) -> None:
    """Write onto a run what its request says, else the defaults; tags add up.

    Args:
        run: an open run.
        defaults: what holds where the request says nothing.
        said: question, session, user, corpus, corpus_version, prompt, k, tags, metadata, reference and labels, as
            they came.
    """
    run.declare(defaults.declared, "handler")
    if question := told(said.get("question")):
        run.declare_question(question)
    facts = {name: fact for name in _FACTS if (fact := told(said.get(name)) or getattr(defaults, name))}
    if facts:
        run.set_attributes(**facts)
    if prompt := said.get("prompt"):
        run.set_attributes(prompt=prompt)
    if tags := (*defaults.tags, *tags_of(said.get("tags"))):
        run.add_tags(tags)
    if metadata := said.get("metadata"):
        run.add_metadata(metadata)
    if (k := said.get("k", defaults.k)) is not None:
        run.set_k(k)
    if (reference := said.get("reference")) is not None:
        run.reference(reference)
    if (labels := said.get("labels")) is not None:
        run.set_labels(labels)
