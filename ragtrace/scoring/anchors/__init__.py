"""Anchors: which runs are kept, and their rounds under the current judge."""
