"""Pool, selection and rerank steps, inferred from the documents that retrievers and chains hand on.

LangChain reports no reranking: a compressor fires no callback and an LCEL reranker is a plain chain. What came
in and what came out tell: a composite retriever against the retrievers inside it, a chain's list of documents
against the documents it was given or found.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from msgspec.structs import replace

from ragtrace.capture import (
    Origin,
    Origins,
    ReadPassages,
    answer_text,
    are_joined,
    by_first_shown,
    guarded,
    is_equal,
    ranked,
)
from ragtrace.capture.attribution import found_in
from ragtrace.model import Passage
from ragtrace_langchain.documents import (
    documents_in,
    fields_of,
    is_documents_only,
    is_nested,
    is_reranked,
    lists_in,
    own_ids,
    read_documents,
    rerank_score_of,
    text_of,
)
from ragtrace_langchain.messages import answer_in, question_in
from ragtrace_langchain.run_state import Choice, Delivered, OpenSpan, OpenToolCall
from ragtrace_langchain.search_results import contexts_in, results_met
from ragtrace_langchain.tools import note_rows, record_contexts, settle_rows, tool_documents, tools_in_prompt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.capture import Failure
    from ragtrace_langchain.documents import Hit, Hits
    from ragtrace_langchain.run_state import RunState


WIDENED = 2  # times as long as the passage that stands in it: neighbours were added, and no header
_SHORTEST_SENTENCE_CHARS = 12
SHORTEST_CUT_CHARS = 40  # by such a beginning a passage is known again in a prompt
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|[\r\n]+")
SHORTEST_PART_CHARS = 16  # a shorter text, as a grader's "no", stands in many an answer


@guarded
def record_retrieved(span: OpenSpan, documents: Iterable[Document], ended_ns: int) -> None:
    """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
    state = span.state
    _record_waiting(state)
    documents = state.run.reader.first(documents)
    origins: dict[int, list[str]] = {}
    if span.sources:
        documents, origins = _with_origins(span, documents, {})
    else:
        documents = [one for one in state.known.as_read(documents) if not state.own.holds(text_of(one))]
        state.known.part(documents, state.seen)
    passages, out = _met(state, documents, span.source, origins)
    if span.sources:
        _record_composite(span, passages, out, ended_ns)
    else:
        _report_retrieval(span, passages, ended_ns)
        _add_to_pool(span, out)
    _deliver(span, out, ended_ns)


@guarded
def record_chain_output(
    span: OpenSpan, inputs: object, outputs: object, documents: list[Document] | None, ended_ns: int
) -> None:
    """Take what a chain or tool gave out: `documents`, where that is a list of them."""
    state = span.state
    chosen = _given_out(span, inputs, outputs, documents)
    if span.given:
        _follow_order(span)
    if chosen is None:
        return
    is_beside = span.has_model and not is_documents_only(outputs)
    if is_beside and _is_answered(state, outputs):
        return  # documents beside an answer are what was cited, not what went into the prompt
    given = span.given or documents_in(inputs) or results_met(inputs, state.seen)
    base = _seen(state, given) if given else {}
    kept, origins = _with_origins(span, chosen, base)
    if chosen and not kept:
        return  # the model's own words
    if not (base or span.found):
        state.known.part(state.known.as_read(kept), {})
    passages, out = _met(state, kept, None if base or span.found else span.source, origins)
    if isinstance(span, OpenToolCall) and span.call_id:
        state.found_by_call[span.call_id] = list(out)
    is_added = _is_added_to(base, out, state.pool) or _is_found_anew(span, outputs, base, out)
    if is_added and not span.found:
        rest = {key: hit for key, hit in out.items() if key not in base}
        _record_found(span, inputs, _passages(rest), rest, out, ended_ns)
    elif base or span.found:
        choice = Choice(span, out, _candidates(span, out, base), ended_ns)
        is_last = span.parent is None and is_documents_only(outputs)
        is_after = is_beside or _is_answered(state, inputs)
        if _is_rest_known(choice, base):
            return
        if not is_after and _is_joined_inside(choice):
            _keep_order(choice)
        elif not is_after and _is_fused(choice, inputs):
            _fuse(choice)
        else:
            _record_choice(choice, is_sure=is_last or not (is_after or _is_shown_before(choice)))
    elif all(key in state.pool for key in out):
        if not _is_joined(out, state) and not _is_given_one(inputs):
            choice = Choice(span, out, _delivered_with(state, out), ended_ns)
            _record_reordered(choice)
    else:
        _record_found(span, inputs, passages, out, out, ended_ns)


