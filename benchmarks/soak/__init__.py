"""A long run under faults of every kind: nothing grows, and every trace is accounted for."""
