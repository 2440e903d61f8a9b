"""A judge that asks a language model: prompts, replies and their checks."""
