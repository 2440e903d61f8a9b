"""One evaluation by a language model, with its one repair."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragtrace.errors import (
    JudgeContextsTruncated,
    JudgeError,
    JudgeIncomplete,
    JudgeInvalidOutput,
    JudgePromptTooLong,
)
from ragtrace.judges.llm.replies import FormT, read
from ragtrace.model import JudgeUsage
from ragtrace.prompts.fence import fenced
from ragtrace.prompts.loader import load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from ragtrace.judges.llm.chat import ChatModel
    from ragtrace.prompts.loader import Prompt


_PASSAGES = frozenset({"contexts", "passages"})  # names of data that grow with what was retrieved
_LEAST_CUT_CHARS, _LEAST_TOKENS, _MOST_TOKEN_CHARS = 20_000, 512, 10


@dataclass(slots=True)
class _UsageSum:
    usage: JudgeUsage = field(default_factory=JudgeUsage)
    has_repaired: bool = False


class JudgeSession:
    """Asks prompts of one model, and sums the usage.

    One object serves one evaluation, and coroutines do not share it. `over` returns the same evaluation with its
    next prompt, with one sum and one repair for all. As a context manager it writes the usage onto a judge
    error.

    Example:
        >>> import asyncio
        >>> from ragtrace.judges.llm.replies import QuestionsReply
        >>> from ragtrace.judges.llm.scripted import ScriptedChat
        >>> from ragtrace.prompts.loader import load
        >>> chat = ScriptedChat(always={"questions": [{"question": "Where?", "noncommittal": False}]})
        >>> session = JudgeSession(chat, load("questions"), max_output_tokens=500)
        >>> asyncio.run(session.ask({"answer": "In Oslo."}, QuestionsReply)).questions[0].question
        'Where?'
        >>> session.over("audit").usage.llm_calls
        1
    """

    def __init__(self, model: ChatModel, prompt: Prompt, *, max_output_tokens: int) -> None:
        self._model = model
        self._prompt = prompt
        self._max_output_tokens = max_output_tokens
        self._sum = _UsageSum()

    @property
    def usage(self) -> JudgeUsage:
        """Calls and tokens of the evaluation so far."""
        return self._sum.usage

    @property
    def has_repaired(self) -> bool:
        """True once the one repair is used up."""
        return self._sum.has_repaired

    def without_repair(self) -> JudgeSession:
        """Use up the repair. An evaluation that continues another has none left."""
        self._sum.has_repaired = True
        return self

    def over(self, prompt_id: str) -> JudgeSession:
        """Return the same evaluation with another prompt."""
        other = JudgeSession(self._model, load(prompt_id), max_output_tokens=self._max_output_tokens)
        other._sum = self._sum
        return other

    def __enter__(self) -> Self:
        """Begin a block whose judge errors carry the usage so far."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Write the usage so far onto a judge error."""
        if isinstance(error, JudgeError):
            error.usage = self.usage

    async def ask(self, data: Mapping[str, object], form: type[FormT], extra: str = "") -> FormT:
        """Return the reply to the prompt over some data.

        A reply of another form is repaired once.

        Args:
            data: the content of the fence.
            form: the form of the reply.
            extra: one sentence of ours after the reminder; never holds data.

        Raises:
            JudgeError: of the call, or JudgeInvalidOutput when the repair was of another form too.
        """
        try:
            return read(form, await self._call(data, extra))
        except JudgeInvalidOutput as error:
            if self._sum.has_repaired:
                raise
            fault = str(error)
        self._sum.has_repaired = True
        return read(form, await self._call(data, f"{extra} {self._correction(fault)}".strip()))

    async def mend(self, data: Mapping[str, object], form: type[FormT], want: str) -> FormT:
        """Ask only for the parts that `want` names, as the one repair.

        Raises:
            JudgeIncomplete: the repair was used up, so that verdicts stay missing.
        """
        if self._sum.has_repaired:
            raise JudgeIncomplete(f"after the repair the judge still owes: {want}")
        self._sum.has_repaired = True
        return read(form, await self._call(data, f"An earlier reply was incomplete. {want}"))

    def _correction(self, fault: str) -> str:
        schema = json.dumps(self._prompt.schema, separators=(",", ":"))
        return f"An earlier reply was not of the asked form ({fault}). Follow this JSON schema: {schema}"

    async def _call(self, data: Mapping[str, object], extra: str) -> str:
        prompt = self._prompt
        tail = f"{prompt.reminder} {extra}".strip()
        user = f"{prompt.task}\n{fenced(data)}\n{tail}"
        try:
            reply = await self._model.complete(
                system=prompt.system,
                user=user,
                schema_name=prompt.id,
                schema=prompt.schema,
                max_output_tokens=self._max_output_tokens,
                temperature=prompt.temperature,
            )
        except JudgeError as error:
            self._sum.usage += error.usage or JudgeUsage(llm_calls=1)
            if isinstance(error, JudgePromptTooLong) and not _PASSAGES.isdisjoint(data):
                raise JudgeContextsTruncated(str(error)) from error
            raise
        except Exception as error:
            self._sum.usage += JudgeUsage(llm_calls=1)
            raise JudgeError(f"the chat model failed with {type(error).__name__}") from error
        tokens = JudgeUsage(llm_calls=1, input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
        self._sum.usage += tokens
        if not _PASSAGES.isdisjoint(data) and _is_cut(user, reply.input_tokens):
            raise JudgeContextsTruncated(f"the server read {reply.input_tokens} tokens of {len(user)} characters")
        return reply.text


def _is_cut(prompt: str, tokens: int) -> bool:
    """Tell whether a server has read far fewer tokens than a prompt has, as one does that cuts without a word.

    Ollama cuts at its window, 4,096 tokens by default. No tokenizer makes tokens of 10 letters on average.
    """
    if len(prompt) < _LEAST_CUT_CHARS or tokens < _LEAST_TOKENS:  # fewer tokens are no honest count
        return False
    return sum(map(len, prompt.split())) > _MOST_TOKEN_CHARS * tokens
