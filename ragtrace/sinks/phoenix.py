"""Post scores as span annotations to the REST API of Arize Phoenix."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigError
from ragtrace.sinks.annotation import (
    AnnotationSink,
    annotator_kind,
    facts_of,
    is_worth_saying,
    label_of,
    without_nul,
)
from ragtrace.sinks.outbox import Attempt
from ragtrace.sinks.rest import bearer
from ragtrace.telemetry.spans.evaluation import explanation
from ragtrace.telemetry.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import MetricResult, RagRecord, Score
    from ragtrace.modes import ContentMode

# Phoenix takes annotations of spans that it does not have yet and looks for them every 10 s, 60 times (measured
# with 20.26.1); with sync=true it answers 404 and takes none of the batch.
PATH = "/v1/span_annotations?sync=false"
ENDPOINT, API_KEY = "endpoint (PHOENIX_COLLECTOR_ENDPOINT)", "api_key (PHOENIX_API_KEY)"
_NOT_OURS = ("/v1", "/v1/traces", "/v1/span_annotations", "/graphql")


class PhoenixSink(AnnotationSink):
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
        content: ``full`` sends explanations, which may quote the answer; ``none`` sends none; default
            the setting `content`.
        timeout_s: limit of each wait on the socket, in seconds.
        queue: most annotations waiting; more are lost and counted.
        attempts: tries of one batch on 408, 425, 429, 5xx and broken connections, over about a minute.

    Raises:
        ConfigError: a wrong endpoint, key or number; one line that names the argument and never the key.

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
        content: ContentMode | None = None,
        timeout_s: float = 10.0,
        queue: int = 4_096,
        attempts: int = 8,
    ) -> None:
        super().__init__(
            endpoint,
            name="phoenix",
            endpoint_name=ENDPOINT,
            headers=bearer(api_key, setting=API_KEY),
            not_ours=_NOT_OURS,
            content=content,
            timeout_s=timeout_s,
            queue=queue,
            attempts=attempts,
        )

    @classmethod
    def from_environ(cls, address: str = "") -> PhoenixSink:
        """Return the sink of Phoenix's own variables, PHOENIX_COLLECTOR_ENDPOINT and PHOENIX_API_KEY.

        Raises:
            ConfigError: there is no address, or a wrong one.
        """
        endpoint = address or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT", "").removesuffix("/v1/traces")
        if not endpoint:
            raise ConfigError("it needs the server's address: set PHOENIX_COLLECTOR_ENDPOINT")
        return cls(endpoint, api_key=os.environ.get("PHOENIX_API_KEY"))

    def _items(self, record: RagRecord, scores: Sequence[Score]) -> list[dict[str, object]]:
        return span_annotations(record, scores, has_content=self._has_content)

    def _deliver(self, batch: Sequence[Any]) -> Attempt:
        body = to_json({"data": batch}).encode()
        reply = self._address.post(PATH, body, self._headers, timeout_s=self._timeout_s)
        said = reply.complaint(endpoint=ENDPOINT, key=API_KEY, thing="an annotation")
        return Attempt(
            is_delivered=reply.is_taken,
            may_repeat=reply.may_repeat,
            may_split=reply.status in {400, 413, 422},  # one reserved name makes Phoenix refuse the whole batch
            wait_s=reply.retry_after_s,
            complaint="" if reply.is_taken else f"Phoenix at {self._address} {said}",
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
            "metadata": facts_of(record, score),
            "identifier": f"ragtrace:{score.key.metric}:{score.key.version}",
        }
        for score in scores
        if is_worth_saying(score.result)
    ]


def _result(result: MetricResult, *, has_content: bool) -> dict[str, object]:
    said = explanation(result) if has_content else None
    found: dict[str, object]
    if result.state != "ok":
        # A reason is from a closed list and quotes nothing.
        found = {"label": result.state, "explanation": f"{result.reason}: {said}" if said else result.reason}
    else:
        found = {"score": result.value, "label": label_of(result), "explanation": said}
    return {name: without_nul(value) for name, value in found.items() if value is not None}


PLUGIN = PhoenixSink
