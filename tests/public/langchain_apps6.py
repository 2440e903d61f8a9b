"""Applications of LangChain of the seventh draw: records that are searched as texts, a search by the kind of the question,
passages that tell something new, and a bot whose models are asked by plain requests."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.llms import LLM
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter
from pydantic import BaseModel, Field

from ragtrace.model import Message
from ragtrace_langchain import mark_retrieved, mark_selected
from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions
from tests.public.texts import TEXTS


class FlatIndex:
    """An index of vectors that compares a query with each of them, as the flat one of FAISS does."""

    def __init__(self, vectors):
        self.vectors = np.array(vectors, dtype="float32")

    def search(self, queries, k):
        squares = ((self.vectors - np.array(queries, dtype="float32")[0]) ** 2).sum(axis=1)
        indices = squares.argsort(kind="stable")[:k]
        return squares[indices][None, :], indices[None, :]

    def reconstruct_batch(self, indices):
        return self.vectors[indices]


def prize(year, category, motivation, *names):
    """Return a record of a prize, as a service gives it out in JSON."""
    laureates = []
    for name in names:
        firstname, _, surname = name.partition("/")
        laureates.append(
            {"firstname": firstname, **({"surname": surname} if surname else {}), "motivation": motivation}
        )
    return {"year": year, "category": category, "laureates": laureates}


PRIZES = {
    "prizes": [
        prize("1884", "healing", "for beach cabbage in brine, against scurvy", "Jens/Toft", "Else/Ravn"),
        prize("1903", "food", "for a rusk that keeps for three years", "Widow Brix"),
        prize("1926", "rigging", "for a knot that opens under ice", "Per/Dahl"),
        prize("1931", "healing", "for splints of willow that hold a rib at sea", "Inger/Holm"),
        prize("1952", "healing", "for drops against sand in the eyes", "Bodil/Krag"),
        prize("1967", "animals", "for a cast in which a sheepdog can run", "Ove/Lund"),
    ]
}


def json_rag():
    """Fields of JSON records are joined to texts and embedded; the records that are nearest to a query are listed."""
    query_text = "An invention that healed people"
    model = Directions({query_text: ("prize_scurvy", "prize_eyes", "prize_ribs", "prize_dog", "prize_bread")})
    jrag_config = {
        "Year": "$.year",
        "Category": "$.category",
        "Laureates": "$.laureates[*].full_name",
        "Motivation": "$.laureates[0].motivation",
    }

    def found_at(record, path):
        values = [record]
        for name, place in re.findall(r"\.(\w+)(?:\[(\*|\d+)\])?", path):
            values = [value[name] for value in values]
            if place:
                values = [one for value in values for one in (value if place == "*" else [value[int(place)]])]
        return values

    def to_text(record):
        return ", ".join(f"{label}: {', '.join(found_at(record, path))}" for label, path in jrag_config.items())

    def encode(texts):
        return np.array([model.embed_query(text) for text in texts]).astype("float32")

    def full_name(laureate):
        return f"{laureate['firstname']} {laureate['surname']}" if "surname" in laureate else laureate["firstname"]

    prizes_lst = [
        {**one, "laureates": [{**laureate, "full_name": full_name(laureate)} for laureate in one["laureates"]]}
        for one in PRIZES["prizes"]
    ]
    prizes_tagged_lst = [{**one, "jrag_text": to_text(one)} for one in prizes_lst]
    corpus_texts = [item["jrag_text"] for item in prizes_tagged_lst]
    corpus_metadata = [{"original_index": place, "data": item} for place, item in enumerate(prizes_tagged_lst)]
    index = FlatIndex(encode(corpus_texts))

    def ask(recorder):
        with recorder.start(query=query_text) as run:
            distances, indices = index.search(encode([query_text]), 5)
            items = [corpus_metadata[place]["data"] for place in indices[0]]
            run.retrieved(
                [{"text": item["jrag_text"], "metadata": {"category": item["category"]}} for item in items],
                source="prizes",
            )
            return [
                f"Rank {rank}:\n  Distance: {distance:.4f}\n  ID: {item.get('id', 'N/A')}\n"
                f"  Category: {item['category']}\n  Content: {item}"
                for rank, (distance, item) in enumerate(zip(distances[0], items, strict=True), start=1)
            ]

    return ask


class CategoriesOptions(BaseModel):
    """The category of a query."""

    category: str = Field(description="Factual, Analytical, Opinion, or Contextual")


class RelevantScore(BaseModel):
    """How relevant a document is to a query."""

    score: float


class SelectedIndices(BaseModel):
    """Indices of selected documents."""

    indices: list[int]


class SubQueries(BaseModel):
    """Sub-queries for a comprehensive analysis."""

    sub_queries: list[str]


class BaseRetrievalStrategy:
    """A store of its own, and a model."""

    def __init__(self, texts, embeddings, llm):
        documents = CharacterTextSplitter(chunk_size=800, chunk_overlap=0).create_documents(texts)
        self.db = InMemoryVectorStore.from_documents(documents, embeddings)
        self.llm = llm

    def search(self, query, k):
        return mark_retrieved(self.db.similarity_search(query, k=k), source="texts")

    def ask(self, template, **given):
        return (PromptTemplate.from_template(template) | self.llm).invoke(given).content

    def fill(self, form, template, **given):
        return (PromptTemplate.from_template(template) | self.llm.with_structured_output(form)).invoke(given)

    def best(self, docs, k, template, **given):
        ranked_docs = [
            (doc, float(self.fill(RelevantScore, template, doc=doc.page_content, **given).score)) for doc in docs
        ]
        ranked_docs.sort(key=lambda one: one[1], reverse=True)
        return [doc for doc, _ in ranked_docs[:k]]

    def selected(self, docs, template, length, **given):
        docs_text = "\n".join(f"{place}: {doc.page_content[:length]}..." for place, doc in enumerate(docs))
        indices = self.fill(SelectedIndices, template, docs=docs_text, **given).indices
        return [docs[place] for place in indices if place < len(docs)]


class FactualRetrievalStrategy(BaseRetrievalStrategy):
    """A query that is made better; what it finds is ranked one by one."""

    def retrieve(self, query, k=4):
        enhanced_query = self.ask(
            "Enhance this factual query for better information retrieval: {query}", query=query
        )
        return self.best(
            self.search(enhanced_query, k * 2),
            k,
            "From 1 to 10, how relevant is this document to the query: '{query}'?\nDocument: {doc}\nRelevance score:",
            query=enhanced_query,
        )


class AnalyticalRetrievalStrategy(BaseRetrievalStrategy):
    """A search for each of several sub-queries; documents that differ are selected."""

    def retrieve(self, query, k=3):
        made = self.fill(
            SubQueries,
            "Generate {k} aspects or sub-questions to analyze comprehensively: {query}",
            query=query,
            k=k,
        )
        all_docs = [doc for sub_query in made.sub_queries for doc in self.search(sub_query, 2)]
        return self.selected(
            all_docs,
            "Select the most diverse and relevant set of {k} documents for the query: '{query}'\nDocuments: {docs}\n"
            "Return only the indices of selected documents as a list of integers.",
            50,
            query=query,
            k=k,
        )


class OpinionRetrievalStrategy(BaseRetrievalStrategy):
    """A search for each of several viewpoints; one document of each opinion is selected."""

    def retrieve(self, query, k=3):
        viewpoints = self.ask(
            "Identify {k} distinct viewpoints or perspectives on the topic: {query}", query=query, k=k
        ).split("\n")
        all_docs = [doc for viewpoint in viewpoints for doc in self.search(f"{query} {viewpoint}", 2)]
        return self.selected(
            all_docs,
            "Classify these documents into distinct opinions on '{query}' and select the {k} most diverse ones:\n"
            "Documents: {docs}\nSelected indices:",
            100,
            query=query,
            k=k,
        )


class ContextualRetrievalStrategy(BaseRetrievalStrategy):
    """A query that is made anew for a user; what it finds is ranked with the user in mind."""

    def retrieve(self, query, k=4, user_context=None):
        context = user_context or "No specific context provided"
        contextualized_query = self.ask(
            "Given the user context: {context}\nReformulate the query to best address the user's needs: {query}",
            query=query,
            context=context,
        )
        return self.best(
            self.search(contextualized_query, k * 2),
            k,
            "Given the query: '{query}' and user context: '{context}', rate this document from 1 to 10:\n"
            "Document: {doc}\nRelevance score:",
            query=contextualized_query,
            context=context,
        )


class AdaptiveRetriever(BaseRetriever):
    """Asks a model for the kind of a query, and the strategy of that kind for documents."""

    classifier: Any
    strategies: dict[str, Any]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.strategies[self.classifier.invoke(query).category].retrieve(query)


def adaptive_retrieval():
    """A model says of which kind a question is; each kind is searched, ranked or selected in a way of its own."""
    names = ("wheels_height", "wheels_first", "wheels_cable", "wheels_money", "wheels_noise", "wheels_birds")
    height, first, cable, money, noise, birds = names
    how_tall = "How tall are the wind wheels of Vester?"
    changed = "How have the wind wheels changed life on Vester?"
    good = "Are the wind wheels good for Vester?"
    rent = "What should I know before I rent the house below the wheels?"
    kinds = {how_tall: "Factual", changed: "Analytical", good: "Opinion", rent: "Contextual"}
    enhanced = "Height in metres of the turbines on Vester's north field"
    contextualized = "Drawbacks and benefits for a tenant who lives next to turbines"
    sub_queries = ["What do the turbines earn?", "Whom do the turbines disturb?", "Where does the current go?"]
    viewpoints = ["1. Households: they earn", "2. Innkeepers: they lose guests", "3. The warden: nests are gone"]
    payers, losers, warden = (f"{good} {one}" for one in viewpoints)
    earned, disturbed, current = sub_queries
    embeddings = Directions(
        {
            enhanced: (height, cable, first, money, noise, birds),
            earned: (money, cable),
            disturbed: (noise, birds),
            current: (cable, first),
            payers: (money, height),
            losers: (noise, money),
            warden: (birds, noise),
            contextualized: (noise, height, birds, money, cable, first),
        }
    )
    factual_scores = {height: 9.5, cable: 2, first: 7, money: 1, noise: 4, birds: 3}
    contextual_scores = {noise: 9, height: 8.5, birds: 5, money: 6, cable: 1, first: 2}

    def scored(scores):
        def reply(messages):
            name = next(name for name in scores if TEXTS[name] in messages[-1].content)
            return calls("RelevantScore", score=float(scores[name]))

        return reply

    model = Replies(
        rules=[
            *(
                (f"Query: {one}\nCategory", calls("CategoriesOptions", category=kind))
                for one, kind in kinds.items()
            ),
            ("Enhance this factual query", enhanced),
            ("From 1 to 10", scored(factual_scores)),
            ("Generate 3 aspects", calls("SubQueries", sub_queries=sub_queries)),
            ("Select the most diverse", calls("SelectedIndices", indices=[0, 2, 4])),
            ("Identify 3 distinct", "\n".join(viewpoints)),
            ("Classify these documents", calls("SelectedIndices", indices=[4, 0, 2])),
            ("Reformulate the query", contextualized),
            ("Given the query", scored(contextual_scores)),
            (how_tall, "Ninety-two metres; the smith's one was far lower."),
            (changed, "People earn by them, sleep worse, and sell their surplus."),
            (good, "That depends: birds and guests stay away, and everybody gets a share."),
            (rent, "You will hear them, and get your part of what they earn."),
        ]
    )
    prompt = PromptTemplate.from_template(
        "Classify the following query as one of these: Factual, Analytical, Opinion, or Contextual.\nQuery: {query}\nCategory:"
    )
    texts = [TEXTS[name] for name in names]
    retriever = AdaptiveRetriever(
        classifier=prompt | model.with_structured_output(CategoriesOptions),
        strategies={
            "Factual": FactualRetrievalStrategy(texts, embeddings, model),
            "Analytical": AnalyticalRetrievalStrategy(texts, embeddings, model),
            "Opinion": OpinionRetrievalStrategy(texts, embeddings, model),
            "Contextual": ContextualRetrievalStrategy(texts, embeddings, model),
        },
    )
    llm_chain = (
        PromptTemplate.from_template(
            "Answer the question at the end with these pieces of context. If you do not know it, say so.\n\n{context}\n\n"
            "Question: {question}\nAnswer:"
        )
        | model
    )

    def answer(query):
        docs = retriever.invoke(query)
        return llm_chain.invoke({"context": "\n".join(doc.page_content for doc in docs), "question": query})

    def ask(recorder):
        answers = []
        for question in kinds:
            with recorder.start(query=question):
                answers.append(answer(question).content)
        return answers

    return ask


class Unit(Embeddings):
    """Vectors of length one that are given for each text."""

    def __init__(self, directions):
        self.vectors = {text: (np.array(one) / np.linalg.norm(one)).tolist() for text, one in directions.items()}

    def embed_documents(self, texts):
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        return self.vectors[text]


def dartboard():
    """The nearest passages repeat each other; of more of them those are taken that tell something new."""
    test_query = "Why does the cliff of Vester retreat?"
    directions = {
        "cliff_sea": (0.95, 0.3, 0),
        "cliff_clay": (0.93, 0.33, 0.1),
        "cliff_rain": (0.8, -0.5, 0.1),
        "cliff_stairs": (0.1, 0, 1),
    }
    documents = [Document(page_content=TEXTS[name], metadata={"page": 0}) for name in directions] * 3  # a dense set
    splits = RecursiveCharacterTextSplitter(
        chunk_size=1000, chunk_overlap=200, length_function=len
    ).split_documents(documents)
    embeddings = Unit({test_query: (1, 0, 0), **{TEXTS[name]: one for name, one in directions.items()}})
    chunks_vector_store = InMemoryVectorStore.from_documents(splits, embeddings)
    index_to_docstore_id = dict(enumerate(chunks_vector_store.store))
    index = FlatIndex([one["vector"] for one in chunks_vector_store.store.values()])
    diversity_weight, relevance_weight, sigma = 1.0, 1.0, 0.1

    def idx_to_text(idx):
        return chunks_vector_store.get_by_ids([index_to_docstore_id[idx]])[0].page_content

    def nearest(query, k):
        q_vec = np.array(chunks_vector_store.embeddings.embed_documents([query]))
        _, indices = index.search(q_vec, k)
        texts = mark_retrieved([idx_to_text(one) for one in indices[0]], source="cliff")
        return q_vec, index.reconstruct_batch(indices[0]), texts

    def get_context(query, k):
        return nearest(query, k)[2]

    def lognorm(dist):
        return -np.log(sigma) - 0.5 * np.log(2 * np.pi) - dist**2 / (2 * sigma**2)

    def greedy_dartsearch(qprobs, ccprobs, texts, k):
        dset = [int(np.argmax(qprobs))]
        maxes = ccprobs[dset[0]]
        while len(dset) < k:
            newmaxes = np.maximum(maxes, ccprobs)
            scores = np.logaddexp.reduce(newmaxes * diversity_weight + qprobs * relevance_weight, axis=1)
            scores[dset] = -np.inf
            dset.append(int(np.argmax(scores)))
            maxes = newmaxes[dset[-1]]
        return [texts[one] for one in dset]

    def get_context_with_dartboard(query, k):
        q_vec, vecs, texts = nearest(query, k * 3)
        qprobs, ccprobs = lognorm(1 - q_vec @ vecs.T), lognorm(1 - vecs @ vecs.T)
        return mark_selected(greedy_dartsearch(qprobs, ccprobs, texts, k))

    def ask(recorder):
        shown = []
        for get in (get_context, get_context_with_dartboard):
            with recorder.start(query=test_query):
                shown.append(get(test_query, k=3))
        return shown

    return ask


class Grader(LLM):
    """A model of texts that grades a chunk: "yes" where one of its words stands in the prompt."""

    words: tuple[str, ...]

    @property
    def _llm_type(self):
        return "grader"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return " Yes" if any(word in prompt for word in self.words) else " No"


def eu_green_faq():
    """A question and a clearer form of it are searched; chunks are graded one by one, summarised by a plain request, and
    the summary is compared with a known answer by its words."""
    user_question = "When must a business of Vester report its waste?"
    rephrased = "By which date is a report on waste due on Vester, and who need not write one?"
    summary = "It is due on the last day of March, at a price for those who miss it; small inns are free of it."
    gold_qa_dict = [
        {"query": "Where does glass go?", "answer": "Into green bins."},
        {"query": user_question, "answer": "By 31 March of each year; small inns need no report."},
    ]
    names = [name for name in TEXTS if name.startswith("waste_")]
    embedding_model = Directions(
        {
            user_question: (
                "waste_report",
                "waste_fine",
                "waste_glass",
                "waste_school",
                "waste_nets",
                "waste_paint",
            ),
            rephrased: ("waste_report", "waste_inn", "waste_fine", "waste_school", "waste_paint", "waste_glass"),
        }
    )

    def semantic_chunks(content, percentile):
        sentences = re.split(r"(?<=[.?!])\s+", content.strip())
        vectors = np.array(embedding_model.embed_documents(sentences))
        steps = [1 - one @ two for one, two in pairwise(vectors)]
        chunks = [[sentences[0]]]
        for sentence, step in zip(sentences[1:], steps, strict=True):
            if step > np.percentile(steps, percentile):
                chunks.append([])
            chunks[-1].append(sentence)
        return [Document(page_content=" ".join(one)) for one in chunks]

    content = "".join(f"{TEXTS[name]}\n" for name in names)
    vectorstore = InMemoryVectorStore.from_documents(semantic_chunks(content, 50), embedding_model)
    llm = Grader(words=("reports its waste", "reports waste", "reports no waste"))

    def post(data):
        """Stand for a request to a model's own service."""
        prompt = data["messages"][-1]["content"]
        said = f" {rephrased}\n" if prompt.startswith("You are a rephrasing expert") else summary
        return {"choices": [{"message": {"role": "assistant", "content": said}}]}

    def send(run, system, prompt):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        result = post({"model": "gpt-4o-mini", "messages": messages, "max_tokens": 150})
        text = result["choices"][0]["message"]["content"].strip()
        run.generated(
            model="gpt-4o-mini",
            inputs=[Message(role=one["role"], content=one["content"]) for one in messages],
            outputs=[Message(role="assistant", content=text)],
        )
        return text

    def relevance_grade(query, chunk_text):
        prompt = f"Query: {query}\nChunk: {chunk_text}\nIs this chunk relevant to the query? Respond only with 'yes' or 'no'."
        return llm.generate([prompt]).generations[0][0].text.strip().lower()

    def retrieve_relevant_chunks(query, top_k):
        found = mark_retrieved(vectorstore.similarity_search_with_score(query, k=top_k * 2), source="faq")
        relevant_chunks = [
            {"chunk_text": doc.page_content, "metadata": doc.metadata, "combined_score": similarity}
            for doc, similarity in found
            if relevance_grade(query, doc.page_content) == "yes"
        ]
        return sorted(relevant_chunks, key=lambda one: one["combined_score"], reverse=True)[:top_k]

    def evaluate_answer(generated_answer, query):
        gold = next((one["answer"] for one in gold_qa_dict if one["query"].lower() == query.strip().lower()), None)
        if gold is None:
            return {"error": "No Gold Standard: The query is not in the gold Q&A dictionary."}
        one, two = (Counter(text.lower().split()) for text in (generated_answer, gold))
        norm = math.sqrt(sum(value**2 for value in one.values()) * sum(value**2 for value in two.values()))
        cosine_similarity = sum(one[word] * two[word] for word in one) / norm
        f1_score = 2 * len(one.keys() & two.keys()) / (len(one) + len(two))
        return {
            "cosine_similarity": cosine_similarity,
            "f1_score": f1_score,
            "human_review_needed": cosine_similarity < 0.85,
            "generated_answer": generated_answer,
            "gold_answer": gold,
        }

    def process_query(run, query, top_k=3, relevance_threshold=0.5):
        rephrased_query = send(
            run,
            "You are an assistant.",
            f"You are a rephrasing expert. Rephrase the question to make it clearer: {query}",
        )
        chunks = [*retrieve_relevant_chunks(query, top_k), *retrieve_relevant_chunks(rephrased_query, top_k)]
        all_chunks = sorted(chunks, key=lambda one: one["combined_score"], reverse=True)
        if not all_chunks or all_chunks[0]["combined_score"] < relevance_threshold:
            return "I don't know the answer to this question. Can you try to rephrase it?", None
        text = "\n".join(mark_selected([one["chunk_text"] for one in all_chunks]))
        told = send(
            run,
            "You are a summarization assistant. Your task is to summarize text into two sentences.",
            f"Summarize the following text based on the query.\n\nQuery: {query}\n\nText to summarize: {text}\n\n"
            "Please make sure the summary is brief, and a direct answer to the query.",
        )
        return told, evaluate_answer(told, query)

    def ask(recorder):
        with recorder.start(query=user_question) as run:
            final_summary, evaluation_results = process_query(run, user_question)
            run.answered(final_summary)
        return final_summary, evaluation_results

    return ask


IN_BLOCK = {  # what is returned is asked in blocks
    "json-rag": json_rag,
    "adaptive-retrieval": adaptive_retrieval,
    "dartboard": dartboard,
    "eu-green-faq": eu_green_faq,
}
