"""Applications of LangChain of the third draw: retrievers, explanations, a classic agent, a walk over a graph."""

from __future__ import annotations

import heapq
import re
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

from langchain_classic.agents import AgentExecutor
from langchain_classic.retrievers import ContextualCompressionRetriever, MultiVectorRetriever
from langchain_classic.retrievers.document_compressors import LLMChainExtractor
from langchain_classic.retrievers.multi_vector import SearchType
from langchain_core.agents import AgentAction, AgentFinish
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough
from langchain_core.stores import InMemoryByteStore
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions, Found
from tests.public.texts import FOG, TEXTS


def context_window_enrichment():
    """One piece of a page is found; another function puts its neighbours around it."""
    question = "What does the horn do in fog?"

    def split(text, size, overlap):
        pieces, start = [], 0
        while start < len(text):
            piece = Document(page_content=text[start : start + size], metadata={"index": len(pieces), "text": text})
            pieces.append(piece)
            start += size - overlap
        return pieces

    store = InMemoryVectorStore.from_documents(split(FOG, 60, 20), Directions({question: ("fog_1", "fog_2")}))
    retriever = store.as_retriever(search_kwargs={"k": 1})

    def piece_at(index):
        everything = store.similarity_search("", k=len(store.store))
        return next((one for one in everything if one.metadata["index"] == index), None)

    def retrieve_with_context_overlap(query, neighbours, overlap):
        sequences = []
        for found in retriever.invoke(query):
            middle = found.metadata["index"]
            window = [piece_at(index) for index in range(max(0, middle - neighbours), middle + neighbours + 1)]
            first, *others = sorted((one for one in window if one), key=lambda one: one.metadata["index"])
            text = first.page_content
            for one in others:
                text = text[: max(0, len(text) - overlap)] + one.page_content
            sequences.append(text)
        return sequences

    def ask(recorder):
        baseline = retriever.invoke(question)
        with recorder.start(query=question):
            enriched = retrieve_with_context_overlap(question, neighbours=1, overlap=20)
        assert enriched == [FOG[:140]]
        return [baseline[0].page_content, *enriched]

    return ask


def explainable_retrieval():
    """Each passage that is found is explained by a model; the explanations are what is given back."""
    question = "Why is the lake blue?"
    explanations = {
        "blue": "It names the cause: which colour the water takes away.",
        "reed": "It speaks of clear water, and of no colour.",
        "warm": "It has no bearing on colours.",
    }
    model = Replies(
        rules=[
            (
                TEXTS[name],
                AIMessage(text, usage_metadata={"input_tokens": 40, "output_tokens": 9, "total_tokens": 49}),
            )
            for name, text in explanations.items()
        ]
    )

    class ExplainableRetriever:
        def __init__(self, texts):
            store = InMemoryVectorStore.from_texts(texts, Directions({question: ("blue", "reed", "warm")}))
            self.retriever = store.as_retriever(search_kwargs={"k": 5})
            prompt = PromptTemplate(
                input_variables=["query", "context"],
                template=(
                    "Explain why this context bears on the query.\n\n"
                    "Query: {query}\n\nContext: {context}\n\nExplanation:\n"
                ),
            )
            self.explain_chain = prompt | model

        def retrieve_and_explain(self, query):
            results = []
            for one in self.retriever.invoke(query):
                explanation = self.explain_chain.invoke({"query": query, "context": one.page_content}).content
                results.append({"content": one.page_content, "explanation": explanation})
            return results

    retriever = ExplainableRetriever([TEXTS[name] for name in ("warm", "blue", "reed")])

    def ask(recorder):
        with recorder.start(query=question) as run:
            results = retriever.retrieve_and_explain(question)
            shown = "\n".join(f"{place}. {one['explanation']}" for place, one in enumerate(results, start=1))
            run.answered(shown)
        return shown

    return ask


class HypotheticalQuestions(BaseModel):
    """Questions that a text answers."""

    questions: list[str]


