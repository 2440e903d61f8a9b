"""Judges that read an answer against its contexts.

Owns: tasks, verdicts and their checks. Imports: prompts, model, errors. Made by `ragtrace.judges.registry`.
"""
