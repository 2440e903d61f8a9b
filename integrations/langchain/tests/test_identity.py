"""One passage has one id: retrievers with and without ids, rerankers with ids of their own, fusions, retries."""

from __future__ import annotations

import json
import operator
from functools import reduce
from threading import Event
from typing import Annotated, TypedDict

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MergerRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.load import dumps
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from integrations.langchain.tests.parts import PROMPT, chat, shown
from ragtrace.capture import Rerank, Retrieval
from ragtrace.model import chunk_id, content_id
from ragtrace_langchain import TracedCompressor
from tests.kept import ANSWER, ids, kinds, step

TEXTS = {one: f'"{one}" says:\n\tthe \\lab\\ moved to Å{one}, Örebro.\nIt\'s number «{one}».' for one in "abcdefgh"}


def hashed(names):
    """Return the ids of passages that have none of their own where the name is an upper-case letter."""
    return [content_id(TEXTS[name.lower()]) if name.isupper() else name for name in names]


def document(name, *, with_id=True, **metadata):
    return Document(id=name if with_id else None, page_content=TEXTS[name], metadata=metadata)


class Vectors(BaseRetriever):
    """A store: documents with ids of their own, by the query or always the same."""

    found: dict | str
    gate: Event | None = None
    late: str = ""  # the query that waits until another one has been asked

    def documents(self, query):
        return [document(name) for name in (self.found if isinstance(self.found, str) else self.found[query])]

    def _get_relevant_documents(self, query, *, run_manager):
        if self.gate is not None and query != self.late:
            self.gate.set()
        assert self.gate is None or self.gate.wait(30)
        return self.documents(query)


class Keywords(Vectors):
    """A keyword index over the same chunks, which keeps no ids, or those in the metadata."""

    key: str | None = None

    def documents(self, query):
        return [
            document(name, with_id=False, **({self.key: f"chunk-{name}"} if self.key else {}))
            for name in self.found
        ]


class Flashrank(BaseDocumentCompressor):
    """Reranks as the one of langchain_community: new documents with their place in the input as metadata id."""

    top_n: int = 2

    def compress_documents(self, documents, query, callbacks=None):
        best = list(enumerate(documents))[::-1][: self.top_n]
        return [
            Document(
                page_content=one.page_content, metadata={"id": n, "relevance_score": 0.9 - n / 10, **one.metadata}
            )
            for n, one in best
        ]


def answering(found, show=shown):
    given = {"context": found | RunnableLambda(show), "question": RunnablePassthrough()}
    return given | PROMPT | chat()


def fused(lists):
    """Fuse by reciprocal ranks as templates do, which compare documents by their serialised form."""
    scores = {}
    for documents in lists:
        for rank, one in enumerate(documents):
            text = dumps(one)
            scores[text] = scores.get(text, 0) + 1 / (rank + 60)
    ordered = sorted(scores.items(), key=_falling)
    return [(Document(**json.loads(text)["kwargs"]), score) for text, score in ordered]


def _falling(scored):
    return -scored[1]


def fused_by_text(lists):
    scores, first = {}, {}
    for documents in lists:
        for rank, one in enumerate(documents):
            scores[one.page_content] = scores.get(one.page_content, 0) + 1 / (rank + 60)
            first.setdefault(one.page_content, one)
    return [first[text] for text, _ in sorted(scores.items(), key=_falling)]


def shown_pairs(pairs):
    return shown([one for one, _ in pairs])


BM25 = Keywords(found="abcd")
STORE = Vectors(found="dcef")
BY_QUERY = {"q1": "abc", "q2": "bcd", "q3": "ebf"}
WRITE = RunnableLambda(lambda _: ["q1", "q2", "q3"], name="write_queries")


def queries():
    """Return the store asked with each of the queries at once; the first is answered last."""
    return WRITE | Vectors(found=BY_QUERY, gate=Event(), late="q1").map()


def ensemble(*retrievers):
    return EnsembleRetriever(retrievers=list(retrievers), weights=[1 / len(retrievers)] * len(retrievers))


def both(*retrievers):
    return RunnableParallel({str(n): one for n, one in enumerate(retrievers)})


def without_repeats(documents):
    return list({one.page_content: one for one in documents}.values())


