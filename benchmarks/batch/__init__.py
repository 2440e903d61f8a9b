"""Benchmarks of scoring files on engines."""
