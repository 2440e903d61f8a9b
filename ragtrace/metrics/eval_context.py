"""The input of a metric: a record, its judge, embedder and options."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from ragtrace.errors import ConfigError, JudgeError, JudgeUnsupported
from ragtrace.judges.base import Audit, JudgePanel, PromptJudge, Sufficiency
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
        Costly,
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
    from ragtrace.model import MetricResult, Passage, RagRecord

_THRESHOLD_1TO5, _HALLUCINATION = 3.0, 0.5
_ONE_TO_FIVE = ("faithfulness_1to5", "answer_relevancy_1to5", "answer_coverage_1to5")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOptions:
    """Settings of metrics.

    Attributes:
        k_values: cut-offs of @K metrics; empty means the number of ranked contexts delivered.
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
        """Pass thresholds by output, as far as a person changed them."""
        chosen: dict[str, float] = {}
        if self.hallucination_threshold != _HALLUCINATION:
            chosen |= dict.fromkeys(("hallucination", "hallucination_min"), self.hallucination_threshold)
        if self.threshold_1to5 != _THRESHOLD_1TO5:
            chosen |= dict.fromkeys(_ONE_TO_FIVE, self.threshold_1to5)
            chosen |= {f"{name}_normalised": (self.threshold_1to5 - 1.0) / 4.0 for name in _ONE_TO_FIVE}
        return chosen


