"""Applications of the ninth draw: an engine over a French debate, a classic agent over two chains, a chat that fills in a form,
a search and a re-ranking in plain functions, a research assistant with a browser, and an agent with to-dos, files and a sub-agent.
"""

import base64
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_classic.agents import AgentType, initialize_agent
from langchain_classic.chains import RetrievalQA
from langchain_core.documents import Document as LangchainDocument
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, Tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent.workflow import AgentStream, AgentWorkflow
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.tools import RetrieverTool, ToolMetadata
from llama_index.core.tools.tool_spec.base import BaseToolSpec
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from ragtrace.model import Message
from ragtrace_langchain import mark_retrieved, mark_selected
from tests.apps.langchain_parts import Replies, calls
from tests.apps.llamaindex_parts import Caller, call
from tests.public.kit import Directions
from tests.public.langchain_apps7 import Completions
from tests.public.texts import ROWS, TEXTS


class Debates(BaseEmbedding):
    """Embeds pieces of a debate by what stands in them, and a question by the pieces that are nearest to it."""

    nearest: dict[str, tuple[str, ...]]

    def _get_query_embedding(self, query):
        near = self.nearest[query]
        return [1 - near.index(name) / 10 if name in near else 0.0 for name in ROWS]

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text):
        within = next(name for name, values in ROWS.items() if all(value in text for value in values))
        return [float(name == within) for name in ROWS]


def mistral_french_parliament():
    """A debate in XML is cut into pieces that overlap; an engine answers an English question from two of them."""
    question = "What did the French parliament talk about the last time?"
    embed_model = Debates(nearest={question: ("seance_brassac", "seance_rapporteur", "seance_opening")})
    llm = Caller(
        replies=[
            (
                "A bill to open two night trains again, at a cost of 86 million euros. Its method was called "
                "ineffective ('peu efficace'), since nobody had asked the railway workers."
            )
        ]
    )
    about_the_file = {
        "file_path": "data/french_parliament_discussion.xml",
        "file_name": "french_parliament_discussion.xml",
        "file_type": "application/xml",
        "file_size": len(TEXTS["seance"].encode()),
        "creation_date": "2026-03-04",
        "last_modified_date": "2026-03-04",
    }
    hidden = [key for key in about_the_file if key != "file_path"]  # as the framework's reader of folders has it
    docs = [
        Document(
            text=TEXTS["seance"],
            metadata=about_the_file,
            excluded_embed_metadata_keys=hidden,
            excluded_llm_metadata_keys=hidden,
        )
    ]
    vector_index = VectorStoreIndex.from_documents(
        docs, embed_model=embed_model, transformations=[SentenceSplitter(chunk_size=190, chunk_overlap=20)]
    )
    made = RetrieverTool(  # the notebook makes it, and asks the engine
        retriever=vector_index.as_retriever(similarity_top_k=3),
        metadata=ToolMetadata(
            name="CustomRetriever", description="Retrieve relevant information from provided documents."
        ),
    )
    assert made.metadata.name == "CustomRetriever"
    query_engine = vector_index.as_query_engine(llm=llm)
    response = query_engine.query(question)
    return str(response)


