"""Replay the facts of received spans through the capture room, as our own callbacks report them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict, cast

from msgspec import structs

from ragtrace.capture import Failure, Limits, Run, before_question, finished_run, prompt_text, ranked
from ragtrace.capture.types import RunConfig
from ragtrace.ingest.dialects.base import SpanFacts, merged
from ragtrace.ingest.dialects.values import last_of
from ragtrace.ingest.tree import walk
from ragtrace.model import Message, content_id
from ragtrace.usage import added_usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ragtrace.capture import FinishedRun, ReadPassages, RunProcessor
    from ragtrace.ingest.dialects.base import RunSummary, SpanDocument
    from ragtrace.ingest.spans import ReceivedSpan
    from ragtrace.ingest.tree import Node, RunNodes
    from ragtrace.model import Passage
    from ragtrace.model.passage import IdKey


class _Keeper:
    """Gives a replayed run its ids."""

    def __init__(self, root: ReceivedSpan) -> None:
        self._root = root

    def on_start(self, workflow: str, started_ns: int) -> ReceivedSpan:
        """Return the received root, whose ids the run takes."""
        del workflow, started_ns
        return self._root

    def on_end(self, ref: object, run: Run) -> None:
        """Leave the run to `replayed`."""


class _CommonArguments(TypedDict):
    """Arguments that a run takes for each kind of step."""

    started_ns: int
    ended_ns: int
    error: Failure | None
    key: str
    parent_key: str | None


@dataclass(slots=True)
class _Step:
    """A step of the run, the innermost retrieval or rerank around it, and of a tool whether it searched."""

    span: ReceivedSpan
    facts: SpanFacts
    within: str | None = None
    is_fused: bool = False
    has_search: bool = False

    def common(self, run: Run) -> _CommonArguments:
        """Times, failure and keys."""
        return {
            "started_ns": self.span.started_ns,
            "ended_ns": self.span.ended_ns,
            "error": _failure(run, self.span),
            "key": self.span.span_id,
            "parent_key": self.within,
        }


def replayed(
    nodes: RunNodes,
    *,
    redact: Callable[[str], str] | None,
    id_key: IdKey | None,
    workflow: str,
    environment: str | None,
    span_metadata: tuple[str, ...],
) -> FinishedRun | None:
    """Return the run that some spans tell of; None where they are no question."""
    visited = list(walk(nodes.tops))
    texts = _texts(visited, id_key)
    steps = _steps(visited)
    told = [node.facts for node, _ in visited if node.facts is not None]
    tops = [node.facts for node in nodes.tops if node.facts is not None and node.role == "root"]
    asked = _asked(tops, told, steps)
    if not _is_question(told, asked):
        return None
    config = RunConfig(
        processor=cast("RunProcessor", _Keeper(nodes.root)),
        redact=redact,
        id_key=id_key,
        workflow=workflow,
        environment=environment,
        span_metadata=span_metadata,
    )
    run = Run(config, Limits(), nodes.root.started_ns or 1, {})
    run.begin(_first(facts.workflow for facts in tops or told), is_kept=True)
    summary = tops[0].summary if tops else None
    with run.reading():
        _describe(run, tops + told, asked)
        kept = _report_steps(run, steps, texts, has_summary=summary is not None)
        handed = _handed(visited, steps) if kept is None else None
        if summary is not None:
            _report_summary(run, summary, texts)
        elif kept is not None and run.selection is None:
            run.selected(_passages(run, kept, texts), selection_source="retriever")
        elif handed is not None and run.selection is None:
            run.selected(_passages(run, handed, texts), selection_source="chain")
        _conclude(run, tops, steps, nodes.root, summary)
    run.finish(summary.outcome if summary is not None else None, ended_ns=nodes.root.ended_ns or 1)
    finished = finished_run(run)
    if finished is None or summary is None:
        return finished
    unranked = _without_rank(run, summary, told, texts, id_key)
    if not unranked:
        return finished
    return structs.replace(
        finished,
        record=structs.replace(finished.record, unranked_contexts=unranked),
        prompt_ids=(*(finished.prompt_ids or ()), *(one.id for one in unranked)),
    )


def _steps(visited: Sequence[tuple[Node, tuple[Node, ...]]]) -> list[_Step]:
    """Return the steps from the top down; a call inside a call of the same kind is told once."""
    steps: dict[str, _Step] = {}
    for node, around in visited:
        if node.facts is None or node.role not in {"retrieval", "rerank", "generation", "tool"}:
            continue
        outer = next((one for one in around if one.role == node.role), None)
        if node.role == "generation" and outer is not None and outer.span.span_id in steps:
            one = steps[outer.span.span_id]
            one.facts = merged([one.facts, node.facts])
            continue
        if node.role in {"retrieval", "rerank"} and node.facts.documents is None and not node.span.is_error:
            continue
        searches = [one for one in around if one.role in {"retrieval", "rerank"}]
        within = next((one.span.span_id for one in reversed(searches) if one.span.span_id in steps), None)
        for tool in around:
            if node.role == "retrieval" and tool.role == "tool":
                steps[tool.span.span_id].has_search = True
        steps[node.span.span_id] = _Step(node.span, node.facts, within)
    return [*steps.values(), *_unseen_searches(visited, steps)]


def _handovers(
    visited: Iterable[tuple[Node, tuple[Node, ...]]],
) -> list[tuple[ReceivedSpan, SpanFacts, tuple[SpanDocument, ...]]]:
    """Return the chains and tools that gave out documents, in the order in which they ended, with the documents."""
    told = [(node.span, node.facts) for node, _ in visited if node.facts and node.role in {"root", "tool"}]
    found = [(span, facts, facts.documents) for span, facts in told if facts.documents]
    return sorted(found, key=lambda handover: handover[0].ended_ns)


def _unseen_searches(
    visited: Sequence[tuple[Node, tuple[Node, ...]]], steps: Mapping[str, _Step]
) -> Iterator[_Step]:
    """Yield a search for each chain or tool that gave out documents which no retriever's span has.

    Where retrievers are traced, a chain changes their documents, and only a tool searches beside them.
    """
    searches = [step for step in steps.values() if step.facts.role in {"retrieval", "rerank"}]
    known = _SeenDocuments(document for step in searches for document in step.facts.documents or ())
    for span, facts, given in _handovers(visited):
        new = tuple(document for document in given if document not in known)
        if not new or (searches and facts.role == "root") or facts.summary is not None:
            continue
        known.add(new)
        if facts.role == "tool":
            steps[span.span_id].has_search = True
        yield _Step(span, SpanFacts(role="retrieval", documents=new, data_source=facts.tool_name))


class _SeenDocuments:
    """Documents by id and by text: a span may tell either."""

    def __init__(self, documents: Iterable[SpanDocument]) -> None:
        self._names: set[tuple[str, str | None]] = set()
        self.add(documents)

    def add(self, documents: Iterable[SpanDocument]) -> None:
        for document in documents:
            self._names |= {("id", document.id), ("text", document.text)}

    def __contains__(self, document: SpanDocument) -> bool:
        names = {("id", document.id), ("text", document.text)} - {("id", None), ("text", None)}
        return not names.isdisjoint(self._names)


def _handed(
    visited: Sequence[tuple[Node, tuple[Node, ...]]], steps: Sequence[_Step]
) -> tuple[SpanDocument, ...] | None:
    """Return what a chain kept of the documents that were searched: a part, or a new order of one search's."""
    lists = [step.facts.documents for step in steps if step.facts.role == "retrieval" and step.facts.documents]
    pool = list(dict.fromkeys(_key(document) for documents in lists for document in documents))
    one_list = [[_key(document) for document in documents] for documents in lists]
    known = _SeenDocuments(document for documents in lists for document in documents)
    kept = None
    for _, facts, given in _handovers(visited):
        if facts.role != "root" or not all(document in known for document in given):
            continue
        keys = [_key(document) for document in given]
        is_part = len({*keys}) < len(pool) and {*keys} not in [{*one} for one in one_list]
        is_order = len(lists) == 1 and keys != pool and {*keys} == {*pool}
        kept = given if is_part or is_order else kept
    return kept


