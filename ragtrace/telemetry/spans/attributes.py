"""The attributes of each span, by the fact that they tell: chosen once for a dialect and a content mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.trace import SpanKind

from ragtrace import semconv
from ragtrace.capture import Agent, Generation, Rerank, Retrieval, ToolCall
from ragtrace.model import Message, Usage
from ragtrace.telemetry.spans.budget import Json, Lists, Text
from ragtrace.telemetry.spans.documents import Documents, Reranked
from ragtrace.telemetry.spans.messages import Messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture import FinishedRun, Step
    from ragtrace.model import Passage, RagRecord
    from ragtrace.model.passage import IdKey
    from ragtrace.modes import ContentMode, Dialect

Read = Callable[[Any], object]

_ROOT_TEXT = 1 / 4  # of the reserve: question, answer, and the question of an interrupted run
_STEP_TEXT = 1 / 8  # of the reserve: a search text, a tool's arguments and its result
_ROOT_MESSAGE = 1 / 16  # of what is left: question and answer once more, as messages
_MESSAGES = 1 / 2  # of what is left: a model's prompt, and its reply
_NO_USAGE = Usage()


class Fact(NamedTuple):
    """One fact, and the attributes that tell it.

    Attributes:
        read: returns the fact of a step or a run; None is left out.
        always: name in every dialect.
        genai: name in the dialects ``genai`` and ``both``.
        openinference: name in the dialects ``openinference`` and ``both``.
        alone: name in the dialect ``openinference`` only: in ``both`` `genai` has the same text.
        is_content: whether it is written with content only.
    """

    read: Read
    always: str | None = None
    genai: str | None = None
    openinference: str | None = None
    alone: str | None = None
    is_content: bool = False


Attributes = tuple[tuple[str, Read], ...]


class StepForm(NamedTuple):
    """How a kind of step becomes a span.

    Attributes:
        word: reads the first word of the span's name.
        subject: reads its subject, where one is known.
        kind: reads the span's kind.
        attributes: names, and what reads their values.
    """

    word: Read
    subject: Read
    kind: Callable[[Any], SpanKind]
    attributes: Attributes


class Forms:
    """The forms of all spans in a dialect and a content mode.

    Attributes:
        root: names of the root's attributes, and what reads their values of a run.
        session: name of the conversation's id on the spans below the root.

    Example:
        >>> from ragtrace.capture import Retrieval
        >>> step = Retrieval(started_ns=1, ended_ns=2, query="Where?", passages=(), source="faq")
        >>> form = Forms("genai", "none").of(step)
        >>> form.word(step), dict(form.attributes)["gen_ai.data_source.id"](step)
        ('retrieval', 'faq')
    """

    def __init__(self, dialect: Dialect, content: ContentMode, id_key: IdKey | None = None) -> None:
        choose = partial(_chosen, dialect=dialect, has_content=content == "full")
        by_field = dialect == "openinference"  # the one JSON document serves every reader of the others
        has_content = content == "full"
        self.root = choose((*_ROOT, _answered(has_every_reason=dialect != "genai")))
        self.session = semconv.GEN_AI_CONVERSATION_ID if dialect != "openinference" else semconv.SESSION_ID
        self._forms: dict[object, StepForm] = {
            Retrieval: StepForm(
                _is(semconv.SPAN_RETRIEVAL),
                attrgetter("source"),
                _is(SpanKind.CLIENT),
                choose((_documents(has_content=has_content, by_field=by_field, id_key=id_key), *_RETRIEVAL)),
            ),
            Rerank: StepForm(
                _is(semconv.SPAN_RERANK),
                attrgetter("model"),
                _is(SpanKind.INTERNAL),
                choose((_reranked(has_content=has_content, by_field=by_field), *_RERANK)),
            ),
            ToolCall: StepForm(
                _is(semconv.SPAN_EXECUTE_TOOL), attrgetter("name"), _is(SpanKind.INTERNAL), choose(_TOOL_CALL)
            ),
            Agent: StepForm(_is(semconv.SPAN_AGENT), attrgetter("name"), _is(SpanKind.INTERNAL), choose(_AGENT)),
        }
        model = (attrgetter("operation"), attrgetter("model"), _place)
        messages = _messages(has_every_reason=dialect != "genai", by_field=by_field)
        asked = (_invocation(has_content=has_content), *_GENERATION)
        self._generation = StepForm(*model, choose((*asked, *_CALL, *messages)))
        self._embedding = StepForm(*model, choose((*_EMBEDDING, *_CALL, *messages)))

    def of(self, step: Step) -> StepForm:
        """Return the form of a step."""
        if isinstance(step, Generation):
            return self._embedding if step.operation == "embeddings" else self._generation
        return self._forms[type(step)]


def _chosen(facts: Sequence[Fact], *, dialect: Dialect, has_content: bool) -> Attributes:
    found: list[tuple[str, Read]] = []
    for fact in facts:
        if fact.is_content and not has_content:
            continue
        names = (
            fact.always,
            fact.genai if dialect != "openinference" else fact.alone,
            fact.openinference if dialect != "genai" else None,
        )
        found += [(name, fact.read) for name in names if name is not None]
    return tuple(found)


def _is(value: Any) -> Callable[[object], Any]:
    return lambda _: value


def _text(name: str, share: float = _STEP_TEXT) -> Read:
    read = attrgetter(name)
    return lambda step: Text(read(step), share)


def _tokens(name: str) -> Read:
    read = attrgetter(name)
    return lambda step: read(step.usage or _NO_USAGE)


def _place(step: Generation) -> SpanKind:
    return SpanKind.INTERNAL if step.is_in_process else SpanKind.CLIENT


def _documents(*, has_content: bool, by_field: bool, id_key: IdKey | None) -> Fact:
    return Fact(
        lambda step: Documents(step.passages, has_content=has_content, by_field=by_field, id_key=id_key),
        semconv.GEN_AI_RETRIEVAL_DOCUMENTS,
    )


_RETRIEVAL = (
    Fact(_is(semconv.OPERATION_RETRIEVAL), semconv.GEN_AI_OPERATION_NAME),
    Fact(_is(semconv.KIND_RETRIEVER), semconv.OPENINFERENCE_SPAN_KIND),
    Fact(attrgetter("source"), semconv.GEN_AI_DATA_SOURCE_ID),
    Fact(attrgetter("top_k"), semconv.GEN_AI_RETRIEVAL_TOP_K),
    Fact(
        _text("query"),
        genai=semconv.GEN_AI_RETRIEVAL_QUERY_TEXT,
        openinference=semconv.INPUT_VALUE,
        is_content=True,
    ),
)


def _reranked(*, has_content: bool, by_field: bool) -> Fact:
    return Fact(
        lambda step: Reranked(step.candidates, step.passages, by_field=by_field, has_content=has_content),
        semconv.RERANK_DOCUMENTS,
    )


_RERANK = (
    Fact(_is(semconv.OPERATION_RERANK), semconv.GEN_AI_OPERATION_NAME),
    Fact(_is(semconv.KIND_RERANKER), semconv.OPENINFERENCE_SPAN_KIND),
    Fact(lambda step: len(step.candidates), semconv.RERANK_CANDIDATE_COUNT),
    Fact(attrgetter("top_n"), semconv.RERANK_TOP_N, openinference=semconv.RERANKER_TOP_K),
    Fact(attrgetter("model"), genai=semconv.GEN_AI_REQUEST_MODEL, openinference=semconv.RERANKER_MODEL_NAME),
)

_TOOL_CALL = (
    Fact(_is(semconv.OPERATION_EXECUTE_TOOL), semconv.GEN_AI_OPERATION_NAME),
    Fact(_is(semconv.KIND_TOOL), semconv.OPENINFERENCE_SPAN_KIND),
    Fact(attrgetter("name"), semconv.GEN_AI_TOOL_NAME, openinference=semconv.TOOL_NAME),
    Fact(_is(semconv.TOOL_TYPE_FUNCTION), semconv.GEN_AI_TOOL_TYPE),
    Fact(attrgetter("call_id"), semconv.GEN_AI_TOOL_CALL_ID),
    Fact(
        attrgetter("description"),
        genai=semconv.GEN_AI_TOOL_DESCRIPTION,
        openinference=semconv.TOOL_DESCRIPTION,
    ),
    Fact(
        _text("arguments"),
        genai=semconv.GEN_AI_TOOL_CALL_ARGUMENTS,
        openinference=semconv.INPUT_VALUE,
        is_content=True,
    ),
    Fact(
        _text("result"),
        genai=semconv.GEN_AI_TOOL_CALL_RESULT,
        openinference=semconv.OUTPUT_VALUE,
        is_content=True,
    ),
)

_AGENT = (
    Fact(_is(semconv.OPERATION_AGENT), semconv.GEN_AI_OPERATION_NAME),
    Fact(_is(semconv.KIND_AGENT), semconv.OPENINFERENCE_SPAN_KIND),
    Fact(lambda step: step.name or None, semconv.GEN_AI_AGENT_NAME, openinference=semconv.AGENT_NAME),
    Fact(attrgetter("description"), genai=semconv.GEN_AI_AGENT_DESCRIPTION),
)

# Of every call of a model.
_CALL = (
    Fact(attrgetter("operation"), semconv.GEN_AI_OPERATION_NAME),
    Fact(lambda step: step.provider or semconv.PROVIDER_UNKNOWN, genai=semconv.GEN_AI_PROVIDER_NAME),
    Fact(attrgetter("response_model"), genai=semconv.GEN_AI_RESPONSE_MODEL),
    Fact(attrgetter("response_id"), genai=semconv.GEN_AI_RESPONSE_ID),
    Fact(lambda step: step.finish_reasons or None, genai=semconv.GEN_AI_RESPONSE_FINISH_REASONS),
    Fact(attrgetter("first_chunk_s"), genai=semconv.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK),
    # Unset means that the request did not stream.
    Fact(
        lambda step: True if step.first_chunk_s is not None or step.request.get("stream") else None,
        genai=semconv.GEN_AI_REQUEST_STREAM,
    ),
    Fact(attrgetter("server_address"), semconv.SERVER_ADDRESS),
    Fact(attrgetter("server_port"), semconv.SERVER_PORT),
    Fact(
        _tokens("input_tokens"),
        genai=semconv.GEN_AI_USAGE_INPUT_TOKENS,
        openinference=semconv.LLM_TOKEN_COUNT_PROMPT,
    ),
    Fact(
        _tokens("output_tokens"),
        genai=semconv.GEN_AI_USAGE_OUTPUT_TOKENS,
        openinference=semconv.LLM_TOKEN_COUNT_COMPLETION,
    ),
    Fact(
        _tokens("cache_read_tokens"),
        genai=semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        openinference=semconv.LLM_TOKEN_COUNT_CACHE_READ,
    ),
    Fact(
        _tokens("cache_write_tokens"),
        genai=semconv.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
        openinference=semconv.LLM_TOKEN_COUNT_CACHE_WRITE,
    ),
    Fact(
        _tokens("reasoning_tokens"),
        genai=semconv.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        openinference=semconv.LLM_TOKEN_COUNT_REASONING,
    ),
)

_PARAMETERS = {
    "temperature": semconv.GEN_AI_REQUEST_TEMPERATURE,
    "top_p": semconv.GEN_AI_REQUEST_TOP_P,
    "top_k": semconv.GEN_AI_REQUEST_TOP_K,
    "max_tokens": semconv.GEN_AI_REQUEST_MAX_TOKENS,
    "seed": semconv.GEN_AI_REQUEST_SEED,
    "frequency_penalty": semconv.GEN_AI_REQUEST_FREQUENCY_PENALTY,
    "presence_penalty": semconv.GEN_AI_REQUEST_PRESENCE_PENALTY,
    "stop_sequences": semconv.GEN_AI_REQUEST_STOP_SEQUENCES,
}
_TEXT_PARAMETERS = frozenset({"stop_sequences"})  # texts of the application's


def _parameter(name: str) -> Read:
    return lambda step: step.request.get(name)


def _choices(step: Generation) -> object:
    """Return how many replies were asked for; the conventions leave out one."""
    count = step.request.get("choice_count")
    return None if count == 1 else count


def _invocation(*, has_content: bool) -> Fact:
    """Return all parameters of a call; those that are texts of the application's with content only."""

    def told(step: Generation) -> Json | None:
        request = {
            name: value for name, value in step.request.items() if has_content or name not in _TEXT_PARAMETERS
        }
        return Json(request) if request else None

    return Fact(told, alone=semconv.LLM_INVOCATION_PARAMETERS)


