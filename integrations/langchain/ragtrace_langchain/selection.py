"""Infers pool, selection and reranker steps from what retrievers and chains hand on (CAPTURE.md, selection rule).

LangChain reports no reranking: a compressor fires no callback and an LCEL reranker is a plain chain. What came
in and what came out tell: a composite retriever against the retrievers inside it, a chain's list of documents
against the documents it was given or found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.capture import ReadPassages, guarded, ranked, reranked_passage
from ragtrace_langchain.documents import (
    documents_in,
    is_documents_only,
    new_documents,
    own_ids,
    read_documents,
    rerank_score_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace_langchain.documents import Hit
    from ragtrace_langchain.tree import Node, Tree


@guarded
def take_retrieved(node: Node, documents: Iterable[Any], ended_ns: int) -> None:
    """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
    tree = node.tree
    with tree.lock:
        passages, out = _met(tree, documents, node.source)
        if node.sources:
            _take_composite(node, passages, out, ended_ns)
        else:
            _report_retrieval(node, passages, ended_ns)
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
        passages, out = _met(tree, chosen, None if base or node.found else node.source)
        if base or node.found:
            _take_choice(node, out, _candidates(node, out, base), ended_ns)
        elif not all(key in tree.pool for key in out):
            # A function that searches without a retriever: its documents come from nowhere else.
            _report_retrieval(node, passages, ended_ns)
            tree.pool.update(out)
            _deliver(node, out, ended_ns)


@guarded
def take_marked(node: Node, documents: Iterable[Any]) -> None:
    """Take documents that the application itself says it chose; what is inferred later leaves them."""
    tree = node.tree
    with tree.lock:
        _, out = _met(tree, documents, None)
        for rank, (key, hit) in enumerate(out.items(), start=1):
            out[key] = (reranked_passage(hit[0], rank, _rescored(tree, key, hit)), hit[1])
        tree.run.selected(_passages(out), selection_source="explicit", is_final=True)


@guarded
def take_compressed(
    node: Node,
    given: Sequence[Any],
    documents: Iterable[Any],
    *,
    model: str,
    top_n: int | None,
    started_ns: int,
    ended_ns: int,
) -> None:
    """Take what a wrapped compressor made of the documents that it was given."""
    tree = node.tree
    with tree.lock:
        base = _seen(tree, given)
        _, out = _met(tree, documents, None)
        if all(key in base for key in out):
            _report_choice(
                node, out, base, started_ns, ended_ns, "explicit", node.key or node.within_key, model, top_n
            )
        else:
            _note_choice(tree, out, "explicit")  # merged or rewritten passages have no rank in the pool
            tree.run.selected(_passages(out), selection_source="explicit")
        _deliver_choice(node, out, base, ended_ns)


@guarded
def settle(root: Node) -> None:
    """Set the run's selection to all that was delivered, when its last reranker saw only a part of that.

    An agent that searches twice, or an ensemble over compressors, delivers the results of several choices.
    """
    tree = root.tree
    if not tree.pool and tree.given:
        with tree.lock:
            tree.run.restored(_passages(_seen(tree, tree.given)))
    if tree.is_narrowed and root.kind != "retriever" and list(root.found) != tree.last_chosen:
        tree.run.selected(_passages(root.found), selection_source=tree.selection_source)


def _met(tree: Tree, documents: Iterable[Any], source: str | None) -> tuple[ReadPassages, dict[str, Hit]]:
    """Return documents as passages, and by key as they are now; each is remembered as it was first."""
    documents = list(documents)
    again = _met_again(tree, documents) if tree.seen else None
    if again is not None:
        return again
    hits = read_documents(documents, tree.known, tree.run.reader, source)
    out = hits.by_key()
    tree.seen = {**out, **tree.seen} if tree.seen else out.copy()
    return hits.passages, out


def _met_again(tree: Tree, documents: Sequence[Any]) -> tuple[ReadPassages, dict[str, Hit]] | None:
    """Return documents that were all met before as they are now, as most rerankers hand them on; else None.

    Their passages are known: 8 of them in 8 us, 23 us when they are read.
    """
    ids = own_ids(documents)
    if ids is None or len(set(ids)) != len(ids):
        return None
    found = tree.seen
    if not found.keys() >= set(ids):
        return None
    out: dict[str, Hit] = {}
    for key, document in zip(ids, documents, strict=True):
        passage, facts = found[key]
        if document.metadata != facts or document.page_content != passage.text:
            return None
        out[key] = (passage, facts)  # a hit of its own: what `seen` holds itself was first met in this step
    return ranked([passage for passage, _ in out.values()]), out


def _seen(tree: Tree, documents: Sequence[Any]) -> dict[str, Hit]:
    """Return documents as they were when first met in this run."""
    keys = tree.known.keys(documents)
    if not tree.seen.keys() >= set(keys):
        _met(tree, documents, None)
    return {key: tree.seen[key] for key in keys}


