"""Chains of LangChain: what its tutorials and templates build with retrievers, prompts and models."""

from __future__ import annotations

import itertools
import json
import threading
from operator import itemgetter

from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
)
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough, chain
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from ragtrace.model import content_id
from tests.apps.application import Expected
from tests.apps.langchain_parts import (
    PROMPT,
    Directions,
    Keywords,
    LangChainApplication,
    Replies,
    document,
    joined,
    store,
)
from tests.apps.shop import TEXTS

CHAT = ChatPromptTemplate.from_messages(
    [("system", "Answer from this:\n{context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
)
REWRITE = ChatPromptTemplate.from_messages(
    [("system", "Make a standalone question."), MessagesPlaceholder("chat_history"), ("human", "{input}")]
)


def answering(found, answer, show=joined):
    """Return the chain of the tutorials around what finds its documents."""
    given = {"context": found | RunnableLambda(show), "question": RunnablePassthrough()}
    return given | PROMPT | Replies(rules=[("", answer)]) | StrOutputParser()


class BasicRag(LangChainApplication):
    """``retriever | format | prompt | model | parser``."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns", "shipping"),
            prompt=("refunds", "returns", "shipping"),
            answer="Within 14 days, by form.",
        ),
    )

    def build(self):
        found = store({"How do I get my money back?": 4}).as_retriever(search_kwargs={"k": 3})
        return answering(found, "Within 14 days, by form.")


class RetrievalChain(LangChainApplication):
    """``create_retrieval_chain`` over ``create_stuff_documents_chain``."""

    inputs = {"input": "Who pays the duty?", "chat_history": []}
    expected = (
        Expected(
            question="Who pays the duty?",
            pool=("customs", "shipping"),
            prompt=("customs", "shipping"),
            answer="The buyer does.",
        ),
    )

    def build(self):
        found = store({"Who pays the duty?": 47}).as_retriever(search_kwargs={"k": 2})
        return create_retrieval_chain(
            found, create_stuff_documents_chain(Replies(rules=[("", "The buyer does.")]), CHAT)
        )


class GivenDocuments(LangChainApplication):
    """The endpoint searches by itself and gives the documents to ``create_stuff_documents_chain``."""

    expected = (
        Expected(
            question="Who pays the duty?",
            pool=("customs", "shipping"),
            prompt=("customs", "shipping"),
            answer="The buyer does.",
        ),
    )

    def build(self):
        return create_stuff_documents_chain(Replies(rules=[("", "The buyer does.")]), PROMPT)

    def _given(self):
        found = store({"Who pays the duty?": 47}).similarity_search("Who pays the duty?", k=2)
        return {"context": found, "question": "Who pays the duty?"}


JOINED = f"{TEXTS['customs']}\n\n{TEXTS['shipping']}"


class GivenText(LangChainApplication):
    """The endpoint joins what it found, and gives the chain a text: that is all that is known of it."""

    inputs = {"context": JOINED, "question": "Who pays the duty?"}
    expected = (
        Expected(
            question="Who pays the duty?",
            pool=(),
            prompt=(content_id(JOINED),),
            answer="The buyer does.",
        ),
    )

    def build(self):
        return PROMPT | Replies(rules=[("", "The buyer does.")]) | StrOutputParser()


class Conversational(LangChainApplication):
    """A history-aware retriever: the model rewrites the question before the search."""

    inputs = {
        "input": "And to Norway?",
        "chat_history": [HumanMessage("How long does shipping take?"), AIMessage("3 to 5 days.")],
    }
    expected = (
        Expected(
            question="And to Norway?",
            pool=("shipping", "customs"),
            prompt=("shipping", "customs"),
            answer="Five days, and duty is due.",
        ),
    )

    def build(self):
        standalone = "How long does shipping to Norway take?"
        model = Replies(rules=[("standalone", standalone), ("", "Five days, and duty is due.")])
        found = create_history_aware_retriever(
            model, store({standalone: 38}).as_retriever(search_kwargs={"k": 2}), REWRITE
        )
        return create_retrieval_chain(found, create_stuff_documents_chain(model, CHAT))


class TwoTurns(LangChainApplication):
    """``RunnableWithMessageHistory``: two questions of one session, each a run of its own."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty",),
            prompt=("warranty",),
            answer="Two years.",
        ),
        Expected(
            question="Where do I claim it?",
            pool=("invoices",),
            prompt=("invoices",),
            answer="By e-mail, with the invoice.",
        ),
    )

    def build(self):
        found = store({"How long is the warranty?": 128, "Where do I claim it?": 95}).as_retriever(
            search_kwargs={"k": 1}
        )
        model = Replies(rules=[("Where do I claim it?", "By e-mail, with the invoice."), ("", "Two years.")])
        context = RunnableLambda(lambda given: given["input"]) | found | RunnableLambda(joined)
        turns = InMemoryChatMessageHistory()
        return RunnableWithMessageHistory(
            RunnablePassthrough.assign(context=context) | CHAT | model,
            lambda session_id: turns,
            input_messages_key="input",
            history_messages_key="chat_history",
        )

    def ask(self, config):
        asked, config = self.build(), {**(config or {}), "configurable": {"session_id": "s-1"}}
        return [asked.invoke({"input": one.question}, config) for one in self.expected]

    async def aask(self, config):
        asked, config = self.build(), {**(config or {}), "configurable": {"session_id": "s-1"}}
        return [await asked.ainvoke({"input": one.question}, config) for one in self.expected]

    def stream(self, config):
        asked, config = self.build(), {**(config or {}), "configurable": {"session_id": "s-1"}}
        for one in self.expected:
            yield from asked.stream({"input": one.question}, config)

    async def astream(self, config):
        asked, config = self.build(), {**(config or {}), "configurable": {"session_id": "s-1"}}
        for one in self.expected:
            async for piece in asked.astream({"input": one.question}, config):
                yield piece


