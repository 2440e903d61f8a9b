"""Judges: who reads an answer against its contexts, offline or by a language model.

Owns: tasks, verdicts and their checks. Imports: prompts, model, errors. Made by `ragtrace.judges.registry`.
"""
