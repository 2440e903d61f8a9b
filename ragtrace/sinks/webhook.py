"""Post a digest of failed runs to a webhook, as JSON or as a Slack message."""

from __future__ import annotations

import base64
import hashlib
import heapq
import hmac
import os
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from ragtrace.capture.fork import after_fork_in_child
from ragtrace.capture.past import RecentIds
from ragtrace.errors import ConfigError
from ragtrace.model.standing import standing_by
from ragtrace.modes import WebhookForm
from ragtrace.sinks.annotation import check_limits, score_id
from ragtrace.sinks.console import one_line
from ragtrace.sinks.outbox import Attempt, Outbox
from ragtrace.sinks.rest import Address, is_plain, iso_utc
from ragtrace.telemetry.spans.evaluation import explanation
from ragtrace.telemetry.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ragtrace.model import MetricResult, RagRecord, Score
    from ragtrace.modes import ContentMode

URL, SECRET = "url (RAGTRACE_WEBHOOK_URL)", "secret (RAGTRACE_WEBHOOK_SECRET)"
SLACK = "hooks.slack.com"
EVENT_TYPE = "ragtrace.runs.failed"
MOST_LISTED = 100
_MOST_IN_SLACK = 3
_MOST_SECTION_CHARS = 3_000  # Slack's limits: a text of a block, and a header
_MOST_HEADER_CHARS = 150
_MOST_METRICS = 20
_MOST_SCORES = 10
_MOST_QUERY_CHARS = 200
_MOST_WHY_CHARS = 300
_MOST_NAME_CHARS = 80
_MOST_RETRY_AFTER_S = 900.0
_REMEMBERED = 10_000


