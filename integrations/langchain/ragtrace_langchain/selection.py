"""Infers pool, selection and reranker steps from what retrievers and chains hand on (CAPTURE.md, selection rule).

LangChain reports no reranking: a compressor fires no callback and an LCEL reranker is a plain chain. What came
in and what came out tell: a composite retriever against the retrievers inside it, a chain's list of documents
against the documents it was given or found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import guarded
from ragtrace_langchain.documents import (
    documents_in,
    hit_of,
    is_documents_only,
    new_documents,
    rerank_score_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace_langchain.documents import Hit
    from ragtrace_langchain.tree import Node, Tree


@guarded
def take_retrieved(node: Node, documents: Iterable[Any], ended_ns: int) -> None:
    """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
    tree = node.tree
    with tree.lock:
        hits = _hits(tree, documents)
        out = _by_key(hits)
        if node.sources:
            _take_composite(node, hits, out, ended_ns)
        else:
            _report_retrieval(node, hits, ended_ns)
            tree.pool.update(out)
        _deliver(node, out, ended_ns)


@guarded
def take_chain(node: Node, inputs: Any, outputs: Any, ended_ns: int) -> None:
    """Take what a chain or tool gave out, where that is a list of documents."""
    chosen = new_documents(outputs, inputs)
    if chosen is None or (node.has_model and not is_documents_only(outputs)):
        return  # documents beside an answer are what was cited, not what went into the prompt
    given = node.given or documents_in(inputs)
    tree = node.tree
    with tree.lock:
        base = _seen(tree, given) if given else {}
        hits = _hits(tree, chosen)
        out = _by_key(hits)
        if base or node.found:
            _take_choice(node, out, _candidates(node, out, base), ended_ns)
        elif not all(key in tree.pool for key in out):
            # A function that searches without a retriever: its documents come from nowhere else.
            _report_retrieval(node, hits, ended_ns)
            tree.pool.update(out)
            _deliver(node, out, ended_ns)


@guarded
def settle(root: Node) -> None:
    """Set the run's selection to all that was delivered, when its last reranker saw only a part of that.

    An agent that searches twice, or an ensemble over compressors, delivers the results of several choices.
    """
    tree = root.tree
    if tree.is_narrowed and root.kind != "retriever" and list(root.found) != tree.last_chosen:
        tree.run.selected(root.found.values(), selection_source=tree.selection_source)


def _hits(tree: Tree, documents: Iterable[Any]) -> list[Hit]:
    known, seen = tree.known, tree.seen
    hits = []
    for document in documents:
        hit = hit_of(document, known)
        seen.setdefault(hit["key"], hit)
        hits.append(hit)
    return hits


def _seen(tree: Tree, documents: Iterable[Any]) -> dict[str, Hit]:
    """Return documents as they were when first met in this run."""
    known, seen = tree.known, tree.seen
    out: dict[str, Hit] = {}
    for document in documents:
        key = known.name(document)[1]
        if key not in out:
            out[key] = seen.get(key) or seen.setdefault(key, hit_of(document, known))
    return out


def _by_key(hits: Iterable[Hit]) -> dict[str, Hit]:
    out: dict[str, Hit] = {}
    for hit in hits:
        out.setdefault(hit["key"], hit)
    return out


def _report_retrieval(node: Node, hits: Iterable[Hit], ended_ns: int, *, is_fused: bool = False) -> None:
    node.tree.run.retrieved(
        hits,
        source=node.source,
        query=node.query or None,
        top_k=node.top_k,
        started_ns=node.started_ns,
        ended_ns=ended_ns,
        key=node.key or None,
        parent_key=node.within_key,
        is_fused=is_fused,
    )


def _take_composite(node: Node, hits: list[Hit], out: dict[str, Hit], ended_ns: int) -> None:
    inner = node.found
    is_same = list(inner) == list(out)
    covers = all(key in out for key in inner)
    if covers and (is_same or node.sources > 1):
        _report_retrieval(node, hits, ended_ns, is_fused=not node.is_narrowed)
        out.update((key, inner[key]) for key in out if key in inner)  # with the scores of the last stage inside
        return
    _report_choice(node, out, inner, node.found_ns or node.started_ns, ended_ns, "retriever", node.key)
    _report_retrieval(node, [node.tree.seen[key] for key in out], ended_ns)


def _candidates(node: Node, out: dict[str, Hit], given: dict[str, Hit]) -> dict[str, Hit]:
    """Return what the chain chose from: the choice made inside it, what was found inside, or its input."""
    for base in (node.chosen, node.found, given):
        if base and all(key in base for key in out):
            return base
    return {**given, **node.found}


def _take_choice(node: Node, out: dict[str, Hit], base: dict[str, Hit], ended_ns: int) -> None:
    tree = node.tree
    if list(base) == list(out) and all(_rescored(tree, hit) is None for hit in out.values()):
        return
    if base is node.chosen and list(base) == list(out):
        return
    started_ns = max(node.started_ns, node.found_ns)
    if all(key in base for key in out):
        _report_choice(node, out, base, started_ns, ended_ns, "chain", node.within_key)
    else:
        _note_choice(tree, out, "chain")  # merged, expanded or rewritten passages: a selection without ranks
        tree.run.selected(out.values(), selection_source="chain")
    for above in (node, *node.enclosing()):
        above.is_narrowed = True
        above.chosen = out
        above.found = {**{key: hit for key, hit in above.found.items() if key not in base}, **out}
        above.found_ns = ended_ns


def _report_choice(
    node: Node,
    out: dict[str, Hit],
    base: dict[str, Hit],
    started_ns: int,
    ended_ns: int,
    source: str,
    parent_key: str | None,
) -> None:
    tree = node.tree
    for hit in out.values():
        hit["score"] = _rescored(tree, hit)
    is_whole_pool = base.keys() == tree.pool.keys()
    tree.run.reranked(
        out.values(),
        candidates=None if is_whole_pool else list(base.values()),
        model=node.name,
        started_ns=started_ns,
        ended_ns=ended_ns,
        parent_key=parent_key or None,
        selection_source=source,
    )
    node.is_narrowed = True
    _note_choice(tree, out, source)


def _note_choice(tree: Tree, out: dict[str, Hit], source: str) -> None:
    tree.is_narrowed = True
    tree.selection_source = source
    tree.last_chosen = list(out)


def _rescored(tree: Tree, hit: Hit) -> float | None:
    seen = tree.seen.get(hit["key"])
    before = None if seen is None or seen is hit else seen["metadata"]
    return rerank_score_of(hit["metadata"], before)


def _deliver(node: Node, out: dict[str, Hit], ended_ns: int) -> None:
    """Let the nodes above know what a retriever delivered, up to the composite it stands in."""
    for above in node.enclosing():
        above.found.update(out)
        above.sources += 1
        above.found_ns = ended_ns
        above.is_narrowed = above.is_narrowed or node.is_narrowed
        above.chosen = None
