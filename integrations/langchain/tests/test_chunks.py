"""Different documents under one id have an id each; what a step makes of a document keeps its id."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from integrations.langchain.tests.parts import PROMPT, chat, shown
from ragtrace.model import chunk_id
from tests.kept import ids

TEXTS = (
    "The return window is thirty days from delivery.",
    "Shipping to Norway takes five working days.",
    "Gift cards cannot be exchanged for cash.",
)
OWN = [chunk_id("manual", text) for text in TEXTS]
KINDS = {
    "own id": lambda text: Document(id="manual", page_content=text),
    "doc_id": lambda text: Document(page_content=text, metadata={"doc_id": "manual"}),
    "id": lambda text: Document(page_content=text, metadata={"id": "manual", "page": len(text)}),
    "both": lambda text: Document(id="manual", page_content=text, metadata={"doc_id": "parent"}),
}
FORMS = {
    "as it was": str,
    "a header": lambda text: f"Manual, page 4\n{text}",
    "an extract": lambda text: text[: 3 * len(text) // 4],
    "tags": lambda text: f"<doc>{text}</doc>",
    "lower": str.lower,
}


class Chunks(BaseRetriever):
    kind: str
    places: tuple = (0, 1, 2)

    def _get_relevant_documents(self, query, *, run_manager):
        return [KINDS[self.kind](TEXTS[n]) for n in self.places]


def answering(found):
    return {"context": found | RunnableLambda(shown), "question": RunnablePassthrough()} | PROMPT | chat()


def made(form):
    return lambda document: document.model_copy(update={"page_content": FORMS[form](document.page_content)})


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_of_one_document(keeper, config, kind, order):
    answering(Chunks(kind=kind, places=order)).invoke("?", config)
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == [OWN[n] for n in order]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_chooses_among_chunks(keeper, config, kind, form):
    best = RunnableLambda(lambda documents: list(map(made(form), documents[:0:-1])))
    answering(Chunks(kind=kind) | best).invoke("?", config)
    assert ids(keeper.only, "retrieved") == OWN
    assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == [OWN[2], OWN[1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_translates_all_chunks(keeper, config, kind):
    swedish = RunnableLambda(
        lambda documents: [
            d.model_copy(update={"page_content": f"Nummer {n}, vad det nu \u00e4r."})
            for n, d in enumerate(documents)
        ]
    )
    answering(Chunks(kind=kind) | swedish).invoke("?", config)
    assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == OWN


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_searches(keeper, config, kind):
    answering(RunnableLambda(lambda question: [KINDS[kind](text) for text in TEXTS])).invoke("?", config)
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == OWN


@pytest.mark.parametrize("kind", KINDS)
def test_two_searches_find_other_chunks(keeper, config, kind):
    one, other = Chunks(kind=kind, places=(0,)), Chunks(kind=kind, places=(1, 0))
    both = RunnableLambda(lambda question: [*one.invoke(question), *other.invoke(question)[:1]])
    answering(both).invoke("?", config)
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == OWN[:2]


@pytest.mark.parametrize("kind", KINDS)
def test_one_chunk_keeps_its_id(keeper, config, kind):
    answering(
        Chunks(kind=kind, places=(1,)) | RunnableLambda(lambda found: list(map(made("a header"), found)))
    ).invoke("?", config)
    assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == ["manual"]


def test_documents_without_ids_that_a_step_normalises(keeper, config):
    texts = ["The \ufb01le is in Zu\u0308rich.", "The other one is in Bergen, in a box."]
    search = RunnableLambda(lambda question: [Document(page_content=text) for text in texts])
    clean = RunnableLambda(
        lambda found: [
            Document(page_content=d.page_content.replace("\ufb01", "fi").replace("u\u0308", "\u00fc"))
            for d in found
        ][:1]
    )
    answering(search | clean).invoke("?", config)
    assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == ids(keeper.only, "retrieved")[:1]
