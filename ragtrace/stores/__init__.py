"""Stores of scores, human labels and a few records.

Owns: the store's file, its retention, its size and what is erased from it. Imports: capture's guard,
sampling's draw, sqlite_file, stats, model and errors; never queues, with which it may share a file.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.stores.base import Erased, Label, Pending, Policy

if TYPE_CHECKING:
    from ragtrace.stores.anchors import Anchor, AnchorScore
    from ragtrace.stores.base import OutboxEntry
    from ragtrace.stores.baselines import FrozenBaseline
    from ragtrace.stores.outbox import COUNT, EVENT
    from ragtrace.stores.owner import Owner, is_over, this_process
    from ragtrace.stores.run_facts import FACTS
    from ragtrace.stores.sqlite import SqliteStore
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "anchors": "Anchor AnchorScore",
            "base": "OutboxEntry",
            "baselines": "FrozenBaseline",
            "outbox": "COUNT EVENT",
            "owner": "Owner is_over this_process",
            "run_facts": "FACTS",
            "sqlite": "SqliteStore",
        },
    )

__all__ = [
    "Erased",
    "Label",
    "Pending",
    "Policy",
]