QUERIES = {"How are refunds paid?": 4, "When is the parcel sent?": 28, "How are goods sent back?": 12}
WRITE = ChatPromptTemplate.from_template("Write three queries, a line each: {question}")


class MultiQuery(LangChainApplication):
    """``MultiQueryRetriever``: the union of what three queries find."""

    expected = (
        Expected(
            question="How do I send it back?",
            pool=("refunds", "returns", "shipping"),
            prompt=("refunds", "returns", "shipping"),
            answer="Pack it and print the label.",
        ),
    )

    def build(self):
        found = MultiQueryRetriever.from_llm(
            retriever=store(QUERIES).as_retriever(search_kwargs={"k": 2}),
            llm=Replies(rules=[("", "\n".join(QUERIES))]),
        )
        return answering(found, "Pack it and print the label.")


def fused(lists):
    """Fuse results by reciprocal ranks into pairs of a document and its score."""
    scores, first = {}, {}
    for documents in lists:
        for rank, one in enumerate(documents):
            first.setdefault(one.page_content, one)
            scores[one.page_content] = scores.get(one.page_content, 0) + 1 / (rank + 60)
    return [(first[text], score) for text, score in sorted(scores.items(), key=lambda pair: -pair[1])]


class RagFusion(LangChainApplication):
    """Generated queries, ``.map()``, reciprocal rank fusion by hand into pairs, and a cut."""

    expected = (
        Expected(
            question="How do I send it back?",
            pool=("returns", "refunds", "shipping"),
            selection=("returns", "refunds"),
            ranks=(1, 2),
            prompt=("returns", "refunds"),
            answer="Pack it, then wait 14 days.",
        ),
    )

    def build(self):
        queries = (
            {"question": RunnablePassthrough()}
            | WRITE
            | Replies(rules=[("", "\n".join(QUERIES))])
            | StrOutputParser()
            | RunnableLambda(str.splitlines)
        )
        found = queries | store(QUERIES).as_retriever(search_kwargs={"k": 2}).map() | fused
        best = found | RunnableLambda(lambda pairs: [one for one, _ in pairs[:2]])
        return answering(best, "Pack it, then wait 14 days.")


class Hyde(LangChainApplication):
    """Hypothetical document embeddings: the search is for a passage that the model makes up."""

    expected = (
        Expected(
            question="Can I have my money?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="Yes, within 14 days.",
        ),
    )

    def build(self):
        made_up = "The shop transfers the money to the buyer's account."
        write = ChatPromptTemplate.from_template("Write a passage that answers: {question}")
        found = (
            {"question": RunnablePassthrough()}
            | write
            | Replies(rules=[("", made_up)])
            | StrOutputParser()
            | store({made_up: 3}).as_retriever(search_kwargs={"k": 2})
        )
        return answering(found, "Yes, within 14 days.")


