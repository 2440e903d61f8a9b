"""Assembles the record of an ended run: pools, ranks, the passages in the prompt, citations, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ragtrace.capture.attribution import PassageFinder, found_in, prompt_set, shown_texts
from ragtrace.capture.chunks import tell_apart
from ragtrace.capture.guard import record_internal_error
from ragtrace.capture.model_calls import is_refusal_reason, without_thoughts
from ragtrace.capture.passages import MOST_PASSAGES, ReadPassages, distinct, ranked
from ragtrace.capture.reading import reading_of
from ragtrace.capture.types import FinishedRun, Generation, Retrieval
from ragtrace.model import Pool, RagRecord
from ragtrace.model.record import ANSWER_LOST, CONTEXTS_TRUNCATED
from ragtrace.text import MAX_METADATA_CHARS, MAX_NAME_CHARS, fit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ragtrace.capture.reported import Reported
    from ragtrace.capture.run import Run
    from ragtrace.capture.types import Step
    from ragtrace.model import AnswerPart, Feedback, Passage

_NO_ANSWER = (
    "ragtrace: a run ended without an answer, and earlier runs of its workflow have one: its answer is missing. "
    "Call run.answered(text) inside the block, also where the text is empty"
)
_ENVELOPE_CHARS = 64  # of an item without its texts: names, numbers and brackets in JSON
_MOST_NAMES_CHARS = 2 * MAX_NAME_CHARS + _ENVELOPE_CHARS  # id and source of a passage
_MOST_FACT_CHARS = 2 * MAX_METADATA_CHARS + 256  # of a fact: key, value, and commas of a list
# What capture lost of a run before anybody looked for the contexts among it.
_LOST_BEFORE = ("prompts", "step_passages", "texts")


def finished_run(ended: Run) -> FinishedRun | None:
    """Build the record and the steps of a run that has ended; None where it turns out to be no question."""
    run = ended.ended()
    if run is None:
        return None
    tell_apart(run)
    lossy = dict(run.truncated)
    stages = _stages(run)
    texts = _texts_shown(run, stages)
    if "prompt_chars" in run.truncated and run.used_passages is None:
        stages = stages._replace(lost=max(stages.lost, len(run.texts) - len(texts)))
    pools = _pools(run, stages)
    facts = {name: value for name, value in run.attributes.items() if value is not None}
    facts |= _answer_facts(run, lossy)
    if lost := _lost_contexts(run, stages):
        lossy[CONTEXTS_TRUNCATED] = lossy.get(CONTEXTS_TRUNCATED, 0) + lost
    if stages.k is not None:
        facts["k"] = stages.k
    prompt_ids = stages.prompt_ids
    if texts:
        prompt_ids = (*(prompt_ids or ()), *(text.id for text in texts))
    if run.outcome == "answered" and "answer_parts" not in facts:
        facts["answer_parts"] = _parts(run, facts.get("answer", ""), pools, texts)
    record = RagRecord(
        id=f"{run.trace_id}-{run.span_id}",
        trace_id=run.trace_id,
        span_id=run.span_id,
        pools=pools,
        selection_source=stages.source if stages.retrieved or stages.selected else None,
        feedback=tuple(run.ratings),
        started=run.started_ns / 1e9,
        ended=run.ended_ns / 1e9,
        outcome=run.outcome,
        lossy=lossy,
        unranked_contexts=texts,
        reading=reading_of(run, pools, texts, prompt_ids),
        **facts,
    )
    limits = run.limits
    record = fitted(
        record, text_chars=limits.text_chars, passage_chars=limits.record_chars, fact_chars=limits.fact_chars
    )
    if cut := record.truncated_contexts:
        record = replace(record, lossy={**record.lossy, CONTEXTS_TRUNCATED: cut})
    return FinishedRun(
        record=record,
        steps=tuple(run.steps),
        started_ns=run.started_ns,
        ended_ns=run.ended_ns,
        failure=run.failure,
        prompt_ids=prompt_ids,
    )


def _answer_facts(run: Reported, lossy: dict[str, int]) -> dict[str, Any]:
    """Return what a whole run says of its answer: a refusal, one that is missing, or none in this workflow."""
    if run.outcome != "answered":
        return {}
    given = run.attributes.get("answer")
    if run.attributes.get("is_refused") or _has_refused(run, given or ""):
        lossy.pop(ANSWER_LOST, None)
        return {"is_refused": True, "is_answer_expected": True}
    if given is not None or not run.attributes.get("is_answer_given", True):
        return {}
    if not run.attributes.get("is_answer_expected", True):
        return {}
    if ANSWER_LOST not in lossy and run.attributes.get("workflow") in run.past.answering:
        lossy[ANSWER_LOST] = 1
        record_internal_error("ragtrace.capture.assembly.answer", line=_NO_ANSWER)
    return {"is_answer_given": False}


def _has_refused(run: Reported, answer: str) -> bool:
    """Tell whether the model call that made the answer ended in the provider's refusal; of none the last counts."""
    calls = [
        step
        for step in run.steps
        if isinstance(step, Generation) and step.operation != "embeddings" and step.failure is None
    ]
    if said := answer.strip():
        calls = [
            call for call in calls if any(without_thoughts(one.content).strip() == said for one in call.outputs)
        ]
    return bool(calls) and any(map(is_refusal_reason, calls[-1].finish_reasons))