def agent_vectorstore(config):
    """Chains with a search each are tools of a classic agent: as tools, as a router that says nothing, and in two hops."""
    handlers = config.get("callbacks", [])
    on_marsh = "What did the president say about Lena Marsh in the address to the valley?"
    on_plumbline = "Why use Tilt over Plumbline?"
    on_both = "What tool does Tilt use to run over spreadsheets? Did the president mention that tool in the address to the valley?"
    to_address = "What did President Okoro say about Lena Marsh in the address to the valley?"
    to_tilt = "What are the advantages of using Tilt over Plumbline?"
    hop_tilt = "What tool does Tilt use to run over spreadsheets?"
    hop_address = "Did the president mention sheetQA in the address to the valley?"
    said_of_marsh = "She is one of the sharpest legal minds, and goes on with Judge Petri's legacy."
    said_of_tilt = "It takes the place of Plumbline where few plug-ins are used, and is 40 times faster."
    said_of_sheets = "Tilt is integrated into sheetQA, a tool that runs checkers over sheets."
    said_of_tool = "No, the president did not mention sheetQA."
    final = " I now know the final answer\nFinal Answer: "
    llm = Completions(
        rules=[
            (f"Question: {to_address}\nHelpful Answer:", said_of_marsh),
            (f"Question: {to_tilt}\nHelpful Answer:", said_of_tilt),
            (f"Question: {hop_tilt}\nHelpful Answer:", said_of_sheets),
            (f"Question: {hop_address}\nHelpful Answer:", said_of_tool),
            (
                f"Observation: {said_of_marsh}",
                f"{final}Lena Marsh is a sharp legal mind who goes on with Petri's legacy.",
            ),
            (
                f"Observation: {said_of_tilt}",
                f"{final}Tilt replaces Plumbline if few plug-ins are used, and is faster.",
            ),
            (f"Observation: {said_of_tool}", f"{final}It uses sheetQA, and the president did not mention it."),
            (
                f"Observation: {said_of_sheets}",
                (
                    " I now need to find out if the president mentioned this tool in the address.\n"
                    f"Action: State of Valley QA System\nAction Input: {hop_address}"
                ),
            ),
            (
                f"Question: {on_both}",
                (
                    " I need to find out what tool Tilt uses, and if the president mentioned it.\n"
                    f"Action: Tilt QA System\nAction Input: {hop_tilt}"
                ),
            ),
            (
                f"Question: {on_marsh}",
                (
                    " I need to find out what the president said about Lena Marsh.\n"
                    f"Action: State of Valley QA System\nAction Input: {to_address}"
                ),
            ),
            (
                f"Question: {on_plumbline}",
                (
                    " I need to find out the advantages of Tilt over Plumbline.\n"
                    f"Action: Tilt QA System\nAction Input: {to_tilt}"
                ),
            ),
        ]
    )
    embeddings = Directions(
        {
            to_address: ("address_marsh", "address_petri", "address_court", "address_bus"),
            hop_address: ("address_dairy", "address_bus", "address_marsh", "address_court"),
            to_tilt: ("tilt_plumbline", "tilt_rules", "tilt_install", "tilt_fix"),
            hop_tilt: ("tilt_sheets", "tilt_fix", "tilt_plumbline", "tilt_install"),
        }
    )
    text_splitter = CharacterTextSplitter(chunk_size=200, chunk_overlap=0)

    def retrieval_qa(prefix, source):
        whole = "\n\n".join(text for name, text in TEXTS.items() if name.startswith(prefix))
        texts = text_splitter.split_documents([LangchainDocument(page_content=whole, metadata={"source": source})])
        docsearch = InMemoryVectorStore.from_documents(texts, embeddings)
        return RetrievalQA.from_chain_type(llm=llm, chain_type="stuff", retriever=docsearch.as_retriever())

    state_of_valley = retrieval_qa("address_", "state_of_the_valley.txt")
    tilt = retrieval_qa("tilt_", "https://tilt.example/docs/faq")

    def agent_of(wording, **kinds):
        tools = [
            Tool(
                name="State of Valley QA System",
                func=state_of_valley.run,
                description=(
                    "useful for when you need to answer questions about the most recent address to the valley. "
                    f"Input should be a fully formed question{wording}."
                ),
                **kinds,
            ),
            Tool(
                name="Tilt QA System",
                func=tilt.run,
                description=(
                    "useful for when you need to answer questions about tilt (a checker of files). "
                    f"Input should be a fully formed question{wording}."
                ),
                **kinds,
            ),
        ]
        return initialize_agent(tools, llm, agent=AgentType.ZERO_SHOT_REACT_DESCRIPTION, verbose=False)

    agent = agent_of("")
    answers = [agent.run(on_marsh, callbacks=handlers), agent.run(on_plumbline, callbacks=handlers)]
    agent = agent_of("", return_direct=True)
    answers += [agent.run(on_marsh, callbacks=handlers), agent.run(on_plumbline, callbacks=handlers)]
    agent = agent_of(", not referencing any obscure pronouns from the conversation before")
    answers.append(agent.run(on_both, callbacks=handlers))
    return answers


class PromptInstructions(BaseModel):
    """Instructions on how to prompt the LLM."""

    objective: str
    variables: list[str]
    constraints: list[str]
    requirements: list[str]


class Chat(TypedDict):
    messages: Annotated[list, add_messages]


def information_gather_prompting(config):
    """A chat asks until it can fill in a form; then a prompt is written from the form, which the chat goes on with."""
    template = (
        "Your job is to get information from a user about what type of prompt template they want to create.\n\n"
        "You should get the following information from them:\n\n"
        "- What the objective of the prompt is\n- What variables will be passed into the prompt template\n"
        "- Any constraints for what the output should NOT do\n- Any requirements that the output MUST adhere to\n\n"
        "If you are not able to discern this info, ask them to clarify! Do not attempt to wildly guess.\n\n"
        "After you are able to discern all the information, call the relevant tool."
    )
    prompt_system = "Based on the following requirements, write a good prompt template:\n\n{reqs}"
    cached_human_responses = [
        "hi!",
        "a prompt for tide notices",
        "1 tell guests of high water, 2 date and height, 3 no jokes, 4 one sentence",
        "12 May, 3.1 m",
        "q",
    ]
    llm = Replies(
        rules=[
            (
                "Based on the following requirements",
                "Tell guests in one sentence when water is highest on {date}, and its {height}.",
            ),
            ("12 May", "On 12 May the water rises to 3.1 m, its highest of the day."),
            (
                "1 tell guests",
                calls(
                    "PromptInstructions",
                    objective="tell guests of high water",
                    variables=["date", "height"],
                    constraints=["no jokes"],
                    requirements=["one sentence"],
                ),
            ),
            (
                "a prompt for tide notices",
                (
                    "Sure! Could you please provide me with the following information?\n\n"
                    "1. What is the objective of the prompt?\n2. What variables will be passed into it?\n"
                    "3. Any constraints for what the output should NOT do?\n4. Any requirements that it MUST adhere to?"
                ),
            ),
            ("hi!", "Hello! How can I assist you today?"),
        ]
    )
    llm_with_tool = llm.bind_tools([PromptInstructions])

    def info_chain(state):
        response = llm_with_tool.invoke([SystemMessage(content=template), *state["messages"]])
        return {"messages": [response]}

    def get_prompt_messages(messages):
        tool_call, other_msgs = None, []
        for one in messages:
            if isinstance(one, AIMessage) and one.tool_calls:
                tool_call = one.tool_calls[0]["args"]
            elif isinstance(one, ToolMessage):
                continue
            elif tool_call is not None:
                other_msgs.append(one)
        return [SystemMessage(content=prompt_system.format(reqs=tool_call)), *other_msgs]

    def prompt_gen_chain(state):
        return {"messages": [llm.invoke(get_prompt_messages(state["messages"]))]}

    def get_state(state):
        messages = state["messages"]
        if isinstance(messages[-1], AIMessage) and messages[-1].tool_calls:
            return "add_tool_message"
        if not isinstance(messages[-1], HumanMessage):
            return END
        return "info"

    workflow = StateGraph(Chat)
    workflow.add_node("info", info_chain)
    workflow.add_node("prompt", prompt_gen_chain)

    @workflow.add_node
    def add_tool_message(state: Chat):
        made = state["messages"][-1].tool_calls[0]["id"]
        return {"messages": [ToolMessage(content="Prompt generated!", tool_call_id=made)]}

    workflow.add_conditional_edges("info", get_state, ["add_tool_message", "info", END])
    workflow.add_edge("add_tool_message", "prompt")
    workflow.add_edge("prompt", END)
    workflow.add_edge(START, "info")
    graph = workflow.compile(checkpointer=InMemorySaver())
    settings = {**config, "configurable": {"thread_id": str(uuid.uuid4())}}
    printed, done = [], 0
    for user in cached_human_responses:
        if user in {"q", "Q"}:
            break
        output = None
        for output in graph.stream(
            {"messages": [HumanMessage(content=user)]}, config=settings, stream_mode="updates"
        ):
            printed.append(next(iter(output.values()))["messages"][-1])
        done += bool(output and "prompt" in output)
    assert done == 1
    return [one.content for one in printed]


