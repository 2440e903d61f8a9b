"""Metrics over several runs of one query."""
