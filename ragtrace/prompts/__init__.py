"""Judge prompts, one file each, and the fence that keeps data from posing as instructions.

Owns: every text that a judge model is told. Imports: errors alone.
"""
