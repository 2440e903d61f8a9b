"""Readers, writers and output that several commands share."""