def _lost_contexts(run: Reported, seen: _Stages) -> int:
    """Return how many contexts may have been delivered that capture left out, before the record's own limits."""
    lost = seen.lost + run.truncated.get("passages_unread", 0)
    if run.used_passages is None:
        lost += sum(run.truncated.get(kind, 0) for kind in _LOST_BEFORE)
    if not run.truncated.get("passages"):
        return lost
    given = run.used_passages if run.used_passages is not None else run.selection
    given = given if given is not None else run.pool_order
    lists = [given] if given is not None else [step.passages for step in run.steps if isinstance(step, Retrieval)]
    return lost + (run.truncated["passages"] if any(len(one) >= MOST_PASSAGES for one in lists) else 0)


def candidate_pool(
    steps: Sequence[Step], order: tuple[Passage, ...] | None, fused_keys: Collection[str]
) -> tuple[Passage, ...]:
    """Return the candidate pool: the fused order where one was given, else the leaves' results in turn.

    A passage that several leaves returned stands once, at its first place.
    """
    if order is not None:
        return order
    found = _results(steps, fused_keys)
    if len(found) == 1 and found[0].key not in fused_keys:
        return found[0].passages
    return ranked(distinct(tuple(passage for step in found for passage in step.passages)))


def _results(steps: Sequence[Step], fused_keys: Collection[str]) -> list[Retrieval]:
    """Return the searches whose results make the pool: leaves, and composites that fused theirs."""
    # A leaf that failed hides no composite that fell back on something else.
    searches = [step for step in steps if isinstance(step, Retrieval) and step.failure is None]
    if len(searches) <= 1:
        return searches
    above = {step.key: step.parent_key for step in searches if step.key}
    parents = set(above.values())
    ends = (s for s in searches if s.key is None or s.key in fused_keys or s.key not in parents)
    return [step for step in ends if not _is_in_fused(step.parent_key, above, fused_keys)]


def _is_in_fused(key: str | None, above: Mapping[str, str | None], fused_keys: Collection[str]) -> bool:
    """Tell whether a step stands, at any depth, inside a composite that fused its order."""
    for _ in range(len(above)):
        if key is None or key in fused_keys:
            break
        key = above.get(key)
    return key in fused_keys


class _Stages(NamedTuple):
    """The passages of a run by stage; None for a stage that was not seen."""

    retrieved: tuple[Passage, ...]
    selected: tuple[Passage, ...] | None
    used: tuple[Passage, ...] | None
    prompt_ids: tuple[str, ...] | None
    source: str
    k: int | None
    lost: int = 0  # passages that may stand where a prompt was cut


def _stages(run: Reported) -> _Stages:
    retrieved = candidate_pool(run.steps, run.pool_order, run.fused_keys)
    selected = None if run.selection is None else _sourced(run.selection, retrieved)
    used, prompt_ids, lost = _used(run, selected if selected is not None else retrieved)
    source = run.selection_source or _implied_source(retrieved, used)
    if used is not None and selected is None and run.pool_order is None:
        retrieved = _as_shown(retrieved, used, _results(run.steps, run.fused_keys))
    return _Stages(retrieved, selected, used, prompt_ids, source, run.attributes.get("k"), lost)


