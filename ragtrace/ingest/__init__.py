"""Traces of other instrumentations: received, assembled, and read into records."""
