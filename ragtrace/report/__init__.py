"""Plots and pages for people, from reports that are already computed.

Owns: what a picture looks like. Imports: scoring's reports, stats; matplotlib (extra ``plots``) when one is drawn.
"""