def _as_shown(
    pool: tuple[Passage, ...], used: tuple[Passage, ...], searches: Sequence[Retrieval]
) -> tuple[Passage, ...]:
    """Return a pool in which the prompt orders what searches found that ran side by side.

    Their own order says nothing. What the prompt does not show stands behind the rest of these searches. What was
    found before or after them keeps its place.
    """
    turns: list[list[Retrieval]] = []
    ended_ns = 0
    for search in sorted(searches, key=lambda one: one.started_ns):
        if turns and search.started_ns < ended_ns:
            turns[-1].append(search)
        else:
            turns.append([search])
        ended_ns = max(ended_ns, search.ended_ns)
    if len(turns) == len(searches):
        return pool
    shown = {passage.id: place for place, passage in enumerate(used)}
    places: dict[str, tuple[int, int]] = {}
    for turn, beside in enumerate(turns):
        for passage in (passage for search in beside for passage in search.passages):
            place = shown.get(passage.id, len(shown)) if len(beside) > 1 else 0
            places.setdefault(passage.id, (turn, place))
    return ranked(sorted(pool, key=lambda passage: places.get(passage.id, (len(turns), 0))))


def _texts_shown(run: Reported, seen: _Stages) -> tuple[Passage, ...]:
    """Return the tool outputs and joined contexts that the answer was made of: contexts without a rank."""
    if not run.texts or run.used_passages is not None:
        return ()
    shown = shown_texts(run, seen.retrieved, is_searched=_has_searched(run))
    answered = _answered_ids(run)
    told = (
        one
        for one in run.texts.values()
        if one not in shown
        if one.id in run.declared_texts
        or (one.id in answered and not (seen.retrieved and found_in(one.text, seen.retrieved)))
    )
    return ranked([*shown, *told])


def _answered_ids(run: Reported) -> set[str]:
    """Return the ids of texts whose call's message stands in the prompt that the answer replied to."""
    if not run.text_calls or not run.prompts:
        return set()
    asked = [step for step in run.steps if isinstance(step, Generation) and step.operation != "embeddings"]
    answer = run.attributes.get("answer", "").strip()
    last = [step for step in asked if answer and any(answer == one.content.strip() for one in step.outputs)]
    calls = {turn.call_id for step in (last or asked)[-1:] for turn in step.inputs if turn.call_id}
    return {name for call, name in run.text_calls.items() if call in calls}


def _has_searched(run: Reported) -> bool:
    has_passages = run.selection is not None or run.pool_order is not None or run.used_passages is not None
    return has_passages or _has_retrievals(run)


def _has_retrievals(run: Reported) -> bool:
    return any(isinstance(step, Retrieval) for step in run.steps)


def _parts(
    run: Reported, answer: str, pools: tuple[Pool, ...], texts: tuple[Passage, ...]
) -> tuple[AnswerPart, ...]:
    """Return the answer's sentences with what they cite; () where nothing is cited."""
    if not (pools or texts):
        return ()
    replies = (said.shown for step in run.steps if isinstance(step, Generation) for said in step.outputs)
    delivered, found = (ReadPassages((*(pools[at].passages if pools else ()), *texts)) for at in (-1, 0))
    prompts = run.prompts if run.used_text is None else [*run.prompts, run.used_text]
    from ragtrace.capture.citations import parts_of_run  # noqa: PLC0415 - its patterns take 7 ms of an import

    return parts_of_run(answer, delivered, found, prompts, replies, run.passage_labels)


