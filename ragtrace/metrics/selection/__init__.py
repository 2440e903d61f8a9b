"""Set metrics over graded passages: RA-nWG, PROC, Precision4+, Harm."""
