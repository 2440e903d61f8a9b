"""Who writes the demo's answers: the offline answerer, or a real model behind an OpenAI-compatible server."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ragtrace.demo.answerer import answer
from ragtrace.errors import ConfigError, MissingExtra
from ragtrace.settings import shown_address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

OFFLINE_MODEL = "demo-extractive"
SYSTEM = (
    "Answer the question from the passages of the handbook alone, in one to three sentences. "
    "If they do not answer it, say that the handbook does not say."
)
_PASSAGE = re.compile(r"^\[\S+\] (.+)$", re.MULTILINE)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a writer gave back; tokens are None where nobody counted."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None


class Writer(Protocol):
    """Answers a rendered prompt; `model` and `provider` are the names that stand on spans."""

    model: str
    provider: str

    def write(self, system: str, user: str) -> Written:
        """Return the answer to a prompt."""
        ...


def rendered(question: str, passages: Sequence[tuple[str, str]]) -> str:
    r"""Return the user's part of the prompt: the passages by id, then the question.

    Example:
        >>> rendered("Where?", [("faq", "In Oslo.")])
        'Passages:\n\n[faq] In Oslo.\n\nQuestion: Where?'
    """
    shown = "\n\n".join(f"[{name}] {text}" for name, text in passages)
    return f"Passages:\n\n{shown}\n\nQuestion: {question}"


class OfflineWriter:
    """Answers with sentences of the passages in the prompt; equal prompts in equal order get equal answers.

    Args:
        seed: decides the wording.

    Example:
        >>> OfflineWriter(0).write("", rendered("Where is the lab?", [("faq", "The lab is in Oslo.")])).text
        'The lab is in Oslo.'
    """

    model = OFFLINE_MODEL
    provider = "ragtrace-demo"

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(f"wording:{seed}")

    def write(self, system: str, user: str) -> Written:  # noqa: ARG002 - a model reads it, this one obeys anyway
        """Answer from the passages that stand in the prompt."""
        asked = _QUESTION.findall(user)
        text = answer(asked[-1] if asked else "", _PASSAGE.findall(user), self._draw)
        return Written(text=text)


class ServerWriter:
    """Asks a model on an OpenAI-compatible server, one call an answer.

    Args:
        model: its name; None takes the first that the server lists.
        base_url: the server; None is OpenAI's own, or ``OPENAI_BASE_URL``.
        api_key: None for ``OPENAI_API_KEY``; a server without keys needs none.

    Raises:
        MissingExtra: the package openai is not installed.
        ConfigError: no key and no base URL, or the server lists no model.
    """

    provider = "openai"

    def __init__(self, model: str | None, *, base_url: str | None, api_key: str | None) -> None:
        if not base_url and not api_key:
            raise ConfigError("--model needs a key or a server: set OPENAI_API_KEY, or give --base-url URL")
        # A server without keys still gets a header; the client refuses to be made without a value for it.
        self._client = _openai().OpenAI(
            base_url=base_url, api_key=api_key or "none", timeout=_TIMEOUT_S, max_retries=1
        )
        self.model = model or self._first_model(shown_address(base_url or ""))

    def write(self, system: str, user: str) -> Written:
        """Ask the model; raises the client's own errors."""
        reply = self._client.chat.completions.create(
            model=self.model,
            temperature=0.0,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
        )
        usage = reply.usage
        return Written(
            text=(reply.choices[0].message.content or "").strip(),
            input_tokens=usage.prompt_tokens if usage else None,
            output_tokens=usage.completion_tokens if usage else None,
        )

    def _first_model(self, where: str) -> str:
        try:
            listed = list(self._client.models.list())
        except Exception as error:
            raise ConfigError(f"{where}: the server lists no models ({error}); give --model NAME") from error
        if not listed:
            raise ConfigError(f"{where}: the server lists no models; give --model NAME")
        return str(listed[0].id)


def _openai() -> ModuleType:
    try:
        import openai  # noqa: PLC0415 - takes 0.6 s and is wanted by few
    except ImportError as error:
        raise MissingExtra("openai", "openai") from error
    return openai
