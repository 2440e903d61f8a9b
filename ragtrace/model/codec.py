"""Records and results as JSON: the file format of ``ragtrace score`` and the fixture format of the tests."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast, get_args

import msgspec
from msgspec import UNSET

from ragtrace.errors import InputError
from ragtrace.model.line import (
    SCHEMA_ID,
    CallLine,
    FeedbackLine,
    FoundLine,
    LabelsLine,
    PartLine,
    PassageLine,
    ReadingLine,
    RecordLine,
    SignLine,
    SourceLine,
    StratumLine,
    TurnLine,
    UsageLine,
)
from ragtrace.model.passage import Passage, Pool, Stage, content_id
from ragtrace.model.reading import IN_PROMPT, SIGNS, Found, How, Kind, Reading, Sign, Source
from ragtrace.model.record import (
    AnswerPart,
    Call,
    Feedback,
    Labels,
    LabelScale,
    LabelScope,
    LabelStratum,
    Message,
    Outcome,
    RagRecord,
)
from ragtrace.model.trace_id import as_trace_id
from ragtrace.text import clean, clean_score, valid
from ragtrace.usage import Usage

if TYPE_CHECKING:
    from ragtrace.model.reading import SignName
    from ragtrace.model.score import MetricResult

UNPACK = "jq -c '.[]' FILE (of a page of an API with \"data\": jq -c '.data[]' FILE)"  # to one object a line
_STAGES: dict[str, Stage] = {"pool": "retrieved", "selection": "reranked", "contexts": "used"}
_NAMES = {stage: name for name, stage in _STAGES.items()}
# Names of other tools, each read where the field itself is missing: ragas, DeepEval, earlier ragas.
ALIASES: dict[str, tuple[str, ...]] = {
    "query": ("user_input", "input", "question"),
    "answer": ("response", "actual_output"),
    "contexts": ("retrieved_contexts", "retrieval_context", "context"),
    "reference": ("expected_output", "ground_truth"),
}
_TEXTS = (
    "span_id", "workflow", "session", "user", "environment", "corpus", "corpus_version", "model", "prompt_name",
    "prompt_version",
)  # fmt: skip
_WORDS = {"outcome": get_args(Outcome), "universe": get_args(LabelScope), "scale": get_args(LabelScale)}
_HOWS, _KINDS = frozenset(get_args(How)), frozenset(get_args(Kind))
_UNREAD = frozenset({"context_unread", "prompt_unmatched"})  # kinds of `lossy` before there were signs
_STEP = re.compile(r"\w+|\.\.\.")  # of at most 1,024 characters: a place in a value
_PLAIN = frozenset({str, int, bool, type(None)})
_TEXT = frozenset({str})


def json_value(raw: bytes, otherwise: Callable[[bytes], Any] = json.loads) -> Any:
    r"""Return the value of some JSON; what msgspec refuses is read once more by `otherwise`, whose result counts.

    These are a byte order mark, half of a surrogate pair, NaN, numbers beyond a float's, and what is no JSON.

    Raises:
        ValueError: it is not JSON.

    Example:
        >>> json_value(b'{"score": NaN}'), json_value(b'"\\ud800"')
        ({'score': nan}, '\ud800')
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return otherwise(raw)


def json_bytes(value: object) -> bytes:
    r"""Return a line as JSON in UTF-8; what JSON has no form for is cleaned.

    Example:
        >>> json_bytes({"share": float("inf"), "title": "a\ud800"}).decode()
        '{"share":null,"title":"a�"}'
    """
    try:
        return msgspec.json.encode(value, enc_hook=clean)
    except UnicodeEncodeError:
        return msgspec.json.encode(clean(msgspec.to_builtins(value, enc_hook=clean)))


