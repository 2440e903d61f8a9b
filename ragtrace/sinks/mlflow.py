"""Send scores as assessments of traces to an MLflow tracking server."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.errors import ConfigError
from ragtrace.sinks.annotation import (
    AnnotationSink,
    annotator_kind,
    facts_of,
    is_worth_saying,
    score_id,
    without_nul,
)
from ragtrace.sinks.outbox import Attempt
from ragtrace.sinks.rest import basic, bearer, checked_key
from ragtrace.telemetry.spans.evaluation import explanation
from ragtrace.telemetry.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import MetricResult, RagRecord, Score
    from ragtrace.modes import ContentMode
    from ragtrace.sinks.rest import RestResponse

ENDPOINT, TOKEN = "endpoint (MLFLOW_TRACKING_URI)", "token (MLFLOW_TRACKING_TOKEN)"
USERNAME, PASSWORD = "username (MLFLOW_TRACKING_USERNAME)", "password (MLFLOW_TRACKING_PASSWORD)"
_NOT_OURS = ("/v1", "/v1/traces", "/api", "/api/2.0", "/api/3.0")
_NO_TRACE = "RESOURCE_DOES_NOT_EXIST"
_OF_ONE = frozenset({_NO_TRACE, "INTERNAL_ERROR"})  # of one assessment; the next one may succeed
_UPDATED = "feedback,rationale,metadata"


@dataclass(frozen=True, slots=True)
class _Assessment:
    """One assessment and its trace, under which the server keeps it."""

    trace: str
    id: str
    fields: dict[str, object]


class MlflowSink(AnnotationSink):
    """Sends each score to an MLflow server as an assessment of the run's trace, on its root span.

    MLflow takes one assessment a request and has no upsert. The sink gives each assessment an id of its own, made
    from the score's key, so that the server refuses a second one; then the first one is updated. A new score is one
    request and a repeat two. A trace that MLflow does not have yet is tried again for about a minute. Losses are
    counted under ``ragtrace.sinks.mlflow``: ``.full``, ``.refused``, ``.unreachable``, ``.closed``.

    Args:
        endpoint: the tracking server, for example ``http://127.0.0.1:5000``, without ``/api/...``.
        username: of a server with MLflow's own authentication.
        password: of that user.
        token: sent as a bearer token, in their place.
        content: ``full`` sends explanations as rationales, which may quote the answer; ``none`` sends none; default
            the setting `content`.
        timeout_s: limit of each wait on the socket, in seconds.
        queue: most assessments waiting; more are lost and counted.
        attempts: tries of one assessment, over about a minute.

    Raises:
        ConfigError: a wrong endpoint, key or number; one line that names the setting and never the key.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> sink = MlflowSink("http://127.0.0.1:5000")
        >>> sink.emit(RagRecord(id="a-file-not-a-trace"), [])
        >>> sink.close(1.0)
        True
    """

    def __init__(
        self,
        endpoint: str,
        *,
        username: str | None = None,
        password: str | None = None,
        token: str | None = None,
        content: ContentMode | None = None,
        timeout_s: float = 10.0,
        queue: int = 4_096,
        attempts: int = 8,
    ) -> None:
        headers = bearer(token, setting=TOKEN)
        if bool(username) != bool(password) and not token:
            raise ConfigError(f"MLflow needs {USERNAME} and {PASSWORD}, both or none")
        if username and password:
            checked_key(username, setting=USERNAME)
            headers = basic(username, checked_key(password, setting=PASSWORD))
        super().__init__(
            endpoint,
            name="mlflow",
            endpoint_name=ENDPOINT,
            headers=headers,
            not_ours=_NOT_OURS,
            content=content,
            timeout_s=timeout_s,
            queue=queue,
            attempts=attempts,
        )

    @classmethod
    def from_environ(cls, address: str = "") -> MlflowSink:
        """Return the sink of MLflow's own variables: MLFLOW_TRACKING_URI, _USERNAME, _PASSWORD and _TOKEN.

        Raises:
            ConfigError: there is no address, or a wrong one.
        """
        endpoint = address or os.environ.get("MLFLOW_TRACKING_URI")
        if not endpoint:
            raise ConfigError("it needs the server's address: set MLFLOW_TRACKING_URI")
        return cls(
            endpoint,
            username=os.environ.get("MLFLOW_TRACKING_USERNAME"),
            password=os.environ.get("MLFLOW_TRACKING_PASSWORD"),
            token=os.environ.get("MLFLOW_TRACKING_TOKEN"),
        )

    def _items(self, record: RagRecord, scores: Sequence[Score]) -> list[_Assessment]:
        trace = f"tr-{record.trace_id}"  # as MLflow names a trace that came over OTLP
        told = [score for score in scores if is_worth_saying(score.result)]
        return [
            _Assessment(trace, f"a-{score_id(score.key)}", assessment(record, score, has_content=self._has_content))
            for score in told
        ]

    def _deliver(self, batch: Sequence[_Assessment]) -> Attempt:
        """Send one after the other; a server that is away ends the batch, and the rest waits."""
        later: list[_Assessment] = []
        refused = 0
        complaint = ""
        for place, one in enumerate(batch):
            reply = self._written(one)
            if reply.is_taken:
                continue
            complaint = complaint or self._complaint(reply)
            if reply.json.get("error_code") in _OF_ONE:
                later.append(one)
            elif not reply.may_repeat:
                refused += 1
            elif place == 0:
                return Attempt(may_repeat=True, wait_s=reply.retry_after_s, complaint=complaint)
            else:
                later.extend(batch[place:])
                break
        return Attempt(is_delivered=True, refused=refused, later=later, complaint=complaint)

    def _written(self, one: _Assessment) -> RestResponse:
        """Create an assessment, or update the one of this id."""
        path = f"/api/3.0/mlflow/traces/{one.trace}/assessments"
        created = self._sent("POST", path, {"assessment": one.fields | {"assessment_id": one.id}})
        if created.status not in {409, 500}:  # MLflow 3.17 answers 500 to an id that it has
            return created
        changed = {name: one.fields[name] for name in _UPDATED.split(",")}
        updated = self._sent("PATCH", f"{path}/{one.id}", {"assessment": changed, "update_mask": _UPDATED})
        return updated if updated.is_taken else created

    def _sent(self, method: str, path: str, body: object) -> RestResponse:
        text = to_json(body).encode()
        return self._address.post(path, text, self._headers, timeout_s=self._timeout_s, method=method)

    def _complaint(self, reply: RestResponse) -> str:
        if reply.json.get("error_code") == _NO_TRACE:
            return f"MLflow at {self._address} does not have the trace of a score; it waits a while for it"
        key = f"{USERNAME} and {PASSWORD}, or {TOKEN}"
        return f"MLflow at {self._address} {reply.complaint(endpoint=ENDPOINT, key=key)}"


def assessment(record: RagRecord, score: Score, *, has_content: bool) -> dict[str, object]:
    """Return a score as an assessment of MLflow's REST API, without its id.

    A score of state ``error`` is a feedback error, and one of state ``na`` a feedback without a value.

    Args:
        record: the scored record.
        score: one of its scores.
        has_content: whether the explanation may be sent, which may quote the answer.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> key = ScoreKey(trace_id="ab" * 16, span_id="cd" * 8, metric="mrr", version="0a1b2c3d")
        >>> result = MetricResult(name="mrr", state="ok", value=0.5, version="0a1b2c3d")
        >>> found = assessment(RagRecord(id="1"), Score(key=key, result=result), has_content=False)
        >>> found["assessment_name"], found["feedback"], found["source"]
        ('mrr', {'value': 0.5}, {'source_type': 'CODE', 'source_id': 'ragtrace'})
    """
    result = score.result
    judge = result.judge
    said = str(without_nul(explanation(result) or "")) if has_content else ""
    source_type = "LLM_JUDGE" if annotator_kind(judge) == "LLM" else "CODE"
    facts = {"reason": ""} | facts_of(record, score)  # an update adds to what is there: no reason takes one back
    return {
        "assessment_name": result.key,
        "span_id": record.span_id,
        "source": {"source_type": source_type, "source_id": judge.model if judge else "ragtrace"},
        "feedback": _feedback(result, said),
        "rationale": said or result.reason or "",
        "metadata": {name: value if isinstance(value, str) else to_json(value) for name, value in facts.items()},
    }


def _feedback(result: MetricResult, said: str) -> dict[str, object]:
    if result.state == "error":
        return {"value": None, "error": {"error_code": result.reason, "error_message": said}}
    return {"value": result.value}


PLUGIN = MlflowSink
