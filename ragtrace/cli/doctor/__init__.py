"""Command ``ragtrace doctor``."""