def _passages(hits: dict[str, Hit]) -> ReadPassages:
    return ranked([passage for passage, _ in hits.values()])


def _report_retrieval(node: Node, passages: ReadPassages, ended_ns: int, *, is_fused: bool = False) -> None:
    node.tree.run.retrieved(
        passages,
        source=node.source,
        query=node.query or None,
        top_k=node.top_k,
        started_ns=node.started_ns,
        ended_ns=ended_ns,
        key=node.key or None,
        parent_key=node.within_key,
        is_fused=is_fused,
    )


def _take_composite(node: Node, passages: ReadPassages, out: dict[str, Hit], ended_ns: int) -> None:
    inner = node.found
    is_same = list(inner) == list(out)
    covers = all(key in out for key in inner)
    if covers and (is_same or node.sources > 1):
        _report_retrieval(node, passages, ended_ns, is_fused=not node.is_narrowed)
        out.update((key, inner[key]) for key in out if key in inner)  # with the scores of the last stage inside
        return
    _report_choice(node, out, inner, node.found_ns or node.started_ns, ended_ns, "retriever", node.key)
    _report_retrieval(node, ranked([node.tree.seen[key][0] for key in out]), ended_ns)


def _candidates(node: Node, out: dict[str, Hit], given: dict[str, Hit]) -> dict[str, Hit]:
    """Return what the chain chose from: the choice made inside it, what was found inside, or its input."""
    for base in (node.chosen, node.found, given):
        if base and all(key in base for key in out):
            return base
    return {**given, **node.found}


def _take_choice(node: Node, out: dict[str, Hit], base: dict[str, Hit], ended_ns: int) -> None:
    tree = node.tree
    if list(base) == list(out) and (base is node.chosen or not _is_scored_anew(tree, out, base)):
        return
    # Handed on as the last choice left them: a step that looks at them, or copies their list.
    is_handed_on = bool(out) and not node.found and tree.last_chosen == list(out)
    if is_handed_on and tree.chosen_facts == [facts for _, facts in out.values()]:
        return
    started_ns = max(node.started_ns, node.found_ns)
    if all(key in base for key in out):
        _report_choice(node, out, base, started_ns, ended_ns, "chain", node.within_key)
    else:
        _note_choice(tree, out, "chain")  # merged, expanded or rewritten passages: a selection without ranks
        tree.run.selected(_passages(out), selection_source="chain")
    _deliver_choice(node, out, base, ended_ns)


def _deliver_choice(node: Node, out: dict[str, Hit], base: dict[str, Hit], ended_ns: int) -> None:
    """Let the nodes above know what of their documents was left by a choice, up to the composite it stands in."""
    for above in (node,) if node.kind == "retriever" else (node, *node.enclosing()):
        above.is_narrowed = True
        above.chosen = out
        is_all = above.found.keys() <= base.keys()  # mostly, and seen in a quarter of the time
        rest = {} if is_all else {key: hit for key, hit in above.found.items() if key not in base}
        above.found = {**rest, **out}
        above.found_ns = ended_ns


def _report_choice(
    node: Node,
    out: dict[str, Hit],
    base: dict[str, Hit],
    started_ns: int,
    ended_ns: int,
    source: str,
    parent_key: str | None,
    model: str | None = None,
    top_n: int | None = None,
) -> None:
    tree = node.tree
    for rank, (key, hit) in enumerate(out.items(), start=1):
        out[key] = (reranked_passage(hit[0], rank, _rescored(tree, key, hit, base)), hit[1])
    is_whole_pool = base.keys() == tree.pool.keys()
    tree.run.reranked(
        _passages(out),
        candidates=None if is_whole_pool else _passages(base),
        model=model or node.name,
        top_n=top_n,
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
    tree.told.update(out)
    tree.chosen_facts = [facts for _, facts in out.values()]


def _rescored(tree: Tree, key: str, hit: Hit, base: dict[str, Hit] | None = None) -> float | None:
    seen = tree.seen.get(key)
    if seen is not None and seen is not hit:
        return rerank_score_of(hit[1], seen[1])
    if base and any(hit[1] == facts for _, facts in base.values()):
        return None  # a rewritten passage with the metadata of the one that it was made of
    return rerank_score_of(hit[1], None)


def _is_scored_anew(tree: Tree, out: dict[str, Hit], base: dict[str, Hit]) -> bool:
    """Tell whether documents have a score that they had not when they were told of last."""
    return any(rerank_score_of(hit[1], tree.told.get(key, base[key])[1]) is not None for key, hit in out.items())


def _deliver(node: Node, out: dict[str, Hit], ended_ns: int) -> None:
    """Let the nodes above know what a retriever delivered, up to the composite it stands in."""
    for above in node.enclosing():
        above.found.update(out)
        above.sources += 1
        above.found_ns = ended_ns
        above.is_narrowed = above.is_narrowed or node.is_narrowed
        above.chosen = None