FUSED = {
    # The pool in its order, an upper-case letter for a passage whose id is the hash of its text; nobody reranked.
    "a keyword index before a store": (ensemble(BM25, STORE), "dcABef"),
    "a store before a keyword index": (ensemble(STORE, BM25), "dcABef"),
    "a function over both": (RunnableLambda(lambda q: fused_by_text([BM25.invoke(q), STORE.invoke(q)])), "dcABef"),
    "both in parallel": (both(BM25, STORE) | (lambda found: fused_by_text(found.values())), "dcABef"),
    "both joined": (both(BM25, STORE) | (lambda found: without_repeats([*found["0"], *found["1"]])), "ABcdef"),
    "merged": (MergerRetriever(retrievers=[BM25, STORE]) | without_repeats, "AdBcef"),
    "fused by hand over queries": (queries() | fused_by_text, "bcaedf"),
    "all found by the queries, with repeats": (queries() | (lambda found: reduce(operator.add, found)), "abcdef"),
    "a function over queries": (
        RunnableLambda(lambda _: fused_by_text(map(Vectors(found=BY_QUERY).invoke, WRITE.invoke("")))),
        "bcaedf",
    ),
}


class TestIds:
    @pytest.mark.parametrize(("found", "pool"), FUSED.values(), ids=FUSED)
    @pytest.mark.parametrize("way", ["sync", "async"])
    async def test_the_pool_is_the_union_in_the_order_of_the_fusion(self, keeper, config, found, pool, way):
        chain = answering(found)
        message = await chain.ainvoke("?", config) if way == "async" else chain.invoke("?", config)
        run = keeper.only
        assert message.content == run.record.answer == ANSWER
        assert ids(run, "retrieved") == ids(run, "used") == list(run.prompt_ids) == hashed(pool)
        assert [p.rank for p in run.record.pool("retrieved")] == list(range(1, len(pool) + 1))
        assert run.record.pool("reranked") == ()
        assert (run.record.selection_source, set(kinds(run))) == ("retriever", {"retrieval", "chat"})

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["keywords first", "store first"])
    def test_an_id_in_the_metadata_gives_way_to_the_store_s_own(self, keeper, config, order):
        retrievers = Keywords(found="ab", key="chunk_id"), Vectors(found="bc")
        answering(ensemble(*(retrievers[n] for n in order))).invoke("?", config)
        assert sorted(ids(keeper.only, "retrieved")) == ["b", "c", "chunk-a"]
        assert keeper.only.prompt_ids == tuple(ids(keeper.only, "retrieved"))

    def test_the_steps_have_the_ids_that_the_record_has(self, keeper, config):
        answering(ensemble(BM25, STORE)).invoke("?", config)
        found = [[p.id for p in one.passages] for one in keeper.only.steps if isinstance(one, Retrieval)]
        assert found == [hashed("ABcd"), hashed("dcef"), hashed("dcABef")]

    def test_one_text_under_two_ids_of_a_store_stays_two_passages(self, keeper, config):
        twice = RunnableLambda(lambda _: [Document(id=name, page_content=TEXTS["a"]) for name in ("a1", "a2")])
        answering(twice).invoke("?", config)
        assert ids(keeper.only, "retrieved") == ["a1", "a2"]

    def test_one_text_under_two_metadata_ids_stays_two_passages(self, keeper, config):
        twice = RunnableLambda(lambda _: [Document(TEXTS["a"], metadata={"id": name}) for name in ("a1", "a2")])
        answering(twice | RunnableLambda(list)).invoke("?", config)
        assert ids(keeper.only, "retrieved") == ["a1", "a2"]

    def test_stores_with_ids_of_their_own_for_one_text_are_fused_by_text(self, keeper, config):
        class Other(Vectors):
            def documents(self, query):
                return [
                    Document(id=f"other-{one.id}", page_content=one.page_content)
                    for one in super().documents(query)
                ]

        answering(ensemble(Vectors(found="ab"), Other(found="bc"))).invoke("?", config)
        assert kinds(keeper.only) == ["retrieval", "retrieval", "retrieval", "chat"]
        assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == ["b", "a", "other-c"]