def _is_question(told: Sequence[SpanFacts], asked: str | None) -> bool:
    """Tell whether something was searched, or a model answered a question (decision 0010)."""
    if any(facts.role in {"retrieval", "rerank"} or facts.summary is not None for facts in told):
        return True
    return bool(asked) and any(facts.output for facts in told if facts.role in {"root", "generation"})


def _asked(tops: Sequence[SpanFacts], told: Sequence[SpanFacts], steps: Sequence[_Step]) -> str | None:
    """Return the question: the root's, the first search's, or the last thing that a user said to a model."""
    if tops and tops[0].summary is not None:
        return tops[0].query
    in_order = sorted(steps, key=lambda step: step.span.started_ns)
    searches = [step for step in in_order if step.facts.role == "retrieval" and step.within is None]
    inner = [facts for facts in told if facts.role == "root"]
    calls = [step for step in in_order if step.facts.role == "generation"]
    # A call before the first search is shown the question alone, as an agent's is.
    first_ns = searches[0].span.started_ns if searches else math.inf
    prompts = [last_of(step.facts.messages, "user") for step in calls if step.span.started_ns < first_ns]
    return _first(
        [
            *(facts.query for facts in tops),
            *prompts,
            *(step.facts.query for step in searches),
            *(facts.query for facts in inner),
        ]
    )