@dataclass(frozen=True)
class Pipeline:
    """Stands for a pipeline of a library that LangChain does not know: texts that follow a prompt."""

    generated: list[tuple[str, str]]

    def __call__(self, prompt):
        return [{"generated_text": next(text for words, text in self.generated if words in prompt)}]


@dataclass(frozen=True)
class LateInteraction:
    """Stands for a model that re-ranks texts."""

    best: tuple[str, ...]

    def rerank(self, query, documents, k):
        order = sorted(range(len(documents)), key=lambda place: self.best.index(documents[place]))
        return [
            {"content": documents[place], "score": 24.5 - rank, "rank": rank, "result_index": place}
            for rank, place in enumerate(order[:k], start=1)
        ]


MARKDOWN_SEPARATORS = ["\n#{1,6} ", "```\n", "\n\\*\\*\\*+\n", "\n---+\n", "\n___+\n", "\n\n", "\n", " ", ""]
RAG_PROMPT_TEMPLATE = """<|system|>
Using the information contained in the context,
give a comprehensive answer to the question.
Respond only to the question asked, response should be concise and relevant to the question.
Provide the number of the source document when relevant.
If the answer cannot be deduced from the context, do not give an answer.</s>
<|user|>
Context:
{context}
---
Now here is the question you need to answer.

Question: {question}</s>
<|assistant|>
"""


