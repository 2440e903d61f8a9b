"""Records and results as JSON: the file format of ``ragtrace score`` and the fixture format of the tests."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, cast, get_args

from ragtrace.errors import InputError
from ragtrace.model.passage import Passage, Pool, Stage, content_id
from ragtrace.model.record import (
    AnswerPart,
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
from ragtrace.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.model.score import MetricResult

SCHEMA_ID = "ragtrace.record/1"
_TOKENS = ("input_tokens", "output_tokens")
_TOKEN_DETAILS = ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
UNPACK = "jq -c '.[]' FILE (of a page of an API with \"data\": jq -c '.data[]' FILE)"  # to one object a line
_STAGES: dict[str, Stage] = {"pool": "retrieved", "selection": "reranked", "contexts": "used"}
# Names of other tools, each read where the field itself is missing: ragas, DeepEval, earlier ragas.
ALIASES: dict[str, tuple[str, ...]] = {
    "query": ("user_input", "input", "question"),
    "answer": ("response", "actual_output"),
    "contexts": ("retrieved_contexts", "retrieval_context", "context"),
    "reference": ("expected_output", "ground_truth"),
}
_TEXTS = ("trace_id", "span_id", "workflow", "session", "user", "environment", "corpus", "corpus_version", "model")


def record_to_json(record: RagRecord) -> dict[str, object]:
    """Return a record as JSON-ready values, without what is empty; `record_from_json` reads it back.

    Example:
        >>> record_to_json(RagRecord(id="1", query="Where?", answer="Oslo."))["query"]
        'Where?'
    """
    names = {stage: name for name, stage in _STAGES.items()}
    shown: dict[str, object] = {"schema": SCHEMA_ID, "id": record.id}
    shown |= {name: value for name in _TEXTS if (value := getattr(record, name))}
    shown["query"] = record.query
    if record.is_answer_given:
        shown["answer"] = record.answer
    if not record.is_answer_expected:
        shown["is_answer_expected"] = False
    if record.is_refused:
        shown["is_refused"] = True
    shown |= {names[pool.stage]: [_passage_to_json(p) for p in pool.passages] for pool in record.pools}
    if record.history:
        shown["history"] = [{"role": turn.role, "content": turn.content} for turn in record.history]
    if record.answer_parts:
        shown["answer_parts"] = [{"text": p.text, "citations": list(p.citations)} for p in record.answer_parts]
    if record.labels is not None:
        shown["labels"] = _labels_to_json(record.labels)
    if record.usage is not None:
        shown["usage"] = _usage_to_json(record.usage)
    if record.feedback:
        shown["feedback"] = [{"value": f.value, "comment": f.comment, "source": f.source} for f in record.feedback]
    optional = {
        "reference": record.reference,
        "interrupt": record.interrupt,
        "k": record.k,
        "selection_source": record.selection_source,
        "started": record.started or None,
        "ended": record.ended or None,
        "tags": list(record.tags) or None,
        "metadata": dict(record.metadata) or None,
        "lossy": dict(record.lossy) or None,
        "revision": record.revision or None,
    }
    shown |= {name: value for name, value in optional.items() if value is not None}
    shown["outcome"] = record.outcome
    if record.head_probability != 1.0:
        shown["head_probability"] = record.head_probability
    return shown


def record_from_json(value: object, *, fallback_id: str) -> RagRecord:
    """Build a record from one line: the full form, or plain ``{"query", "answer", "contexts": [...]}``.

    A context is a text, or an object with text and optionally id, score, source, metadata. ``pool`` is the
    candidate pool, ``selection`` what a reranker chose, ``contexts`` what the model was given. Fields of ragas and
    DeepEval are read under their names (`ALIASES`). Unknown keys are left alone. Missing fields are empty: the
    metrics that need them are then ``na``.

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
        raise InputError(f"a line must be a JSON object, got {_kind(value)}")
    schema = value.get("schema", SCHEMA_ID)
    if schema != SCHEMA_ID:
        raise InputError(f"schema {schema!r} is not {SCHEMA_ID!r}; `ragtrace schema` prints the one that is read")
    record = RagRecord(
        id=_identity(value.get("id"), fallback_id),
        query=_text(value, "query") or "",
        answer=_text(value, "answer") or "",
        is_answer_given=value.get(_given_name(value, "answer")) is not None,
        is_answer_expected=_flag(value, "is_answer_expected", default=True),
        is_refused=_flag(value, "is_refused", default=False),
        reference=_text(value, "reference"),
        pools=_pools(value),
        history=tuple(_turn(turn) for turn in _list(value, "history")),
        answer_parts=tuple(_part(part) for part in _list(value, "answer_parts")),
        labels=_labels(value.get("labels")),
        usage=_usage(value.get("usage")),
        feedback=tuple(_feedback(item) for item in _list(value, "feedback")),
        k=_whole(value, "k"),
        selection_source=_text(value, "selection_source"),
        started=_number(value, "started") or 0.0,
        ended=_number(value, "ended") or 0.0,
        outcome=_one_of(value, "outcome", get_args(Outcome), "answered"),
        interrupt=_text(value, "interrupt"),
        tags=tuple(str(tag) for tag in _list(value, "tags")),
        metadata=_object(value, "metadata"),
        revision=_whole(value, "revision") or 0,
        lossy=_losses(value),
        head_probability=_number(value, "head_probability") if "head_probability" in value else 1.0,
    )
    given = {name: text for name in _TEXTS if (text := _text(value, name)) is not None}
    if "trace_id" in given:
        given["trace_id"] = as_trace_id(given["trace_id"])
    return replace(record, **cast("Any", given))


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


