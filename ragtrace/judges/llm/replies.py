"""Forms of a judge's replies, and how a reply is read as its form.

A field says which spellings it takes: a number or a word may be written in another way, but no other value is ever
read into it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, TypeVar, cast, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ragtrace.capture.names import THOUGHT_TAGS, THOUGHTS_BEGIN, THOUGHTS_END
from ragtrace.errors import JudgeIncomplete, JudgeInvalidOutput
from ragtrace.judges.base import Support, Verdict
from ragtrace.judges.stances import SIDES, Stance, Words, sides_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Self

    from ragtrace.judges.llm.session import JudgeSession

# 40 claims with reasons are about 12,000 characters; far above that a reply is junk and is not parsed.
MAX_REPLY_CHARS = 262_144

# Of a reply that is looked through: 40 claims have 40 rows, and a reply of 330,000 takes 20 MB.
_MOST_BRACES = 1_000

# More is taken for thoughts than in an answer, since nothing but the asked form is a reply.
_TAG = rf"{THOUGHT_TAGS}|reason|reflection|analysis|draft|scratch_?pad|inner_(?:monologue|thoughts?)"
_END = (
    rf"</(?:{_TAG})\s*+>|{THOUGHTS_END}|<\|/think\|>"
    r"|<\|end\|>(?!\s*+\Z)"  # at the end it is that of Phi's replies
)
_BEGIN = (
    rf"<(?:{_TAG})(?:\s[^<>{{}}]{{0,100}})?>|{THOUGHTS_BEGIN}|<\|?channel\|?>\s*+(?:analysis|thought)|<\|think\|>"
)
_AHEAD = r"(?=<[|/]{0,2}[a-z]|[\[{◁])"  # looked for first: each mark below is tried at each place else
_MARK = re.compile(rf"{_AHEAD}(?:(?P<end>{_END})|(?P<begin>{_BEGIN})|\{{\s*+[\"}}])", re.IGNORECASE)
_THOUGHTS_END = re.compile(rf"{_AHEAD}(?:{_END})", re.IGNORECASE)
_WHOLE_TAG = re.compile(_TAG, re.IGNORECASE)
_BETWEEN_LETTERS = re.compile(r"[\s_/-]")
_NOTHING = frozenset({"", "none", "no", "nothing", "null", "nil", "na"})  # in place of an empty list
# Words before an object, or its name in a wrapper, that say that it is no verdict.
_ASIDE = re.compile(
    r"(?:\b|_)(?:examples?|e\.\s?g\.|instance|sample[\s_](?:output|reply|response|answer|json)|template|placeholder|drafts?)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(  # and not the full stop of "e.g. this"; of at most 80 characters: _NEAR
    r"(?<![.\s]\w)[.!?]\s|\n\s*\n"
)
_NEAR = 80  # characters before an object in which such a word counts
_DECLINES = frozenset({"error", "error_message", "refusal", "refused"})  # names of fields
_WHOLE = re.compile(r"\s*-?[0-9]{1,9}\s*")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs) and any(found[name] != value for name, value in pairs):
        raise ValueError("a field is there twice, with two values")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def spelled(words: object, by_stance: Mapping[Stance, object] | None = None) -> BeforeValidator:
    """Return a reader of words in any case, with blanks, hyphens or underscores, and with marks around them.

    Args:
        words: a ``Literal``.
        by_stance: what the words of `ragtrace.judges.stances` stand for; true and false are among them.

    Example:
        >>> read = spelled(Verdict, VERDICT_BY_STANCE).func
        >>> read("Not supported."), read("YES"), read("unsupported"), read("perhaps")
        ('not_supported', 'supported', 'not_supported', 'perhaps')
    """
    known = {_letters(word): word for word in get_args(words)}

    def read_word(value: object) -> object:
        if isinstance(value, str) and (exact := known.get(_letters(value))) is not None:
            return exact
        side = _stance(value, SIDES)
        return value if side is None or by_stance is None else by_stance.get(side, value)

    return BeforeValidator(read_word)


def _stance(value: object, words: Words) -> Stance | None:
    if isinstance(value, bool):
        return "for" if value else "absent"
    return words.stance_of(value) if isinstance(value, str) else None


def _read_flag(value: object, field: ValidationInfo) -> object:
    side = _stance(value, sides_of(field.field_name or ""))
    return value if side in {None, "partial", "not_wholly"} else side == "for"


def _letters(word: str) -> str:
    bare = word.strip().lstrip(".,;:*`'\"").rstrip(".!,;:*`'\"")  # "!supported" is not supported
    return _BETWEEN_LETTERS.sub("", bare).casefold()


def _read_whole(value: object) -> object:
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _read_numbers(value: object) -> object:
    given = value if isinstance(value, list) else [value]
    if len(given) == 1 and (given[0] is None or (isinstance(given[0], str) and _letters(given[0]) in _NOTHING)):
        return []
    return given if type(value) in {int, str} else value


# A list is left at its first wrong row: the errors of 330,000 rows in one reply took 600 MB.
ItemT = TypeVar("ItemT")
Listed = Annotated[list[ItemT], FailFast()]
NullIsEmpty = BeforeValidator(lambda value: [] if value is None else value)
"""Of a list that may be left out: null leaves it out too."""
Whole = Annotated[int, BeforeValidator(_read_whole)]
"""A whole number, perhaps written as text."""
Numbers = Annotated[Listed[Whole], BeforeValidator(_read_numbers)]
"""Whole numbers; a single one may stand without a list, and null or a word such as "none" is an empty one."""
Text = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]
"""A text that nothing depends on; any other value is none."""
Flag = Annotated[bool, BeforeValidator(_read_flag)]
"""True or false, perhaps written as a word: "yes", "no", or the field's own name such as "irrelevant"."""


