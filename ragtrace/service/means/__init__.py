"""Means that are estimated from more than the scores of one series."""