class EvalContext:
    """A record with the judge, embedder and pair scorer that a metric may ask about it.

    A task's verdict, or its failure, is kept for the metrics that follow, so that faithfulness, citations and
    no-answer share one audit call. The usage of a task is charged to the metric that asked first.
    One coroutine at a time may use a context.

    Attributes:
        record: the record to evaluate.
        judge: answers tasks about the record; None without one.
        embedder: turns texts into vectors; None without one.
        pairs: scores a sentence against a premise; None without one.
        options: settings of metrics.
        deep_retriever: retrieves the query again, deeper; None without one.
        tasks_used: tasks and prompts that the current metric asked for.
        usage: calls and tokens of the current metric.
        results: results of the metrics so far, by key.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> EvalContext(RagRecord(id="1", query="Where?", answer="Oslo.")).record.answer
        'Oslo.'
    """

    def __init__(
        self,
        record: RagRecord,
        *,
        judge: Judge | None = None,
        embedder: Embedder | None = None,
        pairs: PairScorer | None = None,
        options: MetricOptions | None = None,
        deep_retriever: DeepRetriever | None = None,
    ) -> None:
        self.record = record
        self.judge = judge
        self.embedder = embedder
        self.pairs = pairs
        self.options = options or MetricOptions()
        self.deep_retriever = deep_retriever
        self.tasks_used: list[Task] = []
        self.usage = JudgeUsage()
        self.results: dict[str, MetricResult] = {}
        self._verdicts: dict[Task, Costly | JudgeError] = {}
        self._members: list[list[EvalContext]] | None = None
        self._deep_pool: list[Future[DeepPool]] = []  # at most one; the contexts of a panel's members share it
        self._specifics: list[Specifics] = []  # likewise

    async def audit(self) -> Audit:
        """Return the fused reading of the answer; raises JudgeError."""
        return await self._once("audit", partial(self._judge_of("audit").audit, self.record))

    async def sufficiency(self) -> Sufficiency:
        """Return whether the contexts hold all that the query asks; raises JudgeError.

        The audit says so. A judge whose audit did not is asked once more.
        """
        judge = self._judge_of("sufficiency")
        audit = await self.audit()
        if audit.sufficient is not None:
            return Sufficiency(sufficient=audit.sufficient)
        return await self._once("sufficiency", partial(judge.sufficiency, self.record, audit))

    def kept(self, task: Task) -> Costly | JudgeError | None:
        """Return the verdict of a task, or its failure, where a metric asked for it; None where none did.

        Example:
            >>> from ragtrace.model import RagRecord
            >>> EvalContext(RagRecord(id="1")).kept("audit") is None
            True
        """
        return self._verdicts.get(task)

    async def grades(self) -> Grades:
        """Return the judge's grades of the candidate pool; raises JudgeError."""
        return await self._once("grades", partial(self._judge_of("grades").grades, self.record))

    async def grade(self, passages: Sequence[Passage], enough_fives: int) -> Grades:
        """Return the judge's grades of passages beyond the pool.

        The judge grades them in order until so many 5s are found. It continues the evaluation of the pool, so both
        share one repair call; raises JudgeError.
        """
        pool = await self.grades()
        judge: object = self.judge
        if not isinstance(judge, PassageGrader):
            raise JudgeUnsupported("the judge grades no passages beyond the pool")
        self.tasks_used.append("grades")
        self._verdicts.pop("deeper grades", None)  # each call has passages of its own
        return await self._once(
            "deeper grades",
            partial(
                judge.grade_passages,
                self.record,
                passages,
                enough_fives=enough_fives,
                may_repair=not pool.has_repaired,
            ),
        )

    async def deep_pool(self) -> DeepPool:
        """Return the passages of the deeper retrieval, called once a record; raises JudgeError."""
        if self.deep_retriever is None:
            raise JudgeUnsupported("no shadow retriever is configured")
        if not self._deep_pool:
            self._deep_pool.append(asyncio.ensure_future(self.deep_retriever.fetch(self.record)))
        return await self._deep_pool[0]

    async def questions(self) -> Questions:
        """Return questions the answer would answer; raises JudgeError."""
        judge = self._judge_of("questions")
        return await self._once("questions", partial(judge.questions, self.record, self.options.n_questions))

    async def facts(self) -> Facts:
        """Return the reference's facts attributed to contexts; raises JudgeError."""
        return await self._once("facts", partial(self._judge_of("facts").facts, self.record))

    async def relevance(self) -> Relevance:
        """Return each ranked context's relevance given the reference, or the answer where there is none."""
        given = bool((self.record.reference or "").strip())
        judge = self._judge_of("relevance")
        ranked = replace(self.record, unranked_contexts=())
        return await self._once("relevance", partial(judge.relevance, ranked, with_reference=given))

    async def ask(self, task: CustomTask[VerdictT]) -> VerdictT:
        """Return the verdict of a task that the metric defines itself; raises JudgeError."""
        self.tasks_used.extend(task.prompts)
        judge: object = self.judge
        if not isinstance(judge, PromptJudge):
            raise self._unsupported(task.name)
        return await self._once(f"custom:{task.name}", partial(task.ask, judge, self.record))

    async def checked(self) -> Checked:
        """Return the answer checked by the pair scorer, sentence by sentence; raises JudgeError."""
        if self.pairs is None:
            raise JudgeUnsupported("no pair scorer is configured")
        contexts = [(place, passage.text) for place, passage in self.contexts()]
        return await self._once("pairs", partial(check, self.pairs, self.record.answer, contexts))

    def specifics(self) -> Specifics:
        """Return the invented specifics of the answer, from the audit where the judge looked for them."""
        known = self.kept_specifics()
        if known is None:
            known = specifics_in(self.record)
            self._specifics.append(known)
        return known

    def kept_specifics(self) -> Specifics | None:
        """Return the invented specifics where a metric or the judge looked for them; None where none did."""
        audit = self._verdicts.get("audit")
        if isinstance(audit, Audit) and audit.invented is not None:
            return Specifics(audit.attempted, audit.unscorable, len(audit.claims), audit.invented)
        return self._specifics[0] if self._specifics else None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one row a text; raises JudgeError, JudgeUnsupported without an embedder."""
        if self.embedder is None:
            raise JudgeUnsupported("no embedder is configured")
        self.usage += JudgeUsage(embed_calls=1)
        try:
            return await self.embedder.embed(texts)
        except JudgeError:
            raise
        except Exception as error:
            raise JudgeError(f"the embedder failed with {type(error).__name__}") from error

    def contexts(self) -> list[tuple[int, Passage]]:
        """Return the delivered contexts that are not blank, each with its 0-based place in the record."""
        return _with_text(self.record.contexts)

    def ranked_contexts(self) -> list[tuple[int, Passage]]:
        """Return those of `contexts` that have a rank, best first."""
        return _with_text(self.record.ranked_contexts)

    def k_values(self) -> tuple[int, ...]:
        """Return each distinct cut-off.

        They are those of the options, else the record's k, else the number of ranked contexts delivered.

        Example:
            >>> from ragtrace.model import RagRecord
            >>> EvalContext(RagRecord(id="1"), options=MetricOptions(k_values=(5, 10, 5))).k_values()
            (5, 10)
        """
        if self.options.k_values:
            return tuple(dict.fromkeys(self.options.k_values))
        return (self.record.k if self.record.k is not None else len(self.record.ranked_contexts),)

    def member_contexts(self) -> list[list[EvalContext]]:
        """Return the contexts of a panel's members and repeats; always the same ones."""
        if self._members is None:
            seats = self.judge.seats() if isinstance(self.judge, JudgePanel) else ()
            self._members = [[self._under(judge) for judge in seat] for seat in seats]
        return self._members

    def begin_metric(self) -> None:
        """Forget the tasks and the usage of the metric before."""
        self.tasks_used.clear()
        self.usage = JudgeUsage()

    def _under(self, judge: Judge) -> EvalContext:
        member = EvalContext(
            self.record,
            judge=judge,
            embedder=self.embedder,
            pairs=self.pairs,
            options=self.options,
            deep_retriever=self.deep_retriever,
        )
        member._deep_pool = self._deep_pool
        member._specifics = self._specifics
        return member

    def _judge_of(self, task: Task) -> Judge:
        """Note a task that a metric asks for, and return its judge."""
        self.tasks_used.append(task)
        if self.judge is None or task not in self.judge.tasks:
            raise self._unsupported(task)
        return self.judge

    def _unsupported(self, task: Task) -> JudgeUnsupported:
        return JudgeUnsupported(f"judge {self.judge.name if self.judge else 'none'!r} cannot do {task!r}")

    async def _once(self, task: Task, ask: Callable[[], Awaitable[VerdictT]]) -> VerdictT:
        """Return the kept verdict of a task or raise its failure; ask at the first call."""
        if task not in self._verdicts:
            try:
                verdict = await ask()
            except JudgeError as error:
                self._verdicts[task] = error
                self.usage += error.usage or JudgeUsage()
                raise
            self._verdicts[task] = verdict
            self.usage += verdict.usage
        kept = self._verdicts[task]
        if isinstance(kept, JudgeError):
            raise kept
        return cast("VerdictT", kept)


def _with_text(passages: Sequence[Passage]) -> list[tuple[int, Passage]]:
    return [(place, passage) for place, passage in enumerate(passages) if passage.text.strip()]
