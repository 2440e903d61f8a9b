"""Applications of the ninth draw: a repository that is asked, a graph of articles, a person who assigns agents, a notebook of
a document, an assistant with a short memory, and recipes."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import re
import tempfile
from collections import deque
from pathlib import Path
from time import time
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import numpy as np
from langchain_classic.chains import LLMChain, RetrievalQA
from langchain_classic.chains.base import Chain
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.documents import Document as Page
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.prompts import PromptTemplate as Template
from langchain_core.retrievers import BaseRetriever as BasePageRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter
from langgraph.graph import END, StateGraph
from llama_index.core import Document, PromptTemplate, SimpleDirectoryReader, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.query_engine import CitationQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel, Field
from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent
from workflows.resource import Resource

from ragtrace_langchain import mark_retrieved, mark_selected
from tests.apps import langchain_parts
from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Directions, Vectors
from tests.public.texts import TEXTS


class Sections(Vectors):
    """Vectors of sections, whose texts have the path of their file before them."""

    names: tuple[str, ...]

    def _get_text_embedding(self, text):
        return super()._get_text_embedding(next(TEXTS[name] for name in self.names if TEXTS[name] in text))


class MarkdownReader(BaseReader):
    """The reader that a directory's reader takes for Markdown: a document of each heading, without its marks."""

    def load_data(self, file, extra_info=None, fs=None):
        header, lines, tups = None, [], []
        for line in Path(file).read_text().split("\n"):
            if re.match(r"^#+\s", line):
                tups.append((header, "\n".join(lines)))
                header, lines = line, []
            else:
                lines.append(line)
        tups.append((header, "\n".join(lines)))
        return [
            Document(
                text=text if head is None else f"\n\n{head.replace('#', '').strip()}\n{text}",
                metadata=extra_info or {},
            )
            for head, text in tups
            if head is not None or text.strip()
        ]


def github_rag():
    """A repository as one file of Markdown is asked twice; the answers are streamed."""
    lasts, storm = "How long does a roll of paper last?", "How does a storm change the height that is predicted?"
    answers = {
        lasts: "A roll of 57 mm lasts for 41 days, by the count of the harbour office.",
        storm: "Below 980 hPa each hectopascal lifts the height by a centimetre.",
    }
    llm = Replies(rules=[(f"Query: {question}", answer) for question, answer in answers.items()])
    sections = ("tm_about", "tm_run", "tm_constants", "tm_height", "tm_paper")
    embedder = Sections(
        names=("tm_file", *sections),
        queries={lasts: ("tm_paper", "tm_run"), storm: ("tm_height", "tm_constants")},
    )
    state: dict[str, Any] = {"messages": [], "file_cache": {}}

    def ingest(github_url):
        content = "\n\n\n".join([TEXTS["tm_file"], *(f"# {TEXTS[name]}" for name in sections)])
        return (
            "Repository: rolvik/tidemark",
            "└── rolvik-tidemark/\n    ├── README.md\n    └── src/tide.py",
            content,
        )

    def create_query_engine(content_path):
        docs = SimpleDirectoryReader(input_dir=content_path, file_extractor={".md": MarkdownReader()}).load_data()
        index = VectorStoreIndex.from_documents(
            documents=docs, transformations=[MarkdownNodeParser()], embed_model=embedder
        )
        qa_prompt_tmpl_str = """
        You are an AI assistant specialized in analyzing GitHub repositories.

        Repository structure:
        {tree}
        ---------------------

        Context information from the repository:
        {context_str}
        ---------------------

        Given the repository structure and context above, provide a clear and precise answer to the query.
        If the information is not available in the context, respond with 'I don't have enough information about that.'

        Query: {query_str}
        Answer: """
        query_engine = index.as_query_engine(streaming=True, llm=llm)
        query_engine.update_prompts({"response_synthesizer:text_qa_template": PromptTemplate(qa_prompt_tmpl_str)})
        return query_engine

    def load_repo(github_url):
        repo_name = github_url.split("/")[-1].replace(".git", "")
        with tempfile.TemporaryDirectory() as temp_dir:
            _, _, content = ingest(github_url)
            (Path(temp_dir) / f"{repo_name}_content.md").write_text(content)
            state["file_cache"][repo_name] = create_query_engine(temp_dir)
        return repo_name

    def chat(repo_name, prompt):
        state["messages"].append({"role": "user", "content": prompt})
        full_response = ""
        response = state["file_cache"][repo_name].query(prompt)
        if hasattr(response, "response_gen"):
            for chunk in response.response_gen:
                if isinstance(chunk, str):
                    full_response += chunk
        else:
            full_response = str(response)
        state["messages"].append({"role": "assistant", "content": full_response})
        return full_response

    repo_name = load_repo("https://github.com/rolvik/tidemark")
    return [chat(repo_name, prompt) for prompt in answers]


class Neo4jVector(VectorStore):
    """An index of articles' nodes: a text of their properties, no ids."""

    def __init__(self, found):
        self.found = found

    def similarity_search(self, query, k=4, **kwargs):
        return [
            Page(page_content=TEXTS[name], metadata={"publication_date": f"2024-03-{day:02}"})
            for day, name in enumerate(self.found[query][:k], start=11)
        ]

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        raise NotImplementedError