class Form(BaseModel):
    """A reply of a judge or a part of one.

    Types are strict but for the spellings that a field names, and unknown fields are ignored.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    @model_validator(mode="after")
    def _has_a_field(self) -> Self:
        if type(self).model_fields and not self.model_fields_set:
            raise ValueError("none of the fields is there")
        return self


class NumberedRow(Form):
    """A row of a reply, numbered from 1."""

    id: Whole

    @property
    def named_contexts(self) -> list[int]:
        """Numbers of contexts that the row names."""
        return []


class SourcedRow(NumberedRow):
    """A row that names the contexts behind it."""

    sources: Numbers = []

    @property
    def named_contexts(self) -> list[int]:
        """Numbers of contexts that the row names."""
        return self.sources


VERDICT_BY_STANCE: dict[Stance, Verdict] = {
    "for": "supported",
    "not_wholly": "not_supported",  # as the prompts have it; "partially supported" takes both sides
    "absent": "not_supported",
    "against": "contradicted",
}
_SUPPORT_BY_STANCE: dict[Stance, Support] = {
    "for": "full",
    "partial": "partial",
    "not_wholly": "partial",
    "absent": "none",
    "against": "none",
}
_READ_VERDICT = spelled(Verdict, VERDICT_BY_STANCE)
VerdictWord = Annotated[Verdict, _READ_VERDICT]


class VerdictRow(SourcedRow):
    """The verdict on one claim."""

    verdict: VerdictWord
    reason: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _needs_its_sources(cls, row: object) -> object:
        """Leave out what stands for the sources of a claim without support: in words, no verdict depends on it."""
        if not isinstance(row, dict) or "sources" not in row:
            return row
        given = _read_numbers(row["sources"])
        are_numbers = isinstance(given, list) and all(type(_read_whole(one)) is int for one in given)
        if are_numbers or _READ_VERDICT.func(row.get("verdict")) != "not_supported":  # type: ignore[call-arg]
            return row
        return {name: value for name, value in row.items() if name != "sources"}

    @property
    def named_contexts(self) -> list[int]:
        """Numbers of contexts that the row names; a claim without support has none to name."""
        return [] if self.verdict == "not_supported" else self.sources


class CitationRow(Form):
    """The support of one (part, citation) pair."""

    part: Whole
    cites: str | int
    support: Annotated[Support, spelled(Support, _SUPPORT_BY_STANCE)]


class AuditReply(Form):
    """Reply to the audit prompt."""

    sufficient: Flag | None = None
    attempted: Flag
    noncommittal: Flag
    claims: Listed[str]
    verdicts: Listed[VerdictRow]
    citations: Annotated[Listed[CitationRow], NullIsEmpty] = []


class AuditRepair(Form):
    """Reply to the audit's repair, with the missing rows."""

    verdicts: Annotated[Listed[VerdictRow], NullIsEmpty] = []
    citations: Annotated[Listed[CitationRow], NullIsEmpty] = []


class SufficiencyReply(Form):
    """Reply to the audit_sufficiency prompt."""

    sufficient: Flag


class GradeRow(NumberedRow):
    """The grade of one passage."""

    grade: Whole = Field(ge=1, le=5)


class GradesReply(Form):
    """Reply to the grades prompt."""

    grades: Listed[GradeRow]


class QuestionRow(Form):
    """One question."""

    question: str
    noncommittal: Flag


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

    relevant: Flag


class RelevanceReply(Form):
    """Reply to the relevance prompt."""

    verdicts: Listed[RelevanceRow]


FormT = TypeVar("FormT", bound=Form)
RowT = TypeVar("RowT", bound=NumberedRow)


