"""Spans and events of runs and of their scores."""