def _record_reordered(choice: Choice) -> None:
    """Take documents of the pool where the input does not show what they were chosen or fused from."""
    state = choice.span.state
    if not state.run.prompts and _is_whole(choice) and not _is_one_result(choice):
        _fuse(choice)
    else:
        _record_choice(choice, is_sure=not state.run.prompts)


def _given_out(
    span: OpenSpan, inputs: object, outputs: object, chosen: list[Document] | None
) -> list[Document] | None:
    """Return the documents that a step gave out; note its texts that stand in place of documents."""
    if span.kind == "tool":
        found = tool_documents(span, outputs, chosen)
        if found is None and span.found and isinstance(span, OpenToolCall) and span.call_id:
            span.state.found_by_call[span.call_id] = list(span.found)
        if found is None and span.found and not span.has_model:
            return _written_parts(span, getattr(outputs, "content", outputs))
        return found
    if span.within is None:
        note_rows(span, outputs)
    if chosen is None and isinstance(outputs, list):
        texts = [hit[0].text for hit in ({**span.found} or span.state.pool).values()]
        chosen = results_met(outputs, span.state.seen, texts)
    if chosen is None and (span.given or span.found) and not span.has_model:
        texts = [text for _, text in contexts_in(outputs, span.name, inputs)]
        chosen = _written_parts(span, outputs if isinstance(outputs, str) else texts[0] if texts else None)
    if chosen is None and not span.state.pool:
        record_contexts(span, inputs, outputs)
    return chosen


def _written_parts(span: OpenSpan, written: object) -> list[Document] | None:
    """Return the documents of a step that writes sentences of some into its text; None where it cut none.

    A document of which the text shows the beginning is found in the prompt by that.
    """
    if not isinstance(written, str):
        return None
    given = list(span.given or map(_document_of, span.found.values()))
    texts = [text_of(document) for document in given]
    passages = [Passage(id=str(place), text=text, rank=1) for place, text in enumerate(texts)]
    whole = {passage.text for passage in found_in(written, passages)}  # in any notation
    left = {text for text in texts if text not in whole and text[:SHORTEST_CUT_CHARS] not in written}
    if not left:
        return None
    held = Counter(part for text in texts for part in {*_SENTENCE_ENDS.split(text)})  # an ending that many have
    made: list[Document] = []
    for document, text in zip(given, texts, strict=True):
        sentences = _SENTENCE_ENDS.split(text) if text in left else ()
        parts = [
            one.strip() for one in sentences if held[one] == 1 and _is_sentence(one) and one.strip() in written
        ]
        made.append(document.model_copy(update={"page_content": "\n".join(parts)}) if parts else document)
    return made if made != given else None


def _is_sentence(part: str) -> bool:
    return len(part.strip()) >= _SHORTEST_SENTENCE_CHARS and len(part.split(None, 2)) > 2


def _record_found(
    span: OpenSpan,
    inputs: object,
    passages: ReadPassages,
    found: dict[str, Hit],
    out: dict[str, Hit],
    ended_ns: int,
) -> None:
    """Take what a function found that searches without a retriever: the documents come from nowhere else."""
    _record_waiting(span.state)
    span.query = span.query or question_in(inputs)
    _report_retrieval(span, passages, ended_ns)
    _add_to_pool(span, found)
    _deliver(span, out, ended_ns)


@guarded
def record_waiting_choice(state: RunState) -> None:
    """Take the choice that waits for a prompt to follow it, as one does now."""
    if state.waiting is not None:
        _record_waiting(state)


@guarded
def record_tool_messages(span: OpenSpan, prompt: Sequence[object]) -> None:
    """Take what the tool messages of a prompt hold, where no event told of their tools."""
    last = prompt[-1] if prompt else None
    if getattr(last, "type", None) == "human" and type(getattr(last, "content", None)) is str:
        return  # a question in plain text: no tool message follows it, and it holds no document
    for tool, documents in tools_in_prompt(span, prompt):
        record_chain_output(tool, None, documents, documents, tool.started_ns)
    state = span.state
    calls = [getattr(message, "tool_call_id", None) for message in prompt]
    parts = [found for call in calls if (found := state.found_by_call.get(call or ""))]
    if len(parts) > 1:
        state.shown = list(dict.fromkeys(key for found in parts for key in found))