def _describe(run: Run, told: Sequence[SpanFacts], asked: str | None) -> None:
    if asked is not None:
        run.set_query(asked)
    run.set_attributes(session=_first(f.session for f in told), user=_first(f.user for f in told))
    run.add_tags(next((facts.tags for facts in told if facts.tags), ()))
    run.add_metadata(next((facts.metadata for facts in told if facts.metadata), {}))


def _report_steps(
    run: Run, steps: Sequence[_Step], texts: dict[str, str], *, has_summary: bool
) -> tuple[SpanDocument, ...] | None:
    """Report the steps as they ended; return what a retriever around others kept of theirs.

    Args:
        run: that is replayed.
        steps: of it.
        texts: of documents and tools, by id.
        has_summary: its root says which texts of tools were contexts.
    """
    selection = _fuse(steps)
    for step in sorted(steps, key=lambda step: step.span.started_ns):
        if step.facts.role == "generation" and step.within is None and step.facts.messages:
            run.add_prompt(prompt_text(step.facts.messages))
    # Of two steps that ended at once the inner one ended first.
    for _, _, step in sorted((step.span.ended_ns, -place, step) for place, step in enumerate(steps)):
        if step.facts.role == "tool" and step.facts.tool_output and not (has_summary or step.has_search):
            run.add_text(step.facts.tool_output, source=step.facts.tool_name)  # of a search its documents are known
        _REPORTS[step.facts.role](run, step, texts)
    return selection


def _fuse(steps: Sequence[_Step]) -> tuple[SpanDocument, ...] | None:
    """Mark composite retrievers whose order is the pool's; return what the outermost filter of them kept."""
    inside: dict[str, set[str]] = {}
    kept = None
    for step in reversed(steps):  # inner steps before those around them
        if step.facts.role != "retrieval" or step.span.is_error:
            continue
        given = {_key(document) for document in step.facts.documents or ()}
        found = inside.get(step.span.span_id, given)
        is_filter = given < found
        step.is_fused = step.span.span_id in inside and not is_filter
        kept = step.facts.documents if is_filter else kept
        if step.within is not None:
            inside.setdefault(step.within, set()).update(found if is_filter else given)
    return kept


def _report_retrieval(run: Run, step: _Step, texts: dict[str, str]) -> None:
    facts = step.facts
    run.retrieved(
        _passages(run, facts.documents or (), texts, facts.data_source),
        source=facts.data_source,
        query=facts.query,
        top_k=facts.top_k,
        **step.common(run),
        is_fused=step.is_fused,
    )


def _report_rerank(run: Run, step: _Step, texts: dict[str, str]) -> None:
    facts = step.facts
    candidates = None if facts.candidates is None else _passages(run, facts.candidates, texts)
    if candidates and not run.retrievals():  # the retriever itself was not traced
        run.set_candidates(candidates)
    run.reranked(
        _passages(run, facts.documents or (), texts),
        candidates=candidates,
        model=facts.request_model,
        top_n=facts.top_k,
        **step.common(run),
    )


def _report_generation(run: Run, step: _Step, texts: dict[str, str]) -> None:
    del texts
    facts = step.facts
    run.generated(
        model=facts.request_model,
        provider=facts.provider,
        response_model=facts.response_model,
        inputs=facts.messages,
        outputs=()
        if facts.output is None
        else (Message(role="assistant", content=facts.output, calls=facts.calls),),
        usage=facts.usage,
        finish_reasons=facts.finish_reasons,
        **step.common(run),
    )


def _report_tool(run: Run, step: _Step, texts: dict[str, str]) -> None:
    facts = step.facts
    del texts
    run.tool_called(
        facts.tool_name or step.span.name,
        result=facts.tool_output,
        **step.common(run),
    )


_REPORTS = {
    "retrieval": _report_retrieval,
    "rerank": _report_rerank,
    "generation": _report_generation,
    "tool": _report_tool,
}


def _report_summary(run: Run, summary: RunSummary, texts: dict[str, str]) -> None:
    """Report the facts that our own root has of the whole run."""
    run.set_attributes(corpus=summary.corpus, corpus_version=summary.corpus_version)
    if summary.interrupt is not None:
        run.interrupted(summary.interrupt)
    known = {p.id: p for step in reversed(run.retrievals()) for p in reversed(step.passages)}
    if summary.pool is not None:
        run.set_candidates(ranked([known.get(p.id, p) for p in _passages(run, summary.pool, texts)]))
    if summary.selected is not None:
        source = summary.selection_source or "explicit"
        run.selected(_passages(run, summary.selected, texts), selection_source=source, is_final=True)
    if summary.used is not None:
        sources = {name: passage.source for name, passage in known.items()}
        known |= {p.id: structs.replace(p, source=p.source or sources.get(p.id)) for p in run.selection or ()}
        run.used(ranked([known.get(p.id, p) for p in _passages(run, summary.used, texts)]))


