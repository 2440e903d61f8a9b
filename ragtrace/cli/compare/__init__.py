"""``ragtrace compare``: scored files side by side."""
