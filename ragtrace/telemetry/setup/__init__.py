"""Providers from the ``OTEL_*`` settings, and what their exporters delivered."""
