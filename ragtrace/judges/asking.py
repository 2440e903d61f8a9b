"""One evaluation by a language model: its calls, what they took, and the one repair it is allowed."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ragtrace.errors import JudgeError, JudgeIncomplete, JudgeInvalidOutput
from ragtrace.judges.base import Spent
from ragtrace.judges.replies import FormT, read
from ragtrace.prompts.fence import fenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.judges.chat import ChatModel
    from ragtrace.prompts.loader import Prompt


def added(one: Spent, other: Spent) -> Spent:
    """Return the sum of two.

    Example:
        >>> added(Spent(llm_calls=1, prompt_tokens=9), Spent(llm_calls=1)).llm_calls
        2
    """
    return Spent(
        llm_calls=one.llm_calls + other.llm_calls,
        embed_calls=one.embed_calls + other.embed_calls,
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        completion_tokens=one.completion_tokens + other.completion_tokens,
    )


class Asking:
    """Asks one prompt of one model, and keeps count. One object an evaluation; not shared between coroutines."""

    def __init__(
        self, model: ChatModel, prompt: Prompt, *, max_output_tokens: int, temperature: float = 0.0
    ) -> None:
        self.spent = Spent()
        self._model = model
        self._prompt = prompt
        self._max_output_tokens = max_output_tokens
        self._temperature = temperature
        self._has_repaired = False

    @contextmanager
    def charging(self) -> Iterator[None]:
        """Write what was spent so far onto a judge error that leaves the block, as its attribute ``spent``."""
        try:
            yield
        except JudgeError as error:
            vars(error)["spent"] = self.spent
            raise

    async def ask(self, data: Mapping[str, Any], form: type[FormT], extra: str = "") -> FormT:
        """Return the reply to the prompt over some data; a reply of another form is repaired once.

        Args:
            data: what goes inside the fence.
            form: the form of the reply.
            extra: one sentence of ours after the reminder; never holds data.

        Raises:
            JudgeError: of the call, or JudgeInvalidOutput when the repair was of another form too.
        """
        try:
            return read(form, await self._call(data, extra))
        except JudgeInvalidOutput as error:
            if self._has_repaired:
                raise
            fault = str(error)
        self._has_repaired = True
        return read(form, await self._call(data, f"{extra} {self._correction(fault)}".strip()))

    async def mend(self, data: Mapping[str, Any], form: type[FormT], want: str) -> FormT:
        """Return the reply to the one repair, which asks only for what `want` names.

        Raises:
            JudgeIncomplete: the repair was used up, so that verdicts stay missing.
        """
        if self._has_repaired:
            raise JudgeIncomplete(f"after the repair the judge still owes: {want}")
        self._has_repaired = True
        return read(form, await self._call(data, f"An earlier reply was incomplete. {want}"))

    def _correction(self, fault: str) -> str:
        schema = json.dumps(self._prompt.schema, separators=(",", ":"))
        return f"An earlier reply was not of the asked form ({fault}). Follow this JSON schema: {schema}"

    async def _call(self, data: Mapping[str, Any], extra: str) -> str:
        prompt = self._prompt
        tail = f"{prompt.reminder} {extra}".strip()
        try:
            reply = await self._model.complete(
                system=prompt.system,
                user=f"{prompt.task}\n{fenced(data)}\n{tail}",
                schema_name=prompt.id,
                schema=prompt.schema,
                max_output_tokens=self._max_output_tokens,
                temperature=self._temperature,
            )
        except JudgeError as error:
            self.spent = added(self.spent, vars(error).pop("spent", Spent(llm_calls=1)))
            raise
        except Exception as error:
            self.spent = added(self.spent, Spent(llm_calls=1))
            raise JudgeError(f"the chat model failed with {type(error).__name__}") from error
        tokens = Spent(llm_calls=1, prompt_tokens=reply.prompt_tokens, completion_tokens=reply.completion_tokens)
        self.spent = added(self.spent, tokens)
        return reply.text
