"""Fixtures and conformance suites for people who build on ragtrace; imported by none of its rooms."""