class Neo4jGraph:
    """A graph whose queries have fixed rows."""

    get_schema = (
        "Node properties are the following:\n"
        "Article {title: STRING, abstract: STRING, publication_date: DATE, embedding: LIST},Researcher {name: STRING},"
        "Topic {name: STRING}\nRelationship properties are the following:\n\nThe relationships are the following:\n"
        "(:Article)-[:IN_TOPIC]->(:Topic),(:Researcher)-[:PUBLISHED]->(:Article)"
    )

    def __init__(self, rows):
        self.rows = rows

    def query(self, query):
        return [dict(row) for words, rows in self.rows.items() if words in query for row in rows]


CYPHER_GENERATION_PROMPT = Template(
    input_variables=["schema", "question"],
    template=(
        "Task:Generate Cypher statement to query a graph database.\nInstructions:\n"
        "Use only the provided relationship types and properties in the schema.\nSchema:\n{schema}\n"
        "Note: Do not include any explanations or apologies in your responses.\n\nThe question is:\n{question}"
    ),
)
CYPHER_QA_PROMPT = Template(
    input_variables=["context", "question"],
    template=(
        "You are an assistant that helps to form nice and human understandable answers.\n"
        "The information part contains the provided information that you must use to construct an answer.\n"
        "If the provided information is empty, say that you don't know the answer.\n"
        "Information:\n{context}\n\nQuestion: {question}\nHelpful Answer:"
    ),
)


class GraphCypherQAChain(Chain):
    """A statement is generated, the graph gives rows, and these are told; the former chain, which hands its callbacks to the
    telling one in a way that the framework leaves unread."""

    graph: Any
    cypher_generation_chain: LLMChain
    qa_chain: LLMChain
    graph_schema: str
    input_key: str = "query"
    output_key: str = "result"
    top_k: int = 10

    @property
    def input_keys(self):
        return [self.input_key]

    @property
    def output_keys(self):
        return [self.output_key]

    @classmethod
    def from_llm(cls, cypher_llm, qa_llm, graph, **kwargs):
        return cls(
            graph=graph,
            graph_schema=graph.get_schema,
            cypher_generation_chain=LLMChain(llm=cypher_llm, prompt=CYPHER_GENERATION_PROMPT),
            qa_chain=LLMChain(llm=qa_llm, prompt=CYPHER_QA_PROMPT),
            **kwargs,
        )

    def _call(self, inputs, run_manager=None):
        callbacks, question = run_manager.get_child(), inputs[self.input_key]
        generated_cypher = self.cypher_generation_chain.run(
            {"question": question, "schema": self.graph_schema}, callbacks=callbacks
        )
        blocks = re.findall(r"```(.*?)```", generated_cypher, re.DOTALL)
        generated_cypher = blocks[0] if blocks else generated_cypher
        run_manager.on_text("Generated Cypher:", end="\n", verbose=self.verbose)
        run_manager.on_text(generated_cypher, color="green", end="\n", verbose=self.verbose)
        context = self.graph.query(generated_cypher)[: self.top_k] if generated_cypher else []
        run_manager.on_text("Full Context:", end="\n", verbose=self.verbose)
        run_manager.on_text(str(context), color="green", end="\n", verbose=self.verbose)
        result = self.qa_chain.invoke({"question": question, "context": context}, callbacks=callbacks)
        return {self.output_key: result[self.qa_chain.output_key]}


def hf_knowledge_graph_rag(config):
    """Articles are found by similarity; then three questions become statements for their graph, whose rows are told."""
    daily = "which articles discuss how thawing ice might affect our daily life? include the article titles and abstracts."
    many = "How many articles has published Tora Lindqvist?"
    pairs = "are there any pair of researchers who have published more than three articles together?"
    peers = "Which researcher has collaborated with the most peers?"
    told = {
        daily: "Two do: **Warm Rooms on Thawing Ground**, on houses that sink, and **Ice Cellars Without Ice**.",
        many: "Tora Lindqvist has published 7 articles.",
        pairs: "Yes: Ilse Aune and Tora Lindqvist share four, Tora Lindqvist and Bo Sarre five.",
        peers: "Ilse Aune has collaborated with 6 peers.",
    }
    statements = {
        many: (
            'MATCH (r:Researcher {name: "Tora Lindqvist"})-[:PUBLISHED]->(a:Article)\n'
            "RETURN COUNT(a) AS numberOfArticles"
        ),
        pairs: (
            "MATCH (r1:Researcher)-[:PUBLISHED]->(a:Article)<-[:PUBLISHED]-(r2:Researcher)\n"
            "WHERE r1.name < r2.name\nWITH r1, r2, COUNT(a) AS sharedArticles\nWHERE sharedArticles > 3\n"
            "RETURN r1.name, r2.name, sharedArticles"
        ),
        peers: (
            "MATCH (r:Researcher)-[:PUBLISHED]->(:Article)<-[:PUBLISHED]-(peer:Researcher)\n"
            "WITH r, COUNT(DISTINCT peer) AS peerCount\n"
            "RETURN r.name AS researcher, peerCount\nORDER BY peerCount DESC\nLIMIT 1"
        ),
    }
    vector_index = Neo4jVector({daily: ("ice_homes", "ice_roads", "ice_cellars", "ice_cores")})
    vector_qa = RetrievalQA.from_chain_type(
        llm=langchain_parts.Replies(rules=[("", told[daily])]),
        chain_type="stuff",
        retriever=vector_index.as_retriever(),
    )
    graph = Neo4jGraph(
        {
            "numberOfArticles": [{"numberOfArticles": 7}],
            "sharedArticles": [
                {"r1.name": "Ilse Aune", "r2.name": "Tora Lindqvist", "sharedArticles": 4},
                {"r1.name": "Bo Sarre", "r2.name": "Tora Lindqvist", "sharedArticles": 5},
            ],
            "peerCount": [{"researcher": "Ilse Aune", "peerCount": 6}],
        }
    )
    cypher_chain = GraphCypherQAChain.from_llm(
        cypher_llm=langchain_parts.Replies(
            rules=[(question, f"```cypher\n{statement}\n```") for question, statement in statements.items()]
        ),
        qa_llm=langchain_parts.Replies(rules=[(f"Question: {one}\n", told[one]) for one in statements]),
        graph=graph,
        verbose=True,
    )
    answers = [vector_qa.invoke({"query": daily}, config)["result"]]
    answers += [cypher_chain.invoke({"query": question}, config)["result"] for question in statements]
    return answers


