"""Public parts for tests, of ragtrace and of whoever extends it: a real OTLP receiver on loopback.

Owns: test fixtures. May import every room, and is imported by none.
"""
