"""Command ``ragtrace calibrate``."""
