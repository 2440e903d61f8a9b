"""Scoring of files: score, rescore, calibrate and compare."""
