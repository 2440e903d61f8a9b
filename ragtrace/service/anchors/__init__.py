"""Anchors of a service: their rounds, their state, and the falls that hurry a round."""
