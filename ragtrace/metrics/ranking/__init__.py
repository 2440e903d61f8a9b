"""Rank metrics over graded passages: P@K, AP@K, reciprocal rank, nDCG@K."""