def hf_advanced_rag():
    """A search and a prompt, one by one; then a search, a re-ranking and a prompt in one function; the reader is no LangChain model."""
    user_query, question = "How to create a warp plan?", "how to create a warp plan?"
    pages = {
        "weaver/loomkit/blob/main/docs/plans.md": ("loom_object", "loom_custom", "loom_device"),
        "weaver/loomkit/blob/main/docs/winding.md": ("loom_batch", "loom_colours", "loom_device"),
        "weaver/loomkit/blob/main/docs/about.md": ("loom_changes", "loom_licence"),
    }
    raw_knowledge_base = [
        LangchainDocument(page_content="\n\n".join(TEXTS[name] for name in names), metadata={"source": source})
        for source, names in pages.items()
    ]
    nearest = (
        *("loom_changes", "loom_device", "loom_object", "loom_licence", "loom_batch"),
        *("loom_custom", "loom_colours"),
    )
    by_interaction = (
        *("loom_object", "loom_custom", "loom_device", "loom_colours", "loom_batch"),
        *("loom_changes", "loom_licence"),
    )
    embedding_model = Directions({user_query: nearest, question: nearest})
    READER_LLM = Pipeline(  # noqa: N806 - as the notebook names it
        generated=[
            ("What is 4+4?", " 8\n\nQuestion: How many sides does a regular hexagon have?"),
            (
                f"Question: {user_query}",
                "Write `plan`, the word that `pattern` was dropped for (Document 0), and call it (Document 2).",
            ),
            (
                f"Question: {question}",
                "Call `warp_plan` with a weave's name (Document 0), or inherit from `WarpPlan` (Document 1).",
            ),
        ]
    )

    def split_documents(chunk_size, knowledge_base):
        text_splitter = RecursiveCharacterTextSplitter(
            chunk_size=chunk_size,
            chunk_overlap=int(chunk_size / 10),
            length_function=lambda text: len(text.split()),  # stands for the tokenizer of the embedding's model
            add_start_index=True,
            strip_whitespace=True,
            separators=MARKDOWN_SEPARATORS,
        )
        docs_processed = []
        for doc in knowledge_base:
            docs_processed += text_splitter.split_documents([doc])
        unique_texts, docs_processed_unique = {}, []
        for doc in docs_processed:
            if doc.page_content not in unique_texts:
                unique_texts[doc.page_content] = True
                docs_processed_unique.append(doc)
        return docs_processed_unique

    docs_processed = split_documents(45, raw_knowledge_base)
    assert [one.page_content for one in docs_processed] == [
        TEXTS[name] for name in TEXTS if name.startswith("loom_")
    ]
    knowledge_vector_database = InMemoryVectorStore.from_documents(docs_processed, embedding_model)
    reranker = LateInteraction(tuple(TEXTS[name] for name in by_interaction))

    def answer_with_rag(question, llm, knowledge_index, reranker=None, num_retrieved_docs=30, num_docs_final=5):
        relevant_docs = knowledge_index.similarity_search(query=question, k=num_retrieved_docs)
        mark_retrieved(relevant_docs, source="docs")
        relevant_docs = [doc.page_content for doc in relevant_docs]
        if reranker:
            relevant_docs = reranker.rerank(question, relevant_docs, k=num_docs_final)
            relevant_docs = mark_selected([doc["content"] for doc in relevant_docs])
        relevant_docs = relevant_docs[:num_docs_final]
        context = "\nExtracted documents:\n"
        context += "".join([f"Document {i!s}:::\n" + doc for i, doc in enumerate(relevant_docs)])
        final_prompt = RAG_PROMPT_TEMPLATE.format(question=question, context=context)
        answer = llm(final_prompt)[0]["generated_text"]
        return answer, relevant_docs

    def told(run):
        def read(prompt):
            outputs = READER_LLM(prompt)
            run.generated(
                model="zephyr-7b-beta",
                inputs=[Message(role="user", content=prompt)],
                outputs=[Message(role="assistant", content=outputs[0]["generated_text"])],
            )
            return outputs

        return read

    def ask(recorder):
        assert READER_LLM("What is 4+4? Answer:")[0]["generated_text"].startswith(" 8")
        with recorder.start(query=user_query) as run:
            retrieved_docs = knowledge_vector_database.similarity_search(query=user_query, k=5)
            mark_retrieved(retrieved_docs, source="docs")
            retrieved_docs_text = [doc.page_content for doc in retrieved_docs]
            context = "\nExtracted documents:\n"
            context += "".join([f"Document {i!s}:::\n" + doc for i, doc in enumerate(retrieved_docs_text)])
            final_prompt = RAG_PROMPT_TEMPLATE.format(question=user_query, context=context)
            first = told(run)(final_prompt)[0]["generated_text"]
            run.answered(first)
        with recorder.start(query=question) as run:
            answer, relevant_docs = answer_with_rag(
                question, told(run), knowledge_vector_database, reranker=reranker
            )
            run.answered(answer)
        return first, answer, relevant_docs

    return ask


class Page(BaseModel):
    """What a site gives for an address: a status and the data that stand on its page."""

    status: int = 200
    data: dict[str, Any] = {}


class Browser:
    """Stands for a browser with one tab; an address without a page never loads."""

    def __init__(self, pages):
        self.pages, self.url = pages, "about:blank"

    async def goto(self, url):
        if url not in self.pages:
            raise TimeoutError(
                f'Page.goto: Timeout 30000ms exceeded.\nCall log:\n  - navigating to "{url}", waiting until "load"\n'
            )
        self.url = url
        return self.pages[url]


class PlaywrightToolSpec(BaseToolSpec):
    """The browser's tools."""

    spec_functions = ["click", "get_current_page", "extract_hyperlinks", "navigate_to"]  # noqa: RUF012 - a spec's list

    def __init__(self, async_browser):
        self.async_browser = async_browser

    async def click(self, selector: str) -> str:
        """
        Click on a en element based on a CSS selector.

        Args:
            selector: The CSS selector to click on.
        """
        return f"Unable to click on element '{selector}'"

    async def get_current_page(self) -> str:
        """
        Get the url of the current page.
        """
        return self.async_browser.url

    async def extract_hyperlinks(self) -> str:
        """
        Extract all hyperlinks from the current page.
        """
        return "[]"

    async def navigate_to(self, url: str) -> str:
        """
        Navigate to the given url.
        """
        response = await self.async_browser.goto(url)
        status = response.status if response else "unknown"
        return f"Navigating to {url} returned status code {status}"


class AgentQLBrowserToolSpec(BaseToolSpec):
    """The tools of a service that reads the page in the browser."""

    spec_functions = ["extract_web_data_from_browser", "get_web_element_from_browser"]  # noqa: RUF012 - a spec's list

    def __init__(self, async_browser):
        self.async_browser = async_browser

    async def extract_web_data_from_browser(self, query: str | None = None, prompt: str | None = None) -> dict:
        """
        Extracts structured data as JSON from a web page, by an AgentQL query or a description of the data.

        Args:
            query: AgentQL query used to extract the data, enclosed with curly braces `{}`.
            prompt: Natural Language description of the data to extract from the page.

        Returns:
            dict: The extracted data
        """
        if not query and not prompt:
            raise ValueError("'query' and 'prompt' cannot both be empty")
        return self.async_browser.pages[self.async_browser.url].data

    async def get_web_element_from_browser(self, prompt: str) -> str:
        """
        Finds a web element on the active web page, and returns its CSS selector.

        Args:
            prompt: Natural Language description of the web element to find on the page.
        """
        return "[tf623_id='12']"


