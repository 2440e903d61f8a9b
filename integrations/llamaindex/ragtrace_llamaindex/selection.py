"""Pool, selection and rerank steps, inferred from the nodes that retrievers and postprocessors hand on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from operator import attrgetter, eq, is_, ne
from typing import TYPE_CHECKING

from llama_index.core.schema import BaseNode, NodeWithScore
from msgspec.structs import replace

from ragtrace.capture import are_joined, by_first_shown, guarded, is_equal, shown
from ragtrace.capture.attribution import PassageFinder, answered_prompt, found_in, prompt_set
from ragtrace.capture.chunks import chunks_of, is_form_of
from ragtrace.capture.passages import ReadPassages, ranked
from ragtrace.model import chunk_id
from ragtrace_llamaindex.citation_pieces import are_numbered, note_pieces, record_used_pieces
from ragtrace_llamaindex.nodes import NodeColumns
from ragtrace_llamaindex.run_state import ToolSpan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import IntegrationRun
    from ragtrace.model import Passage
    from ragtrace_llamaindex.run_state import OpenSpan, RunState

_PASSAGE_TEXT = attrgetter("text")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST_PART_CHARS = 16


@guarded
def record_retrieved(
    span: OpenSpan,
    run: IntegrationRun,
    column: NodeColumns,
    ended_ns: int,
    is_fusion: bool,  # noqa: FBT001 - all by place
) -> None:
    """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
    state = span.state
    if span.sources:
        _know_again(state, column, span.found)
    if span.within is None and _are_copies(state, column):
        scope = span.scope()
        scope.is_check = scope.parent is not None
        return
    _tell_apart(state, run, column, is_found=not (span.sources or span.answers))
    passages = _behind_answers(span, run, column) if span.answers else _first_met(state, run, column, span.source)
    _note_search(span)
    if span.within is None:  # a model that spoke before wrote the query
        _forget_reply(span)
    if not span.sources:
        _report_retrieval(span, run, passages, ended_ns, is_fused=span.is_outer)
    else:
        passages = _record_composite(span, run, column, passages, ended_ns, is_fusion=is_fusion)
    state.last = passages
    found = {passage.id: passage for passage in passages}
    if span.parent is None:
        span.found = found
    else:
        pass_on(span, found, passages, ended_ns)


@guarded
def record_postprocessed(
    span: OpenSpan, run: IntegrationRun, given: NodeColumns, out: NodeColumns, ended_ns: int
) -> None:
    """Take what a postprocessor returned: fewer nodes, another order or other scores are a choice."""
    state = span.state
    _tell_apart(state, run, given, is_found=not state.raw)
    _tell_apart(state, run, out)
    out.known_again(given, state.own.holds)
    if state.stands_for and any(name in state.stands_for for name in given.ids):
        _choose_answers(span, run, given, out, ended_ns)
        return
    _report_unknown(span, run, given)
    before = dict(zip(given.ids, given.scores, strict=True))
    is_rewritten = not before.keys() >= set(out.ids) or any(map(ne, map(state.raw.get, out.ids), out.texts))
    if is_rewritten:
        chosen = out.passages(run.reader)
        _note_text(state, out, chosen)
        state.parts.update(out.parts)
        run.selected(chosen, selection_source="framework")
    elif out.ids == given.ids and is_equal(out.scores, given.scores):
        return
    else:
        chosen = _rescored(state, run, out, before)
        run.reranked(
            chosen,
            candidates=_candidates(span, run, given),
            model=span.model or span.name,
            top_n=span.top_k,
            started_ns=span.started_ns,
            ended_ns=ended_ns,
            parent_key=span.within_key,
            selection_source="framework",
        )
    _choose(span, given.ids, chosen, ended_ns)


@guarded
def record_synthesized(span: OpenSpan, run: IntegrationRun, out: NodeColumns) -> None:
    """Take the nodes that a synthesizer is given, where something between it and the retriever chose among them.

    An asynchronous postprocessor of an application's own, or a few lines of an engine's, leave no span.
    """
    scope = span.scope()
    _tell_apart(span.state, run, out, is_found=not span.state.raw)
    if not are_numbered(out):
        _know_again(span.state, out, scope.found)
    _report_unknown(span, run, out)
    _record_unseen_choice(span, scope, run, out)
    note_pieces(span.state, run, out, scope.found)
    scope.synthesized = len(scope.lists)


