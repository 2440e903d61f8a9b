"""Where scores go besides spans: the OpenMetrics endpoint, and the protocol of everybody's own sinks.

Owns: the scrape endpoint and its text format. Imports: telemetry and what lies below it.
"""
