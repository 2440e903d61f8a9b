"""Infers pool, selection and reranker steps from what retrievers and chains hand on (CAPTURE.md, selection rule).

LangChain reports no reranking: a compressor fires no callback and an LCEL reranker is a plain chain. What came
in and what came out tell: a composite retriever against the retrievers inside it, a chain's list of documents
against the documents it was given or found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from ragtrace.capture import ReadPassages, are_joined, guarded, is_equal, ranked, reranked_passage
from ragtrace_langchain.control import is_control_flow
from ragtrace_langchain.documents import (
    documents_in,
    fields_of,
    is_documents_only,
    is_nested,
    is_reranked,
    lists_in,
    new_documents,
    own_ids,
    read_documents,
    rerank_score_of,
)
from ragtrace_langchain.extract import answer_in, question_in
from ragtrace_langchain.mappings import results_met
from ragtrace_langchain.tool_output import is_said_by_model, take_contexts, take_tool, take_tool_messages
from ragtrace_langchain.tree import Choice, Delivery, Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace_langchain.documents import Hit
    from ragtrace_langchain.tree import Tree


WIDENED = 2  # times as long as the passage that stands in it: neighbours were added, and no header
SHORTEST_PART_CHARS = 16  # a shorter text, as a grader's "no", stands in many an answer


@guarded
def take_retrieved(node: Node, documents: Iterable[Any], ended_ns: int) -> None:
    """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
    tree = node.tree
    with tree.lock:
        _take_waiting(tree)
        documents = tree.run.reader.first(documents)
        if tree.seen and not node.sources:
            tree.known.part(documents, tree.seen)
        passages, out = _met(tree, documents, node.source)
        if node.sources:
            _take_composite(node, passages, out, ended_ns)
        else:
            _report_retrieval(node, passages, ended_ns)
            _add_to_pool(tree, out)
        _deliver(node, out, ended_ns)


@guarded
def take_chain(node: Node, inputs: Any, outputs: Any, ended_ns: int) -> None:
    """Take what a chain or tool gave out, where that is a list of documents."""
    tree = node.tree
    chosen = _given_out(node, inputs, outputs)
    if node.given:
        _follow_order(node)
    if chosen is None or is_said_by_model(node, chosen):
        return
    is_beside = node.has_model and not is_documents_only(outputs)
    if is_beside and _is_answered(tree, outputs):
        return  # documents beside an answer are what was cited, not what went into the prompt
    given = node.given or documents_in(inputs) or results_met(inputs, tree.seen)
    with tree.lock:
        base = _seen(tree, given) if given else {}
        passages, out = _met(tree, chosen, None if base or node.found else node.source)
        is_added = _is_added_to(base, out, tree.pool) or _is_found_anew(node, outputs, base, out)
        if is_added and not node.found:
            rest = {key: hit for key, hit in out.items() if key not in base}
            _take_found(node, inputs, _passages(rest), rest, out, ended_ns)
        elif base or node.found:
            choice = Choice(node, out, _candidates(node, out, base), ended_ns)
            is_last = node.parent is None and is_documents_only(outputs)
            is_after = is_beside or _is_answered(tree, inputs)
            if not is_after and _is_fused(choice, inputs):
                _fuse(choice)
            else:
                _take_choice(choice, is_sure=is_last or not (is_after or _is_shown_before(choice)))
        elif all(key in tree.pool for key in out):
            if not _is_joined(out, tree) and not _is_given_one(inputs):
                choice = Choice(node, out, _delivered_with(tree, out), ended_ns)
                _take_reordered(choice)
        else:
            _take_found(node, inputs, passages, out, out, ended_ns)


def _take_reordered(choice: Choice) -> None:
    """Take documents of the pool where the input does not show what they were chosen or fused from."""
    tree = choice.node.tree
    if not tree.run.prompts and _is_whole(choice) and not _is_one_result(choice):
        _fuse(choice)
    else:
        _take_choice(choice, is_sure=not tree.run.prompts)


def _given_out(node: Node, inputs: Any, outputs: Any) -> list[Any] | None:
    """Return the documents that a step gave out; note its texts that stand in place of documents."""
    chosen = new_documents(outputs, inputs, node.name)
    if node.kind == "tool":
        return take_tool(node, outputs, chosen)
    if chosen is None and isinstance(outputs, list):
        chosen = results_met(outputs, node.tree.seen)
    if chosen is None and not node.tree.pool:
        take_contexts(node, inputs, outputs)
    return chosen


