"""Dialects of RAG traces, one file each: attributes of a span into neutral facts."""
