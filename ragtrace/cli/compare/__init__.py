"""Command ``ragtrace compare``."""
