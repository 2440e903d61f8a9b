"""Scales of passage grades, each with its prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from ragtrace.judges.llm.replies import Form, GradesReply, Listed, NumberedRow, Whole, asked_rows
from ragtrace.judges.scales import from_umbrela

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import LabelScale
    from ragtrace.modes import Grading


class UmbrelaRow(NumberedRow):
    """The grade of one passage on the scale of UMBRELA."""

    grade: Whole = Field(ge=0, le=3)


class UmbrelaReply(Form):
    """Reply to the umbrela prompt."""

    grades: Listed[UmbrelaRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """A scale of grades, with its prompt.

    Attributes:
        prompt: id of the prompt that asks for the grades.
        label_scale: stands on every score made of them, so that scales are never mixed in one mean.
    """

    prompt: str
    label_scale: LabelScale

    async def graded(self, session: JudgeSession, data: Mapping[str, object]) -> dict[int, int]:
        """Ask over a query and numbered passages; raises JudgeError. Returns grades of 1 to 5 by number."""
        if self.label_scale == "direct5":
            direct = await asked_rows(session, data, ("passages",), GradesReply, lambda reply: reply.grades)
            return {number: row.grade for number, row in direct.items()}
        rows = await asked_rows(session, data, ("passages",), UmbrelaReply, lambda reply: reply.grades)
        strict = self.label_scale == "umbrela_mapped_strict"
        return {number: from_umbrela(row.grade, strict=strict) for number, row in rows.items()}


RUBRICS: dict[Grading, Rubric] = {
    "direct5": Rubric(prompt="grades", label_scale="direct5"),
    "umbrela": Rubric(prompt="umbrela", label_scale="umbrela_mapped"),
    "umbrela_strict": Rubric(prompt="umbrela", label_scale="umbrela_mapped_strict"),
}