def record_to_line(record: RagRecord) -> RecordLine:
    """Return the line that says a record, without what is empty.

    Example:
        >>> record_to_line(RagRecord(id="1", query="Where?")).query
        'Where?'
    """
    chance = record.head_probability
    pools: dict[str, Any] = {_NAMES[pool.stage]: list(map(_passage_line, pool.passages)) for pool in record.pools}
    texts: dict[str, Any] = {name: getattr(record, name) or None for name in _TEXTS}
    return RecordLine(
        schema=SCHEMA_ID,
        id=record.id,
        trace_id=record.trace_id or None,
        **texts,
        query=record.query,
        answer=record.answer if record.is_answer_given else None,
        is_answer_expected=None if record.is_answer_expected else False,
        is_refused=record.is_refused or None,
        **pools,
        unranked_contexts=list(map(_passage_line, record.unranked_contexts)) or None,
        history=list(map(_turn_line, record.history)) or None,
        answer_parts=[PartLine(text=p.text, citations=list(p.citations)) for p in record.answer_parts] or None,
        labels=None if record.labels is None else _labels_line(record.labels),
        usage=None if record.usage is None else UsageLine(**msgspec.structs.asdict(record.usage)),
        feedback=list(map(_feedback_line, record.feedback)) or None,
        reference=record.reference,
        interrupt=record.interrupt,
        k=record.k,
        selection_source=record.selection_source,
        started=clean_score(record.started) or None,
        ended=clean_score(record.ended) or None,
        tags=list(record.tags) or None,
        metadata=_facts(record.metadata),
        lossy=dict(record.lossy) or None,
        reading=None if record.reading is None else _reading_line(record.reading),
        revision=record.revision or None,
        outcome=record.outcome,
        head_probability=UNSET if chance == 1.0 else clean_score(chance),
    )


def record_to_json(record: RagRecord) -> dict[str, Any]:
    """Return a record as JSON-ready values, without what is empty; `record_from_json` reads it back.

    Example:
        >>> record_to_json(RagRecord(id="1", query="Where?", answer="Oslo."))["query"]
        'Where?'
    """
    shown: dict[str, Any] = msgspec.to_builtins(record_to_line(record), enc_hook=clean)
    return shown


def record_from_json(value: object, *, fallback_id: str) -> RagRecord:
    """Build a record from one line: the full form, or plain ``{"query", "answer", "contexts": [...]}``.

    A context is a text, or an object with text and optionally id, score, source, metadata. ``pool`` is the
    candidate pool, ``selection`` what a reranker chose, ``contexts`` what the model was given, and
    ``unranked_contexts`` texts of tools beside them. Fields of ragas and DeepEval are read under their names
    (`ALIASES`). Unknown keys are left alone. Missing fields are empty: the metrics that need them are then ``na``.

    Args:
        value: the parsed JSON.
        fallback_id: the id of a line that has none.

    Raises:
        InputError: a field of the wrong form; the message names it.

    Example:
        >>> line = {"query": "Where?", "answer": "Oslo.", "contexts": ["It is in Oslo."]}
        >>> record_from_json(line, fallback_id="7").contexts[0].text
        'It is in Oslo.'
    """
    if not isinstance(value, dict):
        raise InputError(f"a line must be a JSON object, got {kind_of(value)}")
    schema = value.get("schema", SCHEMA_ID)
    if schema != SCHEMA_ID:
        raise InputError(f"schema {schema!r} is not {SCHEMA_ID!r}; `ragtrace schema` prints the one that is read")
    given = _in_own_names(value)
    try:
        line = msgspec.convert(given, RecordLine)
    except (msgspec.ValidationError, UnicodeEncodeError):
        # Types of a table, not of JSON, or half of a surrogate pair in a name.
        given = _exact_where_it_can(given)
        try:
            line = _checked(given, value)
        except UnicodeEncodeError:  # msgspec shows what it refuses, and half of a surrogate pair cannot be shown
            line = _checked(clean(given), value)
    return record_from_line(line, fallback_id=fallback_id)


