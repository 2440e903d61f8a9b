"""A provider's refusal is abstained, in chains, graphs and blocks; a lost answer is not."""

from __future__ import annotations

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnablePassthrough

from integrations.langchain.tests.parts import PROMPT, Faq, shown
from ragtrace.metrics import answer_lacking

REFUSALS = {
    "refusal": AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}),
    "refusal block": AIMessage([{"type": "refusal", "refusal": "I cannot help with that."}]),
    "refusal behind many blocks": AIMessage(
        [{"type": "text", "text": ""}] * 1_000 + [{"type": "refusal", "refusal": "I cannot help with that."}]
    ),
    "content_filter": AIMessage("", response_metadata={"finish_reason": "content_filter"}),
    "content_filter in the middle": AIMessage("The lab", response_metadata={"finish_reason": "content_filter"}),
    "anthropic": AIMessage("", response_metadata={"stop_reason": "refusal"}),
    "gemini": AIMessage("", response_metadata={"finish_reason": "SAFETY"}),
    "gemini prompt": AIMessage("", response_metadata={"prompt_feedback": {"block_reason": 2}}),
    "bedrock": AIMessage("Blocked by policy.", response_metadata={"stopReason": "guardrail_intervened"}),
    "responses": AIMessage("", response_metadata={"incomplete_details": {"reason": "content_filter"}}),
}


def chain_of(message):
    model = GenericFakeChatModel(messages=iter([message]))
    return {"context": Faq() | shown, "question": RunnablePassthrough()} | PROMPT | model


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_chain_whose_provider_refused(kind, keeper, config):
    chain_of(REFUSALS[kind]).invoke("Where?", config)
    record = keeper.only.record
    assert (record.is_refused, answer_lacking(record)) == (True, "abstained")


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_chain_with_a_parser(kind, keeper, config):
    (chain_of(REFUSALS[kind]) | StrOutputParser()).invoke("Where?", config)
    assert answer_lacking(keeper.only.record) == "abstained"


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_block_of_the_applications_own(kind, keeper, recorder, config):
    with recorder.start(query="Where?"):
        chain_of(REFUSALS[kind]).invoke("Where?", config)
    assert answer_lacking(keeper.only.record) == "abstained"


def test_a_blank_answer_is_no_refusal(keeper, config):
    chain_of(AIMessage("")).invoke("Where?", config)
    assert (keeper.only.record.is_refused, answer_lacking(keeper.only.record)) == (False, "no_answer")


def test_an_answer_by_hand_that_never_came_beside_a_retriever(keeper, recorder, config, loses):
    """A workflow whose model is called without LangChain: the retriever alone is traced."""
    for answer in ("In Oslo.", None):
        with recorder.start(query="Where?", workflow="support") as run:
            Faq().invoke("Where?", config)
            if answer:
                run.answered(answer)
    assert [answer_lacking(run.record) for run in keeper.runs] == [None, "answer_missing"]


def test_a_retriever_alone_beside_chains_of_the_same_name_expects_no_answer(keeper, config):
    chain_of(AIMessage("In Oslo.")).invoke("Where?", config)
    Faq().invoke("Where?", config)
    assert [answer_lacking(run.record) for run in keeper.runs] == [None, "no_answer_expected"]