def _passage_to_json(passage: Passage) -> dict[str, object]:
    shown: dict[str, object] = {"id": passage.id, "text": passage.text}
    # A score that is not finite is none: JSON has no form for it.
    score = passage.score if passage.score is not None and math.isfinite(passage.score) else None
    optional = {"score": score, "source": passage.source, "metadata": dict(passage.metadata) or None}
    shown |= {name: value for name, value in optional.items() if value is not None}
    if passage.truncated:
        shown["truncated"] = passage.truncated
    return shown


def _usage_to_json(usage: Usage) -> dict[str, int | None]:
    details = {name: n for name in _TOKEN_DETAILS if (n := getattr(usage, name)) is not None}
    return {name: getattr(usage, name) for name in _TOKENS} | details


def _labels_to_json(labels: Labels) -> dict[str, object]:
    shown: dict[str, object] = {
        "grades": dict(labels.grades),
        "universe": labels.label_scope,
        "scale": labels.scale,
    }
    if labels.version is not None:
        shown["version"] = labels.version
    if labels.query is not None:
        shown["query"] = labels.query
    if labels.strata:
        shown["strata"] = [_stratum_to_json(stratum) for stratum in labels.strata]
    return shown


def _stratum_to_json(stratum: LabelStratum) -> dict[str, object]:
    counts = {str(grade): n for grade, n in sorted(stratum.counts.items(), reverse=True)}
    return {"size": stratum.size, "labelled": stratum.labelled, "counts": counts}


def _given_name(value: Mapping[str, object], name: str) -> str:
    """Return the name under which a line gives a field: its own, else the first alias that is there."""
    names = (name, *ALIASES.get(name, ()))
    return next((each for each in names if value.get(each) is not None), name)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _identity(value: object, fallback: str) -> str:
    if value is None or value == "":
        return fallback
    if isinstance(value, dict | list | bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"field 'id' must be a text or a finite number, got {_kind(value)}")
    return str(value)


def _text(value: Mapping[str, object], name: str) -> str | None:
    name = _given_name(value, name)
    found = value.get(name)
    if found is None or isinstance(found, str):
        return found
    raise InputError(f"field {name!r} must be a text, got {_kind(found)}")


def _list(value: Mapping[str, object], name: str) -> list[object]:
    found = value.get(name)
    if name == "context" and isinstance(found, str):  # in many data sets a single text
        return [found]
    if found is None:
        return []
    if isinstance(found, list):
        return found
    raise InputError(f"field {name!r} must be a list, got {_kind(found)}")


def _number(value: Mapping[str, object], name: str) -> float | None:
    found = value.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise InputError(f"field {name!r} must be a number, got {_kind(found)}")
    try:
        return float(found)
    except OverflowError:
        raise InputError(f"field {name!r} is too large a number") from None


def _whole(value: Mapping[str, object], name: str) -> int | None:
    found = value.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        raise InputError(f"field {name!r} must be a whole number, got {found!r}")
    return found


def _flag(value: Mapping[str, object], name: str, *, default: bool) -> bool:
    found = value.get(name)
    if found is not None and not isinstance(found, bool):
        raise InputError(f"field {name!r} must be true or false, got {found!r}")
    return default if found is None else found


def _one_of(value: Mapping[str, object], name: str, valid: tuple[str, ...], default: str) -> Any:
    found = value.get(name, default)
    if found not in valid:
        raise InputError(f"field {name!r} must be one of {', '.join(valid)}, got {found!r}")
    return found


