"""Applications of the ninth draw, part a: a tool that asks a person, plans of queries, agents that are found, an agent with
papers, a summary that grows denser, and a desk of traders."""

import json
import re
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

from langchain_classic.chains import LLMChain
from langchain_classic.chains.base import Chain
from langchain_classic.chains.llm_math.prompt import PROMPT
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.output_parsers.json import SimpleJsonOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig, RunnablePassthrough
from langchain_core.tools import BaseTool, Tool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from llama_index.core import (
    Document,
    StorageContext,
    SummaryIndex,
    VectorStoreIndex,
    get_response_synthesizer,
    load_index_from_storage,
)
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine.types import AgentChatResponse, BaseChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.events.agent import (
    AgentChatWithStepEndEvent,
    AgentChatWithStepStartEvent,
    AgentToolCallEvent,
)
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import IndexNode
from llama_index.core.tools import FunctionTool, QueryEngineTool, QueryPlanTool, ToolMetadata
from pydantic import BaseModel, Field

from tests.apps.langchain_parts import Replies as ChatReplies
from tests.apps.langchain_parts import calls
from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.llamaindex_apps7 import pages
from tests.public.texts import TEXTS

dispatcher = get_dispatcher(__name__)


class StreamingReplies(ChatReplies):
    """A chat model that streams inside each call, as one made with `streaming=True` does."""

    streaming: bool = True


class LLMMathChain(Chain):
    """The framework's chain, whose sums of two numbers are evaluated here instead of by numexpr."""

    llm_chain: LLMChain
    input_key: str = "question"
    output_key: str = "answer"

    @property
    def input_keys(self):
        return [self.input_key]

    @property
    def output_keys(self):
        return [self.output_key]

    def _evaluate_expression(self, expression):
        left, sign, right = re.fullmatch(r"(\d+) ([-*]) (\d+)", expression.strip()).groups()
        return str(int(left) - int(right) if sign == "-" else int(left) * int(right))

    def _answer(self, llm_output):
        text_match = re.search(r"^```text(.*?)```", llm_output, re.DOTALL)
        if text_match:
            return "Answer: " + self._evaluate_expression(text_match.group(1))
        return "Answer: " + llm_output.split("Answer:")[-1]

    def _call(self, inputs, run_manager=None):
        run_manager.on_text(inputs[self.input_key])
        llm_output = self.llm_chain.predict(
            question=inputs[self.input_key], stop=["```output"], callbacks=run_manager.get_child()
        )
        run_manager.on_text(llm_output, color="green", verbose=self.verbose)
        return {self.output_key: self._answer(llm_output.strip())}

    async def _acall(self, inputs, run_manager=None):
        await run_manager.on_text(inputs[self.input_key])
        llm_output = await self.llm_chain.apredict(
            question=inputs[self.input_key], stop=["```output"], callbacks=run_manager.get_child()
        )
        await run_manager.on_text(llm_output, color="green", verbose=self.verbose)
        return {self.output_key: self._answer(llm_output.strip())}

    @classmethod
    def from_llm(cls, llm, prompt=PROMPT, **kwargs):
        return cls(llm_chain=LLMChain(llm=llm, prompt=prompt), **kwargs)


class HumanInputSchema(BaseModel):
    query: str = Field(description="The question to ask the human")


class HumanInputChainlit(BaseTool):
    """Tool that adds the capability to ask user for input."""

    name: str = "human"
    description: str = (
        "You can ask a human for guidance when you think you got stuck or you are not sure what to do next. "
        "The input should be a question for the human."
    )
    args_schema: Any = HumanInputSchema
    return_direct: bool = False
    ask_user: Any  # what the page asks, and what is typed into it

    def _run(self, query: str, run_manager=None) -> str:
        return self.ask_user(query)["content"]

    async def _arun(self, query: str, run_manager=None) -> str:
        return self.ask_user(query)["content"]


async def chainlit_ask_human(config):
    """A page's agent asks the person a question back by a tool, and a calculator; then the calculator alone."""
    user_session, sent = {}, []
    typed = iter([TEXTS["kiln_year"]])

    def ask_user(content):
        sent.append(content)
        return {"content": next(typed), "author": "User"}

    def start():
        llm = StreamingReplies(
            rules=[
                ("Question: 2031 - 1974\n", '```text\n2031 - 1974\n```\n...numexpr.evaluate("2031 - 1974")...\n'),
                ("Question: 48 times 36\n", '```text\n48 * 36\n```\n...numexpr.evaluate("48 * 36")...\n'),
                ("Answer: 57", "Your kiln will be 57 years old in 2031."),
                (TEXTS["kiln_year"], calls("Calculator", __arg1="2031 - 1974")),
                ("How old will my kiln be", calls("human", query="In which year was your kiln built?")),
                ("Answer: 1728", "That makes 1,728 bowls a month."),
                ("48 bowls", calls("Calculator", __arg1="48 times 36")),
            ],
            streaming=True,
        )
        llm_math_chain = LLMMathChain.from_llm(llm=llm, verbose=False)
        tools = [
            HumanInputChainlit(ask_user=ask_user),
            Tool(
                name="Calculator",
                func=llm_math_chain.invoke,
                description="useful for when you need to answer questions about math",
                coroutine=llm_math_chain.ainvoke,
            ),
        ]
        user_session["agent"] = create_react_agent(llm, tools=tools)

    async def main(content):
        agent = user_session["agent"]
        inputs = {"messages": [("user", content)]}
        res = await agent.ainvoke(inputs, config=RunnableConfig(**config))
        sent.append(res["messages"][-1].content)

    start()
    await main("How old will my kiln be in 2031?")
    await main("My kiln takes 48 bowls, and I fire it 36 times a month. How many bowls is that?")
    return sent


class OpenAIAgent(BaseChatEngine, BaseQueryEngine):
    """The framework's former agent, written out: an engine of chats and of queries that calls functions in a loop."""

    def __init__(self, tools, llm, memory, max_function_calls):
        BaseQueryEngine.__init__(self, callback_manager=None)
        self._tools = {tool.metadata.get_name(): tool for tool in tools}
        self._llm, self.memory, self._max_function_calls = llm, memory, max_function_calls

    @classmethod
    def from_tools(cls, tools, llm, *, max_function_calls=5, verbose=False):
        return cls(tools, llm, ChatMemoryBuffer.from_defaults(), max_function_calls)

    def _get_prompt_modules(self):
        return {}

    @property
    def chat_history(self):
        return self.memory.get_all()

    def reset(self):
        self.memory.reset()

    def _call_function(self, made, new_memory):
        tool = self._tools[made.tool_name]
        dispatcher.event(AgentToolCallEvent(arguments=json.dumps(made.tool_kwargs), tool=tool.metadata))
        output = tool(**made.tool_kwargs)
        about = {"name": made.tool_name, "tool_call_id": made.tool_id}
        new_memory.append(ChatMessage(role="tool", content=str(output), additional_kwargs=about))
        return output

    @dispatcher.span
    def _chat(self, message, chat_history=None):
        if chat_history is not None:
            self.memory.set(chat_history)
        dispatcher.event(AgentChatWithStepStartEvent(user_msg=message))
        openai_tools = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in self._tools.values()]
        new_memory, sources = [ChatMessage(role="user", content=message)], []
        while True:
            response = self._llm.chat([*self.memory.get(input=message), *new_memory], tools=openai_tools)
            new_memory.append(response.message)
            tool_calls = self._llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
            if not tool_calls or len(sources) >= self._max_function_calls:
                break
            sources += [self._call_function(made, new_memory) for made in tool_calls]
        self.memory.set([*self.memory.get_all(), *new_memory])
        result = AgentChatResponse(response=str(response.message.content), sources=sources)
        dispatcher.event(AgentChatWithStepEndEvent(response=result))
        return result

    @dispatcher.span
    def chat(self, message, chat_history=None):
        return self._chat(message, chat_history)

    def stream_chat(self, message, chat_history=None):
        raise NotImplementedError

    async def achat(self, message, chat_history=None):
        raise NotImplementedError

    async def astream_chat(self, message, chat_history=None):
        raise NotImplementedError

    def _query(self, query_bundle):
        agent_response = self.chat(query_bundle.query_str, chat_history=[])
        return Response(response=str(agent_response), source_nodes=agent_response.source_nodes)

    async def _aquery(self, query_bundle):
        raise NotImplementedError


