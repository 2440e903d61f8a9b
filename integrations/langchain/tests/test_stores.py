"""Scores and other facts, as vector stores, retrievers and rerankers write them into a document's metadata."""

from __future__ import annotations

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever

from tests.kept import ids, scores


class Store(BaseRetriever):
    metadata_of_documents: list

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content=f'Passage {i},\n"quoted" für dich.', metadata=dict(facts))
            for i, facts in enumerate(self.metadata_of_documents)
        ]


STORES = {
    "Azure AI Search": (
        {"@search.score": 0.031, "@search.rerankerScore": 2.4, "@search.captions": [{"a": 1}]},
        0.031,
    ),
    "Azure AI Search, semantic ranking alone": ({"@search.reranker_score": 2.4}, 2.4),
    "Elasticsearch": ({"_index": "faq", "_id": "e1", "_score": 7.25, "_source": {"page": 3}}, 7.25),
    "Pinecone hybrid": ({"score": 0.83}, 0.83),
    "Amazon Bedrock knowledge bases": ({"location": {"type": "S3"}, "score": 0.61, "type": "TEXT"}, 0.61),
    "MongoDB Atlas hybrid": ({"_id": "m1", "vector_score": 0.5, "fulltext_score": 0.25, "score": 0.75}, 0.75),
    "Weaviate, older client": ({"_additional": {"score": "0.0163", "explainScore": "..."}}, 0.0163),
    "Weaviate": ({"certainty": 0.93}, 0.93),
    "LanceDB": ({"_relevance_score": 0.72, "_distance": 0.4}, 0.72),
    "Meilisearch": ({"_rankingScore": 0.9}, 0.9),
    "Astra DB": ({"$similarity": 0.88}, 0.88),
    "LangChain's how-to": ({"score": 0.4}, 0.4),
    "a retriever by hand": ({"similarity_score": 0.4}, 0.4),
    "Chroma's distance": ({"distance": 0.4}, None),
    "LanceDB's distance": ({"_distance": 0.4}, None),
    "Redis' distance": ({"vector_distance": "0.4"}, None),
    "Amazon Kendra": ({"score": "VERY_HIGH"}, None),
}


@pytest.mark.parametrize("name", STORES)
def test_the_score_of_a_store(keeper, config, name):
    facts, score = STORES[name]
    Store(metadata_of_documents=[facts]).invoke("Where?", config)
    assert scores(keeper.only, "retrieved") == [score]


def test_the_id_of_a_store(keeper, config):
    facts = [{"_id": "q1", "_collection_name": "faq"}, {"pk": 445}, {"chunk_id": "z3", "doc_id": "book"}]
    Store(metadata_of_documents=facts).invoke("Where?", config)
    assert ids(keeper.only, "retrieved") == ["q1", "445", "z3"]


class Reranker(BaseDocumentCompressor):
    name: str

    def compress_documents(self, documents, query, callbacks=None):
        return [
            Document(page_content=d.page_content, metadata={**d.metadata, self.name: 0.9 - i / 10})
            for i, d in enumerate(reversed(documents))
        ]


RERANKERS = {
    "Cohere, Jina, Voyage, NVIDIA, Flashrank, Vertex AI, Bedrock, Pinecone, DashScope, Infinity": "relevance_score",
    "a cross-encoder by hand": "rerank_score",
    "embeddings filter": "query_similarity_score",
    "another name": "reranker_score",
}


@pytest.mark.parametrize("name", RERANKERS)
def test_the_score_of_a_reranker(keeper, config, name):
    store = Store(metadata_of_documents=[{"@search.score": 0.031}, {"@search.score": 0.02}])
    reranker = Reranker(name=RERANKERS[name])
    ContextualCompressionRetriever(base_compressor=reranker, base_retriever=store).invoke("Where?", config)
    assert scores(keeper.only, "retrieved") == [0.031, 0.02]
    assert scores(keeper.only, "reranked") == [0.9, 0.8]


LISTS = {
    "texts": (["Ada", "Bo"], ["Ada", "Bo"]),
    "a tuple of numbers": ((3, 4), [3, 4]),
    "mixed, with what is no scalar": (["a", {"b": 1}, 2, None], ["a", 2]),
    "long": ([str(i) for i in range(100)], [str(i) for i in range(32)]),
    "long texts": (["x" * 400, "y" * 400], ["x" * 400]),
    "a vector": ([0.1] * 1536, None),
    "nothing": ([], None),
    "a mapping": ({"a": 1}, None),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_in_the_metadata_are_kept(keeper, config, name):
    given, kept = LISTS[name]
    Store(metadata_of_documents=[{"page": 3, "tags": given}]).invoke("Where?", config)
    (passage,) = keeper.only.record.pool("retrieved")
    assert dict(passage.metadata) == {"page": 3, **({} if kept is None else {"tags": kept})}