def _know_again(state: RunState, column: NodeColumns, found: Mapping[str, Passage]) -> None:
    if found and not found.keys() >= set(column.ids):
        column.known_again(NodeColumns.of(found.values()), state.own.holds)
        state.parts.update(column.parts)


def _record_unseen_choice(span: OpenSpan, scope: OpenSpan, run: IntegrationRun, out: NodeColumns) -> None:
    state, found = span.state, scope.found
    if not found or not found.keys() >= set(out.ids):
        return
    # Older versions of llama-index-core give each piece of a citation engine the id of its passage.
    names = list(dict.fromkeys(out.ids))
    if scope.last is None and are_joined(names, scope.lists):
        state.last = ranked([found[name] for name in names])
        return
    if scope.last is not None and (names == _names(scope.last) or names == list(found)):
        return
    new = [*scope.lists[scope.synthesized :], names]
    given = list(found) if scope.last is not None else [name for part in new for name in part]
    if len(names) < len(out.ids):
        chosen = ranked([found[name] for name in names])
    else:
        chosen = _rescored(state, run, out, {name: found[name].score for name in names})
    run.selected(chosen, selection_source="framework")
    _choose(span, given, chosen, span.started_ns)


def found_of(found: object) -> NodeColumns | list[object]:
    """Return what a search found, as it is now: nodes, or texts and mappings.

    Example:
        >>> found_of("Oslo."), found_of([{"id": "d1", "text": "Oslo."}])
        (['Oslo.'], [{'id': 'd1', 'text': 'Oslo.'}])
    """
    parts = list(found) if isinstance(found, list | tuple) else [found]
    if all(isinstance(part, NodeWithScore | BaseNode) for part in parts):
        return NodeColumns(parts)
    return [dict(part) if isinstance(part, Mapping) else part for part in parts]


@guarded
def record_found(
    span: OpenSpan, run: IntegrationRun, found: NodeColumns | list[object], source: str | None, ended_ns: int
) -> None:
    """Take passages that no retriever returned: of a tool, or named by the application itself."""
    state = span.state
    scope = span if span.parent is None or span.kind == "query" else span.scope()
    if span.within is not None or span.kind == "retriever":  # what the retriever returns will tell
        return
    if isinstance(found, NodeColumns):
        _tell_apart(state, run, found, is_found=True)
        passages = _first_met(state, run, found, source)
    else:
        passages = run.reader.read(found, source)
        state.seen.update((passage.id, passage) for passage in passages)
        state.raw.update((passage.id, passage.text) for passage in passages)
    _note_search(span)
    _forget_reply(span)
    run.retrieved(passages, source=source, started_ns=span.started_ns, ended_ns=ended_ns)
    state.last = passages
    _pass_to(scope, {passage.id: passage for passage in passages}, passages, ended_ns)


@guarded
def record_inner_answer(span: OpenSpan, answer: str | None, ended_ns: int) -> None:
    """Take the end of an engine inside the run: its answer may stand for its passages in a retriever around it."""
    if not span.sources:
        return
    if span.within is not None and answer:
        span.within.answers.append((answer, span.found))
    pass_on(span, span.found, span.last, ended_ns)


@guarded
def record_marked(span: OpenSpan, run: IntegrationRun, nodes: NodeColumns | list[object]) -> None:
    """Take a selection that the application itself names; several add up."""
    state = span.state
    _note_search(span)  # the text of a tool around it is these passages
    if isinstance(nodes, NodeColumns):
        _tell_apart(state, run, nodes)
    if not isinstance(nodes, NodeColumns):
        chosen = run.reader.read(nodes)
    elif all(map(eq, map(state.raw.get, nodes.ids), nodes.texts)):
        chosen = _rescored(state, run, nodes, {name: passage.score for name, passage in state.seen.items()})
    else:
        chosen = nodes.passages(run.reader)
    before = state.explicit or ()
    known = set(_names(before))
    state.explicit = ranked((*before, *(passage for passage in chosen if passage.id not in known)))


