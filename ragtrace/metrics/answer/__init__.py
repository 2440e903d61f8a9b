"""Metrics of the answer: support, relevance, citations, attempts."""
