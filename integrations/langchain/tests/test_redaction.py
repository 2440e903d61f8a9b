"""Texts that `redact` makes alike, longer or shorter: passages, choices and answers are those that were there."""

from __future__ import annotations

import re
from zlib import crc32

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from integrations.langchain.tests.parts import PROMPT, chat, lcel, shown
from integrations.langchain.tests.test_hangups import FORMS, closed, dropped, read
from ragtrace.capture import Recorder
from ragtrace_langchain import RagtraceHandler
from tests.kept import ANSWER, Keeper, Waiting, ids


def no_digits(text):
    return re.sub(r"\d", "#", text)


def hashed(text):
    """Return a text with each word hashed: another length, and no beginning of a word is that of its hash."""
    return re.sub(r"\w+", lambda word: f"{crc32(word[0].encode()):x}", text)


def letters_gone(text):
    return re.sub(r"\w", "#", text)


def asked(chain, redact, question="Where?", keeper=None):
    keeper = keeper or Keeper()
    chain.invoke(question, {"callbacks": [RagtraceHandler(Recorder(keeper, redact=redact))]})
    return keeper


class Rooms(BaseRetriever):
    """Six passages without ids, which differ in a number."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=f"Room {i} is on floor {i}. It opens at 8.") for i in range(6)]


CHOICES = {
    "filter": lambda found: [found[4], found[1]],
    "anew": lambda found: [Document(page_content=found[i].page_content) for i in (4, 1)],
    "rescored": lambda found: [
        Document(page_content=found[i].page_content, metadata={"relevance_score": 0.9 - i / 10}) for i in (4, 1)
    ],
}


@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
def test_passages_without_ids_that_differ_in_what_is_redacted(choose):
    keeper = asked(lcel(Rooms(), choose), no_digits)
    found, chosen = ids(keeper.only, "retrieved"), ids(keeper.only, "reranked")
    assert len(set(found)) == 6
    assert chosen == [found[4], found[1]]
    assert [passage.rank for passage in keeper.only.record.pool("reranked")] == [1, 2]
    assert set(keeper.only.prompt_ids) == set(chosen)


def test_they_are_the_same_passages_in_two_searches():
    def search(question):
        return [*Rooms().invoke(question), *Rooms().invoke(question)[:2]]

    keeper = asked(RunnableLambda(search) | shown | chat(), no_digits)
    assert len(ids(keeper.only, "retrieved")) == 6


def test_an_id_says_nothing_of_the_text_and_no_original_is_kept():
    keeper = Waiting()
    asked(lcel(Rooms(), CHOICES["anew"]), no_digits, keeper=keeper)
    keeper.process()
    assert all(name.startswith("salted:") for name in ids(keeper.only, "retrieved"))
    assert "Room 4" not in repr(keeper.only)


def test_ids_are_hashes_of_the_content_where_nothing_is_redacted():
    keeper = asked(lcel(Rooms(), CHOICES["anew"]), None)
    assert all(name.startswith("sha256:") for name in ids(keeper.only, "retrieved"))


def test_results_of_a_search_that_are_no_documents():
    def search_docs(_question):
        return [{"text": f"Room {i} is free today.", "source": "plan"} for i in range(4)]

    def best(hits):
        return hits[2:0:-1]

    def written(hits):
        return "\n".join(one["text"] for one in hits)

    keeper = asked(RunnableLambda(search_docs) | best | written | chat(), no_digits)
    found = ids(keeper.only, "retrieved")
    assert len(set(found)) == 4
    assert ids(keeper.only, "reranked") == [found[2], found[1]]


def test_texts_of_two_tools():
    @tool
    def measure(hall: str) -> str:
        """Measure the temperature."""
        return f"It is {len(hall)} degrees warm in the shade."

    def look(question):
        return "\n".join(measure.invoke({"hall": hall}) for hall in ("one", "three"))

    keeper = asked(RunnableLambda(look) | chat(), no_digits)
    assert [passage.text for passage in keeper.only.record.contexts] == ["It is # degrees warm in the shade."] * 2


def test_an_extract_finds_its_passage():
    def search(_question):
        return [
            Document(page_content="Room 1 is blue and quiet. It opens at 8 in the morning."),
            Document(page_content="Room 2 is blue and quiet. The key is at the front desk."),
        ]

    def extract(found):
        return [Document(page_content="The key is at the front desk.")]

    keeper = asked(RunnableLambda(search) | extract | shown | chat(), no_digits)
    found = ids(keeper.only, "retrieved")
    assert len(set(found)) == 2
    assert ids(keeper.only, "reranked") == [found[1]]


def test_pieces_of_the_same_beginning_in_the_order_of_the_prompt():
    def given(question):
        found = Rooms().invoke(question)
        return {"context": shown([found[5], found[3]]), "question": question}

    keeper = asked(RunnableLambda(given) | PROMPT | chat(), no_digits)
    assert len(set(ids(keeper.only, "retrieved"))) == 6


@pytest.mark.parametrize("number", [1, 6, len(ANSWER) - 1])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("leave", [closed, dropped])
def test_a_stream_that_is_left_has_its_last_piece_whatever_its_length_is(form, number, leave):
    def left(redact):
        keeper = Keeper()
        config = {"callbacks": [RagtraceHandler(Recorder(keeper, redact=redact))]}
        stream = FORMS[form](chat()).stream({"question": "Where?"}, config)
        read(stream, number)
        held = [stream]
        del stream
        leave(held.pop())
        return keeper.only.record

    plain, record = left(None), left(hashed)
    assert (record.outcome, plain.outcome) == ("partial", "partial")
    assert record.answer == hashed(hashed(plain.answer))  # an event's texts are redacted, and what is read of them


BLOCKS = {
    "text": [{"type": "text", "text": "Where is the lab?"}],
    "input_text": [{"type": "input_text", "text": "Where is the lab?"}],
}


@pytest.mark.parametrize("blocks", BLOCKS.values(), ids=BLOCKS)
def test_types_of_blocks_are_no_texts(blocks):
    keeper = Keeper()
    config = {"callbacks": [RagtraceHandler(Recorder(keeper, redact=letters_gone))]}
    chat().invoke([HumanMessage(blocks)], config)
    assert keeper.only.record.query == "##### ## ### ###?"


FORMS_OF_MESSAGES = {
    "pair": ("user", "Where is it?"),
    "mapping": {"role": "user", "content": "Where is it?"},
}


@pytest.mark.parametrize("message", FORMS_OF_MESSAGES.values(), ids=FORMS_OF_MESSAGES)
def test_roles_are_no_texts(message):
    keeper = Keeper()
    config = {"callbacks": [RagtraceHandler(Recorder(keeper, redact=letters_gone))]}
    RunnableLambda(lambda state: chat().invoke(state["messages"]).content).invoke({"messages": [message]}, config)
    assert keeper.only.record.query == "##### ## ##?"


def test_a_document_among_blocks_is_found():
    source = {"type": "text", "media_type": "text/plain", "data": "In Oslo."}
    block = {"type": "document", "title": "Labs", "source": source}
    keeper = Keeper()
    config = {"callbacks": [RagtraceHandler(Recorder(keeper, redact=letters_gone))]}
    chat().invoke([HumanMessage([block, {"type": "text", "text": "Where?"}])], config)
    assert [passage.text for passage in keeper.only.record.contexts] == ["## ####."]
