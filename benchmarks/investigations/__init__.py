"""Worlds in which `ragtrace investigate` is tried: falls of a known cause, and months in which nothing fell."""
