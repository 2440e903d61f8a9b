"""Answers that are no plain text: pieces of content blocks, structured output."""

from __future__ import annotations

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from integrations.langchain.tests.parts import PROMPT, step
from ragtrace.capture import Generation

ASKED = {"context": "c", "question": "Where?"}


class Blocks(BaseChatModel):
    """Streams content blocks, as the models of several providers do."""

    breaks: bool = False

    @property
    def _llm_type(self):
        return "blocks"

    def _generate(self, *args, **kwargs):
        raise NotImplementedError

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for piece in ("In ", "Oslo ", "of ", "Norway"):
            if self.breaks and piece == "Norway":
                raise TimeoutError
            block = {"type": "text", "text": piece, "index": 0}
            yield ChatGenerationChunk(message=AIMessageChunk(content=[block]))


class TestPiecesOfBlocks:
    def test_read_to_the_end(self, keeper, config):
        list((PROMPT | Blocks()).stream(ASKED, config))
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("answered", "In Oslo of Norway")

    def test_abandoned(self, keeper, config):
        stream = (PROMPT | Blocks()).stream(ASKED, config)
        assert [next(stream).content for _ in range(3)]
        stream.close()
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "In Oslo of ")

    def test_leaked(self, keeper, recorder, config):
        stream = (PROMPT | Blocks()).stream(ASKED, config)
        assert [next(stream).content for _ in range(3)]
        recorder.sweep(now=1e12)
        assert (keeper.only.record.outcome, keeper.only.record.answer) == ("partial", "In Oslo of ")
        stream.close()

    def test_broken(self, keeper, config):
        with pytest.raises(TimeoutError):
            list((PROMPT | Blocks(breaks=True)).stream(ASKED, config))
        assert keeper.only.record.outcome == "error"
        assert step(keeper.only, Generation).outputs[0].content == "In Oslo of "
