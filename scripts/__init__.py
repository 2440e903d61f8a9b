"""Tools of a release, run as ``python -m scripts.NAME``."""