_GENERATION = (
    *(
        Fact(_parameter(parameter), genai=name, is_content=parameter in _TEXT_PARAMETERS)
        for parameter, name in _PARAMETERS.items()
    ),
    Fact(_choices, genai=semconv.GEN_AI_REQUEST_CHOICE_COUNT),
    Fact(_is(semconv.KIND_LLM), semconv.OPENINFERENCE_SPAN_KIND),
    Fact(attrgetter("model"), genai=semconv.GEN_AI_REQUEST_MODEL, openinference=semconv.LLM_MODEL_NAME),
    Fact(attrgetter("provider"), openinference=semconv.LLM_PROVIDER),
)

_EMBEDDING = (
    Fact(_is(semconv.KIND_EMBEDDING), semconv.OPENINFERENCE_SPAN_KIND),
    Fact(attrgetter("model"), genai=semconv.GEN_AI_REQUEST_MODEL, openinference=semconv.EMBEDDING_MODEL_NAME),
)


def _messages(*, has_every_reason: bool, by_field: bool) -> tuple[Fact, ...]:
    """Return the prompt and the reply of a call.

    Args:
        has_every_reason: each output has a finish reason, "" where none is known; else those are left out.
        by_field: each field of a message is an attribute, where the span has room for them.
    """
    said, replied = (semconv.LLM_INPUT_MESSAGES, semconv.LLM_OUTPUT_MESSAGES) if by_field else ("", "")

    def outputs(step: Generation) -> Messages:
        unknown = [""] * len(step.outputs) if has_every_reason else []
        reasons = [*step.finish_reasons, *unknown][: len(step.outputs)]
        return Messages(step.outputs, _MESSAGES, finish_reasons=reasons, by_field=replied)

    return (
        Fact(
            lambda step: Messages(step.inputs, _MESSAGES, by_field=said),
            genai=semconv.GEN_AI_INPUT_MESSAGES,
            alone=semconv.INPUT_VALUE,
            is_content=True,
        ),
        Fact(outputs, genai=semconv.GEN_AI_OUTPUT_MESSAGES, alone=semconv.OUTPUT_VALUE, is_content=True),
    )