def agent_query_plan():
    """An agent plans queries over the reports of three quarters as a graph, whose last node joins what the others found."""
    risks, revenue = "risk factors", "What is Tarn's revenue for {} 2022?"
    risks_of, both_of = "What are the risk factors of {} 2022?", "Revenue growth and risk factors of {}"
    growth = "Analyze Tarn's revenue growth in March, June, and September"
    changes = "Analyze changes in risk factors in march, june, and september for Tarn"
    compared = "Compare and contrast revenue growth and risk factors of March and September"
    asked = {  # of each query: what is found, and what the engine says of it
        risks: (("tarn_sept_mites", "tarn_sept_gas", "tarn_sept_sales"), "Vermin in flour, and dearer fuel."),
        revenue.format("March"): (("tarn_march_sales", "tarn_march_rye", "tarn_march_rent"), "6.85 million."),
        revenue.format("June"): (("tarn_june_sales", "tarn_june_drivers", "tarn_june_ovens"), "8.07 million."),
        revenue.format("September"): (("tarn_sept_sales", "tarn_sept_gas", "tarn_sept_mites"), "8.34 million."),
        risks_of.format("March"): (("tarn_march_rye", "tarn_march_rent", "tarn_march_sales"), "A lone supplier."),
        risks_of.format("June"): (("tarn_june_ovens", "tarn_june_drivers", "tarn_june_sales"), "Fuel, and pay."),
        risks_of.format("Sept"): (("tarn_sept_gas", "tarn_sept_mites", "tarn_sept_sales"), "Fuel, and pests."),
        both_of.format("March"): (("tarn_march_sales", "tarn_march_rent", "tarn_march_rye"), "Small, and leased."),
        both_of.format("Sept"): (("tarn_sept_mites", "tarn_sept_sales", "tarn_sept_gas"), "Large, and infested."),
    }
    joined = {
        growth: "By 1.22 million to June, and by 0.27 million to September.",
        changes: "A lone supplier gave way to fuel and pay, and these to fuel and pests.",
        compared: "March had less revenue and safer flour, September the contrary.",
    }
    llm = Replies(
        rules=[
            *((f"Query: {query}\nAnswer:", told) for query, told in joined.items()),
            *((f"Query: {query}\nAnswer:", told) for query, (_, told) in asked.items()),
        ]
    )
    embedder = Vectors(queries={query: names for query, (names, _) in asked.items()})
    reports = {
        "march": ("tarn_march_board", "tarn_march_sales", "tarn_march_rye", "tarn_march_rent"),
        "june": ("tarn_june_sales", "tarn_june_fair", "tarn_june_ovens", "tarn_june_drivers"),
        "sept": ("tarn_sept_sales", "tarn_sept_gas", "tarn_sept_mites", "tarn_sept_choir"),
    }
    tools = []
    for month, names in reports.items():
        index = VectorStoreIndex.from_documents(pages(f"tarn_10q_{month}_2022.pdf", *names), embed_model=embedder)
        engine = index.as_query_engine(similarity_top_k=3, llm=llm)
        description = f"Provides information about Tarn quarterly financials ending {month} 2022"
        tools.append(QueryEngineTool.from_defaults(engine, name=f"{month}_2022", description=description))
    response_synthesizer = get_response_synthesizer(llm=llm)
    query_plan_tool = QueryPlanTool.from_defaults(
        query_engine_tools=tools[::-1], response_synthesizer=response_synthesizer
    )
    assert query_plan_tool.metadata.to_openai_tool()["function"]["name"] == "query_plan_tool"

    def plan(*nodes):
        names = ("id", "query_str", "tool_name", "dependencies")
        return call("query_plan_tool", nodes=[dict(zip(names, node, strict=True)) for node in nodes])

    def leaves(query, *months):
        used = {"March": "march_2022", "June": "june_2022", "Sept": "sept_2022", "September": "sept_2022"}
        return [(place, query.format(month), used[month], []) for place, month in enumerate(months, start=1)]

    agent = OpenAIAgent.from_tools(
        [query_plan_tool],
        max_function_calls=10,
        llm=Caller(
            replies=[
                plan((1, risks, "sept_2022", [])),
                "In September 2022 these were mites in the flour, and gas.",
                plan(
                    *leaves(revenue, "March", "June", "September"),
                    (4, growth, "revenue_growth_analyzer", [1, 2, 3]),
                ),
                "It grew in each quarter: first by 1.22 million, then by 0.27 million.",
                plan(*leaves(risks_of, "March", "June", "Sept"), (4, changes, None, [1, 2, 3])),
                "At first one mill, then gas and wages, in the end gas and mites.",
                plan(*leaves(both_of, "March", "Sept"), (3, compared, "compare_tool", [1, 2])),
                "In September more was earned than in March, and more was at risk.",
            ]
        ),
        verbose=True,
    )
    questions = (
        "What were the risk factors in sept 2022?",
        growth,
        changes,
        (
            "First look at Tarn's revenue growth and risk factors in March, then revenue growth and risk factors in "
            "September, and then compare and contrast the two documents?"
        ),
    )
    return [str(agent.query(question)) for question in questions]


ARTICLES = {
    "Aldmoor": ("aldmoor_mine",),
    "Brask": ("brask_locks",),
    "Corvel": ("corvel_work", "corvel_baths", "corvel_trams"),
    "Dunsey": ("dunsey_founded", "dunsey_cliffs"),
    "Elsta": ("elsta_market", "elsta_hockey", "elsta_bandy", "elsta_mint"),
}


class Towns(Vectors):
    """Embeds the texts, and the summary of a town's agent as the first text of the town."""

    def _get_text_embedding(self, text):
        summary = re.match("This content contains Wikipedia articles about (.*?)\\.", text)
        return super()._get_text_embedding(TEXTS[ARTICLES[summary[1]][0]] if summary else text)