def _take_found(
    node: Node, inputs: Any, passages: ReadPassages, found: dict[str, Hit], out: dict[str, Hit], ended_ns: int
) -> None:
    """Take what a function found that searches without a retriever: the documents come from nowhere else."""
    _take_waiting(node.tree)
    node.query = node.query or question_in(inputs)
    _report_retrieval(node, passages, ended_ns)
    _add_to_pool(node.tree, found)
    _deliver(node, out, ended_ns)


@guarded
def take_prompt(tree: Tree) -> None:
    """Take the choice that waits for a prompt to follow it, as one does now."""
    if tree.waiting is not None:
        with tree.lock:
            _take_waiting(tree)


@guarded
def take_shown_tools(node: Node, prompt: Sequence[Any]) -> None:
    """Take what the tool messages of a prompt hold, where no event told of their tools."""
    last = prompt[-1] if prompt else None
    if getattr(last, "type", None) == "human" and type(getattr(last, "content", None)) is str:
        return  # a question in plain text: no tool message follows it, and it holds no document
    for tool, documents in take_tool_messages(node, prompt):
        take_chain(tool, None, documents, tool.started_ns)


@guarded
def take_failed(node: Node, error: BaseException) -> None:
    """Take back what a chain delivered before it failed: another attempt stands for it, if the root lives."""
    if is_control_flow(error) or not isinstance(error, Exception):
        return
    tree = node.tree
    with tree.lock:
        if node.parent is None:
            node.found = node.found or tree.taken_back
        elif node.found and node.kind != "retriever":
            for above in node.enclosing():
                above.found = {key: hit for key, hit in above.found.items() if hit is not node.found.get(key)}
                above.chosen = None if above.chosen is node.chosen else above.chosen
            tree.taken_back.update(node.found)


@guarded
def take_marked(node: Node, documents: Iterable[Any]) -> None:
    """Take documents that the application itself says it chose; what is inferred later leaves them."""
    tree = node.tree
    with tree.lock:
        _, out = _met(tree, documents, None)
        for rank, (key, hit) in enumerate(out.items(), start=1):
            out[key] = (reranked_passage(hit[0], rank, _rescored(tree, key, hit)), hit[1])
        tree.run.add_selected(_passages(out))


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
        _take_waiting(tree)
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
        _restore(tree, tree.given)
    if tree.is_narrowed and root.kind != "retriever" and list(root.found) != tree.last_chosen:
        found = root.found or (tree.pool if tree.last_chosen else {})  # none: what was chosen was taken back
        tree.run.selected(_passages(_kept(tree, found)), selection_source=tree.selection_source)
    if tree.is_pool_ordered:
        tree.run.set_candidates(_passages(tree.pool))
    if tree.known.renamed:
        _rename(tree)


def _rename(tree: Tree) -> None:
    """Give the documents that were met without an id of their own the one that came later."""
    named = {key: own for key, own in tree.known.renamed.items() if key in tree.seen}
    if named:
        firsts = {key: tree.seen[key][0] for key in named}
        tree.run.rename({(first.id, first.text): named[key] for key, first in firsts.items()})


def _restore(tree: Tree, given: Sequence[Any]) -> None:
    """Take documents that a chain was given for the pool, unless the run made no use of them.

    A conversation's state still holds the documents of the last turn when this one needs none.
    """
    with tree.lock:
        passages = _passages(_seen(tree, given))
    if tree.is_narrowed or tree.run.prompt_contains(passages):
        tree.run.set_candidates(passages)


def _kept(tree: Tree, found: dict[str, Hit]) -> dict[str, Hit]:
    """Return what was delivered less what was then discarded, as an attempt that a loop replaced by another.

    A delivery was discarded when no later prompt shows a passage of it, while one shows those of another.
    """
    last = {key: place for place, delivery in enumerate(tree.delivered) for key in delivery.hits}
    parts: dict[int, dict[str, Hit]] = {}
    for key, hit in found.items():
        parts.setdefault(last[key], {})[key] = hit
    shown = {
        place
        for place, part in parts.items()
        if tree.run.prompt_contains(_passages(part), since=tree.delivered[place].prompts)
    }
    return {key: hit for key, hit in found.items() if last[key] in shown} or found