class StructureOutput(BaseModel):
    """A promotion message."""

    Title: str = Field(description="Title of the promotion message")
    Message: str = Field(description="The actual promotion message")
    Tags: list[str] = Field(description="Hash tags for social media, usually starts with #")


class HumanInputRun(BaseTool):
    """The former tool that asks a person: it shows them the query, and gives back what they type."""

    name: str = "human"
    description: str = (
        "You can ask a human for guidance when you think you got stuck or you are not sure what to do next. "
        "The input should be a question for the human."
    )
    input_func: Any

    def _run(self, query: str, run_manager=None):
        return self.input_func(query)


class AssignState(TypedDict):
    input: str
    input_to_agent: str
    agent_choice: str
    agent_use_tool_respond: str


def nvidia_hitl_multi_agents(config):
    """A person assigns each task to one of two agents: one writes a promotion, the other has a picture of its title made."""
    seed = "A lamp of birch veneer, folded by hand at Sundby, which dims when you clap once."
    product = "Sundby's folding lamp, now with a battery for 14 hours"
    my_query = "create a good promotion message for social promotion events using the following inputs"
    input_query = "generate an image for me from the below promotion message"
    title, theme = "Fourteen hours of folded light", "Sundby lights quiet evenings"

    def promotion(title, message, *tags):
        return langchain_parts.calls("StructureOutput", Title=title, Message=message, Tags=list(tags))

    llm = langchain_parts.Replies(
        rules=[
            (seed, promotion("Clap, and it is evening", "Birch that dims at one clap.", "#birch", "#sundby")),
            (product, promotion(title, "Take it down to the jetty: no cable, no hum.", "#foldedlight", "#jetty")),
            (title, langchain_parts.calls("generate_image", prompt=title)),
            (theme, langchain_parts.calls("generate_image", prompt=f"{theme}, on a jetty")),
        ]
    )
    rewriter = langchain_parts.Replies(
        rules=[("", "A iconic, futuristic image of a glowing folded lamp, no text, no amputation, no face, bright")]
    )
    prompt = Template(
        input_variables=["product_desc"],
        template=(
            "\n### [INST]\n\nYou are an expert social media content creator.\n"
            "Your task is to create a different promotion message with the following \nProduct Description :\n------\n"
            "{product_desc}\n------\n\nThe output promotion message MUST use the following format :\n\n'''\n"
            "Title: a powerful, short message that dipict what this product is about \n"
            "Message: be creative for the promotion message, but make it short and ready for social media feeds.\n"
            "Tags: the hash tag human will normally use in social media\n'''\n\nBegin!\n\n[/INST]\n "
        ),
    )
    content_creator = prompt | llm.with_structured_output(StructureOutput)
    drawn = []

    def llm_rewrite_to_image_prompts(user_query):
        rewrite = ChatPromptTemplate.from_messages(
            [
                (
                    "system",
                    (
                        "Summarize the following user query into a very short, one-sentence theme for image generation, "
                        "MUST follow this format : A iconic, futuristic image of , no text, no amputation, no face, bright"
                    ),
                ),
                ("user", "{input}"),
            ]
        )
        return (rewrite | rewriter | StrOutputParser()).invoke({"input": user_query})

    def generate_image(prompt: str) -> str:
        """
        generate image from text
        Args:
            prompt: input text
        """
        drawn.append(llm_rewrite_to_image_prompts(prompt))
        return "the output of the generated image will be stored in this path : output.jpg"

    llm_with_img_gen_tool = llm.bind_tools([generate_image], tool_choice="generate_image")

    def output_to_invoke_tools(out):
        if len(out.tool_calls) == 0:
            return "agent did not find generate_image tool, please check the tool binding is successful"
        if "args" not in out.tool_calls[0]:
            return "cannot find input prompt from llm output, please rerun again"
        return generate_image(out.tool_calls[0]["args"]["prompt"])

    digital_artist = llm_with_img_gen_tool | output_to_invoke_tools
    typed = iter(["1", "y", "2", "y"])

    def get_human_input(shown):
        contents = []
        while (line := next(typed)) != "y":
            contents.append({"1": "ContentCreator", "2": "DigitalArtist"}.get(line, line))
        return "\n".join(contents)

    ask_human = HumanInputRun(input_func=get_human_input)

    def human_assign_to_agent(state):
        concatenate_str = "\x1b[34m" + state["input"] + " : " + "\x1b[36m" + state["input_to_agent"] + "\x1b[39m"
        return {"agent_choice": ask_human.invoke(concatenate_str)}

    def agent_execute_task(state):
        choosen_agent = state["agent_choice"]
        if choosen_agent == "ContentCreator":
            out = content_creator.invoke({"product_desc": state["input_to_agent"]})
            respond = "\n".join([out.Title, out.Message, "".join(out.Tags)])
        elif choosen_agent == "DigitalArtist":
            respond = digital_artist.invoke(state["input_to_agent"])
        else:
            respond = (
                "please reselect the agent, there are only 2 agents available: 1.ContentCreator or 2.DigitalArtist"
            )
        return {"agent_use_tool_respond": respond}

    workflow = StateGraph(AssignState)
    workflow.add_node("start", human_assign_to_agent)
    workflow.add_node("end", agent_execute_task)
    workflow.set_entry_point("start")
    workflow.add_edge("start", "end")
    workflow.add_edge("end", END)
    app = workflow.compile()
    tried = [content_creator.invoke({"product_desc": seed}, config).Title, digital_artist.invoke(theme, config)]
    respond = app.invoke({"input": my_query, "input_to_agent": product}, config)
    prompt_for_image = respond["agent_use_tool_respond"].split("\n")[0].split(":")[-1].strip()
    respond2 = app.invoke({"input": input_query, "input_to_agent": prompt_for_image}, config)
    assert len(drawn) == 2
    return [*tried, respond["agent_use_tool_respond"], respond2["agent_use_tool_respond"]]