class ParentDocuments(LangChainApplication):
    """``ParentDocumentRetriever``: small pieces are searched, and whole passages returned."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="With a form.",
        ),
    )

    def build(self):
        found = ParentDocumentRetriever(
            vectorstore=InMemoryVectorStore(Directions({"How do I get my money back?": 4})),
            docstore=InMemoryStore(),
            child_splitter=RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0),
            search_kwargs={"k": 3},  # the two pieces of the first passage, and one of the second
        )
        found.add_documents([document(name) for name in ("refunds", "returns", "warranty")])
        return answering(found, "With a form.")


class SelfQuery(LangChainApplication):
    """The model writes a query and a filter; a function searches the store with both."""

    expected = (
        Expected(
            question="What proves my purchase? Look from page 3 on.",
            pool=("invoices", "warranty"),
            prompt=("invoices", "warranty"),
            answer="The invoice does.",
        ),
    )

    def build(self):
        index = store({"proof of purchase": 100})
        plan = '{"query": "proof of purchase", "first_page": 3}'

        def search(plan):
            return index.similarity_search(
                plan["query"], k=2, filter=lambda found: found.metadata["page"] >= plan["first_page"]
            )

        found = (
            {"question": RunnablePassthrough()}
            | ChatPromptTemplate.from_template("Write JSON with a query and the first page: {question}")
            | Replies(rules=[("", plan)])
            | JsonOutputParser()
            | RunnableLambda(search)
        )
        return answering(found, "The invoice does.")


class ModelReranker(BaseDocumentCompressor):
    """Asks a model to rate each document, and keeps the best two."""

    model: Replies

    def compress_documents(self, documents, query, callbacks=None):
        replies = self.model.batch(
            [f"Rate from 0 to 10: {one.page_content}\nfor {query}" for one in documents], {"callbacks": callbacks}
        )
        rated = sorted(zip(documents, replies, strict=True), key=lambda pair: -int(pair[1].content))
        return [
            Document(
                id=one.id,
                page_content=one.page_content,
                metadata={**one.metadata, "relevance_score": int(said.content) / 10},
            )
            for one, said in rated[:2]
        ]


class LlmReranker(LangChainApplication):
    """``ContextualCompressionRetriever`` with a model that rates each document."""

    expected = (
        Expected(
            question="How do I send the goods?",
            pool=("refunds", "returns", "shipping", "customs"),
            selection=("returns", "refunds"),
            ranks=(2, 1),
            prompt=("returns", "refunds"),
            answer="With the printed label.",
        ),
    )

    def build(self):
        ratings = [("Pack the goods", "9"), ("within 14 days", "7"), ("Malmö", "2"), ("Customs duty", "1")]
        found = ContextualCompressionRetriever(
            base_retriever=store({"How do I send the goods?": 4}).as_retriever(search_kwargs={"k": 4}),
            base_compressor=ModelReranker(model=Replies(rules=ratings)),
        )
        return answering(found, "With the printed label.")


class Hybrid(LangChainApplication):
    """``EnsembleRetriever``: a keyword index, which keeps no ids, beside a vector store over the same passages."""

    expected = (
        Expected(
            question="Is a refund of customs duty due?",
            pool=("refunds", "#customs", "returns"),
            prompt=("refunds", "#customs", "returns"),
            answer="The carrier's fee is not paid back.",
        ),
    )

    def build(self):
        found = EnsembleRetriever(
            retrievers=[
                Keywords(),
                store({"Is a refund of customs duty due?": 6}).as_retriever(search_kwargs={"k": 2}),
            ],
            weights=[0.5, 0.5],
        )
        return answering(found, "The carrier's fee is not paid back.")


class CrossEncoder(BaseDocumentCompressor):
    """Reranks as Flashrank does in LangChain's package: new documents that have their place as id in the metadata."""

    scores: dict[int, float]

    def compress_documents(self, documents, query, callbacks=None):
        rated = [(self.scores[one.metadata["page"]], place, one) for place, one in enumerate(documents)]
        best = sorted(rated, key=lambda row: -row[0])[:2]
        return [
            Document(
                page_content=one.page_content, metadata={"id": place, "relevance_score": score, **one.metadata}
            )
            for score, place, one in best
        ]


class Flashrank(LangChainApplication):
    """A compression retriever whose reranker writes the place of each document into ``metadata["id"]``."""

    expected = (
        Expected(
            question="What does a parcel to Oslo cost?",
            pool=("shipping", "customs", "returns", "refunds"),
            selection=("customs", "shipping"),
            ranks=(2, 1),
            prompt=("customs", "shipping"),
            answer="Duty and a fee of 6 €.",
        ),
    )

    def build(self):
        found = ContextualCompressionRetriever(
            base_retriever=store({"What does a parcel to Oslo cost?": 34}).as_retriever(search_kwargs={"k": 4}),
            base_compressor=CrossEncoder(scores={0: 0.01, 1: 0.02, 2: 0.7, 3: 0.98}),
        )
        return answering(found, "Duty and a fee of 6 €.")


