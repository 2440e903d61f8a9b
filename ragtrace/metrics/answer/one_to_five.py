"""Parts of the single-call metrics: a grade from 1 to 5, also on [0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.judges.llm.grading_1to5 import AnswerGradeReply, answer_grade
from ragtrace.metrics.base import MetricSpec, Output, result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.metrics.base import Need, Outcome
    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult

THRESHOLD = 3.0


def normalised(grade: float) -> float:
    """Return a grade of 1 to 5 on [0, 1]: (grade - 1) / 4.

    Example:
        >>> normalised(4)
        0.75
    """
    return (grade - 1.0) / 4.0


def grade_spec(name: str, summary: str, needs: tuple[Need, ...], required: tuple[Need, ...]) -> MetricSpec:
    """Return the spec of a 1-to-5 metric: the grade, and ``NAME_normalised``.

    Example:
        >>> [output.name for output in grade_spec("tone_1to5", "Tone.", ("answer",), ("answer",)).outputs]
        ['tone_1to5', 'tone_1to5_normalised']
    """
    return MetricSpec(
        name=name,
        summary=summary,
        needs=needs,
        required=required,
        outputs=(
            Output(name=name, low=1.0, high=5.0, threshold=THRESHOLD),
            Output(name=f"{name}_normalised", threshold=normalised(THRESHOLD)),
        ),
        calls="1 judge call",
        source="oh-my-knowledge, single-call judge",
        prompts=(name,),
        options=("length_debias",),
    )


async def graded_answer(
    ctx: EvalContext,
    name: str,
    data: Mapping[str, object],
    form: type[AnswerGradeReply] = AnswerGradeReply,
    details: Mapping[str, object] | None = None,
) -> list[MetricResult]:
    """Ask for the grade and return both outputs.

    They are ``na abstained`` where `form` asks for an attempt and the answer only declines.

    Raises:
        JudgeError: the judge has no whole number from 1 to 5, also after the repair.
    """
    length_debias = ctx.options.length_debias
    found = await ctx.ask(answer_grade(name, data, form, length_debias=length_debias))
    facts = {**(details or {}), "reason": found.reason, "length_debias": length_debias}
    outcomes: tuple[Outcome, Outcome] = float(found.grade), normalised(found.grade)
    if not found.attempted:
        outcomes, facts["grade"] = ("abstained", "abstained"), found.grade
    return [result(name, outcomes[0], facts), result(f"{name}_normalised", outcomes[1], facts)]