@guarded
def withdraw_failed(span: OpenSpan) -> None:
    """Take back what a chain delivered before it failed: another attempt stands for it, if the root lives."""
    state = span.state
    if span.parent is None:
        span.found = span.found or state.taken_back
    elif span.found and span.kind != "retriever":
        for above in span.enclosing():
            above.found = {key: hit for key, hit in above.found.items() if hit is not span.found.get(key)}
            above.chosen = None if above.chosen is span.chosen else above.chosen
        state.taken_back.update(span.found)


@guarded
def record_marked(span: OpenSpan, documents: Iterable[Document]) -> None:
    """Take documents that the application itself says it chose; what is inferred later leaves them."""
    state = span.state
    for above in (span, *span.enclosing()):
        above.is_marked = True
    kept, origins = _with_origins(span, documents, {}, has_own=True)
    _, out = _met(state, kept, None, origins)
    for rank, (key, hit) in enumerate(out.items(), start=1):
        out[key] = (replace(hit[0], rank=rank, score=_rescored(state, key, hit)), hit[1])
    state.run.add_selected(_passages(out))


@guarded
def record_compressed(
    span: OpenSpan,
    given: Sequence[Document],
    documents: Iterable[Document],
    model: str,
    top_n: int | None,
    started_ns: int,
    ended_ns: int,
) -> None:
    """Take what a wrapped compressor made of the documents that it was given."""
    state = span.state
    _record_waiting(state)
    base = _seen(state, given)
    kept, origins = _with_origins(span, documents, base)
    _, out = _met(state, kept, None, origins)
    if all(key in base for key in out):
        _report_choice(span, out, base, started_ns, ended_ns, "explicit", span.key or span.within_key, model, top_n)
    else:
        _note_choice(state, out, "explicit")  # merged or rewritten passages have no rank in the pool
        state.run.selected(_passages(out), selection_source="explicit")
    _deliver_choice(span, out, base, ended_ns)


@guarded
def record_failed_compression(
    span: OpenSpan, model: str, top_n: int | None, started_ns: int, ended_ns: int, failure: Failure | None
) -> None:
    """Report a wrapped compressor that failed."""
    span.state.run.reranked(
        (),
        model=model,
        top_n=top_n,
        started_ns=started_ns,
        ended_ns=ended_ns,
        parent_key=span.key or span.within_key,
        error=failure,
    )


@guarded
def settle(root: OpenSpan) -> None:
    """Set the run's selection to all that was delivered, when its last reranker saw only a part of that.

    An agent that searches twice, or an ensemble over compressors, delivers the results of several choices.
    """
    state = root.state
    if not state.pool and state.given:
        _restore(state, state.given)
    settle_rows(state)
    if state.shown and not state.is_fused:
        _order_as_shown(root)
    elif state.tasks and not state.is_pool_ordered:
        _order_by_tasks(state)
    if state.is_narrowed and root.kind != "retriever" and list(root.found) != state.last_chosen:
        found = root.found or (state.pool if state.last_chosen else {})  # none: what was chosen was taken back
        state.run.selected(_passages(_kept(state, found)), selection_source=state.selection_source)
    if state.is_pool_ordered:
        state.run.set_candidates(_passages(state.pool))
    if state.known.renamed:
        _rename(state)


def _order_as_shown(root: OpenSpan) -> None:
    """Put the results of several searches into the order in which a state or the messages hold them."""
    state = root.state
    searches = [list(one.hits) for one in state.delivered if not one.is_choice and not one.is_inner]
    order = by_first_shown(searches, state.shown)
    if order != list(state.pool) and set(order) == state.pool.keys():
        state.pool = {key: state.pool[key] for key in order}
        state.is_pool_ordered = True
    places = {key: place for place, key in enumerate(state.shown)}
    if list(root.found) != state.last_chosen and root.found.keys() <= places.keys():
        root.found = dict(sorted(root.found.items(), key=lambda item: places[item[0]]))


def _order_by_tasks(state: RunState) -> None:
    """Put what a graph's tasks found side by side into the order of the tasks, where no prompt shows all of it."""
    order = sorted(state.pool, key=lambda key: state.tasks.get(key, ()))
    passages = _passages(state.pool)
    if order == list(state.pool) or any(
        len(found_in(prompt, passages)) == len(passages) for prompt in state.run.prompts
    ):
        return
    state.pool = {key: state.pool[key] for key in order}
    state.is_pool_ordered = True