class MapReduce(LangChainApplication):
    """A summary of each document, and an answer out of the summaries."""

    expected = (
        Expected(
            question="What happens after the purchase?",
            pool=("refunds", "returns", "shipping"),
            prompt=("refunds", "returns", "shipping"),
            answer="Parcels arrive in days, and money comes back in weeks.",
        ),
    )

    def build(self):
        model = Replies(
            rules=[
                ("Combine:", "Parcels arrive in days, and money comes back in weeks."),
                ("within 14 days", "The shop repays in two weeks after a form was sent."),
                ("Pack the goods", "Goods are packed and labelled before they go back."),
                ("Malmö", "Nordic parcels arrive in less than a week."),
            ]
        )
        summaries = (
            RunnableLambda(lambda found: [{"text": one.page_content} for one in found])
            | (ChatPromptTemplate.from_template("Summarise:\n{text}") | model | StrOutputParser()).map()
            | RunnableLambda(lambda said: {"summaries": "\n- ".join(said)})
        )
        found = store({"What happens after the purchase?": 3}).as_retriever(search_kwargs={"k": 3})
        return (
            found
            | summaries
            | ChatPromptTemplate.from_template("Combine:\n- {summaries}")
            | model
            | StrOutputParser()
        )


class NumberedSources(LangChainApplication):
    """Numbered passages in the prompt, and an answer that cites them."""

    expected = (
        Expected(
            question="How do returns work?",
            pool=("returns", "refunds"),
            prompt=("returns", "refunds"),
            answer="Print the label [1]. The money comes within 14 days [2].",
            cited=("returns", "refunds"),
        ),
    )

    def build(self):
        found = store({"How do returns work?": 9}).as_retriever(search_kwargs={"k": 2})
        return answering(
            found,
            "Print the label [1]. The money comes within 14 days [2].",
            lambda documents: "\n".join(f"[{n}] {one.page_content}" for n, one in enumerate(documents, start=1)),
        )


class JsonContext(LangChainApplication):
    """The passages go into the prompt as JSON, and as they are found: nobody chose."""

    expected = (
        Expected(
            question="What does the PDF hold?",
            pool=("invoices", "warranty", "customs"),
            prompt=("invoices", "warranty", "customs"),
            answer="The invoice.",
        ),
    )

    def build(self):
        found = store({"What does the PDF hold?": 92}).as_retriever(search_kwargs={"k": 3})
        return answering(
            found,
            "The invoice.",
            lambda documents: json.dumps(
                [{"page": one.metadata["page"], "text": one.page_content} for one in documents]
            ),
        )


class Decorated(LangChainApplication):
    """A function under ``@chain`` that calls retriever, prompt and model one by one: one question, one run."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="Two years.",
        ),
    )

    def build(self):
        found = store({"How long is the warranty?": 128}).as_retriever(search_kwargs={"k": 2})
        model = Replies(rules=[("", "Two years.")])

        @chain
        def ask(question):
            messages = PROMPT.invoke({"context": joined(found.invoke(question)), "question": question})
            return StrOutputParser().invoke(model.invoke(messages))

        return ask


class Service(LangChainApplication):
    """A web service that streams server-sent events out of the chain's stream."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer='Send "refund.txt"\nwithin 14 days – that\'s all.',
        ),
    )
    ask = aask = None

    def build(self):
        found = store({"How do I get my money back?": 4}).as_retriever(search_kwargs={"k": 2})
        return answering(found, 'Send "refund.txt"\nwithin 14 days – that\'s all.')

    def stream(self, config):
        for piece in self.build().stream(self._given(), config):
            yield f"data: {json.dumps(piece)}\n\n"

    async def astream(self, config):
        async for piece in self.build().astream(self._given(), config):
            yield f"data: {json.dumps(piece)}\n\n"


