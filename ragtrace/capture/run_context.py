"""Facts of a request, and defaults of an integration for requests without them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragtrace.capture.guard import guarded
from ragtrace.capture.sanitize import shown, tags_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragtrace.capture.integration_run import IntegrationRun
    from ragtrace.capture.recorder import Recorder

_FACTS = ("session", "user", "corpus", "corpus_version")


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tags_of(self.tags))


@guarded
def describe(run: IntegrationRun, defaults: Defaults, said: Mapping[str, Any]) -> None:
    """Write onto a run what its request says, else the defaults; tags add up.

    Args:
        run: an open run.
        defaults: what holds where the request says nothing.
        said: session, user, corpus, corpus_version, k, tags, metadata, reference and labels, as they came.
    """
    facts = {name: fact for name in _FACTS if (fact := shown(said.get(name)) or getattr(defaults, name))}
    if facts:
        run.set_attributes(**facts)
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
