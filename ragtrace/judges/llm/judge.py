"""A judge that asks a language model, over any `ChatModel`."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from ragtrace.errors import JudgeIncomplete, JudgeInvalidOutput
from ragtrace.judges.base import Fact, Facts, GeneratedQuestion, Grades, Judge, Questions, Relevance, Sufficiency
from ragtrace.judges.cache.grade_cache import GradeLru
from ragtrace.judges.cache.grade_memory import GradeMemory
from ragtrace.judges.cache.lru import Lru
from ragtrace.judges.llm.audit import MAX_CLAIMS, SUFFICIENCY, audited
from ragtrace.judges.llm.chat import ChatModel, ChatReply, SeededModel
from ragtrace.judges.llm.numbering import Numbered, grading_batches, numbered
from ragtrace.judges.llm.replies import (
    FactsRepair,
    FactsReply,
    QuestionsReply,
    RelevanceReply,
    SourcedRow,
    SufficiencyReply,
    aligned,
    asked_rows,
    completed,
    listed,
)
from ragtrace.judges.llm.rubrics import RUBRICS
from ragtrace.judges.llm.session import JudgeSession
from ragtrace.prompts.loader import PROMPT_IDS, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.judges.base import Audit, Task
    from ragtrace.judges.cache.grade_cache import GradeCache, LabelSet
    from ragtrace.judges.llm.nuggets import NuggetSet
    from ragtrace.model import Passage, RagRecord
    from ragtrace.modes import Grading

__all__ = ["MAX_CLAIMS", "ChatModel", "ChatReply", "LLMJudge"]


NUGGET_SETS = 1_000  # kept in memory; a set of 20 nuggets takes about 4 KiB
# Parts of the audit that not every judge can do.
_OF_THE_AUDIT = ("citations", "contradictions")
_SUFFICIENCY = "sufficiency"


class LLMJudge(Judge):
    """Asks a language model, checks every verdict, and computes every number.

    Records are data: they stand inside a fence (`ragtrace.prompts.fence`), contexts are numbered by us, and the
    numbers of a reply are checked to exist. A reply of another form, or with missing, doubled or unknown ids, is
    repaired by one more call an evaluation; after that the task fails with a `ragtrace.errors.JudgeError` that
    carries ``usage``. Coroutine-safe; not thread-safe, as little as its model.

    Args:
        model: the language model.
        name: stands on every score; ``openai:MODEL`` when left out.
        batch_size: passages graded in one call, 1 to 10.
        max_output_tokens: limit of one reply; generous, as reasoning models count their thoughts in it.
        scale: of the grades: ``direct5`` asks for 1 to 5; ``umbrela`` for UMBRELA's 0 to 3, which become 1, 3, 4
            and 5, or 1, 2, 4 and 5 with ``umbrela_strict``.
        nugget_cache: nuggets made before; the last 1,000 sets in memory when left out.
        grade_cache: grades given before: a passage seen for the same query is not asked for again. The last 10,000
            in memory when left out; several judges may share one; "off" asks for every passage.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> pool = Pool(stage="retrieved", passages=(Passage(id="a", text="Oslo is in Norway.", rank=1),))
        >>> judge = LLMJudge(ScriptedChat([{"grades": [{"id": 1, "grade": 4}]}]))
        >>> asyncio.run(judge.grades(RagRecord(id="1", query="Where is Oslo?", pools=(pool,)))).grades
        {'a': 4}
    """

    tasks: frozenset[Task] = frozenset({*_OF_THE_AUDIT, _SUFFICIENCY, *PROMPT_IDS})

    def __init__(
        self,
        model: ChatModel,
        name: str | None = None,
        *,
        batch_size: int = 10,
        max_output_tokens: int = 4096,
        scale: Grading = "direct5",
        nugget_cache: Lru[NuggetSet] | None = None,
        grade_cache: GradeCache | Literal["off"] | None = None,
    ) -> None:
        if not 1 <= batch_size <= 10:
            raise ValueError(f"batch_size is 1 to 10, got {batch_size}")
        if scale not in RUBRICS:
            raise ValueError(f"scale is {', '.join(RUBRICS)}, got {scale!r}")
        self.name = name or f"openai:{model.name}"
        self.thresholds: Mapping[str, float] = {}
        self.nugget_cache = Lru(NUGGET_SETS) if nugget_cache is None else nugget_cache
        self._model = model
        self._batch_size = batch_size
        self._rubric = RUBRICS[scale]
        self._scale = scale
        self._max_output_tokens = max_output_tokens
        self._memory = GradeMemory(
            GradeLru() if grade_cache is None else None if grade_cache == "off" else grade_cache,
            rubric=f"{load(self._rubric.prompt).hash} {scale}{' single' if batch_size == 1 else ''}",
            judge=model.fingerprint(),
        )

    def version(self, task: Task) -> str:
        """Return 8 hex digits over a task's prompts, model and parameters."""
        prompts, form = self._asked(task)
        hashes = ",".join(load(prompt).hash for prompt in prompts)
        parts = (hashes, self._model.fingerprint(), form, MAX_CLAIMS)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def _asked(self, task: Task) -> tuple[tuple[str, ...], object]:
        """Return the prompts of a task, and the settings that change them."""
        if task == "grades":
            return (self._rubric.prompt,), (self._scale, self._batch_size)
        if task == "audit" or task in _OF_THE_AUDIT:
            return ("audit",), 0
        if task == _SUFFICIENCY:
            return ("audit", SUFFICIENCY), 0
        return (task,), 0

    async def audit(self, record: RagRecord) -> Audit:
        """Read the answer against the delivered contexts.

        It takes one call, two with a repair.

        Returns:
            Claims with verdicts (``support`` 1.0 or 0.0), and one citation verdict for each distinct pair whose
            passage was delivered; a citation of a passage without text is ``none`` without being asked.

        Raises:
            JudgeError: no usable reply; JudgeIncomplete when verdicts stay missing after the repair.
        """
        session = self.session("audit")
        with session:
            return await audited(record, session)

    async def sufficiency(self, record: RagRecord, audit: Audit) -> Sufficiency:
        """Decide whether the contexts hold all that the query asks, in a call of its own.

        The audit asks it too. This is its one repair, for an audit that did not say.

        Raises:
            JudgeError: no usable reply; JudgeIncomplete when the audit's repair is used up or brings nothing.
        """
        if audit.has_repaired:
            raise JudgeIncomplete("the judge did not say whether the contexts suffice, also after the repair")
        session = self.session(SUFFICIENCY)
        session.without_repair()
        with session:
            data = {"query": record.query, "contexts": Numbered(record).shown()}
            try:
                reply = await session.ask(data, SufficiencyReply)
            except JudgeInvalidOutput as error:
                raise JudgeIncomplete(f"no word on sufficiency, also after the repair: {error}") from error
        return Sufficiency(sufficient=reply.sufficient, usage=session.usage)

    async def grades(self, record: RagRecord) -> Grades:
        """Grade the candidate pool (the first pool), 1 to 5.

        Passages that the cache knows are not asked for. The others take one call for each of
        `ragtrace.judges.llm.numbering.grading_batches`, one after the other; passages are numbered from 1 within a
        batch. Blank passages get no grade; an empty pool costs no call.

        Raises:
            JudgeError: no usable reply; JudgeIncomplete when a grade stays missing after the repair. What was
                graded before it is kept.
        """
        return await self.grade_passages(record, record.pools[0].passages if record.pools else ())

    async def grade_passages(
        self,
        record: RagRecord,
        passages: Sequence[Passage],
        *,
        enough_fives: int | None = None,
        may_repair: bool = True,
    ) -> Grades:
        """Grade any passages against the record's query, as `grades` does.

        Args:
            record: the record with the query.
            passages: the passages to grade.
            enough_fives: stop once so many have a 5; passages are then asked for in the order given.
            may_repair: False where the evaluation that this goes on with has had its one repair.
        """
        session = self.session(self._rubric.prompt)
        if not may_repair:
            session.without_repair()
        known = await self._memory.recall(record, passages)
        unseen = [passage for passage in passages if passage.id not in known.grades]
        grades = dict(known.grades)
        with session:
            for batch in self._batches(record, unseen, in_order=enough_fives is not None):
                if enough_fives is not None and sum(grade == 5 for grade in grades.values()) >= enough_fives:
                    break
                shown = numbered(passage.text for passage in batch)
                data = {"query": record.query, "passages": shown}
                found = await self._rubric.graded(session, data)
                given = {passage.id: found[n] for n, passage in enumerate(batch, start=1)}
                await self._memory.keep(record, [(passage, given[passage.id]) for passage in batch])
                grades |= given
        return Grades(
            grades=grades,
            scale=self._rubric.label_scale,
            usage=session.usage,
            cached=len(known.grades),
            has_repaired=session.has_repaired,
            cache_fault=known.fault,
        )

    def _batches(
        self, record: RagRecord, passages: Sequence[Passage], *, in_order: bool
    ) -> Iterator[Sequence[Passage]]:
        """Yield batches. With `in_order` early passages stand in early batches, and only a batch is shuffled."""
        step = self._batch_size if in_order else max(len(passages), 1)
        for first in range(0, len(passages), step):
            yield from grading_batches(record, self._batch_size, passages[first : first + step])

    @property
    def keeps_labels(self) -> bool:
        """True when labels gather in a file, by query."""
        return self._memory.keeps_labels

    async def labelled(self, record: RagRecord) -> LabelSet | None:
        """Return all grades for the query in the record's corpus.

        None where no file keeps them.

        Raises:
            OSError: the file cannot be read.
        """
        return await self._memory.labelled(record)

    async def questions(self, record: RagRecord, n: int) -> Questions:
        """Write `n` (1 to 10) questions that the answer would answer.

        The query is not shown. Blank questions are dropped with their flag, so that fewer than `n` may be
        returned.

        Raises:
            JudgeError: no usable reply; JudgeIncomplete when all are blank after the repair.
        """
        n = min(max(n, 1), 10)
        session = self.session("questions")
        data, want = {"answer": record.answer}, f"Write {n}."
        with session:
            kept = _written(await session.ask(data, QuestionsReply, want))
            if not kept:
                kept = _written(await session.mend(data, QuestionsReply, want))
            if not kept:
                raise JudgeIncomplete("the judge wrote no question")
        return Questions(questions=tuple(kept[:n]), usage=session.usage)

    async def facts(self, record: RagRecord) -> Facts:
        """Attribute the facts of the reference to contexts.

        Raises:
            JudgeError: no usable reply; JudgeIncomplete when attributions stay missing after the repair.
        """
        session = self.session("facts")
        contexts = Numbered(record)
        data = {"query": record.query, "contexts": contexts.shown(), "reference": record.reference or ""}
        with session:
            reply = await session.ask(data, FactsReply)
            found = await _attributed(session, data, reply, len(contexts))
        facts = tuple(
            Fact(text=reply.facts[n - 1].strip(), sources=contexts.indexes(row.sources))
            for n, row in sorted(found.items())
        )
        return Facts(facts=facts, usage=session.usage)

    async def relevance(self, record: RagRecord, *, with_reference: bool) -> Relevance:
        """Decide for each non-blank context whether it helps.

        It helps to reach the answer, or the reference. No context costs no call.

        Raises:
            JudgeError: no usable reply; JudgeIncomplete when a verdict stays missing after the repair.
        """
        session = self.session("relevance")
        contexts = Numbered(record)
        if not contexts.kept:
            return Relevance(relevant={})
        target = (record.reference or "") if with_reference else record.answer
        data = {"query": record.query, "contexts": contexts.shown(), "answer": target}
        with session:
            rows = await asked_rows(session, data, ("contexts",), RelevanceReply, lambda reply: reply.verdicts)
        relevant = {contexts.kept[n - 1][0]: row.relevant for n, row in sorted(rows.items())}
        return Relevance(relevant=relevant, usage=session.usage)

    async def aclose(self) -> None:
        """Release the model's connections, and the cache's file."""
        await self._memory.aclose()
        await self._model.aclose()

    def with_seed(self, seed: int) -> LLMJudge:
        """Return the same judge with another seed, where its model has one.

        No nugget and no grade is shared.
        """
        other = copy.copy(self)
        if isinstance(self._model, SeededModel):
            vars(other).update(_model=self._model.with_seed(seed))
        other.nugget_cache = Lru(NUGGET_SETS)
        # A repeat that read the first one's grades would be none.
        other._memory = replace(self._memory, judge=f"{self._memory.judge} repeat={seed}")  # noqa: SLF001 -- our own
        return other

    def session(self, prompt_id: str) -> JudgeSession:
        """Return a new evaluation that begins with this prompt; see `ragtrace.judges.base.CustomTask`."""
        return JudgeSession(self._model, load(prompt_id), max_output_tokens=self._max_output_tokens)


async def _attributed(
    session: JudgeSession, data: Mapping[str, object], reply: FactsReply, n_contexts: int
) -> dict[int, SourcedRow]:
    wanted = [n for n, text in enumerate(reply.facts, start=1) if text.strip()]
    found, doubtful = aligned(reply.attributions, len(reply.facts), n_contexts)
    owed = [n for n in doubtful if n in wanted]
    if owed:
        again = {**data, "facts": {str(n): reply.facts[n - 1] for n in owed}}
        want = f'Leave facts empty; give attributions only for the ids {listed(owed)} of "facts".'
        more = await session.mend(again, FactsRepair, want)
        found |= completed(aligned(more.attributions, len(reply.facts), n_contexts)[0], owed)
    return {n: found[n] for n in wanted}


def _written(reply: QuestionsReply) -> list[GeneratedQuestion]:
    return [
        GeneratedQuestion(text=row.question.strip(), noncommittal=row.noncommittal)
        for row in reply.questions
        if row.question.strip()
    ]
