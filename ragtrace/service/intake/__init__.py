"""Received traces into units of the scorer: assembled, read, drawn and counted."""
