"""Canary rounds: pairs of clean and poisoned records that show how far a judge obeys them."""
