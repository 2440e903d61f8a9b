"""What a person says of a run, what was recorded of it, and the small indexes that the applications search."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from llama_index.core.embeddings import BaseEmbedding

from ragtrace import semconv
from ragtrace.capture.pictures import picture_key
from ragtrace.model import content_id
from tests.public.texts import ROWS, TEXTS


@dataclass(frozen=True, kw_only=True)
class Said:
    """A run as a person says it is.

    Attributes:
        question: what the person asked.
        answer: what the person was told, "" for nothing.
        outcome: how the run ended.
        pool: what was found, best first: the id that the application gave, or ``#name`` of a text without one.
        chosen: what a step chose out of it, None where nothing chose.
        prompt: what stood in the prompts that the answer goes back to.
        replies: how many replies of models the application got.
        tools: the tools that were called.
        tokens: of all replies together, None where the model does not count.
    """

    question: str
    answer: str
    outcome: str = "answered"
    pool: tuple[str, ...] = ()
    chosen: tuple[str, ...] | None = None
    prompt: tuple[str, ...] = ()
    replies: int
    tools: frozenset[str] = frozenset()
    tokens: int | None = None


_BY_TEXT = {text.strip(): f"#{name}" for name, text in TEXTS.items()}
_BY_TEXT[picture_key(TEXTS["photo_mole"])] = "#photo_mole"
_BY_HASH = {content_id(text): f"#{name}" for name, text in TEXTS.items()}


def told(kept):
    """Return what a recording holds of its runs, in the words of `Said`."""
    return [
        _said(run, [one for one in kept.spans if f"{one.context.trace_id:032x}" == run.record.trace_id])
        for run in kept.runs
    ]


def _said(run, spans):
    record, names = run.record, {}
    found = [passage for pool in record.pools for passage in pool.passages]
    for passage in (*found, *record.unranked_contexts):  # an id that a store made up at random stands for its text
        names.setdefault(passage.id, _name(passage))

    def named(ids):
        return tuple(names.get(one, _BY_HASH.get(one, one)) for one in ids)

    operations = [one.attributes.get(semconv.GEN_AI_OPERATION_NAME) for one in spans]
    tools = [one.attributes.get(semconv.GEN_AI_TOOL_NAME) for one in spans]
    stages = {one.stage for one in record.pools}
    usage = record.usage
    return Said(
        question=record.query or "",
        answer=record.answer,
        outcome=record.outcome,
        pool=named(one.id for one in record.pool("retrieved") or record.unranked_contexts),
        chosen=named(one.id for one in record.pool("reranked")) if "reranked" in stages else None,
        prompt=named(run.prompt_ids or ()),
        replies=sum(operation in {"chat", "text_completion"} for operation in operations),
        tools=frozenset(one for one in tools if one),
        tokens=None if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0),
    )


def _name(passage):
    if passage.id in TEXTS:
        return passage.id
    rows = (f"#{name}" for name, values in ROWS.items() if all(value in passage.text for value in values))
    return _BY_TEXT.get(bare(passage.text)) or next(rows, passage.id)


def bare(text):
    """Return a text without the tags of a source, which some applications write around it."""
    lines = text.strip().split("\n")
    is_wrapped = lines[0].startswith("<Document ") and lines[-1] == "</Document>"
    return "\n".join(lines[1:-1] if is_wrapped else lines).strip()


def _direction(text, queries):
    names = list(TEXTS)
    vector = [0.0] * len(names)
    if text in queries:
        for place, name in enumerate(queries[text]):
            vector[names.index(name)] = 1 - place / 10
        return vector
    pieces = (place for place, known in enumerate(TEXTS.values()) if text in known)
    whole = (place for place, known in enumerate(TEXTS.values()) if text == known)
    vector[next(whole, None) or next(pieces)] = 1.0
    return vector


class Directions(Embeddings):
    """LangChain's embedding of the texts, and of queries by the names of what is nearest to each."""

    def __init__(self, queries):
        self.queries, self.asked = queries, 0

    def embed_documents(self, texts):
        self.asked += len(texts)
        return [_direction(text, {}) for text in texts]

    def embed_query(self, text):
        return _direction(text, self.queries)


class Vectors(BaseEmbedding):
    """LlamaIndex's embedding of the same."""

    queries: dict[str, tuple[str, ...]]

    def _get_query_embedding(self, query):
        return _direction(query, self.queries)

    async def _aget_query_embedding(self, query):
        return _direction(query, self.queries)

    def _get_text_embedding(self, text):
        return _direction(text, {})


class Found(BaseRetriever):
    """LangChain's retriever of what each query finds, with ids or without."""

    queries: dict[str, tuple[str, ...]]
    has_ids: bool = True

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(id=name if self.has_ids else None, page_content=TEXTS[name], metadata={"title": name})
            for name in self.queries[query]
        ]