def multi_vector(config):
    """Whole pages are found by their pieces, by similarity and by diversity, and by questions made up for them."""
    pages = [Document(page_content=TEXTS[name]) for name in ("essay_boats", "essay_nets")]
    numbers = ["page-1", "page-2"]

    def retriever_of(parts, queries):
        store = InMemoryVectorStore(Directions(queries))
        made = MultiVectorRetriever(vectorstore=store, byte_store=InMemoryByteStore(), id_key="doc_id")
        made.vectorstore.add_documents(parts)
        made.docstore.mset(list(zip(numbers, pages, strict=True)))
        return made

    splitter = RecursiveCharacterTextSplitter(chunk_size=60, chunk_overlap=0)
    pieces = [
        Document(page_content=piece.page_content, metadata={"doc_id": number})
        for number, page in zip(numbers, pages, strict=True)
        for piece in splitter.split_documents([page])
    ]
    assert len(pieces) == 4
    smaller = retriever_of(pieces, {"drying nets": ("essay_nets", "essay_boats")})
    found = [smaller.invoke("drying nets", config)]
    smaller.search_type = SearchType.mmr
    found.append(smaller.invoke("drying nets", config))

    model = Replies(
        rules=[
            ("larch", calls("HypotheticalQuestions", questions=[TEXTS["asked_boats_1"], TEXTS["asked_boats_2"]])),
            ("needles", calls("HypotheticalQuestions", questions=[TEXTS["asked_nets_1"], TEXTS["asked_nets_2"]])),
        ]
    )
    make_up = (
        {"doc": lambda page: page.page_content}
        | ChatPromptTemplate.from_template("Make up two questions that this document answers:\n\n{doc}")
        | model.with_structured_output(HypotheticalQuestions)
        | (lambda made: made.questions)
    )
    questions = [
        Document(page_content=question, metadata={"doc_id": number})
        for number, made in zip(numbers, make_up.batch(pages, {"max_concurrency": 5}), strict=True)
        for question in made
    ]
    asked = retriever_of(questions, {"life of a hull": ("asked_boats_2", "asked_nets_2")})
    found.append(asked.invoke("life of a hull", config))
    return [[one.page_content for one in pages] for pages in found]


def anthropic_iterative_search(config):
    """A classic agent whose replies are tags: it searches twice and notes what it found, and a chain answers."""
    retriever = Found(queries={"mill": ("mill",), "dam": ("dam", "outlet")}, has_ids=False)

    @tool
    def search(query):
        """Search with the retriever."""
        return retriever.invoke(query)

    model = Replies(
        rules=[
            ("Here is a user query", "It was raised twice, and served a mill with 24 paddles."),
            (
                TEXTS["dam"],
                "<search_quality>Enough.</search_quality><information>raised in 1802 and 1871, for a mill</information>",
            ),
            (TEXTS["mill"], "<search_quality>The dam is missing.</search_quality> <search_query>dam"),
            ("", "<scratchpad>First the mill, then its dam.</scratchpad> <search_query>mill"),
        ]
    )

    def format_docs(docs):
        return "\n".join(
            f'<item index="{place}">\n<page_content>\n{one}\n</page_content>\n</item>'
            for place, one in enumerate(docs, start=1)
        )

    def scratchpad(steps):
        return "".join(action.log + "</search_query>" + format_docs(docs) for action, docs in steps)

    def parse_output(given):
        said, steps = given["partial_completion"], given["intermediate_steps"]
        queries = re.findall(r"<search_query\s?>(.+?)</search_query\s?>", said + "</search_query>", re.DOTALL)
        if queries:
            return AgentAction(tool="search", tool_input=queries[0].strip(), log=said)
        docs = [one for _, found in steps for one in found]
        return AgentFinish({"docs": docs, "output": scratchpad(steps) + said}, log=said)

    retrieval_prompt = ChatPromptTemplate.from_messages(
        [
            (
                "user",
                "{retriever_description} Think in <scratchpad> tags. The user's question: <question>{query}</question>",
            ),
            ("ai", "{agent_scratchpad}"),
        ]
    ).partial(retriever_description="Search with <search_query>a word</search_query>.")
    completion = (
        RunnablePassthrough.assign(agent_scratchpad=lambda given: scratchpad(given["intermediate_steps"]))
        | retrieval_prompt
        | model.bind(stop=["</search_query>"])
        | StrOutputParser()
    )
    agent = (
        RunnableParallel(partial_completion=completion, intermediate_steps=itemgetter("intermediate_steps"))
        | parse_output
    )
    executor = AgentExecutor(agent=agent, tools=[search])
    answer_prompt = ChatPromptTemplate.from_template(
        "Here is a user query: <query>{query}</query>. Here is some relevant information: "
        "<information>{information}</information>. Please answer the question using the relevant information."
    )
    chain = (
        {"query": itemgetter("query"), "information": executor | itemgetter("output")}
        | answer_prompt
        | model
        | StrOutputParser()
    )
    return chain.invoke({"query": "What is known of the dam, and whom did it serve?"}, config)


class Concepts(BaseModel):
    """Concepts of a text."""

    concepts_list: list[str]


class AnswerCheck(BaseModel):
    """Whether the context answers the query, and the answer so far."""

    is_complete: bool
    answer: str


