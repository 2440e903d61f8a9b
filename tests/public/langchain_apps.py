"""Applications of LangChain that were drawn: chains and retrievers."""

from __future__ import annotations

import json
from operator import itemgetter

from langchain_classic.embeddings import CacheBackedEmbeddings
from langchain_classic.retrievers import MultiVectorRetriever
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from pydantic import BaseModel

from ragtrace_langchain import mark_retrieved
from tests.apps.langchain_parts import Replies, calls, joined
from tests.public.kit import Directions, Found
from tests.public.texts import TEXTS


def caching_embeddings(config):
    """Two stores over one embedder, whose vectors are cached; the second one embeds nothing."""
    embedder = Directions({"What does a mooring cost?": ("mooring", "dues")})
    cached = CacheBackedEmbeddings.from_bytes_store(
        embedder, InMemoryByteStore(), namespace="lake", key_encoder="blake2b"
    )
    page = Document(page_content="\n\n".join(TEXTS[name] for name in ("dues", "mooring", "rules")))
    pieces = CharacterTextSplitter(chunk_size=90, chunk_overlap=0).split_documents([page])
    InMemoryVectorStore.from_documents(pieces, cached)
    store = InMemoryVectorStore.from_documents(pieces, cached)
    assert embedder.asked == len(pieces) == 3
    return store.as_retriever(search_kwargs={"k": 2}).invoke("What does a mooring cost?", config)


PAGES = {
    "https://ice.example/report": TEXTS["page_ice"],
    "https://club.example": TEXTS["page_club"],
    "https://town.example/beach": TEXTS["page_town"],
}
LINKS = {
    "ice thickness December": ["https://ice.example/report", "https://club.example"],
    "beach closed winter": ["https://town.example/beach"],
}


def research_assistant_template(config):
    """A role, queries for it, pages that are read and summarised side by side, and a report."""
    model = Replies(
        rules=[
            (
                "Information:",
                "# Skating in December\n\nNot yet: the ice measures 6 cm, and the track opens at 12 cm.",
            ),
            (TEXTS["page_ice"], "On 3 December the bay had six centimetres of ice."),
            (TEXTS["page_club"], "The club opens its track when twelve centimetres are measured."),
            (TEXTS["page_town"], "The beach is shut through the winter."),
            ("task:", json.dumps({"agent": "Ice agent", "agent_role_prompt": "You know lakes in winter."})),
            ("Write two queries", json.dumps(list(LINKS))),
        ]
    )
    role = (
        ChatPromptTemplate.from_messages(
            [SystemMessage("Name an agent for the task, as JSON."), ("user", "task: {task}")]
        )
        | model
        | StrOutputParser()
        | json.loads
    )
    queries = (
        {
            "question": RunnablePassthrough(),
            "agent_prompt": {"task": RunnablePassthrough()} | role | itemgetter("agent_role_prompt"),
        }
        | ChatPromptTemplate.from_messages(
            [("system", "{agent_prompt}"), ("user", "Write two queries, as a list, for an opinion on: {question}")]
        )
        | model
        | StrOutputParser()
        | json.loads
    )
    summarise = (
        ChatPromptTemplate.from_template("{text}\n-----\nAnswer in short from the text above: {question}")
        | model
        | StrOutputParser()
    )
    read = (
        {
            "question": itemgetter("question"),
            "text": lambda given: PAGES[given["url"]][:10_000],
            "url": itemgetter("url"),
        }
        | RunnablePassthrough.assign(summary=summarise)
        | (lambda read: f"Source: {read['url']}\nSummary: {read['summary']}")
    )
    search = (
        RunnableLambda(
            lambda given: [{"url": url, "question": given["question"]} for url in LINKS[given["question"]]]
        )
        | read.map()
        | "\n".join
    )
    research = queries | (lambda made: [{"question": one} for one in made]) | search.map() | "\n\n".join
    write = ChatPromptTemplate.from_messages(
        [
            ("system", "You write critical reports."),
            ("user", "Information:\n--------\n{research_summary}\n--------\nAnswer in a report: {question}"),
        ]
    )
    chain = {"question": RunnablePassthrough(), "research_summary": research} | write | model | StrOutputParser()
    return chain.invoke("Is the lake safe for skating in December?", config)


def chat_model_caching(config):
    """A model that is asked the same twice; the second reply comes from the cache."""
    usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
    model = Replies(rules=[("joke", AIMessage("It took the bait and the sauce.", usage_metadata=usage))])
    before = get_llm_cache()
    set_llm_cache(InMemoryCache())
    try:
        return [model.invoke("Tell me a joke about a pike.", config).text for _ in range(2)]
    finally:
        set_llm_cache(before)


class Quote(BaseModel):
    """A place in a source."""

    source_id: int
    quote: str


class QuotedAnswer(BaseModel):
    """The answer, from the sources only, and the quotes that it comes from."""

    answer: str
    citations: list[Quote]


def qa_citations(config):
    """The documents beside a structured answer with quotes."""
    quotes = [{"source_id": 0, "quote": "Perch gather under the ice near reed beds"}]
    model = Replies(rules=[("", calls("QuotedAnswer", answer="Under the ice, near reed beds.", citations=quotes))])
    found = Found(queries={"Where do perch spend the winter?": ("perch", "wiki_perch", "pike")}, has_ids=False)

    def with_ids(documents):
        return "\n\n".join(
            f"Source ID: {place}\nTitle: {one.metadata['title']}\nSnippet: {one.page_content}"
            for place, one in enumerate(documents)
        )

    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from these articles only:{context}"), ("human", "{input}")]
    )
    answer = (
        RunnablePassthrough.assign(context=lambda given: with_ids(given["context"]))
        | prompt
        | model.with_structured_output(QuotedAnswer)
    )
    chain = RunnablePassthrough.assign(context=itemgetter("input") | found).assign(answer=answer)
    return chain.invoke({"input": "Where do perch spend the winter?"}, config)["answer"].answer


