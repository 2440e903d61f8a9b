"""One grade from 1 to 5 for a whole answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import Field

from ragtrace.judges.base import CustomTask
from ragtrace.judges.llm.replies import Flag, Form, Text, Whole
from ragtrace.model import JudgeUsage
from ragtrace.prompts.loader import plain_forms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.judges.base import PromptJudge
    from ragtrace.model import RagRecord


class AnswerGradeReply(Form):
    """Reply to a 1-to-5 prompt."""

    grade: Whole = Field(ge=1, le=5)
    reason: Text = ""


class AttemptGradeReply(AnswerGradeReply):
    """Reply to a 1-to-5 prompt that asks for an attempt too."""

    attempted: Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGrade:
    """The grade of one answer.

    Attributes:
        grade: 1 (worst) to 5.
        reason: the judge's words.
        attempted: False for an answer that only declines; True where the prompt does not ask.
    """

    grade: int
    reason: str
    attempted: bool = True
    usage: JudgeUsage = field(default_factory=JudgeUsage)


def answer_grade(
    prompt_id: str,
    data: Mapping[str, object],
    form: type[AnswerGradeReply] = AnswerGradeReply,
    *,
    length_debias: bool = True,
) -> CustomTask[AnswerGrade]:
    """Return the task that asks for a grade.

    It takes one call, two with a repair.

    Args:
        prompt_id: a 1-to-5 prompt.
        data: the content of the fence.
        form: of the reply.
        length_debias: False asks the prompt without its paragraph on length.

    Its coroutine raises JudgeError; JudgeInvalidOutput when the repair brings no whole number from 1 to 5 either.
    """
    prompts = (prompt_id,) if length_debias else plain_forms((prompt_id,))

    async def ask(judge: PromptJudge, _: RagRecord) -> AnswerGrade:
        session = judge.session(prompts[0])
        with session:
            reply = await session.ask(data, form)
        attempted = reply.attempted if isinstance(reply, AttemptGradeReply) else True
        return AnswerGrade(grade=reply.grade, reason=reply.reason, attempted=attempted, usage=session.usage)

    return CustomTask(name=prompts[0], prompts=prompts, ask=ask)
