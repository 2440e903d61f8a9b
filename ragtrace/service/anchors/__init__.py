"""Anchors of a service: their rounds, their state, and the culprits that they name."""