def _without_rank(
    run: Run,
    summary: RunSummary,
    told: Sequence[SpanFacts],
    texts: dict[str, str],
    id_key: IdKey | None,
) -> tuple[Passage, ...]:
    """Return the texts of tools that our own root names, as far as a tool's span has them."""
    tools = {
        name: facts.tool_name for facts in told if facts.tool_output for name in _ids(facts.tool_output, id_key)
    }
    found = _passages(run, summary.unranked, texts)
    return tuple(structs.replace(one, source=run.reader.source(tools.get(one.id))) for one in found)


def _ids(text: str, key: IdKey | None) -> set[str]:
    """Return the ids that a text may have that came without one."""
    return {content_id(text), content_id(text, key)}


def _conclude(
    run: Run,
    tops: Sequence[SpanFacts],
    steps: Sequence[_Step],
    root: ReceivedSpan,
    summary: RunSummary | None,
) -> None:
    """Report the answer, or why there is none."""
    calls = [
        s for s in sorted(steps, key=lambda s: s.span.ended_ns) if s.facts.role == "generation" and not s.within
    ]
    last = calls[-1].facts if calls else None
    outputs = [facts.output for facts in tops] + [last.output if last is not None else None]
    answer = _first(outputs)
    usage = None
    for call in calls:
        usage = added_usage(usage, call.facts.usage)
    may_be_passages = summary is None and not calls
    if answer is not None and not (may_be_passages and run.is_mostly_passages(answer)):
        run.answered(answer, model=last.request_model if last is not None else None, usage=usage)
    elif calls:
        run.attributes.update(is_answer_given=False, usage=usage)
    elif not root.is_error:
        run.expects_no_answer()
    if last is not None and last.messages and summary is None and (turns := before_question(last.messages)):
        run.set_history(turns)
    failure = _failure(run, root)
    if failure is not None and summary is None:
        run.failed(failure)


def _texts(visited: Sequence[tuple[Node, tuple[Node, ...]]], id_key: IdKey | None) -> dict[str, str]:
    """Fill the documents of all spans from each other; return the text of each that has one, by id.

    A span may tell a document by its id alone, and another one by its text alone.
    """
    told = [(node, node.facts) for node, _ in visited if node.facts is not None]
    texts = {
        name: facts.tool_output
        for _, facts in told
        if facts.tool_output
        for name in _ids(facts.tool_output, id_key)
    }
    names: dict[str, str] = {}
    for _, facts in told:
        for one in (*(facts.documents or ()), *(facts.candidates or ())):
            if one.id is not None and one.text is not None:
                texts.setdefault(one.id, one.text)
                names.setdefault(one.text, one.id)
    for node, facts in told:
        if facts.documents or facts.candidates:
            documents, candidates = (
                None if part is None else tuple(_filled(one, texts, names) for one in part)
                for part in (facts.documents, facts.candidates)
            )
            node.facts = replace(facts, documents=documents, candidates=candidates)
    return texts


def _filled(one: SpanDocument, texts: Mapping[str, str], names: Mapping[str, str]) -> SpanDocument:
    if one.text is None:
        return replace(one, text=texts.get(one.id or ""))
    return replace(one, id=names.get(one.text)) if one.id is None else one


def _passages(
    run: Run, documents: Sequence[SpanDocument], texts: dict[str, str], source: str | None = None
) -> ReadPassages:
    found = run.reader.first(documents)
    return run.reader.columns(
        [one.text if one.text is not None else texts.get(one.id or "", "") for one in found],
        [one.id for one in found],
        [one.score for one in found],
        [one.metadata for one in found],
        source,
    )


def _key(document: SpanDocument) -> str:
    return document.id or document.text or ""


def _failure(run: Run, span: ReceivedSpan) -> Failure | None:
    if not span.is_error:
        return None
    kind = span.attributes.get("error.type")
    return run.failure_named(kind if isinstance(kind, str) else "_OTHER", span.status_message)


def _first(texts: Iterable[str | None]) -> str | None:
    """Return the first text that is not blank, else the first that is one at all."""
    found = [text for text in texts if text is not None]
    return next((text for text in found if text.strip()), found[0] if found else None)
