"""The form of one line of a record file, as it is read and written, and as ``ragtrace schema`` prints it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from ragtrace.model.reading import SIGNS, How
from ragtrace.model.record import LabelScale, LabelScope, Outcome

SCHEMA_ID: Final = "ragtrace.record/1"


def _said(description: str, **schema: object) -> Meta:
    """Return what the schema says of a field, and what its type cannot say."""
    return Meta(description=description, extra_json_schema=schema or None)


_HOWS = f"{', '.join(get_args(How))}; another one, or none, is structure."
_Grade = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": 5})]  # another is read, and is no grade


class PassageLine(Struct, omit_defaults=True, kw_only=True):
    """A passage; its text alone stands for one without other facts."""

    id: Annotated[Any, _said("Stable id; default a hash of the text.", type=["string", "number"])] = None
    text: Annotated[str | None, _said("The passage (also read as 'content').")] = None
    score: Annotated[float | None, _said("Score of the stage the passage stands in.")] = None
    source: Annotated[str | None, _said("The index it came from.")] = None
    metadata: Annotated[dict[str, Any] | None, _said("Facts the application attached.")] = None
    truncated: Annotated[int | None, _said("Original length in characters if text was cut.")] = None


class CallLine(Struct, omit_defaults=True, kw_only=True):
    """A call of a tool that a turn asks for."""

    name: Annotated[str, _said("Name of the tool.")]
    arguments: Annotated[str | None, _said("Its arguments, usually as JSON.")] = None
    id: Annotated[str | None, _said("The model's id of the call.")] = None


class TurnLine(Struct, omit_defaults=True, kw_only=True):
    """A turn of the conversation; its text alone is the user's."""

    role: Annotated[Any, _said("Who spoke (also read as 'speaker').", type="string")] = None
    content: Annotated[Any, _said("What was said (also read as 'text').", type="string")] = None
    speaker: Annotated[Any, _said("Read as 'role' where that is missing.", type="string")] = None
    text: Annotated[Any, _said("Read as 'content' where that is missing.", type="string")] = None
    calls: Annotated[list[CallLine] | None, _said("Calls of tools that it asks for.")] = None
    call_id: Annotated[str | None, _said("The call whose result it is.")] = None


class PartLine(Struct, omit_defaults=True, kw_only=True):
    """A sentence of the answer; its text alone stands for one without citations."""

    text: Annotated[str | None, _said("The sentence.")] = None
    citations: Annotated[list[Any] | None, _said("Ids of the passages it cites.")] = None


class StratumLine(Struct, kw_only=True):
    """A part of the corpus, of which some passages were graded."""

    size: Annotated[int | None, _said("Passages in it.", minimum=0)] = None
    labelled: Annotated[int | None, _said("Passages of it that were graded.", minimum=0)] = None
    counts: Annotated[dict[str, int | None], _said("How many of these have each grade, 5 to 1.")]


class LabelsLine(Struct, omit_defaults=True, kw_only=True):
    """Grades with the set that was graded."""

    grades: Annotated[dict[str, _Grade], _said("Grades 1 to 5 by passage id.")]
    universe: Annotated[LabelScope | UnsetType, _said("The set that was graded; default 'gold'.")] = UNSET
    scale: Annotated[LabelScale | UnsetType, _said("How the grades came to be; default 'direct5'.")] = UNSET
    version: Annotated[str | None, _said("Version of the label set.")] = None
    query: Annotated[str | None, _said("The query that was graded for, where it may be another than this one.")] = (
        None
    )
    strata: Annotated[
        list[StratumLine] | None,
        _said("The parts of the corpus behind the universe 'stratified', of each of which some were graded."),
    ] = None


class UsageLine(Struct, omit_defaults=True, kw_only=True):
    """Tokens of the model that answered."""

    input_tokens: Annotated[int | UnsetType | None, _said("All input, cached tokens included.")] = UNSET
    output_tokens: Annotated[int | UnsetType | None, _said("All output, reasoning included.")] = UNSET
    cache_read_tokens: Annotated[int | None, _said("Input from the provider's cache.")] = None
    cache_write_tokens: Annotated[int | None, _said("Input written to it.")] = None
    reasoning_tokens: Annotated[int | None, _said("Output of reasoning.")] = None


class FeedbackLine(Struct, kw_only=True):
    """A rating of the answer by a person."""

    value: Annotated[float, Meta(ge=0, le=1, description="1 is good.")]
    comment: Annotated[str | None, _said("In words.")] = None
    source: Annotated[str | None, _said("Who said it; default 'human'.")] = None


class FoundLine(Struct, omit_defaults=True, kw_only=True):
    """Place of the question or the answer."""

    place: Annotated[str | None, _said("Such as 'input.question'; missing where it was told.")] = None
    how: Annotated[str | None, _said(_HOWS)] = None


class SourceLine(Struct, omit_defaults=True, kw_only=True):
    """Something that brought evidence, or whose texts were left out."""

    name: Annotated[str, _said("Of the retriever or the tool.")]
    kind: Annotated[str, _said("search, tool, state or marked; a source of another kind is left out.")]
    passages: Annotated[int | None, _said("How many it brought.")] = None
    chosen: Annotated[int | None, _said("How many of these a later step chose.")] = None
    shown: Annotated[int | None, _said("How many of them stand in the prompts of the answer.")] = None
    left_out: Annotated[int | None, _said("How many of its texts are no evidence.")] = None
    why: Annotated[str | None, _said("Why these were left out.")] = None
    how: Annotated[str | None, _said(_HOWS)] = None