class DuckDuckGoSearchToolSpec(BaseToolSpec):
    """The tools of a search engine, which finds by words in the query."""

    spec_functions = ["duckduckgo_instant_search", "duckduckgo_full_search"]  # noqa: RUF012 - a spec's list

    def __init__(self, found):
        self.found = found

    def duckduckgo_instant_search(self, query: str) -> list[dict]:
        """
        Make a query to DuckDuckGo api to receive an instant answer.

        Args:
            query (str): The query to be passed to DuckDuckGo.
        """
        return []

    def duckduckgo_full_search(
        self, query: str, region: str | None = "wt-wt", max_results: int | None = 10
    ) -> list[dict]:
        """
        Make a query to DuckDuckGo search to receive a full search results.

        Args:
            query (str): The query to be passed to DuckDuckGo.
            region (Optional[str]): The region to be used for the search in [country-language] convention.
            max_results (Optional[int]): The maximum number of results to be returned.
        """
        return next(results for words, results in self.found.items() if words in query)[:max_results]


class Talker(Caller):
    """A caller that may say something beside its call, as a pair of both."""

    def _reply(self):
        reply = self.replies[len(self.turns)]
        if not isinstance(reply, tuple):
            return super()._reply()
        self.turns.append(reply)
        text, made = reply
        return text, {"tool_calls": [made]}


async def research_assistant_workflow():
    """An agent searches, opens each page in a browser, one of them in vain, and has its data extracted; streamed."""
    trials, towns = "https://sleep-review.example/articles/22", "https://journal-of-plots.example/41877"
    shop = "https://bedroom-florists.example/five"
    async_browser = Browser(
        {
            trials: Page(
                data={
                    "resource": {
                        "name": "Gardening and Sleep: A Review of Trials",
                        "authors": ["Mira Holt", "Jonas Pei"],
                        "link": trials,
                        "publishing_date": "January 9, 2024",
                        "journal_name": "Soil & Sleep",
                        "volume_number": "15",
                        "issue_number": "1",
                        "abstract": TEXTS["garden_review"],
                    }
                }
            ),
            towns: Page(
                data={
                    "resource_name": "Plots by Lot: Two Years of Nights in Four Towns",
                    "author_names": ["Aino Salo"],
                    "link_to_resource": towns,
                    "publishing_date": "March 2, 2025",
                    "journal_name": "Northern Allotments",
                    "volume_number": 7,
                    "issue_number": "e41",
                    "abstract": TEXTS["garden_lots"],
                }
            ),
        }
    )
    playwright_agent_tool_list = [
        one
        for one in PlaywrightToolSpec(async_browser=async_browser).to_tool_list()
        if one.metadata.name in ["click", "get_current_page", "navigate_to"]
    ]
    search = DuckDuckGoSearchToolSpec(
        {
            "gardening": [
                {"title": "Gardening and Sleep", "href": trials, "body": TEXTS["garden_beds"]},
                {"title": "Five Plants", "href": shop, "body": TEXTS["garden_shop"]},
                {"title": "Plots by Lot", "href": towns, "body": TEXTS["garden_towns"]},
            ]
        }
    )
    duckduckgo_search_tool = [one for one in search.to_tool_list() if one.metadata.name == "duckduckgo_full_search"]
    agentql_browser_tool = AgentQLBrowserToolSpec(async_browser=async_browser)
    wanted = (
        "Extract the name of the resource, author name(s), link to the resource, publishing date, journal name, "
        "volume number, issue number, and the abstract."
    )
    llm = Talker(
        replies=[
            call("duckduckgo_full_search", query="relationship between gardening and sleep"),
            call("navigate_to", url=trials),
            call("extract_web_data_from_browser", prompt=wanted),
            (
                (
                    "I successfully extracted information from one resource. Here are the details:\n\n"
                    "- **Title**: Gardening and Sleep: A Review of Trials\n- **Authors**: Mira Holt, Jonas Pei\n"
                    "- **Abstract**: Most trials tie garden work to falling asleep sooner, unless it is done in the dark.\n\n"
                    "I will now attempt to extract information from another resource."
                ),
                call("navigate_to", url=shop),
            ),
            call("navigate_to", url=towns),
            call("extract_web_data_from_browser", prompt=wanted),
            (
                "I successfully extracted information from a second resource. Here are the details:\n\n"
                "- **Title**: Plots by Lot: Two Years of Nights in Four Towns\n- **Authors**: Aino Salo\n"
                "- **Abstract**: Households with a plot woke less often in summer, and as often as others in winter.\n\n"
                "Both resources provide valuable insights into the relationship between gardening and sleep."
            ),
        ]
    )
    workflow = AgentWorkflow.from_tools_or_functions(
        playwright_agent_tool_list + agentql_browser_tool.to_tool_list() + duckduckgo_search_tool,
        llm=llm,
        system_prompt=(
            "You are an expert that can do browser automation, data extraction and text summarization for finding and "
            "extracting data from research resources."
        ),
    )
    handler = workflow.run(
        user_msg=(
            "Use DuckDuckGoSearch to find URL resources on the web that are relevant to the research topic: "
            "What is the relationship between gardening and sleep?\n"
            "    Go through each resource found. For each different resource, use Playwright to click on link to the "
            "resource, then use AgentQL to extract information, including the name of the resource, author name(s), link "
            "to the resource, publishing date, journal name, volume number, issue number, and the abstract.\n"
            "    Find more resources until there are two different resources that can be successfully extracted from."
        )
    )
    printed = ""
    async for event in handler.stream_events():
        if isinstance(event, AgentStream):
            printed += event.delta
    assert "from another resource.I successfully" in printed
    return printed


