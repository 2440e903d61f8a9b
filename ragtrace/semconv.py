"""Every name that ragtrace puts on the wire: attributes, span names, events and metrics, with their stability.

Dashboards, alerts and people's queries depend on these names, so tests assert them and nothing else in the
code spells one out. Two groups, told apart by their prefix:

* **Standard names** (``gen_ai.*``, ``error.type``, ``session.id``, ``user.id``): the OpenTelemetry GenAI
  conventions, status Development: they may still change upstream, and then change here with an entry in the
  changelog. The incubating constants of the Python package are deprecated, which is why they stand here.
  OpenInference keys (``openinference.*``, ``input.*``, ``output.*``, ``llm.*``, ``reranker.*``,
  ``embedding.*``) follow that project.
* **Own names** (``ragtrace.*``): names that the conventions lack for retrieval. Stable within a
  major version of ragtrace.
"""

# ruff: noqa: S105 - attribute names with "token" and "pass" in them are no passwords

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SCOPE: Final = "ragtrace"
"""Name of our tracer, meter and logger."""

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
"""Version of the GenAI conventions that the standard names are of; their repository has no release yet."""

# -- span names: the prefix, a blank, and the name of the thing --

SPAN_WORKFLOW: Final = "invoke_workflow"
SPAN_RETRIEVAL: Final = "retrieval"
SPAN_RERANK: Final = "rerank"
SPAN_EXECUTE_TOOL: Final = "execute_tool"
SPAN_AGENT: Final = "invoke_agent"
SPAN_EVALUATION: Final = "evaluation"

# -- standard attributes: OpenTelemetry --

ERROR_TYPE: Final = "error.type"  # stable
EXCEPTION_MESSAGE: Final = "exception.message"  # stable
EXCEPTION_TYPE: Final = "exception.type"  # stable
SERVER_ADDRESS: Final = "server.address"  # stable
SERVER_PORT: Final = "server.port"  # stable
SESSION_ID: Final = "session.id"
USER_ID: Final = "user.id"
GEN_AI_AGENT_DESCRIPTION: Final = "gen_ai.agent.description"
GEN_AI_AGENT_NAME: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
GEN_AI_DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
GEN_AI_EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
GEN_AI_EVALUATION_NAME: Final = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
GEN_AI_EVALUATION_SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
GEN_AI_PROMPT_NAME: Final = "gen_ai.prompt.name"
GEN_AI_PROMPT_VERSION: Final = "gen_ai.prompt.version"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_CHOICE_COUNT: Final = "gen_ai.request.choice.count"
GEN_AI_REQUEST_FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
GEN_AI_REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_REQUEST_PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
GEN_AI_REQUEST_SEED: Final = "gen_ai.request.seed"
GEN_AI_REQUEST_STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
GEN_AI_REQUEST_STREAM: Final = "gen_ai.request.stream"
GEN_AI_REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
GEN_AI_REQUEST_TOP_K: Final = "gen_ai.request.top_k"
GEN_AI_REQUEST_TOP_P: Final = "gen_ai.request.top_p"
GEN_AI_RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
GEN_AI_RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
GEN_AI_RETRIEVAL_QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
GEN_AI_RETRIEVAL_TOP_K: Final = "gen_ai.retrieval.top_k"
GEN_AI_TOKEN_MODALITY: Final = "gen_ai.token.modality"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"
GEN_AI_TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
GEN_AI_TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
GEN_AI_TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
GEN_AI_TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
GEN_AI_TOOL_NAME: Final = "gen_ai.tool.name"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
GEN_AI_WORKFLOW_NAME: Final = "gen_ai.workflow.name"

OPERATION_WORKFLOW: Final = "invoke_workflow"
OPERATION_RETRIEVAL: Final = "retrieval"
OPERATION_RERANK: Final = "rerank"  # open proposal 253 of the conventions
OPERATION_EXECUTE_TOOL: Final = "execute_tool"
OPERATION_AGENT: Final = "invoke_agent"
PROVIDER_UNKNOWN: Final = "unknown"  # the conventions require a provider
MODALITY_UNKNOWN: Final = "unknown"
TOOL_TYPE_FUNCTION: Final = "function"  # the application itself runs the tool
OPERATION_EVALUATION: Final = "evaluation"  # ours; the conventions have an event only

# -- standard attributes: OpenInference --