def _of_record(name: str) -> Read:
    return attrgetter(f"record.{name}")


def _interrupt(run: FinishedRun) -> Text | None:
    asked = run.record.interrupt
    return None if asked is None else Text(asked, _ROOT_TEXT)


_ROOT = (
    Fact(_of_record("workflow"), semconv.GEN_AI_WORKFLOW_NAME),
    Fact(_of_record("user"), semconv.USER_ID),
    Fact(_of_record("prompt_name"), semconv.GEN_AI_PROMPT_NAME),
    Fact(_of_record("prompt_version"), semconv.GEN_AI_PROMPT_VERSION),
    Fact(_of_record("outcome"), semconv.RUN_OUTCOME),
    Fact(lambda run: run.record.is_refused or None, semconv.RUN_REFUSED),
    Fact(lambda run: Json(dict(run.record.lossy)) if run.record.lossy else None, semconv.RUN_LOSSY),
    Fact(lambda run: tuple(sorted({sign.name for sign in run.record.signs})) or None, semconv.RUN_SIGNS),
    Fact(_of_record("selection_source"), semconv.SELECTION_SOURCE),
    Fact(lambda run: run.record.k or len(run.record.ranked_contexts) or None, semconv.K),
    Fact(_of_record("corpus"), semconv.CORPUS_NAME),
    Fact(_of_record("corpus_version"), semconv.CORPUS_VERSION),
    Fact(
        lambda run: None if run.prompt_ids is None else Lists({semconv.PROMPT_IDS: run.prompt_ids}),
        semconv.PROMPT_IDS,
    ),
    Fact(lambda run: _unranked(run.record), semconv.CONTEXTS_UNRANKED_IDS),
    Fact(lambda run: _pool(run.record), semconv.POOL_IDS),
    Fact(lambda run: _selection(run.record), semconv.SELECTED_IDS),
    Fact(lambda run: run.record.tags or None, semconv.RUN_TAGS, openinference=semconv.TAGS),
    Fact(
        lambda run: Json(dict(run.record.metadata)) if run.record.metadata else None,
        openinference=semconv.METADATA,
    ),
    Fact(_of_record("session"), genai=semconv.GEN_AI_CONVERSATION_ID, openinference=semconv.SESSION_ID),
    Fact(_text("record.query", _ROOT_TEXT), semconv.INPUT_VALUE, is_content=True),
    Fact(_text("record.answer", _ROOT_TEXT), semconv.OUTPUT_VALUE, is_content=True),
    Fact(_interrupt, semconv.RUN_INTERRUPT, is_content=True),
    Fact(lambda run: _said("user", run.record.query), genai=semconv.GEN_AI_INPUT_MESSAGES, is_content=True),
)


