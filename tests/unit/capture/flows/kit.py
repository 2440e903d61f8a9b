"""Prompt flows: fourteen runs of one workflow each, as the rule of unread text is given them."""

from __future__ import annotations

from typing import NamedTuple


class Prompt(NamedTuple):
    """One prompt of a run: its messages but those of tools and of models, and what the model replied."""

    texts: tuple[str, ...]
    reply: str
    step: str = "desk/answer"


class Run(NamedTuple):
    """One run: what events explain, the prompts that the answer goes back to, and the values of its steps.

    `explained` is the question, the history, passages with their metadata, arguments and results of tools. Replies of
    the prompts before a prompt explain it too.
    """

    explained: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    held: tuple[tuple[str, str], ...] = ()


class Flow(NamedTuple):
    """Fourteen runs of one kind."""

    kind: str
    runs: tuple[Run, ...]
