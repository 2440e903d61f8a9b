"""One sound row for each numbered item that a judge was shown, with the one repair for those it left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.judges.llm.replies import FormT, RowT, aligned, completed, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ragtrace.judges.llm.session import JudgeSession


async def asked_rows(
    session: JudgeSession,
    data: Mapping[str, Any],
    keys: tuple[str, ...],
    form: type[FormT],
    rows_of: Callable[[FormT], list[RowT]],
    *,
    n_contexts: int = 0,
) -> dict[int, RowT]:
    """Ask over data, and return the row of each item by its number.

    Args:
        session: the evaluation, with the prompt to ask.
        data: what goes inside the fence.
        keys: where in `data` the items stand, each a mapping of number to text; the numbers run through all of
            them from 1 without a gap.
        form: the form of the reply.
        rows_of: where the rows stand in it.
        n_contexts: contexts that a row may name; a row that names another is asked again.

    Raises:
        JudgeError: of the call; JudgeIncomplete when a row is still missing, doubled or unknown after the repair,
            which asks for the owed items only.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.judges.llm.replies import GradesReply
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> chat = ScriptedChat([{"grades": [{"id": 1, "grade": 4}]}])
        >>> session = LLMJudge(chat).session("grades")
        >>> data = {"passages": {"1": "Oslo is in Norway."}}
        >>> asked = asked_rows(session, data, ("passages",), GradesReply, lambda reply: reply.grades)
        >>> asyncio.run(asked)[1].grade
        4
    """
    known = sum(len(data[key]) for key in keys)
    found, owed = aligned(rows_of(await session.ask(data, form)), known, n_contexts)
    if owed:
        again = {**data, **{key: _only(data[key], owed) for key in keys}}
        more = await session.mend(again, form, f"Give rows only for the ids {listed(owed)}.")
        found |= completed(aligned(rows_of(more), known, n_contexts)[0], owed)
    return found


def _only(items: Mapping[str, str], numbers: list[int]) -> dict[str, str]:
    return {number: text for number, text in items.items() if int(number) in numbers}