class SignLine(Struct, omit_defaults=True, kw_only=True):
    """Something that capture was unsure of."""

    name: Annotated[str, _said(f"One of {', '.join(SIGNS)}; a sign of another name is left out.")]
    about: Annotated[str | None, _said("The place or the source that it is about.")] = None
    text: Annotated[str | None, _said("The words that it is about.")] = None
    declare: Annotated[str | None, _said("The argument that settles it.")] = None


class ReadingLine(Struct, omit_defaults=True, kw_only=True):
    """Reading of a run: its places, sources and signs."""

    question: Annotated[FoundLine | None, _said("Where the question was read.")] = None
    answers: Annotated[list[FoundLine] | None, _said("Where the answer was read.")] = None
    sources: Annotated[list[SourceLine] | None, _said("What brought evidence.")] = None
    signs: Annotated[list[SignLine] | None, _said("What is unsure.")] = None
    roots: Annotated[list[str] | None, _said("Of several roots its name, then those of the others.")] = None


Passages = list[str | PassageLine]


class RecordLine(Struct, omit_defaults=True, kw_only=True):
    """Every field is optional; a metric that needs a missing one is 'na' with the reason."""

    schema: Annotated[
        Literal["ragtrace.record/1"] | UnsetType, _said("Version of this form; this one where it is missing.")
    ] = UNSET
    id: Annotated[Any, _said("The caller's id; default the line number.", type=["string", "number"])] = None
    trace_id: Annotated[str | None, _said("32 hex digits, where the record was a trace.")] = None
    span_id: Annotated[str | None, _said("16 hex digits of its root span.")] = None
    workflow: Annotated[str | None, _said("Name of the application or chain.")] = None
    session: Annotated[str | None, _said("Conversation id.")] = None
    user: Annotated[str | None, _said("End user's id.")] = None
    environment: Annotated[str | None, _said("Deployment name.")] = None
    corpus: Annotated[str | None, _said("Name of the index.")] = None
    corpus_version: Annotated[str | None, _said("Its version.")] = None
    model: Annotated[str | None, _said("The model that answered.")] = None
    prompt_name: Annotated[str | None, _said("Name of the prompt template behind the answer.")] = None
    prompt_version: Annotated[str | None, _said("Its version.")] = None
    query: Annotated[str | None, _said("The question.")] = None
    answer: Annotated[
        str | None, _said("The whole answer; a blank one is of an application that answered nothing.")
    ] = None
    is_answer_expected: Annotated[
        bool | None, _said("False for a retrieval alone, where no model spoke; default true.")
    ] = None
    is_refused: Annotated[
        bool | None, _said("True where the provider declined to answer, or its filter stopped the answer.")
    ] = None
    pool: Annotated[Passages | None, _said("The candidates that were retrieved, best first.")] = None
    selection: Annotated[Passages | None, _said("What a reranker chose of them, best first.")] = None
    contexts: Annotated[Passages | None, _said("What the model was given, in its order.")] = None
    unranked_contexts: Annotated[
        Passages | None, _said("Texts of tools that the model was given, which have no rank.")
    ] = None
    history: Annotated[list[str | TurnLine] | None, _said("Turns before the question, oldest first.")] = None
    answer_parts: Annotated[
        list[str | PartLine] | None, _said("Sentences of the answer with the passage ids they cite.")
    ] = None
    labels: Annotated[
        LabelsLine | None,
        _said("Relevance grades 1 to 5 by passage id: a plain object (gold), or with their universe."),
    ] = None
    usage: Annotated[UsageLine | None, _said("Tokens of the model that answered.")] = None
    feedback: Annotated[list[FeedbackLine] | None, _said("What people said of the answer.")] = None
    reference: Annotated[str | None, _said("A reference answer.")] = None
    interrupt: Annotated[str | None, _said("What an interrupted run waits for.")] = None
    k: Annotated[int | None, _said("Cut-off of @K metrics; default the number of ranked contexts.")] = None
    selection_source: Annotated[str | None, _said("explicit, framework, retriever, chain or prompt.")] = None
    started: Annotated[float | None, _said("Unix seconds.")] = None
    ended: Annotated[float | None, _said("Unix seconds.")] = None
    tags: Annotated[list[Any] | None, _said("Free labels.")] = None
    metadata: Annotated[dict[str, Any] | None, _said("Facts of the request that `span_metadata` names.")] = None
    lossy: Annotated[dict[str, int | None] | None, _said("What was cut or lost, by kind.")] = None
    reading: Annotated[
        ReadingLine | None, _said("Where capture read question, answer and evidence, and what is unsure.")
    ] = None
    revision: Annotated[int | None, _said("Counts late changes of the same trace.")] = None
    outcome: Annotated[
        Outcome | UnsetType, _said("How the run ended; answers of other outcomes than 'answered' are not judged.")
    ] = UNSET
    head_probability: Annotated[
        float | UnsetType | None, _said("Probability with which it reached us; null where nobody knows.")
    ] = UNSET
