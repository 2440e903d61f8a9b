"""Writers of the demo's answers: an offline answerer, or a model behind an OpenAI-compatible server."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Protocol

from langchain_core.messages import AIMessage

from ragtrace.address import shown_address
from ragtrace.demo.handbook import coverage, questions
from ragtrace.errors import ConfigError, MissingExtra
from ragtrace.judges.offline.words import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

OFFLINE_MODEL = "demo-extractive"
REFUSAL = "I could not find an answer to that in the handbook."
SYSTEM = (
    "Answer the question from the passages of the handbook alone, in one to three sentences. "
    "If they do not answer it, say that the handbook does not say."
)
_TIMEOUT_S = 60.0
_ANSWERS = 4  # the least grade of a passage that answers the question
_MOST_SENTENCES = 3
_LEAST_MATCH = 0.32  # share of the question's weight; a sentence below it answers something else
_NEAR_BEST = 0.8
_REWORDED_SHARE = 0.8
# A model that paraphrases would write these; a word judge sees some support lost, as with real answers.
_WORDINGS = {
    "absent": "missing", "although": "even though", "because": "since", "begins": "starts", "carries": "bears",
    "chosen": "picked", "computed": "calculated", "contains": "includes", "counted": "tallied",
    "crosses": "exceeds", "ends": "finishes", "evidence": "proof", "gets": "receives", "holds": "contains",
    "kept": "retained", "largest": "biggest", "needs": "requires", "relevant": "pertinent", "reported": "noted",
    "says": "states", "sends": "transmits", "share": "fraction", "shows": "reveals", "small": "little",
    "therefore": "thus", "used": "employed", "uses": "employs", "whole": "entire", "worst": "poorest",
}  # fmt: skip
_OPENINGS = ("In short: ", "Briefly: ", *[""] * 10)
_WORD = re.compile(r"[A-Za-z]+")
_PASSAGE = re.compile(r"^\[(\S+)\] (.+)$", re.MULTILINE)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)


class Writer(Protocol):
    """Answers a prompt; `model` and `provider` are the names that stand on spans."""

    model: str
    provider: str

    def write(self, system: str, user: str) -> AIMessage:
        """Return the answer to a prompt, with its tokens where they were counted."""
        ...


def render_prompt(question: str, passages: Sequence[tuple[str, str]]) -> str:
    r"""Return the user's part of the prompt: the passages by id, then the question.

    Example:
        >>> render_prompt("Where?", [("faq", "In Oslo.")])
        'Passages:\n\n[faq] In Oslo.\n\nQuestion: Where?'
    """
    shown = "\n\n".join(f"[{name}] {text}" for name, text in passages)
    return f"Passages:\n\n{shown}\n\nQuestion: {question}"


def has_answer(user: str) -> bool:
    """Return whether a prompt holds a passage that answers its question: one of grade 4 or 5.

    Example:
        >>> has_answer(render_prompt("Where?", [("faq", "In Oslo.")]))
        False
    """
    asked, passages = _read_prompt(user)
    grades = next((question.grades for question in questions() if question.query == asked), {})
    return any(grades.get(name, 1) >= _ANSWERS for name in passages)


def _read_prompt(user: str) -> tuple[str, dict[str, str]]:
    """Return the question of a prompt, and its passages by id."""
    return (_QUESTION.findall(user) or [""])[-1], dict(_PASSAGE.findall(user))


class OfflineWriter:
    """Answers with the passages' sentences that match the question, lightly reworded.

    Equal prompts in equal order get equal answers.

    Args:
        seed: decides the wording.

    Example:
        >>> OfflineWriter(0).write("", render_prompt("Where is the lab?", [("faq", "The lab is in Oslo.")])).content
        'The lab is in Oslo.'
    """

    model = OFFLINE_MODEL
    provider = "ragtrace-demo"

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(f"wording:{seed}")

    def write(self, system: str, user: str) -> AIMessage:  # noqa: ARG002 - a model reads it, this one obeys anyway
        """Answer from the passages in the prompt, or say that they do not answer the question."""
        question, passages = _read_prompt(user)
        chosen = best_sentences(question, list(passages.values()))
        if not chosen:
            return AIMessage(REFUSAL)
        opening = self._draw.choice(_OPENINGS)
        return AIMessage(opening + " ".join(_WORD.sub(self._reword, sentence) for sentence in chosen))

    def _reword(self, found: re.Match[str]) -> str:
        other = _WORDINGS.get(found.group())
        return other if other is not None and self._draw.random() < _REWORDED_SHARE else found.group()


def best_sentences(question: str, contexts: Sequence[str]) -> list[str]:
    """Return the sentences that match a question best, in their order; empty when none matches.

    Example:
        >>> best_sentences("Where is the moon?", ["Lunch is at noon."])
        []
    """
    scored: list[tuple[float, int, str]] = []
    for rank, context in enumerate(contexts):
        around = coverage(question, context)
        for place, sentence in enumerate(sentences(context)):
            match = coverage(question, sentence) + around - 0.15 * rank - 0.03 * place
            scored.append((match / 2.0, len(scored), sentence))
    best = sorted(scored, key=lambda item: (-item[0], item[1]))[:_MOST_SENTENCES]
    if not best or best[0][0] < _LEAST_MATCH:
        return []
    kept = [item for item in best if item[0] >= _NEAR_BEST * best[0][0]]
    return [sentence for _, _, sentence in sorted(kept, key=lambda item: item[1])]


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
        try:
            import openai  # noqa: PLC0415 - takes 0.6 s and is wanted by few
        except ImportError as error:
            raise MissingExtra("openai", "openai") from error
        # The client refuses to be made without a key, also for a server that needs none.
        self._client = openai.OpenAI(
            base_url=base_url, api_key=api_key or "none", timeout=_TIMEOUT_S, max_retries=1
        )
        self.model = model or self._first_model(shown_address(base_url or ""), api_key)

    def write(self, system: str, user: str) -> AIMessage:
        """Ask the model; raises the client's own errors."""
        reply = self._client.chat.completions.create(
            model=self.model,
            temperature=0.0,
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
        )
        message = AIMessage((reply.choices[0].message.content or "").strip())
        if reply.usage is not None:
            message.usage_metadata = {
                "input_tokens": reply.usage.prompt_tokens,
                "output_tokens": reply.usage.completion_tokens,
                "total_tokens": reply.usage.total_tokens,
            }
        return message

    def _first_model(self, where: str, api_key: str | None) -> str:
        names, fault = [], ""
        try:
            names = [model.id for model in self._client.models.list()]
        except Exception as error:  # holds the request, and so the key; ours is not chained to it
            fault = f" ({str(error).replace(api_key or '***', '***')})"
        if not names:
            raise ConfigError(f"{where}: the server lists no models{fault}; give --model NAME")
        return names[0]