def record_from_line(line: RecordLine, *, fallback_id: str) -> RagRecord:
    """Return the record that a line says.

    Raises:
        InputError: an id or a stratum has a wrong value.

    Example:
        >>> record_from_line(RecordLine(query="Where?", contexts=["It is in Oslo."]), fallback_id="7").id
        '7'
    """
    return RagRecord(
        id=_identity(line.id, fallback_id),
        trace_id=as_trace_id(line.trace_id or ""),
        span_id=line.span_id or "",
        workflow="rag" if line.workflow is None else line.workflow,
        session=line.session,
        user=line.user,
        environment=line.environment,
        corpus=line.corpus,
        corpus_version=line.corpus_version,
        query=line.query or "",
        history=tuple(map(_turn, line.history or ())),
        pools=tuple(
            Pool(stage=stage, passages=_passages(passages))
            for name, stage in _STAGES.items()
            if (passages := getattr(line, name)) is not None
        ),
        unranked_contexts=_passages(line.unranked_contexts or ()),
        selection_source=line.selection_source,
        answer=line.answer or "",
        is_answer_given=line.answer is not None,
        is_answer_expected=line.is_answer_expected is not False,
        is_refused=bool(line.is_refused),
        answer_parts=tuple(map(_part, line.answer_parts or ())),
        reference=line.reference,
        labels=None if line.labels is None else _labels(line.labels),
        k=line.k,
        usage=None if line.usage is None else _usage(line.usage),
        feedback=tuple(
            Feedback(value=item.value, comment=item.comment, source=item.source or "human")
            for item in line.feedback or ()
        ),
        started=line.started or 0.0,
        ended=line.ended or 0.0,
        outcome="answered" if line.outcome is UNSET else line.outcome,
        interrupt=line.interrupt,
        head_probability=1.0 if line.head_probability is UNSET else line.head_probability,
        model=line.model,
        prompt_name=line.prompt_name,
        prompt_version=line.prompt_version,
        tags=tuple(map(str, line.tags or ())),
        metadata=line.metadata or {},
        revision=line.revision or 0,
        lossy={kind: n or 0 for kind, n in (line.lossy or {}).items() if kind not in _UNREAD},
        reading=_reading(line.reading, is_unread=not _UNREAD.isdisjoint(line.lossy or ())),
    )


def read_aliases(value: Mapping[str, object]) -> set[str]:
    """Return the fields of other tools' names that `record_from_json` reads from a line.

    Example:
        >>> read_aliases({"user_input": "Where?", "answer": "Oslo.", "response": "Bergen."})
        {'user_input'}
    """
    return {_given_name(value, name) for name in ALIASES} - ALIASES.keys()


class ScoreJson(TypedDict, total=False):
    """One score in a line that ``ragtrace score`` writes."""

    state: str
    value: float | None
    passed: bool | None
    reason: str | None
    details: dict[str, object]
    judge: str | None
    version: str | None
    k: int | None
    universe: str | None
    label_scale: str | None


def score_to_json(result: MetricResult) -> ScoreJson:
    """Return one result in the form of the output lines: everything it takes to trust the number.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> score_to_json(MetricResult(name="mrr", state="ok", value=0.5))["value"]
        0.5
    """
    judge = result.judge
    return {
        "state": result.state,
        "value": result.value,
        "passed": result.passed,
        "reason": result.reason,
        "details": dict(result.details),
        "judge": judge.model if judge else None,
        "version": result.version,
        "k": result.k,
        "universe": result.label_scope,
        "label_scale": judge.label_scale if judge else None,
    }


def _passage_line(passage: Passage) -> PassageLine:
    return PassageLine(
        id=passage.id,
        text=passage.text,
        score=clean_score(passage.score),
        source=passage.source,
        metadata=_facts(passage.metadata) if passage.metadata else None,
        truncated=passage.truncated or None,
    )


def _turn_line(turn: Message) -> TurnLine:
    calls = [CallLine(name=it.name, arguments=it.arguments or None, id=it.id) for it in turn.calls]
    return TurnLine(role=turn.role, content=turn.content, calls=calls or None, call_id=turn.call_id)


def _labels_line(labels: Labels) -> LabelsLine:
    return LabelsLine(
        grades=dict(labels.grades),
        universe=labels.label_scope,
        scale=labels.scale,
        version=labels.version,
        query=labels.query,
        strata=list(map(_stratum_line, labels.strata)) or None,
    )


def _stratum_line(stratum: LabelStratum) -> StratumLine:
    counts: dict[str, int | None] = {str(grade): n for grade, n in sorted(stratum.counts.items(), reverse=True)}
    return StratumLine(size=stratum.size, labelled=stratum.labelled, counts=counts)


def _feedback_line(item: Feedback) -> FeedbackLine:
    return FeedbackLine(value=item.value, comment=item.comment, source=item.source)


