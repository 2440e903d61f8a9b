"""Grades on UMBRELA's scale, and the versions of each form of grading."""

from __future__ import annotations

from typing import Any

import pytest

from ragtrace.errors import JudgeInvalidOutput
from ragtrace.judges import LLMJudge, ScriptedChat
from tests.unit.judges.records import record


async def test_umbrela_grades_become_grades_of_five_under_a_scale_of_their_own() -> None:
    reply = {"grades": [{"id": n, "grade": n - 1} for n in range(1, 5)]}
    made = record("a", "b", "c", "d")
    lax = await LLMJudge(ScriptedChat([reply]), scale="umbrela").grades(made)
    strict = await LLMJudge(ScriptedChat([reply]), scale="umbrela_strict").grades(made)
    assert (sorted(lax.grades.values()), lax.scale) == ([1, 3, 4, 5], "umbrela_mapped")
    assert (sorted(strict.grades.values()), strict.scale) == ([1, 2, 4, 5], "umbrela_mapped_strict")


@pytest.mark.parametrize("grade", [4, -1, 2.0, "4", "two", None, True])
async def test_umbrela_grades_that_are_none_are_asked_again_once(grade: Any) -> None:
    wrong, right = ({"grades": [{"id": 1, "grade": value}]} for value in (grade, 0))
    mended = await LLMJudge(ScriptedChat([wrong, right]), scale="umbrela").grades(record("a"))
    assert dict(mended.grades) == {"p0": 1}
    with pytest.raises(JudgeInvalidOutput):
        await LLMJudge(ScriptedChat([wrong, wrong]), scale="umbrela").grades(record("a"))


def test_each_form_has_versions_of_its_own() -> None:
    chat = ScriptedChat()
    forms: list[dict[str, Any]] = [{}, {"scale": "umbrela"}, {"scale": "umbrela_strict"}, {"batch_size": 1}]
    assert len({LLMJudge(chat, **form).version("grades") for form in forms}) == 4
    assert len({LLMJudge(chat, **form).version("audit") for form in forms}) == 1


def test_a_scale_that_is_none() -> None:
    with pytest.raises(ValueError, match="direct5, umbrela"):
        LLMJudge(ScriptedChat(), scale="five")  # type: ignore[arg-type]