def _sourced(chosen: tuple[Passage, ...], pool: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """Return a selection with the sources of the pool, where a reranker's documents carry none."""
    if all(p.source is not None for p in chosen) or all(p.source is None for p in pool):
        return chosen
    sources = {p.id: p.source for p in pool}
    return ReadPassages(p if p.source is not None else replace(p, source=sources.get(p.id)) for p in chosen)


def _implied_source(retrieved: tuple[Passage, ...], used: tuple[Passage, ...] | None) -> str:
    """Name the origin of a selection that nobody reported: the prompt if it showed fewer, else the retriever."""
    return "prompt" if used is not None and len(used) < len(retrieved) else "retriever"


def _used(
    run: Reported, delivered: tuple[Passage, ...]
) -> tuple[tuple[Passage, ...] | None, tuple[str, ...] | None, int]:
    """Return the passages that the answer was made of, their ids, and how many may stand where a prompt was cut.

    The first two are None where no prompt was seen.
    """
    sought = distinct(delivered)
    if run.used_passages is not None:
        named = found_in(run.used_text, sought) if run.used_text is not None else ()
        used = named or run.used_passages
        return used, tuple(p.id for p in used), _unfound(sought, named) if named and _is_cut(run) else 0
    if not run.prompts:
        return None, None, 0
    if not delivered:
        return None, (), 0
    finder = PassageFinder(sought)
    answer, has_order = run.attributes.get("answer", ""), run.selection is not None or run.pool_order is not None
    found = prompt_set(run.prompts, run.steps, answer, finder, is_told=not has_order)
    lost = _unfound(sought, found) if _is_cut(run) or finder.is_spent else 0
    lost += sum(bool(one.truncated) and not one.text for one in sought)  # the prompt may show it
    if found:
        return found, tuple(p.id for p in found), lost
    # The prompt shows none of them: a formatter rewrote them, so what was delivered stays what is scored.
    run.findings.unmatched = len(delivered)
    return None, (), lost


def _is_cut(run: Reported) -> bool:
    return "prompt_chars" in run.truncated


def _unfound(sought: Sequence[Passage], found: Sequence[Passage]) -> int:
    """Return how many passages a prompt does not show whole."""
    whole = set(map(id, found))
    return sum(id(passage) not in whole for passage in sought if passage.text.strip())


def _pools(run: Reported, seen: _Stages) -> tuple[Pool, ...]:
    pools: list[Any] = []
    if seen.retrieved or _has_retrievals(run):
        pools.append(Pool(stage="retrieved", passages=ranked(seen.retrieved)))
    if seen.selected is not None:
        pools.append(Pool(stage="reranked", passages=seen.selected))
    if seen.used is not None:
        pools.append(Pool(stage="used", passages=ranked(seen.used)))
    return tuple(pools)


def fitted(record: RagRecord, *, text_chars: int, passage_chars: int, fact_chars: int) -> RagRecord:
    """Return a record within its limits; `lossy` says how much of each kind was cut.

    Passages lose their texts from the lowest rank up: those that were only retrieved first, those that were
    delivered to the model last. Ids, scores and ranks stay as long as `fact_chars` lasts. Half of the labels would
    be other numbers, so that labels are kept whole or not at all.

    Args:
        record: a finished run's.
        text_chars: characters kept of all turns of the history, all answer parts, and all feedback, each.
        passage_chars: characters kept of all passages' texts; the same text counts once.
        fact_chars: characters kept of all passages' ids, sources and metadata, and of the labels.

    Example:
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> found = [Passage(id=str(rank), text=text, rank=rank) for rank, text in enumerate(("Oslo.", "Rome."), 1)]
        >>> record = RagRecord(id="1", pools=(Pool(stage="retrieved", passages=tuple(found)),))
        >>> cut = fitted(record, text_chars=99, passage_chars=9, fact_chars=9_999)
        >>> [p.text for p in cut.contexts], dict(cut.lossy)
        (['Oslo.', ''], {'passage_texts': 1})
    """
    lossy: dict[str, int] = {}
    changed: dict[str, Any] = {}
    texts = fit(record.unranked_contexts, lambda one: _names_chars(one) + len(one.text), passage_chars)
    if gone := len(record.unranked_contexts) - len(texts):
        changed["unranked_contexts"], lossy[CONTEXTS_TRUNCATED] = tuple(texts), gone
    passage_chars -= sum(len(one.text) for one in texts)
    pools = _within_texts(_within_facts(record.pools, fact_chars, lossy), passage_chars, lossy)
    if pools is not record.pools:
        changed["pools"] = pools
    parts: list[tuple[str, Sequence[Any], Callable[[Any], int], int]] = [
        ("history", record.history[::-1], lambda turn: _ENVELOPE_CHARS + len(turn.shown), text_chars),
        ("answer_parts", record.answer_parts, _part_chars, 2 * text_chars),
        ("feedback", record.feedback, _feedback_chars, 2 * text_chars),
    ]
    for name, items, size, room in parts:
        kept = fit(items, size, room)
        if gone := len(items) - len(kept):
            changed[name], lossy[name] = kept[::-1] if name == "history" else kept, gone
    if record.labels is not None:
        grades = record.labels.grades
        if sum(map(len, grades)) + _ENVELOPE_CHARS * len(grades) > fact_chars:
            changed["labels"], lossy["labels"] = None, len(grades)
    if not changed:
        return record
    counted = {name: record.lossy.get(name, 0) + gone for name, gone in lossy.items()}
    return replace(record, **changed, lossy={**record.lossy, **counted})


def fact_chars_of(passage: Passage) -> int:
    """Return the characters of a passage beside its text: id, source and metadata.

    Example:
        >>> from ragtrace.model import Passage
        >>> fact_chars_of(Passage(id="a", text="Oslo.", rank=1, metadata={"page": 3}))
        70
    """
    return _names_chars(passage) + (_metadata_chars(passage) if passage.metadata else 0)


def _part_chars(part: AnswerPart) -> int:
    return _ENVELOPE_CHARS + len(part.text) + sum(len(name) + 4 for name in part.citations)


def _feedback_chars(feedback: Feedback) -> int:
    return _ENVELOPE_CHARS + len(feedback.comment or "") + len(feedback.source)


def _names_chars(passage: Passage) -> int:
    return _ENVELOPE_CHARS + len(passage.id) + len(passage.source or "")


def _metadata_chars(passage: Passage) -> int:
    return sum(
        len(name) + (sum(len(str(item)) + 4 for item in value) if isinstance(value, list) else len(str(value)))
        for name, value in passage.metadata.items()
    )


def _within_texts(pools: tuple[Pool, ...], limit: int, lossy: dict[str, int]) -> tuple[Pool, ...]:
    """Return pools whose lowest ranks have no text; what was delivered goes last, since the judge reads it."""
    if sum([len(p.text) for pool in pools for p in pool.passages]) <= limit:  # each stage counted
        return pools
    texts = dict.fromkeys(p.text for pool in reversed(pools) for p in pool.passages)
    kept = {*fit(list(texts), len, limit), ""}
    gone = len(texts.keys() - kept)
    if not gone:
        return pools
    lossy["passage_texts"] = gone
    return _each(pools, lambda p: p if p.text in kept else _emptied(p))


def _within_facts(pools: tuple[Pool, ...], limit: int, lossy: dict[str, int]) -> tuple[Pool, ...]:
    """Return pools whose lowest ranks have no metadata; where ids alone are too much, the lowest ranks go."""
    passages = [p for pool in pools for p in pool.passages]
    # Nearly every run is far below that, which is quick to see.
    if len(passages) * _MOST_NAMES_CHARS + sum([len(p.metadata) for p in passages]) * _MOST_FACT_CHARS <= limit:
        return pools
    kept: list[Pool] = []
    for pool in reversed(pools):
        first = fit(pool.passages, _names_chars, limit)
        limit -= sum(map(_names_chars, first))
        kept.insert(0, replace(pool, passages=first))
    gone = len(passages) - sum(len(pool.passages) for pool in kept)
    if gone:
        lossy["passages"] = gone
    if delivered := len(pools[-1].passages) - len(kept[-1].passages):
        lossy[CONTEXTS_TRUNCATED] = lossy.get(CONTEXTS_TRUNCATED, 0) + delivered
    described = [p for pool in reversed(kept) for p in pool.passages if p.metadata]
    whole = set(map(id, fit(described, _metadata_chars, limit)))
    if len(whole) < len(set(map(id, described))):
        lossy["passage_metadata"] = len(described) - sum(id(p) in whole for p in described)
        return _each(kept, lambda p: p if not p.metadata or id(p) in whole else replace(p, metadata={}))
    return tuple(kept) if gone else pools


def _emptied(passage: Passage) -> Passage:
    return replace(passage, text="", truncated=passage.truncated or len(passage.text))


def _each(pools: Iterable[Pool], change: Callable[[Passage], Passage]) -> tuple[Pool, ...]:
    return tuple(replace(pool, passages=tuple(map(change, pool.passages))) for pool in pools)