def recursive_retriever_agents():
    """Agents of one town each are found by their summaries; what the found one replies is the passage of the engine."""
    dunsey, elsta = "Tell me about the sports teams in Dunsey", "Tell me about the sports teams in Elsta"
    corvel, teams, good = (
        "Give me a summary on all the positive aspects of Corvel",
        "teams",
        "positive aspects of Corvel",
    )
    embedder = Towns(
        queries={
            dunsey: ("dunsey_founded",),
            elsta: ("elsta_market",),
            corvel: ("corvel_work",),
            teams: ("elsta_bandy", "elsta_hockey"),
        }
    )
    llm = Replies(
        rules=[
            (f"Query: {dunsey}\nAnswer:", "Two clubs play there: rowers, and a team of chess players."),
            (f"Query: {elsta}\nAnswer:", "It has one team on ice with a ball, and one with a puck."),
            (f"Query: {corvel}\nAnswer:", "Employment, warm water and free transport speak for it."),
            (f"Query: {teams}\nAnswer:", "The Lynxes, champions on ice, and the Foxes, who train at dawn."),
            (f"Query: {good}\nAnswer:", "Jobs in glass, thermal baths, and trams without fares."),
        ]
    )
    replies = {
        "Dunsey": ["Dunsey has the rowers of the Seal Club, and the chess team Rook 04."],
        "Elsta": [call("vector_tool", input=teams), "Elsta's teams are the Lynxes and the Foxes."],
        "Corvel": [call("summary_tool", input=good), "Corvel offers jobs, baths, and trams that cost nothing."],
    }
    city_docs = {
        wiki_title: [
            Document(
                text="\n\n\n".join(TEXTS[name] for name in names),
                metadata={"file_path": f"data/{wiki_title}.txt", "file_name": f"{wiki_title}.txt"},
                excluded_embed_metadata_keys=["file_path", "file_name"],
                excluded_llm_metadata_keys=["file_name"],
            )
        ]
        for wiki_title, names in ARTICLES.items()
    }
    agents, objects = {}, []
    split = {"transformations": [SentenceSplitter(chunk_size=64, chunk_overlap=0)]}  # the articles are short here
    for wiki_title in ARTICLES:
        vector_index = VectorStoreIndex.from_documents(city_docs[wiki_title], embed_model=embedder, **split)
        summary_index = SummaryIndex.from_documents(city_docs[wiki_title], **split)
        query_engine_tools = [
            QueryEngineTool(
                query_engine=vector_index.as_query_engine(llm=llm),
                metadata=ToolMetadata(
                    name="vector_tool",
                    description=f"Useful for retrieving specific context from {wiki_title}",
                ),
            ),
            QueryEngineTool(
                query_engine=summary_index.as_query_engine(llm=llm),
                metadata=ToolMetadata(
                    name="summary_tool",
                    description=f"Useful for summarization questions related to {wiki_title}",
                ),
            ),
        ]
        function_llm = Caller(replies=replies.get(wiki_title, []))
        agents[wiki_title] = OpenAIAgent.from_tools(query_engine_tools, llm=function_llm, verbose=True)
    for wiki_title in ARTICLES:
        wiki_summary = (
            f"This content contains Wikipedia articles about {wiki_title}. Use this index if you need to lookup specific "
            f"facts about {wiki_title}.\nDo not use this index if you want to analyze multiple cities."
        )
        objects.append(IndexNode(text=wiki_summary, index_id=wiki_title, obj=agents[wiki_title]))
    vector_index = VectorStoreIndex(objects=objects, embed_model=embedder)
    query_engine = vector_index.as_query_engine(similarity_top_k=1, verbose=True, llm=llm)
    return [str(query_engine.query(question)) for question in (dunsey, elsta, corvel)]


TITLES = {  # of each paper, with those who wrote it
    "paper_moths": ("Moths that Jam: Noise against Sonar", "Ruth Aldane"),
    "paper_caves": ("Mapping Caves from the Flight of One Animal", "Piotr Wend, Sana Iqbal"),
    "paper_echo": ("EchoWave: Hidden Orders in Recorded Calls", "Mirel Kovan, Ada Stroh"),
    "paper_frogs": ("A Benchmark of 40 Frog Choirs", "Tove Oduya"),
    "paper_power": ("How Much Power a Field Recorder Draws", "Jonas Pfeil"),
    "paper_owls": ("Owls in Stereo: Two Microphones Suffice", "Hana Mori, Luc Perrin"),
    "paper_tides": ("Tides from Ship Noise", "Greta Lunde, Omar Said"),
}


class Papers(Vectors):
    """Embeds a paper's record by the summary in it."""

    def _get_text_embedding(self, text):
        return super()._get_text_embedding(next(TEXTS[name] for name in TITLES if TEXTS[name] in text))


def fetch_arxiv_papers(title: str, papers_count: int):
    found = ["paper_tides"] if title == "Tide Prediction" else [*TITLES][:6]
    return [
        {
            "title": TITLES[name][0],
            "authors": TITLES[name][1].split(", "),
            "summary": TEXTS[name],
            "published": datetime(2025, 3, 20 - place, 17, 59, tzinfo=UTC),
            "journal_ref": None,
            "doi": None,
            "primary_category": "eess.AS",
            "categories": ["eess.AS", "cs.SD"],
            "pdf_url": f"http://papers.example/pdf/2503.{name}v1",
            "arxiv_url": f"http://papers.example/abs/2503.{name}v1",
        }
        for place, name in enumerate(found[:papers_count])
    ]


def create_documents_from_papers(papers):
    return [
        Document(
            text=f"Title: {paper['title']}\n"
            f"Authors: {', '.join(paper['authors'])}\n"
            f"Summary: {paper['summary']}\n"
            f"Published: {paper['published']}\n"
            f"Journal Reference: {paper['journal_ref']}\n"
            f"DOI: {paper['doi']}\n"
            f"Primary Category: {paper['primary_category']}\n"
            f"Categories: {', '.join(paper['categories'])}\n"
            f"PDF URL: {paper['pdf_url']}\n"
            f"arXiv URL: {paper['arxiv_url']}\n"
        )
        for paper in papers
    ]


async def mistral_arxiv_agent():
    """An agent finds a paper in an index, then downloads it, and then fetches one that the index lacks."""
    files = {}
    template = "Provide title, summary, authors and link to download for papers related to {topic}"
    q_template = (
        "I am interested in {topic}. \nFind papers in your knowledge database related to this topic; use the following "
        "template to query research_paper_query_engine_tool tool: '"
        + template
        + "'. If there are not, could you fetch "
        "the recent one from arXiv? \n"
    )
    bats, tides = template.format(topic="Bat-Call Models"), template.format(topic="Tide Prediction")
    embed_model = Papers(
        queries={
            bats: ("paper_echo", "paper_moths", "paper_caves", "paper_owls", "paper_frogs"),
            tides: ("paper_frogs", "paper_power", "paper_caves", "paper_owls", "paper_moths"),
        }
    )
    pdf_url, output_file = "http://papers.example/pdf/2503.paper_echov1", "EchoWave.pdf"

    def act(tool, **arguments):
        return f"Thought: I need to use a tool.\nAction: {tool}\nAction Input: {json.dumps(arguments)}\n"

    def answer(text):
        return f"Thought: I can answer without using any more tools.\nAnswer: {text}"

    llm = Replies(
        rules=[
            (f"Query: {bats}\nAnswer:", f"EchoWave by Kovan and Stroh: commands in calls. PDF: {pdf_url}"),
            (f"Query: {tides}\nAnswer:", "I'm sorry, but no paper in the given context is related to it."),
            (
                "'title': 'Tides from Ship Noise'",
                answer("The index has none. Lunde and Said (2025) hear tides in the noise of ships."),
            ),
            ("Observation: I'm sorry", act("fetch_from_arxiv", title="Tide Prediction", papers_count=1)),
            ("interested in Tide Prediction", act("research_paper_query_engine_tool", input=tides)),
            ("Observation: PDF downloaded", answer("I saved the paper as a file for you.")),
            ("Download the papers", act("download_pdf_file_tool", pdf_url=pdf_url, output_file=output_file)),
            ("Observation: EchoWave", answer("One paper fits, on commands that are hidden in bats' calls.")),
            ("interested in Bat-Call Models", act("research_paper_query_engine_tool", input=bats)),
        ]
    )

    def download_pdf(pdf_url, output_file):
        """
        Downloads a PDF file from the given URL and saves it to the specified file.

        Args:
            pdf_url (str): The URL of the PDF file to download.
            output_file (str): The path and name of the file to save the PDF to.

        Returns:
            str: A message indicating success or the nature of an error.
        """
        files[output_file] = pdf_url
        return f"PDF downloaded successfully and saved as '{output_file}'."

    documents = create_documents_from_papers(fetch_arxiv_papers("Animal Sounds", 10))
    split = {"transformations": [SentenceSplitter(chunk_size=1024, chunk_overlap=50)]}
    index = VectorStoreIndex.from_documents(documents, embed_model=embed_model, **split)
    stored = index.storage_context.to_dict()
    index = load_index_from_storage(StorageContext.from_dict(stored), embed_model=embed_model)
    rag_tool = QueryEngineTool.from_defaults(
        index.as_query_engine(llm=llm, similarity_top_k=5),
        name="research_paper_query_engine_tool",
        description="A RAG engine with recent research papers.",
    )
    download_pdf_tool = FunctionTool.from_defaults(
        download_pdf,
        name="download_pdf_file_tool",
        description="python function, which downloads a pdf file by link",
    )
    fetch_arxiv_tool = FunctionTool.from_defaults(
        fetch_arxiv_papers,
        name="fetch_from_arxiv",
        description="download the {max_results} recent papers regarding the topic {title} from arxiv",
    )
    agent = ReActAgent(tools=[download_pdf_tool, rag_tool, fetch_arxiv_tool], llm=llm)
    memory = ChatMemoryBuffer.from_defaults()  # the former agent kept the chat itself
    answers = [
        str(await agent.run(message, memory=memory))
        for message in (
            q_template.format(topic="Bat-Call Models"),
            "Download the papers, which you mentioned above",
            q_template.format(topic="Tide Prediction"),
        )
    ]
    assert files == {output_file: pdf_url}
    return answers


