"""Rates of the alerts in simulated worlds."""