def _met(tree: Tree, documents: Iterable[Any], source: str | None) -> tuple[ReadPassages, dict[str, Hit]]:
    """Return documents as passages, and by key as they are now; each is remembered as it was first."""
    documents = tree.run.reader.first(documents)
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
        if not is_equal(document.metadata, facts) or document.page_content != passage.text:
            return None
        out[key] = (passage, facts)  # a hit of its own: what `seen` holds itself was first met in this step
    return ranked([passage for passage, _ in out.values()]), out


def _seen(tree: Tree, documents: Sequence[Any]) -> dict[str, Hit]:
    """Return documents as they were when first met in this run."""
    documents = tree.run.reader.first(documents)
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


def _add_to_pool(tree: Tree, out: dict[str, Hit]) -> None:
    """Add what a search found to the pool; a passage that another search found before stays as it was there."""
    tree.pool.update({key: hit for key, hit in out.items() if key not in tree.pool} if tree.pool else out)


def _order_pool(tree: Tree, base: Iterable[str], out: dict[str, Hit]) -> None:
    """Put what was fused out of `base` into its new order, behind the rest of the pool."""
    fused = {*base, *out}
    tree.pool = {**{key: hit for key, hit in tree.pool.items() if key not in fused}, **out}


def _take_composite(node: Node, passages: ReadPassages, out: dict[str, Hit], ended_ns: int) -> None:
    inner = node.found
    is_same = list(inner) == list(out)
    if is_same or (node.sources > 1 and _covers(out, inner)):
        _report_retrieval(node, passages, ended_ns, is_fused=not node.is_narrowed)
        if not is_same and not node.is_narrowed:
            _order_pool(node.tree, inner, out)
        out.update((key, inner[key]) for key in out if key in inner)  # with the scores of the last stage inside
        return
    _report_choice(node, out, inner, node.found_ns or node.started_ns, ended_ns, "retriever", node.key)
    _report_retrieval(node, ranked([node.tree.seen[key][0] for key in out]), ended_ns)


def _covers(out: dict[str, Hit], inner: dict[str, Hit]) -> bool:
    """Tell whether all documents are in `out`, by key or, as retrievers mostly tell them apart, by text."""
    if all(key in out for key in inner):
        return True
    texts = {hit[0].text for hit in out.values()}
    return all(key in out or hit[0].text in texts for key, hit in inner.items())


def _is_fused(choice: Choice, inputs: Any) -> bool:
    """Tell whether a step made one list of all documents of several results, by reciprocal ranks for instance.

    A step that writes a reranker's score is a reranker.
    """
    node = choice.node
    if (len(node.tree.delivered) < 2 and not is_nested(inputs)) or not _is_whole(choice):
        return False
    if choice.base is node.found:
        return node.sources > 1 and not _is_one_result(choice)
    return is_nested(inputs) or _results_in(node.tree, inputs) > 1


def _is_whole(choice: Choice) -> bool:
    """Tell whether a step gave out all documents that it had, which no step had chosen before, and rated none."""
    node, out, base, _ = choice
    tree = node.tree
    if len(out) > len(base) or not all(key in base for key in out) or not _covers(out, base):
        return False
    if any(delivery.is_choice and delivery.hits.keys() & base.keys() for delivery in tree.delivered):
        return False
    return not any(is_reranked(hit[1], tree.seen[key][1]) for key, hit in out.items() if key in tree.seen)


def _is_one_result(choice: Choice) -> bool:
    """Tell whether one result holds all that a step gave out: several searches found the same, or one was made."""
    return any(delivery.hits.keys() >= choice.out.keys() for delivery in choice.node.tree.delivered)


def _results_in(tree: Tree, inputs: Any) -> int:
    """Return how many different results of searches a chain was given, each in a list of its own."""
    results = {tuple(delivery.hits) for delivery in tree.delivered if not delivery.is_choice}
    return len({keys for part in lists_in(inputs) if (keys := tuple(tree.known.keys(part))) in results})


def _fuse(choice: Choice) -> None:
    """Put the pool into the order in which a step fused it."""
    node, out, base, ended_ns = choice
    tree = node.tree
    for rank, (key, (passage, facts)) in enumerate(out.items(), start=1):
        first = tree.seen[key][0]
        score = first.score if passage.score is None else passage.score
        tree.seen[key] = out[key] = (reranked_passage(first, rank, score), facts)
    _order_pool(tree, base, out)
    tree.is_pool_ordered = True
    tree.delivered.append(Delivery(out, len(tree.run.prompts), is_choice=False))
    for above in (node, *node.enclosing()):
        above.found = {**{key: hit for key, hit in above.found.items() if key not in base}, **out}
        above.found_ns = ended_ns


