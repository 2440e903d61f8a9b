"""Applications of LangChain of the fifth draw: marks of a person, rows for a report, queries that are passages' only use."""

from __future__ import annotations

import json
import sqlite3

from langchain_classic.chains import RetrievalQA
from langchain_core.documents import Document
from langchain_core.messages import SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableParallel, RunnablePassthrough, chain
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions
from tests.public.texts import TEXTS


class Response(BaseModel):
    """Whether a feedback is relevant."""

    answer: str


def retrieval_feedback_loop():
    """A question is answered; its passages are searched again and sorted by marks that a model finds relevant."""
    question = "When does the last tram go up to the observatory?"
    names = ("tram_route", "tram_fare", "tram_depot")
    answer = "At midnight, from the mill."

    def relevant(messages):
        return calls("Response", answer="yes" if TEXTS["tram_depot"] in messages[-1].content else "no")

    model = Replies(rules=[("Is this feedback relevant?", relevant), ("", answer)])
    content = [Document(page_content=TEXTS[name], metadata={"relevance_score": 1.0}) for name in reversed(names)]
    embeddings = Directions({question: names})
    retriever = InMemoryVectorStore.from_documents(content, embeddings).as_retriever(search_kwargs={"k": 3})
    qa_chain = RetrievalQA.from_chain_type(model, retriever=retriever)
    feedback_data = []

    relevance_prompt = PromptTemplate(
        input_variables=["query", "feedback_query", "doc_content", "feedback_response"],
        template=(
            "Say whether the feedback bears on the current query and the document.\n"
            "Current query: {query}\nFeedback query: {feedback_query}\nDocument content: {doc_content}\n"
            "Feedback response: {feedback_response}\n\nIs this feedback relevant? Reply 'yes' or 'no' only."
        ),
    )
    relevance_chain = relevance_prompt | model.with_structured_output(Response)

    def adjust_relevance_scores(query, docs):
        for one in docs:
            relevant_feedback = []
            for feedback in feedback_data:
                given = {
                    "query": query,
                    "feedback_query": feedback["query"],
                    "doc_content": one.page_content[:1000],
                    "feedback_response": feedback["response"],
                }
                if relevance_chain.invoke(given).answer == "yes":
                    relevant_feedback.append(feedback)
            if relevant_feedback:
                mean = sum(feedback["relevance"] for feedback in relevant_feedback) / len(relevant_feedback)
                one.metadata["relevance_score"] *= mean / 3
        return sorted(docs, key=lambda one: one.metadata["relevance_score"], reverse=True)

    def fine_tune_index():
        good = [one for one in feedback_data if one["relevance"] >= 4 and one["quality"] >= 4]
        more = [Document(page_content=f"{one['query']} {one['response']}") for one in good]
        return InMemoryVectorStore.from_documents([*content, *more], embeddings)

    def ask(recorder):
        response = qa_chain.invoke(question)["result"]
        feedback_data.append(
            {"query": question, "response": response, "relevance": 5, "quality": 5, "comments": ""}
        )
        adjusted = adjust_relevance_scores(question, retriever.invoke(question))
        retriever.search_kwargs.update(k=len(adjusted))
        return response, [one.page_content for one in adjusted], len(fine_tune_index().store)

    return ask


