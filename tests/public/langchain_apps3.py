"""Applications of LangChain of the fourth draw: graded passages, extracts, rewritten questions, a draft, propositions."""

from __future__ import annotations

import uuid

from langchain_classic.chains import FlareChain
from langchain_classic.chains.flare.prompts import PROMPT, QUESTION_GENERATOR_PROMPT
from langchain_classic.retrievers import MultiVectorRetriever
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import PydanticOutputParser, StrOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputToolsParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.stores import InMemoryByteStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import BaseModel

from ragtrace_langchain import mark_selected
from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions, Found
from tests.public.texts import TEXTS


class GradeDocuments(BaseModel):
    """Whether a document is relevant."""

    binary_score: str


class GradeHallucinations(BaseModel):
    """Whether an answer is in the facts."""

    binary_score: str


class HighlightDocuments(BaseModel):
    """The parts of documents that an answer rests on."""

    id: list[str]
    title: list[str]
    source: list[str]
    segment: list[str]


def reliable_rag():
    """Passages are graded one by one; the answer is checked, and the parts that it rests on are looked up."""
    question = "Which nets may be used on the lake?"
    names = ("nets_gill", "nets_shop", "nets_trap", "nets_museum")
    lookup = HighlightDocuments(
        id=["doc1", "doc2"],
        title=["nets_gill", "nets_trap"],
        source=["https://law.example/nets_gill", "https://law.example/nets_trap"],
        segment=["Gill nets of at least 40 mm are allowed", "Trap nets need a permit"],
    )

    def graded(messages):
        is_relevant = any(TEXTS[name] in messages[-1].content for name in ("nets_gill", "nets_trap"))
        return calls("GradeDocuments", binary_score="yes" if is_relevant else "no")

    model = Replies(
        rules=[
            ("You grade whether a retrieved document", graded),
            ("You grade whether a generation", calls("GradeHallucinations", binary_score="yes")),
            ("Extract the exact segments", lookup.model_dump_json()),
            ("", "Wide gill nets in summer, and traps if you have a permit."),
        ]
    )
    everything = [*names, "nets_bank"]
    store = InMemoryVectorStore.from_documents(
        [
            Document(page_content=TEXTS[name], metadata={"title": name, "source": f"https://law.example/{name}"})
            for name in reversed(everything)
        ],
        Directions({question: names}),
    )
    retriever = store.as_retriever(search_type="similarity", search_kwargs={"k": 4})
    grade_prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "You grade whether a retrieved document bears on a question, with 'yes' or 'no'."),
            ("human", "Retrieved document: \n\n {document} \n\n User question: {question}"),
        ]
    )
    retrieval_grader = grade_prompt | model.with_structured_output(GradeDocuments)
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "You answer questions, in three sentences at most."),
            (
                "human",
                "Retrieved documents: \n\n <docs>{documents}</docs> \n\n User question: <question>{question}</question>",
            ),
        ]
    )
    rag_chain = prompt | model | StrOutputParser()
    hallucination_prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "You grade whether a generation is grounded in facts, with 'yes' or 'no'."),
            (
                "human",
                "Set of facts: \n\n <facts>{documents}</facts> \n\n LLM generation: <generation>{generation}</generation>",
            ),
        ]
    )
    hallucination_grader = hallucination_prompt | model.with_structured_output(GradeHallucinations)
    parser = PydanticOutputParser(pydantic_object=HighlightDocuments)
    lookup_prompt = PromptTemplate(
        template=(
            "Extract the exact segments of the documents that the answer was made of.\n\n"
            "Used documents: <docs>{documents}</docs> \n\n User question: <question>{question}</question> \n\n "
            "Generated answer: <answer>{generation}</answer>\n\n{format_instructions}"
        ),
        input_variables=["documents", "question", "generation"],
        partial_variables={"format_instructions": parser.get_format_instructions()},
    )
    doc_lookup = lookup_prompt | model | parser

    def format_docs(docs):
        return "\n".join(
            f"<doc{place}>:\nTitle:{one.metadata['title']}\nSource:{one.metadata['source']}\n"
            f"Content:{one.page_content}\n</doc{place}>\n"
            for place, one in enumerate(docs, start=1)
        )

    def ask(recorder):
        with recorder.start(query=question):
            docs_to_use = []
            for one in retriever.invoke(question):
                grade = retrieval_grader.invoke({"question": question, "document": one.page_content})
                if grade.binary_score == "yes":
                    docs_to_use.append(one)
            mark_selected(docs_to_use)
            shown = format_docs(docs_to_use)
            generation = rag_chain.invoke({"documents": shown, "question": question})
            grounded = hallucination_grader.invoke({"documents": shown, "generation": generation})
            found = doc_lookup.invoke({"documents": shown, "question": question, "generation": generation})
        return generation, grounded.binary_score, found.segment

    return ask