def _rename(state: RunState) -> None:
    """Give the documents that were met without an id of their own the one that came later."""
    named = {key: own for key, own in state.known.renamed.items() if key in state.seen}
    if named:
        firsts = {key: state.seen[key][0] for key in named}
        state.run.rename({(first.id, first.text): named[key] for key, first in firsts.items()})


def _restore(state: RunState, given: Sequence[Document]) -> None:
    """Take documents that a chain was given for the pool, unless the run made no use of them.

    A conversation's state still holds the documents of the last turn when this one needs none.
    """
    passages = _passages(_seen(state, given))
    if state.is_narrowed or state.run.prompt_contains(passages):
        state.run.set_candidates(passages)


def _kept(state: RunState, found: dict[str, Hit]) -> dict[str, Hit]:
    """Return what was delivered less what was then discarded, as an attempt that a loop replaced by another.

    A delivery was discarded when no later prompt shows a passage of it, while one shows those of another.
    """
    last = {key: place for place, delivery in enumerate(state.delivered) for key in delivery.hits}
    parts: dict[int, dict[str, Hit]] = {}
    for key, hit in found.items():
        parts.setdefault(last[key], {})[key] = hit
    shown = {
        place
        for place, part in parts.items()
        if state.run.prompt_contains(_passages(part), since=state.delivered[place].prompts)
    }
    return {key: hit for key, hit in found.items() if last[key] in shown} or found


def _with_origins(
    span: OpenSpan, documents: Iterable[Document], base: dict[str, Hit], *, has_own: bool = False
) -> tuple[list[Document], dict[int, list[str]]]:
    """Return a step's documents less a model's own words, and for its new texts the passages that they are made of.

    An extract, a part, a widened or a summarised passage keeps the id and the rank of its passage, also where the
    step left the id and the metadata out. `base` is what the step was given.
    """
    state = span.state
    read = list(state.known.as_read(_parted(state, documents)))
    new = [place for place, document in enumerate(read) if not state.known.is_known(document)]
    if not new:
        return read, {}
    near = {**base, **span.found}
    hits = near or state.pool
    keys = list(hits)
    finder = Origins([Origin(passage.text, facts) for passage, facts in hits.values()])
    inner = state.replies[span.replies_before :] if span.has_model else []
    own: set[int] = set()
    found: dict[int, list[str]] = {}
    for place in new:
        text = text_of(read[place])
        is_written = state.own.holds(text) or any(text.strip() in said for said in inner)
        noted = getattr(read[place], "metadata", None)
        facts = noted if isinstance(noted, dict) else {}
        places = finder.of(text, facts, is_written=is_written, is_given=bool(near)) if hits else []
        if len(places) > 1 and finder.is_join(text, places):
            state.joins[text] = [_document_of(hits[keys[at]]) for at in places]
        elif places:
            found[place] = [keys[at] for at in places]
            state.known.take_as(text, hits[keys[places[0]]][0].id, keys[places[0]])
        elif is_written and not has_own:
            own.add(place)
    kept: list[Document] = []
    origins: dict[int, list[str]] = {}
    for place, document in enumerate(read):
        if place in found:
            origins[len(kept)] = found[place]
        if place not in own:
            kept += state.joins.get(text_of(document), [document]) if state.joins else [document]
    return kept, origins


def _parted(state: RunState, documents: Iterable[Document]) -> Sequence[Document]:
    """Return documents, and in place of a text that joins passages these passages."""
    some = state.run.reader.first(documents)
    if not state.joins:
        return some
    return [part for document in some for part in state.joins.get(text_of(document), [document])]


def _document_of(hit: Hit) -> Document:
    passage, facts = hit
    return Document(page_content=passage.text, metadata=dict(facts))


def _met(
    state: RunState, documents: Iterable[Document], source: str | None, origins: dict[int, list[str]] | None = None
) -> tuple[ReadPassages, dict[str, Hit]]:
    """Return documents as passages, and by key as they are now; each is remembered as it was first."""
    documents = state.known.as_read(state.run.reader.first(documents))
    again = _met_again(state, documents) if state.seen and not origins else None
    if again is not None:
        return again
    hits = read_documents(documents, state.known, state.run.reader, source)
    passages, out = hits.passages, hits.by_key()
    if origins:
        out = _under_origins(state, hits, origins)
        passages = ranked([passage for passage, _ in out.values()])
    state.seen = {**out, **state.seen} if state.seen else out.copy()
    return passages, out