class FileInputEvent(StartEvent):
    file: str


class NotebookOutputEvent(StopEvent):
    mind_map: str
    md_content: str
    summary: str
    highlights: list[str]
    questions: list[str]
    answers: list[str]


class MindMapCreationEvent(Event):
    summary: str
    highlights: list[str]
    questions: list[str]
    answers: list[str]
    md_content: str


class LocalMCPClient:
    """A client of tools whose server runs beside it: they see nothing of the caller's context."""

    def __init__(self):
        self.tools = {}

    async def call_tool(self, tool_name, arguments):
        text = await asyncio.create_task(self.tools[tool_name](**arguments), context=contextvars.Context())
        return SimpleNamespace(content=[SimpleNamespace(text=text)])


MCP_CLIENT = LocalMCPClient()


def get_mcp_client(*args, **kwargs) -> LocalMCPClient:
    return MCP_CLIENT


class NotebookLMWorkflow(Workflow):
    """Has a file read, and then a mind map made of what was read."""

    @step
    async def extract_file_data(
        self,
        ev: FileInputEvent,
        mcp_client: Annotated[LocalMCPClient, Resource(get_mcp_client)],
        ctx: Context,
    ) -> MindMapCreationEvent | NotebookOutputEvent:
        ctx.write_event_to_stream(ev=ev)
        result = await mcp_client.call_tool(tool_name="process_file_tool", arguments={"filename": ev.file})
        json_data, *md_text = result.content[0].text.split("\n%separator%\n")
        if json_data == "Sorry, your file could not be processed.":
            nothing: dict[str, Any] = {
                "md_content": "",
                "summary": "",
                "highlights": [],
                "questions": [],
                "answers": [],
            }
            return NotebookOutputEvent(mind_map="Unprocessable file, sorry😭", **nothing)
        return MindMapCreationEvent(md_content=md_text[0], **json.loads(json_data))

    @step
    async def generate_mind_map(
        self,
        ev: MindMapCreationEvent,
        mcp_client: Annotated[LocalMCPClient, Resource(get_mcp_client)],
        ctx: Context,
    ) -> NotebookOutputEvent:
        ctx.write_event_to_stream(ev=ev)
        result = await mcp_client.call_tool(
            tool_name="get_mind_map_tool", arguments={"summary": ev.summary, "highlights": ev.highlights}
        )
        kept = ev.model_dump(include={"summary", "highlights", "questions", "answers", "md_content"})
        if result is not None:
            return NotebookOutputEvent(mind_map=result.content[0].text, **kept)
        return NotebookOutputEvent(mind_map="Sorry, mind map creation failed😭", **kept)


class Node(BaseModel):
    id: str
    content: str


class Edge(BaseModel):
    from_id: str
    to_id: str


class MindMap(BaseModel):
    """A mind map."""

    nodes: list[Node] = Field(description="List of nodes, each with an 'id' and concise 'content'.")
    edges: list[Edge] = Field(description="The edges that connect the nodes of the mind map.")


class ClaimVerification(BaseModel):
    """Whether a claim holds."""

    claim_is_true: bool = Field(description="Based on the provided sources information, the claim passes or not.")
    supporting_citations: list[str] | None = Field(
        description="One to three citations from the sources supporting the claim.", default=None
    )


class CloudRetriever(BaseRetriever):
    """The retriever of an index that a service keeps."""

    def __init__(self, found):
        super().__init__()
        self.found = found

    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(
                node=TextNode(text=TEXTS[name], metadata={"file_name": "salt.pdf", "page_label": str(page)}),
                score=1 - page / 10,
            )
            for page, name in enumerate(self.found[query_bundle.query_str], start=1)
        ]


