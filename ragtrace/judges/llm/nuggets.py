"""Facts that a good answer holds, and their support in the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, runtime_checkable

from ragtrace.judges.base import CustomTask
from ragtrace.judges.cache.grade_cache import joint_key, normal_form, text_key
from ragtrace.judges.llm.numbering import numbered
from ragtrace.judges.llm.replies import Form, FormT, Listed, NumberedRow, RowT, asked_rows, spelled
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ragtrace.judges.base import PromptJudge, Task
    from ragtrace.judges.cache.lru import Lru
    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.judges.stances import Stance
    from ragtrace.model import RagRecord

CREATE, LABEL, ASSIGN = PROMPTS = ("nuggets_create", "nuggets_label", "nuggets_assign")
MAX_NUGGETS = 30  # made of one record; as many as AutoNuggetizer makes
BATCH = 10  # nuggets labelled or looked up in one call
WINDOW = 10  # passages read in one call
NOTHING_KNOWN = "not enough information"
# The nugget looked up in its place: a sentence that an abstaining answer states.
_ABSTENTION = "There is not enough information to answer the query"

Importance = Literal["vital", "okay", "na"]
NuggetSupport = Literal["support", "partial_support", "not_support"]
_SUPPORT_BY_STANCE: dict[Stance, NuggetSupport] = {
    "for": "support",
    "partial": "partial_support",
    "not_wholly": "partial_support",
    "absent": "not_support",
    "against": "not_support",
}


class NuggetsReply(Form):
    """Reply to the nuggets_create prompt."""

    nuggets: Listed[str]


class LabelRow(NumberedRow):
    """The importance of one nugget. ``na`` drops the nugget."""

    importance: Annotated[Importance, spelled(Importance)]


class LabelsReply(Form):
    """Reply to the nuggets_label prompt, and to its repair."""

    labels: Listed[LabelRow]


class AssignmentRow(NumberedRow):
    """Support of one nugget in the answer."""

    support: Annotated[NuggetSupport, spelled(NuggetSupport, _SUPPORT_BY_STANCE)]


class AssignmentsReply(Form):
    """Reply to the nuggets_assign prompt, and to its repair."""

    assignments: Listed[AssignmentRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nugget:
    """A fact of a few words that a good answer holds."""

    text: str
    is_vital: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NuggetSet:
    """The nuggets of some passages for a query, vital ones first.

    `truncated` says that the judge made more.
    """

    nuggets: tuple[Nugget, ...]
    truncated: bool = False


@runtime_checkable
class RemembersNuggets(Protocol):
    """A judge with a cache of nuggets. `name` and `version` keep the nuggets of two judges apart."""

    name: str
    nugget_cache: Lru[NuggetSet]

    def version(self, task: Task) -> str:
        """Return 8 hex digits over a task's prompts, model and parameters."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedNugget:
    """A nugget and its support in the answer."""

    text: str
    is_vital: bool
    support: NuggetSupport


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedNuggets:
    """The nuggets of a record, vital ones first.

    Attributes:
        nuggets: those that were looked up in the answer; empty when the passages gave none.
        made: how many there are, with those beyond the number that is looked up.
        truncated: True when the judge made more than `MAX_NUGGETS`, of which the first count.
        cached: True when they were made before, for another answer.
    """

    nuggets: tuple[AssignedNugget, ...]
    made: int
    truncated: bool = False
    cached: bool = False
    usage: JudgeUsage = field(default_factory=JudgeUsage)


def nuggets_of(places: Collection[int], max_scored: int = 20) -> CustomTask[AssignedNuggets]:
    """Return the task that finds nuggets and their support.

    One call a window of 10 contexts makes them, one for each 10 of them labels, and one for each 10 looks them up:
    3 calls for up to 10 nuggets, 5 for up to 20. A judge with a cache (`RemembersNuggets`) is asked for the look-up
    only where it saw query and passages before. Its coroutine raises JudgeError, JudgeIncomplete when a row stays
    missing after the one repair.

    Args:
        places: 0-based indexes into the record's contexts.
        max_scored: nuggets looked up, the first in the order vital, okay.
    """

    async def ask(judge: PromptJudge, record: RagRecord) -> AssignedNuggets:
        contexts = record.contexts
        return await _assigned(judge, record, [contexts[place].text for place in places], max_scored)

    return CustomTask(name="nuggets", prompts=PROMPTS, ask=ask)