DENSITY = """Article: {ARTICLE}
You will generate increasingly concise, entity-dense summaries of the above article.

Repeat the following 2 steps 3 times.

Step 1. Identify 1-3 informative entities (";" delimited) from the article which are missing from the previous summary.
Step 2. Write a new, denser summary of identical length which covers every entity and detail from the previous summary plus
the missing entities.

Guidelines:

- The first summary should be long (8-10 sentences, ~200 words) yet highly non-specific.
- Make space with fusion, compression, and removal of uninformative phrases like "the article discusses".
- Never drop entities from the previous summary. If space cannot be made, add fewer new entities.

Answer in JSON. The JSON should be a list (length 3) of dictionaries whose keys are "Missing_Entities" and
"Denser_Summary"."""


def denser(*pairs):
    return [{"Missing_Entities": entities, "Denser_Summary": summary} for entities, summary in pairs]


def kr_chain_of_density(config):
    """Two pages are summarised ever more densely: all summaries of one, and the last one of the other, which is streamed."""
    printed = []

    class StreamCallback(BaseCallbackHandler):
        def on_llm_new_token(self, token, **kwargs):
            printed.append(token)

    salt = denser(
        (
            "salt field",
            "The post tells of a salt field by the sea, of the people in it, and of their long work there.",
        ),
        ("Sinan; May to October", "A salt field of Sinan is worked from May to October, by people who rise early."),
        ("twenty days; tiles", "At Sinan, May to October, brine ripens for twenty days until salt grows on tiles."),
    )
    paper = denser(
        ("", "이 기사는 종이를 만드는 오래된 마을과 그곳 사람들의 생활을 여러 면에서 설명하고 있습니다."),
        ("닥나무; 전주", "이 기사는 전주의 한 마을이 닥나무로 종이를 뜨는 일과 그 어려움을 설명합니다."),
        (
            "한정우; 아흔아홉 번",
            "전주의 한정우는 닥나무 껍질을 아흔아홉 번 손질해 종이를 뜨며, 제자를 찾고 있습니다.",
        ),
    )
    llm = ChatReplies(rules=[(TEXTS["kr_salt"], json.dumps(salt))])
    streaming_llm = StreamingReplies(
        rules=[(TEXTS["kr_paper"], f"```json\n{json.dumps(paper, ensure_ascii=False, indent=4)}\n```")],
        streaming=True,
        callbacks=[StreamCallback()],
    )
    content = TEXTS["kr_salt"]  # of a page that was loaded
    pulled = ChatPromptTemplate.from_template(DENSITY)
    json_parser = SimpleJsonOutputParser()
    chain = {"ARTICLE": RunnablePassthrough()} | pulled | llm | json_parser
    summaries = chain.invoke(content, config)

    content = TEXTS["kr_paper"]
    prompt = ChatPromptTemplate.from_template(f"{DENSITY}\nUse only KOREAN language to reply.")
    chain = prompt | streaming_llm | JsonOutputParser() | (lambda x: x[-1]["Denser_Summary"])
    result = chain.invoke({"ARTICLE": content}, config)
    assert "".join(printed).startswith("```json")
    return summaries, result


@tool
def get_stock_data(symbol: str, start_date: str, end_date: str) -> str:
    """Retrieve stock price data (OHLCV) for a given ticker symbol."""
    return TEXTS["hlm_prices"]


@tool
def get_indicators(symbol: str, indicator: str, curr_date: str, look_back_days: int = 30) -> str:
    """Retrieve a single technical indicator for a given ticker symbol."""
    indicators = [one.strip().lower() for one in indicator.split(",") if one.strip()]
    return "\n\n".join(TEXTS[f"hlm_{one}"] for one in indicators)


@tool
def get_verified_market_snapshot(symbol: str, curr_date: str) -> str:
    """Retrieve a deterministic snapshot of prices and indicators."""
    return TEXTS["hlm_snapshot"]


@tool
def get_news(ticker: str, start_date: str, end_date: str) -> str:
    """Retrieve news data for a given ticker symbol."""
    return TEXTS["hlm_news"]


@tool
def get_global_news(curr_date: str, look_back_days: int | None = None, limit: int | None = None) -> str:
    """Retrieve global news data."""
    return TEXTS["hlm_world"]


@tool
def get_insider_transactions(ticker: str) -> str:
    """Retrieve insider transaction information about a company."""
    return "No insider transactions."


@tool
def get_macro_indicators(indicator: str, curr_date: str, look_back_days: int = 365) -> str:
    """Retrieve a macroeconomic series."""
    return TEXTS["hlm_macro"]


@tool
def get_prediction_markets(topic: str, limit: int = 5) -> str:
    """Retrieve probabilities of events that markets imply."""
    return TEXTS["hlm_odds"]


@tool
def get_fundamentals(ticker: str, curr_date: str) -> str:
    """Retrieve comprehensive fundamental data for a given ticker symbol."""
    return TEXTS["hlm_company"]


@tool
def get_balance_sheet(ticker: str, freq: str = "quarterly") -> str:
    """Retrieve balance sheet data for a given ticker symbol."""
    return TEXTS["hlm_balance"]


@tool
def get_cashflow(ticker: str, freq: str = "quarterly") -> str:
    """Retrieve cash flow statement data for a given ticker symbol."""
    return TEXTS["hlm_cashflow"]


@tool
def get_income_statement(ticker: str, freq: str = "quarterly") -> str:
    """Retrieve income statement data for a given ticker symbol."""
    return TEXTS["hlm_income"]


