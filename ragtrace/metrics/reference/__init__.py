"""Metrics that compare the answer with a reference answer."""
