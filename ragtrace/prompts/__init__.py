"""Judge prompts as files, and the fence around data.

Owns: every text that a judge model is told. Imports: errors alone.
"""