def _under_origins(state: RunState, hits: Hits, origins: dict[int, list[str]]) -> dict[str, Hit]:
    """Return documents by the keys of the passages that they were made of; parts of one passage stand together."""
    out: dict[str, Hit] = {}
    for place, (key, passage, facts) in enumerate(zip(hits.keys, hits.passages, hits.facts, strict=True)):
        names = origins.get(place, [key])
        for name in names:
            own = passage if name == key else replace(passage, id=state.seen[name][0].id)
            before = out.get(name)
            if before is None:
                out[name] = (own, facts)
            elif place in origins and own.text not in before[0].text:
                out[name] = (replace(before[0], text=f"{before[0].text}\n\n{own.text}"), before[1])
    return out


def _met_again(state: RunState, documents: Sequence[Document]) -> tuple[ReadPassages, dict[str, Hit]] | None:
    """Return documents that were all met before as they are now, as most rerankers hand them on; else None.

    Their passages are known: 8 of them in 8 us, 23 us when they are read.
    """
    ids = own_ids(documents)
    if ids is None or len(set(ids)) != len(ids):
        return None
    found = state.seen
    if not found.keys() >= set(ids):
        return None
    out: dict[str, Hit] = {}
    for key, document in zip(ids, documents, strict=True):
        passage, facts = found[key]
        if not is_equal(document.metadata, facts) or document.page_content != passage.text:
            return None
        out[key] = (passage, facts)  # a hit of its own: what `seen` holds itself was first met in this step
    return ranked([passage for passage, _ in out.values()]), out


def _seen(state: RunState, documents: Sequence[Document]) -> dict[str, Hit]:
    """Return documents as they were when first met in this run."""
    documents = _parted(state, documents)
    keys = state.known.keys(documents)
    if not state.seen.keys() >= set(keys):
        _met(state, documents, None)
    return {key: state.seen[key] for key in keys}


def _passages(hits: dict[str, Hit]) -> ReadPassages:
    return ranked([passage for passage, _ in hits.values()])


def _report_retrieval(span: OpenSpan, passages: ReadPassages, ended_ns: int, *, is_fused: bool = False) -> None:
    span.state.run.retrieved(
        passages,
        source=span.source,
        query=span.query or None,
        top_k=span.top_k,
        started_ns=span.started_ns,
        ended_ns=ended_ns,
        key=span.key or None,
        parent_key=span.within_key,
        is_fused=is_fused,
    )


def _add_to_pool(span: OpenSpan, out: dict[str, Hit]) -> None:
    """Add what a search found to the pool; a passage that another search found before stays as it was there."""
    state = span.state
    if span.task:
        for key in out:
            state.tasks.setdefault(key, span.task)
    state.pool.update({key: hit for key, hit in out.items() if key not in state.pool} if state.pool else out)


def _order_pool(state: RunState, base: Iterable[str], out: dict[str, Hit]) -> None:
    """Put what was fused out of `base` into its new order, behind the rest of the pool."""
    fused = {*base, *out}
    state.pool = {**{key: hit for key, hit in state.pool.items() if key not in fused}, **out}


def _record_composite(span: OpenSpan, passages: ReadPassages, out: dict[str, Hit], ended_ns: int) -> None:
    inner = span.found
    is_same = list(inner) == list(out)
    if is_same and span.sources == 1 and _is_rewritten(out, inner):
        _note_choice(span.state, out, "retriever")
        span.state.run.selected(_passages(out), selection_source="retriever")
        span.is_narrowed = True
        _report_retrieval(span, ranked([span.state.seen[key][0] for key in out]), ended_ns)
        return
    if is_same or (span.sources > 1 and _covers(out, inner)):
        _report_retrieval(span, passages, ended_ns, is_fused=not span.is_narrowed)
        if not is_same and not span.is_narrowed:
            _order_pool(span.state, inner, out)
        out.update((key, inner[key]) for key in out if key in inner)  # with the scores of the last stage inside
        return
    _report_choice(span, out, inner, span.found_ns or span.started_ns, ended_ns, "retriever", span.key)
    _report_retrieval(span, ranked([span.state.seen[key][0] for key in out]), ended_ns)