@guarded
def settle(root: OpenSpan, run: IntegrationRun, answer: str) -> None:
    """Set the selection of a run that ends: an engine that asks several sub-questions made several choices."""
    state = root.state
    if state.explicit is not None:
        run.selected(state.explicit, selection_source="explicit")
    elif root.kind != "retriever":
        if (
            state.is_narrowed
            and root.found
            and list(root.found) != list(dict.fromkeys(_names(run.selection or ())))
        ):
            run.selected(ranked(tuple(root.found.values())), selection_source="framework")
        last = _last_attempt(state, run, answer)
        if last is not None and run.selection is not None:
            run.selected(last, selection_source="framework")
        elif last is not None and run.used_passages is None:
            run.used(ranked(prompt_set(run.prompts, run.steps, answer, PassageFinder(last))))
        record_used_pieces(state, run)
        _record_used_parts(state, run, answer)
        if run.selection is None and not state.is_joined:
            _order_as_shown(run, answer)
    run.rename(state.renamed)


def _tell_apart(state: RunState, run: IntegrationRun, column: NodeColumns, *, is_found: bool = False) -> None:
    """Give nodes of one id an id each, where a search found different texts under it.

    The first one met takes its new id when the run ends: what was reported before has the old one.
    """
    if is_found and (len(set(column.ids)) < len(column.ids) or any(map(ne, *_known_and_now(state, column)))):
        firsts: dict[str, str] = {}
        for name, text in zip(column.ids, map(shown, column.texts), strict=True):
            before = state.raw.get(name)
            first = firsts.setdefault(name, text)
            if text != first or (before is not None and not is_form_of(shown(before), text)):
                state.chunks.setdefault(name, [first if before is None else shown(before)])
                if text not in state.chunks[name]:
                    state.chunks[name].append(text)
    for name in state.chunks.keys() & set(column.ids):
        chunks = state.chunks[name]
        places = [place for place, one in enumerate(column.ids) if one == name]
        texts = [shown(column.texts[place]) for place in places]
        for place, text, chunk in zip(places, texts, chunks_of(texts, chunks), strict=True):
            if chunk is None:
                continue
            own = chunk_id(name, run.reader.make(chunk, 1).text)
            if chunk == chunks[0]:
                state.renamed[name, run.reader.make(text, 1).text] = own
            else:
                column.ids[place] = own
    for name in state.chunks:
        first = run.reader.make(state.chunks[name][0], 1).text
        state.renamed[name, first] = chunk_id(name, first)


def _known_and_now(state: RunState, column: NodeColumns) -> tuple[list[object], list[object]]:
    return [state.raw.get(name, text) for name, text in zip(column.ids, column.texts, strict=True)], column.texts


def _last_attempt(state: RunState, run: IntegrationRun, answer: str) -> ReadPassages | None:
    """Return the list delivered last, where the answer was asked for with all of it and nothing else found.

    What was delivered before it was given up: an engine tried again, fell back on another, or a workflow looped.
    """
    last, delivered = state.last, _delivered(run)
    if last is None or len(last) >= len(delivered) or not run.prompts:
        return None
    wanted = set(_names(last))
    if set(_names(found_in(answered_prompt(run.prompts, run.steps, answer), delivered))) != wanted:
        return None
    if state.is_retried:
        return last
    # What an engine answered with is found where its answer stands in the prompt.
    shown = prompt_set(run.prompts, run.steps, answer, PassageFinder(delivered))
    return last if set(_names(shown)) == wanted else None


def _order_as_shown(run: IntegrationRun, answer: str) -> None:
    """Put the results of several searches into the order in which the prompt has them: tools end in any order."""
    searches = run.retrievals()
    if len(searches) < 2 or any(one.parent_key for one in searches):
        return
    pool = {passage.id: passage for passage in run.candidates()}
    lists = [_names(one.passages) for one in searches]
    shown = _names(prompt_set(run.prompts, run.steps, answer, PassageFinder(tuple(pool.values()))))
    order = by_first_shown(lists, shown)
    if order != list(pool) and len(order) == len(pool) and are_joined(shown, lists):
        run.set_candidates(ranked([pool[name] for name in order]))


