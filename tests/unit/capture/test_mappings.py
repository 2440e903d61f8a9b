"""Search results as stores, search tools and people hand them over: text, id, score and metadata are found."""

from __future__ import annotations

import pytest

from ragtrace.capture import PassageReader
from ragtrace.model import content_id

TEXT = "The lab is in\nOslo."
HASH = content_id(TEXT)

FORMS = {
    "plain": ({"id": 7, "text": TEXT, "score": 0.5}, "7", 0.5, {}),
    "plain with metadata": (
        {"id": "a", "text": TEXT, "score": 0.5, "metadata": {"doc_id": "book"}},
        "a",
        0.5,
        {"doc_id": "book"},
    ),
    "content alone": ({"content": TEXT}, HASH, None, {}),
    "LangChain's model_dump": (
        {"id": None, "metadata": {"page": 3, "_id": "q1"}, "page_content": TEXT, "type": "Document"},
        "q1",
        None,
        {"page": 3, "type": "Document"},
    ),
    "Pinecone": ({"id": "p1", "score": 0.8, "metadata": {"text": TEXT, "page": 3}}, "p1", 0.8, {"page": 3}),
    "Qdrant": ({"id": "q1", "score": 0.8, "payload": {"page_content": TEXT}}, "q1", 0.8, {}),
    "Qdrant by LangChain": (
        {"id": "q1", "payload": {"page_content": TEXT, "metadata": {"page": 3}}},
        "q1",
        None,
        {"page": 3},
    ),
    "Elasticsearch": ({"_id": "e1", "_score": 2.5, "_source": {"content": TEXT}}, "e1", 2.5, {}),
    "Azure AI Search": (
        {"chunk_id": "z1", "chunk": TEXT, "title": "Labs", "@search.score": 0.03, "@search.reranker_score": 2.1},
        "z1",
        0.03,
        {"title": "Labs", "@search.reranker_score": 2.1},
    ),
    "Weaviate": ({"uuid": "w1", "properties": {"text": TEXT}, "certainty": 0.9}, "w1", 0.9, {}),
    "Tavily": (
        {"url": "https://a.example", "title": "Labs", "content": TEXT, "score": 0.7},
        HASH,
        0.7,
        {"url": "https://a.example", "title": "Labs"},
    ),
    "a web search": ({"title": "Labs", "link": "https://a.example", "snippet": TEXT}, HASH, None, None),
    "LlamaIndex's node": ({"node": {"id_": "n1", "text": TEXT}, "score": 0.4}, "n1", 0.4, {}),
    "a distance": ({"id": "c1", "text": TEXT, "distance": 0.1}, "c1", None, {"distance": 0.1}),
    "a score in words": ({"id": "k1", "text": TEXT, "score": "HIGH"}, "k1", None, {}),
    "an integer score": ({"_id": "b1", "body": TEXT, "_score": 3}, "b1", 3.0, {}),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_search_result_is_read(name):
    given, passage_id, score, metadata = FORMS[name]
    (passage,) = PassageReader(None, 1_000).read([given])
    assert (passage.text, passage.id, passage.score) == (TEXT, passage_id, score)
    assert metadata is None or dict(passage.metadata) == metadata


def test_a_mapping_without_a_text_or_an_id_is_no_passage():
    reader = PassageReader(None, 1_000)
    assert (reader.read([{"status": "shipped"}]), reader.unread) == ((), 1)
    (passage,) = reader.read([{"id": "a", "status": "shipped"}])
    assert (passage.id, passage.text, passage.score) == ("a", "", None)


class Held:
    """An object with fields, as a document of LangChain or a node of LlamaIndex is."""

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


OBJECTS = {
    "a document": (
        Held(id="c", page_content=TEXT, metadata={"score": 0.3, "page": 2}, type="Document"),
        0.3,
        {"page": 2},
    ),
    "a node": (Held(id_="c", text=TEXT, metadata={"page": 2}, text_template="{content}"), None, {"page": 2}),
    "a scored node": (Held(node=Held(id_="c", text=TEXT, metadata={"page": 2}), score=0.7), 0.7, {"page": 2}),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_with_a_text_is_read_like_a_mapping(name):
    item, score, metadata = OBJECTS[name]
    for items in ([item], item, iter([item])):
        (passage,) = PassageReader(None, 100).read(items)
        assert (passage.id, passage.text, passage.score, passage.metadata) == ("c", TEXT, score, metadata)


def test_an_object_without_a_text_is_no_passage():
    reader = PassageReader(None, 100)
    assert (reader.read([Held(node=Held(score=1.0))]), reader.unread) == ((), 1)