def _covers(out: dict[str, Hit], inner: dict[str, Hit]) -> bool:
    """Tell whether all documents are in `out`, by key or, as retrievers mostly tell them apart, by text."""
    if all(key in out for key in inner):
        return True
    texts = {hit[0].text for hit in out.values()}
    return all(key in out or hit[0].text in texts for key, hit in inner.items())


def _is_fused(choice: Choice, inputs: object) -> bool:
    """Tell whether a step made one list of all documents of several results, by reciprocal ranks for instance.

    A step that writes a reranker's score is a reranker.
    """
    span = choice.span
    if (len(span.state.delivered) < 2 and not is_nested(inputs)) or not _is_whole(choice):
        return False
    if choice.base is span.found:
        return span.sources > 1 and not _is_one_result(choice)
    return is_nested(inputs) or _results_in(span.state, inputs) > 1


def _is_whole(choice: Choice) -> bool:
    """Tell whether a step gave out all documents that it had, which no step had chosen before, and rated none."""
    span, out, base, _ = choice
    state = span.state
    if len(out) > len(base) or not all(key in base for key in out) or not _covers(out, base):
        return False
    if any(delivery.is_choice and delivery.hits.keys() & base.keys() for delivery in state.delivered):
        return False
    return not any(is_reranked(hit[1], state.seen[key][1]) for key, hit in out.items() if key in state.seen)


def _is_one_result(choice: Choice) -> bool:
    """Tell whether one result holds all that a step gave out: several searches found the same, or one was made."""
    return any(delivery.hits.keys() >= choice.out.keys() for delivery in choice.span.state.delivered)


def _results_in(state: RunState, inputs: object) -> int:
    """Return how many different results of searches a chain was given, each in a list of its own."""
    results = {tuple(delivery.hits) for delivery in state.delivered if not delivery.is_choice}
    return len({keys for part in lists_in(inputs) if (keys := tuple(state.known.keys(part))) in results})


def _fuse(choice: Choice) -> None:
    """Put the pool into the order in which a step fused it."""
    span, out, base, ended_ns = choice
    state = span.state
    for rank, (key, (passage, facts)) in enumerate(out.items(), start=1):
        first = state.seen[key][0]
        score = first.score if passage.score is None else passage.score
        state.seen[key] = out[key] = (replace(first, rank=rank, score=score), facts)
    _order_pool(state, base, out)
    state.is_pool_ordered = state.is_fused = True
    state.delivered.append(Delivered(out, len(state.run.prompts), is_choice=False))
    for above in (span, *span.enclosing()):
        above.found = {**{key: hit for key, hit in above.found.items() if key not in base}, **out}
        above.found_ns = ended_ns


def _follow_order(span: OpenSpan) -> None:
    """Put the pool into the order in which a step is given it: parallel searches end in any order."""
    state = span.state
    if len(state.delivered) < 2 or state.is_fused:
        return
    keys = dict.fromkeys(state.known.keys(_parted(state, span.given or ())))
    if state.is_narrowed:
        is_joined = state.root is not None and keys.keys() == state.root.found.keys() and _is_joined(keys, state)
        if is_joined and not any(one.is_choice and one.hits.keys() >= keys.keys() for one in state.delivered):
            state.shown = list(keys)
    elif keys.keys() == state.pool.keys() and list(keys) != list(state.pool) and _is_joined(keys, state):
        state.pool = {key: state.pool[key] for key in keys}
        state.is_pool_ordered = True


def _is_rest_known(choice: Choice, given: dict[str, Hit]) -> bool:
    """Tell whether a step that searched gave out what was new: it left out what its state holds already."""
    span, out, base, _ = choice
    rest = span.found.keys() - out.keys()
    if not rest or base is not span.found or not rest <= given.keys():
        return False
    return [key for key in span.found if key in out] == list(out) or _is_joined(out, span.state)


def _candidates(span: OpenSpan, out: dict[str, Hit], given: dict[str, Hit]) -> dict[str, Hit]:
    """Return what the chain chose from: the choice made inside it, what was found inside, or its input."""
    for base in (span.chosen, span.found, given):
        if base and all(key in base for key in out):
            return base
    return {**given, **span.found}