async def notebookllama():
    """A document becomes a notebook with a mind map; then it is asked twice, and one of the answers is verified."""
    end, brine = (
        "Why did the boiling of salt end at Læssand?",
        "How salty is the ground water, and can I see it boiled?",
    )
    summary = "Læssand boiled salt out of its ground water until the island had no more wood, and does so again."
    highlights = ["230 huts stood in 1590.", "The king forbade the boiling in 1652.", "One hut works today."]
    notebook = {
        "summary": summary,
        "highlights": highlights,
        "questions": ["Since when?", "Until when?", "With what fuel?", "Who dug?", "Who boils today?"],
        "answers": ["Since 1160.", "Until 1652.", "Spruce, heather, turf.", "A teacher and her class.", "One hut."],
    }
    mind_map = call(
        "MindMap",
        nodes=[{"id": "A", "content": "Salt huts"}, {"id": "B", "content": "No wood"}],
        edges=[{"from_id": "A", "to_id": "B"}],
    )
    wood = (
        "Each barrel ate a cartload of spruces [1], and in 1652 the king forbade it [2]. One hut boils again [3]."
    )
    fourteen = "It holds up to 14 percent [1]; guests rake the pan on Thursdays [2]."
    mind_map_llm = Caller(replies=[mind_map]).as_structured_llm(MindMap)
    citations = ["A barrel of salt ate a cartload of spruces", "In 1652 the king forbade the boiling for good"]
    verifier = Caller(replies=[call("ClaimVerification", claim_is_true=True, supporting_citations=citations)])
    llm_verifier = verifier.as_structured_llm(ClaimVerification)
    query_engine = CitationQueryEngine(
        retriever=CloudRetriever({end: ("salt_history", "salt_today"), brine: ("salt_brine", "salt_today")}),
        llm=Caller(replies=[wood, fourteen]),
        citation_chunk_size=256,
        citation_chunk_overlap=50,
    )
    networks = []

    async def process_file(filename):
        md_content = [TEXTS["salt_history"], TEXTS["salt_brine"], TEXTS["salt_today"]]  # a service parses the file
        return json.dumps(notebook, indent=4), "\n\n---\n\n".join(md_content)  # another one extracts

    async def process_file_tool(filename: str):
        notebook_model, text = await process_file(filename=filename)
        if notebook_model is None:
            return "Sorry, your file could not be processed."
        return notebook_model + "\n%separator%\n" + (text or "")

    async def get_mind_map(summary, highlights):
        keypoints = "\n- ".join(highlights)
        messages = [
            ChatMessage(
                role="user",
                content=f"This is the summary for my document: {summary}\n\nAnd these are the key points:\n- {keypoints}",
            )
        ]
        response = await mind_map_llm.achat(messages=messages)
        networks.append(json.loads(response.message.content))
        return f"{len(networks)}.html"

    async def get_mind_map_tool(summary: str, highlights: list[str]):
        return await get_mind_map(summary=summary, highlights=highlights) or "Sorry, mind map creation failed."

    async def query_index(question):
        response = await query_engine.aquery(question)
        if not response.response:
            return None
        sources = [node.text for node in response.source_nodes]
        return "## Answer\n\n" + response.response + "\n\n## Sources\n\n- " + "\n- ".join(sources)

    async def query_index_tool(question: str):
        response = await query_index(question=question)
        return "Sorry, I was unable to find an answer to your question." if response is None else response

    MCP_CLIENT.tools = {one.__name__: one for one in (process_file_tool, get_mind_map_tool, query_index_tool)}
    session_messages: list[dict[str, Any]] = []

    async def chat(prompt):
        session_messages.append({"role": "user", "content": prompt})
        result = await MCP_CLIENT.call_tool(tool_name="query_index_tool", arguments={"question": prompt})
        main_response, sources = result.content[0].text.split("## Sources", 1)
        session_messages.append(
            {"role": "assistant", "content": main_response.strip(), "sources": "## Sources" + sources.strip()}
        )
        return main_response.strip()

    def verify_claim(claim, sources):
        response = llm_verifier.chat(
            [
                ChatMessage(
                    role="user",
                    content=(
                        f"I have this claim: {claim} that is allegedgly supported by these sources:\n\n'''\n{sources}\n'''"
                        "\n\nCan you please tell me whether or not this claim is thrutful and, if it is, identify one to "
                        "three passages in the sources specifically supporting the claim?"
                    ),
                )
            ]
        )
        response_json = json.loads(response.message.content)
        return response_json["claim_is_true"], response_json["supporting_citations"]

    result = await NotebookLMWorkflow(timeout=600).run(start_event=FileInputEvent(file="salt.pdf"))
    assert result.mind_map == "1.html"
    answers = [await chat(end), await chat(brine)]
    verified = verify_claim(session_messages[1]["content"], session_messages[1]["sources"])
    assert verified == (True, citations)
    return [result.summary, *answers]


class Streamed(langchain_parts.Replies):
    """A model that streams whatever it replies."""

    streaming: bool = True


class StreamingLLMCallbackHandler(AsyncCallbackHandler):
    """Sends each token of a reply to the person."""

    def __init__(self, websocket):
        self.websocket = websocket

    async def on_llm_new_token(self, token, **kwargs):
        await self.websocket.send_json({"sender": "bot", "message": token, "type": "stream"})


class DisconnectError(Exception):
    """The person has gone."""


class WebSocket:
    """A socket on which a person types some messages, and goes."""

    def __init__(self, messages):
        self.messages, self.sent = list(messages), []

    async def receive_text(self):
        if not self.messages:
            raise DisconnectError
        return self.messages.pop(0)

    async def send_json(self, data):
        self.sent.append(data)


CONDENSE_QUESTION_PROMPT = Template.from_template(
    "Given the following Chat History and a follow up question,     rephrase the follow up question to be a standalone "
    "question, in its     original language.\n\n"
    'Chat History:\n"{chat_history}"\nFollow Up question: "{question}"\nStandalone question:'
)
QA_PROMPT = Template(
    template=(
        "You are a virtual assistant for LOKA company, always respond with kindness and say hello when necessary,"
        'use the following "context" to answer the question. If it\'s not mentioned in the "context", politely respond '
        'that you don\'t know.\n\ncontext:\n"{context}"\n\nquestion: "{new_question}"\nanswer:'
    ),
    input_variables=["context", "new_question"],
)


