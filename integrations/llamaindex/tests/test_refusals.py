"""A provider's refusal is abstained; an answer that is lost is not."""

from __future__ import annotations

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback

from integrations.llamaindex.tests.parts import Faq, Llm, engine
from ragtrace.metrics import answer_lacking
from ragtrace_llamaindex import instrument  # noqa: F401 - the fixture instruments

RAW = {
    "content_filter": {"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]},
    "refusal": {"choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "I cannot."}}]},
    "anthropic": {"stop_reason": "refusal"},
    "bedrock": {"stopReason": "guardrail_intervened"},
    "gemini": {"candidates": [{"finish_reason": "SAFETY"}]},
    "gemini converted": {"finish_reason": "FinishReason.RECITATION"},
    "responses": {"incomplete_details": {"reason": "content_filter"}},
}


class Refusing(Llm):
    raw: dict | None = None
    said: str = ""

    @llm_completion_callback()
    def complete(self, prompt, **kwargs):
        return CompletionResponse(text=self.said, raw=self.raw)

    @llm_chat_callback()
    def chat(self, messages, **kwargs):
        return ChatResponse(message=ChatMessage(role="assistant", content=self.said), raw=self.raw)


@pytest.mark.parametrize("kind", RAW)
@pytest.mark.parametrize("said", ["", "The lab"])
def test_a_query_engine_whose_provider_refused(kind, said, keeper):
    engine(llm=Refusing(raw=RAW[kind], said=said)).query("Where?")
    record = keeper.only.record
    assert (record.is_refused, answer_lacking(record)) == (True, "abstained")


@pytest.mark.parametrize("kind", RAW)
def test_a_chat_engine_whose_provider_refused(kind, keeper):
    chat = ContextChatEngine.from_defaults(retriever=Faq(), llm=Refusing(raw=RAW[kind]))
    chat.chat("Where?")
    assert answer_lacking(keeper.only.record) == "abstained"


@pytest.mark.parametrize("kind", RAW)
def test_a_block_of_the_applications_own(kind, keeper, recorder):
    with recorder.start(query="Where?"):
        engine(llm=Refusing(raw=RAW[kind])).query("Where?")
    assert answer_lacking(keeper.only.record) == "abstained"


def test_a_blank_reply_is_no_refusal(keeper):
    engine(llm=Refusing(raw={"choices": [{"finish_reason": "stop"}]})).query("Where?")
    assert (keeper.only.record.is_refused, answer_lacking(keeper.only.record)) == (False, "no_answer")


def test_an_answer_by_hand_that_never_came_beside_a_retriever(keeper, recorder, loses):
    for answer in ("In Oslo.", None):
        with recorder.start(query="Where?", workflow="support") as run:
            Faq().retrieve("Where?")
            if answer:
                run.answered(answer)
    assert [answer_lacking(run.record) for run in keeper.runs] == [None, "answer_missing"]
