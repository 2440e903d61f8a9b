"""Callbacks that note for `floor` what the one application of LangChain does."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from benchmarks.overhead.floor import Floor, Run, now


class FloorHandler(BaseCallbackHandler):
    """Notes each step of a run; inline, as ours is."""

    run_inline = True

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.steps: dict[int, tuple[Run, str, int]] = {}  # with the name of a step and when it began

    def _begin(self, run_id: Any, parent: Any, name: str) -> Run:
        run = self.steps[parent.int][0] if parent is not None else Run()
        self.steps[run_id.int] = run, name, now()
        return run

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: Any, parent_run_id: Any = None, name: str = "", **_: Any
    ) -> None:
        self._begin(run_id, parent_run_id, name)

    def on_chain_end(self, outputs: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any) -> None:
        run, name, began = self.steps.pop(run_id.int)
        if name == "rerank":
            run.choice, run.chosen = (began, now()), _rows(outputs)
        elif parent_run_id is None:
            self.floor.take(run)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        self._begin(run_id, parent_run_id, "retriever").question = query

    def on_retriever_end(self, documents: Any, *, run_id: Any, **_: Any) -> None:
        run, _name, began = self.steps.pop(run_id.int)
        run.search, run.found = (began, now()), _rows(documents)

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: Any, parent_run_id: Any = None, **_: Any
    ) -> None:
        self._begin(run_id, parent_run_id, "model").prompt = messages[0][0].content

    def on_llm_new_token(self, token: Any, *, run_id: Any, **_: Any) -> None:
        run = self.steps[run_id.int][0]
        run.first_chunk = run.first_chunk or now()

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        run, _name, began = self.steps.pop(run_id.int)
        message = response.generations[0][0].message
        run.model, run.reply = (began, now()), message.content
        if message.usage_metadata:
            run.tokens = message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]

    def _failed(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
        self.steps.pop(run_id.int, None)

    on_chain_error = on_retriever_error = on_llm_error = _failed


def _rows(documents: Any) -> list[tuple[str, str, float]]:
    return [(one.id, one.page_content, one.metadata["score"]) for one in documents]