def _pools(value: Mapping[str, object]) -> tuple[Pool, ...]:
    pools = []
    for field, stage in _STAGES.items():
        name = _given_name(value, field)
        if value.get(name) is not None:
            items = enumerate(_list(value, name), start=1)
            pools.append(Pool(stage=stage, passages=tuple(_passage(item, rank, name) for rank, item in items)))
    return tuple(pools)


def _passage(item: object, rank: int, name: str) -> Passage:
    if isinstance(item, str):
        return Passage(id=content_id(item), text=item, rank=rank)
    if not isinstance(item, dict):
        raise InputError(f"item {rank} of {name!r} must be a text or an object, got {_kind(item)}")
    text = item.get("text", item.get("content"))
    if text is not None and not isinstance(text, str):
        raise InputError(f"item {rank} of {name!r}: 'text' must be a text, got {_kind(text)}")
    metadata = item.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise InputError(f"item {rank} of {name!r}: 'metadata' must be an object, got {_kind(metadata)}")
    return Passage(
        id=_identity(item.get("id", item.get("doc_id")), content_id(text or "")),
        text=text or "",
        rank=rank,
        score=_number(item, "score"),
        source=_text(item, "source"),
        metadata=metadata,
        truncated=_whole(item, "truncated") or 0,
    )


def _turn(turn: object) -> Message:
    if isinstance(turn, str):
        return Message(role="user", content=turn)
    if not isinstance(turn, dict):
        raise InputError(f"a turn of 'history' must be an object with role and content, got {_kind(turn)}")
    role = turn.get("role") or turn.get("speaker") or "user"
    return Message(role=str(role), content=str(turn.get("content") or turn.get("text") or ""))


def _part(part: object) -> AnswerPart:
    if isinstance(part, str):
        return AnswerPart(text=part)
    if not isinstance(part, dict):
        raise InputError(f"a part of 'answer_parts' must be an object with text and citations, got {_kind(part)}")
    return AnswerPart(text=_text(part, "text") or "", citations=tuple(str(c) for c in _list(part, "citations")))


def _labels(value: object) -> Labels | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"field 'labels' must be an object of passage id: grade, got {_kind(value)}")
    is_full = isinstance(value.get("grades"), dict)
    grades = value["grades"] if is_full else value
    for name, grade in grades.items():
        if isinstance(grade, bool) or not isinstance(grade, int):
            raise InputError(f"the grade of {name!r} in 'labels' must be a whole number 1 to 5, got {grade!r}")
    if not is_full:
        return Labels(grades=grades)
    return Labels(
        grades=grades,
        label_scope=_one_of(value, "universe", get_args(LabelScope), "gold"),
        scale=_one_of(value, "scale", get_args(LabelScale), "direct5"),
        version=_text(value, "version"),
        strata=tuple(_stratum(item) for item in _list(value, "strata")),
        query=_text(value, "query"),
    )


def _stratum(item: object) -> LabelStratum:
    if not isinstance(item, dict) or not isinstance(counts := item.get("counts"), dict):
        raise InputError(f"an item of 'strata' must be an object with size, labelled and counts, got {_kind(item)}")
    try:
        return LabelStratum(
            size=_whole(item, "size") or 0,
            labelled=_whole(item, "labelled") or 0,
            counts={int(grade): _whole(counts, grade) or 0 for grade in counts},
        )
    except ValueError as error:
        raise InputError(f"an item of 'strata': {error}") from None


def _usage(value: object) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InputError(f"field 'usage' must be an object, got {_kind(value)}")
    return Usage(**{name: _whole(value, name) for name in (*_TOKENS, *_TOKEN_DETAILS)})


def _object(value: Mapping[str, object], name: str) -> dict[str, object]:
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"field {name!r} must be an object, got {_kind(found)}")
    return found


def _losses(value: Mapping[str, object]) -> dict[str, int]:
    found = _object(value, "lossy")
    return {kind: _whole(found, kind) or 0 for kind in found}


def _feedback(item: object) -> Feedback:
    if not isinstance(item, dict):
        raise InputError(f"an item of 'feedback' must be an object with value, got {_kind(item)}")
    number = _number(item, "value")
    if number is None or not 0.0 <= number <= 1.0:
        raise InputError(f"the value of 'feedback' must lie between 0 and 1, got {number}")
    return Feedback(value=number, comment=_text(item, "comment"), source=_text(item, "source") or "human")