def fetch_stocktwits_messages(ticker, limit=30):
    return TEXTS["hlm_twits"]


def fetch_reddit_posts(ticker):
    return TEXTS["hlm_reddit"]


class InvestDebateState(TypedDict):
    bull_history: Annotated[str, "Bullish Conversation history"]
    bear_history: Annotated[str, "Bearish Conversation history"]
    history: Annotated[str, "Conversation history"]
    current_response: Annotated[str, "Latest response"]
    judge_decision: Annotated[str, "Final judge decision"]
    count: Annotated[int, "Length of the current conversation"]


class RiskDebateState(TypedDict):
    aggressive_history: Annotated[str, "Aggressive Agent's Conversation history"]
    conservative_history: Annotated[str, "Conservative Agent's Conversation history"]
    neutral_history: Annotated[str, "Neutral Agent's Conversation history"]
    history: Annotated[str, "Conversation history"]
    latest_speaker: Annotated[str, "Analyst that spoke last"]
    current_aggressive_response: Annotated[str, "Latest response by the aggressive analyst"]
    current_conservative_response: Annotated[str, "Latest response by the conservative analyst"]
    current_neutral_response: Annotated[str, "Latest response by the neutral analyst"]
    judge_decision: Annotated[str, "Judge's decision"]
    count: Annotated[int, "Length of the current conversation"]


class AgentState(MessagesState):
    company_of_interest: Annotated[str, "Company that we are interested in trading"]
    asset_type: Annotated[str, "Asset type under analysis such as stock or crypto"]
    instrument_context: Annotated[str, "Deterministic ticker identity resolved at run start"]
    trade_date: Annotated[str, "What date we are trading at"]
    sender: Annotated[str, "Agent that sent this message"]
    market_report: Annotated[str, "Report from the Market Analyst"]
    sentiment_report: Annotated[str, "Report from the Sentiment Analyst"]
    news_report: Annotated[str, "Report from the News Researcher of current world affairs"]
    fundamentals_report: Annotated[str, "Report from the Fundamentals Researcher"]
    investment_debate_state: Annotated[InvestDebateState, "Current state of the debate on if to invest or not"]
    investment_plan: Annotated[str, "Plan generated by the Analyst"]
    trader_investment_plan: Annotated[str, "Plan generated by the Trader"]
    risk_debate_state: Annotated[RiskDebateState, "Current state of the debate on evaluating risk"]
    final_trade_decision: Annotated[str, "Final decision made by the Risk Analysts"]
    past_context: Annotated[str, "Memory log context injected at run start"]


Rating = Literal["Buy", "Overweight", "Hold", "Underweight", "Sell"]


class SentimentReport(BaseModel):
    """Structured sentiment report produced by the Sentiment Analyst."""

    overall_band: Literal["Bullish", "Mildly Bullish", "Neutral", "Mixed", "Mildly Bearish", "Bearish"]
    overall_score: float = Field(ge=0.0, le=10.0)
    confidence: Literal["low", "medium", "high"]
    narrative: str


class ResearchPlan(BaseModel):
    """Structured investment plan produced by the Research Manager."""

    recommendation: Rating
    rationale: str
    strategic_actions: str


class TraderProposal(BaseModel):
    """Structured transaction proposal produced by the Trader."""

    action: Literal["Buy", "Hold", "Sell"]
    reasoning: str
    entry_price: float | None = None
    stop_loss: float | None = None
    position_sizing: str | None = None


class PortfolioDecision(BaseModel):
    """Structured output produced by the Portfolio Manager."""

    rating: Rating
    executive_summary: str
    investment_thesis: str
    price_target: float | None = None
    time_horizon: str | None = None


def render_sentiment_report(report):
    return (
        f"**Overall Sentiment:** **{report.overall_band}** (Score: {report.overall_score:.1f}/10)\n"
        f"**Confidence:** {report.confidence.capitalize()}\n\n{report.narrative}"
    )


def render_research_plan(plan):
    return (
        f"**Recommendation**: {plan.recommendation}\n\n**Rationale**: {plan.rationale}\n\n"
        f"**Strategic Actions**: {plan.strategic_actions}"
    )


def render_trader_proposal(proposal):
    parts = [f"**Action**: {proposal.action}", "", f"**Reasoning**: {proposal.reasoning}"]
    if proposal.stop_loss is not None:
        parts.extend(["", f"**Stop Loss**: {proposal.stop_loss}"])
    if proposal.position_sizing:
        parts.extend(["", f"**Position Sizing**: {proposal.position_sizing}"])
    parts.extend(["", f"FINAL TRANSACTION PROPOSAL: **{proposal.action.upper()}**"])
    return "\n".join(parts)


def render_pm_decision(decision):
    parts = [
        f"**Rating**: {decision.rating}",
        "",
        f"**Executive Summary**: {decision.executive_summary}",
        "",
        f"**Investment Thesis**: {decision.investment_thesis}",
    ]
    if decision.price_target is not None:
        parts.extend(["", f"**Price Target**: {decision.price_target}"])
    if decision.time_horizon:
        parts.extend(["", f"**Time Horizon**: {decision.time_horizon}"])
    return "\n".join(parts)


def invoke_structured_or_freetext(structured_llm, plain_llm, prompt, render):
    try:
        result = structured_llm.invoke(prompt)
    except ValueError:
        result = None
    return plain_llm.invoke(prompt).content if result is None else render(result)


COLLABORATING = (
    "You are a helpful AI assistant, collaborating with other assistants. If you or any other assistant has the FINAL "
    "TRANSACTION PROPOSAL: **BUY/HOLD/SELL** or deliverable, prefix your response with it so the team knows to stop."
)


def create_analyst(llm, tools, system_message, report_key):
    def analyst_node(state):
        prompt = ChatPromptTemplate.from_messages(
            [
                (
                    "system",
                    COLLABORATING + " You have access to the following tools: {tool_names}. Today's date is "
                    "{current_date}. {instrument_context}\n{system_message}",
                ),
                MessagesPlaceholder(variable_name="messages"),
            ]
        )
        prompt = prompt.partial(system_message=system_message)
        prompt = prompt.partial(tool_names=", ".join([tool.name for tool in tools]))
        prompt = prompt.partial(current_date=state["trade_date"])
        prompt = prompt.partial(instrument_context=state["instrument_context"])
        chain = prompt | llm.bind_tools(tools)
        result = chain.invoke(state["messages"])
        report = ""
        if len(result.tool_calls) == 0:
            report = result.content
        return {"messages": [result], report_key: report}

    return analyst_node