def _follow_order(node: Node) -> None:
    """Put the pool into the order in which a step is given it: parallel searches end in any order."""
    tree = node.tree
    if len(tree.delivered) < 2 or tree.is_narrowed or tree.is_pool_ordered:
        return
    with tree.lock:
        keys = dict.fromkeys(tree.known.keys(node.given or ()))
        if keys.keys() == tree.pool.keys() and list(keys) != list(tree.pool) and _is_joined(keys, tree):
            tree.pool = {key: tree.pool[key] for key in keys}
            tree.is_pool_ordered = True


def _candidates(node: Node, out: dict[str, Hit], given: dict[str, Hit]) -> dict[str, Hit]:
    """Return what the chain chose from: the choice made inside it, what was found inside, or its input."""
    for base in (node.chosen, node.found, given):
        if base and all(key in base for key in out):
            return base
    return {**given, **node.found}


def _delivered_with(tree: Tree, out: dict[str, Hit]) -> dict[str, Hit]:
    """Return what documents of the pool were chosen from, where the chain's input does not show it."""
    for delivery in reversed(tree.delivered):
        if delivery.hits.keys() >= out.keys():
            return delivery.hits
    parts = [delivery.hits for delivery in tree.delivered if delivery.hits.keys() & out.keys()]
    return {key: hit for part in parts for key, hit in part.items()}


def _is_answered(tree: Tree, state: Any) -> bool:
    """Tell whether what a chain was given or gave out holds what the model said last, or a part of it."""
    if not tree.last_text:
        return False
    said, answer = tree.last_text.strip(), (answer_in(fields_of(state)) or "").strip()
    is_part = min(len(said), len(answer)) >= SHORTEST_PART_CHARS and (answer in said or said in answer)
    return said == answer or is_part


def _is_added_to(base: dict[str, Hit], out: dict[str, Hit], pool: dict[str, Hit]) -> bool:
    """Tell whether a step handed on all that it was given of the pool, and documents that are new beside it."""
    is_kept = bool(base) and len(out) > len(base) and out.keys() >= base.keys()
    if not is_kept or any(hit[0].text != out[key][0].text for key, hit in base.items()):
        return False
    return base.keys() <= pool.keys() and not any(key in pool for key in out if key not in base)


def _is_found_anew(node: Node, outputs: Any, base: dict[str, Hit], out: dict[str, Hit]) -> bool:
    """Tell whether a graph's step searched though its state has documents, as for the web after a poor retrieval.

    Its documents have nothing of the given ones, and no model wrote them.
    """
    if not base or not out or node.has_model or fields_of(outputs) is None or not base.keys().isdisjoint(out):
        return False
    given = base.values()
    return not any(_is_made_of(hit, other) for hit in out.values() for other in given)


def _is_made_of(hit: Hit, other: Hit) -> bool:
    """Tell whether a passage is a part of another one, holds it, or has its metadata."""
    (passage, facts), (before, facts_before) = hit, other
    is_part = passage.text in before.text or before.text in passage.text
    return is_part or bool(facts and is_equal(facts, facts_before))


def _is_shown_before(choice: Choice) -> bool:
    """Tell whether a prompt has shown what a choice drops: it may pick out what an answer cites."""
    tree, base = choice.node.tree, choice.base
    since = next((one.prompts for one in reversed(tree.delivered) if one.hits.keys() & base.keys()), 0)
    if since == len(tree.run.prompts):
        return False
    return tree.run.prompt_contains((hit[0] for key, hit in base.items() if key not in choice.out), since=since)


def _is_given_one(inputs: Any) -> bool:
    """Tell whether a chain was given a single document: it decides on that one, and not on the pool."""
    parts = inputs.values() if isinstance(inputs, dict) else (inputs,)
    return any(isinstance(part, Document) for part in parts)


def _is_joined(out: Iterable[str], tree: Tree) -> bool:
    """Tell whether documents are those of some deliveries, one behind the other."""
    return are_joined(out, [list(delivery.hits) for delivery in tree.delivered])


def _take_waiting(tree: Tree) -> None:
    choice, tree.waiting = tree.waiting, None
    if choice is not None:
        _take_choice(choice)


