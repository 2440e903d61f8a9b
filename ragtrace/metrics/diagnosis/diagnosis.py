"""Diagnosis: the stage at which a run failed, or that none did."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Final

from ragtrace.errors import JudgeContextsTruncated, JudgeError, JudgeUnsupported
from ragtrace.judges.base import Audit, Grades
from ragtrace.judges.offline.reading import is_blank, version
from ragtrace.judges.scales import are_grades
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Output, answer_lacking, result
from ragtrace.metrics.diagnosis.contrary import is_contradicted
from ragtrace.metrics.diagnosis.needed import PassageGrades, followed
from ragtrace.metrics.diagnosis.relevancy import Responsiveness
from ragtrace.metrics.diagnosis.table import DecisionRow, DiagnosisFacts, decide
from ragtrace.metrics.graded import are_of
from ragtrace.model.claims import INVENTED, SUPPORTED
from ragtrace.model.diagnosis import DIAGNOSIS, FAILURES, STAGES
from ragtrace.model.reading import IN_PROMPT
from ragtrace.model.record import CONTEXTS_TRUNCATED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.judges.base import Claim
    from ragtrace.metrics.diagnosis.needed import By, Needed
    from ragtrace.metrics.diagnosis.table import Known
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult, RagRecord
    from ragtrace.model.diagnosis import Because

LOW_NUGGETS: Final = 0.5
SOME_SUPPORT: Final = 0.3  # of a claim: from it on the contexts seem to be about it
SOME_OF_INVENTION: Final = 0.15  # the same of a claim with an invented specific, which takes half of its support
_MOST_NAMED: Final = 5  # claims and specifics in the details
_WHOLE_SCOPES = ("gold", "shadow")
_LACKING: Mapping[str, Because] = {
    "no_answer_expected": "no_answer_expected",
    "partial_run": "partial_run",
    "missing_input:answer": "no_answer_given",
    "answer_missing": "answer_missing",
    "several_answers": "several_answers",
    "contexts_truncated": "contexts_truncated",
    "missing_input:query": "no_query",
    "no_contexts": "no_contexts",
}


async def diagnosis(ctx: EvalContext) -> list[MetricResult]:
    """1.0 for a run in which no stage failed, 0.0 for one with a failure; ``details.verdict`` names it.

    Higher is better; the mean is the share of runs without a fault. ``details.stage`` is the stage that failed
    first: retrieval, rerank, prompt, model or none. `ragtrace.metrics.diagnosis.table.ROWS` decides, by facts about
    the run: where the passages with a grade of at least `MetricOptions.relevant_grade` went (by labels, by a deeper
    retrieval, or by the judge's grades), whether the contexts are sufficient, and the claims of the answer: one
    claim without support, or one specific that no context has, is enough. Of a judge that compares words a
    contradiction counts only as `ragtrace.metrics.diagnosis.contrary.is_contradicted` says.

    It reads what other metrics asked for, such as the specifics of `invented_specifics`. Selected alone it asks for
    the audit, and without labels it then knows no grades. ``na``: no_answer_expected, partial_run, answer_missing,
    several_answers, missing_input:answer, missing_input:query, contexts_truncated, no_contexts where no stage was
    seen, and undetermined where the facts do not decide. The verdict is then ``undetermined``, and
    ``details.because`` says why. ``error``: the facts do not decide because the judge failed. Source: ragtrace.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.metrics.eval_context import EvalContext
        >>> from ragtrace.metrics.evaluate import evaluate
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Where is the lab?", answer="I do not know.", pools=(pool,))
        >>> reply = {"sufficient": True, "attempted": False, "noncommittal": True, "claims": [], "verdicts": []}
        >>> ctx = EvalContext(record, judge=LLMJudge(ScriptedChat([reply])))
        >>> found = asyncio.run(evaluate([METRIC], ctx))[0]
        >>> found.value, found.details["verdict"], found.details["stage"]
        (0.0, 'wrongly_refused', 'model')
    """
    lacking = _lacking(ctx.record)
    if lacking is not None:
        return [_undetermined(_LACKING[lacking], {}, lacking)]
    needed = followed(ctx.record, _relevance(ctx))
    verdicts = await _JudgeVerdicts.of(ctx)
    if verdicts.is_cut:
        return [_undetermined("contexts_truncated", _evidence(needed), CONTEXTS_TRUNCATED)]
    facts = verdicts.facts(ctx, needed)
    row = decide(facts)
    details = {**_known(facts), **_evidence(needed), **verdicts.evidence(ctx)}
    is_open = row.verdict == "undetermined" or (row.verdict == "ok" and facts.holds == "unknown")
    if verdicts.failure is not None and is_open:
        return [_undetermined("judge_failed", details, verdicts.failure.reason)]
    return [_result(row, details)]


def _lacking(record: RagRecord) -> str | None:
    """Return the reason for which a run has no verdict, whatever the judge says; None where it may have one."""
    lacking = answer_lacking(record)
    if lacking in _LACKING:
        return lacking
    if not record.query.strip():
        return "missing_input:query"
    if record.truncated_contexts:
        return CONTEXTS_TRUNCATED
    return None if record.pools or record.unranked_contexts else "no_contexts"


def _result(row: DecisionRow, details: Mapping[str, object]) -> MetricResult:
    if row.verdict == "undetermined":
        return _undetermined(row.because or "conflicting_evidence", details)
    words = {"verdict": row.verdict, "stage": STAGES[row.verdict]}
    return result(DIAGNOSIS, float(row.verdict not in FAILURES), {**words, **details})


def _undetermined(because: Because, details: Mapping[str, object], reason: str = "undetermined") -> MetricResult:
    words = {"verdict": "undetermined", "stage": "none", "because": because}
    return result(DIAGNOSIS, reason, {**words, **details})


class _JudgeVerdicts:
    """The judge's words about the answer and its contexts.

    Attributes:
        audit: its verdicts; None where it has none.
        failure: why it has none although it can.
        invented: specifics of an attempt that no context has; empty where nobody looked for them.
    """

    def __init__(self) -> None:
        self.audit: Audit | None = None
        self.is_sufficient: bool | None = None
        self.failure: JudgeError | None = None
        self.responsiveness = Responsiveness()
        self.invented: tuple[str, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Whether the judge could not hold all contexts."""
        has_unread = self.audit is not None and self.audit.unscorable == CONTEXTS_TRUNCATED
        return has_unread or isinstance(self.failure, JudgeContextsTruncated)

    @classmethod
    async def of(cls, ctx: EvalContext) -> _JudgeVerdicts:
        """Read what was asked; ask for the audit of an answer where nobody did."""
        verdicts = cls()
        if is_blank(ctx.record.answer) and ctx.kept("audit") is None:
            return verdicts
        try:
            verdicts.audit = await ctx.audit()
            if ctx.contexts():
                verdicts.is_sufficient = (await ctx.sufficiency()).sufficient
        except JudgeUnsupported:
            pass
        except JudgeError as error:
            verdicts.failure = error
        verdicts.invented = verdicts._specifics(ctx)
        verdicts.responsiveness = Responsiveness.of(ctx, verdicts._claims(ctx), verdicts.invented)
        return verdicts

    def facts(self, ctx: EvalContext, needed: Needed) -> DiagnosisFacts:
        """Return all facts about the run."""
        return DiagnosisFacts(
            sufficient=self._sufficient(ctx),
            reached=needed.reached,
            found=needed.found,
            selected=needed.selected,
            shown=needed.shown,
            related=self.responsiveness.related,
            touched=_touched(self._claims(ctx), self.invented),
            matched=_matched(ctx.record),
            attempted=self._attempted(ctx),
            supported=self._supported(ctx),
            contradicted=self._contradicted(ctx),
            responsive=self._responsive(),
            used=self._used(ctx, needed),
            complete=_above(_value(ctx, "nuggets_vital", "nuggets_all"), LOW_NUGGETS, LOW_NUGGETS),
        )

    def evidence(self, ctx: EvalContext) -> dict[str, object]:
        """Return counts and levels, the worst claims without support, and specifics that no context has."""
        found: dict[str, object] = {"relevant_grade": ctx.options.relevant_grade}
        claims = self._claims(ctx)
        if claims:
            verdicts = [claim.verdict for claim in claims]
            bad = sorted((claim for claim in claims if claim.verdict != SUPPORTED), key=lambda it: it.support)
            found["n_claims"] = len(verdicts)
            found["n_unsupported"] = verdicts.count("not_supported")
            found["n_contradicted"] = verdicts.count("contradicted")
            found["claims"] = [{**asdict(it), "sources": list(it.sources)} for it in bad[:_MOST_NAMED]]
        if claims or self.invented:
            found["n_invented"] = len(self.invented)
            found[INVENTED] = list(self.invented[:_MOST_NAMED])
        nuggets = _value(ctx, "nuggets_vital", "nuggets_all")
        if nuggets is not None:
            found |= {"nuggets": nuggets, "nuggets_low": LOW_NUGGETS}
        return found | self.responsiveness.evidence()

    def _read(self, ctx: EvalContext) -> Audit | None:
        """Return the audit of an attempt whose contexts the judge could read."""
        is_read = self.audit is not None and self.audit.attempted and ctx.contexts() and not ctx.record.is_refused
        return self.audit if is_read else None

    def _claims(self, ctx: EvalContext) -> tuple[Claim, ...]:
        audit = self._read(ctx)
        return () if audit is None else audit.claims

    def _specifics(self, ctx: EvalContext) -> tuple[str, ...]:
        found = ctx.kept_specifics() if self._read(ctx) is not None else None
        return found.invented if found is not None and found.is_attempt else ()

    def _sufficient(self, ctx: EvalContext) -> Known:
        if not ctx.record.contexts:  # nothing was delivered, and nothing answers no question
            return "no"
        return _tri(self.is_sufficient)

    def _attempted(self, ctx: EvalContext) -> Known:
        if is_blank(ctx.record.answer) or ctx.record.is_refused:
            return "no"
        if self.audit is not None:
            return _tri(self.audit.attempted)
        answered = _value(ctx, "answered")
        return _tri(None if answered is None else answered > 0.0)

    def _supported(self, ctx: EvalContext) -> Known:
        audit = self._read(ctx)
        if audit is None:
            return "unknown"
        if self.invented or any(claim.verdict != SUPPORTED for claim in audit.claims):
            return "no"
        return "yes" if audit.claims and not audit.truncated else "unknown"

    def _contradicted(self, ctx: EvalContext) -> Known:
        claims = self._claims(ctx)
        if not claims or ctx.judge is None:
            return "unknown"
        if "contradictions" in ctx.judge.tasks:
            return _tri(any(claim.verdict == "contradicted" for claim in claims))
        return "yes" if is_contradicted(claims, self.invented, ctx.record) else "unknown"

    def _responsive(self) -> Known:
        if self.audit is not None and self.audit.attempted and self.audit.noncommittal:
            return "no"
        return self.responsiveness.responsive

    def _used(self, ctx: EvalContext, needed: Needed) -> Known:
        delivered = {trace.id for trace in needed.delivered}
        claims = self._claims(ctx)
        if not claims or not delivered or needed.relevance is None:
            return "unknown"
        contexts = needed.relevance.ids(ctx.record.contexts)
        supported = [claim for claim in claims if claim.verdict == SUPPORTED]
        if any(contexts[place] in delivered for claim in supported for place in claim.sources):
            return "yes"
        is_told = all(claim.sources for claim in supported) and not _is_measuring(ctx)
        return "no" if is_told else "unknown"


def _is_measuring(ctx: EvalContext) -> bool:
    """Return whether the judge measures support, and does not say which context a claim rests on."""
    return ctx.judge is not None and "faithfulness" in ctx.judge.thresholds


def _relevance(ctx: EvalContext) -> PassageGrades | None:
    """Return the grades of the labels, else those that the judge gave to pool and deeper pool."""
    labels, least = ctx.record.labels, ctx.options.relevant_grade
    if labels is not None and are_of(ctx.record, labels) and labels.grades and are_grades(labels.grades.values()):
        is_whole = labels.label_scope in _WHOLE_SCOPES
        by: By = "shadow" if labels.label_scope == "shadow" else "labels"
        return PassageGrades(grades=labels.grades, by=by, is_whole=is_whole, least=least)
    pool, deeper = ctx.kept("grades"), ctx.kept("deeper grades")
    if not isinstance(pool, Grades):
        return None
    if isinstance(deeper, Grades):
        grades = {**pool.grades, **deeper.grades}
        return PassageGrades(grades=grades, by="shadow", is_whole=True, least=least)
    return PassageGrades(grades=pool.grades, by="grades", is_whole=False, least=least)


def _evidence(needed: Needed) -> dict[str, object]:
    """Return where the needed passages went: counts, the ranks of the first lost one, and ids."""
    if needed.relevance is None:
        return {}
    traces = needed.traces
    found: dict[str, object] = {
        "by": needed.relevance.by,
        "n_needed": len(traces),
        "n_needed_in_pool": sum(trace.rank is not None for trace in traces),
        "n_needed_in_prompt": len(needed.delivered),
    }
    lost = [trace for place in ("retrieval", "rerank", "prompt") for trace in needed.lost(place)]
    if lost:
        first = lost[0]
        ranks = {"grade": first.grade, "rank": first.rank, "selected_rank": first.selected_rank}
        found |= {f"lost_{name}": rank for name, rank in ranks.items() if rank is not None}
        found["lost"] = [{"id": trace.id, "grade": trace.grade, "stage": trace.place} for trace in lost]
    return found


def _known(facts: DiagnosisFacts) -> dict[str, object]:
    """Return the known facts as truth values."""
    values = {field.name: getattr(facts, field.name) for field in fields(facts)}
    return {name: value == "yes" for name, value in values.items() if value != "unknown"}


def _matched(record: RagRecord) -> Known:
    """Return whether the prompt that was seen showed any passage as it was delivered."""
    if record.pool("used"):
        return "yes"
    is_unread = any((sign.name, sign.about) == ("evidence_unread", IN_PROMPT) for sign in record.signs)
    return "no" if is_unread and record.contexts else "unknown"


def _touched(claims: Sequence[Claim], invented: Sequence[str]) -> Known:
    """Return whether something in the contexts speaks for or against a claim, or they have some of its words."""
    if not claims:
        return "unknown"
    begins = {it.split()[0] for it in invented if it.strip()}  # a number's unit may be written otherwise
    return _tri(
        any(
            claim.verdict in {SUPPORTED, "contradicted"}
            or claim.support >= SOME_SUPPORT
            or (claim.support >= SOME_OF_INVENTION and any(begin in claim.text for begin in begins))
            for claim in claims
        )
    )


def _value(ctx: EvalContext, *names: str) -> float | None:
    values = (ctx.results[name].value for name in names if name in ctx.results)
    return next((value for value in values if value is not None), None)


def _above(value: float | None, low: float, high: float) -> Known:
    """Return no below `low`, yes from `high` on, else unknown."""
    if value is None or low <= value < high:
        return "unknown"
    return "no" if value < low else "yes"


def _tri(value: object) -> Known:
    return "unknown" if value is None else "yes" if value else "no"


METRIC = CoroutineMetric(
    MetricSpec(
        name=DIAGNOSIS,
        summary="Whether no stage of the run failed; its details name the stage that did.",
        needs=("query", "answer", "contexts", "pool", "labels", "judge"),
        required=(),
        outputs=(Output(name=DIAGNOSIS, threshold=None),),
        calls="none beside other metrics; alone the audit, 1 judge call",
        source="ragtrace",
        task="audit",
        reads=("sufficiency", "grades", "questions"),
        options=("relevant_grade",),
        offline_version=version(),
        code_version=3,
    ),
    diagnosis,
)