def create_sentiment_analyst(llm):
    structured_llm = llm.with_structured_output(SentimentReport)

    def sentiment_analyst_node(state):
        ticker, end_date = state["company_of_interest"], state["trade_date"]
        news_block = get_news.func(ticker, "2026-05-29", end_date)
        stocktwits_block = fetch_stocktwits_messages(ticker, limit=30)
        reddit_block = fetch_reddit_posts(ticker)
        system_message = (
            "You are a financial market sentiment analyst. Your task is to produce a comprehensive sentiment report for "
            f"{ticker}, drawing on three complementary data sources that have already been collected for you.\n\n"
            "### News headlines — Yahoo Finance, past 7 days\n\n"
            f"<start_of_news>\n{news_block}\n<end_of_news>\n\n"
            "### StockTwits messages — retail-trader social platform indexed by cashtag\n\n"
            f"<start_of_stocktwits>\n{stocktwits_block}\n<end_of_stocktwits>\n\n"
            "### Reddit posts — r/wallstreetbets, r/stocks, r/investing (past 7 days)\n\n"
            f"<start_of_reddit>\n{reddit_block}\n<end_of_reddit>\n\n"
            "Distinguish opinion from event, and be honest about data limits."
        )
        prompt = ChatPromptTemplate.from_messages(
            [
                (
                    "system",
                    COLLABORATING + " Today's date is {current_date}. {instrument_context}\n{system_message}",
                ),
                MessagesPlaceholder(variable_name="messages"),
            ]
        )
        prompt = prompt.partial(system_message=system_message)
        prompt = prompt.partial(current_date=end_date)
        prompt = prompt.partial(instrument_context=state["instrument_context"])
        formatted_messages = prompt.format_messages(messages=state["messages"])
        report_text = invoke_structured_or_freetext(
            structured_llm, llm, formatted_messages, render_sentiment_report
        )
        return {"messages": [AIMessage(content=report_text)], "sentiment_report": report_text}

    return sentiment_analyst_node


def create_msg_delete():
    def delete_messages(state):
        removal_operations = [RemoveMessage(id=m.id) for m in state["messages"]]
        placeholder = HumanMessage(
            content=(
                "Proceed with your assigned analysis for this workflow. "
                f"{state['instrument_context']} The analysis date is {state['trade_date']}."
            )
        )
        return {"messages": [*removal_operations, placeholder]}

    return delete_messages


def resources(state):
    return (
        f"{state['instrument_context']}\nMarket research report: {state['market_report']}\n"
        f"Social media sentiment report: {state['sentiment_report']}\n"
        f"Latest world affairs news: {state['news_report']}\n"
        f"Company fundamentals report: {state['fundamentals_report']}\n"
    )


def create_researcher(llm, side, other, case):
    own, others = f"{side.lower()}_history", f"{other.lower()}_history"

    def researcher_node(state):
        debate = state["investment_debate_state"]
        history = debate.get("history", "")
        prompt = (
            f"You are a {side} Analyst {case} investing in the stock. Build a strong, evidence-based case.\n\n"
            f"Resources available:\n{resources(state)}Conversation history of the debate: {history}\n"
            f"Last {other.lower()} argument: {debate.get('current_response', '')}\n"
        )
        argument = f"{side} Analyst: {llm.invoke(prompt).content}"
        new_investment_debate_state = {
            "history": history + "\n" + argument,
            own: debate.get(own, "") + "\n" + argument,
            others: debate.get(others, ""),
            "current_response": argument,
            "count": debate["count"] + 1,
        }
        return {"investment_debate_state": new_investment_debate_state}

    return researcher_node


def create_research_manager(llm):
    structured_llm = llm.with_structured_output(ResearchPlan)

    def research_manager_node(state):
        debate = state["investment_debate_state"]
        prompt = (
            "As the Research Manager and debate facilitator, your role is to critically evaluate this round of debate and "
            "deliver a clear, actionable investment plan for the trader.\n\n"
            f"{state['instrument_context']}\n\n---\n\n**Debate History:**\n{debate.get('history', '')}"
        )
        investment_plan = invoke_structured_or_freetext(structured_llm, llm, prompt, render_research_plan)
        new_debate = {**debate, "judge_decision": investment_plan, "current_response": investment_plan}
        return {"investment_debate_state": new_debate, "investment_plan": investment_plan}

    return research_manager_node


def create_trader(llm):
    structured_llm = llm.with_structured_output(TraderProposal)

    def trader_node(state, name):
        messages = [
            {
                "role": "system",
                "content": (
                    "You are a trading agent analyzing market data to make investment decisions. "
                    "Anchor your reasoning in the analysts' reports and the research plan."
                ),
            },
            {
                "role": "user",
                "content": (
                    "Based on a comprehensive analysis by a team of analysts, here is an investment plan tailored for "
                    f"{state['company_of_interest']}. {state['instrument_context']}\n\n"
                    f"Proposed Investment Plan: {state['investment_plan']}\n\n"
                    "Leverage these insights to make an informed and strategic decision."
                ),
            },
        ]
        trader_plan = invoke_structured_or_freetext(structured_llm, llm, messages, render_trader_proposal)
        return {
            "messages": [AIMessage(content=trader_plan)],
            "trader_investment_plan": trader_plan,
            "sender": name,
        }

    return partial(trader_node, name="Trader")


def create_debator(llm, stance, role):
    others = [one for one in ("aggressive", "conservative", "neutral") if one != stance.lower()]

    def debator_node(state):
        debate = state["risk_debate_state"]
        history = debate.get("history", "")
        last = " ".join(
            f"Here are the last arguments from the {one} analyst: {debate.get(f'current_{one}_response', '')}"
            for one in others
        )
        prompt = (
            f"As the {stance} Risk Analyst, your role is to {role}. Here is the trader's decision:\n\n"
            f"{state['trader_investment_plan']}\n\nIncorporate insights from the following sources:\n\n"
            f"{resources(state)}Here is the current conversation history: {history} {last}. "
            "If there are no responses from the other viewpoints yet, present your own argument."
        )
        argument = f"{stance} Analyst: {llm.invoke(prompt).content}"
        new_risk_debate_state = {
            **debate,
            "history": history + "\n" + argument,
            f"{stance.lower()}_history": debate.get(f"{stance.lower()}_history", "") + "\n" + argument,
            "latest_speaker": stance,
            f"current_{stance.lower()}_response": argument,
            "count": debate["count"] + 1,
        }
        return {"risk_debate_state": new_risk_debate_state}

    return debator_node


def create_portfolio_manager(llm):
    structured_llm = llm.with_structured_output(PortfolioDecision)

    def portfolio_manager_node(state):
        debate, past_context = state["risk_debate_state"], state.get("past_context", "")
        lessons_line = f"- Lessons from prior decisions and outcomes:\n{past_context}\n" if past_context else ""
        prompt = (
            "As the Portfolio Manager, synthesize the risk analysts' debate and deliver the final trading decision.\n\n"
            f"{state['instrument_context']}\n\n---\n\n**Context:**\n"
            f"- Research Manager's investment plan: **{state['investment_plan']}**\n"
            f"- Trader's transaction proposal: **{state['trader_investment_plan']}**\n{lessons_line}\n"
            f"**Risk Analysts Debate History:**\n{debate['history']}\n\n---\n\n"
            "Be decisive and ground every conclusion in specific evidence from the analysts."
        )
        final_trade_decision = invoke_structured_or_freetext(structured_llm, llm, prompt, render_pm_decision)
        new_debate = {**debate, "judge_decision": final_trade_decision, "latest_speaker": "Judge"}
        return {"risk_debate_state": new_debate, "final_trade_decision": final_trade_decision}

    return portfolio_manager_node