def sql_research_assistant(config):
    """A role and three queries are written; each is answered from rows, side by side; a report is written of it."""
    question = "Is the Nadel more dangerous than the Hochwart?"
    database = sqlite3.connect(":memory:", check_same_thread=False)
    for statement in (
        "CREATE TABLE peaks (name TEXT, height INTEGER, beds INTEGER, rescues INTEGER)",
        "INSERT INTO peaks VALUES ('Nadel', 2877, 41, 17), ('Hochwart', 2914, 12, 3)",
    ):
        database.execute(statement)

    def get_schema(_):
        return "\n\n".join(row[0] for row in database.execute("SELECT sql FROM sqlite_master"))

    def run_query(query):
        return str(database.execute(query).fetchall())

    heights, beds, rescues = "height of both peaks", "beds in huts of both peaks", "most rescues at a peak"
    agent_llm = Replies(
        rules=[
            (
                "task: ",
                json.dumps({"agent": "Mountain Agent", "agent_role_prompt": "You are a sober mountaineer."}),
            ),
            ("Write 3 google search queries", json.dumps([heights, beds, rescues])),
            (
                "Information: ",
                "# Nadel and Hochwart\n\nThe Nadel is lower, yet more people sleep and get lost there.",
            ),
            ("SQL Response: [('Hochwart', 2914)", "The Hochwart is the higher one, by 37 m."),
            ("SQL Response: [('Nadel', 41)", "Forty-one people can sleep below the Nadel."),
            ("SQL Response: ", "People had to be fetched from the Nadel more often than from anywhere."),
        ]
    )
    llm = Replies(
        rules=[
            (heights, "SELECT name, height FROM peaks ORDER BY height DESC\n\nThis sorts them."),
            (beds, "SELECT name, beds FROM peaks ORDER BY beds DESC"),
            (rescues, "SELECT name, rescues FROM peaks ORDER BY rescues DESC LIMIT 1"),
        ]
    )
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "Convert a question to a SQL query. No pre-amble."),
            (
                "human",
                "Write a SQL query for the schema below:\n{schema}\n\nQuestion: {question}\nSQL Query:",
            ),
        ]
    )
    sql_chain = (
        RunnablePassthrough.assign(schema=get_schema)
        | prompt
        | llm.bind(stop=["\nSQLResult:"])
        | StrOutputParser()
        | (lambda text: text.split("\n\n")[0])
    )
    prompt_response = ChatPromptTemplate.from_messages(
        [
            ("system", "Convert a SQL response to an answer in natural language. No pre-amble."),
            (
                "human",
                (
                    "The schema, question, query and response:\n{schema}\n\nQuestion: {question}\n"
                    "SQL Query: {query}\nSQL Response: {response}"
                ),
            ),
        ]
    )
    sql_answer_chain = (
        RunnablePassthrough.assign(query=sql_chain)
        | RunnablePassthrough.assign(schema=get_schema, response=lambda given: run_query(given["query"]))
        | RunnablePassthrough.assign(answer=prompt_response | agent_llm | StrOutputParser())
        | (lambda given: f"Question: {given['question']}\n\nAnswer: {given['answer']}")
    )
    choose_agent_prompt = ChatPromptTemplate.from_messages(
        [
            SystemMessage("Choose an agent for a task, as JSON: agent, agent_role_prompt."),
            ("user", "task: {task}"),
        ]
    )
    search_prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "{agent_prompt}"),
            ("user", "Write 3 google search queries on the following, as a JSON list: {question}"),
        ]
    )
    choose_agent = choose_agent_prompt | agent_llm | StrOutputParser() | json.loads
    search_query = search_prompt | agent_llm | StrOutputParser() | json.loads
    get_search_queries = (
        RunnablePassthrough().assign(
            agent_prompt=RunnableParallel({"task": lambda given: given})
            | choose_agent
            | (lambda made: made.get("agent_role_prompt"))
        )
        | search_query
    )
    search_chain = (
        get_search_queries
        | (lambda queries: [{"question": one} for one in queries])
        | sql_answer_chain.map()
        | ("\n\n".join)
    )
    report_prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "You are a research assistant who writes reports on a given text."),
            (
                "user",
                (
                    "Information: \n--------\n{research_summary}\n--------\n\n"
                    'Using the above information, answer the following question or topic: "{question}" in a report.'
                ),
            ),
        ]
    )
    writer_chain = report_prompt | agent_llm | StrOutputParser()
    whole = RunnablePassthrough().assign(research_summary=search_chain) | writer_chain
    return whole.invoke({"question": question}, config)


class Search(BaseModel):
    """Search over a database of records of rangers."""

    queries: list[str]


async def multi_query_structured(config):
    """A question becomes queries; what each of them finds is given back."""
    one, both = "what does Ida Kofler do", "what do Ida Kofler and Jon Platter do"
    ida, jon = "Ida Kofler work", "Jon Platter work"
    llm = Replies(rules=[(both, calls("Search", queries=[ida, jon])), (one, calls("Search", queries=[ida]))])
    prompt = ChatPromptTemplate.from_messages(
        [
            ("system", "You can search for what you need. Two different things take two queries."),
            ("human", "{question}"),
        ]
    )
    query_analyzer = {"question": RunnablePassthrough()} | prompt | llm.with_structured_output(Search)
    store = InMemoryVectorStore.from_texts(
        [TEXTS["ranger_jon"], TEXTS["ranger_ida"]], Directions({ida: ("ranger_ida",), jon: ("ranger_jon",)})
    )
    retriever = store.as_retriever(search_kwargs={"k": 1})

    @chain
    async def custom_chain(question):
        response = await query_analyzer.ainvoke(question)
        docs = []
        for query in response.queries:
            docs.extend(await retriever.ainvoke(query))
        return docs

    analyzed = query_analyzer.invoke(both, config).queries
    found = [await custom_chain.ainvoke(question, config) for question in (one, both)]
    return analyzed, [[doc.page_content for doc in docs] for docs in found]


WITH_HANDLER = {
    "sql-research-assistant": sql_research_assistant,
    "multi-query-structured": multi_query_structured,
}
IN_BLOCK = {"retrieval-feedback-loop": retrieval_feedback_loop}  # instrumented, and asked without a block