OPENINFERENCE_SPAN_KIND: Final = "openinference.span.kind"
INPUT_VALUE: Final = "input.value"
OUTPUT_VALUE: Final = "output.value"
LLM_MODEL_NAME: Final = "llm.model_name"
LLM_PROVIDER: Final = "llm.provider"
LLM_INVOCATION_PARAMETERS: Final = "llm.invocation_parameters"
LLM_TOKEN_COUNT_PROMPT: Final = "llm.token_count.prompt"
LLM_TOKEN_COUNT_COMPLETION: Final = "llm.token_count.completion"
LLM_TOKEN_COUNT_CACHE_READ: Final = "llm.token_count.prompt_details.cache_read"
LLM_TOKEN_COUNT_CACHE_WRITE: Final = "llm.token_count.prompt_details.cache_write"
LLM_TOKEN_COUNT_REASONING: Final = "llm.token_count.completion_details.reasoning"
EMBEDDING_MODEL_NAME: Final = "embedding.model_name"
RETRIEVAL_DOCUMENTS: Final = "retrieval.documents"  # these three with a number and a field of a document behind
RERANKER_INPUT_DOCUMENTS: Final = "reranker.input_documents"
RERANKER_OUTPUT_DOCUMENTS: Final = "reranker.output_documents"
DOCUMENT_ID: Final = "document.id"
DOCUMENT_SCORE: Final = "document.score"
DOCUMENT_CONTENT: Final = "document.content"
DOCUMENT_METADATA: Final = "document.metadata"
RERANKER_MODEL_NAME: Final = "reranker.model_name"
RERANKER_TOP_K: Final = "reranker.top_k"
LLM_INPUT_MESSAGES: Final = "llm.input_messages"  # these two with a number and a field of a message behind
LLM_OUTPUT_MESSAGES: Final = "llm.output_messages"
MESSAGE_ROLE: Final = "message.role"
MESSAGE_CONTENT: Final = "message.content"
MESSAGE_TOOL_CALL_ID: Final = "message.tool_call_id"
MESSAGE_TOOL_CALLS: Final = "message.tool_calls"  # with a number and a field of a call behind
TOOL_CALL_ID: Final = "tool_call.id"
TOOL_CALL_NAME: Final = "tool_call.function.name"
TOOL_CALL_ARGUMENTS: Final = "tool_call.function.arguments"
TAGS: Final = "tag.tags"
METADATA: Final = "metadata"
AGENT_NAME: Final = "agent.name"
TOOL_NAME: Final = "tool.name"
TOOL_DESCRIPTION: Final = "tool.description"

KIND_AGENT: Final = "AGENT"
KIND_CHAIN: Final = "CHAIN"
KIND_RETRIEVER: Final = "RETRIEVER"
KIND_RERANKER: Final = "RERANKER"
KIND_LLM: Final = "LLM"
KIND_TOOL: Final = "TOOL"
KIND_EMBEDDING: Final = "EMBEDDING"
KIND_EVALUATOR: Final = "EVALUATOR"

# -- own attributes: the run --

RUN_OUTCOME: Final = "ragtrace.run.outcome"
RUN_INTERRUPT: Final = "ragtrace.run.interrupt"  # the question that an interrupted run asks (content)
RUN_REFUSED: Final = "ragtrace.run.refused"  # true where the provider declined to answer
RUN_LOSSY: Final = "ragtrace.run.lossy"  # JSON of the sizes before capture cut them, by kind
RUN_SIGNS: Final = "ragtrace.run.signs"  # names of what capture was unsure of
SPAN_CUT: Final = "ragtrace.span.cut"  # attributes that are cut to a span's bytes or to a limit of the SDK
RUN_TAGS: Final = "ragtrace.run.tags"
RUN_METADATA_PREFIX: Final = "ragtrace.run.metadata."
# The lists of ids, scores and ranks are JSON texts, never arrays: docs/decisions/0004.
POOL_IDS: Final = "ragtrace.pool.ids"
POOL_SCORES: Final = "ragtrace.pool.scores"
SELECTED_IDS: Final = "ragtrace.selected.ids"
SELECTED_SCORES: Final = "ragtrace.selected.scores"
SELECTED_RANKS: Final = "ragtrace.selected.ranks"
PROMPT_IDS: Final = "ragtrace.prompt.ids"
CONTEXTS_UNRANKED_IDS: Final = "ragtrace.contexts.unranked.ids"  # texts of tools, in the order of their appearance
SELECTION_SOURCE: Final = "ragtrace.selection.source"
K: Final = "ragtrace.k"
CORPUS_NAME: Final = "ragtrace.corpus.name"
CORPUS_VERSION: Final = "ragtrace.corpus.version"
SAMPLING_DECISION: Final = "ragtrace.sampling.decision"
SAMPLING_REASON: Final = "ragtrace.sampling.reason"
SAMPLING_PROBABILITY: Final = "ragtrace.sampling.probability"

# -- own attributes: retrieval and rerank --

RETRIEVAL_DOCUMENT_COUNT: Final = "ragtrace.retrieval.document.count"
RETRIEVAL_DOCUMENT_CAPTURED: Final = "ragtrace.retrieval.document.captured"
RETRIEVAL_DOCUMENT_TRUNCATED: Final = "ragtrace.retrieval.document.truncated"
RERANK_CANDIDATE_COUNT: Final = "ragtrace.rerank.candidate.count"
RERANK_TOP_N: Final = "ragtrace.rerank.top_n"
RERANK_DOCUMENTS: Final = "ragtrace.rerank.documents"