def _delivered_with(state: RunState, out: dict[str, Hit]) -> dict[str, Hit]:
    """Return what documents of the pool were chosen from, where the chain's input does not show it."""
    for delivery in reversed(state.delivered):
        if delivery.hits.keys() >= out.keys():
            return delivery.hits
    parts = [delivery.hits for delivery in state.delivered if delivery.hits.keys() & out.keys()]
    return {key: hit for part in parts for key, hit in part.items()}


def _is_answered(state: RunState, value: object) -> bool:
    """Tell whether what a chain was given or gave out holds what the model said last, or a part of it."""
    if not state.last_text:
        return False
    said = state.last_text.strip()
    answer = answer_text(answer_in(fields_of(value)) or "", is_json=state.is_json_asked).strip()
    is_part = min(len(said), len(answer)) >= SHORTEST_PART_CHARS and (answer in said or said in answer)
    return said == answer or is_part


def _is_added_to(base: dict[str, Hit], out: dict[str, Hit], pool: dict[str, Hit]) -> bool:
    """Tell whether a step handed on all that it was given of the pool, and documents that are new beside it."""
    is_kept = bool(base) and len(out) > len(base) and out.keys() >= base.keys()
    if not is_kept or any(hit[0].text != out[key][0].text for key, hit in base.items()):
        return False
    return base.keys() <= pool.keys() and not any(key in pool for key in out if key not in base)


def _is_found_anew(span: OpenSpan, outputs: object, base: dict[str, Hit], out: dict[str, Hit]) -> bool:
    """Tell whether a graph's step searched though its state has documents, as for the web after a poor retrieval.

    Its documents have nothing of the given ones, and no model wrote them.
    """
    if not base or not out or span.has_model or fields_of(outputs) is None or not base.keys().isdisjoint(out):
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
    state, base = choice.span.state, choice.base
    since = next((one.prompts for one in reversed(state.delivered) if one.hits.keys() & base.keys()), 0)
    if since == len(state.run.prompts):
        return False
    return state.run.prompt_contains((hit[0] for key, hit in base.items() if key not in choice.out), since=since)


def _is_given_one(inputs: object) -> bool:
    """Tell whether a chain was given a single document: it decides on that one, and not on the pool."""
    parts = inputs.values() if isinstance(inputs, dict) else (inputs,)
    return any(isinstance(part, Document) for part in parts)


def _is_joined(out: Iterable[str], state: RunState) -> bool:
    """Tell whether documents are those of some deliveries, one behind the other."""
    return are_joined(out, [list(delivery.hits) for delivery in state.delivered])


def _record_waiting(state: RunState) -> None:
    choice, state.waiting = state.waiting, None
    if choice is not None:
        _record_choice(choice)


def _record_choice(choice: Choice, *, is_sure: bool = True) -> None:
    """Report a choice; one that may be a citation waits, and counts if a prompt or another step follows."""
    state, waiting = choice.span.state, choice.span.state.waiting
    if _is_handed_on(choice):
        return
    if _is_joined_inside(choice):
        _keep_order(choice)
        return
    is_again = waiting is not None and list(waiting.out) == list(choice.out)
    if waiting is not None and not is_again and choice.base.keys() <= waiting.out.keys():
        _record_waiting(state)  # what it kept was chosen from
    if not is_sure:
        state.waiting = waiting if is_again else choice
        return
    _record_waiting(state)
    if not is_again:
        _make_choice(choice)


def _make_choice(choice: Choice) -> None:
    span, out, base, ended_ns = choice
    state = span.state
    started_ns = max(span.started_ns, span.found_ns)
    is_only_rewritten = list(base) == list(out) and not _is_scored_anew(state, out, base)
    if all(key in base for key in out) and not is_only_rewritten:
        _report_choice(span, out, base, started_ns, ended_ns, "chain", span.within_key)
    else:
        _note_choice(state, out, "chain")  # merged, expanded or rewritten passages: a selection without ranks
        state.run.selected(_passages(out), selection_source="chain")
    _deliver_choice(span, out, base, ended_ns)


