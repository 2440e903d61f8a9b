"""Tool outputs that stand in the prompt of the answer, and contexts in a prompt that nobody reported."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragtrace.capture.prompt import found_in
from ragtrace.capture.prompt_set import answered_prompt, prompt_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture.run import Run
    from ragtrace.model import Passage

TOOL_OUTPUT = {"kind": "tool_output"}  # metadata of a passage that is the text of a tool
_SHORTEST_CONTEXT_CHARS = 80  # behind a heading; less is mostly the question of a prompt without contexts
_HEADING = re.compile(
    r"\b(?:contexts?|documents?|passages?|sources?|excerpts?|snippets?|search results|knowledge base)\b"
    r"[^\n:>]{0,60}[:>]\s*\S",
    re.IGNORECASE,
)


def shown_tool_outputs(run: Run, pool: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return the tool outputs that the answer was made of, in the order in which they were reported.

    A text that shows a passage of the pool is the output of a tool that searched, and its passages count instead.
    """
    outputs = tuple(run.tool_outputs.values())
    if not outputs or not run.prompts:
        return ()
    own = tuple(output for output in outputs if not (pool and found_in(output.text, pool)))
    return prompt_set(run.prompts, run.steps, run.facts.get("answer", ""), own) if own else ()


def count_unread(run: Run) -> int:
    """Return how many contexts stood before the model of an answer, in a run in which no passage was found.

    They are tool outputs that stand in no prompt as they were returned, and a prompt that announces a context.
    """
    answer = run.facts.get("answer")
    if not answer:
        return 0
    prompt = answered_prompt(run.prompts, run.steps, answer) if run.prompts else ""
    heading = _HEADING.search(prompt)
    is_announced = heading is not None and len(prompt) - heading.end() >= _SHORTEST_CONTEXT_CHARS
    return len(run.tool_outputs) + is_announced
