"""Destinations of scores besides spans: console, OpenMetrics, Phoenix, Langfuse, MLflow, webhooks and yours.

Owns: the scrape endpoint and its text format, and the outbox behind sinks that write to a network.
Imports: telemetry and the rooms below it.
"""
