"""One record under one judge: every judge task is asked at most once, whoever needs it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragtrace.capture.citations import with_cited_parts
from ragtrace.errors import ConfigError, JudgeError, JudgeUnsupported
from ragtrace.judges.base import Audit, JudgePanel, PromptJudge
from ragtrace.judges.cache.grade_cache import PassageGrader
from ragtrace.judges.nli.checking import check
from ragtrace.judges.offline.reading import Specifics, specifics_in
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ragtrace.judges.base import (
        CustomTask,
        Embedder,
        Facts,
        Grades,
        Judge,
        PairScorer,
        Questions,
        Relevance,
        Task,
        VerdictT,
    )
    from ragtrace.judges.nli.checking import Checked
    from ragtrace.metrics.deep_retrieval import DeepPool, DeepRetriever
    from ragtrace.model import Passage, RagRecord

_THRESHOLD_1TO5, _HALLUCINATION = 3.0, 0.5
_ONE_TO_FIVE = ("faithfulness_1to5", "answer_relevancy_1to5", "answer_coverage_1to5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Settings of metrics.

    Attributes:
        k_values: cut-offs of @K metrics; empty means the number of contexts delivered.
        n_questions: questions generated for answer relevancy, 1 to 10.
        harm_max: highest grade that counts as harm.
        relevant_grade: lowest grade on the 1 to 5 scale that counts as relevant.
        zero_on_empty_context: faithfulness without contexts is 0.0 instead of ``na no_contexts``.
        factual_beta: weight of recall against precision in factual correctness, 0.01 to 100; 1 makes it F1.
        entities_in_text: context entities recall asks for the reference's entities only, and looks them up in
            the contexts' text; one short call instead of one over all contexts.
        max_nuggets: nuggets looked up in the answer, vital ones first, 1 to 30.
        nuggets_from_graded: nuggets are made of contexts that the judge grades 3 or better, where the record has
            no labels; one more task, shared with the metrics over grades.
        length_debias: the 1-to-5 prompts hold a paragraph that length is no sign of quality.
        threshold_1to5: a grade below it does not pass, 1 to 5; 4 is strict.
        hallucination_threshold: a sentence below it counts as hallucinated, an answer below it does not pass.
    """

    k_values: tuple[int, ...] = ()
    n_questions: int = 3
    harm_max: int = 2
    relevant_grade: int = 4
    zero_on_empty_context: bool = False
    factual_beta: float = 1.0
    entities_in_text: bool = False
    max_nuggets: int = 20
    nuggets_from_graded: bool = False
    length_debias: bool = True
    threshold_1to5: float = _THRESHOLD_1TO5
    hallucination_threshold: float = _HALLUCINATION

    def __post_init__(self) -> None:
        if not 0.01 <= self.factual_beta <= 100.0:
            raise ConfigError(f"factual_beta is 0.01 to 100, got {self.factual_beta}")
        if not 1 <= self.max_nuggets <= 30:
            raise ConfigError(f"max_nuggets is 1 to 30, got {self.max_nuggets}")
        if not 1.0 <= self.threshold_1to5 <= 5.0:
            raise ConfigError(f"threshold_1to5 is 1 to 5, got {self.threshold_1to5}")

    @property
    def thresholds(self) -> dict[str, float]:
        """Pass thresholds by output that a person chose: those that are not the defaults."""
        chosen: dict[str, float] = {}
        if self.hallucination_threshold != _HALLUCINATION:
            chosen |= dict.fromkeys(("hallucination", "hallucination_min"), self.hallucination_threshold)
        if self.threshold_1to5 != _THRESHOLD_1TO5:
            chosen |= dict.fromkeys(_ONE_TO_FIVE, self.threshold_1to5)
            chosen |= {f"{name}_normalised": (self.threshold_1to5 - 1.0) / 4.0 for name in _ONE_TO_FIVE}
        return chosen


