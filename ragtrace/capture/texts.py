"""Texts in place of passages: tool outputs and joined contexts that stand in the prompt of the answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from ragtrace.capture.attribution import answered_prompt, prompt_set
from ragtrace.capture.passage_search import found_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture.types import EndedRun
    from ragtrace.model import Passage

TextKind = Literal["tool_output", "context_text"]
_SHORTEST_CONTEXT_CHARS = 80  # behind a heading; less is mostly the question of a prompt without contexts
_HEADING = re.compile(
    r"\b(?:contexts?|documents?|passages?|sources?|excerpts?|snippets?|search results|knowledge base)\b"
    r"[^\n:>]{0,60}[:>]\s*\S",
    re.IGNORECASE,
)


def shown_texts(run: EndedRun, pool: Sequence[Passage], *, is_searched: bool) -> tuple[Passage, ...]:
    """Return the texts that the answer was made of, in the order in which they were reported.

    A text that shows a passage of the pool is the output of a tool that searched, and its passages count instead.
    In a run that searched, a joined context is made of its passages.
    """
    if not run.texts or not run.prompts:
        return ()
    texts = (text for text in run.texts if not (is_searched and _kind(text) == "context_text"))
    own = tuple(text for text in texts if not (pool and found_in(text.text, pool)))
    return prompt_set(run.prompts, run.steps, run.attributes.get("answer", ""), own) if own else ()


def count_unread(run: EndedRun) -> int:
    """Return how many contexts stood before the model of an answer, in a run in which no passage was found.

    They are tool outputs that stand in no prompt as they were returned, and a prompt that announces a context.
    """
    answer = run.attributes.get("answer")
    if not answer:
        return 0
    prompt = answered_prompt(run.prompts, run.steps, answer) if run.prompts else ""
    heading = _HEADING.search(prompt)
    is_announced = heading is not None and len(prompt) - heading.end() >= _SHORTEST_CONTEXT_CHARS
    return sum(_kind(text) == "tool_output" for text in run.texts) + is_announced


def _kind(text: Passage) -> object:
    return text.metadata.get("kind")
