"""Plots and pages for people, from reports that are already computed.

Owns: the looks of a picture. Imports: scoring's reports, stats; matplotlib (extra ``plots``) when one is drawn.
"""
