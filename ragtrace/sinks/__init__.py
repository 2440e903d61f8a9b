"""Destinations of scores besides spans: console, OpenMetrics endpoint, Phoenix and your own sinks.

Owns: the scrape endpoint and its text format, and the outbox behind sinks that write to a network.
Imports: telemetry and the rooms below it.
"""
