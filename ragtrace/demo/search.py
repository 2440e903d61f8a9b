"""Search over the handbook: a LangChain vector store with a small deterministic embedding, and a reranker."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from ragtrace.demo.handbook import coverage, handbook, word_weights
from ragtrace.judges.offline.words import sentences, stems

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun

CANDIDATES = 12
DELIVERED = 4


class WordEmbeddings(Embeddings):
    """Weighted counts of the handbook's word stems, one dimension a stem and one for all other words.

    Example:
        >>> embed = WordEmbeddings().embed_query
        >>> embed("Weights of scores") == embed("scores weights")
        True
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text; it is never all zeros, which has no cosine."""
        counts, weights = Counter(stems(text)), word_weights()
        others = sum(count for stem, count in counts.items() if stem not in weights)
        return [*(math.sqrt(counts[stem]) * weight for stem, weight in weights.items()), max(others, 1e-9)]


class HandbookRetriever(BaseRetriever):
    """Finds the 12 passages nearest to a question; the similarity stands in the metadata."""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - LangChain's signature
    ) -> list[Document]:
        return search(query, CANDIDATES)


def search(query: str, k: int) -> list[Document]:
    """Return the `k` passages nearest to a query, best first.

    Example:
        >>> search("What does Harm@K count?", 1)[0].id
        'retrieval#harm'
    """
    texts = {passage.id: passage.text for passage in handbook()}
    return [
        found.model_copy(
            update={"page_content": texts[str(found.id)], "metadata": found.metadata | {"score": score}}
        )
        for found, score in _store().similarity_search_with_score(query, k)
    ]


def rerank(found: dict[str, Any]) -> list[Document]:
    """Keep the 4 candidates that cover the question best, with a score of their own."""
    scored = [
        document.model_copy(
            update={"metadata": document.metadata | {"relevance_score": _relevance(found["question"], document)}}
        )
        for document in found["candidates"]
    ]
    return sorted(scored, key=lambda document: -document.metadata["relevance_score"])[:DELIVERED]


def _relevance(question: str, document: Document) -> float:
    title, text = document.metadata["title"], document.page_content
    best_sentence = max((coverage(question, sentence) for sentence in sentences(text)), default=0.0)
    parts = coverage(question, title) + 2.0 * coverage(question, f"{title} {text}") + best_sentence
    return round(parts / 4.0, 4)


@cache
def _store() -> InMemoryVectorStore:
    """Return the index, in which the title counts twice."""
    store = InMemoryVectorStore(WordEmbeddings())
    store.add_documents(
        [
            Document(id=p.id, page_content=f"{p.title} {p.title} {p.text}", metadata={"title": p.title})
            for p in handbook()
        ]
    )
    return store
