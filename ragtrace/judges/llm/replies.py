"""Forms of a judge's replies, checked strictly."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from ragtrace.errors import JudgeIncomplete, JudgeInvalidOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ragtrace.judges.llm.session import JudgeSession

# 40 claims with reasons are about 12,000 characters; far above that a reply is junk and is not parsed.
MAX_REPLY_CHARS = 1_000_000

# A list is left at its first wrong row: the errors of 330,000 rows in one reply took 600 MB.
ItemT = TypeVar("ItemT")
Listed = Annotated[list[ItemT], FailFast()]


class Form(BaseModel):
    """A reply of a judge or a part of one.

    Types are strict, and unknown fields are ignored.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class NumberedRow(Form):
    """A row of a reply, numbered from 1."""

    id: int

    @property
    def named_contexts(self) -> list[int]:
        """Numbers of contexts that the row names."""
        return []


class SourcedRow(NumberedRow):
    """A row that names the contexts behind it."""

    sources: Listed[int] = []

    @property
    def named_contexts(self) -> list[int]:
        """Numbers of contexts that the row names."""
        return self.sources


class VerdictRow(SourcedRow):
    """The verdict on one claim."""

    verdict: Literal["supported", "not_supported", "contradicted"]
    reason: str = ""


class CitationRow(Form):
    """The support of one (part, citation) pair."""

    part: int
    cites: str | int
    support: Literal["full", "partial", "none"]


class AuditReply(Form):
    """Reply to the audit prompt."""

    sufficient: bool | None = None
    attempted: bool
    noncommittal: bool
    claims: Listed[str]
    verdicts: Listed[VerdictRow]
    citations: Listed[CitationRow] = []


class AuditRepair(Form):
    """Reply to the audit's repair, with the missing rows."""

    verdicts: Listed[VerdictRow] = []
    citations: Listed[CitationRow] = []


class SufficiencyReply(Form):
    """Reply to the audit_sufficiency prompt."""

    sufficient: bool


class GradeRow(NumberedRow):
    """The grade of one passage."""

    grade: int = Field(ge=1, le=5)


class GradesReply(Form):
    """Reply to the grades prompt."""

    grades: Listed[GradeRow]


class QuestionRow(Form):
    """One question."""

    question: str
    noncommittal: bool


class QuestionsReply(Form):
    """Reply to the questions prompt."""

    questions: Listed[QuestionRow]


class FactsReply(Form):
    """Reply to the facts prompt."""

    facts: Listed[str]
    attributions: Listed[SourcedRow]


class FactsRepair(Form):
    """Reply to the facts' repair."""

    attributions: Listed[SourcedRow]


class RelevanceRow(NumberedRow):
    """The relevance of one context."""

    relevant: bool


class RelevanceReply(Form):
    """Reply to the relevance prompt."""

    verdicts: Listed[RelevanceRow]


FormT = TypeVar("FormT", bound=Form)
RowT = TypeVar("RowT", bound=NumberedRow)


def read(form: type[FormT], text: str) -> FormT:
    """Return a reply as its form.

    Raises:
        JudgeInvalidOutput: empty, too long, not JSON, or not of the form. The message names the fields at fault
            and never quotes the reply.

    Example:
        >>> read(GradesReply, '{"grades": [{"id": 1, "grade": 4}]}').grades[0].grade
        4
        >>> read(GradesReply, '{"grades": [{"id": 1, "grade": 4.5}]}')
        Traceback (most recent call last):
        ...
        ragtrace.errors.JudgeInvalidOutput: grades.0.grade: Input should be a valid integer
    """
    if len(text) > MAX_REPLY_CHARS:
        raise JudgeInvalidOutput(f"the reply has {len(text)} characters, more than {MAX_REPLY_CHARS}")
    if not text.strip():
        raise JudgeInvalidOutput("the reply is empty")
    try:
        return form.model_validate_json(text)
    except (ValidationError, UnicodeError) as error:
        fault = _fault(error)
    raise JudgeInvalidOutput(fault)


def _fault(error: ValidationError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return "the reply is not valid Unicode"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "the reply is not JSON"
    return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"


def aligned(rows: Sequence[RowT], known: int, n_contexts: int = 0) -> tuple[dict[int, RowT], list[int]]:
    """Match rows with the ids 1 to `known`.

    Returns the sound rows, and the ids to ask again. An id that is missing or doubled, or whose row names a
    context that does not exist, is asked again. An id outside 1 to `known` puts the whole numbering in doubt, so
    that all are asked again.

    Example:
        >>> rows = [NumberedRow(id=1), NumberedRow(id=3), NumberedRow(id=3)]
        >>> aligned(rows, 3)
        ({1: NumberedRow(id=1)}, [2, 3])
    """
    times = Counter(row.id for row in rows)
    if any(not 1 <= number <= known for number in times):
        return {}, list(range(1, known + 1))
    sound = {
        row.id: row
        for row in rows
        if times[row.id] == 1 and all(1 <= number <= n_contexts for number in row.named_contexts)
    }
    return sound, [number for number in range(1, known + 1) if number not in sound]


def completed(found: dict[int, RowT], owed: Collection[int]) -> dict[int, RowT]:
    """Return the rows that a repair owed.

    Raises:
        JudgeIncomplete: one is still missing; after the repair there is no other.
    """
    missing = [number for number in owed if number not in found]
    if missing:
        raise JudgeIncomplete(f"no sound verdict for the ids {listed(missing)}, also after the repair")
    return {number: found[number] for number in owed}


def listed(numbers: Collection[int]) -> str:
    """Return numbers as text, at most 50 of them."""
    shown = ", ".join(str(number) for number in list(numbers)[:50])
    return shown if len(numbers) <= 50 else f"{shown} and {len(numbers) - 50} more"


async def asked_rows(
    session: JudgeSession,
    data: Mapping[str, object],
    keys: tuple[str, ...],
    form: type[FormT],
    rows_of: Callable[[FormT], list[RowT]],
    *,
    n_contexts: int = 0,
) -> dict[int, RowT]:
    """Ask over data, and return the row of each item.

    Args:
        session: the evaluation, with the prompt to ask.
        data: the content of the fence.
        keys: where in `data` the items stand, each a mapping of number to text; the numbers run through all of
            them from 1 without a gap.
        form: the form of the reply.
        rows_of: where the rows stand in it.
        n_contexts: contexts that a row may name; a row that names another is asked again.

    Raises:
        JudgeError: of the call; JudgeIncomplete when a row is still missing, doubled or unknown after the repair,
            which asks for the owed items only.
    """
    items = {key: cast("Mapping[str, str]", data[key]) for key in keys}
    known = sum(map(len, items.values()))
    found, owed = aligned(rows_of(await session.ask(data, form)), known, n_contexts)
    if owed:
        again = dict(data)
        for key, texts in items.items():
            again[key] = {number: text for number, text in texts.items() if int(number) in owed}
        more = await session.mend(again, form, f"Give rows only for the ids {listed(owed)}.")
        found |= completed(aligned(rows_of(more), known, n_contexts)[0], owed)
    return found
