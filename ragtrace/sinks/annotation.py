"""Parts that sinks with annotations of single scores share: facts of a score, and the delivery."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Literal

from ragtrace._version import __version__
from ragtrace.errors import ConfigError
from ragtrace.sinks.outbox import Attempt, Outbox
from ragtrace.sinks.rest import Address
from ragtrace.telemetry.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragtrace.model import JudgeInfo, MetricResult, RagRecord, Score, ScoreKey
    from ragtrace.modes import ContentMode

# Reasons that concern the inputs or the judge, and say nothing of the trace.
_NO_NEWS = frozenset(
    {
        "no_labels", "no_parts", "no_samples", "no_tokens", "k_not_positive", "insufficient_runs",
        "insufficient_ratings", "unsupported_by_judge",
    }
)  # fmt: skip
_RULES = frozenset({"overlap", "labels"})  # judges that are no language model


class AnnotationSink:
    """Base of sinks that send scores of traces to a server, in batches from an outbox.

    `emit` only queues; a daemon thread sends. Safe to use from any thread and after a fork.

    Args:
        endpoint: address of the server alone.
        name: of the sink; losses are counted under ``ragtrace.sinks.<name>``.
        endpoint_name: what errors call the address.
        headers: of each request; they hold the key.
        not_ours: ends of an address that belong to a path of the server.
        content: ``full`` sends explanations, which may quote the answer; None is the setting `content`.
        timeout_s: limit of each wait on the socket, in seconds.
        queue: most scores waiting; more are lost and counted.
        attempts: tries of one batch.

    Raises:
        ConfigError: a wrong endpoint or number; one line that names it.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        name: str,
        endpoint_name: str,
        headers: Mapping[str, str],
        not_ours: tuple[str, ...],
        content: ContentMode | None,
        timeout_s: float,
        queue: int,
        attempts: int,
    ) -> None:
        self._address = Address.parse(endpoint, setting=endpoint_name)
        if self._address.path.endswith(not_ours):
            shown = ", ".join(not_ours)
            raise ConfigError(f"{endpoint_name} is the server's address alone: leave its paths out ({shown})")
        check_limits(type(self).__name__, timeout_s=timeout_s, queue=queue, attempts=attempts)
        self._headers = headers
        self._content = content
        self._has_content = content == "full"
        self._timeout_s = timeout_s
        self._outbox: Outbox[Any] = Outbox(
            self._deliver,
            site=f"ragtrace.sinks.{name}",
            complaint=f"ragtrace: scores are not delivered to {name} (a store, if one is set, keeps them)",
            capacity=queue,
            attempts=attempts,
        )

    def take_content(self, content: ContentMode) -> None:
        """Take the setting `content`, which counts where the constructor was given none."""
        self._has_content = (self._content or content) == "full"

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Queue each score; a record that never was a trace is left out. Never waits."""
        if record.span_id:
            self._outbox.offer(self._items(record, scores))

    @property
    def lost(self) -> str:
        """The number of lost scores by reason, in words; "" for none."""
        return self._outbox.lost("score")

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is sent; return whether that worked within `timeout_s`, and nothing was lost before."""
        return self._outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send what is pending and stop within `timeout_s`; the rest is counted as lost."""
        return self._outbox.close(timeout_s)

    def _items(self, record: RagRecord, scores: Sequence[Score]) -> list[Any]:
        raise NotImplementedError

    def _deliver(self, batch: Sequence[Any]) -> Attempt:
        raise NotImplementedError


def check_limits(sink: str, **limits: float) -> None:
    """Refuse limits that are not above 0.

    Raises:
        ConfigError: one of them is not above 0.
    """
    if not all(limit > 0 for limit in limits.values()):
        raise ConfigError(f"{', '.join(limits)} of {sink} must be above 0")


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


def is_worth_saying(result: MetricResult) -> bool:
    """Return whether a result says something of its trace; skipped ones and missing inputs do not.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> is_worth_saying(MetricResult(name="mrr", state="na", reason="no_labels"))
        False
    """
    if result.state == "na":
        reason = result.reason or ""
        return reason not in _NO_NEWS and not reason.startswith("missing_input:")
    return result.state != "skipped"


def label_of(result: MetricResult) -> str | None:
    """Return ``pass`` or ``fail`` where the metric has a threshold, else None; the state where there is no value.

    Example:
        >>> from ragtrace.model import MetricResult
        >>> label_of(MetricResult(name="mrr", state="ok", value=0.2, passed=False))
        'fail'
    """
    if result.state != "ok":
        return result.state
    return None if result.passed is None else "pass" if result.passed else "fail"


def facts_of(record: RagRecord, score: Score) -> dict[str, object]:
    """Return judge, version and cut-off of a score, so that nobody averages different measures."""
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
    return {name: without_nul(value) for name, value in facts.items() if value is not None}


def without_nul(value: object) -> object:
    """Return a text without U+0000, which PostgreSQL refuses; other values as they are."""
    return value.replace("\0", "�") if isinstance(value, str) else value


def score_id(key: ScoreKey) -> str:
    """Return 32 hex digits that are the same for each repeat of a score, in every process.

    Example:
        >>> from ragtrace.model import ScoreKey
        >>> score_id(ScoreKey(trace_id="a" * 32, span_id="b" * 16, metric="mrr", version="0a1b2c3d"))
        '03edd9f020cb60c863c32f460cb395bf'
    """
    parts = [key.trace_id, key.span_id, key.metric, key.version]
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:32]