def _reading_line(reading: Reading) -> ReadingLine:
    return ReadingLine(
        question=None if reading.question is None else _found_line(reading.question),
        answers=list(map(_found_line, reading.answers)) or None,
        sources=list(map(_source_line, reading.sources)) or None,
        signs=list(map(_sign_line, reading.signs)) or None,
        roots=list(reading.roots) or None,
    )


def _found_line(found: Found) -> FoundLine:
    return FoundLine(place=found.place or None, how=found.how)


def _source_line(source: Source) -> SourceLine:
    return SourceLine(
        name=source.name,
        kind=source.kind,
        passages=source.passages or None,
        chosen=source.chosen or None,
        shown=source.shown,
        left_out=source.left_out or None,
        why=source.why or None,
        how=source.how,
    )


def _sign_line(sign: Sign) -> SignLine:
    return SignLine(name=sign.name, about=sign.about or None, text=sign.text or None, declare=sign.declare or None)


def _facts(facts: Mapping[str, object]) -> dict[str, Any] | None:
    """Return an application's facts of exact types; None without any."""
    if not facts:
        return None
    is_exact = (
        type(facts) is dict and _PLAIN.issuperset(map(type, facts.values())) and _TEXT.issuperset(map(type, facts))
    )
    return facts if is_exact else clean(facts)  # type: ignore[return-value] # looked at just now


