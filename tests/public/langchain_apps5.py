"""Applications of LangChain of the sixth draw: rooms by their features, a picture beside a table, a question made anew."""

from __future__ import annotations

import json
import operator

from langchain_classic.retrievers import MultiVectorRetriever
from langchain_classic.retrievers.self_query.base import SelfQueryRetriever
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.stores import InMemoryStore
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery, Visitor
from langchain_core.utils.json import parse_json_markdown
from langchain_core.vectorstores import InMemoryVectorStore

from tests.apps.langchain_parts import Replies
from tests.public.kit import Directions
from tests.public.texts import TEXTS


class Filters(Visitor):
    """Turns a structured query into a filter of a store in memory."""

    allowed_comparators = (Comparator.EQ, Comparator.GTE)
    allowed_operators = (Operator.AND,)
    _compared = {Comparator.EQ: operator.eq, Comparator.GTE: operator.ge}  # noqa: RUF012 - of a class of LangChain's

    def visit_operation(self, operation):
        parts = [part.accept(self) for part in operation.arguments]
        return lambda document: all(part(document) for part in parts)

    def visit_comparison(self, comparison):
        compared = self._compared[comparison.comparator]
        return lambda document: compared(document.metadata[comparison.attribute], comparison.value)

    def visit_structured_query(self, structured_query):
        found = structured_query.filter
        return structured_query.query, {} if found is None else {"filter": found.accept(self)}


def structured_query(message):
    """Return the query that a model wrote as JSON in a block of code."""
    told = parse_json_markdown(message.content)
    comparisons = [
        Comparison(comparator=Comparator(how), attribute=name, value=one) for how, name, one in told["filter"]
    ]
    return StructuredQuery(
        query=told["query"], filter=Operation(operator=Operator.AND, arguments=comparisons), limit=None
    )


def self_query_hotel_search(config):
    """A model makes a query and a filter of what a guest wants; rooms are found, and nobody answers."""
    wanted = "I want to stay somewhere highly rated by the sea, and a room where I can sit at a fire."
    names = ("room_dune", "room_pier", "room_mill")
    query = {"query": "fire, by the sea", "filter": [("gte", "stars", 4)]}
    model = Replies(rules=[("", f"```json\n{json.dumps(query)}\n```")])
    prompt = ChatPromptTemplate.from_template(
        "Your goal is to structure the user's query to match the request schema: a query and a filter over the attributes "
        "name, quarter, stars and extras.\n\nUser query: {query}\nStructured request:"
    )
    docs = [Document(page_content=TEXTS[name], metadata=json.loads(TEXTS[name])) for name in names]
    vecstore = InMemoryVectorStore.from_documents(docs, Directions({"fire, by the sea": names}))
    retriever = SelfQueryRetriever(
        query_constructor=prompt | model | structured_query,
        vectorstore=vecstore,
        structured_query_translator=Filters(),
        verbose=True,
    )
    return [one.page_content for one in retriever.invoke(wanted, config)]


def multi_modal_rag(config):
    """Summaries of a text, a table and a picture are searched; the things behind them are shown to a model that sees."""
    question = "What has a storm done to the mole of Vester?"
    raw = {"i-1": TEXTS["photo_mole"], "t-1": TEXTS["mole_table"], "p-1": TEXTS["mole_text"]}
    summaries = {
        "i-1": TEXTS["photo_mole_summary"],
        "t-1": "| west arm | 1871 | 310 m |",
        "p-1": "stands on piles of larch",
    }
    retriever = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Directions({question: ("photo_mole_summary", "mole_text", "mole_table")})),
        docstore=InMemoryStore(),
        id_key="doc_id",
    )
    retriever.vectorstore.add_documents(
        [Document(page_content=text, metadata={"doc_id": number}) for number, text in summaries.items()]
    )
    retriever.docstore.mset(list(raw.items()))

    def split_image_text_types(docs):
        b64_images, texts = [], []
        for doc in docs:
            text = doc.page_content if isinstance(doc, Document) else doc
            (b64_images if text.startswith("iVBOR") else texts).append(text)
        return {"images": b64_images, "texts": texts}

    def img_prompt_func(data_dict):
        formatted_texts = "\n".join(data_dict["context"]["texts"])
        messages = [
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{image}"}}
            for image in data_dict["context"]["images"]
        ]
        text = (
            "You are an engineer who advises a harbour.\nYou will be given a mix of text, tables, and images.\n"
            f"User-provided question: {data_dict['question']}\n\nText and / or tables:\n{formatted_texts}"
        )
        return [HumanMessage(content=[*messages, {"type": "text", "text": text}])]

    model = Replies(rules=[("", "It tore stones off the west arm; the lantern stands.")])
    chain = (
        {"context": retriever | RunnableLambda(split_image_text_types), "question": RunnablePassthrough()}
        | RunnableLambda(img_prompt_func)
        | model
        | StrOutputParser()
    )
    return chain.invoke(question, config)


def rewrite_retrieve_read(config):
    """A plain search answers a simple question; one with a distraction is made anew by a model first."""
    simple = "who built the mole of Vester?"
    distracted = "My aunt keeps geese on the island, and she is always right. Who built the mole of Vester?"
    model = Replies(
        rules=[
            ("Provide a better search query", '"builder of the mole of Vester**"'),
            (distracted, "Oluf Brandt began it, Anne Toft went on."),
            ("", "A merchant, and later the state."),
        ]
    )
    found = {
        simple: TEXTS["search_mole"],
        "builder of the mole of Vester": f"{TEXTS['search_mole']} {TEXTS['search_fort']}",
    }

    def retriever(query):
        return found[query]

    prompt = ChatPromptTemplate.from_template(
        "Answer the users question based only on the following context:\n\n<context>\n{context}\n</context>\n\nQuestion: {question}\n"
    )
    rewrite_prompt = ChatPromptTemplate.from_template(
        "Provide a better search query for web search engine to answer the given question, end the queries with '**'. "
        "Question: {x} Answer:"
    )

    def _parse(text):
        return text.strip('"*')

    rewriter = rewrite_prompt | model | StrOutputParser() | _parse
    chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    rewrite_retrieve_read_chain = (
        {"context": {"x": RunnablePassthrough()} | rewriter | retriever, "question": RunnablePassthrough()}
        | prompt
        | model
        | StrOutputParser()
    )
    return [chain.invoke(simple, config), rewrite_retrieve_read_chain.invoke(distracted, config)]


WITH_HANDLER = {
    "self-query-hotel-search": self_query_hotel_search,
    "multi-modal-rag": multi_modal_rag,
    "rewrite-retrieve-read": rewrite_retrieve_read,
}
