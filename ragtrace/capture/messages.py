"""The turns of a conversation: what was said before a question, and a rendered prompt as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.model import Message

_SPOKEN = {"user", "assistant"}


def spoken(turns: Iterable[Message]) -> tuple[Message, ...]:
    """Return the turns of user and assistant that say something, or ask for a tool.

    Example:
        >>> from ragtrace.model import Message
        >>> [turn.content for turn in spoken([Message(role="system", content="Be brief.")])]
        []
    """
    return tuple(turn for turn in turns if turn.role in _SPOKEN and (turn.content or turn.calls))


def before_question(turns: Sequence[Message]) -> tuple[Message, ...]:
    """Return what was said before the last user turn; system messages are not among it.

    Example:
        >>> from ragtrace.model import Message
        >>> [turn.content for turn in before_question([Message(role="user", content=text) for text in ("Hi", "?")])]
        ['Hi']
    """
    last = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=0)
    return spoken(turns[:last])


def prompt_text(messages: Iterable[Message]) -> str:
    r"""Return a rendered prompt as one text, message after message, with the calls of tools behind each.

    Example:
        >>> from ragtrace.model import Message
        >>> prompt_text([Message(role="system", content="Be brief."), Message(role="user", content="Where?")])
        'Be brief.\nWhere?'
    """
    return "\n".join([message.shown for message in messages])
