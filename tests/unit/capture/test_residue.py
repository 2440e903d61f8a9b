"""Text of prompts that nothing explains: the fixed flows, the rule's edges, what is kept, and what it costs."""

from __future__ import annotations

from ragtrace.capture.residue import Explained, Memory, Prompted, Unread, unread
from tests.unit.capture.flows.kit import Flow, Run


def told(run: Run, memory: Memory, *, with_reply: bool = False) -> list[Unread]:
    explained = Explained(run.explained)
    for prompt in run.prompts:
        explained.add_reply(prompt.reply)
    prompts = [
        Prompted(one.step, one.texts, replies, one.reply if with_reply else "")
        for replies, one in enumerate(run.prompts)
    ]
    return unread(prompts, explained, run.held, memory)


def reports(flow: Flow, *, with_reply: bool = False) -> dict[int, list[Unread]]:
    """Return what is reported of a flow's runs, by number from 1."""
    memory = Memory()
    found = {number: told(run, memory, with_reply=with_reply) for number, run in enumerate(flow.runs, 1)}
    return {number: some for number, some in found.items() if some}
