"""Further chains of LangChain: retrievers in retrievers, routes, batches, refinement, structured answers."""

from __future__ import annotations

from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from pydantic import BaseModel

from tests.apps.application import Expected
from tests.apps.langchain_chain_apps import answering
from tests.apps.langchain_parts import PROMPT, LangChainApplication, Replies, calls, joined, store


class Best(BaseRetriever):
    """Asks another retriever, without handing its callbacks on, and keeps the last two of what it finds."""

    inner: BaseRetriever

    def _get_relevant_documents(self, query, *, run_manager):
        return self.inner.invoke(query)[::-1][:2]


class RetrieverInRetriever(LangChainApplication):
    """A retriever of the application's own around the store's."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns", "shipping"),
            selection=("shipping", "returns"),
            ranks=(3, 2),
            prompt=("shipping", "returns"),
            answer="With a form.",
        ),
    )

    def build(self):
        inner = store({"How do I get my money back?": 4}).as_retriever(search_kwargs={"k": 3})
        return answering(Best(inner=inner), "With a form.")


class Routed(LangChainApplication):
    """The model chooses the index; only that one is searched."""

    expected = (
        Expected(
            question="Is the lamp's guarantee valid?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="For two years.",
        ),
    )

    def build(self):
        asked = self.expected[0].question
        indexes = {
            "law": store({asked: 128}, ("invoices", "warranty")).as_retriever(search_kwargs={"k": 2}),
            "post": store({asked: 20}, ("shipping", "customs")).as_retriever(search_kwargs={"k": 2}),
        }
        choose = ChatPromptTemplate.from_template("law or post? {question}") | Replies(rules=[("", "law")])

        def route(question):
            return indexes[choose.invoke({"question": question}).content]

        return answering(RunnableLambda(route), "For two years.")


class SecondIndex(LangChainApplication):
    """An index that is down, and one that stands in for it."""

    expected = (
        Expected(
            question="How do I get my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="With a form.",
        ),
    )

    def build(self):
        class Down(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                raise ConnectionError("the index is down")

        other = store({"How do I get my money back?": 4}).as_retriever(search_kwargs={"k": 2})
        return answering(Down().with_fallbacks([other]), "With a form.")


class Batch(LangChainApplication):
    """Two questions in one batch, one after the other: a run each."""

    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty",),
            prompt=("warranty",),
            answer="Two years.",
        ),
        Expected(
            question="What is due in Norway?",
            pool=("customs",),
            prompt=("customs",),
            answer="Customs duty.",
        ),
    )
    stream = astream = None

    def build(self):
        found = store({"How long is the warranty?": 128, "What is due in Norway?": 52}).as_retriever(
            search_kwargs={"k": 1}
        )
        given = {"context": found | RunnableLambda(joined), "question": RunnablePassthrough()}
        model = Replies(rules=[("Norway?", "Customs duty."), ("", "Two years.")])
        asked = given | PROMPT | model | StrOutputParser()
        return RunnableLambda(asked.invoke)  # so that a question ends before the next one begins

    def ask(self, config):
        return self.build().batch([one.question for one in self.expected], {**(config or {}), "max_concurrency": 1})

    async def aask(self, config):
        return await self.build().abatch(
            [one.question for one in self.expected], {**(config or {}), "max_concurrency": 1}
        )


class Refined(LangChainApplication):
    """An answer from the first passage, refined with each further one."""

    expected = (
        Expected(
            question="What happens after the purchase?",
            pool=("refunds", "returns", "shipping"),
            prompt=("refunds", "returns", "shipping"),
            answer="Parcels take days, returns need a label, and refunds take two weeks.",
        ),
    )

    def build(self):
        drafts = (
            "Refunds are paid within two weeks.",
            "Refunds are paid within two weeks, and returns need a label.",
            "Parcels take days, returns need a label, and refunds take two weeks.",
        )
        model = Replies(rules=[("Malmö", drafts[2]), ("Pack the goods", drafts[1]), ("within 14 days", drafts[0])])

        def refine(documents):
            draft = ""
            for one in documents:
                draft = model.invoke(f"So far: {draft}\nRefine with:\n{one.page_content}").text
            return draft

        found = store({"What happens after the purchase?": 3}).as_retriever(search_kwargs={"k": 3})
        return found | RunnableLambda(refine)


class Cited(BaseModel):
    """An answer with the numbers of its sources."""

    answer: str
    citations: list[int]


class StructuredCitations(LangChainApplication):
    """Structured output: the answer, and the numbers of the passages that it comes from."""

    expected = (
        Expected(
            question="By when is my money back?",
            pool=("refunds", "returns"),
            prompt=("refunds", "returns"),
            answer="Within 14 days.",
            cited=("refunds",),
        ),
    )

    def build(self):
        found = store({"By when is my money back?": 4}).as_retriever(search_kwargs={"k": 2})
        model = Replies(rules=[("", calls("Cited", answer="Within 14 days.", citations=[1]))])
        numbered = RunnableLambda(
            lambda documents: "\n".join(f"[{n}] {one.page_content}" for n, one in enumerate(documents, start=1))
        )
        given = {"context": found | numbered, "question": RunnablePassthrough()}
        answer = given | PROMPT | model.with_structured_output(Cited)
        return answer | RunnableLambda(lambda said: {"answer": said.answer, "citations": said.citations})


class Translated(LangChainApplication):
    """The passages are translated by a function that is no model before they are shown."""

    expected = (
        Expected(
            question="Wie lange gilt die Garantie?",
            pool=("warranty", "invoices"),
            selection=("warranty", "invoices"),
            ranks=(1, 2),
            prompt=("warranty", "invoices"),
            answer="Zwei Jahre.",
        ),
    )

    def build(self):
        found = store({"Wie lange gilt die Garantie?": 128}).as_retriever(search_kwargs={"k": 2})
        german = {
            "warranty": "Die Garantie gilt zwei Jahre\nin ganz Europa.",
            "invoices": "Rechnungen kommen als PDF.",
        }

        def translate(documents):
            return [Document(id=one.id, page_content=german[one.id], metadata=one.metadata) for one in documents]

        return answering(found | RunnableLambda(translate), "Zwei Jahre.")
