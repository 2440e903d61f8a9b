"""Means that join a cheap judge of all runs with a better judge of some."""