def graph_rag():
    """Passages are a graph by their concepts. Extracts of those that are found begin a walk, until a check answers."""
    question = "What do the fish that spawn at the mouths of streams eat, and where does that live?"
    names = ("smelt", "shrimps", "sauna", "eels")
    concepts = {
        "smelt": ["Spawning", "opossum shrimp"],
        "shrimps": ["opossum shrimp", "ground"],
        "sauna": ["heat"],
        "eels": ["migration"],
    }
    model = Replies(
        rules=[
            *(
                (f"from the following text:\n\n{TEXTS[name]}", calls("Concepts", concepts_list=found))
                for name, found in concepts.items()
            ),
            (
                f"{TEXTS['smelt']}\n{TEXTS['shrimps']}\n\nDoes this context",
                calls(
                    "AnswerCheck", is_complete=True, answer="Smelt eat shrimps, which live on the lake's ground."
                ),
            ),
            ("Does this context", calls("AnswerCheck", is_complete=False, answer="The place is not said.")),
            (TEXTS["smelt"], "they eat opossum shrimps"),
            (TEXTS["shrimps"], "live on the ground of the lake"),
            ("", "NO_OUTPUT"),
        ]
    )
    documents = [Document(page_content=TEXTS[name]) for name in names]
    embedder = Directions({question: ("smelt", "shrimps", "eels", "sauna")})
    splits = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200).split_documents(documents)
    store = InMemoryVectorStore.from_documents(splits, embedder)

    def concepts_of(text):
        prompt = PromptTemplate(
            input_variables=["text"],
            template="Extract key concepts from the following text:\n\n{text}\n\nKey concepts:",
        )
        return (prompt | model.with_structured_output(Concepts)).invoke({"text": text}).concepts_list

    with ThreadPoolExecutor() as pool:
        nodes = [
            {"content": one.page_content, "concepts": {concept.lower() for concept in found}}
            for one, found in zip(splits, pool.map(concepts_of, [one.page_content for one in splits]), strict=True)
        ]
    edges = {
        place: [
            (other, len(one["concepts"] & two["concepts"]) / min(len(one["concepts"]), len(two["concepts"])))
            for other, two in enumerate(nodes)
            if other != place and one["concepts"] & two["concepts"]
        ]
        for place, one in enumerate(nodes)
    }
    check = PromptTemplate(
        input_variables=["query", "context"],
        template=(
            "Given the query: '{query}'\n\nAnd the current context:\n{context}\n\nDoes this context provide a complete "
            "answer to the query? If yes, provide the answer.\n\nIs complete answer (Yes/No):\nAnswer (if complete):"
        ),
    ) | model.with_structured_output(AnswerCheck)

    def retrieve(query):
        retriever = store.as_retriever(search_type="similarity", search_kwargs={"k": 5})
        extractor = LLMChainExtractor.from_llm(model)
        return ContextualCompressionRetriever(base_compressor=extractor, base_retriever=retriever).invoke(query)

    def walk(query, relevant):
        queue, distances, visited, path, context = [], {}, set(), [], ""
        for one in relevant:
            (closest, score), *_ = store.similarity_search_with_score(one.page_content, k=1)
            place = next(place for place, node in enumerate(nodes) if node["content"] == closest.page_content)
            distances[place] = 1 / score
            heapq.heappush(queue, (1 / score, place))

        def answer_at(place):
            nonlocal context
            path.append(place)
            context += ("\n" if context else "") + nodes[place]["content"]
            checked = check.invoke({"query": query, "context": context})
            return checked.answer if checked.is_complete else None

        while queue:
            distance, place = heapq.heappop(queue)
            if distance > distances[place] or place in path:
                continue
            if answer := answer_at(place):
                return answer
            if nodes[place]["concepts"] <= visited:
                continue
            visited |= nodes[place]["concepts"]
            for other, weight in edges[place]:
                further = distance + 1 / weight
                if further >= distances.get(other, float("inf")):
                    continue
                distances[other] = further
                heapq.heappush(queue, (further, other))
                if other not in path and (answer := answer_at(other)):
                    return answer
        respond = (
            PromptTemplate.from_template("Answer from the context.\n\nContext: {context}\n\nQuery: {query}") | model
        )
        return respond.invoke({"query": query, "context": context}).content

    def ask(recorder):
        with recorder.start(query=question):
            return walk(question, retrieve(question))

    return ask


WITH_HANDLER = {
    "multi-vector": multi_vector,
    "anthropic-iterative-search": anthropic_iterative_search,
}
IN_BLOCK = {  # what is returned is asked in blocks
    "context-window-enrichment": context_window_enrichment,
    "explainable-retrieval": explainable_retrieval,
    "graph-rag": graph_rag,
}
