"""Pair scorers: an entailment model reads each sentence against each premise."""
