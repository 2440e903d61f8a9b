"""Command ``ragtrace score``: one file of JSON lines, or many files on an engine."""
