"""Works out pool, selection and reranker steps from the nodes that retrievers and postprocessors hand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import BaseNode, NodeWithScore

from ragtrace.capture import are_joined, guarded, is_equal
from ragtrace.capture.passages import ReadPassages, ranked, reranked_passage
from ragtrace.capture.prompt import found_in
from ragtrace.capture.prompt_set import answered_prompt, prompt_set
from ragtrace_llamaindex.nodes import Column
from ragtrace_llamaindex.pieces import note_pieces, use_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import Run
    from ragtrace.model import Passage
    from ragtrace_llamaindex.tree import Node, Tree


@guarded
def take_retrieved(node: Node, run: Run, nodes: Any, ended_ns: int, *, is_fusion: bool) -> None:
    """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
    tree = node.tree
    column = _column(nodes)
    with tree.lock:
        if node.within is None and _are_copies(tree, column):
            scope = node.scope()
            scope.is_inner = scope.parent is not None
            return
        if node.answers:
            passages = _behind_answers(node, run, column)
        else:
            passages = _first_met(tree, run, column, node.source)
        _note_search(node)
        if node.within is None:  # a model that spoke before wrote the query
            _forget_reply(node)
        if not node.sources:
            _report_retrieval(node, run, passages, ended_ns, is_fused=node.is_outer)
        else:
            passages = _take_composite(node, run, column, passages, ended_ns, is_fusion=is_fusion)
        _deliver(node, passages, ended_ns)


@guarded
def take_given(node: Node, nodes: Any) -> None:
    """Note what a postprocessor is given, before it can write into it."""
    node.given = _column(nodes)


@guarded
def take_postprocessed(node: Node, run: Run, nodes: Any, ended_ns: int) -> None:
    """Take what a postprocessor returned: fewer nodes, another order or other scores are a choice."""
    given = node.given
    if given is None:
        return
    out = _column(nodes)
    out.known_again(given)
    tree = node.tree
    with tree.lock:
        if tree.stands_for and any(name in tree.stands_for for name in given.ids):
            _choose_answers(node, run, given, out, ended_ns)
            return
        _report_unknown(node, run, given)
        before = dict(zip(given.ids, given.scores, strict=True))
        raw = tree.raw
        is_rewritten = any(
            name not in before or raw.get(name, _MISSING) != text
            for name, text in zip(out.ids, out.texts, strict=True)
        )
        if not is_rewritten and out.ids == given.ids and is_equal(out.scores, given.scores):
            return
        if is_rewritten:
            chosen = out.passages(run.reader)
            _note_text(tree, out, chosen)
            run.selected(chosen, selection_source="framework")
        else:
            chosen = _rescored(tree, run, out, before)
            run.reranked(
                chosen,
                candidates=_candidates(node, run, given),
                model=node.model or node.name,
                top_n=node.top_k,
                started_ns=node.started_ns,
                ended_ns=ended_ns,
                parent_key=node.within_key,
                selection_source="framework",
            )
        _choose(node, given.ids, chosen, ended_ns)


@guarded
def take_synthesized(node: Node, run: Run, nodes: Any) -> None:
    """Take the nodes that a synthesizer is given, where something between it and the retriever chose among them.

    An asynchronous postprocessor of an application's own, or a few lines of an engine's, leave no span.
    """
    if not nodes or node.within is not None:
        return
    scope = node.scope()
    out = _column(nodes)
    with node.tree.lock:
        _report_unknown(node, run, out)
        _take_unseen_choice(node, scope, run, out)
        note_pieces(node.tree, run, out, scope.found)
        scope.synthesized = len(scope.lists)