class WithSources(LangChainApplication):
    """The answer beside the documents that it was made of."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="With a form.",
        ),
    )

    def build(self):
        found = store({"How do I get my money back?": 4}).as_retriever(search_kwargs={"k": 2})
        answer = (
            RunnableLambda(lambda given: {**given, "context": joined(given["context"])})
            | PROMPT
            | Replies(rules=[("", "With a form.")])
            | StrOutputParser()
        )
        asked = RunnableParallel(question=RunnablePassthrough())
        return asked.assign(context=itemgetter("question") | found).assign(answer=answer)


class CutContext(LangChainApplication):
    """The formatter shows the beginning of each passage only."""

    expected = (
        Expected(
            question="What is in the PDF?",
            pool=("invoices", "warranty"),
            prompt=("invoices", "warranty"),
            answer="The invoice.",
        ),
    )

    def build(self):
        found = store({"What is in the PDF?": 92}).as_retriever(search_kwargs={"k": 2})
        return answering(
            found, "The invoice.", lambda documents: "\n".join(one.page_content[:48] for one in documents)
        )


class SubQuestions(LangChainApplication):
    """The question is split, each part is answered from its own search, and the answers are put together."""

    expected = (
        Expected(
            question="Compare refunds and the warranty.",
            pool=("refunds", "warranty"),
            prompt=("refunds", "warranty"),
            answer="Money comes in days, and claims may come for years.",
        ),
    )

    def build(self):
        parts = {"How fast are refunds?": 1, "How long is the warranty?": 131}
        model = Replies(
            rules=[
                ("Split:", "\n".join(parts)),
                ("Notes:", "Money comes in days, and claims may come for years."),
                ("How fast", "Refunds take no more than fourteen days."),
                ("How long", "Claims are open for two whole years."),
            ]
        )
        found = store(parts).as_retriever(search_kwargs={"k": 1})
        split = ChatPromptTemplate.from_template("Split: {question}") | model | StrOutputParser() | str.splitlines
        answered = (
            {"context": found | RunnableLambda(joined), "question": RunnablePassthrough()}
            | PROMPT
            | model
            | StrOutputParser()
        )
        notes = RunnableLambda(lambda questions: {"notes": "\n".join(answered.invoke(one) for one in questions)})
        together = ChatPromptTemplate.from_template("Notes:\n{notes}") | model | StrOutputParser()
        return {"question": RunnablePassthrough()} | split | notes | together


class TriedAgain(LangChainApplication):
    """A search with a reranker that fails twice, under ``with_retry``, which tries no stream again."""

    expected = (
        Expected(
            question="How do I send the goods?",
            pool=("refunds", "returns", "shipping"),
            selection=("shipping", "returns"),
            ranks=(3, 2),
            prompt=("shipping", "returns"),
            answer="With the printed label.",
        ),
    )
    stream = astream = None

    def build(self):
        failures = [TimeoutError("busy"), TimeoutError("busy")]

        def rerank(documents):
            if failures:
                raise failures.pop()
            return documents[::-1][:2]

        found = store({"How do I send the goods?": 4}).as_retriever(search_kwargs={"k": 3}) | RunnableLambda(rerank)
        return answering(found.with_retry(wait_exponential_jitter=False), "With the printed label.")


class ModelDown(LangChainApplication):
    """The model fails after the search: the application raises what it raised, and the run is an error."""

    raises = True
    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="",
            outcome="error",
        ),
    )

    def build(self):
        def fail(_):
            raise ConnectionError('no route to "model.example"')

        found = store({"How do I get my money back?": 4}).as_retriever(search_kwargs={"k": 2})
        return answering(found, fail)


class ClientLeaves(Service):
    """The client of the streaming service leaves after two pieces."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer='Send "refund.txt"\n',
            outcome="partial",
        ),
    )

    def stream(self, config):
        pieces = super().stream(config)
        yield from itertools.islice(pieces, 2)
        pieces.close()

    async def astream(self, config):
        pieces = super().astream(config)
        yield await anext(pieces)
        yield await anext(pieces)
        await pieces.aclose()


class StepBack(LangChainApplication):
    """Two searches side by side, for the question and for a more general one; their results are texts at once."""

    expected = (
        Expected(
            question="Is the warranty valid in Oslo?",
            pool=("warranty", "invoices", "shipping", "customs"),
            prompt=("warranty", "invoices", "shipping", "customs"),
            answer="Everywhere in Europe.",
        ),
    )

    def build(self):
        model = Replies(rules=[("Step back:", "What holds in Norway?"), ("", "Everywhere in Europe.")])
        found = store({"Is the warranty valid in Oslo?": 128, "What holds in Norway?": 38}).as_retriever(
            search_kwargs={"k": 2}
        )
        is_searched = threading.Event()  # the pool has its searches in the order of time, so that one comes first

        def noted(documents):
            is_searched.set()
            return joined(documents)

        def later(text):
            assert is_searched.wait(30)
            return text

        general = ChatPromptTemplate.from_template("Step back: {question}") | model | StrOutputParser()
        return (
            {
                "normal": itemgetter("question") | found | RunnableLambda(noted),
                "general": general | RunnableLambda(later) | found | RunnableLambda(joined),
                "question": itemgetter("question"),
            }
            | ChatPromptTemplate.from_template("{normal}\n\n{general}\n\nQuestion: {question}")
            | model
            | StrOutputParser()
        )

    def _given(self):
        return {"question": self.expected[0].question}