def _answered(*, has_every_reason: bool) -> Fact:
    """Return the answer as the output of the workflow, with a finish reason where outputs have one."""
    reasons = ("",) if has_every_reason else ()
    return Fact(
        lambda run: _said("assistant", run.record.answer, reasons),
        genai=semconv.GEN_AI_OUTPUT_MESSAGES,
        is_content=True,
    )


def _said(role: str, text: str, reasons: Sequence[str] = ()) -> Messages | None:
    return Messages([Message(role=role, content=text)], _ROOT_MESSAGE, finish_reasons=reasons) if text else None


# Each list is one JSON document: as arrays the lists of 50 candidates cost 0.3 ms of CPU a run in the SDK and its
# OTLP encoder, of 1.3 ms in all; as texts 0.04 ms (docs/decisions/0004).


def _pool(record: RagRecord) -> Lists | None:
    """Return the candidates; None where no search was seen."""
    pool = _retrieved(record)
    if pool is None:
        return None
    return _lists({semconv.POOL_IDS: [p.id for p in pool], semconv.POOL_SCORES: _scores(pool)})


def _selection(record: RagRecord) -> Lists | None:
    """Return the selection with its ranks in the pool; None where neither search nor selection was seen."""
    if not record.pools:
        return None
    pool, selected = _retrieved(record), _selected(record)
    ranks: list[int] | None = None
    if pool is not None:
        # From the last to the first, so that the first place of a doubled id stays.
        places = dict(zip([p.id for p in reversed(pool)], range(len(pool), 0, -1), strict=True))
        ranks = [places.get(p.id, 0) for p in selected]
    return _lists(
        {
            semconv.SELECTED_IDS: [p.id for p in selected],
            semconv.SELECTED_SCORES: _scores(selected),
            semconv.SELECTED_RANKS: ranks,
        }
    )


def _unranked(record: RagRecord) -> Lists | None:
    """Return the ids of contexts without rank; None without any. Their texts stand on the tools' spans."""
    found = [passage.id for passage in record.unranked_contexts]
    return _lists({semconv.CONTEXTS_UNRANKED_IDS: found}) if found else None


def _retrieved(record: RagRecord) -> Sequence[Passage] | None:
    return next((pool.passages for pool in reversed(record.pools) if pool.stage == "retrieved"), None)


def _selected(record: RagRecord) -> Sequence[Passage]:
    return next(
        (pool.passages for pool in reversed(record.pools) if pool.stage == "reranked"), record.ranked_contexts
    )


def _lists(lists: dict[str, Sequence[object] | None]) -> Lists:
    return Lists({name: rows for name, rows in lists.items() if rows is not None})


def _scores(passages: Sequence[Passage]) -> list[float | None] | None:
    """Return the scores; None where one is missing: a made-up score never stands in this list."""
    scores = [p.score for p in passages]
    is_whole = set(map(type, scores)) == {float} and all(map(math.isfinite, scores))  # type: ignore[arg-type]
    return scores if is_whole else None
