"""Spans of one trace as trees, and the parts of them that are RAG runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ragtrace import semconv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ragtrace.ingest.dialects.base import SpanFacts
    from ragtrace.ingest.spans import ReceivedSpan


@dataclass(slots=True, eq=False)
class Node:
    """One span with its facts, None for a span of no dialect, and its children in the order of their start."""

    span: ReceivedSpan
    facts: SpanFacts | None
    dialects: tuple[str, ...] = ()
    children: list[Node] = field(default_factory=list)

    @property
    def role(self) -> str:
        """Role of the span; ``other`` without facts."""
        return self.facts.role if self.facts is not None else "other"


class RunNodes(NamedTuple):
    """The spans of one run: the root, which may be a span of no dialect, and the topmost spans with facts."""

    root: ReceivedSpan
    tops: tuple[Node, ...]


def runs_of(nodes: Sequence[Node]) -> list[RunNodes]:
    """Return the runs of one trace; see `ragtrace.ingest.reading.read_trace` for what is one run."""
    tops = _linked(nodes)
    # Where ragtrace itself captured the runs of a trace, other instrumentations tell of the same ones.
    if any(node.facts is not None and node.facts.summary is not None for node in nodes):
        return [RunNodes(node.span, (node,)) for node in _topmost(tops, is_own=True) if node.role == "root"]
    beside: dict[str, list[Node]] = {}
    for node in _topmost(tops):
        beside.setdefault(node.span.parent_id, []).append(node)
    spans = {node.span.span_id: node.span for node in nodes}
    return [run for parent, group in beside.items() for run in _split(group, spans.get(parent))]


def _linked(nodes: Sequence[Node]) -> list[Node]:
    """Give each node its children; return those whose parent is not here."""
    by_id = {node.span.span_id: node for node in nodes}
    tops: list[Node] = []
    for node in sorted(nodes, key=lambda node: node.span.started_ns):
        parent = by_id.get(node.span.parent_id)
        (tops if parent is None else parent.children).append(node)
    return tops


def _topmost(tops: Iterable[Node], *, is_own: bool = False) -> Iterator[Node]:
    """Yield the topmost spans that take part in a run, in order; nothing below an evaluation is one."""
    waiting = [*tops][::-1]
    while waiting:
        node = waiting.pop()
        if node.role == "evaluation":
            continue
        if node.role != "other" and (not is_own or node.span.scope == semconv.SCOPE):
            yield node
        else:
            waiting.extend(reversed(node.children))


def _split(group: Sequence[Node], parent: ReceivedSpan | None) -> Iterator[RunNodes]:
    """Yield the runs among the topmost spans of one parent.

    A chain that searched is a run. Steps beside each other, and chains that searched nothing, are one run
    together: an application that calls a retriever, and then a model, in one request.
    """
    whole = [node for node in group if node.role == "root" and _has_search(node)]
    yield from (RunNodes(node.span, (node,)) for node in whole)
    parts = [node for node in group if node not in whole]
    if any(node.role in {"retrieval", "rerank", "tool"} for node in parts) or not parts:
        joined = [parts] if parts else []
    else:
        joined = [[node] for node in parts if node.role == "root"]
        if steps := [node for node in parts if node.role != "root"]:
            joined.append(steps)
    for nodes in joined:
        root = parent if parent is not None and len(nodes) > 1 else nodes[0].span
        yield RunNodes(root, tuple(nodes))


def _has_search(node: Node) -> bool:
    return any(one.role in {"retrieval", "rerank"} for one, _ in walk([node]))


def walk(tops: Iterable[Node]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield spans from the top down, each with the steps around it, the outermost first; no evaluations."""
    waiting: list[tuple[Node, tuple[Node, ...]]] = [(node, ()) for node in [*tops][::-1]]
    while waiting:
        node, around = waiting.pop()
        if node.role == "evaluation":
            continue
        yield node, around
        # A chain of ten thousand retrievers in retrievers would cost its square.
        inner = (*around, node) if node.role in _STEPS and len(around) < _MOST_AROUND else around
        waiting.extend((child, inner) for child in reversed(node.children))


_STEPS = frozenset({"retrieval", "rerank", "generation", "tool"})
_MOST_AROUND = 32
