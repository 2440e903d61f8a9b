"""Where scores stay: by trace, metric and judge version, with the few payloads that are worth keeping.

Owns: the store's file, its retention, its size and what is erased from it. Imports: telemetry's details, capture's
loss counter, model and errors; never queues, with which it may share a file.
"""

from ragtrace.stores.base import Erased, Label, Pending, Policy, Store

__all__ = ["Erased", "Label", "Pending", "Policy", "Store"]