class KeyDevelopment(BaseModel):
    """An event in the history of the regatta."""

    year: int
    description: str
    evidence: str


class ExtractionData(BaseModel):
    """The events of a text."""

    key_developments: list[KeyDevelopment]


def extraction_long_text(config):
    """Events are extracted from all pieces of a page side by side, then from the piece alone that a search finds."""
    question = "Key developments of the regatta"
    founded = [
        {"year": 1887, "description": "The first regatta.", "evidence": "The first regatta was sailed in 1887."},
        {"year": 1911, "description": "No engines any more.", "evidence": "In 1911 motor boats were shut out."},
    ]
    women = [{"year": 1974, "description": "Women steer.", "evidence": "Since 1974 women steer boats of their own"}]
    model = Replies(
        rules=[
            (TEXTS["race_founded"], calls("ExtractionData", key_developments=founded)),
            (TEXTS["race_women"], calls("ExtractionData", key_developments=women)),
            ("", calls("ExtractionData", key_developments=[])),
        ]
    )
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "You find historic developments in a text. Extract nothing where there are none."),
            ("human", "{text}"),
        ]
    )
    extractor = prompt | model.with_structured_output(schema=ExtractionData, include_raw=False)
    page = "\n\n".join(TEXTS[name] for name in ("race_course", "race_founded", "race_women"))
    texts = RecursiveCharacterTextSplitter(chunk_size=140, chunk_overlap=0).split_text(page)
    assert len(texts) == 3
    extractions = extractor.batch([{"text": one} for one in texts], {"max_concurrency": 5})
    assert [len(one.key_developments) for one in extractions] == [0, 2, 1]

    store = InMemoryVectorStore.from_texts(texts, Directions({question: ("race_founded", "race_women")}))
    retriever = store.as_retriever(search_kwargs={"k": 1})
    rag_extractor = {"text": retriever | (lambda docs: docs[0].page_content)} | extractor
    return [one.year for one in rag_extractor.invoke(question, config).key_developments]


def query_decomposition(config):
    """A question is rewritten, made more general, and split into simpler ones; nothing is searched."""
    question = "Why is the lake getting warmer?"
    model = Replies(
        rules=[
            ("Rewritten query:", "What has raised the surface temperature of Lake Ilm since 1960?"),
            ("Step-back query:", "What governs the temperature of lakes?"),
            ("Sub-queries:", "Sub-queries:\n1. How warm is the inflow?\n2. How much sun reaches the lake?"),
        ]
    )

    def chain(template):
        return PromptTemplate(input_variables=["original_query"], template=template) | model

    rewriter = chain(
        "You reformulate queries for a search.\n\nOriginal query: {original_query}\n\nRewritten query:"
    )
    step_back = chain("You make queries more general.\n\nOriginal query: {original_query}\n\nStep-back query:")
    decomposer = chain(
        "You break queries down into 2-4 simpler ones.\n\nOriginal query: {original_query}\n\n"
        "example: What do perch eat?\n\nSub-queries:\n1. What do perch eat in winter?\n2. What do young perch eat?"
    )

    def decompose_query(original_query):
        lines = decomposer.invoke(original_query, config).content.split("\n")
        return [one.strip() for one in lines if one.strip() and not one.strip().startswith("Sub-queries:")]

    return [
        rewriter.invoke(question, config).content,
        step_back.invoke(question, config).content,
        decompose_query(question),
    ]


def unsure(text, *words):
    """Return a reply with the probability of each of its tokens; the given words are unsure."""
    tokens = [
        {"token": (" " if place else "") + word, "logprob": -3.0 if word in words else -0.01}
        for place, word in enumerate(text.split(" "))
    ]
    return AIMessage(text, response_metadata={"logprobs": {"content": tokens}})


