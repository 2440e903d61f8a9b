"""Investigations of a fall: its time, its stage and its part of the traffic."""
