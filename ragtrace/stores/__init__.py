"""Stores of scores, human labels and a few records.

Owns: the store's file, its retention, its size and what is erased from it. Imports: capture's guard,
sampling's draw, sqlite_file, stats, model and errors; never queues, with which it may share a file.
"""

from ragtrace.stores.base import Erased, Label, Pending, Policy

__all__ = ["Erased", "Label", "Pending", "Policy"]
