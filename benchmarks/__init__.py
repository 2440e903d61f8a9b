"""Benchmarks: ratios against a bare run or a peer in the same process run; never a timed test."""
