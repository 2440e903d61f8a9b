"""OTLP receiver: gRPC and HTTP servers that decode spans and logs for an intake."""

from __future__ import annotations

from ragtrace.ingest.receiving.options import ListenAddress, ReceiverLimits, ServerTls
from ragtrace.ingest.receiving.receiver import Receiver

__all__ = ["ListenAddress", "Receiver", "ReceiverLimits", "ServerTls"]
