"""Post scores as span annotations to the REST API of Arize Phoenix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ragtrace._version import __version__
from ragtrace.errors import ConfigError
from ragtrace.sinks.outbox import Attempt, Outbox
from ragtrace.sinks.rest import Address, bearer
from ragtrace.telemetry.spans.evaluation import explanation
from ragtrace.telemetry.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.model import JudgeInfo, MetricResult, RagRecord, Score
    from ragtrace.settings import ContentMode
    from ragtrace.sinks.rest import PostResult

# Phoenix takes annotations of spans that it does not have yet and looks for them every 10 s, 60 times (measured
# with 20.26.1); with sync=true it answers 404 and takes none of the batch.
PATH = "/v1/span_annotations?sync=false"
_NOT_OURS = ("/v1", "/v1/traces", "/v1/span_annotations", "/graphql")
# Reasons that concern the inputs or the judge, and say nothing of the trace.
_NO_NEWS = frozenset(
    {
        "no_labels", "no_parts", "no_samples", "no_tokens", "k_not_positive", "insufficient_runs",
        "insufficient_ratings", "unsupported_by_judge",
    }
)  # fmt: skip
_RULES = frozenset({"overlap", "labels"})  # judges that are no language model


class PhoenixSink:
    """Posts each score to a Phoenix server as an annotation of the run's root span.

    `emit` only queues; a daemon thread posts batches of up to 100. A repeat of the same metric and version for
    the same span replaces (Phoenix's upsert by name, span and identifier). Safe to use from any thread and
    after a fork. Losses are counted in `internal_errors` under ``ragtrace.sinks.phoenix``: ``.full``,
    ``.refused``, ``.unreachable``, ``.closed``.

    That Phoenix answers 200 is not yet a proof: it stores asynchronously, and drops an annotation whose span
    has not come within about 10 minutes, for example since the trace was not sampled for export.

    Args:
        endpoint: the server, for example ``http://127.0.0.1:6006``, without ``/v1/...``.
        api_key: sent as a bearer token; None for a server without authentication.
        content: ``full`` sends explanations, which may quote the answer; ``none`` sends none.
        timeout_s: limit of each wait on the socket, in seconds.
        queue: most annotations waiting; more are lost and counted.
        attempts: tries of one batch on 408, 425, 429, 5xx and broken connections, over about a minute.

    Raises:
        ConfigError: a wrong endpoint, key or number; one line that names the setting and never the key.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> sink = PhoenixSink("http://127.0.0.1:6006")
        >>> sink.emit(RagRecord(id="a-file-not-a-trace"), [])
        >>> sink.close(1.0)
        True
    """

    def __init__(
        self,
        endpoint: str,
        *,
        api_key: str | None = None,
        content: ContentMode = "none",
        timeout_s: float = 10.0,
        queue: int = 4_096,
        attempts: int = 8,
    ) -> None:
        self._address = Address.parse(endpoint, setting="phoenix_endpoint")
        if self._address.path.endswith(_NOT_OURS):
            raise ConfigError("phoenix_endpoint is the server's address alone: leave /v1/... and /graphql out")
        self._headers = bearer(api_key, setting="phoenix_api_key")
        if not (timeout_s > 0 and queue > 0 and attempts > 0):
            raise ConfigError("timeout_s, queue and attempts of PhoenixSink must be above 0")
        self._has_content = content == "full"
        self._timeout_s = timeout_s
        self._outbox: Outbox[dict[str, object]] = Outbox(
            self._deliver, site="ragtrace.sinks.phoenix", capacity=queue, attempts=attempts
        )

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Queue one annotation for each score; a record that never was a trace is left out. Never waits."""
        if record.span_id:
            self._outbox.offer(span_annotations(record, scores, has_content=self._has_content))

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is posted; return whether that worked within `timeout_s`, and nothing was lost before."""
        return self._outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Post pending annotations and stop within `timeout_s`; the rest is counted as lost."""
        return self._outbox.close(timeout_s)

    def _deliver(self, batch: Sequence[Mapping[str, object]]) -> Attempt:
        body = to_json({"data": batch}).encode()
        reply = self._address.post(PATH, body, self._headers, timeout_s=self._timeout_s)
        return Attempt(
            is_delivered=reply.is_taken,
            may_repeat=reply.may_repeat,
            may_split=reply.status in {400, 413, 422},  # one reserved name makes Phoenix refuse the whole batch
            wait_s=reply.retry_after_s,
            complaint="" if reply.is_taken else f"Phoenix at {self._address} {_complaint(reply)}",
        )


def span_annotations(record: RagRecord, scores: Sequence[Score], *, has_content: bool) -> list[dict[str, object]]:
    """Return the annotations of one scored record, as Phoenix's ``POST /v1/span_annotations`` takes them.

    A score of state ``na`` or ``error`` has no number: its label is the state and its explanation the reason,
    and it replaces the annotation of an earlier scoring of the same version. Left out are skipped scores, and
    ``na`` for a missing input such as a reference or labels, which says nothing of the trace.

    Args:
        record: the scored record.
        scores: its scores.
        has_content: whether explanations may be sent, which may quote the answer.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> key = ScoreKey(trace_id="", span_id="", metric="mrr", version="0a1b2c3d")
        >>> result = MetricResult(name="mrr", state="ok", value=0.5, passed=False, k=3, version="0a1b2c3d")
        >>> (found,) = span_annotations(RagRecord(id="1", span_id="ab" * 8), [Score(key=key, result=result)],
        ...     has_content=False)
        >>> found["name"], found["annotator_kind"], found["result"], found["identifier"]
        ('mrr', 'CODE', {'score': 0.5, 'label': 'fail'}, 'ragtrace:mrr:0a1b2c3d')
    """
    return [
        {
            "span_id": record.span_id,
            "name": score.result.key,
            "annotator_kind": annotator_kind(score.result.judge),
            "result": _result(score.result, has_content=has_content),
            "metadata": _metadata(record, score),
            "identifier": f"ragtrace:{score.key.metric}:{score.key.version}",
        }
        for score in scores
        if _is_worth_saying(score.result)
    ]


def annotator_kind(judge: JudgeInfo | None) -> Literal["LLM", "CODE"]:
    """Return ``LLM`` for the verdict of a language model, ``CODE`` for rules, labels, embeddings and arithmetic.

    Example:
        >>> from ragtrace.model import JudgeInfo
        >>> annotator_kind(JudgeInfo(model="openai:gpt-4o-mini")), annotator_kind(JudgeInfo(model="overlap"))
        ('LLM', 'CODE')
    """
    if judge is None or judge.model in _RULES or judge.model.startswith(("embedder:", "pairs:")):
        return "CODE"
    return "LLM"


def _is_worth_saying(result: MetricResult) -> bool:
    if result.state == "na":
        reason = result.reason or ""
        return reason not in _NO_NEWS and not reason.startswith("missing_input:")
    return result.state != "skipped"


def _result(result: MetricResult, *, has_content: bool) -> dict[str, object]:
    said = explanation(result) if has_content else None
    found: dict[str, object]
    if result.state != "ok":
        # A reason is from a closed list and quotes nothing.
        found = {"label": result.state, "explanation": f"{result.reason}: {said}" if said else result.reason}
    else:
        label = None if result.passed is None else "pass" if result.passed else "fail"
        found = {"score": result.value, "label": label, "explanation": said}
    return {name: _without_nul(value) for name, value in found.items() if value is not None}


def _metadata(record: RagRecord, score: Score) -> dict[str, object]:
    """Return judge, version and cut-off, so that nobody averages different measures."""
    result = score.result
    judge = result.judge
    facts = {
        "state": result.state,
        "reason": result.reason,
        "judge": judge.model if judge else None,
        "judge_version": (judge.prompt_hash or None) if judge else None,
        "label_scale": judge.label_scale if judge else None,
        "version": result.version or None,
        "k": result.k,
        "universe": result.label_scope,
        "stratum": score.stratum,
        "weight": score.weight,
        "workflow": record.workflow,
        "evaluator": f"ragtrace {__version__}",
        "details": result.shown_details(has_content=False) or None,
    }
    return {name: _without_nul(value) for name, value in facts.items() if value is not None}


def _without_nul(value: object) -> object:
    # PostgreSQL, which Phoenix may store in, refuses U+0000 in texts.
    return value.replace("\0", "�") if isinstance(value, str) else value


def _complaint(reply: PostResult) -> str:
    if reply.status is None:
        return f"cannot be reached or broke the connection ({reply.failure}); scores wait for it, then are lost"
    if reply.status in {401, 403}:
        return f"refuses the API key ({reply.status}): check phoenix_api_key; scores are lost"
    if reply.status in {404, 405} or 300 <= reply.status < 400:
        return f"has no such path ({reply.status}): check phoenix_endpoint; scores are lost"
    if reply.may_repeat:
        return f"is not ready ({reply.status}); scores wait for it, then are lost"
    return f"refused an annotation ({reply.status}); it is lost"


PLUGIN = PhoenixSink
