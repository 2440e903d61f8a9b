"""Spans into whole traces: bounded, closed after the root, with late spans and duplicates told apart."""