# -- own attributes: evaluation --

SCORE_PREFIX: Final = "ragtrace.score."
SCORE_STATE_SUFFIX: Final = ".state"
SCORE_REASON_SUFFIX: Final = ".reason"
EVALUATION_EVALUATOR: Final = "ragtrace.evaluation.evaluator"
EVALUATION_VERSION: Final = "ragtrace.evaluation.version"
EVALUATION_JUDGE_MODEL: Final = "ragtrace.evaluation.judge.model"
EVALUATION_LABEL_SCALE: Final = "ragtrace.evaluation.label_scale"
EVALUATION_K: Final = "ragtrace.evaluation.k"
EVALUATION_COST: Final = "ragtrace.evaluation.cost"
EVALUATION_LLM_CALLS: Final = "ragtrace.evaluation.llm_calls"
EVALUATION_INPUT_DIGEST: Final = "ragtrace.evaluation.input_digest"
EVALUATION_DETAILS: Final = "ragtrace.evaluation.details"
EVALUATION_KEY: Final = "ragtrace.evaluation.key"  # trace:span:metric:version; a repeated event has the same
# The span stands at the end of the run that it evaluates; these are the Unix seconds of scoring itself.
EVALUATION_START_TIME: Final = "ragtrace.evaluation.start.time"
EVALUATION_END_TIME: Final = "ragtrace.evaluation.end.time"
# The model that was evaluated; proposals of the conventions put the judge into `gen_ai.request.model`.
EVALUATION_REQUEST_MODEL: Final = "ragtrace.evaluation.request.model"

# -- own attributes: points of metrics --

EVALUATOR: Final = "ragtrace.evaluator"
JUDGE_MODEL: Final = "ragtrace.judge.model"
JUDGE_VERSION: Final = "ragtrace.judge.version"
FIRST_JUDGE_MODEL: Final = "ragtrace.first_judge.model"
FIRST_JUDGE_VERSION: Final = "ragtrace.first_judge.version"
LABEL_SCALE: Final = "ragtrace.label_scale"
UNIVERSE: Final = "ragtrace.universe"
STRATUM: Final = "ragtrace.stratum"
OUTCOME: Final = "ragtrace.outcome"
REASON: Final = "ragtrace.reason"
DECISION: Final = "ragtrace.decision"
STATE: Final = "ragtrace.state"
SPOOL: Final = "ragtrace.spool"  # identity of a spool that several processes report
KAFKA_TOPIC: Final = "ragtrace.kafka.topic"
KAFKA_PARTITION: Final = "ragtrace.kafka.partition"
UNIT: Final = "ragtrace.unit"  # of a budget, USD or token
FEEDBACK_LABEL: Final = "ragtrace.feedback.label"  # good or bad
SITE: Final = "ragtrace.site"  # place in ragtrace at which something was lost
SIGN: Final = "ragtrace.sign"  # name of a sign, or any
DIAGNOSIS_VERDICT: Final = "ragtrace.diagnosis.verdict"
INVESTIGATION_DIMENSION: Final = "ragtrace.investigation.dimension"  # fact by which a part of the traffic is told
INVESTIGATION_VALUE: Final = "ragtrace.investigation.value"
INVESTIGATION_RANK: Final = "ragtrace.investigation.rank"  # 1 = the strongest evidence
INVESTIGATION_HOW: Final = "ragtrace.investigation.how"  # worse, more, less, new or gone
INVESTIGATION_PARTS: Final = "ragtrace.investigation.parts"  # of the event: JSON

# -- events --

EVENT_EVALUATION_RESULT: Final = "gen_ai.evaluation.result"  # Development
EVENT_EXCEPTION: Final = "exception"  # stable
EVENT_INVESTIGATION: Final = "ragtrace.investigation"

# -- metrics --

