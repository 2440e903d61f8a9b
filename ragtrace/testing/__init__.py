"""Fixtures and conformance suites for extensions of ragtrace; imported by none of its rooms."""