def _is_handed_on(choice: Choice) -> bool:
    """Tell whether a step left documents as they came: it looked at them, or copied their list."""
    span, out, base, _ = choice
    state = span.state
    if list(base) == list(out):
        return (base is span.chosen or not _is_scored_anew(state, out, base)) and not _is_rewritten(out, base)
    last = state.delivered[-1] if state.delivered else None
    if last is None or not last.is_choice or not out or span.found or list(last.hits) != list(out):
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
    span, out, base, _ = choice
    is_all = base is span.found and span.sources > 1 and base.keys() == out.keys()
    return is_all and _is_joined(out, span.state) and not _is_scored_anew(span.state, out, base)


def _keep_order(choice: Choice) -> None:
    """Leave what parallel steps chose in the order in which their lists were joined: they end in any order."""
    span, out, base, ended_ns = choice
    if span.is_narrowed:
        _deliver_choice(span, {key: base[key] for key in out}, base, ended_ns)
        return
    state = span.state
    before = {key for one in state.delivered[: span.results_before] for key in one.hits}
    new = {key: hit for key, hit in out.items() if key not in before}
    state.pool = {**{key: hit for key, hit in state.pool.items() if key not in new}, **new}
    state.is_pool_ordered = True
    state.delivered.append(Delivered(out, len(state.run.prompts), is_choice=False, is_inner=True))
    for above in (span, *span.enclosing()):
        here = {key: hit for key, hit in out.items() if above is span or key not in before}
        above.found = {**{key: hit for key, hit in above.found.items() if key not in here}, **here}
        above.found_ns = ended_ns


def _deliver_choice(span: OpenSpan, out: dict[str, Hit], base: dict[str, Hit], ended_ns: int) -> None:
    """Tell the spans above which documents a choice kept, up to the composite around it."""
    span.state.delivered.append(Delivered(out, len(span.state.run.prompts), is_choice=True))
    for above in (span,) if span.kind == "retriever" else (span, *span.enclosing()):
        above.is_narrowed = True
        above.chosen = out
        is_all = above.found.keys() <= base.keys()  # mostly, and seen in a quarter of the time
        rest = {} if is_all else {key: hit for key, hit in above.found.items() if key not in base}
        above.found = {**rest, **out}
        above.found_ns = ended_ns


def _report_choice(
    span: OpenSpan,
    out: dict[str, Hit],
    base: dict[str, Hit],
    started_ns: int,
    ended_ns: int,
    source: str,
    parent_key: str | None,
    model: str | None = None,
    top_n: int | None = None,
) -> None:
    state = span.state
    for rank, (key, hit) in enumerate(out.items(), start=1):
        out[key] = (replace(hit[0], rank=rank, score=_rescored(state, key, hit, base)), hit[1])
    is_whole_pool = list(base) == list(state.pool) and not state.is_pool_ordered and not state.known.renamed
    state.run.reranked(
        _passages(out),
        candidates=None if is_whole_pool else _passages(base),
        model=model or span.name,
        top_n=top_n,
        started_ns=started_ns,
        ended_ns=ended_ns,
        parent_key=parent_key or None,
        selection_source=source,
    )
    span.is_narrowed = True
    _note_choice(state, out, source)


def _note_choice(state: RunState, out: dict[str, Hit], source: str) -> None:
    state.is_narrowed = True
    state.selection_source = source
    state.last_chosen = list(out)
    state.told.update(out)


def _rescored(state: RunState, key: str, hit: Hit, base: dict[str, Hit] | None = None) -> float | None:
    seen = state.seen.get(key)
    if seen is not None and seen is not hit:
        return rerank_score_of(hit[1], seen[1])
    if base and any(is_equal(hit[1], facts) for _, facts in base.values()):
        return None  # a rewritten passage with the metadata of the one that it was made of
    return rerank_score_of(hit[1], None)


def _is_scored_anew(state: RunState, out: dict[str, Hit], base: dict[str, Hit]) -> bool:
    """Tell whether documents have a score that they had not when they were told of last."""
    return any(rerank_score_of(hit[1], state.told.get(key, base[key])[1]) is not None for key, hit in out.items())


def _deliver(span: OpenSpan, out: dict[str, Hit], ended_ns: int) -> None:
    """Tell the spans above what a retriever delivered, up to the composite around it."""
    is_inner = span.within is not None
    span.state.delivered.append(Delivered(out, len(span.state.run.prompts), span.is_narrowed, is_inner))
    for above in span.enclosing():
        above.found.update(out)
        above.sources += 1
        above.found_ns = ended_ns
        above.is_narrowed = above.is_narrowed or span.is_narrowed
        above.chosen = None
