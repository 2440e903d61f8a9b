"""Caches of grades and nuggets, in memory or in a file."""
