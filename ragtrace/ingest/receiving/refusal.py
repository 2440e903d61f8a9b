"""Refusals of a request, with their status in HTTP and gRPC."""

from __future__ import annotations

import math
from typing import Literal

from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

Reason = Literal[
    "malformed", "unauthenticated", "host", "not_found", "method", "timeout", "too_large", "media_type", "busy",
    "internal", "stopping",
]  # fmt: skip

_CODES: dict[str, tuple[int, int]] = {
    "malformed": (400, code_pb2.INVALID_ARGUMENT),
    "unauthenticated": (401, code_pb2.UNAUTHENTICATED),
    "host": (403, code_pb2.PERMISSION_DENIED),
    "not_found": (404, code_pb2.UNIMPLEMENTED),
    "method": (405, code_pb2.UNIMPLEMENTED),
    "timeout": (408, code_pb2.CANCELLED),
    "too_large": (413, code_pb2.RESOURCE_EXHAUSTED),
    "media_type": (415, code_pb2.INVALID_ARGUMENT),
    "busy": (429, code_pb2.RESOURCE_EXHAUSTED),
    "internal": (500, code_pb2.INTERNAL),
    "stopping": (503, code_pb2.UNAVAILABLE),
}
_MOST_RETRY_S = 3_600.0


class ReceiverRefusal(Exception):
    """A request is not taken; `message` goes to the sender and holds nothing of the body and the headers."""

    def __init__(self, reason: Reason, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after_s = None if retry_after_s is None else min(max(retry_after_s, 0.0), _MOST_RETRY_S)

    def released(self) -> ReceiverRefusal:
        """Return itself without the frames that raised it: they hold the body while it is answered."""
        self.__context__ = None
        return self.with_traceback(None)

    @property
    def http_status(self) -> int:
        """Status code of the HTTP response."""
        return _CODES[self.reason][0]

    @property
    def rpc_code(self) -> int:
        """Number of the gRPC status."""
        return _CODES[self.reason][1]

    @property
    def retry_after(self) -> int | None:
        """Whole seconds of ``Retry-After``, at least 1."""
        return None if self.retry_after_s is None else max(1, math.ceil(self.retry_after_s))

    def retry_info(self) -> RetryInfo | None:
        """Return the delay as OTLP's gRPC senders read it."""
        if self.retry_after_s is None:
            return None
        delay = Duration()
        delay.FromMilliseconds(math.ceil(self.retry_after_s * 1_000))
        return RetryInfo(retry_delay=delay)

    def status(self) -> Status:
        """Return the body of the response, or the details of the gRPC status."""
        status = Status(code=self.rpc_code, message=self.message)
        if (info := self.retry_info()) is not None:
            status.details.add().Pack(info)
        return status