def _take_unseen_choice(node: Node, scope: Node, run: Run, out: Column) -> None:
    tree, found = node.tree, scope.found
    if not found or not all(name in found for name in out.ids):
        return
    # Older versions of llama-index-core give each piece of a citation engine the id of its passage.
    names = list(dict.fromkeys(out.ids))
    if scope.last is None and are_joined(names, scope.lists):
        tree.last = ranked([found[name] for name in names])
        return
    if scope.last is not None and (names == _names(scope.last) or names == list(found)):
        return
    new = [*scope.lists[scope.synthesized :], names]
    given = list(found) if scope.last is not None else [name for part in new for name in part]
    if len(names) < len(out.ids):
        chosen = ranked([found[name] for name in names])
    else:
        chosen = _rescored(tree, run, out, {name: found[name].score for name in names})
    run.selected(chosen, selection_source="framework")
    _choose(node, given, chosen, node.started_ns)


@guarded
def take_found(node: Node, run: Run, found: Any, source: str | None, ended_ns: int) -> None:
    """Take passages that no retriever returned: of a tool, or named by the application itself."""
    tree = node.tree
    scope = node if node.parent is None or node.kind == "query" else node.scope()
    if node.within is not None or node.kind == "retriever":  # what the retriever returns will tell
        return
    with tree.lock:
        passages = _passages_of(tree, run, found, source)
        _note_search(node)
        _forget_reply(node)
        run.retrieved(passages, source=source, started_ns=node.started_ns, ended_ns=ended_ns)
        tree.last = passages
        _pass_to(scope, {passage.id: passage for passage in passages}, passages, ended_ns)


def _passages_of(tree: Tree, run: Run, found: Any, source: str | None) -> ReadPassages:
    """Return nodes, texts or mappings as passages, and note them as met."""
    parts = list(found) if isinstance(found, list | tuple) else [found]
    if all(isinstance(part, NodeWithScore | BaseNode) for part in parts):
        return _first_met(tree, run, Column(parts), source)
    passages = run.reader.read(parts, source)
    tree.seen.update((passage.id, passage) for passage in passages)
    tree.raw.update((passage.id, passage.text) for passage in passages)
    return passages


@guarded
def take_marked(node: Node, run: Run, nodes: Any) -> None:
    """Take a selection that the application itself names; several add up."""
    tree = node.tree
    parts = run.reader.first(nodes)
    column = Column(parts)
    with tree.lock:
        before = {name: passage.score for name, passage in tree.seen.items()}
        is_known = all(tree.raw.get(i, _MISSING) == text for i, text in zip(column.ids, column.texts, strict=True))
        if any(isinstance(part, str | Mapping) for part in parts):
            chosen = run.reader.read(parts)
        else:
            chosen = _rescored(tree, run, column, before) if is_known else column.passages(run.reader)
        before_it = tree.explicit or ()
        known = set(_names(before_it))
        tree.explicit = ranked((*before_it, *(passage for passage in chosen if passage.id not in known)))


@guarded
def settle(root: Node, run: Run, answer: str) -> None:
    """Set the selection of a run that ends: an engine that asks several sub-questions made several choices."""
    tree = root.tree
    if tree.explicit is not None:
        run.selected(tree.explicit, selection_source="explicit")
    elif root.kind != "retriever":
        if tree.is_narrowed and root.found and list(root.found) != list(dict.fromkeys(_names(run.selection or ()))):
            run.selected(ranked(tuple(root.found.values())), selection_source="framework")
        last = _last_attempt(tree, run, answer)
        if last is not None and run.selection is not None:
            run.selected(last, selection_source="framework")
        elif last is not None and run.used_passages is None:
            run.used(ranked(prompt_set(run.prompts, run.steps, answer, last)))
        use_pieces(tree, run)


def _last_attempt(tree: Tree, run: Run, answer: str) -> ReadPassages | None:
    """Return the list delivered last, where the answer was asked for with all of it and nothing else found.

    What was delivered before it was given up: an engine tried again, fell back on another, or a workflow looped.
    """
    last, delivered = tree.last, _delivered(run)
    if last is None or len(last) >= len(delivered) or not run.prompts:
        return None
    prompt = answered_prompt(run.prompts, run.steps, answer)
    return last if set(_names(found_in(prompt, delivered))) == set(_names(last)) else None


def _delivered(run: Run) -> Sequence[Passage]:
    return run.selection if run.selection is not None else run.candidates()