class WebhookSink:
    """Posts runs with a score below its metric's threshold, gathered into one message.

    The first failed run is sent after `wait_s`, together with those that came meanwhile. The next message leaves
    `every_s` later at the earliest, so that a bad hour is two messages. Each says how many runs of how many scored
    ones failed in which period, by metric with its threshold, and the worst runs. The period begins with the first
    scored run behind the last message, and without a failed run anew after `every_s`. `flush` ends the first wait
    alone, and `close` both. Runs that wait are lost with a killed process.

    Each request has the headers of Standard Webhooks: ``webhook-id``, the same for each attempt at a message,
    ``webhook-timestamp``, and ``webhook-signature`` with a secret. ``Idempotency-Key`` repeats the id. Losses are
    counted under ``ragtrace.sinks.webhook``, a message each: ``.refused``, ``.unreachable``, ``.closed``.

    Args:
        url: takes the messages; it is a secret, so messages about it name the server alone.
        form: ``json``, or ``slack`` for blocks as Slack's incoming webhooks take them; default what the address
            takes.
        secret: signs messages by HMAC-SHA256; ``whsec_`` and base64, or any text.
        trace_url: link to a trace, with ``{trace_id}`` and ``{span_id}`` where the ids stand.
        content: ``full`` sends questions and explanations, which may quote the answer; ``none`` sends none; default
            the setting `content`.
        wait_s: seconds for which the first failed run waits for more.
        every_s: least seconds between two messages.
        service: name of the service, told in messages; default OTEL_SERVICE_NAME.
        timeout_s: limit of each wait on the socket, in seconds.
        attempts: tries of a message on 408, 425, 429, 5xx and broken connections.

    Raises:
        ConfigError: a wrong address, form or number; one line that never holds the address or the secret.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> sink = WebhookSink("http://127.0.0.1:9/hook", secret="s3cret")
        >>> sink.emit(RagRecord(id="no run failed"), [])
        >>> sink.close(1.0)
        True
    """

    def __init__(
        self,
        url: str,
        *,
        form: WebhookForm | None = None,
        secret: str | None = None,
        trace_url: str | None = None,
        content: ContentMode | None = None,
        wait_s: float = 30.0,
        every_s: float = 3_600.0,
        service: str | None = None,
        timeout_s: float = 10.0,
        attempts: int = 8,
    ) -> None:
        self._address, self._target = _address(url)
        form = form or ("slack" if self._address.host == SLACK else "json")
        if form not in get_args(WebhookForm):
            raise ConfigError("form must be json or slack")
        check_limits(type(self).__name__, timeout_s=timeout_s, attempts=attempts)
        self._form = form
        self._secret = _signing_key(secret) if secret else None
        self._trace_url = _link(trace_url) if trace_url else None
        self._content = content
        self._has_content = content == "full"
        self._timeout_s = timeout_s
        self._every_s = every_s
        named = os.environ.get("OTEL_SERVICE_NAME", "") if service is None else service
        self._service = one_line(named, _MOST_NAME_CHARS)
        self._lower_is_better: Collection[str] = ()
        self._thresholds: Mapping[str, float] = {}
        self._outbox: Outbox[_Digest] = Outbox(
            self._deliver,
            site="ragtrace.sinks.webhook",
            complaint="ragtrace: messages are not delivered to webhook (a store, if one is set, keeps the scores)",
            batch=1,
            attempts=attempts,
            longest_wait_s=_MOST_RETRY_AFTER_S,
            linger_s=wait_s,
            interval_s=every_s,
        )
        self.reset_after_fork()
        after_fork_in_child(self.reset_after_fork)

    @classmethod
    def from_environ(cls, address: str = "") -> WebhookSink:
        """Return the sink of RAGTRACE_WEBHOOK_URL and RAGTRACE_WEBHOOK_SECRET.

        Raises:
            ConfigError: there is no address, or a wrong one.
        """
        url = address or os.environ.get("RAGTRACE_WEBHOOK_URL")
        if not url:
            raise ConfigError("it needs the address to post to: set RAGTRACE_WEBHOOK_URL")
        return cls(url, secret=os.environ.get("RAGTRACE_WEBHOOK_SECRET"))

    def reset_after_fork(self) -> None:
        """Begin with no failed run, in a forked child."""
        self._lock = threading.Lock()
        self._open: _Digest | None = None
        self._known = RecentIds(_REMEMBERED)

    def take_content(self, content: ContentMode) -> None:
        """Take the setting `content`, which counts where the constructor was given none."""
        self._has_content = (self._content or content) == "full"

    def take_directions(self, lower_is_better: Collection[str]) -> None:
        """Take the names of the metrics where a high value is the bad one."""
        self._lower_is_better = lower_is_better

    def take_thresholds(self, thresholds: Mapping[str, float]) -> None:
        """Take the thresholds of metrics by name, which messages tell."""
        self._thresholds = thresholds

    @property
    def lost(self) -> str:
        """The number of lost messages by reason, in words; "" for none."""
        return self._outbox.lost("message")

    def emit(self, record: RagRecord, scores: Sequence[Score]) -> None:
        """Count a scored run, and add it to the next message where one of its scores failed. Never waits."""
        ids = {score_id(score.key): score for score in scores if score.result.passed is False}
        failed = {name: score for name, score in ids.items() if name not in self._known}
        name_of_run = (record.trace_id, record.span_id, record.id)
        is_new = name_of_run not in self._known and any(score.result.value is not None for score in scores)
        if not (failed or is_new):
            return
        for name in (name_of_run, *failed):
            self._known.add(name)
        run = self._run(record, failed) if failed else None
        with self._lock:
            digest = self._window()
            is_first = run is not None and not digest.runs
            digest.scored += 1
            digest.until = time.time()
            if run is not None:
                digest.add(run, self._badness(failed.values()), failed)
        if is_first:
            self._outbox.offer([digest])

    def _window(self) -> _Digest:
        """Return the open digest; a new one behind a message, and after a time without failed runs."""
        now = time.time()
        if self._open is None or (not self._open.runs and now - self._open.since > self._every_s):
            self._open = _Digest(now, self._service)
        return self._open

    def flush(self, timeout_s: float) -> bool:
        """Send the message where the last one is `every_s` ago; False when one was lost or time is over."""
        return self._outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send what is there and stop within `timeout_s`; the rest is counted as lost."""
        return self._outbox.close(timeout_s)

    def _deliver(self, batch: Sequence[_Digest]) -> Attempt:
        (digest,) = batch
        with self._lock:
            if self._open is digest:
                self._open = None
        message = digest.as_slack() if self._form == "slack" else digest.as_json()
        body = to_json(message).encode()
        headers = self._headers(digest.id, body)
        reply = self._address.post(self._target, body, headers, timeout_s=self._timeout_s)
        said = reply.complaint(endpoint=URL, key=f"{URL} and {SECRET}", thing="a message")
        return Attempt(
            is_delivered=reply.is_taken,
            may_repeat=reply.may_repeat,
            wait_s=reply.retry_after_s,
            complaint="" if reply.is_taken else f"the webhook at {self._address.origin} {said}",
        )

    def _headers(self, name: str, body: bytes) -> dict[str, str]:
        now = str(int(time.time()))
        headers = {"webhook-id": name, "webhook-timestamp": now, "Idempotency-Key": name}
        if self._secret is not None:
            signed = hmac.digest(self._secret, f"{name}.{now}.".encode() + body, "sha256")
            headers["webhook-signature"] = f"v1,{base64.b64encode(signed).decode()}"
        return headers

    def _run(self, record: RagRecord, failed: Mapping[str, Score]) -> dict[str, Any]:
        worst_first = sorted(failed.values(), key=lambda score: -self._badness([score])[1])
        whys = filter(None, (_why(score.result) for score in worst_first)) if self._has_content else iter(())
        link = (self._trace_url or "").replace("{trace_id}", record.trace_id).replace("{span_id}", record.span_id)
        run = {
            "trace_id": record.trace_id,
            "span_id": record.span_id,
            "workflow": one_line(record.workflow, _MOST_NAME_CHARS),
            "environment": one_line(record.environment or "", _MOST_NAME_CHARS),
            "url": link if is_plain(link) else "",
            "failed": [
                {
                    "id": name,
                    "metric": one_line(score.result.key, _MOST_NAME_CHARS),
                    "value": score.result.value,
                    "version": score.key.version,
                }
                | self._limit(score.result.name)
                for name, score in failed.items()
            ],
            "query": one_line(record.query, _MOST_QUERY_CHARS) if self._has_content else "",
            "explanation": one_line(next(whys, ""), _MOST_WHY_CHARS),
        }
        return {name: value for name, value in run.items() if value != "" or name == "workflow"}

    def _limit(self, metric: str) -> dict[str, object]:
        """Return the threshold of a metric, and on which side of it a value fails; nothing where it is unknown."""
        if metric not in self._thresholds:
            return {}
        side = "above" if metric in self._lower_is_better else "below"
        return {"threshold": self._thresholds[metric], "failed_side": side}

    def _badness(self, scores: Iterable[Score]) -> tuple[int, float]:
        """Return how many scores failed, and how low the worst of them is."""
        values = [(score.result.value or 0.0, score.result.name in self._lower_is_better) for score in scores]
        return len(values), max(value if is_lower_better else -value for value, is_lower_better in values)


class _Digest:
    """Failed runs of one message, and the number of scored ones.

    Attributes:
        since: Unix seconds of the first scored run.
        until: Unix seconds of the last scored run.
        scored: scored runs, failed ones among them.
        runs: failed ones.
    """

    def __init__(self, since: float, service: str) -> None:
        self.since = since
        self.until = since
        self.scored = 0
        self.runs = 0
        self._service = service
        self._by_metric: Counter[str] = Counter()
        self._limits: dict[str, str] = {}
        self._worst: list[tuple[tuple[int, float], int, dict[str, Any]]] = []  # a heap, the least bad one first
        self._mark = 0

    def add(self, run: dict[str, Any], badness: tuple[int, float], ids: Iterable[str]) -> None:
        self.runs += 1
        self._by_metric.update(failed["metric"] for failed in run["failed"])
        self._limits.update({failed["metric"]: _limit_text(failed) for failed in run["failed"]})
        push = heapq.heappush if len(self._worst) < MOST_LISTED else heapq.heappushpop
        push(self._worst, (badness, -self.runs, run))  # of equally bad ones the first
        for name in ids:
            self._mark ^= int(name, 16)

    @property
    def id(self) -> str:
        """The same for the same failed scores, in any order and in every process."""
        return f"msg_{hashlib.sha256(self._mark.to_bytes(16)).hexdigest()[:32]}"

    @property
    def worst(self) -> list[dict[str, Any]]:
        """The worst runs, the worst one first."""
        return [run for _, _, run in sorted(self._worst, key=lambda one: one[:2], reverse=True)]

    def as_json(self) -> dict[str, object]:
        data = {
            "runs": self.runs,
            "scored_runs": self.scored,
            "since": iso_utc(self.since),
            "until": iso_utc(self.until),
            "by_metric": dict(self._by_metric.most_common()),
            "worst": self.worst,
        }
        service = {"service": self._service} if self._service else {}
        return {"type": EVENT_TYPE, "timestamp": iso_utc(self.until), "data": data | service}

    def as_slack(self) -> dict[str, object]:
        noun = "run" if self.scored == 1 else "runs"
        period = _period(self.since, self.until)
        title = f"{self.runs} of {self.scored} scored {noun} failed, {period}"[:_MOST_HEADER_CHARS]
        texts = [list(self._summary()), *(list(_lines(run)) for run in self.worst[:_MOST_IN_SLACK])]
        if self.runs > _MOST_IN_SLACK:
            texts.append([f"and {self.runs - _MOST_IN_SLACK} more"])
        sections = [{"type": "section", "text": _mrkdwn(lines)} for lines in texts]
        header = {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}}
        return {"text": title, "blocks": [header, *sections]}

    def _summary(self) -> Iterator[str]:
        """Yield the lines of the whole message: its service, and the failed runs of each metric."""
        service = f"service {_escaped(self._service)}, " if self._service else ""
        yield f"{service}sampled runs only, not all traffic"
        for metric, number in self._by_metric.most_common(_MOST_METRICS):
            limit = self._limits[metric]
            yield f"{number} x {_escaped(metric)}{f' {limit}' if limit else ''}"
        if len(self._by_metric) > _MOST_METRICS:
            yield f"and {len(self._by_metric) - _MOST_METRICS} more metrics"


def _why(result: MetricResult) -> str:
    """Return the worst claim or specific of a score, or else its explanation; "" without either."""
    claim = standing_by([result]).claim
    return str(claim) if claim is not None else explanation(result) or ""


def _limit_text(failed: Mapping[str, Any]) -> str:
    """Return on which side of its threshold a score failed, such as "below 0.70"; "" where it is unknown."""
    return f"{failed['failed_side']} {failed['threshold']:.2f}" if "threshold" in failed else ""


def _period(since: float, until: float) -> str:
    """Return a period in UTC, with days where it has two."""
    first, last = (datetime.fromtimestamp(unix_s, UTC) for unix_s in (since, until))
    form = "%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M"
    return f"{first:{form}} to {last:{form}} UTC"


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a run in Slack's markup; texts of people are escaped, so that they command nothing."""
    trace = f"<{run['url']}|trace {run['trace_id']}>" if "url" in run else f"trace {_escaped(run['trace_id'])}"
    places = [_escaped(run[name]) for name in ("workflow", "environment") if run.get(name)]
    yield ", ".join([*places, trace])
    shown = [_score_text(one) for one in run["failed"][:_MOST_SCORES]]
    left = len(run["failed"]) - _MOST_SCORES
    yield "; ".join([*shown, f"and {left} more"] if left > 0 else shown)
    for name in ("query", "explanation"):
        if name in run:
            yield f"&gt; {_escaped(run[name])}"