class TestRerankersWithPlacesAsIds:
    @pytest.mark.parametrize(
        ("base", "pool", "chosen", "previous"),
        [
            (STORE, "dcef", "fe", [4, 3]),
            (BM25, "ABCD", "DC", [4, 3]),
            (ensemble(BM25, STORE), "dcABef", "fe", [6, 5]),
            (ensemble(STORE, BM25), "dcABef", "fe", [6, 5]),
        ],
        ids=["own ids", "no ids", "keywords and a store", "a store and keywords"],
    )
    @pytest.mark.parametrize("wrapped", [False, True], ids=["inferred", "traced"])
    def test_a_known_id_wins(self, keeper, config, base, pool, chosen, previous, wrapped):
        reranker = TracedCompressor(base=Flashrank()) if wrapped else Flashrank()
        answering(ContextualCompressionRetriever(base_retriever=base, base_compressor=reranker)).invoke("?", config)
        run = keeper.only
        rerank = step(run, Rerank)
        assert ids(run, "retrieved") == [p.id for p in rerank.candidates] == hashed(pool)
        assert ids(run, "reranked") == list(run.prompt_ids) == hashed(chosen)
        assert [p.rank for p in rerank.candidates] == list(range(1, len(pool) + 1))
        assert [ids(run, "retrieved").index(p.id) + 1 for p in rerank.passages] == previous
        assert [p.score for p in rerank.passages] == pytest.approx([0.9 - (n - 1) / 10 for n in previous])

    def test_an_id_in_the_metadata_that_was_there_before_wins(self, keeper, config):
        base = Keywords(found="abcd", key="doc_id")
        answering(ContextualCompressionRetriever(base_retriever=base, base_compressor=Flashrank())).invoke(
            "?", config
        )
        assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == ["chunk-d", "chunk-c"]


class TestFusedByHand:
    def test_pairs_of_document_and_score(self, keeper, config):
        answering(queries() | fused, shown_pairs).invoke("?", config)
        run = keeper.only
        assert ids(run, "retrieved") == list(run.prompt_ids) == list("bcaedf")
        scores = [p.score for p in run.record.pool("retrieved")]
        assert scores == pytest.approx([1 / 61 + 1 / 60 + 1 / 61, 1 / 62 + 1 / 61, 1 / 60, 1 / 60, 1 / 62, 1 / 62])
        assert kinds(run) == ["retrieval"] * 3 + ["chat"]

    @pytest.mark.parametrize(
        ("last", "candidates", "previous"),
        [
            ((lambda found: fused_by_text(found)[:2],), "abcdef", [2, 3]),  # the order behind the cut is not known
            ((fused_by_text, lambda documents: documents[:2]), "bcaedf", [1, 2]),
        ],
        ids=["cut as it is fused", "cut in a step of its own"],
    )
    def test_a_cut_is_a_choice_among_what_it_was_given(self, keeper, config, last, candidates, previous):
        chain = queries()
        for one in last:
            chain |= one
        answering(chain).invoke("?", config)
        run = keeper.only
        rerank = step(run, Rerank)
        given = [p.id for p in rerank.candidates]
        assert given == ids(run, "retrieved") == list(candidates)
        assert ids(run, "reranked") == list(run.prompt_ids) == ["b", "c"]
        assert [given.index(p.id) + 1 for p in rerank.passages] == previous

    def test_sources_sorted_after_the_answer_leave_the_pool(self, keeper, config):
        found = RunnableParallel(lists=queries(), question=RunnablePassthrough())
        answer = RunnableLambda(lambda given: shown(fused_by_text(given["lists"]))) | chat() | StrOutputParser()
        sources = RunnableLambda(lambda given: reduce(operator.add, given["lists"])[::-1])
        chain = found | RunnablePassthrough.assign(answer=answer) | RunnablePassthrough.assign(sources=sources)
        chain.invoke("?", config)
        assert set(kinds(keeper.only)) == {"retrieval", "chat"}
        assert ids(keeper.only, "retrieved") == list("abcdef")
        assert keeper.only.prompt_ids == tuple("bcaedf")

    def test_a_reranker_of_all_that_several_queries_found_is_a_reranker(self, keeper, config):
        def rank(found):
            documents = without_repeats(reduce(operator.add, found))[::-1]
            return [
                one.model_copy(update={"metadata": {"rerank_score": 0.9 - n / 10}})
                for n, one in enumerate(documents)
            ]

        answering(queries() | rank).invoke("?", config)
        rerank = step(keeper.only, Rerank)
        assert [p.id for p in rerank.candidates] == ids(keeper.only, "retrieved") == list("abcdef")
        assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == list("fedcba")