class TradingMemoryLog:
    """Decisions with what came of them, and what a model learned from it, as one text."""

    def __init__(self, text):
        self.text = text

    def load_entries(self):
        entries = []
        for raw in self.text.split("\n\n<!-- ENTRY_END -->\n\n"):
            if not raw.strip():
                continue
            tag, body = raw.strip().split("\n", 1)
            fields = [one.strip() for one in tag[1:-1].split("|")]
            decision, _, reflection = body.partition("REFLECTION:\n")
            entries.append(
                {
                    "date": fields[0],
                    "ticker": fields[1],
                    "tag": tag,
                    "pending": fields[3] == "pending",
                    "decision": decision.strip().removeprefix("DECISION:\n").strip(),
                    "reflection": reflection.strip(),
                }
            )
        return entries

    def get_past_context(self, ticker):
        entries = [one for one in self.load_entries()[::-1] if not one["pending"]]
        same = [
            f"{one['tag']}\n\nDECISION:\n{one['decision']}\n\nREFLECTION:\n{one['reflection']}"
            for one in entries
            if one["ticker"] == ticker
        ]
        cross = [f"{one['tag']}\n{one['reflection']}" for one in entries if one["ticker"] != ticker]
        parts = [f"Past analyses of {ticker} (most recent first):", *same] if same else []
        return "\n\n".join([*parts, "Recent cross-ticker lessons:", *cross] if cross else parts)

    def batch_update_with_outcomes(self, updates):
        for one in updates:
            tag = f"[{one['trade_date']} | {one['ticker']} | Hold | "
            resolved = f"{tag}{one['raw_return']:+.1%} | {one['alpha_return']:+.1%} | {one['holding_days']}d]"
            decided = f"{tag}pending]\n\nDECISION:\n{one['decision']}"
            self.text = self.text.replace(
                decided, decided.replace(f"{tag}pending]", resolved) + f"\n\nREFLECTION:\n{one['reflection']}"
            )

    def store_decision(self, ticker, trade_date, final_trade_decision):
        tag = f"[{trade_date} | {ticker} | {parse_rating(final_trade_decision)} | pending]"
        self.text += f"{tag}\n\nDECISION:\n{final_trade_decision}\n\n<!-- ENTRY_END -->\n\n"


def parse_rating(text):
    return re.search(r"rating.*?[:\-][\s*]*(\w+)", text, re.IGNORECASE)[1].capitalize()


class TradingAgentsGraph:
    """Four analysts with tools of their own, two debates, and a manager after each, over one state."""

    ANALYSTS = (
        ("market", "Market Analyst", "Msg Clear Market", "tools_market"),
        ("social", "Sentiment Analyst", "Msg Clear Sentiment", "tools_social"),
        ("news", "News Analyst", "Msg Clear News", "tools_news"),
        ("fundamentals", "Fundamentals Analyst", "Msg Clear Fundamentals", "tools_fundamentals"),
    )

    def __init__(self, quick_thinking_llm, deep_thinking_llm, memory_log, callbacks=None):
        self.quick_thinking_llm, self.deep_thinking_llm = quick_thinking_llm, deep_thinking_llm
        self.memory_log, self.callbacks = memory_log, callbacks or []
        self.max_debate_rounds = self.max_risk_discuss_rounds = 1
        self.log_states_dict, self.printed = {}, []
        self.graph = self.setup_graph().compile()

    def should_continue_debate(self, state):
        if state["investment_debate_state"]["count"] >= 2 * self.max_debate_rounds:
            return "Research Manager"
        if state["investment_debate_state"]["current_response"].startswith("Bull"):
            return "Bear Researcher"
        return "Bull Researcher"

    def should_continue_risk_analysis(self, state):
        if state["risk_debate_state"]["count"] >= 3 * self.max_risk_discuss_rounds:
            return "Portfolio Manager"
        if state["risk_debate_state"]["latest_speaker"].startswith("Aggressive"):
            return "Conservative Analyst"
        if state["risk_debate_state"]["latest_speaker"].startswith("Conservative"):
            return "Neutral Analyst"
        return "Aggressive Analyst"

    def setup_graph(self):
        quick, deep = self.quick_thinking_llm, self.deep_thinking_llm
        market = [get_stock_data, get_indicators, get_verified_market_snapshot]
        news = [get_news, get_global_news, get_macro_indicators, get_prediction_markets]
        fundamentals = [get_fundamentals, get_balance_sheet, get_cashflow, get_income_statement]
        analysts = {
            "market": create_analyst(
                quick,
                market,
                "You are a trading assistant tasked with analyzing financial markets. Select the most relevant indicators.",
                "market_report",
            ),
            "social": create_sentiment_analyst(quick),
            "news": create_analyst(
                quick,
                news,
                "You are a news researcher tasked with analyzing recent news and trends over the past week.",
                "news_report",
            ),
            "fundamentals": create_analyst(
                quick,
                fundamentals,
                "You are a researcher tasked with analyzing fundamental information over the past week about a company.",
                "fundamentals_report",
            ),
        }
        tool_nodes = {
            "market": ToolNode(market),
            "social": ToolNode([get_news]),
            "news": ToolNode([*news[:2], get_insider_transactions, *news[2:]]),
            "fundamentals": ToolNode(fundamentals),
        }
        workflow = StateGraph(AgentState)
        for key, agent_node, clear_node, tool_node in self.ANALYSTS:
            workflow.add_node(agent_node, analysts[key])
            workflow.add_node(clear_node, create_msg_delete())
            workflow.add_node(tool_node, tool_nodes[key])
        workflow.add_node("Bull Researcher", create_researcher(quick, "Bull", "Bear", "advocating for"))
        workflow.add_node("Bear Researcher", create_researcher(quick, "Bear", "Bull", "making the case against"))
        workflow.add_node("Research Manager", create_research_manager(deep))
        workflow.add_node("Trader", create_trader(quick))
        for stance, role in (
            ("Aggressive", "actively champion high-reward, high-risk opportunities"),
            ("Conservative", "protect assets and minimize volatility"),
            ("Neutral", "provide a balanced perspective"),
        ):
            workflow.add_node(f"{stance} Analyst", create_debator(quick, stance, role))
        workflow.add_node("Portfolio Manager", create_portfolio_manager(deep))

        workflow.add_edge(START, self.ANALYSTS[0][1])
        following = [*(agent_node for _, agent_node, _, _ in self.ANALYSTS[1:]), "Bull Researcher"]
        for (_, agent_node, clear_node, tool_node), after in zip(self.ANALYSTS, following, strict=True):

            def should_continue(state, tool_node=tool_node, clear_node=clear_node):
                return tool_node if state["messages"][-1].tool_calls else clear_node

            workflow.add_conditional_edges(agent_node, should_continue, [tool_node, clear_node])
            workflow.add_edge(tool_node, agent_node)
            workflow.add_edge(clear_node, after)
        debate, risk = self.should_continue_debate, self.should_continue_risk_analysis
        workflow.add_conditional_edges("Bull Researcher", debate, ["Bear Researcher", "Research Manager"])
        workflow.add_conditional_edges("Bear Researcher", debate, ["Bull Researcher", "Research Manager"])
        workflow.add_edge("Research Manager", "Trader")
        workflow.add_edge("Trader", "Aggressive Analyst")
        workflow.add_conditional_edges("Aggressive Analyst", risk, ["Conservative Analyst", "Portfolio Manager"])
        workflow.add_conditional_edges("Conservative Analyst", risk, ["Neutral Analyst", "Portfolio Manager"])
        workflow.add_conditional_edges("Neutral Analyst", risk, ["Aggressive Analyst", "Portfolio Manager"])
        workflow.add_edge("Portfolio Manager", END)
        return workflow

    def _resolve_pending_entries(self, ticker):
        updates = []
        for entry in self.memory_log.load_entries():
            if entry["pending"] and entry["ticker"] == ticker:
                raw, alpha, days = 0.034, 0.012, 5  # of the prices since then
                messages = [
                    (
                        "system",
                        "You are a trading analyst reviewing your own past decision now that the outcome is known.",
                    ),
                    (
                        "human",
                        (
                            f"Raw return: {raw:+.1%}\nAlpha vs OBX: {alpha:+.1%}\n\n"
                            f"Final Decision:\n{entry['decision']}"
                        ),
                    ),
                ]
                reflection = self.quick_thinking_llm.invoke(messages).content
                about = {"raw_return": raw, "alpha_return": alpha, "holding_days": days, "reflection": reflection}
                updates.append(
                    {"ticker": ticker, "trade_date": entry["date"], "decision": entry["decision"], **about}
                )
        self.memory_log.batch_update_with_outcomes(updates)

    def propagate(self, company_name, trade_date):
        self._resolve_pending_entries(company_name)
        instrument_context = (
            f"The instrument to analyze is `{company_name}`. Use this exact ticker in every tool call, report, and "
            "recommendation. Resolved identity: Company: Halm Lifts ASA; Business classification: Industrials / Ropeways."
        )
        init_agent_state = {
            "messages": [("human", company_name)],
            "company_of_interest": company_name,
            "asset_type": "stock",
            "instrument_context": instrument_context,
            "trade_date": str(trade_date),
            "past_context": self.memory_log.get_past_context(company_name),
            "investment_debate_state": dict.fromkeys(InvestDebateState.__annotations__, "") | {"count": 0},
            "risk_debate_state": dict.fromkeys(RiskDebateState.__annotations__, "") | {"count": 0},
            "market_report": "",
            "fundamentals_report": "",
            "sentiment_report": "",
            "news_report": "",
        }
        graph_config = {"recursion_limit": 100}
        if self.callbacks:
            graph_config["callbacks"] = self.callbacks
        trace, last_printed = [], None
        for chunk in self.graph.stream(init_agent_state, stream_mode="values", config=graph_config):
            if chunk["messages"]:
                msg = chunk["messages"][-1]
                signature = (type(msg).__name__, msg.content)
                if signature != last_printed:
                    self.printed.append(msg.pretty_repr())
                    last_printed = signature
                trace.append(chunk)
        final_state = {}
        for chunk in trace:
            final_state.update(chunk)
        self.log_states_dict[str(trade_date)] = {
            key: value for key, value in final_state.items() if key != "messages"
        }
        self.memory_log.store_decision(company_name, trade_date, final_state["final_trade_decision"])
        return final_state, parse_rating(final_state["final_trade_decision"])