def _record_used_parts(state: RunState, run: IntegrationRun, answer: str) -> None:
    """Report the passages that a prompt shows in parts: sentence by sentence, or as what a step cut out of them.

    A part that several passages have tells of none.
    """
    delivered = tuple({passage.id: passage for passage in _delivered(run)}.values())
    if run.used_passages is not None or not run.prompts or not delivered:
        return
    if all(any(one.text in prompt for prompt in run.prompts) for one in delivered):
        return
    whole = {one.id for one in prompt_set(run.prompts, run.steps, answer, PassageFinder(delivered))}
    missing = [passage for passage in delivered if passage.id not in whole]
    parts = {one.id: state.parts.get(one.id) or _sentences(one.text) for one in missing}
    pieces = [
        replace(one, text=part)
        for one in delivered
        for part in parts.get(one.id, [one.text])
        if one.id in whole or _is_telling(part, one, delivered)
    ]
    if len({one.id for one in pieces}) == len(whole):
        return
    found: dict[str, list[str]] = {}
    for piece in prompt_set(run.prompts, run.steps, answer, PassageFinder(pieces)):
        found.setdefault(piece.id, []).append(piece.text)
    if found.keys() > whole:
        known = {one.id: one for one in delivered}
        shown = (
            known[name] if name in whole else replace(known[name], text="\n\n".join(texts))
            for name, texts in found.items()
        )
        run.used(ranked(tuple(shown)))


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def _is_telling(part: str, passage: Passage, passages: Sequence[Passage]) -> bool:
    return len(part) >= _SHORTEST_PART_CHARS and not any(
        part in other.text for other in passages if other.id != passage.id
    )


def _delivered(run: IntegrationRun) -> Sequence[Passage]:
    return run.selection if run.selection is not None else run.candidates()


def _names(passages: Sequence[Passage]) -> list[str]:
    return [passage.id for passage in passages]


def _are_copies(state: RunState, column: NodeColumns) -> bool:
    """Tell whether nodes are new ones with texts, or parts of texts, that the run has: such a list is no search.

    An evaluator of LlamaIndex's makes an index of an answer's contexts, and reads all of it; it gives no scores.
    """
    seen = state.seen
    if not seen or not column.ids or any(score is not None for score in column.scores):
        return False
    if any(name in seen for name in column.ids):
        return False
    known = [text for text in state.raw.values() if isinstance(text, str)]
    return all(isinstance(text, str) and text and any(text in one for one in known) for text in column.texts)


def _report_unknown(span: OpenSpan, run: IntegrationRun, column: NodeColumns) -> None:
    """Report nodes that no retriever delivered as a retrieval: an application's own search found them."""
    state, scope = span.state, span.scope()
    if state.seen or span.within is not None or not column.ids or (state.is_joined and run.retrievals()):
        return
    _note_search(span)
    passages = _first_met(state, run, column, None)
    run.retrieved(passages, started_ns=span.started_ns, ended_ns=span.started_ns)
    scope.found = {passage.id: passage for passage in passages}
    scope.last = passages
    scope.sources = 1


def _first_met(state: RunState, run: IntegrationRun, column: NodeColumns, source: str | None) -> ReadPassages:
    passages = column.passages(run.reader, source)
    _note_text(state, column, passages)
    return passages


def _note_text(state: RunState, column: NodeColumns, passages: ReadPassages) -> None:
    names = _names(passages)
    state.seen.update(zip(names, passages, strict=True))
    state.raw.update(zip(column.ids, column.texts, strict=True))


def _report_retrieval(
    span: OpenSpan, run: IntegrationRun, passages: ReadPassages, ended_ns: int, *, is_fused: bool = False
) -> None:
    run.retrieved(
        passages,
        source=span.source,
        query=span.query or None,
        top_k=span.top_k,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        key=span.id,
        parent_key=span.within_key,
        is_fused=is_fused,
    )


def _record_composite(
    span: OpenSpan,
    run: IntegrationRun,
    column: NodeColumns,
    passages: ReadPassages,
    ended_ns: int,
    *,
    is_fusion: bool,
) -> ReadPassages:
    inner = span.found
    is_new = any(passage.id not in inner for passage in passages)
    is_same = list(inner) == _names(passages)
    if is_fusion or is_new or span.sources > 1 or is_same:
        is_fused = not span.is_narrowed and not (is_same and span.sources == 1 and not is_fusion)
        _report_retrieval(span, run, passages, ended_ns, is_fused=is_fused)
        if not span.is_narrowed:
            return passages
        return ReadPassages(inner.get(passage.id, passage) for passage in passages)
    # One retriever around another that gave out a part of what that found, or another order: it chose.
    chosen = _rescored(span.state, run, column, {name: passage.score for name, passage in inner.items()})
    run.reranked(
        chosen,
        candidates=span.last,
        model=span.name,
        started_ns=span.found_ns or span.started_ns,
        ended_ns=ended_ns,
        parent_key=span.id,
        selection_source="retriever",
    )
    _report_retrieval(span, run, passages, ended_ns)
    span.is_narrowed = span.state.is_narrowed = True
    return chosen