EVALUATION_SCORE: Final = "ragtrace.evaluation.score"
SCORE_N: Final = "ragtrace.score.n"
SCORE_W: Final = "ragtrace.score.w"
SCORE_WX: Final = "ragtrace.score.wx"
SCORE_W2: Final = "ragtrace.score.w2"
SCORE_W2X: Final = "ragtrace.score.w2x"
SCORE_W2X2: Final = "ragtrace.score.w2x2"
SCORE_LOW_W: Final = "ragtrace.score.low.w"
SCORE_MISSING_W: Final = "ragtrace.score.missing.w"
SCORE_RECOVERED_W: Final = "ragtrace.score.recovered.w"
SCORE_DUE_W: Final = "ragtrace.score.due.w"
SCORE_DUE_W2: Final = "ragtrace.score.due.w2"
DIAGNOSIS_N: Final = "ragtrace.diagnosis.n"
DIAGNOSIS_W: Final = "ragtrace.diagnosis.w"
DIAGNOSIS_W2: Final = "ragtrace.diagnosis.w2"
WINDOW_MEAN: Final = "ragtrace.evaluation.score.window.mean"
WINDOW_LOW: Final = "ragtrace.evaluation.score.window.low"
WINDOW_HIGH: Final = "ragtrace.evaluation.score.window.high"
COMBINED_MEAN: Final = "ragtrace.evaluation.score.combined.mean"
COMBINED_LOW: Final = "ragtrace.evaluation.score.combined.low"
COMBINED_HIGH: Final = "ragtrace.evaluation.score.combined.high"
PASS_RATIO: Final = "ragtrace.evaluation.pass.ratio"
ADJUSTED_MEAN: Final = "ragtrace.evaluation.score.adjusted.mean"
ADJUSTED_LOW: Final = "ragtrace.evaluation.score.adjusted.low"
ADJUSTED_HIGH: Final = "ragtrace.evaluation.score.adjusted.high"
BASELINE_MEAN: Final = "ragtrace.baseline.mean"
BASELINE_SD: Final = "ragtrace.baseline.sd"
BASELINE_N: Final = "ragtrace.baseline.n"
BASELINE_FROZEN_TIME: Final = "ragtrace.baseline.frozen.time"  # alerts prefer a baseline that a person froze
COVERAGE_RATIO: Final = "ragtrace.evaluation.coverage.ratio"
WEIGHT_CAPPED: Final = "ragtrace.weight.capped"
CANARY_GAP: Final = "ragtrace.canary.gap"
ANCHOR_MEAN: Final = "ragtrace.anchor.difference.mean"
ANCHOR_LOW: Final = "ragtrace.anchor.difference.low"
ANCHOR_HIGH: Final = "ragtrace.anchor.difference.high"
ANCHOR_N: Final = "ragtrace.anchor.difference.n"
ANCHOR_STATE: Final = "ragtrace.anchor.state"
INVESTIGATION_FOUND: Final = "ragtrace.investigation.found"
INVESTIGATION_SIZE: Final = "ragtrace.investigation.size"
INVESTIGATION_LOW: Final = "ragtrace.investigation.low"
INVESTIGATION_HIGH: Final = "ragtrace.investigation.high"
INVESTIGATION_N: Final = "ragtrace.investigation.n"
INVESTIGATION_SINCE: Final = "ragtrace.investigation.since"
INVESTIGATION_LOOKED: Final = "ragtrace.investigation.looked"
INVESTIGATION_PART: Final = "ragtrace.investigation.part"
INVESTIGATION_VERDICT: Final = "ragtrace.investigation.verdict"
RUNS: Final = "ragtrace.runs"
RUNS_SIGNED: Final = "ragtrace.runs.signed"
RETRIEVAL_EMPTY: Final = "ragtrace.retrieval.empty"
BUDGET_REMAINING: Final = "ragtrace.budget.remaining"
BREAKER_STATE: Final = "ragtrace.judge.breaker.state"
LEDGER: Final = "ragtrace.ledger"
EVALUATIONS: Final = "ragtrace.evaluations"
TRACES: Final = "ragtrace.traces"
ASSEMBLY: Final = "ragtrace.assembly"  # of received traces
RECEIVER_REFUSED: Final = "ragtrace.receiver.refused"  # requests
EVALUATION_DURATION: Final = "ragtrace.evaluation.duration"
EVALUATION_LAG: Final = "ragtrace.evaluation.lag"
EVALUATION_COST_METRIC: Final = "ragtrace.evaluation.cost"
JUDGE_CALLS: Final = "ragtrace.judge.calls"
JUDGE_TOKENS: Final = "ragtrace.judge.tokens"
QUEUE_SIZE: Final = "ragtrace.queue.size"
QUEUE_CAPACITY: Final = "ragtrace.queue.capacity"
QUEUE_OLDEST: Final = "ragtrace.queue.oldest"
KAFKA_LAG: Final = "ragtrace.kafka.lag"
KAFKA_PARTITIONS: Final = "ragtrace.kafka.partitions"
EVALUATION_LAST_TIME: Final = "ragtrace.evaluation.last.time"
FEEDBACK: Final = "ragtrace.feedback"
FEEDBACK_AGREEMENT: Final = "ragtrace.feedback.agreement.ratio"
FEEDBACK_AGREEMENT_N: Final = "ragtrace.feedback.agreement.n"
INTERNAL_LOSSES: Final = "ragtrace.internal.losses"  # errors that the guard of the capture room swallowed
# Of model calls these two are the former names; the conventions replaced them, and they go with the next release.
CLIENT_OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
CLIENT_TOKEN_USAGE: Final = "gen_ai.client.token.usage"
CLIENT_INFERENCE_DURATION: Final = "gen_ai.client.inference.duration"
CLIENT_FIRST_CHUNK: Final = "gen_ai.client.inference.time_to_first_chunk"
CLIENT_OUTPUT_CHUNK: Final = "gen_ai.client.inference.time_per_output_chunk"
CLIENT_CALL_INPUT_TOKENS: Final = "gen_ai.client.inference.operation.input_tokens"
CLIENT_CALL_OUTPUT_TOKENS: Final = "gen_ai.client.inference.operation.output_tokens"
CLIENT_EMBEDDINGS_DURATION: Final = "gen_ai.client.embeddings.duration"
CLIENT_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.input_tokens"
CLIENT_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.output_tokens"
CLIENT_CACHE_READ_TOKENS: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
CLIENT_CACHE_WRITE_TOKENS: Final = "gen_ai.client.inference.usage.cache_write.input_tokens"
CLIENT_REASONING_TOKENS: Final = "gen_ai.client.inference.usage.reasoning.output_tokens"
RERANK_DURATION: Final = "ragtrace.rerank.duration"  # the conventions have no rerank operation yet
INVOKE_WORKFLOW_DURATION: Final = "gen_ai.invoke_workflow.duration"