class State(TypedDict, total=False):
    question: str
    found: Annotated[list, operator.add]
    keywords: list
    vectors: list
    documents: list
    answer: str


def graph(searches, fuse=None, shows="documents"):
    """Parallel nodes that search, a node that fuses, and one that answers from `shows`."""
    built = StateGraph(State)
    built.add_node("answer", lambda state: {"answer": chat().invoke(shown(state[shows])).content})
    built.add_edge("answer", END)
    if fuse is not None:
        built.add_node("fuse", lambda state: {"documents": fuse(state)})
        built.add_edge("fuse", "answer")
    for name, node in searches.items():
        built.add_node(name, node)
        built.add_edge(START, name)
        built.add_edge(name, "answer" if fuse is None else "fuse")
    return built.compile()


def searches():
    """Return two nodes, of which the first ends last."""
    gate = Event()
    keywords, vectors = Keywords(found="abcd", gate=gate, late="?"), Vectors(found="dcef", gate=gate)
    return {
        "keywords": lambda state: {"keywords": keywords.invoke(state["question"])},
        "vectors": lambda state: {"vectors": vectors.invoke(state["question"] + "?")},
    }


class TestGraphs:
    def test_parallel_nodes_that_are_fused(self, keeper, config):
        app = graph(searches(), lambda state: fused_by_text([state["keywords"], state["vectors"]]))
        assert app.invoke({"question": "?"}, config)["answer"] == ANSWER
        run = keeper.only
        assert ids(run, "retrieved") == list(run.prompt_ids) == hashed("dcABef")
        assert kinds(run) == ["retrieval", "retrieval", "chat"]

    def test_parallel_nodes_whose_best_are_taken(self, keeper, config):
        app = graph(searches(), lambda state: fused_by_text([state["keywords"], state["vectors"]])[:3])
        app.invoke({"question": "?"}, config)
        rerank = step(keeper.only, Rerank)
        assert [p.id for p in rerank.candidates] == ids(keeper.only, "retrieved") == hashed("ABcdef")
        assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == hashed("dcA")

    def test_parallel_nodes_that_a_reducer_joins(self, keeper, config):
        nodes = {
            name: lambda state, node=node: {"found": next(iter(node(state).values()))}
            for name, node in searches().items()
        }
        graph(nodes, shows="found").invoke({"question": "?"}, config)
        run = keeper.only
        assert ids(run, "retrieved") == list(run.prompt_ids) == hashed("ABcdef")
        assert (run.record.pool("reranked"), run.record.selection_source) == ((), "retriever")

    @pytest.mark.parametrize(
        ("result", "lists"),
        [
            (lambda query, documents: documents, lambda found: found),
            (
                lambda query, documents: {"query": query, "documents": documents},
                lambda found: [one["documents"] for one in found],
            ),
        ],
        ids=["lists", "lists beside their queries"],
    )
    def test_a_node_for_each_query(self, keeper, config, result, lists):
        def search(state):
            return {"found": [result(state["question"], Vectors(found=BY_QUERY).invoke(state["question"]))]}

        built = StateGraph(State)
        built.add_node("search", search)
        built.add_node("fuse", lambda state: {"documents": fused_by_text(lists(state["found"]))})
        built.add_node("answer", lambda state: {"answer": chat().invoke(shown(state["documents"])).content})
        built.add_conditional_edges(
            START, lambda _: [Send("search", {"question": query}) for query in WRITE.invoke("")], ["search"]
        )
        built.add_edge("search", "fuse")
        built.add_edge("fuse", "answer")
        built.add_edge("answer", END)
        built.compile().invoke({"question": "?"}, config)
        run = keeper.only
        assert ids(run, "retrieved") == list(run.prompt_ids) == list("bcaedf")
        assert kinds(run) == ["retrieval"] * 3 + ["chat"]