def _names(passages: Sequence[Passage]) -> list[str]:
    return [passage.id for passage in passages]


_MISSING = object()


def _column(nodes: Any) -> Column:
    """Take a list of nodes apart; a retriever of an application's own may return anything else, which is none."""
    return Column(nodes if isinstance(nodes, list | tuple) else ())


def _are_copies(tree: Tree, column: Column) -> bool:
    """Tell whether nodes are new ones with texts, or parts of texts, that the run has: such a list is no search.

    An evaluator of LlamaIndex's makes an index of an answer's contexts, and reads all of it; it gives no scores.
    """
    seen = tree.seen
    if not seen or not column.ids or any(score is not None for score in column.scores):
        return False
    if any(name in seen for name in column.ids):
        return False
    known = [text for text in tree.raw.values() if isinstance(text, str)]
    return all(isinstance(text, str) and text and any(text in one for one in known) for text in column.texts)


def _report_unknown(node: Node, run: Run, column: Column) -> None:
    """Report nodes that no retriever delivered as a retrieval: an application's own search found them."""
    tree, scope = node.tree, node.scope()
    if tree.seen or node.within is not None or not column.ids or (tree.is_joined and run.retrievals()):
        return
    _note_search(node)
    passages = _first_met(tree, run, column, None)
    run.retrieved(passages, started_ns=node.started_ns, ended_ns=node.started_ns)
    scope.found = {passage.id: passage for passage in passages}
    scope.last = passages
    scope.sources = 1


def _first_met(tree: Tree, run: Run, column: Column, source: str | None) -> ReadPassages:
    passages = column.passages(run.reader, source)
    _note_text(tree, column, passages)
    return passages


def _note_text(tree: Tree, column: Column, passages: ReadPassages) -> None:
    names = _names(passages)
    tree.seen.update(zip(names, passages, strict=True))
    tree.raw.update(zip(column.ids, column.texts, strict=True))


def _report_retrieval(
    node: Node, run: Run, passages: ReadPassages, ended_ns: int, *, is_fused: bool = False
) -> None:
    run.retrieved(
        passages,
        source=node.source,
        query=node.query or None,
        top_k=node.top_k,
        started_ns=node.started_ns,
        ended_ns=ended_ns,
        key=node.id,
        parent_key=node.within_key,
        is_fused=is_fused,
    )


def _take_composite(
    node: Node, run: Run, column: Column, passages: ReadPassages, ended_ns: int, *, is_fusion: bool
) -> ReadPassages:
    inner = node.found
    is_new = any(passage.id not in inner for passage in passages)
    is_same = list(inner) == _names(passages)
    if is_fusion or is_new or node.sources > 1 or is_same:
        is_fused = not node.is_narrowed and not (is_same and node.sources == 1 and not is_fusion)
        _report_retrieval(node, run, passages, ended_ns, is_fused=is_fused)
        if not node.is_narrowed:
            return passages
        return ReadPassages(inner.get(passage.id, passage) for passage in passages)
    # One retriever around another that gave out a part of what that found, or another order: it chose.
    chosen = _rescored(node.tree, run, column, {name: passage.score for name, passage in inner.items()})
    run.reranked(
        chosen,
        candidates=node.last,
        model=node.name,
        started_ns=node.found_ns or node.started_ns,
        ended_ns=ended_ns,
        parent_key=node.id,
        selection_source="retriever",
    )
    _report_retrieval(node, run, passages, ended_ns)
    node.is_narrowed = node.tree.is_narrowed = True
    return chosen


def _behind_answers(node: Node, run: Run, column: Column) -> ReadPassages:
    """Return a retriever's nodes as passages, with those behind an engine's answer in place of that.

    A recursive retriever makes a node of the answer of each engine that it asks.
    """
    tree = node.tree
    found: dict[str, Passage] = {}
    for passage in column.passages(run.reader, node.source):
        behind = next((known for text, known in node.answers if text and text in passage.text), None)
        if behind is None:
            found.setdefault(passage.id, passage)
            tree.seen[passage.id] = passage
        else:
            tree.stands_for[passage.id] = behind
            found = {**found, **behind}
    tree.raw.update(zip(column.ids, column.texts, strict=True))
    return ranked(tuple(found.values()))


