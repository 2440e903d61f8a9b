"""A chat model with a script, which calls the tool as a real one does."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

SCRIPT = {  # what stands in the last message: what the model says
    "Say this in the words of a manual:": "How many years is the guarantee on a lamp?",
    "help? Say yes or no.\nThe guarantee": "Yes.",
    "help? Say yes or no.\nThe workshop": "Yes.",
    "help? Say yes or no.": "No.",
    "The guarantee on a lamp is two years.": "The guarantee on a lamp is two years.",
    "The workshop in Bergen": "The workshop in Bergen repairs lamps. They ask for a deposit of 40 euros.",
    "": "I do not know.",
}


class ScriptedModel(BaseChatModel):
    """Answers from `SCRIPT`, and calls a tool that it was given where a search is asked for."""

    has_tools: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: object, **_: object) -> ScriptedModel:  # noqa: ARG002 - LangChain's signature
        """Return the model that calls tools."""
        return ScriptedModel(has_tools=True)

    def _generate(self, messages: list[BaseMessage], *_: object, **__: Any) -> ChatResult:
        asked = str(messages[-1].content)
        message = AIMessage(next(said for part, said in SCRIPT.items() if part in asked))
        if self.has_tools:
            query = asked.partition(": ")[2]
            message = AIMessage(
                "", tool_calls=[{"name": "search", "args": {"query": query}, "id": f"call-{len(messages)}"}]
            )
        return ChatResult(generations=[ChatGeneration(message=message)])