SCORE_VARIANCE_FLOOR: Final = 0.02
"""Least variance of scores in [0, 1]: perfect ones would claim certainty, and a single bad answer alarm."""

SCORE_BOUNDARIES: Final = tuple(round(step * 0.05, 2) for step in range(21))
OPERATION_BOUNDARIES_S: Final = tuple(round(0.01 * 2**step, 2) for step in range(14))
WORKFLOW_BOUNDARIES_S: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0)
TOKEN_BOUNDARIES: Final = tuple(float(4**step) for step in range(14))
SCORING_BOUNDARIES_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0,
    86_400.0,
)  # fmt: skip

Kind = Literal["counter", "histogram", "observable_gauge", "observable_counter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One exported metric; instruments are created from it, and dashboards are checked against it.

    Attributes:
        name: the OpenTelemetry name.
        kind: kind of the OpenTelemetry instrument.
        unit: ``s``, an annotation in braces, or ``1`` where the name ends in ``.ratio``.
        description: one sentence, also the HELP text of a scrape.
        boundaries: bucket boundaries of a histogram (advisory), else empty.
        attributes: every point attribute it may carry.
    """

    name: str
    kind: Kind
    unit: str
    description: str
    boundaries: tuple[float, ...] = ()
    attributes: tuple[str, ...] = ()

    @property
    def prometheus(self) -> str:
        """Name of its series in Prometheus; a histogram's has ``_bucket``, ``_sum`` and ``_count`` behind it."""
        return prometheus_name(self.name, self.unit, is_counter=self.kind.endswith("counter"))


def prometheus_name(name: str, unit: str, *, is_counter: bool = False) -> str:
    """Return the Prometheus name by the one rule: dots to underscores, ``_seconds`` for s, ``_total`` on counters.

    Units in braces and ``1`` leave no trace; the Python exporter, the Collector and Prometheus 3 then agree.

    Example:
        >>> prometheus_name("ragtrace.evaluation.lag", "s")
        'ragtrace_evaluation_lag_seconds'
        >>> prometheus_name("ragtrace.score.low.w", "{score}", is_counter=True)
        'ragtrace_score_low_w_total'
    """
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "_:") else "_" for letter in name)
    if plain[:1].isdigit():
        plain = f"_{plain}"
    if unit == "s" and not plain.endswith("_seconds"):
        plain = f"{plain}_seconds"
    return f"{plain}_total" if is_counter and not plain.endswith("_total") else plain


def score_attribute(key: str) -> str:
    """Return the span attribute of one score.

    Example:
        >>> score_attribute("faithfulness")
        'ragtrace.score.faithfulness'
    """
    return f"{SCORE_PREFIX}{key}"


_SERIES = (
    GEN_AI_EVALUATION_NAME, GEN_AI_WORKFLOW_NAME, GEN_AI_REQUEST_MODEL, GEN_AI_PROMPT_NAME, GEN_AI_PROMPT_VERSION,
    EVALUATOR, JUDGE_MODEL, JUDGE_VERSION, K,
    LABEL_SCALE, UNIVERSE, STRATUM,
)  # fmt: skip
_COMBINED = (*_SERIES, FIRST_JUDGE_MODEL, FIRST_JUDGE_VERSION)
_BASELINE = (GEN_AI_EVALUATION_NAME, GEN_AI_WORKFLOW_NAME, JUDGE_VERSION, K, LABEL_SCALE, UNIVERSE)
_DUE = (GEN_AI_EVALUATION_NAME, GEN_AI_WORKFLOW_NAME)
_MISSING = (*_DUE, OUTCOME, REASON)
_DIAGNOSIS = (GEN_AI_WORKFLOW_NAME, DIAGNOSIS_VERDICT)
_LOOK = (GEN_AI_EVALUATION_NAME, GEN_AI_WORKFLOW_NAME)
_ANCHOR = (GEN_AI_EVALUATION_NAME, JUDGE_MODEL, JUDGE_VERSION, K, LABEL_SCALE, UNIVERSE)
_CALL = (GEN_AI_OPERATION_NAME, GEN_AI_PROVIDER_NAME, GEN_AI_REQUEST_MODEL, GEN_AI_RESPONSE_MODEL)
_CLIENT = (*_CALL, ERROR_TYPE)
_TOKENS = (*_CALL, GEN_AI_TOKEN_MODALITY)