def garay_virtual_assistant():
    """An assistant keeps what was said for two minutes: one person talks over a socket, another one by requests."""
    opens, rent = "¿A qué hora abren las oficinas?", "¿Cuánto cuesta alquilar una bicicleta de carga?"
    saturday, deposit = (
        "¿A qué hora atiende LOKA los sábados?",
        "¿Cuánto es el depósito por una bicicleta de carga?",
    )
    found = {
        opens: ("loka_hours", "loka_saturday", "loka_deposit", "loka_rent"),
        saturday: ("loka_saturday", "loka_hours", "loka_repair", "loka_routes"),
        rent: ("loka_rent", "loka_deposit", "loka_repair", "loka_routes"),
        deposit: ("loka_deposit", "loka_rent", "loka_repair", "loka_hours"),
    }
    answers = {
        opens: "¡Hola! Abrimos a las siete y media, de lunes a viernes, en la plaza del Arco.",
        saturday: "Con gusto: los sábados el taller atiende hasta la una de la tarde.",
        rent: "¡Hola! Son 95 quetzales al día, y el casco va incluido.",
        deposit: "Son 400 quetzales, o un documento suyo, que devolvemos con la entrega.",
    }
    condensed = [
        ('Follow Up question: "¿Y los sábados?"', saturday),
        ('Follow Up question: "¿Y el depósito?"', deposit),
    ]
    told = [(f'question: "{question}"', answer) for question, answer in answers.items()]
    names = ("loka_hours", "loka_saturday", "loka_rent", "loka_deposit", "loka_routes", "loka_repair")
    qdrant = InMemoryVectorStore.from_documents(
        [Page(page_content=TEXTS[name], metadata={"source": "loka.pdf"}) for name in names], Directions(found)
    )
    redis_client: dict[str, str] = {}

    def get_chain_from_scratch(llm_stream):
        llm = langchain_parts.Replies(rules=condensed)
        memory_chain = LLMChain(llm=llm, prompt=CONDENSE_QUESTION_PROMPT, output_key="new_question")
        return memory_chain, LLMChain(llm=llm_stream, prompt=QA_PROMPT, output_key="answer", verbose=True)

    def format_conversation(conversation):
        said = {"Human": "Human", "Assistant": "AI assistant"}
        return "\n".join(f"- {said[one['Agent']]}: '{one['text']}'" for one in conversation)

    def format_docs(docs):
        formatted_docs = []
        for doc in docs:
            formatted_doc = f"'{doc.page_content}'"
            source = doc.metadata.get("source", None)
            if source:
                formatted_doc += f"\n fuente: '{source}'"
            formatted_docs.append(formatted_doc)
        return "\n\n".join(formatted_docs)

    def remembered(user):
        if not (memory := redis_client.get(user)):
            return []
        return deque([one for one in json.loads(memory) if (time() - one["datetime"]) <= 120], maxlen=4)

    def remember(user, memory, question, answer):
        for agent, text in (("Human", question), ("Assistant", answer)):
            memory.append({"Agent": agent, "text": text, "datetime": time()})
        redis_client[user] = json.dumps(list(memory))

    async def websocket_endpoint(recorder, websocket):
        stream_handler = StreamingLLMCallbackHandler(websocket)
        memory_chain, question_chain = get_chain_from_scratch(
            Streamed(rules=told, streaming=True, callbacks=[stream_handler])
        )
        while True:
            try:
                question = await websocket.receive_text()
                question_dict = json.loads(f'{{"message": "{question.strip()}", "user": "12355434"}}')
                question = question_dict["message"]
                await websocket.send_json({"sender": "you", "message": question, "type": "stream"})
                await websocket.send_json({"sender": "bot", "message": "", "type": "start"})
                with recorder.start(query=question):
                    memory = remembered(question_dict["user"])
                    new_question = question
                    if memory:
                        asked = {"chat_history": format_conversation(memory), "question": question}
                        new_question = memory_chain.run(asked)
                    docs = mark_retrieved(
                        await qdrant.asimilarity_search(new_question, k=4), source="myvectorstore"
                    )
                    result = await question_chain.acall(
                        {"context": format_docs(docs), "new_question": new_question}
                    )
                remember(question_dict["user"], memory, new_question, result["answer"])
                await websocket.send_json({"sender": "bot", "message": "", "type": "end"})
            except DisconnectError:
                break

    async def ask_question(recorder, question, user_id):
        memory_chain, question_chain = get_chain_from_scratch(langchain_parts.Replies(rules=told))
        with recorder.start(query=question):
            memory = remembered(user_id)
            new_question = question
            if memory:
                new_question = memory_chain.run({"chat_history": format_conversation(memory), "question": question})
            docs = mark_retrieved(qdrant.similarity_search(new_question, k=4), source="myvectorstore")
            result = question_chain.run({"context": format_docs(docs), "new_question": new_question})
        remember(user_id, memory, new_question, result)
        return {"data": result}

    def ask(recorder):
        websocket = WebSocket([opens, "¿Y los sábados?"])
        asyncio.run(websocket_endpoint(recorder, websocket))
        shown = "".join(one["message"] for one in websocket.sent if one["sender"] == "bot")
        by_post = [asyncio.run(ask_question(recorder, one, "ana"))["data"] for one in (rent, "¿Y el depósito?")]
        assert shown == answers[opens] + answers[saturday]
        return [shown, *by_post]

    return ask


class BM25Retriever(BasePageRetriever):
    """The former retriever by words, which are what blanks part; where none is known, it gives the last ones of all."""

    docs: list[Page]
    k: int

    def _get_relevant_documents(self, query, *, run_manager):
        words = query.split()
        scores = [sum(one.page_content.split().count(word) for word in words) for one in self.docs]
        return [self.docs[place] for place in np.argsort(scores, kind="stable")[::-1][: self.k]]