def read(form: type[FormT], text: str) -> FormT:
    """Return a reply as its form.

    Sound JSON is read as it is. Any other text is looked through for the objects outside its thoughts, and the one
    that is of the form is taken. It may stand in a wrapper such as ``{"result": {...}}``.

    Raises:
        JudgeInvalidOutput: empty, too long, not JSON, not of the form, two objects of it, or one that may be no
            verdict: a field with two values, an example, a refusal, or a correction behind it. The message names
            the fields at fault and never quotes the reply.

    Example:
        >>> read(GradesReply, '{"grades": [{"id": 1, "grade": 4}]}').grades[0].grade
        4
        >>> read(GradesReply, 'Sure {so}: {"result": {"grades": [{"id": "1", "grade": "4"}]}}').grades[0].grade
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
        whole = form.model_validate_json(text)
    except (ValidationError, UnicodeError) as error:
        fault = _fault(error)
    else:
        return _undoubted(whole, text)
    objects = _objects(form, text) if text.count("{") <= _MOST_BRACES else []
    found, is_sure = _candidates(form, objects)
    if len(found) == 1 and is_sure:
        return found[0]
    if len(found) == 1:
        raise JudgeInvalidOutput("the object may be no reply: it is quoted, refused or followed by another")
    raise JudgeInvalidOutput(f"{len(found)} objects could be the reply" if found else fault)


def _undoubted(whole: FormT, text: str) -> FormT:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise JudgeInvalidOutput("a field has two values, or a number thousands of digits") from None
    if _declines(value):
        raise JudgeInvalidOutput("the reply has an error or a refusal in it")
    return whole


def _candidates(
    form: type[FormT], objects: Sequence[tuple[Mapping[str, object], bool]]
) -> tuple[list[FormT], bool]:
    """Return the objects of the form, bare or in a wrapper, and whether nothing speaks against them.

    An example, a draft or a refusal speaks against, and so does an object behind, or beside in the wrapper, that
    gives a field of the form in another form: it may be the reply itself, or a correction.
    """
    found: list[FormT] = []
    is_sure = True
    for value, is_aside in objects:
        one = _of_form(form, value)
        parts = {"": value} if one is not None else _wrapped(form, value)
        fits = {name: fit for name, part in parts.items() if (fit := _of_form(form, part)) is not None}
        if fits:
            is_sure &= not (is_aside or _declines(value) or any(map(_is_set_aside, fits)))
            is_sure &= not any(_gives(form, part) for name, part in parts.items() if name not in fits)
        elif found and any(_gives(form, part) for part in (value, *parts.values())):
            is_sure = False
        found += fits.values()
    return found, is_sure


def _gives(form: type[Form], value: Mapping[str, object]) -> bool:
    return any(value.get(name) not in (None, "", [], {}) for name in form.model_fields)


def _declines(value: Mapping[str, object]) -> bool:
    return any(given and name.casefold() in _DECLINES for name, given in value.items())


def _objects(form: type[Form], text: str) -> list[tuple[Mapping[str, object], bool]]:
    """Return the objects that could be the reply: those of a text that stand in no thoughts.

    Each comes with whether the words before it call it an example.
    Thoughts without a beginning reach from the start of the text, thoughts without an end to its end.

    There is none where one stays open at the end, or where one that names a field of the form is broken behind a
    sound one, so that a draft is never taken for the verdict. The time is linear in the text: the search goes on
    behind a break, or at the last end of thoughts before it.
    """
    found: list[tuple[Mapping[str, object], bool] | None] = []  # None is broken
    place, outside = 0, None  # objects before the thoughts that have begun
    while mark := _MARK.search(text, place):
        before, (start, place) = place, mark.span()
        if mark["end"]:
            del found[outside or 0 :]
            outside = None
        elif mark["begin"]:
            outside = len(found) if outside is None else outside
        else:
            try:
                value, place = _DECODER.raw_decode(text, start)
                found.append((value, _is_aside(text[max(before, start - _NEAR) : start])))
            except json.JSONDecodeError as error:
                is_open = error.msg.startswith("Unterminated") or text.find("}", error.pos) < 0
                place = len(text) if is_open else max(error.pos, place)
                for end in _THOUGHTS_END.finditer(text, start, place):
                    place = end.start()
                if place == len(text):
                    return []
                broken = text[start:place]
                if found and any(f'"{name}"' in broken for name in form.model_fields):
                    found.append(None)
            except (ValueError, RecursionError):  # a number of thousands of digits, or as many levels
                return []
    found = found[:outside]
    return [] if None in found else [value for value in found if value is not None]


def _is_set_aside(name: str) -> bool:
    return _ASIDE.search(name) is not None or _WHOLE_TAG.fullmatch(name) is not None


def _is_aside(words: str) -> bool:
    """Tell whether the sentence right before an object, perhaps with a fence behind it, calls it an example."""
    *_, last = _SENTENCE_END.split(words.rstrip().removesuffix("json").rstrip("` \n"))
    return _ASIDE.search(last) is not None


def _wrapped(form: type[Form], value: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the objects in a wrapper: an object of one field, or of none of the form's."""
    is_wrapper = len(value) == 1 or form.model_fields.keys().isdisjoint(value)
    return {name: part for name, part in value.items() if isinstance(part, dict)} if is_wrapper else {}


def _of_form(form: type[FormT], value: Mapping[str, object]) -> FormT | None:
    with suppress(ValidationError):
        return form.model_validate(value)
    return None


def _fault(error: ValidationError | UnicodeError) -> str:
    if isinstance(error, UnicodeError):
        return "the reply is not valid Unicode"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return "the reply is not JSON"
    return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}".removeprefix(": ")


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
