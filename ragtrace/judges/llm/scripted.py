"""A chat model with prepared replies, for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragtrace.errors import JudgeUnavailable
from ragtrace.judges.llm.chat import ChatReply

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One prompt that a `ScriptedChat` was given."""

    system: str
    user: str
    schema_name: str
    temperature: float


class ScriptedChat:
    """Gives prepared replies in order, and keeps the prompts it was given.

    A text is returned as it is, a mapping or list as JSON, an exception is raised. When they are used up the
    server counts as gone: JudgeUnavailable.

    Args:
        replies: the replies, in order.
        always: the reply when `replies` are used up.
        name: the model's name.
        input_tokens: tokens that each reply reports.
        output_tokens: the same for the output.

    Attributes:
        prompts: the calls so far.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.judge import LLMJudge
        >>> from ragtrace.model import RagRecord
        >>> chat = ScriptedChat([{"questions": [{"question": "Where?", "noncommittal": False}]}])
        >>> judge = LLMJudge(chat)
        >>> asyncio.run(judge.questions(RagRecord(id="1", answer="In Oslo."), 1)).questions[0].text
        'Where?'
        >>> chat.calls
        1
    """

    def __init__(
        self,
        replies: Iterable[object] = (),
        *,
        always: object = None,
        name: str = "scripted",
        input_tokens: int = 100,
        output_tokens: int = 10,
    ) -> None:
        self.name = name
        self.prompts: list[ScriptedCall] = []
        self._replies = list(replies)
        self._always = always
        self._prompt_tokens = input_tokens
        self._completion_tokens = output_tokens

    @property
    def calls(self) -> int:
        """Number of calls so far."""
        return len(self.prompts)

    async def complete(
        self,
        *,
        system: str,
        user: str,
        schema_name: str,
        schema: Mapping[str, object],  # noqa: ARG002 -- the replies are written already
        max_output_tokens: int,  # noqa: ARG002 -- the same
        temperature: float,
    ) -> ChatReply:
        """Return or raise the next reply."""
        self.prompts.append(
            ScriptedCall(system=system, user=user, schema_name=schema_name, temperature=temperature)
        )
        reply = self._replies.pop(0) if self._replies else self._always
        if reply is None:
            raise JudgeUnavailable(f"the script has no reply for call {self.calls}")
        if isinstance(reply, BaseException):
            raise reply
        return ChatReply(
            text=reply if isinstance(reply, str) else json.dumps(reply),
            input_tokens=self._prompt_tokens,
            output_tokens=self._completion_tokens,
        )

    def fingerprint(self) -> str:
        """Return the model's name."""
        return self.name

    async def aclose(self) -> None:
        """Do nothing."""