class DataPreparationModule:
    """Recipes as they are, and cut at their headings; each piece knows its recipe."""

    def __init__(self, recipes):
        self.documents, self.chunks = [], []
        for (category, dish_name), names in recipes.items():
            content = "\n\n".join(TEXTS[name].replace("  \n", "\n\n") for name in names)
            stars = content.count("★")
            path = f"data/C8/cook/dishes/{category}/{dish_name}.md"
            metadata = {
                "source": path,
                "parent_id": hashlib.md5(path.encode(), usedforsecurity=False).hexdigest(),
                "doc_type": "parent",
                "category": {"meat_dish": "荤菜", "vegetable_dish": "素菜", "dessert": "甜品"}[category],
                "dish_name": dish_name,
                "difficulty": {1: "非常简单", 2: "简单", 3: "中等"}[stars],
            }
            self.documents.append(Page(page_content=content, metadata=metadata))

    def chunk_documents(self):
        splitter = MarkdownHeaderTextSplitter(
            headers_to_split_on=[("#", "主标题"), ("##", "二级标题"), ("###", "三级标题")], strip_headers=False
        )
        for doc in self.documents:
            for place, chunk in enumerate(splitter.split_text(doc.page_content)):
                chunk.metadata.update(doc.metadata)
                chunk.metadata.update({"doc_type": "child", "chunk_index": place})
                self.chunks.append(chunk)
        for place, chunk in enumerate(self.chunks):
            chunk.metadata.update({"chunk_id": place, "chunk_size": len(chunk.page_content)})
        return self.chunks

    def get_parent_documents(self, child_chunks):
        relevance: dict[str, int] = {}
        for chunk in child_chunks:
            parent_id = chunk.metadata["parent_id"]
            relevance[parent_id] = relevance.get(parent_id, 0) + 1
        by_id = {doc.metadata["parent_id"]: doc for doc in self.documents}
        return [by_id[one] for one in sorted(relevance, key=lambda one: relevance[one], reverse=True)]


class RetrievalOptimizationModule:
    """A search by vectors and one by words, whose results are ranked together."""

    def __init__(self, vectorstore, chunks):
        self.vector_retriever = vectorstore.as_retriever(search_type="similarity", search_kwargs={"k": 5})
        self.bm25_retriever = BM25Retriever(docs=chunks, k=5)

    def hybrid_search(self, query, top_k=3):
        vector_docs = self.vector_retriever.invoke(query)
        bm25_docs = self.bm25_retriever.invoke(query)
        return mark_selected(self._rrf_rerank(vector_docs, bm25_docs)[:top_k])

    def _rrf_rerank(self, vector_docs, bm25_docs, k=60):
        doc_scores: dict[int, float] = {}
        doc_objects = {}
        for docs in (vector_docs, bm25_docs):
            for rank, doc in enumerate(docs):
                doc_id = hash(doc.page_content)
                doc_objects[doc_id] = doc
                doc_scores[doc_id] = doc_scores.get(doc_id, 0) + 1.0 / (k + rank + 1)
        reranked_docs = []
        for doc_id, final_score in sorted(doc_scores.items(), key=lambda one: one[1], reverse=True):
            doc_objects[doc_id].metadata["rrf_score"] = final_score
            reranked_docs.append(doc_objects[doc_id])
        return reranked_docs


class GenerationIntegrationModule:
    """Routes a question, writes it anew, and answers it."""

    def __init__(self, llm):
        self.llm = llm

    def query_router(self, query):
        prompt = ChatPromptTemplate.from_template(
            "\n根据用户的问题，将其分类为以下三种类型之一：\n\n1. 'list' - 用户想要获取菜品列表或推荐，只需要菜名\n"
            "2. 'detail' - 用户想要具体的制作方法或详细信息\n3. 'general' - 其他一般性问题\n\n"
            "请只返回分类结果：list、detail 或 general\n\n用户问题: {query}\n\n分类结果:"
        )
        chain = {"query": RunnablePassthrough()} | prompt | self.llm | StrOutputParser()
        result = chain.invoke(query).strip().lower()
        return result if result in {"list", "detail", "general"} else "general"

    def query_rewrite(self, query):
        prompt = Template(
            template=(
                "\n你是一个智能查询分析助手。请分析用户的查询，判断是否需要重写以提高食谱搜索效果。\n\n原始查询: {query}\n\n"
                '示例：\n- "做菜" → "简单易做的家常菜谱"\n\n请输出最终查询（如果不需要重写就返回原查询）:'
            ),
            input_variables=["query"],
        )
        chain = {"query": RunnablePassthrough()} | prompt | self.llm | StrOutputParser()
        return chain.invoke(query).strip()

    def generate_list_answer(self, query, context_docs):
        if not context_docs:
            return "抱歉，没有找到相关的菜品信息。"
        dish_names = list(dict.fromkeys(doc.metadata["dish_name"] for doc in context_docs))
        if len(dish_names) == 1:
            return f"为您推荐：{dish_names[0]}"
        shown = "\n".join(f"{place}. {name}" for place, name in enumerate(dish_names[:3], start=1))
        more = f"\n\n还有其他 {len(dish_names) - 3} 道菜品可供选择。" if len(dish_names) > 3 else ""
        return f"为您推荐以下菜品：\n{shown}{more}"

    def answer_chain(self, route_type, context_docs):
        context = self._build_context(context_docs)
        if route_type == "detail":
            who, how = (
                "你是一位专业的烹饪导师。请根据食谱信息，为用户提供详细的分步骤指导。",
                (
                    "请灵活组织回答，建议包含以下部分（可根据实际内容调整）：\n\n## 🛒 所需食材\n## 👨‍🍳 制作步骤\n## 💡 制作技巧"
                ),
            )
        else:
            who, how = (
                "你是一位专业的烹饪助手。请根据以下食谱信息回答用户的问题。",
                "请提供详细、实用的回答。如果信息不足，请诚实说明。",
            )
        prompt = ChatPromptTemplate.from_template(
            "\n" + who + "\n\n用户问题: {question}\n\n相关食谱信息:\n{context}\n\n" + how + "\n\n回答:"
        )
        given = {"question": RunnablePassthrough(), "context": lambda _: context}
        return given | prompt | self.llm | StrOutputParser()

    def generate_answer(self, route_type, query, context_docs):
        return self.answer_chain(route_type, context_docs).invoke(query)

    def generate_answer_stream(self, route_type, query, context_docs):
        yield from self.answer_chain(route_type, context_docs).stream(query)

    def _build_context(self, docs, max_length=2000):
        if not docs:
            return "暂无相关食谱信息。"
        context_parts, current_length = [], 0
        for place, doc in enumerate(docs, 1):
            about = doc.metadata
            metadata_info = (
                f"【食谱 {place}】 {about['dish_name']} | 分类: {about['category']} | 难度: {about['difficulty']}"
            )
            doc_text = f"{metadata_info}\n{doc.page_content}\n"
            if current_length + len(doc_text) > max_length:
                break
            context_parts.append(doc_text)
            current_length += len(doc_text)
        return "\n" + "=" * 50 + "\n".join(context_parts)


