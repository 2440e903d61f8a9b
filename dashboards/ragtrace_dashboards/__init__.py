"""Boards, recording rules and alerts for Grafana and Prometheus, generated from one configuration object."""
