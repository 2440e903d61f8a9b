"""The scrape endpoint: a small HTTP server on loopback that shows every metric, with exemplars."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics.export import MetricReader

from ragtrace.capture import record_internal_error
from ragtrace.http_server import HttpServer, Page
from ragtrace.sinks.openmetrics import OPENMETRICS, PLAIN, Exemplars, render

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import Message

    from opentelemetry.sdk.metrics.export import MetricsData

PATH = "/metrics"
_TEXT = "text/plain; charset=utf-8"


class ScrapeReader(MetricReader):
    """Collects when it is asked to; cumulative, as Prometheus wants it.

    Example:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> reader = ScrapeReader()
        >>> MeterProvider(metric_readers=[reader]).get_meter("x").create_counter("asked").add(1)
        >>> "asked_total 1" in reader.scrape()
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._scrape_lock = threading.Lock()
        self._data: MetricsData | None = None
        self._exemplars = Exemplars()
        self.answered: Callable[[int], None] = lambda _: None  # told the monotonic ns at which a scrape began

    def scrape(self, *, is_openmetrics: bool = True) -> str:
        """Collect and return the text of one scrape."""
        with self._scrape_lock:
            self._data, began_ns = None, time.monotonic_ns()
            self.collect()
            text = render(self._data, self._exemplars, is_openmetrics=is_openmetrics)
        self.answered(began_ns)
        return text

    def _receive_metrics(
        self,
        metrics_data: MetricsData,
        timeout_millis: float = 10_000,  # noqa: ARG002 - the SDK's signature
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        self._data = metrics_data

    def force_flush(self, timeout_millis: float = 10_000) -> bool:  # noqa: ARG002
        """Do nothing: a scrape collects for itself."""
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        """Do nothing: the endpoint is closed by its owner."""


class OpenMetricsEndpoint(HttpServer):
    """Serves ``GET /metrics``: OpenMetrics 1.0 with exemplars, or text 0.0.4 for a client that asks for it alone.

    Give `reader` to a `MeterProvider`; the server runs in daemon threads. It binds to loopback unless told
    otherwise: metrics carry workflow and model names, and there is no authentication.

    Args:
        host: address to bind to.
        port: 0 takes any free port; see `port`.
        reader: what to show; default a new `ScrapeReader`.

    Raises:
        ConfigError: the port is taken, or the address is not this machine's.

    Example:
        >>> endpoint = OpenMetricsEndpoint(port=0)
        >>> endpoint.url.startswith("http://127.0.0.1:")
        True
        >>> endpoint.close()
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 9464, *, reader: ScrapeReader | None = None) -> None:
        self.reader = reader or ScrapeReader()
        super().__init__("metrics", self._page, host=host, port=port)

    @property
    def url(self) -> str:
        """Address of the scrape."""
        return super().url + PATH

    def _page(self, path: str, headers: Message) -> Page:
        if path != PATH:
            return Page(404, _TEXT, f"metrics are at {PATH}\n".encode())
        is_openmetrics = wants_openmetrics(headers.get("Accept", ""))
        try:
            text = self.reader.scrape(is_openmetrics=is_openmetrics)
        except Exception as error:
            record_internal_error("ragtrace.sinks.prometheus.scrape", error)
            return Page(500, _TEXT, f"the scrape failed: {type(error).__name__}\n".encode())
        return Page(200, OPENMETRICS if is_openmetrics else PLAIN, text.encode("utf-8", "replace"))


def wants_openmetrics(accept: str) -> bool:
    """Say by an Accept header whether to answer in OpenMetrics; the default, unless text/plain is wanted more.

    Example:
        >>> wants_openmetrics("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
        True
        >>> wants_openmetrics("text/plain"), wants_openmetrics("*/*")
        (False, True)
    """
    wishes: dict[str, float] = {}
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        wishes[kind] = max(wishes.get(kind, 0.0), _quality(parameters))
    plain = wishes.get("text/plain", 0.0)
    return wishes.get("application/openmetrics-text", 0.0) >= plain if plain else True


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