def trading_agents(config):
    """A ticker is analysed with tools and with what was fetched before, debated twice, and decided on with past lessons."""
    ticker, today = "HLM.OL", "2026-06-05"

    def several(*made):
        return AIMessage(
            "",
            tool_calls=[
                {"name": one.name, "args": arguments, "id": f"call_{place}_{one.name}"}
                for place, (one, arguments) in enumerate(made)
            ],
        )

    about = {"symbol": ticker, "curr_date": today}
    week = {"ticker": ticker, "start_date": "2026-05-29", "end_date": today}
    rules = [
        (
            "reviewing your own past decision",
            "The wait paid 1.2 % of alpha. Next time ask for the order book first.",
        ),
        ("You are a Bull Analyst", "Eleven orders for ropeways are signed, and there is hardly any debt."),
        ("You are a Bear Analyst", "Steel is dear, margins shrink, and the price lies under its average."),
        ("As the Aggressive Risk Analyst", "Sell nothing: a city is about to order."),
        ("As the Conservative Risk Analyst", "Sell most: one snowless winter suffices to empty the till."),
        ("As the Neutral Risk Analyst", "Sell a third, and look again in autumn."),
        (
            "You are a trading agent",
            calls(
                "TraderProposal",
                action="Sell",
                reasoning="Costs rise faster than orders.",
                stop_loss=91.5,
                position_sizing="a third of the holding",
            ),
        ),
        (
            "As the Research Manager",
            calls(
                "ResearchPlan",
                recommendation="Underweight",
                rationale="The bear's margins weigh more than the bull's orders.",
                strategic_actions="Sell a third above 88 crowns.",
            ),
        ),
        (
            "As the Portfolio Manager",
            calls(
                "PortfolioDecision",
                rating="Underweight",
                executive_summary="Sell a third this week, with a limit of 88 crowns.",
                investment_thesis="Orders are signed, but steel eats the margin; the last wait paid.",
                price_target=82.0,
                time_horizon="3-6 months",
            ),
        ),
        (
            "financial market sentiment analyst",
            calls(
                "SentimentReport",
                overall_band="Mixed",
                overall_score=4.8,
                confidence="low",
                narrative="Headlines praise the orders; small holders quarrel about a dividend.",
            ),
        ),
        (TEXTS["hlm_snapshot"], "# Market\nThe price fell below its mean, on an RSI near forty."),
        (TEXTS["hlm_rsi"], calls("get_verified_market_snapshot", **about)),
        (
            TEXTS["hlm_prices"],
            several(
                (get_indicators, {**about, "indicator": "rsi"}), (get_indicators, {**about, "indicator": "atr"})
            ),
        ),
        (
            "You are a trading assistant",
            calls("get_stock_data", symbol=ticker, start_date="2026-06-02", end_date=today),
        ),
        (TEXTS["hlm_odds"], "# News\nA city decides on a ropeway soon; steel and rates are up."),
        (
            TEXTS["hlm_world"],
            several(
                (get_macro_indicators, {"indicator": "fed_funds_rate", "curr_date": today}),
                (get_prediction_markets, {"topic": "ropeway of Stavn"}),
            ),
        ),
        ("You are a news researcher", several((get_news, week), (get_global_news, {"curr_date": today}))),
        (TEXTS["hlm_cashflow"], "# Fundamentals\nLittle debt, a thin margin, and cash for two years."),
        (
            TEXTS["hlm_company"],
            several(
                (get_balance_sheet, {"ticker": ticker}),
                (get_cashflow, {"ticker": ticker}),
                (get_income_statement, {"ticker": ticker}),
            ),
        ),
        ("analyzing fundamental information", calls("get_fundamentals", ticker=ticker, curr_date=today)),
    ]
    callbacks = config.get("callbacks")
    quick_thinking_llm, deep_thinking_llm = (ChatReplies(rules=rules, callbacks=callbacks) for _ in range(2))
    memory_log = TradingMemoryLog(
        "[2026-03-02 | TRM.OL | Buy | -6.1% | -4.0% | 5d]\n\nDECISION:\n**Rating**: Buy\n\nTrams are wanted.\n\n"
        "REFLECTION:\nThe call was wrong by 4 %: a strike was in the news, and was not weighed."
        "\n\n<!-- ENTRY_END -->\n\n"
        "[2026-05-04 | HLM.OL | Hold | pending]\n\nDECISION:\n**Rating**: Hold\n\nWait for the thaw."
        "\n\n<!-- ENTRY_END -->\n\n"
    )
    ta = TradingAgentsGraph(quick_thinking_llm, deep_thinking_llm, memory_log, callbacks=callbacks)
    final_state, decision = ta.propagate(ticker, today)
    assert "[2026-05-04 | HLM.OL | Hold | +3.4% | +1.2% | 5d]" in final_state["past_context"]
    assert "a strike was in the news" in final_state["past_context"]
    return final_state["final_trade_decision"], decision


WITH_HANDLER = {
    "chainlit-ask-human": chainlit_ask_human,
    "kr-chain-of-density": kr_chain_of_density,
    "trading-agents": trading_agents,
}
INSTRUMENTED = {
    "agent-query-plan": agent_query_plan,
    "recursive-retriever-agents": recursive_retriever_agents,
    "mistral-arxiv-agent": mistral_arxiv_agent,
}
