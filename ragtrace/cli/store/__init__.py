"""Commands that work with a store."""