def _take_choice(choice: Choice, *, is_sure: bool = True) -> None:
    """Report a choice; one that may be a citation waits, and counts if a prompt or another step follows."""
    tree, waiting = choice.node.tree, choice.node.tree.waiting
    if _is_handed_on(choice):
        return
    if _is_joined_inside(choice):
        _keep_order(choice)
        return
    is_again = waiting is not None and list(waiting.out) == list(choice.out)
    if waiting is not None and not is_again and choice.base.keys() <= waiting.out.keys():
        _take_waiting(tree)  # what it kept was chosen from
    if not is_sure:
        tree.waiting = waiting if is_again else choice
        return
    _take_waiting(tree)
    if not is_again:
        _make_choice(choice)


def _make_choice(choice: Choice) -> None:
    node, out, base, ended_ns = choice
    tree = node.tree
    started_ns = max(node.started_ns, node.found_ns)
    is_only_rewritten = list(base) == list(out) and not _is_scored_anew(tree, out, base)
    if all(key in base for key in out) and not is_only_rewritten:
        _report_choice(node, out, base, started_ns, ended_ns, "chain", node.within_key)
    else:
        _note_choice(tree, out, "chain")  # merged, expanded or rewritten passages: a selection without ranks
        tree.run.selected(_passages(out), selection_source="chain")
    _deliver_choice(node, out, base, ended_ns)


def _is_handed_on(choice: Choice) -> bool:
    """Tell whether a step left documents as they came: it looked at them, or copied their list."""
    node, out, base, _ = choice
    tree = node.tree
    if list(base) == list(out):
        return (base is node.chosen or not _is_scored_anew(tree, out, base)) and not _is_rewritten(out, base)
    last = tree.delivered[-1] if tree.delivered else None
    if last is None or not last.is_choice or not out or node.found or list(last.hits) != list(out):
        return False
    return all(is_equal(facts, last.hits[key][1]) for key, (_, facts) in out.items())


def _is_rewritten(out: dict[str, Hit], base: dict[str, Hit]) -> bool:
    """Tell whether a text was replaced or widened: a translation, an extract, or its neighbours beside it.

    A header that is added to a passage rewrites nothing.
    """
    texts = ((base[key][0].text, hit[0].text) for key, hit in out.items())
    return any(before not in after or len(after) >= WIDENED * len(before) for before, after in texts)


def _is_joined_inside(choice: Choice) -> bool:
    """Tell whether a step gave out all that was found inside it, one result behind the other."""
    node, out, base, _ = choice
    is_all = base is node.found and node.sources > 1 and base.keys() == out.keys()
    return is_all and _is_joined(out, node.tree) and not _is_scored_anew(node.tree, out, base)


def _keep_order(choice: Choice) -> None:
    """Leave what parallel steps chose in the order in which their lists were joined: they end in any order."""
    node, out, base, ended_ns = choice
    if node.is_narrowed:
        _deliver_choice(node, {key: base[key] for key in out}, base, ended_ns)
    else:
        _fuse(choice)


def _deliver_choice(node: Node, out: dict[str, Hit], base: dict[str, Hit], ended_ns: int) -> None:
    """Let the nodes above know what of their documents was left by a choice, up to the composite it stands in."""
    node.tree.delivered.append(Delivery(out, len(node.tree.run.prompts), is_choice=True))
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
    is_whole_pool = list(base) == list(tree.pool) and not tree.is_pool_ordered and not tree.known.renamed
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


def _rescored(tree: Tree, key: str, hit: Hit, base: dict[str, Hit] | None = None) -> float | None:
    seen = tree.seen.get(key)
    if seen is not None and seen is not hit:
        return rerank_score_of(hit[1], seen[1])
    if base and any(is_equal(hit[1], facts) for _, facts in base.values()):
        return None  # a rewritten passage with the metadata of the one that it was made of
    return rerank_score_of(hit[1], None)


def _is_scored_anew(tree: Tree, out: dict[str, Hit], base: dict[str, Hit]) -> bool:
    """Tell whether documents have a score that they had not when they were told of last."""
    return any(rerank_score_of(hit[1], tree.told.get(key, base[key])[1]) is not None for key, hit in out.items())


def _deliver(node: Node, out: dict[str, Hit], ended_ns: int) -> None:
    """Let the nodes above know what a retriever delivered, up to the composite it stands in."""
    node.tree.delivered.append(Delivery(out, len(node.tree.run.prompts), node.is_narrowed))
    for above in node.enclosing():
        above.found.update(out)
        above.sources += 1
        above.found_ns = ended_ns
        above.is_narrowed = above.is_narrowed or node.is_narrowed
        above.chosen = None
