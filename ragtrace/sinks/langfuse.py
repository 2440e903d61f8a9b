"""Send scores to the public API of Langfuse."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigError
from ragtrace.sinks.annotation import AnnotationSink, facts_of, is_worth_saying, label_of, score_id, without_nul
from ragtrace.sinks.outbox import Attempt
from ragtrace.sinks.rest import RestResponse, basic, checked_key, iso_utc
from ragtrace.telemetry.spans.evaluation import explanation
from ragtrace.telemetry.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Score
    from ragtrace.modes import ContentMode

SCORES = "/api/public/scores"
INGESTION = "/api/public/ingestion"
HEALTH = "/api/public/health"
_RELEASE = re.compile(r"v?(\d{1,9})\.(\d{1,9})")
_FIRST_WITH_LISTS = (4, 59)  # the first server that takes a list of scores
ENDPOINT = "endpoint (LANGFUSE_BASE_URL)"
PUBLIC_KEY, SECRET_KEY = "public_key (LANGFUSE_PUBLIC_KEY)", "secret_key (LANGFUSE_SECRET_KEY)"
_NOT_OURS = ("/api", "/api/public", SCORES, INGESTION, "/api/public/otel", "/v1/traces")


class LangfuseSink(AnnotationSink):
    """Sends each score to a Langfuse server, on the run's root observation.

    A repeat of the same metric and version for the same trace replaces: Langfuse knows a score by its id and the
    day of its timestamp, and both are the same each time. The first delivery asks for the server's version.
    Servers from 4.59 on take lists of scores, and older ones events for their ingestion. Losses are counted under
    ``ragtrace.sinks.langfuse``: ``.full``, ``.refused``, ``.unreachable``, ``.closed``.

    Langfuse writes asynchronously, so a taken score may show up seconds later.

    Args:
        endpoint: the server, for example ``https://cloud.langfuse.com``, without ``/api/...``.
        public_key: of the project.
        secret_key: of the project.
        content: ``full`` sends explanations as comments, which may quote the answer; ``none`` sends none; default
            the setting `content`.
        timeout_s: limit of each wait on the socket, in seconds.
        queue: most scores waiting; more are lost and counted.
        attempts: tries of one batch on 408, 425, 429, 5xx and broken connections, over about a minute.

    Raises:
        ConfigError: a wrong endpoint or number, or a missing key; one line that never holds a key.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> sink = LangfuseSink("http://127.0.0.1:3000", public_key="pk-lf-1", secret_key="sk-lf-1")
        >>> sink.emit(RagRecord(id="a-file-not-a-trace"), [])
        >>> sink.close(1.0)
        True
    """

    def __init__(
        self,
        endpoint: str,
        *,
        public_key: str | None,
        secret_key: str | None,
        content: ContentMode | None = None,
        timeout_s: float = 10.0,
        queue: int = 4_096,
        attempts: int = 8,
    ) -> None:
        if not (public_key and secret_key):
            raise ConfigError(f"Langfuse needs {PUBLIC_KEY} and {SECRET_KEY}")
        user = checked_key(public_key, setting=PUBLIC_KEY)
        headers = basic(user, checked_key(secret_key, setting=SECRET_KEY))
        super().__init__(
            endpoint,
            name="langfuse",
            endpoint_name=ENDPOINT,
            headers=headers,
            not_ours=_NOT_OURS,
            content=content,
            timeout_s=timeout_s,
            queue=queue,
            attempts=attempts,
        )
        self._takes_lists: bool | None = None  # not asked yet

    @classmethod
    def from_environ(cls, address: str = "") -> LangfuseSink:
        """Return the sink of Langfuse's own variables: LANGFUSE_BASE_URL or LANGFUSE_HOST, and its two keys.

        Raises:
            ConfigError: there is no address or no key, or a wrong one.
        """
        endpoint = address or os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST")
        if not endpoint:
            raise ConfigError("it needs the server's address: set LANGFUSE_BASE_URL")
        return cls(
            endpoint,
            public_key=os.environ.get("LANGFUSE_PUBLIC_KEY"),
            secret_key=os.environ.get("LANGFUSE_SECRET_KEY"),
        )

    def _items(self, record: RagRecord, scores: Sequence[Score]) -> list[dict[str, object]]:
        return langfuse_scores(record, scores, has_content=self._has_content)

    def _deliver(self, batch: Sequence[Any]) -> Attempt:
        if self._takes_lists is None:
            reply = self._address.post(HEALTH, b"", {}, timeout_s=self._timeout_s, method="GET")
            if not reply.is_taken:
                return self._attempt(reply)
            self._takes_lists = _version(reply.json.get("version")) >= _FIRST_WITH_LISTS
        if self._takes_lists:
            return self._attempt(self._sent(SCORES, batch))
        events = [_event(score) for score in batch]
        return self._attempt(
            self._sent(INGESTION, {"batch": events}), dict(zip(map(_id, events), batch, strict=True))
        )

    def _sent(self, path: str, body: object) -> RestResponse:
        return self._address.post(path, to_json(body).encode(), self._headers, timeout_s=self._timeout_s)

    def _attempt(self, reply: RestResponse, events: Mapping[str, Any] | None = None) -> Attempt:
        """Return the outcome of a request, of each event where the server tells it."""
        if not reply.is_taken:
            said = reply.complaint(endpoint=ENDPOINT, key=f"{PUBLIC_KEY} and {SECRET_KEY}")
            return Attempt(
                may_repeat=reply.may_repeat,
                may_split=reply.status in {400, 413, 422},
                wait_s=reply.retry_after_s,
                complaint=f"Langfuse at {self._address} {said}",
            )
        if events is None:
            rejected = reply.json.get("rejected")
            refused, later = rejected if isinstance(rejected, int) else 0, []
        else:
            errors = [error for error in _list(reply.json.get("errors")) if isinstance(error, Mapping)]
            later = [events[_id(error)] for error in errors if _id(error) in events and _may_repeat(error)]
            refused = len(errors) - len(later)
        said = f"Langfuse at {self._address} refused scores of a batch; they are not delivered" if refused else ""
        return Attempt(is_delivered=True, refused=refused, later=later, complaint=said)


def langfuse_scores(record: RagRecord, scores: Sequence[Score], *, has_content: bool) -> list[dict[str, object]]:
    """Return the scores of one record, as Langfuse's ``POST /api/public/scores`` takes them in a list.

    A score of state ``na`` or ``error`` has no number: it is categorical, and its value is the state.

    Args:
        record: the scored record.
        scores: its scores.
        has_content: whether explanations may be sent, which may quote the answer.

    Example:
        >>> from ragtrace.model import MetricResult, RagRecord, Score, ScoreKey
        >>> key = ScoreKey(trace_id="ab" * 16, span_id="cd" * 8, metric="mrr", version="0a1b2c3d")
        >>> result = MetricResult(name="mrr", state="ok", value=0.5, version="0a1b2c3d")
        >>> record = RagRecord(id="1", trace_id="ab" * 16, span_id="cd" * 8, ended=1.7e9)
        >>> (found,) = langfuse_scores(record, [Score(key=key, result=result)], has_content=False)
        >>> found["name"], found["value"], found["dataType"], found["timestamp"]
        ('mrr', 0.5, 'NUMERIC', '2023-11-14T22:13:20.000Z')
    """
    found = []
    for score in scores:
        result = score.result
        if not is_worth_saying(result):
            continue
        said = explanation(result) if has_content else None
        row = {
            "id": score_id(score.key),
            "traceId": record.trace_id,
            "observationId": record.span_id,
            "name": result.key,
            "value": result.state if result.value is None else result.value,
            "dataType": "CATEGORICAL" if result.value is None else "NUMERIC",
            "comment": without_nul(said),
            "metadata": facts_of(record, score) | {"label": label_of(result)},
            "timestamp": iso_utc(record.ended or score.scored_at),
        }
        found.append({name: value for name, value in row.items() if value is not None})
    return found


def _event(score: Mapping[str, object]) -> dict[str, object]:
    """Return a score as an event of the older API, which drops a repeat of an event's own id."""
    body = {name: value for name, value in score.items() if name != "timestamp"}
    return {"id": str(uuid.uuid4()), "type": "score-create", "timestamp": score["timestamp"], "body": body}


def _id(row: Mapping[str, object]) -> str:
    return str(row.get("id"))


def _may_repeat(error: Mapping[str, object]) -> bool:
    status = error.get("status")
    return isinstance(status, int) and RestResponse(status=status).may_repeat


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _version(text: object) -> tuple[int, int]:
    """Return major and minor version; a server that does not tell is of today."""
    found = _RELEASE.match(text) if isinstance(text, str) else None
    return (int(found[1]), int(found[2])) if found else _FIRST_WITH_LISTS


PLUGIN = LangfuseSink