class Todo(TypedDict):
    """A structured task item for tracking progress through complex workflows."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


def file_reducer(left, right):
    if left is None:
        return right
    if right is None:
        return left
    return {**left, **right}


class DeepAgentState(AgentState):
    """An agent's state with a list of to-dos, and a file system that maps names to contents."""

    todos: NotRequired[list[Todo]]
    files: Annotated[NotRequired[dict[str, str]], file_reducer]


class Summary(BaseModel):
    """Schema for webpage content summarization."""

    filename: str = Field(description="Name of the file to store.")
    summary: str = Field(description="Key learnings from the webpage.")


@tool(description="List all files in the virtual filesystem stored in agent state.")
def ls(state: Annotated[DeepAgentState, InjectedState]) -> list[str]:
    return list(state.get("files", {}).keys())


@tool(description="Read content from a file in the virtual filesystem with optional pagination.")
def read_file(
    file_path: str, state: Annotated[DeepAgentState, InjectedState], offset: int = 0, limit: int = 2000
) -> str:
    files = state.get("files", {})
    if file_path not in files:
        return f"Error: File '{file_path}' not found"
    lines = files[file_path].splitlines()
    return "\n".join(
        f"{place + 1:6d}\t{lines[place][:2000]}" for place in range(offset, min(offset + limit, len(lines)))
    )


@tool(description="Create a new file or completely overwrite an existing file in the virtual filesystem.")
def write_file(
    file_path: str,
    content: str,
    state: Annotated[DeepAgentState, InjectedState],
    tool_call_id: Annotated[str, InjectedToolCallId],
) -> Command:
    files = state.get("files", {})
    files[file_path] = content
    messages = [ToolMessage(f"Updated file {file_path}", tool_call_id=tool_call_id)]
    return Command(update={"files": files, "messages": messages})