def _in_own_names(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a line under the names that `RecordLine` has for them."""
    own = {name: value[name] for name in RecordLine.__struct_fields__ if name in value}
    for name in ALIASES:
        given = _given_name(value, name)
        if given != name:
            own[name] = value[given]
        if given == "context" and isinstance(value[given], str):  # in many data sets a single text
            own[name] = [value[given]]
    for name in (*_STAGES, "unranked_contexts"):
        if isinstance(items := own.get(name), list):
            own[name] = [_passage_in_own_names(item) if isinstance(item, dict) else item for item in items]
    if _are_plain(labels := own.get("labels")):
        own["labels"] = {"grades": labels}
    return own


def _are_plain(labels: object) -> bool:
    """Return whether labels are the object of the grades itself."""
    return isinstance(labels, dict) and not isinstance(labels.get("grades"), dict)


def _passage_in_own_names(item: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if "content" in item and "text" not in item:
        changed["text"] = item["content"]
    if "doc_id" in item and "id" not in item:
        changed["id"] = item["doc_id"]
    if "metadata" in item and not item["metadata"]:  # an empty list or text is none
        changed["metadata"] = None
    return {**item, **changed} if changed else item


def _given_name(value: Mapping[str, object], name: str) -> str:
    """Return the name under which a line gives a field: its own, else the first alias that is there."""
    names = (name, *ALIASES.get(name, ()))
    return next((each for each in names if value.get(each) is not None), name)


def _exact_where_it_can(value: Any) -> Any:
    """Return a value with exact types in place of their subclasses, and names in UTF-8; others stay as they are."""
    if isinstance(value, Mapping):
        return {valid(str(name)): _exact_where_it_can(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_exact_where_it_can(item) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return int.__int__(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _checked(given: dict[str, Any], value: Mapping[str, Any]) -> RecordLine:
    """Return the line that says `given`, or name the field of `value` that is wrong."""
    try:
        return msgspec.convert(given, RecordLine)
    except msgspec.ValidationError as error:
        raise InputError(_refusal(str(error), given, value)) from None


def _refusal(said: str, given: Any, value: Mapping[str, Any]) -> str:
    """Return why msgspec refuses a line, with the field's own name and the key of an object's item.

    Example:
        >>> said = "Expected `int`, got `str` - at `$.labels.grades[...]`"
        >>> grades = {"a": 4, "b": "good"}
        >>> _refusal(said, {"labels": {"grades": grades}}, {"labels": grades})
        "field 'labels.b': expected `int`, got `str`"
    """
    reason, _, place = said.rpartition(" - at ")
    steps = _STEP.findall(place.rpartition("$")[2])
    shown = _given_name(value, steps[0])
    found = given.get(steps[0])
    for step in steps[1:]:
        if step == "...":
            key = next(key for key, item in found.items() if not _is_of(item, reason))
        else:
            key = int(step) if isinstance(found, list | tuple) else step
        found = found.get(key) if isinstance(found, dict) else found[key]
        shown += f"[{key}]" if isinstance(key, int) else f".{key}"
    if steps[:2] == ["labels", "grades"] and _are_plain(value["labels"]):
        shown = shown.replace(".grades", "", 1)
    if (words := _WORDS.get(steps[-1])) is not None:
        reason = f"expected one of {', '.join(words)}, got {found!r}"
    return f"field {shown!r}: {reason[0].lower()}{reason[1:]}"


def _is_of(item: object, reason: str) -> bool:
    """Return whether an item of an object of numbers is one, as the reason says that it has to be."""
    return type(item) is int or (item is None and "null" in reason.partition(",")[0])


def kind_of(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _identity(value: object, fallback: str) -> str:
    if value is None or value == "":
        return fallback
    if isinstance(value, dict | list | bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"field 'id' must be a text or a finite number, got {kind_of(value)}")
    return str(value)


def _passages(items: Sequence[str | PassageLine]) -> tuple[Passage, ...]:
    return tuple([_passage(item, rank) for rank, item in enumerate(items, start=1)])


def _passage(item: str | PassageLine, rank: int) -> Passage:
    if isinstance(item, str):
        return Passage(id=content_id(item), text=item, rank=rank)
    text, name = item.text or "", item.id
    if type(name) is not str or not name:
        name = _identity(name, "") or content_id(text)
    return Passage(
        id=name,
        text=text,
        rank=rank,
        score=item.score,
        source=item.source,
        metadata=item.metadata or {},
        truncated=item.truncated or 0,
    )


def _turn(turn: str | TurnLine) -> Message:
    if isinstance(turn, str):
        return Message(role="user", content=turn)
    return Message(
        role=str(turn.role or turn.speaker or "user"),
        content=str(turn.content or turn.text or ""),
        calls=tuple(Call(name=it.name, arguments=it.arguments or "", id=it.id) for it in turn.calls or ()),
        call_id=turn.call_id,
    )


def _part(part: str | PartLine) -> AnswerPart:
    if isinstance(part, str):
        return AnswerPart(text=part)
    return AnswerPart(text=part.text or "", citations=tuple(map(str, part.citations or ())))


def _labels(line: LabelsLine) -> Labels:
    return Labels(
        grades=line.grades,
        label_scope="gold" if line.universe is UNSET else line.universe,
        scale="direct5" if line.scale is UNSET else line.scale,
        version=line.version,
        strata=tuple(_stratum(item, place) for place, item in enumerate(line.strata or ())),
        query=line.query,
    )


def _stratum(item: StratumLine, place: int) -> LabelStratum:
    try:
        return LabelStratum(
            size=item.size or 0,
            labelled=item.labelled or 0,
            counts={int(grade): n or 0 for grade, n in item.counts.items()},
        )
    except ValueError as error:
        raise InputError(f"field 'labels.strata[{place}]': {error}") from None


def _reading(line: ReadingLine | None, *, is_unread: bool) -> Reading | None:
    """Return the reading of a line, without what a newer version alone can say."""
    if line is None:
        return Reading(signs=(Sign("evidence_unread", IN_PROMPT),)) if is_unread else None
    return Reading(
        question=None if line.question is None else _found(line.question),
        answers=tuple(map(_found, line.answers or ())),
        sources=tuple([_source(one) for one in line.sources or () if one.kind in _KINDS]),
        signs=tuple([_sign(one) for one in line.signs or () if one.name in SIGNS]),
        roots=tuple(line.roots or ()),
    )


def _found(line: FoundLine) -> Found:
    return Found(place=line.place or "", how=_how(line.how))


def _source(line: SourceLine) -> Source:
    return Source(
        name=line.name,
        kind=cast("Kind", line.kind),
        passages=line.passages or 0,
        chosen=line.chosen or 0,
        shown=line.shown,
        left_out=line.left_out or 0,
        why=line.why or "",
        how=_how(line.how),
    )


def _sign(line: SignLine) -> Sign:
    return Sign(
        name=cast("SignName", line.name), about=line.about or "", text=line.text or "", declare=line.declare or ""
    )


def _how(how: str | None) -> How:
    return cast("How", how) if how in _HOWS else "structure"


def _usage(line: UsageLine) -> Usage:
    given = msgspec.structs.asdict(line)
    return Usage(**{name: None if n is UNSET else n for name, n in given.items()})