def _behind_answers(span: OpenSpan, run: IntegrationRun, column: NodeColumns) -> ReadPassages:
    """Return a retriever's nodes as passages, with those behind an engine's answer in place of that.

    A recursive retriever makes a node of the answer of each engine that it asks.
    """
    state = span.state
    found: dict[str, Passage] = {}
    for passage in column.passages(run.reader, span.source):
        behind = next((known for text, known in span.answers if text and text in passage.text), None)
        if behind is None:
            found.setdefault(passage.id, passage)
            state.seen[passage.id] = passage
        else:
            state.stands_for[passage.id] = behind
            found = {**found, **behind}
    state.raw.update(zip(column.ids, column.texts, strict=True))
    return ranked(tuple(found.values()))


def _choose_answers(
    span: OpenSpan, run: IntegrationRun, given: NodeColumns, out: NodeColumns, ended_ns: int
) -> None:
    """Take a choice among nodes of which some are an engine's answer: the passages behind those are chosen."""
    if out.ids == given.ids:
        return
    state = span.state
    chosen: dict[str, Passage] = {}
    for name in out.ids:
        if name in state.stands_for:
            chosen.update(state.stands_for[name])
        elif name in state.seen:
            chosen[name] = state.seen[name]
    passages = ranked(tuple(chosen.values()))
    run.selected(passages, selection_source="framework")
    _choose(span, list(span.scope().found), passages, ended_ns)


def _rescored(
    state: RunState, run: IntegrationRun, column: NodeColumns, before: Mapping[str, float | None]
) -> ReadPassages:
    """Return chosen nodes as passages, with the scores that the choice gave them: None if it left the old ones."""
    is_rescored = not is_equal(list(map(before.get, column.ids)), column.scores)
    scores = column.scores if is_rescored else [None] * len(column.ids)
    met = [passage for name in column.ids if (passage := state.seen.get(name)) is not None]
    is_plain = all(score is None or (type(score) is float and isfinite(score)) for score in scores)
    if is_plain and len(met) == len(scores) and all(map(is_, column.texts, map(_PASSAGE_TEXT, met))):
        places = enumerate(zip(met, scores, strict=True), start=1)
        return ReadPassages(replace(passage, rank=rank, score=score) for rank, (passage, score) in places)
    return run.reader.columns(column.texts, column.ids, scores, column.metadata)


def _candidates(span: OpenSpan, run: IntegrationRun, given: NodeColumns) -> ReadPassages:
    """Return what a postprocessor chose from: the list delivered last where it is that, else what it was given."""
    last = span.scope().last
    if last is not None and _names(last) == given.ids:
        return last
    return given.passages(run.reader)


def _choose(span: OpenSpan, given: Sequence[object], chosen: ReadPassages, ended_ns: int) -> None:
    state, scope = span.state, span.scope()
    out = {passage.id: passage for passage in chosen}
    dropped = set(given)
    kept = {name: passage for name, passage in scope.found.items() if name not in dropped}
    scope.found = {**kept, **out}
    scope.lists = [[name for name in part if name not in dropped] for part in scope.lists]
    scope.lists.append(list(out))
    scope.last = chosen
    scope.found_ns = ended_ns
    scope.is_narrowed = state.is_narrowed = True
    state.last = chosen


def _forget_reply(span: OpenSpan) -> None:
    """Take no reply for the answer that a model gave before a search: it wrote the query."""
    state = span.state
    state.last_reply = state.last_text = ""
    state.is_model_asked = False
    if span.is_top and state.is_joined:
        state.answer = None


def _note_search(span: OpenSpan) -> None:
    tool = span if isinstance(span, ToolSpan) else span.tool
    while tool is not None:
        tool.has_found = True
        tool = tool.tool


def pass_on(span: OpenSpan, found: dict[str, Passage], last: ReadPassages | None, ended_ns: int) -> None:
    """Deliver what was found in one scope to the scope around it."""
    scope = span.scope()
    _pass_to(scope, found, last, ended_ns)
    scope.is_narrowed = scope.is_narrowed or span.is_narrowed


def _pass_to(scope: OpenSpan, found: dict[str, Passage], last: ReadPassages | None, ended_ns: int) -> None:
    scope.found = {**scope.found, **found}
    scope.last = last if not scope.sources else None
    scope.sources += 1
    scope.lists.append(list(found))
    scope.found_ns = ended_ns