def flare_chain():
    """A draft is written without passages; what is unsure in it is asked for, searched and written anew, twice."""
    question = "How long does a seiche of the lake take, how high is it, and who measured it first?"
    first = "A wave of this kind needs about 40 minutes to cross, and lifts the water by some 90 centimetres."
    second = "It was measured by an engineer from the town of Storby in 1850."
    searches = {
        "How long does a seiche of Lake Ilm take?": ("seiche_period",),
        "How high is a seiche of Lake Ilm?": ("seiche_height",),
        "Who measured the seiche of Lake Ilm first?": ("seiche_record",),
    }
    long, high, who = searches
    model = Replies(
        rules=[
            ('phrase " 40 minutes', long),
            ('phrase " 90 centimetres', high),
            ('phrase " engineer', who),
            (TEXTS["seiche_record"], "Olof Rask, who taught at the school, was the first: in 1904.FINISHED"),
            (TEXTS["seiche_period"], "It takes 71 minutes to swing, and rises by a foot in a storm."),
            ("rises by a foot", unsure(second, "engineer")),
            ("", unsure(first, "40", "90")),
        ]
    )
    chain = FlareChain(
        question_generator_chain=QUESTION_GENERATOR_PROMPT | model | StrOutputParser(),
        response_chain=PROMPT | model,
        retriever=Found(queries=searches, has_ids=False),
        min_prob=0.3,
    )

    def ask(recorder):
        with recorder.start(query=question):
            return chain.invoke({"user_input": question})["response"]

    return ask


def propositional_retrieval(config):
    """Pages are found by propositions that a model made of them, and shown whole."""
    question = "Who blew the first glass of Storby, and why is it green"
    propositions = {
        "glass_first": [
            "Two brothers from Bohemia blew the first glass.",
            "The brothers from Bohemia paid no tax.",
        ],
        "glass_colour": ["Iron in the sand makes Storby's glass green."],
        "glass_hut": ["The hut burnt down twice.", "The bell of the hut is in the school."],
    }
    model = Replies(
        rules=[
            (question, "Brothers from Bohemia; the colour is from iron."),
            *((TEXTS[name], calls("decompose_content", propositions=made)) for name, made in propositions.items()),
        ]
    )
    decompose = {
        "type": "function",
        "function": {
            "name": "decompose_content",
            "description": "Return the propositions.",
            "parameters": {
                "type": "object",
                "properties": {"propositions": {"type": "array", "items": {"type": "string"}}},
                "required": ["propositions"],
            },
        },
    }
    proposition_prompt = ChatPromptTemplate.from_messages(
        [
            (
                "system",
                'Decompose the "Content" into clear and simple propositions, as a list of strings, in JSON.',
            ),
            ("user", "Decompose the following:\n{input}"),
        ]
    )
    proposition_chain = (
        proposition_prompt
        | model.bind(tools=[decompose], tool_choice={"type": "function", "function": {"name": "decompose_content"}})
        | JsonOutputToolsParser()
        | (lambda made: made[0]["args"]["propositions"])
    ).with_fallbacks([RunnableLambda(lambda given: [])])

    class Positions(Directions):  # of propositions, which stand where their page does
        def embed_documents(self, texts):
            page_of = {one: TEXTS[name] for name, made in propositions.items() for one in made}
            return super().embed_documents([page_of[one] for one in texts])

    docs = [
        Document(page_content=TEXTS[name], metadata={"source": f"https://storby.example/{name}"})
        for name in propositions
    ]
    retriever = MultiVectorRetriever(
        vectorstore=InMemoryVectorStore(Positions({question: ("glass_first", "glass_colour", "glass_hut")})),
        byte_store=InMemoryByteStore(),
        id_key="doc_id",
        search_kwargs={"k": 3},
    )
    numbers = [str(uuid.uuid5(uuid.NAMESPACE_DNS, one.metadata["source"])) for one in docs]
    made = proposition_chain.batch([{"input": one.page_content} for one in docs], {"max_concurrency": 10})
    assert [len(one) for one in made] == [2, 1, 2]
    retriever.vectorstore.add_documents(
        [
            Document(page_content=one, metadata={"doc_id": number})
            for number, found in zip(numbers, made, strict=True)
            for one in found
        ]
    )
    retriever.docstore.mset(list(zip(numbers, docs, strict=True)))

    def format_docs(docs):
        return "\n".join(
            f"<Document id={place}>\n{one.page_content}\n</Document>" for place, one in enumerate(docs)
        )

    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Answer based on the retrieved documents:\n<Documents>\n{context}\n</Documents>"),
            ("user", "{question}?"),
        ]
    )
    chain = (
        {"context": retriever | format_docs, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    )
    return chain.with_types(input_type=str).invoke(question, config)


WITH_HANDLER = {
    "extraction-long-text": extraction_long_text,
    "query-decomposition": query_decomposition,
    "propositional-retrieval": propositional_retrieval,
}
IN_BLOCK = {"reliable-rag": reliable_rag, "flare-chain": flare_chain}  # what is returned is asked in a block