class EvalContext:
    """A record with the judge, embedder and pair scorer that may be asked about it.

    A task's verdict, or its failure, is kept for the metrics that follow, so that faithfulness, citations and
    no-answer share one audit call. What a task took is charged to the metric that asked first.
    One case is used by one coroutine at a time.
    """

    def __init__(
        self,
        record: RagRecord,
        *,
        judge: Judge | None = None,
        embedder: Embedder | None = None,
        pairs: PairScorer | None = None,
        options: Options | None = None,
        deep_retriever: DeepRetriever | None = None,
    ) -> None:
        self.record = record
        self.judge = judge
        self.embedder = embedder
        self.pairs = pairs
        self.options = options or Options()
        self.deep_retriever = deep_retriever
        self.tasks_used: list[Task] = []
        self._known: dict[str, Any] = {}
        self._unclaimed = JudgeUsage()
        self._seats: list[list[EvalContext]] | None = None
        self._panel: EvalContext | None = None  # whose member's seat this is
        self._deep_pool: Future[DeepPool] | None = None

    def set_citing(self, *, is_citing: bool) -> None:
        """Read the answer's citations where a metric needs them, else leave them out of the audit call."""
        if is_citing:
            self.record = with_cited_parts(self.record)
        elif self.record.answer_parts:
            self.record = replace(self.record, answer_parts=())

    async def audit(self) -> Audit:
        """Return the fused reading of the answer; raises JudgeError."""
        verdict: Audit = await self._ask("audit", lambda judge: judge.audit(self.record))
        return verdict

    async def grades(self) -> Grades:
        """Return the judge's grades of the candidate pool; raises JudgeError."""
        verdict: Grades = await self._ask("grades", lambda judge: judge.grades(self.record))
        return verdict

    async def grade(self, passages: Sequence[Passage], enough_fives: int) -> Grades:
        """Return the judge's grades of passages beyond the pool, in order, until so many 5s are found.

        It goes on with the evaluation of the pool, whose one repair is that of both; raises JudgeError.
        """
        pool = await self.grades()
        judge: object = self.judge
        if not isinstance(judge, PassageGrader):
            raise JudgeUnsupported("the judge grades no passages beyond the pool")
        self.tasks_used.append("grades")
        verdict: Grades | JudgeError = await self._charged(
            judge.grade_passages(self.record, passages, enough_fives=enough_fives, may_repair=not pool.has_repaired)
        )
        if isinstance(verdict, JudgeError):
            raise verdict
        return verdict

    async def deep_pool(self) -> DeepPool:
        """Return what the shadow retriever finds, called once a record; raises JudgeError."""
        if self._panel is not None:
            return await self._panel.deep_pool()
        if self.deep_retriever is None:
            raise JudgeUnsupported("no shadow retriever is configured")
        if self._deep_pool is None:
            self._deep_pool = asyncio.ensure_future(self.deep_retriever.fetch(self.record))
        return await self._deep_pool

    async def questions(self) -> Questions:
        """Return questions the answer would answer; raises JudgeError."""
        n = self.options.n_questions
        verdict: Questions = await self._ask("questions", lambda judge: judge.questions(self.record, n))
        return verdict

    async def facts(self) -> Facts:
        """Return the reference's facts attributed to contexts; raises JudgeError."""
        verdict: Facts = await self._ask("facts", lambda judge: judge.facts(self.record))
        return verdict

    async def relevance(self) -> Relevance:
        """Return each context's relevance given the reference, or the answer where there is none."""
        given = bool((self.record.reference or "").strip())
        verdict: Relevance = await self._ask(
            "relevance", lambda judge: judge.relevance(self.record, with_reference=given)
        )
        return verdict

    async def inquire(self, inquiry: CustomTask[VerdictT]) -> VerdictT:
        """Return the verdict of a task that the metric brings along; raises JudgeError."""
        self.tasks_used.extend(inquiry.prompts)
        name = f"inquiry:{inquiry.name}"
        if name not in self._known:
            self._known[name] = await self._inquired(inquiry)
        verdict: VerdictT | JudgeError = self._known[name]
        if isinstance(verdict, JudgeError):
            raise verdict
        return verdict

    async def checked(self) -> Checked:
        """Return the answer checked by the pair scorer, sentence by sentence; raises JudgeError."""
        if "pairs" not in self._known:
            self._known["pairs"] = await self._checked()
        verdict: Checked | JudgeError = self._known["pairs"]
        if isinstance(verdict, JudgeError):
            raise verdict
        return verdict

    def specifics(self) -> Specifics:
        """Return the invented specifics of the answer, from the audit where the judge looked for them."""
        audit = self._known.get("audit")
        if isinstance(audit, Audit) and audit.invented is not None:
            return Specifics(audit.attempted, audit.unscorable, len(audit.claims), audit.invented)
        return specifics_in(self.record)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one row a text; raises JudgeError, JudgeUnsupported without an embedder."""
        if self.embedder is None:
            raise JudgeUnsupported("no embedder is configured")
        self._unclaimed += JudgeUsage(embed_calls=1)
        try:
            return await self.embedder.embed(texts)
        except JudgeError:
            raise
        except Exception as error:
            raise JudgeError(f"the embedder failed with {type(error).__name__}") from error

    def contexts(self) -> list[tuple[int, Passage]]:
        """Return the delivered contexts that are not blank, each with its 0-based place in the record."""
        return [(i, passage) for i, passage in enumerate(self.record.contexts) if passage.text.strip()]

    def k_values(self) -> tuple[int, ...]:
        """Return the cut-offs of this record: the setting, else the record's k, else contexts delivered."""
        if self.options.k_values:
            return self.options.k_values
        return (self.record.k if self.record.k is not None else len(self.record.contexts),)

    def seats(self) -> list[list[EvalContext]]:
        """Return a case for each member and repeat of a panel, always the same: metrics share its tasks."""
        if self._seats is None:
            seats = self.judge.seats() if isinstance(self.judge, JudgePanel) else ()
            self._seats = [[self._under(judge) for judge in seat] for seat in seats]
        return self._seats

    def take_over(self, seat: EvalContext) -> None:
        """Count what a case of a panel spent, and the tasks it used, as its own."""
        self._unclaimed += seat.take_usage()
        self.tasks_used.extend(seat.tasks_used)

    def take_usage(self) -> JudgeUsage:
        """Return what was spent since the last call, and forget it."""
        spent, self._unclaimed = self._unclaimed, JudgeUsage()
        return spent

    def _under(self, judge: Judge) -> EvalContext:
        seat = EvalContext(
            self.record,
            judge=judge,
            embedder=self.embedder,
            pairs=self.pairs,
            options=self.options,
            deep_retriever=self.deep_retriever,
        )
        seat._panel = self
        return seat

    async def _ask(self, task: Task, ask: Callable[[Judge], Awaitable[Any]]) -> Any:
        self.tasks_used.append(task)
        if task not in self._known:
            self._known[task] = await self._try(task, ask)
        verdict = self._known[task]
        if isinstance(verdict, JudgeError):
            raise verdict
        return verdict

    async def _try(self, task: Task, ask: Callable[[Judge], Awaitable[Any]]) -> Any:
        if self.judge is None or task not in self.judge.tasks:
            name = self.judge.name if self.judge else "none"
            return JudgeUnsupported(f"judge {name!r} cannot do {task!r}")
        return await self._charged(ask(self.judge))

    async def _checked(self) -> Any:
        if self.pairs is None:
            return JudgeUnsupported("no pair scorer is configured")
        contexts = [(place, passage.text) for place, passage in self.contexts()]
        return await self._charged(check(self.pairs, self.record.answer, contexts))

    async def _inquired(self, inquiry: CustomTask[VerdictT]) -> Any:
        asked: object = self.judge
        if isinstance(asked, PromptJudge):
            return await self._charged(inquiry.ask(asked, self.record))
        name = self.judge.name if self.judge else "none"
        return JudgeUnsupported(f"judge {name!r} cannot do {inquiry.name!r}")

    async def _charged(self, asked: Awaitable[Any]) -> Any:
        try:
            verdict = await asked
        except JudgeError as error:
            if error.usage is not None:
                self._unclaimed += error.usage
            return error
        self._unclaimed += verdict.usage
        return verdict
