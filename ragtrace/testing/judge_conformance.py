"""Conformance suite for judges.

Subclass it in a test module, and pytest runs the rest; pytest is not imported.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from ragtrace.errors import JudgeError, JudgeUnsupported
from ragtrace.model import Passage, Pool, RagRecord
from ragtrace.testing.comparing import same

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ragtrace.judges.base import Audit, Grades, Judge

_TASKS = ("audit", "grades", "questions", "facts", "relevance")  # a method each
_VERSION = re.compile(r"[0-9a-f]{8}")
_PASSAGES = (
    Passage(id="p1", text="The lab is in Oslo.", rank=1),
    Passage(id="p2", text="Bread is baked daily.", rank=2),
)
WHOLE = RagRecord(
    id="whole",
    query="Where is the lab?",
    answer="The lab is in Oslo.",
    pools=(Pool(stage="used", passages=_PASSAGES),),
    reference="In Oslo.",
)


class JudgeConformance:
    """Checks one judge: its identity, its verdicts, odd records and concurrent use.

    Tasks that the judge leaves out of `Judge.tasks` must raise JudgeUnsupported.

    Example:
        >>> from ragtrace.judges.offline.judge import OverlapJudge
        >>> class TestOverlap(JudgeConformance):
        ...     def judge(self):
        ...         return OverlapJudge()
        >>> TestOverlap().test_an_audit_fits_its_record()
    """

    def judge(self) -> Judge:
        """Return a new judge."""
        raise NotImplementedError

    def records(self) -> Sequence[RagRecord]:
        """Return the records to judge. Add those that are hard for this judge."""
        return (
            WHOLE,
            RagRecord(id="empty"),
            replace(WHOLE, answer="\x00 \ufffd 日曜日", query=" "),
            replace(WHOLE, pools=(Pool(stage="used", passages=(Passage(id="", text="", rank=1),)),)),
        )

    def test_name_and_versions(self) -> None:
        """Two judges of one kind agree on name and versions.

        A version has 8 hex digits for each task.
        """
        judge, other = self.judge(), self.judge()
        same("has a name", bool(judge.name.strip()), expected=True)
        versions = {task: judge.version(task) for task in judge.tasks}
        same("versions", [task for task, text in versions.items() if not _VERSION.fullmatch(text)], [])
        same("versions of another judge", {task: other.version(task) for task in other.tasks}, versions)

    def test_a_task_that_it_cannot_do_is_refused(self) -> None:
        """A task outside `Judge.tasks` raises JudgeUnsupported."""
        judge = self.judge()
        for task in _TASKS:
            if task not in judge.tasks:
                same(task, type(_outcome(_asking(judge, task), WHOLE)), JudgeUnsupported)

    def test_an_audit_fits_its_record(self) -> None:
        """Supports are in [0, 1]; sources and cited parts exist."""
        for record, verdict in self._verdicts("audit"):
            _audit_fits(cast("Audit", verdict), record)

    def test_grades_fit_the_pool(self) -> None:
        """Grades are integers from 1 to 5 of passages in the pool."""
        for record, verdict in self._verdicts("grades"):
            grades = cast("Grades", verdict)
            known = {passage.id for pool in record.pools for passage in pool.passages}
            same("grades of unknown passages", set(grades.grades) - known, set())
            same("grades outside 1 to 5", set(grades.grades.values()) - {1, 2, 3, 4, 5}, set())

    def test_only_a_judge_error_escapes(self) -> None:
        """No record makes a task raise anything but a JudgeError."""
        judge = self.judge()
        for task in _TASKS:
            for record in self.records():
                outcome = _outcome(_asking(judge, task), record)
                is_other = isinstance(outcome, Exception) and not isinstance(outcome, JudgeError)
                same(f"{task} of {record.id} raised {outcome!r}", is_other, expected=False)

    def test_many_at_once(self) -> None:
        """Tasks that run at once on one event loop do not mix."""
        judge = self.judge()
        if "audit" not in judge.tasks:
            return
        records = [replace(WHOLE, id=str(number), answer=f"The lab is in Oslo {number}.") for number in range(8)]

        async def all_at_once() -> list[object]:
            return await asyncio.gather(*(judge.audit(record) for record in records), return_exceptions=True)

        alone = [_said(_outcome(self.judge().audit, record)) for record in records]
        same("verdicts at once", [_said(verdict) for verdict in asyncio.run(all_at_once())], alone)

    def test_closing_twice(self) -> None:
        """A judge may be closed twice."""

        async def close() -> None:
            judge = self.judge()
            await judge.aclose()
            await judge.aclose()

        asyncio.run(close())

    def _verdicts(self, task: str) -> list[tuple[RagRecord, object]]:
        judge = self.judge()
        if task not in judge.tasks:
            return []
        made = [(record, _outcome(_asking(judge, task), record)) for record in self.records()]
        return [(record, verdict) for record, verdict in made if not isinstance(verdict, JudgeError)]


def _asking(judge: Judge, task: str) -> Callable[[RagRecord], Awaitable[object]]:
    if task == "questions":
        return lambda record: judge.questions(record, 2)
    if task == "relevance":
        return lambda record: judge.relevance(record, with_reference=False)
    ask: Callable[[RagRecord], Awaitable[object]] = getattr(judge, task)
    return ask


def _outcome(ask: Callable[[RagRecord], Awaitable[object]], record: RagRecord) -> object:
    async def asked() -> object:
        return await ask(record)

    try:
        return asyncio.run(asked())
    except Exception as error:  # the caller looks at its type
        return error


def _said(verdict: object) -> object:
    return type(verdict) if isinstance(verdict, Exception) else cast("Audit", verdict).claims


def _audit_fits(audit: Audit, record: RagRecord) -> None:
    same("supports outside [0, 1]", [one.support for one in audit.claims if not 0.0 <= one.support <= 1.0], [])
    places = {place for claim in audit.claims for place in claim.sources}
    same("sources that are no contexts", {place for place in places if place >= len(record.contexts)}, set())
    parts = {citation.part for citation in audit.citations}
    same("parts that are not in the answer", {part for part in parts if part >= len(record.answer_parts)}, set())