def _counter(name: str, unit: str, description: str, attributes: tuple[str, ...] = _SERIES) -> Instrument:
    return Instrument(name=name, kind="counter", unit=unit, description=description, attributes=attributes)


def _gauge(name: str, unit: str, description: str, attributes: tuple[str, ...] = _SERIES) -> Instrument:
    return Instrument(name=name, kind="observable_gauge", unit=unit, description=description, attributes=attributes)


def _histogram(
    name: str, unit: str, description: str, boundaries: tuple[float, ...], attributes: tuple[str, ...]
) -> Instrument:
    return Instrument(
        name=name,
        kind="histogram",
        unit=unit,
        description=description,
        boundaries=boundaries,
        attributes=attributes,
    )


METRICS: Final[tuple[Instrument, ...]] = (
    _histogram(
        EVALUATION_SCORE, "{score}", "Scores as they came, unweighted, by stratum.", SCORE_BOUNDARIES, _SERIES
    ),
    _counter(SCORE_N, "{score}", "Number of scores of the random stratum."),
    _counter(SCORE_W, "{score}", "Sum of weights w = 1 / inclusion probability."),
    _counter(SCORE_WX, "{score}", "Sum of w times score."),
    _counter(SCORE_W2, "{score}", "Sum over clusters of the squared weight; a cluster is a session or a question."),
    _counter(SCORE_W2X, "{score}", "Sum over clusters of weight times weighted score."),
    _counter(SCORE_W2X2, "{score}", "Sum over clusters of the squared weighted score."),
    _counter(SCORE_LOW_W, "{score}", "Sum of w of scores on the failing side of the metric's threshold."),
    _counter(SCORE_MISSING_W, "{score}", "Sum of w of the runs that should have a score and have none.", _MISSING),
    _counter(
        SCORE_RECOVERED_W,
        "{score}",
        "The part of missing.w whose score came after all; less it is missing.",
        _MISSING,
    ),
    _counter(SCORE_DUE_W, "{score}", "Sum of w of the runs that should have a score.", _DUE),
    _counter(
        SCORE_DUE_W2, "{score}", "Sum of squared weights of clusters of the runs that should have a score.", _DUE
    ),
    _counter(DIAGNOSIS_N, "{trace}", "Number of diagnosed runs of the random stratum.", _DIAGNOSIS),
    _counter(DIAGNOSIS_W, "{trace}", "Sum of weights of diagnosed runs, by verdict.", _DIAGNOSIS),
    _counter(
        DIAGNOSIS_W2, "{trace}", "Sum of squared weights of clusters of diagnosed runs, by verdict.", _DIAGNOSIS
    ),
    _gauge(WINDOW_MEAN, "{score}", "Weighted mean score over the window; absent when the window is empty."),
    _gauge(WINDOW_LOW, "{score}", "Lower 95 % confidence bound of the window's mean."),
    _gauge(WINDOW_HIGH, "{score}", "Upper 95 % confidence bound of the window's mean."),
    _gauge(
        COMBINED_MEAN,
        "{score}",
        "Mean score of the judge over all runs of the window, from its part and the first judge's scores.",
        _COMBINED,
    ),
    _gauge(COMBINED_LOW, "{score}", "Lower 95 % confidence bound of the combined mean.", _COMBINED),
    _gauge(COMBINED_HIGH, "{score}", "Upper 95 % confidence bound of the combined mean.", _COMBINED),
    _gauge(PASS_RATIO, "1", "Weighted share of the window's scores that meet the metric's threshold."),
    _gauge(ADJUSTED_MEAN, "{score}", "Mean of the last day at the mix of questions that the workflow began with."),
    _gauge(ADJUSTED_LOW, "{score}", "Lower 95 % confidence bound of it."),
    _gauge(ADJUSTED_HIGH, "{score}", "Upper 95 % confidence bound of it."),
    _gauge(BASELINE_MEAN, "{score}", "Mean of the baseline.", _BASELINE),
    _gauge(BASELINE_SD, "{score}", "Standard deviation of the baseline.", _BASELINE),
    _gauge(BASELINE_N, "{score}", "Effective number of scores in the baseline.", _BASELINE),
    _gauge(
        BASELINE_FROZEN_TIME,
        "s",
        "Unix time at which the baseline was frozen; absent for one that was learnt.",
        _BASELINE,
    ),
    _gauge(COVERAGE_RATIO, "1", "Share of drawn and ended traces that got a score.", (GEN_AI_WORKFLOW_NAME,)),
    _counter(WEIGHT_CAPPED, "{score}", "Scores whose weight hit the cap.", (GEN_AI_WORKFLOW_NAME,)),
    _gauge(CANARY_GAP, "{score}", "Poisoned minus clean score of the judge's canaries.", (JUDGE_MODEL,)),
    _gauge(
        ANCHOR_MEAN, "{score}", "Change of the judge's scores of the anchors, weighted to the traffic.", _ANCHOR
    ),
    _gauge(ANCHOR_LOW, "{score}", "Lower 95 % confidence bound of this change.", _ANCHOR),
    _gauge(ANCHOR_HIGH, "{score}", "Upper 95 % confidence bound of this change.", _ANCHOR),
    _gauge(ANCHOR_N, "{run}", "Anchors with a reference and a fresh score.", _ANCHOR),
    _gauge(ANCHOR_STATE, "{state}", "0 learning or stale, 1 ok, 2 warning, 3 alarm.", _ANCHOR),
    _gauge(INVESTIGATION_FOUND, "{fall}", "1 where the search shows that the metric fell, else 0.", _LOOK),
    _gauge(INVESTIGATION_SIZE, "{score}", "How much worse the mean is since the onset.", _LOOK),
    _gauge(INVESTIGATION_LOW, "{score}", "Lower 95 % confidence bound of it.", _LOOK),
    _gauge(INVESTIGATION_HIGH, "{score}", "Upper 95 % confidence bound of it.", _LOOK),
    _gauge(INVESTIGATION_N, "{score}", "Scores since the onset.", _LOOK),
    _gauge(INVESTIGATION_SINCE, "s", "Unix time of the onset.", _LOOK),
    _gauge(INVESTIGATION_LOOKED, "s", "Unix time of the latest look.", _LOOK),
    _gauge(
        INVESTIGATION_PART,
        "{share}",
        "Share of the fall that a part of the traffic explains.",
        (*_LOOK, INVESTIGATION_DIMENSION, INVESTIGATION_VALUE, INVESTIGATION_RANK, INVESTIGATION_HOW),
    ),
    _gauge(
        INVESTIGATION_VERDICT,
        "{share}",
        "Growth of the share of the verdict that grew most.",
        (*_LOOK, DIAGNOSIS_VERDICT),
    ),
    _counter(RUNS, "{run}", "Captured and received runs that were read.", (GEN_AI_WORKFLOW_NAME,)),
    _counter(
        RUNS_SIGNED,
        "{run}",
        "Runs with a sign, once under each of theirs, and under any where the run counts as signed.",
        (GEN_AI_WORKFLOW_NAME, SIGN),
    ),
    _counter(RETRIEVAL_EMPTY, "{trace}", "Runs that searched and retrieved nothing.", (GEN_AI_WORKFLOW_NAME,)),
    _gauge(BUDGET_REMAINING, "{budget}", "What is left of the judge's budget today.", (JUDGE_MODEL, UNIT)),
    _gauge(
        BREAKER_STATE, "{state}", "Circuit breaker of the judge: 0 closed, 1 half-open, 2 open.", (JUDGE_MODEL,)
    ),
    _gauge(LEDGER, "{trace}", "Traces offered to the scorer, by what became of them.", (STATE, REASON, SPOOL)),
    _counter(
        EVALUATIONS,
        "{evaluation}",
        "Results of metrics, by outcome and reason.",
        (GEN_AI_EVALUATION_NAME, GEN_AI_WORKFLOW_NAME, EVALUATOR, JUDGE_MODEL, OUTCOME, REASON),
    ),
    _counter(TRACES, "{trace}", "Captured and received traces, by the scorer's decision.", (DECISION, REASON)),
    _counter(ASSEMBLY, "{item}", "Received spans and traces out of the ordinary, and labels of others.", (REASON,)),
    Instrument(
        name=RECEIVER_REFUSED,
        kind="observable_counter",
        unit="{request}",
        description="Requests that the receiver refused, by reason.",
        attributes=(REASON,),
    ),
    _histogram(
        EVALUATION_DURATION,
        "s",
        "Time to score one trace.",
        SCORING_BOUNDARIES_S,
        (GEN_AI_WORKFLOW_NAME, EVALUATOR),
    ),
    _histogram(
        EVALUATION_LAG,
        "s",
        "Time from the end of a run to its scores.",
        SCORING_BOUNDARIES_S,
        (GEN_AI_WORKFLOW_NAME, EVALUATOR),
    ),
    _counter(EVALUATION_COST_METRIC, "{USD}", "What judging cost.", (GEN_AI_WORKFLOW_NAME, EVALUATOR, JUDGE_MODEL)),
    _counter(JUDGE_CALLS, "{call}", "Calls of the judge.", (JUDGE_MODEL, EVALUATOR, OUTCOME)),
    _counter(JUDGE_TOKENS, "{token}", "Tokens of the judge.", (JUDGE_MODEL, EVALUATOR, GEN_AI_TOKEN_TYPE)),
    _gauge(QUEUE_SIZE, "{trace}", "Traces waiting to be scored.", (SPOOL,)),
    _gauge(QUEUE_CAPACITY, "{trace}", "Most traces that may wait.", (SPOOL,)),
    _gauge(QUEUE_OLDEST, "s", "Age of the oldest waiting trace.", (SPOOL,)),
    _gauge(
        KAFKA_LAG,
        "{record}",
        "Records without an end, of each partition that this process has.",
        (KAFKA_TOPIC, KAFKA_PARTITION),
    ),
    _gauge(KAFKA_PARTITIONS, "{partition}", "Partitions that this process has.", (KAFKA_TOPIC,)),
    _gauge(EVALUATION_LAST_TIME, "s", "Unix time of the last score; absent before the first.", ()),
    _counter(
        FEEDBACK,
        "{rating}",
        "Ratings of answers by people: good from .5 on, else bad.",
        (GEN_AI_EVALUATION_NAME, GEN_AI_WORKFLOW_NAME, FEEDBACK_LABEL),
    ),
    _gauge(
        FEEDBACK_AGREEMENT,
        "1",
        "Share of people's ratings in the store with which the judge agrees.",
        (GEN_AI_EVALUATION_NAME, JUDGE_MODEL, JUDGE_VERSION),
    ),
    _gauge(
        FEEDBACK_AGREEMENT_N,
        "{rating}",
        "Ratings that were compared with the judge.",
        (GEN_AI_EVALUATION_NAME, JUDGE_MODEL, JUDGE_VERSION),
    ),
    Instrument(
        name=INTERNAL_LOSSES,
        kind="observable_counter",
        unit="{loss}",
        description="Errors inside ragtrace that were swallowed to protect the application, by place.",
        attributes=(SITE,),
    ),
    _histogram(
        CLIENT_OPERATION_DURATION,
        "s",
        "Duration of a retrieval; for one more release also of model calls.",
        OPERATION_BOUNDARIES_S,
        (*_CLIENT, GEN_AI_DATA_SOURCE_ID),
    ),
    _histogram(
        CLIENT_INFERENCE_DURATION, "s", "Duration of a call of a language model.", OPERATION_BOUNDARIES_S, _CLIENT
    ),
    _histogram(
        CLIENT_FIRST_CHUNK,
        "s",
        "Time from a streamed call to the first piece of its reply.",
        OPERATION_BOUNDARIES_S,
        _CALL,
    ),
    _histogram(
        CLIENT_OUTPUT_CHUNK,
        "s",
        "Time for each piece of a streamed reply behind the first, as one mean a call.",
        OPERATION_BOUNDARIES_S,
        _CALL,
    ),
    _histogram(
        CLIENT_CALL_INPUT_TOKENS,
        "{token}",
        "Input tokens of a call of a language model, cached ones included.",
        TOKEN_BOUNDARIES,
        _CLIENT,
    ),
    _histogram(
        CLIENT_CALL_OUTPUT_TOKENS,
        "{token}",
        "Output tokens of a call of a language model, reasoning included.",
        TOKEN_BOUNDARIES,
        _CLIENT,
    ),
    _histogram(
        CLIENT_EMBEDDINGS_DURATION,
        "s",
        "Duration of a call of an embedding model.",
        OPERATION_BOUNDARIES_S,
        _CLIENT,
    ),
    _histogram(
        RERANK_DURATION,
        "s",
        "Duration of a call of a reranker.",
        OPERATION_BOUNDARIES_S,
        (GEN_AI_REQUEST_MODEL, ERROR_TYPE),
    ),
    _counter(CLIENT_INPUT_TOKENS, "{token}", "Input tokens of language models, cached ones included.", _TOKENS),
    _counter(CLIENT_OUTPUT_TOKENS, "{token}", "Output tokens of language models, reasoning included.", _TOKENS),
    _counter(CLIENT_CACHE_READ_TOKENS, "{token}", "Input tokens read from the provider's cache.", _TOKENS),
    _counter(CLIENT_CACHE_WRITE_TOKENS, "{token}", "Input tokens written to the provider's cache.", _TOKENS),
    _counter(CLIENT_REASONING_TOKENS, "{token}", "Output tokens of reasoning.", _TOKENS),
    _histogram(
        CLIENT_TOKEN_USAGE,
        "{token}",
        "Tokens of model calls; for one more release beside gen_ai.client.inference.usage.*.",
        TOKEN_BOUNDARIES,
        (*_CLIENT, GEN_AI_TOKEN_TYPE),
    ),
    _histogram(
        INVOKE_WORKFLOW_DURATION,
        "s",
        "Duration of one run of a workflow.",
        WORKFLOW_BOUNDARIES_S,
        (GEN_AI_WORKFLOW_NAME, ERROR_TYPE),
    ),
)
"""Every metric, in the order of the contract."""