def _choose_answers(node: Node, run: Run, given: Column, out: Column, ended_ns: int) -> None:
    """Take a choice among nodes of which some are an engine's answer: the passages behind those are chosen."""
    if out.ids == given.ids:
        return
    tree = node.tree
    chosen: dict[str, Passage] = {}
    for name in out.ids:
        if name in tree.stands_for:
            chosen.update(tree.stands_for[name])
        elif name in tree.seen:
            chosen[name] = tree.seen[name]
    passages = ranked(tuple(chosen.values()))
    run.selected(passages, selection_source="framework")
    _choose(node, list(node.scope().found), passages, ended_ns)


def _rescored(tree: Tree, run: Run, column: Column, before: dict[Any, float | None]) -> ReadPassages:
    """Return chosen nodes as passages, with the scores that the choice gave them: None if it left the old ones."""
    pairs = zip(column.ids, column.scores, strict=True)
    is_rescored = any(not is_equal(before.get(name, _MISSING), score) for name, score in pairs)
    scores = column.scores if is_rescored else [None] * len(column)
    seen = tree.seen
    if all(name in seen and seen[name].text is text for name, text in zip(column.ids, column.texts, strict=True)):
        rows = enumerate(zip(column.ids, scores, strict=True), start=1)
        plain = all(score is None or type(score) is float for score in scores)
        if plain and all(score is None or score - score == 0.0 for score in scores):  # finite
            return ReadPassages(reranked_passage(seen[name], rank, score) for rank, (name, score) in rows)
    return run.reader.columns(column.texts, column.ids, scores, column.metadata)


def _candidates(node: Node, run: Run, given: Column) -> ReadPassages:
    """Return what a postprocessor chose from: the list delivered last where it is that, else what it was given."""
    last = node.scope().last
    if last is not None and _names(last) == given.ids:
        return last
    return given.passages(run.reader)


def _choose(node: Node, given: Sequence[Any], chosen: ReadPassages, ended_ns: int) -> None:
    tree, scope = node.tree, node.scope()
    out = {passage.id: passage for passage in chosen}
    dropped = set(given)
    kept = {name: passage for name, passage in scope.found.items() if name not in dropped}
    scope.found = {**kept, **out}
    scope.lists = [[name for name in part if name not in dropped] for part in scope.lists]
    scope.lists.append(list(out))
    scope.last = chosen
    scope.found_ns = ended_ns
    scope.is_narrowed = tree.is_narrowed = True
    tree.last = chosen


def _forget_reply(node: Node) -> None:
    """Take no reply for the answer that a model gave before a search: it wrote the query."""
    tree = node.tree
    tree.last_text, tree.is_model_asked = "", False
    if node.is_top and tree.is_joined:
        tree.answer = None


def _note_search(node: Node) -> None:
    tool = node.tool
    while tool is not None:
        tool.has_found = True
        tool = tool.tool


def _deliver(node: Node, passages: ReadPassages, ended_ns: int) -> None:
    """Let the scope around a retriever know what it delivered."""
    node.tree.last = passages
    if node.parent is None:
        node.found = {passage.id: passage for passage in passages}
        return
    pass_on(node, {passage.id: passage for passage in passages}, passages, ended_ns)


def pass_on(node: Node, found: dict[str, Passage], last: ReadPassages | None, ended_ns: int) -> None:
    """Deliver what was found in one scope to the scope around it."""
    scope = node.scope()
    _pass_to(scope, found, last, ended_ns)
    scope.is_narrowed = scope.is_narrowed or node.is_narrowed


def _pass_to(scope: Node, found: dict[str, Passage], last: ReadPassages | None, ended_ns: int) -> None:
    scope.found = {**scope.found, **found}
    scope.last = last if not scope.sources else None
    scope.sources += 1
    scope.lists.append(list(found))
    scope.found_ns = ended_ns