def all_in_rag_recipes():
    """Recipes are asked for steps, for names and for something sweet: pieces are found, and whole recipes shown."""
    steps, names, sweet = "砂锅豆腐怎么做？", "推荐两道简单的菜", "天冷了，想喝点甜的"
    sweet_soup = "简单易做的甜汤"
    tofu, lotus, cake = (
        tuple(f"cook_{dish}_{part}" for part in ("intro", "items", "amounts", "steps"))
        for dish in ("tofu", "lotus", "cake")
    )
    found = {
        steps: ("cook_tofu_steps", "cook_tofu_intro", "cook_tofu_items", "cook_tofu_amounts", "cook_lotus_intro"),
        names: ("cook_lotus_intro", "cook_lotus_steps", "cook_cake_intro", "cook_tofu_intro", "cook_lotus_items"),
        sweet_soup: (
            "cook_cake_intro",
            "cook_cake_items",
            "cook_lotus_intro",
            "cook_tofu_intro",
            "cook_tofu_items",
        ),
    }
    by_steps = "先用盐水泡豆腐，再煸五花肉出油，最后加热水小火炖二十五分钟。"
    by_sweet = "可以煮红豆年糕汤：红豆先压半小时，年糕后放，冰糖在关火以后加。"
    llm = langchain_parts.Replies(
        rules=[
            (f"用户问题: {steps}\n\n分类结果", "detail"),
            (f"用户问题: {names}\n\n分类结果", "list"),
            (f"用户问题: {sweet}\n\n分类结果", "General"),
            (f"原始查询: {steps}", steps),
            (f"原始查询: {sweet}", sweet_soup),
            (f"用户问题: {steps}", by_steps),
            (f"用户问题: {sweet}", by_sweet),
        ]
    )
    data_module = DataPreparationModule(
        {
            ("meat_dish", "砂锅豆腐"): tofu,
            ("vegetable_dish", "凉拌藕片"): lotus,
            ("dessert", "红豆年糕汤"): cake,
        }
    )
    chunks = data_module.chunk_documents()
    vectorstore = InMemoryVectorStore.from_documents(chunks, Directions(found))
    retrieval_module = RetrievalOptimizationModule(vectorstore, chunks)
    generation_module = GenerationIntegrationModule(llm)

    def ask_question(question, *, stream=False):
        route_type = generation_module.query_router(question)
        rewritten_query = question if route_type == "list" else generation_module.query_rewrite(question)
        relevant_chunks = retrieval_module.hybrid_search(rewritten_query, top_k=3)
        if not relevant_chunks:
            return "抱歉，没有找到相关的食谱信息。请尝试其他菜品名称或关键词。"
        relevant_docs = data_module.get_parent_documents(relevant_chunks)
        if route_type == "list":
            return generation_module.generate_list_answer(question, relevant_docs)
        if stream:
            return generation_module.generate_answer_stream(route_type, question, relevant_docs)
        return generation_module.generate_answer(route_type, question, relevant_docs)

    def ask(recorder):
        answers = []
        for user_input, use_stream in ((steps, True), (names, True), (sweet, False)):
            with recorder.start(query=user_input) as run:
                if use_stream:
                    printed = "".join(ask_question(user_input, stream=True))  # a list comes letter by letter
                else:
                    printed = ask_question(user_input, stream=False)
                run.answered(printed)
            answers.append(printed)
        return answers

    return ask


WITH_HANDLER = {
    "hf-knowledge-graph-rag": hf_knowledge_graph_rag,
    "nvidia-hitl-multi-agents": nvidia_hitl_multi_agents,
}
IN_BLOCK = {  # what is returned is asked in blocks
    "garay-virtual-assistant": garay_virtual_assistant,
    "all-in-rag-recipes": all_in_rag_recipes,
}
INSTRUMENTED = {
    "github-rag": github_rag,
    "notebookllama": notebookllama,
}