@tool(description="Create and manage structured task lists for tracking progress through complex workflows.")
def write_todos(todos: list[Todo], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    messages = [ToolMessage(f"Updated todo list to {todos}", tool_call_id=tool_call_id)]
    return Command(update={"todos": todos, "messages": messages})


@tool
def read_todos(
    state: Annotated[DeepAgentState, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
) -> str:
    """Read the current TODO list from the agent state."""
    todos = state.get("todos", [])
    if not todos:
        return "No todos currently in the list."
    result = "Current TODO List:\n"
    status_emoji = {"pending": "⏳", "in_progress": "🔄", "completed": "✅"}
    for place, one in enumerate(todos, 1):
        result += f"{place}. {status_emoji[one['status']]} {one['content']} ({one['status']})\n"
    return result.strip()


@tool
def think_tool(reflection: str) -> str:
    """Tool for strategic reflection on research progress and decision-making."""
    return f"Reflection recorded: {reflection}"


def get_today_str():
    return datetime.now(UTC).strftime("%a %b %-d, %Y")


SUMMARIZE_WEB_SEARCH = """You are creating a minimal summary for research steering - your goal is to help an agent know what information it has collected, NOT to preserve all details.

<webpage_content>
{webpage_content}
</webpage_content>

Create a VERY CONCISE summary focusing on the main topic, the type of information and the most significant findings.
Generate a descriptive filename that indicates the content type and topic.

Today's date: {date}
"""
RESEARCHER_INSTRUCTIONS = """You are a research assistant conducting research on the user's input topic. For context, today's date is {date}.

<Task>
Your job is to use tools to gather information about the user's input topic, in a tool-calling loop.
</Task>

**CRITICAL: Use think_tool after each search to reflect on results and plan next steps**
"""
INSTRUCTIONS = f"""# TODO MANAGEMENT
Based upon the user's request, use the write_todos tool to create TODO; read them, mark them, and go on until all are done.

{"=" * 80}

# FILE SYSTEM USAGE
You have access to a virtual file system to help you retain and save context. Save the user's request with write_file().

{"=" * 80}

# SUB-AGENT DELEGATION
You can delegate tasks to sub-agents with task(description, subagent_type). Stop after 3 task delegations.
"""


def make_tavily_search(results, sites, summarization_model):
    """Return the search tool: it fetches what it finds, has it summarised, keeps it in a file, and tells the summary only."""

    def run_tavily_search(search_query, max_results):
        return {"query": search_query, "results": results[search_query][:max_results]}

    def markdownify(html):
        return re.sub(r"<[^>]+>", "\n", html)

    def summarize_webpage_content(webpage_content):
        structured_model = summarization_model.with_structured_output(Summary)
        prompt = SUMMARIZE_WEB_SEARCH.format(webpage_content=webpage_content, date=get_today_str())
        return structured_model.invoke([HumanMessage(content=prompt)])

    def process_search_results(found):
        processed_results = []
        for result in found.get("results", []):
            html = sites.get(result["url"])
            if html is not None:
                raw_content = markdownify(html)
                summary_obj = summarize_webpage_content(raw_content)
            else:
                raw_content = result.get("raw_content", "")
                summary_obj = Summary(filename="URL_error.md", summary=result["content"])
            uid = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii")[:8]
            saved = Path(summary_obj.filename)
            processed_results.append(
                {
                    "url": result["url"],
                    "title": result["title"],
                    "summary": summary_obj.summary,
                    "filename": f"{saved.stem}_{uid}{saved.suffix}",
                    "raw_content": raw_content,
                }
            )
        return processed_results

    @tool
    def tavily_search(
        query: str,
        state: Annotated[DeepAgentState, InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
        max_results: Annotated[int, InjectedToolArg] = 1,
        topic: Annotated[Literal["general", "news", "finance"], InjectedToolArg] = "general",
    ) -> Command:
        """Search web and save detailed results to files while returning minimal context."""
        processed_results = process_search_results(run_tavily_search(query, max_results))
        files = state.get("files", {})
        saved_files, summaries = [], []
        for result in processed_results:
            filename = result["filename"]
            files[filename] = (
                f"# Search Result: {result['title']}\n\n**URL:** {result['url']}\n**Query:** {query}\n"
                f"**Date:** {get_today_str()}\n\n## Summary\n{result['summary']}\n\n## Raw Content\n"
                f"{result['raw_content'] or 'No raw content available'}\n"
            )
            saved_files.append(filename)
            summaries.append(f"- {filename}: {result['summary']}...")
        summary_text = (
            f"🔍 Found {len(processed_results)} result(s) for '{query}':\n\n{chr(10).join(summaries)}\n\n"
            f"Files: {', '.join(saved_files)}\n💡 Use read_file() to access full details when needed."
        )
        return Command(update={"files": files, "messages": [ToolMessage(summary_text, tool_call_id=tool_call_id)]})

    return tavily_search


def create_task_tool(tools, subagents, model, state_schema):
    """Return the tool that runs an agent of its own for each task, which sees the task alone."""
    tools_by_name = {one.name: one for one in tools}
    agents = {
        one["name"]: create_agent(
            model,
            system_prompt=one["prompt"],
            tools=[tools_by_name[name] for name in one["tools"]],
            state_schema=state_schema,
        )
        for one in subagents
    }
    other_agents = [f"- {one['name']}: {one['description']}" for one in subagents]

    @tool(
        description=f"Delegate a task to a sub-agent with isolated context. Available agents are:\n{other_agents}\n"
    )
    def task(
        description: str,
        subagent_type: str,
        state: Annotated[DeepAgentState, InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ):
        if subagent_type not in agents:
            return f"Error: invoked agent of type {subagent_type}, the only allowed types are {list(agents)}"
        state["messages"] = [{"role": "user", "content": description}]
        result = agents[subagent_type].invoke(state)
        messages = [ToolMessage(result["messages"][-1].content, tool_call_id=tool_call_id)]
        return Command(update={"files": result.get("files", {}), "messages": messages})

    return task


def says(*replies):
    """Return a reply that goes by how often the model has spoken in the conversation that it sees."""

    def reply(messages):
        return replies[sum(isinstance(one, AIMessage) for one in messages)]

    return reply


def act(number, name, text="", **arguments):
    """Return a call as Anthropic's models give it: a list of blocks, beside what they say."""
    made = f"toolu_{number:04d}{name}"
    blocks = [{"type": "text", "text": text}] if text else []
    blocks.append({"type": "tool_use", "id": made, "name": name, "input": arguments})
    return AIMessage(blocks, tool_calls=[{"name": name, "args": arguments, "id": made}])


def todos(*statuses, contents):
    return [{"content": one, "status": status} for one, status in zip(contents, statuses, strict=True)]


def deep_agents_from_scratch(config):
    """An agent keeps to-dos and files, and has a sub-agent search; a report stands beside its last call, and then it is silent."""
    overview = "Give me an overview of the Open Buoy Protocol (OBP)."
    brief = "Give me a very brief overview of what a buoy of the Open Buoy Protocol (OBP) does."
    plan = (
        "Save user request to file system for reference",
        "Research the Open Buoy Protocol (OBP) - origin, frames, adoption",
        "Compile comprehensive overview based on research findings",
    )
    brief_plan = (
        "Research what buoys of the protocol do",
        "Provide a very brief overview based on research findings",
    )
    task_1 = "Research the Open Buoy Protocol (OBP): 1) who published it, 2) how it works, 3) who uses it. Focus on official sources."
    task_2 = "Research what a buoy of the Open Buoy Protocol (OBP) does. Gather factual information from reliable sources."
    how, who, verbs = (
        "Open Buoy Protocol overview",
        "Open Buoy Protocol ports adoption 2026",
        "Open Buoy Protocol buoy verbs",
    )
    report = (
        "# Open Buoy Protocol (OBP) - Comprehensive Overview\n\n## What is OBP?\nA radio protocol by which ships ask buoys; "
        "the port of Tarn made it in 2023.\n\n## Adoption\nIt is used in seventeen ports, and three makers build for it."
    )
    brief_report = (
        "## OBP - Brief Overview\n\nA buoy tells readings, keeps them for a while, and passes them along."
    )

    def researcher(messages):
        scripts = {
            task_1: (
                act(1, "tavily_search", text="I'll start with a broad search.", query=how),
                act(2, "think_tool", reflection="I know the origin, not who uses it. I should search for ports."),
                act(3, "tavily_search", query=who),
                act(4, "think_tool", reflection="Origin and adoption are known; I can answer."),
                AIMessage(
                    "Based on my comprehensive research: Tarn's port published OBP in 2023. Ships ask buoys by radio, and "
                    "frames are signed. Seventeen ports have it, with 2,300 buoys."
                ),
            ),
            task_2: (
                act(1, "tavily_search", query=verbs),
                act(2, "think_tool", reflection="Three verbs say all that is asked for."),
                AIMessage("Based on my research, a buoy tells, keeps and passes on readings."),
            ),
        }
        return says(*scripts[messages[1].content])(messages)

    model = Replies(
        rules=[
            (
                TEXTS["buoy_overview"],
                calls(
                    "Summary",
                    filename="open_buoy_protocol_overview.md",
                    summary="OBP is a radio protocol of Tarn's port (2023). Ships ask buoys; frames are signed.",
                ),
            ),
            (
                TEXTS["buoy_primer"],
                calls("Summary", filename="obp_primer.md", summary="A primer on the three verbs of OBP buoys."),
            ),
            ("You are a research assistant conducting research", researcher),
            (
                overview,
                says(
                    act(
                        11,
                        "write_todos",
                        text="I'll help you get an overview of OBP. Let me start by creating a research plan.",
                        todos=todos("pending", "pending", "pending", contents=plan),
                    ),
                    act(12, "ls"),
                    act(13, "write_file", file_path="user_request.md", content=f"# User Request\n\n{overview}\n"),
                    act(14, "read_todos"),
                    act(15, "write_todos", todos=todos("completed", "in_progress", "pending", contents=plan)),
                    act(
                        16,
                        "task",
                        text="Now I'll delegate the research task to a specialized research agent.",
                        description=task_1,
                        subagent_type="research-agent",
                    ),
                    act(17, "think_tool", reflection="The agent has covered origin, workings and adoption of OBP."),
                    act(18, "read_todos"),
                    act(19, "write_todos", todos=todos("completed", "completed", "in_progress", contents=plan)),
                    act(
                        20,
                        "write_todos",
                        text=report,
                        todos=todos("completed", "completed", "completed", contents=plan),
                    ),
                    AIMessage([]),
                ),
            ),
            (
                brief,
                says(
                    act(
                        21,
                        "write_todos",
                        text="I'll help you get a brief overview. Let me research this for you.",
                        todos=todos("in_progress", "pending", contents=brief_plan),
                    ),
                    act(22, "task", description=task_2, subagent_type="research-agent"),
                    act(23, "write_todos", todos=todos("completed", "in_progress", contents=brief_plan)),
                    act(
                        24,
                        "write_todos",
                        text=brief_report,
                        todos=todos("completed", "completed", contents=brief_plan),
                    ),
                    AIMessage([]),
                ),
            ),
        ]
    )
    official, harbours, primer = (
        "https://obp.example/about",
        "https://harbours.example/obp",
        "https://sail.example/obp",
    )
    tavily_search = make_tavily_search(
        results={
            how: [{"url": official, "title": "OBP", "content": "All about OBP.", "raw_content": ""}],
            who: [{"url": harbours, "title": "Ports", "content": TEXTS["buoy_adoption"], "raw_content": ""}],
            verbs: [{"url": primer, "title": "A primer", "content": "OBP for sailors.", "raw_content": ""}],
        },
        sites={  # the other page is not there any more
            official: f"<html><body><h1>OBP</h1><p>{TEXTS['buoy_overview']}</p></body></html>",
            primer: f"<html><body><p>{TEXTS['buoy_primer']}</p><p>Contact us</p></body></html>",
        },
        summarization_model=model,
    )
    sub_agent_tools: list[BaseTool] = [tavily_search, think_tool]
    research_sub_agent = {
        "name": "research-agent",
        "description": "Delegate research to the sub-agent researcher. Only give this researcher one topic at a time.",
        "prompt": RESEARCHER_INSTRUCTIONS.format(date=get_today_str()),
        "tools": ["tavily_search", "think_tool"],
    }
    task_tool = create_task_tool(sub_agent_tools, [research_sub_agent], model, DeepAgentState)
    all_tools = [*sub_agent_tools, ls, read_file, write_file, write_todos, read_todos, task_tool]
    agent = create_agent(model, all_tools, system_prompt=INSTRUCTIONS, state_schema=DeepAgentState)
    result = agent.invoke({"messages": [{"role": "user", "content": overview}]}, config)
    assert len(result["files"]) == 3
    packaged = create_agent(  # as the package of deep agents has it: its middleware brings the to-dos
        model,
        [*sub_agent_tools, ls, read_file, write_file, task_tool],
        system_prompt=INSTRUCTIONS,
        state_schema=DeepAgentState,
        middleware=[TodoListMiddleware()],
    )
    second = packaged.invoke({"messages": [{"role": "user", "content": brief}]}, config)
    return result["messages"], second["messages"]


WITH_HANDLER: dict[str, Callable[[Any], Any]] = {
    "agent-vectorstore": agent_vectorstore,
    "information-gather-prompting": information_gather_prompting,
    "deep-agents-from-scratch": deep_agents_from_scratch,
}

IN_BLOCK = {"hf-advanced-rag": hf_advanced_rag}  # what is returned is asked in blocks

INSTRUMENTED = {
    "mistral-french-parliament": mistral_french_parliament,
    "research-assistant-workflow": research_assistant_workflow,
}