async def _assigned(
    judge: PromptJudge, record: RagRecord, texts: Sequence[str], max_scored: int
) -> AssignedNuggets:
    session = judge.session(CREATE)
    with session:
        known, is_cached = await _known(judge, session, record.query, texts)
        scored = known.nuggets[:max_scored]
        shown = [_ABSTENTION if _is_nothing_known(nugget.text) else nugget.text for nugget in scored]
        data = {"query": record.query, "answer": record.answer}
        rows = await _in_batches(
            session.over(ASSIGN), data, shown, AssignmentsReply, lambda reply: reply.assignments
        )
    found = (
        AssignedNugget(text=nugget.text, is_vital=nugget.is_vital, support=row.support)
        for nugget, row in zip(scored, rows, strict=True)
    )
    return AssignedNuggets(
        nuggets=tuple(found),
        made=len(known.nuggets),
        truncated=known.truncated,
        cached=is_cached,
        usage=session.usage,
    )


async def _known(
    judge: PromptJudge, session: JudgeSession, query: str, texts: Sequence[str]
) -> tuple[NuggetSet, bool]:
    """Return the nuggets, and whether they were made before."""
    asked: object = judge
    if not isinstance(asked, RemembersNuggets):
        return await _made(session, query, texts), False
    key = nugget_key(query, texts, "\0".join([asked.name, asked.version(CREATE), asked.version(LABEL)]))
    kept = asked.nugget_cache.get(key)
    if kept is not None:
        return kept, True
    made = await _made(session, query, texts)
    asked.nugget_cache.put(key, made)
    return made, False


async def _made(session: JudgeSession, query: str, texts: Sequence[str]) -> NuggetSet:
    found: list[str] = []
    truncated = False
    for first in range(0, len(texts), WINDOW):
        data: dict[str, object] = {"query": query, "contexts": numbered(texts[first : first + WINDOW])}
        if found:
            data["nuggets"] = found
        listed = _distinct((await session.ask(data, NuggetsReply)).nuggets)
        found, truncated = listed[:MAX_NUGGETS], len(listed) > MAX_NUGGETS
    if [text for text in found if _is_nothing_known(text)] == found:
        # Nothing to weigh: an answer that says so is as good as can be.
        return NuggetSet(nuggets=tuple(Nugget(text=NOTHING_KNOWN, is_vital=True) for _ in found[:1]))
    kept = [text for text in found if not _is_nothing_known(text)]
    rows = await _in_batches(session.over(LABEL), {"query": query}, kept, LabelsReply, lambda reply: reply.labels)
    labelled = [
        Nugget(text=text, is_vital=row.importance == "vital")
        for text, row in zip(kept, rows, strict=True)
        if row.importance != "na"
    ]
    return NuggetSet(nuggets=tuple(sorted(labelled, key=lambda one: not one.is_vital)), truncated=truncated)


async def _in_batches(
    session: JudgeSession,
    data: Mapping[str, object],
    texts: Sequence[str],
    form: type[FormT],
    rows_of: Callable[[FormT], list[RowT]],
) -> list[RowT]:
    rows: list[RowT] = []
    for first in range(0, len(texts), BATCH):
        shown = {**data, "nuggets": numbered(texts[first : first + BATCH])}
        found = await asked_rows(session, shown, ("nuggets",), form, rows_of)
        rows += [row for _, row in sorted(found.items())]
    return rows


def _distinct(texts: Sequence[str]) -> list[str]:
    distinct: dict[str, str] = {}
    for text in texts:
        spaced = " ".join(text.split())
        if spaced:
            distinct.setdefault(spaced.casefold(), spaced)
    return list(distinct.values())


def _is_nothing_known(text: str) -> bool:
    return text.strip(" .!\"'").casefold() == NOTHING_KNOWN


def nugget_key(query: str, texts: Collection[str], judge: str) -> str:
    """Return the key of a query with a set of passages.

    It has 64 hex digits. Neither the order of the passages nor copies among them count, nor how the query is
    spaced or composed.

    Args:
        query: the query.
        texts: texts of the passages.
        judge: name and versions of the judge.
    """
    return joint_key(normal_form(query), judge, *sorted(map(text_key, set(texts))))
