"""Instruments of captured and scored runs, and the gauges that are read when metrics are collected."""
