"""Metrics of the delivered contexts: precision, recall, use."""