def _score_text(failed: Mapping[str, Any]) -> str:
    limit = _limit_text(failed)
    return f"*{_escaped(failed['metric'])}* {failed['value']:.2f}{f', {limit}' if limit else ''}"


def _mrkdwn(lines: Iterable[str]) -> dict[str, object]:
    """Return a text object of whole lines within Slack's limit; nothing in it becomes a link or a mention."""
    text = ""
    for line in lines:
        longer = f"{text}\n{line}" if text else line
        if len(longer) > _MOST_SECTION_CHARS:
            break
        text = longer
    return {"type": "mrkdwn", "text": text or "...", "verbatim": True}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _address(url: object) -> tuple[Address, str]:
    """Return a webhook's address and the rest of its path, which may hold a query."""
    text = url.strip() if isinstance(url, str) else ""
    base, mark, query = text.partition("?")
    address = Address.parse(base, setting=URL)
    if not is_plain(text) or "#" in query:
        raise ConfigError(f"{URL} is no address of a webhook; was it copied whole?")
    slash = "/" if base.endswith("/") or not address.path else ""
    return address, slash + mark + query


def _link(template: str) -> str:
    is_link = template.startswith(("http://", "https://")) and is_plain(template) and not set("<>|") & set(template)
    if not is_link or "{trace_id}" not in template:
        raise ConfigError("trace_url must be an address with {trace_id}, for example http://host/{trace_id}")
    return template


def _signing_key(secret: str) -> bytes:
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise ConfigError(f"{SECRET} begins with whsec_, but no base64 follows; was it copied whole?") from None


PLUGIN = WebhookSink
