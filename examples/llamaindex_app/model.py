"""A model for LlamaIndex: of any OpenAI-compatible server, or with a script."""

from __future__ import annotations

import os
from typing import Any

from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback

SCRIPT = {  # words of the prompt: what the model says
    "standalone question": "How do I cut a dead branch?",
    "dead branch there": "A dead branch is cut at its collar, with a clean saw.",
    "When do I prune": "An apple tree is pruned from January to March. A gardener takes 80 euros for a tree.",
    "What grows in shade": "Ferns and hostas grow in shade.",
}


class Model(CustomLLM):
    """Answers prompts; without a name, from `SCRIPT`.

    LlamaIndex's own ``OpenAI`` and ``OpenAILike`` do the same, where their packages are installed.
    """

    name: str | None = None
    base_url: str | None = None

    @property
    def metadata(self) -> LLMMetadata:
        """Return the model's name."""
        return LLMMetadata(model_name=self.name or "scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, **_: Any) -> CompletionResponse:
        """Answer a prompt."""
        if self.name is None:
            return CompletionResponse(text=next(said for part, said in SCRIPT.items() if part in prompt))
        import openai  # noqa: PLC0415 - needed with --model alone

        client = openai.OpenAI(base_url=self.base_url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
        reply = client.chat.completions.create(model=self.name, messages=[{"role": "user", "content": prompt}])
        return CompletionResponse(text=reply.choices[0].message.content or "", raw=reply)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, **_: Any) -> CompletionResponseGen:
        """Answer a prompt in one piece."""
        said = self.complete(prompt).text
        return (CompletionResponse(text=said, delta=said) for _ in range(1))