class TestAttempts:
    @pytest.mark.parametrize("retriever", [STORE, Keywords(found="dcef")], ids=["own ids", "no ids"])
    @pytest.mark.parametrize("chosen", [2, 4], ids=["the best two", "all"])
    def test_a_step_tried_again_searches_one_pool(self, keeper, config, retriever, chosen):
        attempts = iter((ValueError("busy"), ValueError("busy"), None))

        def best(documents):
            if (error := next(attempts)) is not None:
                raise error
            return documents[::-1][:chosen]

        found = (retriever | RunnableLambda(best)).with_retry(wait_exponential_jitter=False)
        answering(found).invoke("?", config)
        run = keeper.only
        names = [p.id for p in step(run, Retrieval).passages] if len(kinds(run)) == 3 else ids(run, "retrieved")
        assert kinds(run) == ["retrieval"] * 3 + ["rerank", "chat"]
        assert ids(run, "retrieved") == names
        assert len(names) == len(step(run, Rerank).candidates) == 4
        assert ids(run, "reranked") == list(run.prompt_ids) == names[::-1][:chosen]


class TestRewrittenUnderTheirIds:
    @staticmethod
    def rewriting(text):
        return STORE | RunnableLambda(
            lambda found: [one.model_copy(update={"page_content": text(one.page_content)}) for one in found]
        )

    def test_a_header_on_each_passage_chooses_nothing(self, keeper, config):
        answering(self.rewriting(lambda text: f"Source: manual\n{text}")).invoke("?", config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == list("dcef")
        assert keeper.only.record.pool("reranked") == ()

    def test_extracts_are_the_selection_and_nobody_reranked(self, keeper, config):
        answering(self.rewriting(lambda text: text.splitlines()[1].strip())).invoke("?", config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "chat"]
        assert ids(run, "retrieved") == ids(run, "reranked") == list(run.prompt_ids) == list("dcef")
        assert run.record.pool("reranked")[0].text == TEXTS["d"].splitlines()[1].strip()

    def test_passages_with_their_neighbours_are_what_the_model_was_shown(self, keeper, config):
        answering(self.rewriting(lambda text: f"{text}\n{text.upper()}\n{text.lower()}")).invoke("?", config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "chat"]
        assert ids(run, "retrieved") == ids(run, "reranked") == list(run.prompt_ids) == list("dcef")
        assert run.record.contexts[0].text.endswith(TEXTS["d"].lower())


class Numbered(BaseRetriever):
    """A collection that numbers its passages from 0."""

    texts: list[str]

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id=str(number), page_content=text) for number, text in enumerate(self.texts)]


class TestCollectionsThatNumberAlike:
    MANUAL, LAW = ['The lamp has a "red"\nbutton.', "Press it twice."], ["Courts sit\nin Örebro.", "Fees are 6 €."]

    def found(self, step=list):
        both = RunnableParallel(manual=Numbered(texts=self.MANUAL), law=Numbered(texts=self.LAW))
        return both | (lambda lists: [*lists["manual"], *lists["law"]]) | RunnableLambda(step)

    def test_both_stand_in_the_pool(self, keeper, config):
        answering(self.found()).invoke("?", config)
        record = keeper.only.record
        assert (
            [p.text for p in record.pool("retrieved")]
            == [p.text for p in record.contexts]
            == self.MANUAL + self.LAW
        )
        assert list(keeper.only.prompt_ids) == [
            chunk_id(name, text) for name, text in zip("0101", self.MANUAL + self.LAW, strict=True)
        ]

    def test_a_step_chooses_among_all(self, keeper, config):
        answering(self.found(lambda documents: documents[:0:-2])).invoke("?", config)
        record = keeper.only.record
        assert [p.text for p in record.pool("reranked")] == [self.LAW[1], self.MANUAL[1]]
        assert len(step(keeper.only, Rerank).candidates) == 4

    def test_another_form_of_a_passage_is_the_same_one(self, keeper, config):
        one, other = (Numbered(texts=[f"Score: {score}\n{text}" for text in self.MANUAL]) for score in (0.9, 0.4))
        answering(RunnableLambda(lambda question: [one.invoke(question), other.invoke(question)][0])).invoke(
            "?", config
        )
        assert ids(keeper.only, "retrieved") == list(keeper.only.prompt_ids) == ["0", "1"]
