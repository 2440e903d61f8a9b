"""The scales on which a judge may grade passages, each with a prompt of its own and its way to grades of 1 to 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from ragtrace.judges.llm.replies import Form, GradesReply, Listed, NumberedRow, asked_rows
from ragtrace.judges.scales import from_umbrela

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import LabelScale
    from ragtrace.settings import Grading


class UmbrelaRow(NumberedRow):
    """The grade of one passage on the scale of UMBRELA."""

    grade: int = Field(ge=0, le=3)


class UmbrelaReply(Form):
    """Reply to the umbrela prompt."""

    grades: Listed[UmbrelaRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """A scale of grades, with its prompt and form.

    Attributes:
        prompt: id of the prompt that asks for the grades.
        label_scale: stands on every score made of them, so that scales are never mixed in one mean.
        graded: asks over a query and numbered passages; returns grades of 1 to 5 by number, raises JudgeError.
    """

    prompt: str
    label_scale: LabelScale
    graded: Callable[[JudgeSession, Mapping[str, object]], Awaitable[dict[int, int]]]


async def _direct(session: JudgeSession, data: Mapping[str, object]) -> dict[int, int]:
    rows = await asked_rows(session, data, ("passages",), GradesReply, lambda reply: reply.grades)
    return {number: row.grade for number, row in rows.items()}


async def _umbrela(session: JudgeSession, data: Mapping[str, object]) -> dict[int, int]:
    rows = await asked_rows(session, data, ("passages",), UmbrelaReply, lambda reply: reply.grades)
    return {number: from_umbrela(row.grade) for number, row in rows.items()}


async def _umbrela_strict(session: JudgeSession, data: Mapping[str, object]) -> dict[int, int]:
    rows = await asked_rows(session, data, ("passages",), UmbrelaReply, lambda reply: reply.grades)
    return {number: from_umbrela(row.grade, strict=True) for number, row in rows.items()}


RUBRICS: dict[Grading, Rubric] = {
    "direct5": Rubric(prompt="grades", label_scale="direct5", graded=_direct),
    "umbrela": Rubric(prompt="umbrela", label_scale="umbrela_mapped", graded=_umbrela),
    "umbrela_strict": Rubric(prompt="umbrela", label_scale="umbrela_mapped_strict", graded=_umbrela_strict),
}
