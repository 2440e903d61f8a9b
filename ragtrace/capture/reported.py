"""All that was reported of a run, as it adds up while the run's events are read.

A report is a method of `Run`. The method of the same name here takes what that kept of its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.capture.assembly import candidate_pool
from ragtrace.capture.declared import Declarations
from ragtrace.capture.passages import ReadPassages, ranked, renamed
from ragtrace.capture.types import Agent, Findings, Generation, Rerank, Retrieval, ToolCall
from ragtrace.capture.values import Doc
from ragtrace.model import Feedback, Labels
from ragtrace.model.passage import is_content_id
from ragtrace.model.record import ANSWER_LOST, SEVERAL_ANSWERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ragtrace.capture.declared import Declared
    from ragtrace.capture.past import PastRuns
    from ragtrace.capture.types import Failure, Limits, RunConfig, Step
    from ragtrace.model import AnswerPart, Message, Outcome, Passage, Usage
    from ragtrace.model.reading import How

MAX_STEPS = 256  # of an agent that loops; of more the oldest calls go, and are counted in `truncated`
MAX_TAGS = 64


class Reported:
    """All that was reported of a run, as far as its events were read. Texts are redacted and clean.

    The pipeline's thread writes it, and reads it once the run has ended.

    Attributes:
        trace_id: of its root span; "" when tracing is off.
        span_id: of its root span.
        started_ns: Unix ns.
        ended_ns: Unix ns; 0 while the run is open.
        limits: what may be kept of it.
        past: memory of the recorder's earlier runs.
        id_key: of the ids that are made of texts.
        attributes: facts of the run by their names in a `RagRecord`.
        steps: in the order in which they ended.
        prompts: rendered ones, the oldest first.
        lost_prompts: number of those that stood before them.
        passage_labels: ids of passages by the label that an answer may cite.
        selection: what was chosen; None where nothing is known of it.
        selection_source: how that became known.
        is_selection_final: the application said so itself; what is inferred leaves it as it is.
        texts: texts in place of passages, by id.
        text_calls: ids of texts by the ids of the calls that they answer.
        declared_texts: ids of those that the application says are evidence.
        used_passages: what the application said that the prompt held.
        used_text: all that went into the prompt, where the application gave it as a text.
        pool_order: a pool whose order was told.
        fused_keys: of composite retrievers whose order is that of the pool.
        ratings: what people said of the answer.
        truncated: what was lost, by kind.
        failure: what made the run fail.
        finished_as: outcome that `finish` was given.
        default_outcome: of a `finish` that was given none.
        template: name and version of the prompt, as a framework told them.
        findings: where what was reported was read.
        declarations: what the application says of where things stand.

    Args:
        config: the run's; where it redacts, texts may have become alike, so that none tells an id.
        limits: the run's.
        past: memory of the recorder's earlier runs.
        started_ns: Unix ns.
    """

    def __init__(self, config: RunConfig, limits: Limits, past: PastRuns, started_ns: int) -> None:
        self._is_redacted = config.redact is not None
        self.trace_id = self.span_id = ""
        self.started_ns = started_ns
        self.ended_ns = 0
        self.limits = limits
        self.past = past
        self.id_key = config.id_key
        self.attributes: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.prompts: list[str] = []
        self.lost_prompts = 0
        self.passage_labels: dict[str, str] = {}
        self.selection: tuple[Passage, ...] | None = None
        self.selection_source: str | None = None
        self.is_selection_final = False
        self.texts: dict[str, Passage] = {}
        self.text_calls: dict[str, str] = {}
        self.declared_texts: set[str] = set()
        self.used_passages: tuple[Passage, ...] | None = None
        self.used_text: str | None = None
        self.pool_order: tuple[Passage, ...] | None = None
        self.fused_keys: set[str] = set()
        self.ratings: list[Feedback] = []
        self.truncated: dict[str, int] = {}
        self.failure: Failure | None = None
        self.finished_as: Outcome | None = None
        self.default_outcome: Outcome | None = None
        self.template: tuple[object, object] | None = None
        self.findings = Findings()
        self.declarations = Declarations()

    def take(self, report: str, given: Mapping[str, Any]) -> None:
        """Take a report by its name, one of `REPORTS`."""
        getattr(self, report)(**given)

    @property
    def outcome(self) -> Outcome:
        """How the run ended; one that waits for a person is interrupted, whoever ends it."""
        if self.finished_as == "partial" and self.default_outcome == "interrupted":
            return "interrupted"
        return self.finished_as or ("error" if self.failure else self.default_outcome or "answered")

    def candidates(self) -> tuple[Passage, ...]:
        """Return the candidate pool so far, see `candidate_pool`."""
        return candidate_pool(self.steps, self.pool_order, self.fused_keys)

    def rename(self, ids: Mapping[tuple[str, str], str]) -> None:
        """Give passages another id everywhere: the new id by the old id and the text."""
        self.change_passages(lambda passages: renamed(passages, ids))

    def change_passages(self, change: Callable[[tuple[Passage, ...]], tuple[Passage, ...]]) -> None:
        """Change the passages of each step in turn, then those of the pool, the selection and the prompt."""
        self.steps = [_changed(step, change) for step in self.steps]
        self.pool_order, self.selection, self.used_passages = (
            None if passages is None else change(passages)
            for passages in (self.pool_order, self.selection, self.used_passages)
        )

    def lose(self, kind: str, count: int = 1) -> None:
        """Count something that the run has no room for."""
        self.truncated[kind] = self.truncated.get(kind, 0) + count

    def cut_prompt(self, length: int) -> None:
        """Note that a prompt had so many characters: passages that stand behind its end are not found in it."""
        if length:
            self.truncated["prompt_chars"] = max(length, self.truncated.get("prompt_chars", 0))

    # -- the reports --

    def _put(self, **facts: Any) -> None:
        """Set facts; beside one that was cut its length as it was is given, as ``<name>_chars``."""
        for name, value in facts.items():
            if name.removesuffix("_chars") in facts and name.endswith("_chars"):
                continue
            self.attributes[name] = value
            if length := facts.get(f"{name}_chars"):
                self.truncated[f"{name}_chars"] = length
            else:
                self.truncated.pop(f"{name}_chars", None)

    set_query = reference = interrupted = _put

    def set_attributes(self, **facts: Any) -> None:
        if "prompt_name" in facts:
            self.attributes.pop("prompt_version", None)  # of another prompt
        self._put(**facts)

    def prompted(self, **facts: Any) -> None:
        told = (self.attributes.get("prompt_name"), self.attributes.get("prompt_version"))
        if told[0] is None or told == self.template:
            self.set_attributes(**facts)
            self.template = (self.attributes.get("prompt_name"), self.attributes.get("prompt_version"))

    def declare(self, how: How, declared: Declared | None = None, question: str | None = None) -> None:
        if declared is not None:
            self.declarations.add(declared, how)
        if question is not None:
            self.declarations.ask(question)

    def add_tags(self, tags: Iterable[str]) -> None:
        every = dict.fromkeys((*self.attributes.get("tags", ()), *filter(None, tags)))
        self.attributes["tags"] = tuple(every)[:MAX_TAGS]

    def add_metadata(self, metadata: Mapping[str, object]) -> None:
        self.attributes["metadata"] = {**self.attributes.get("metadata", {}), **metadata}

    def set_history(self, history: Iterable[Message], n_lost: int = 0) -> None:
        self.attributes["history"] = tuple(history)
        if n_lost:
            self.truncated["history"] = n_lost

    def retrieved(
        self,
        passages: tuple[Passage, ...],
        query: str | None = None,
        error: Failure | None = None,
        *,
        is_fused: bool = False,
        **facts: Any,
    ) -> None:
        if is_fused and (key := facts.get("key")) is not None:
            self.fused_keys.add(key)
        elif is_fused:
            self.pool_order = passages
        asked = self.attributes.get("query", "") if query is None else query
        self._add(Retrieval(passages=passages, query=asked, failure=error, **facts))

    def reranked(
        self,
        passages: tuple[Passage, ...],
        candidates: tuple[Passage, ...] | None = None,
        error: Failure | None = None,
        selection_source: str = "explicit",
        *,
        is_by_hand: bool = False,
        **facts: Any,
    ) -> None:
        chosen = self._known_again(passages) if is_by_hand else passages
        pool = self.candidates() if candidates is None else candidates
        self._add(Rerank(passages=chosen, candidates=pool, failure=error, **facts))
        if error is None and not self.is_selection_final:
            self.selection, self.selection_source = chosen, selection_source

    def selected(self, passages: tuple[Passage, ...], selection_source: str, *, is_final: bool = False) -> None:
        if is_final or not self.is_selection_final:
            self.selection, self.selection_source = passages, selection_source
            self.is_selection_final = is_final

    def add_selected(self, passages: tuple[Passage, ...]) -> None:
        before = (self.selection or ()) if self.is_selection_final else ()
        known = {(passage.id, passage.text) for passage in before}
        new = (passage for passage in passages if (passage.id, passage.text) not in known)
        self.selected(ranked((*before, *new)), "explicit", is_final=True)

    def mark(
        self,
        passages: tuple[Passage, ...],
        has_own_id: tuple[bool, ...],
        *,
        is_choice: bool,
        source: str | None = None,
        started_ns: int,
        ended_ns: int,
    ) -> None:
        from ragtrace.capture.known import KnownDocuments  # noqa: PLC0415 - the pipeline's thread imports it

        pool, known = self.candidates(), KnownDocuments()
        known.note([one.text for one in pool], [one.id for one in pool])
        documents = [
            Doc(one.text, one.id if is_own else None, {} if is_content_id(one.id) else {"id": one.id})
            for one, is_own in zip(passages, has_own_id, strict=True)
        ]
        names = [name for name, _ in known.names(documents)]
        named = [replace(one, id=name or one.id) for one, name in zip(passages, names, strict=True)]
        if is_choice:
            self.add_selected(ReadPassages(named))
            return
        met = {(one.id, one.text) for one in pool}
        new = [one for one in named if (one.id, one.text) not in met]
        if new or not named:
            self.retrieved(ranked(new), source=source, started_ns=started_ns, ended_ns=ended_ns)

    def set_candidates(self, passages: tuple[Passage, ...]) -> None:
        self.pool_order = passages

    def used(
        self,
        passages: tuple[Passage, ...] | None = None,
        prompt: str | None = None,
        prompt_chars: int = 0,
        *,
        is_by_hand: bool = False,
    ) -> None:
        self.used_text = prompt
        self.used_passages = self._known_again(passages) if passages and is_by_hand else passages
        self.cut_prompt(prompt_chars)

    def label_passages(self, labels: Mapping[str, str]) -> None:
        self.passage_labels.update(labels)

    def add_prompt(self, prompt: str, prompt_chars: int = 0) -> None:
        self.prompts.append(prompt)
        self.cut_prompt(prompt_chars)
        if len(self.prompts) > MAX_STEPS:  # the last one may be the one that was answered
            self.lost_prompts += len(self.prompts[:-MAX_STEPS])
            del self.prompts[:-MAX_STEPS]
            self.lose("prompts")

    def add_text(
        self, passage: Passage, call_id: str | None = None, *, is_declared: bool = False, how: How | None = None
    ) -> None:
        if call_id is not None:
            self.text_calls.setdefault(call_id, passage.id)
        if how is not None and passage.source:
            self.findings.hows[passage.source] = how
        if is_declared:
            self.declared_texts.add(passage.id)
        if len(self.texts) < MAX_STEPS:
            self.texts.setdefault(passage.id, passage)
        elif passage.id not in self.texts:
            self.lose("texts")

    def generated(self, error: Failure | None = None, **facts: Any) -> None:
        self._add(Generation(failure=error, **facts))
        self.attributes.setdefault("model", facts.get("model"))

    def tool_called(self, error: Failure | None = None, **facts: Any) -> None:
        self._add(ToolCall(failure=error, **facts))

    def agent_called(self, error: Failure | None = None, **facts: Any) -> None:
        self._add(Agent(failure=error, **facts))

    def answered(self, answer: str | None = None, *, is_refused: bool = False, **facts: Any) -> None:
        self.attributes.pop("is_answer_expected", None)  # another integration in the same run found none
        if answer is None:
            self.truncated[ANSWER_LOST] = 1
            self.past.answering.add(self.attributes.get("workflow"))
            return
        self.truncated.pop(ANSWER_LOST, None)
        self.truncated.pop(SEVERAL_ANSWERS, None)
        self._put(answer=answer, **facts)
        self.attributes["is_refused"] = is_refused

    def answer_facts(self, usage: Usage | None = None, parts: tuple[AnswerPart, ...] | None = None) -> None:
        given = {"usage": usage, "answer_parts": parts}
        self.attributes.update((name, value) for name, value in given.items() if value is not None)

    def answered_by_branches(self, number: int) -> None:
        self.truncated[SEVERAL_ANSWERS] = number

    def expects_no_answer(self, *, is_of_application: bool) -> None:
        if not is_of_application or self.attributes.get("workflow") not in self.past.answering:
            self.attributes["is_answer_expected"] = False

    def labels(self, grades: Mapping[str, int], **facts: Any) -> None:
        self.attributes["labels"] = Labels(grades=grades, **facts)

    def set_k(self, k: int) -> None:
        self.attributes["k"] = k

    def feedback(self, **facts: Any) -> None:
        self.ratings.append(Feedback(**facts))

    def failed(self, error: Failure | None = None) -> None:
        self.failure = error

    def ends_as(self, outcome: Outcome | None = None) -> None:
        self.default_outcome = outcome

    def _known_again(self, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """Return passages; those that a person names without an id have that of the same text in the pool."""
        if self._is_redacted or not any(is_content_id(passage.id) for passage in passages):
            return passages
        known = {one.text: one.id for one in reversed(self.candidates())}
        return ReadPassages(
            replace(one, id=known[one.text]) if is_content_id(one.id) and one.text in known else one
            for one in passages
        )

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        if len(self.steps) <= MAX_STEPS:
            return
        # What was searched is the pool, and the last call has made the answer: the oldest call goes first.
        calls = (place for place, one in enumerate(self.steps) if isinstance(one, Generation | ToolCall))
        lost = self.steps.pop(next(calls, MAX_STEPS))
        self.lose("steps")
        if isinstance(lost, Retrieval | Rerank):
            self.lose("step_passages", len(lost.passages))


_NO_REPORTS = frozenset({"take", "outcome", "candidates", "rename", "change_passages", "lose", "cut_prompt"})
# What takes a report; a file of events may hold no other name.
REPORTS = frozenset(name for name in vars(Reported) if not name.startswith("_")) - _NO_REPORTS


def _changed(step: Step, change: Callable[[tuple[Passage, ...]], tuple[Passage, ...]]) -> Step:
    if isinstance(step, Retrieval):
        return replace(step, passages=change(step.passages))
    if isinstance(step, Rerank):
        return replace(step, candidates=change(step.candidates), passages=change(step.passages))
    return step
