"""The offline judge of English texts."""
