"""Providers from the ``OTEL_*`` settings, and the accounts of their exporters."""