def captioned_images(recorder):
    """Captions of a document's pictures are indexed beside its texts; a search, and a chain over what it found."""
    question = "How deep is the north basin?"
    texts = [
        Document(page_content=TEXTS[name], metadata={"name": place}) for place, name in enumerate(("ice", "perch"))
    ]
    captions = [Document(page_content=TEXTS["caption"], metadata={"name": "image_2_1.png"})]
    store = InMemoryVectorStore.from_documents(texts + captions, Directions({question: ("caption", "ice")}))
    retriever = store.as_retriever(search_type="similarity", search_kwargs={"k": 1})
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer in a few sentences."),
            ("human", "Documents:\n\n<docs>{documents}</docs>\n\nQuestion: <question>{question}</question>"),
        ]
    )
    chain = prompt | Replies(rules=[("", "It is 41 m deep.")]) | StrOutputParser()
    with recorder.start(query=question):
        found = retriever.invoke(question)
        return chain.invoke({"documents": found[0].page_content, "question": question})


def semi_structured_rag(config):
    """Summaries are searched, and the texts and tables behind them are given to the model."""
    question = "Which basin is deeper?"
    raw = {"t-1": TEXTS["table_depths"], "p-1": TEXTS["paragraph"]}
    summaries = {"t-1": "| north | 41 m |", "p-1": "carved by a glacier"}
    found = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Directions({question: ("table_depths", "paragraph")})),
        docstore=InMemoryStore(),
        id_key="doc_id",
    )
    found.vectorstore.add_documents(
        [Document(page_content=text, metadata={"doc_id": number}) for number, text in summaries.items()]
    )
    found.docstore.mset(list(raw.items()))
    prompt = ChatPromptTemplate.from_template(
        "Answer from these texts and tables:\n{context}\nQuestion: {question}\n"
    )
    model = Replies(rules=[("", "The north basin, with 41 m.")])
    chain = {"context": found, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    return chain.invoke(question, config)


def sql_large_db(config):
    """Names of the database that are like a word of the question are found for the prompt that writes SQL."""
    question = "How many albums does alis morisset have?"
    names = ("name_band", "name_choir", "name_other")
    store = InMemoryVectorStore.from_texts([TEXTS[name] for name in names], Directions({question: names}))
    found = store.as_retriever(search_kwargs={"k": 3})
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Write SQLite only.\nTables: Album(Artist, Title)\nProper nouns:\n{proper_nouns}"),
            ("human", "{question}"),
        ]
    )
    model = Replies(rules=[("", "SELECT COUNT(*) FROM Album WHERE Artist = 'Alanis Morissette'\n")])
    write = prompt | model | StrOutputParser() | str.strip
    nouns = itemgetter("question") | found | (lambda documents: "\n".join(one.page_content for one in documents))
    return (RunnablePassthrough.assign(proper_nouns=nouns) | write).invoke({"question": question}, config)


def raptor(config):
    """A summary of the passages, made beforehand by a model, stands in one index with them."""
    question = "Why does ice bear me?"
    model = Replies(
        rules=[
            ("Summarise", TEXTS["summary"]),
            ("", "Since the lake freezes from above, and 10 cm carry a person."),
        ]
    )
    leaves = [TEXTS["ice"], TEXTS["thaw"]]
    summarise = ChatPromptTemplate.from_template("Summarise in detail:\n{context}") | model | StrOutputParser()
    summary = summarise.invoke({"context": "--- --\n --- --".join(leaves)})
    store = InMemoryVectorStore.from_texts([*leaves, summary], Directions({question: ("summary", "ice")}))
    prompt = ChatPromptTemplate.from_template("Context: {context}\nQuestion: {question}")
    chain = (
        {"context": store.as_retriever(search_kwargs={"k": 2}) | joined, "question": RunnablePassthrough()}
        | prompt
        | model
        | StrOutputParser()
    )
    return chain.invoke(question, config)


def hierarchical_indices(recorder):
    """Summaries are searched by plain functions, then the pieces of each summary's page."""
    question = "When does ice bear me?"
    pieces = {1: ("ice", "thaw"), 2: ("perch", "wiki_perch")}
    embedder = Directions({question: ("summary", "ice", "thaw")})
    summaries = InMemoryVectorStore.from_documents(
        [Document(page_content=TEXTS["summary"], metadata={"page": 1, "summary": True})], embedder
    )
    details = InMemoryVectorStore.from_documents(
        [
            Document(page_content=TEXTS[one], metadata={"page": page})
            for page, names in pieces.items()
            for one in names
        ],
        embedder,
    )

    def search(query):
        found = []
        for summary in summaries.similarity_search(query, k=1):
            page = summary.metadata["page"]
            found += details.similarity_search(
                query, k=2, filter=lambda one, page=page: one.metadata["page"] == page
            )
        return mark_retrieved(found, source="details")

    with recorder.start(query=question):
        return [one.page_content for one in search(question)]


WITH_HANDLER = {
    "caching-embeddings": caching_embeddings,
    "research-assistant-template": research_assistant_template,
    "chat-model-caching": chat_model_caching,
    "qa-citations": qa_citations,
    "semi-structured-rag": semi_structured_rag,
    "sql-large-db": sql_large_db,
    "raptor": raptor,
}
IN_BLOCK = {  # what is returned is asked in a block
    "captioned-images": lambda: captioned_images,
    "hierarchical-indices": lambda: hierarchical_indices,
}
