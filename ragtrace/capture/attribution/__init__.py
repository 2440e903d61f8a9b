"""Find the passages that stand in the prompts of a run."""

from ragtrace.capture.attribution.notation import letters, unescaped
from ragtrace.capture.attribution.passage_search import PassageFinder, found_in, place_of
from ragtrace.capture.attribution.prompts import (
    TextKind,
    answered_prompt,
    count_unread,
    prompt_set,
    shown_texts,
)

__all__ = [
    "PassageFinder",
    "TextKind",
    "answered_prompt",
    "count_unread",
    "found_in",
    "letters",
    "place_of",
    "prompt_set",
    "shown_texts",
    "unescaped",
]
