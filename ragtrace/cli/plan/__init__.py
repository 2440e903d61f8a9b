"""The command ``ragtrace plan``."""
