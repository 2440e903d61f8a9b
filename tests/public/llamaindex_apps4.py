"""Applications of LlamaIndex of the fifth draw: steps, a story, three strategies, a researched report, agents over pages.

LlamaIndex looks at the annotations of steps, so that they are no strings here.
"""

import json
import uuid
from typing import Any, Literal

from llama_index.core import Document, PromptTemplate, SummaryIndex, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.memory.simple_composable_memory import SimpleComposableMemory
from llama_index.core.objects import ObjectIndex, ObjectRetriever
from llama_index.core.postprocessor.rankGPT_rerank import RankGPTRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel

from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


class QueryMultiStepEvent(Event):
    nodes: list[NodeWithScore]
    source_nodes: list[NodeWithScore]
    final_response_metadata: dict[str, Any]


class MultiStepQueryEngineWorkflow(Workflow):
    """Asks an engine what is still to be known, until a model asks for nothing; then joins the answers."""

    llm: Any

    @step
    async def query_multistep(self, ctx: Context, ev: StartEvent) -> QueryMultiStepEvent:
        prev_reasoning, text_chunks, source_nodes = "", [], []
        final_response_metadata: dict[str, Any] = {"sub_qa": []}
        query, query_engine = ev.get("query"), ev.get("query_engine")
        await ctx.store.set("query", query)
        for _ in range(ev.get("num_steps")):
            metadata = {"prev_reasoning": prev_reasoning, "index_summary": ev.get("index_summary")}
            updated = StepDecomposeQueryTransform(llm=self.llm)(QueryBundle(query_str=query), metadata=metadata)
            if "none" in updated.query_str.lower():
                break
            response = query_engine.query(updated)
            text_chunks.append(f"\nQuestion: {updated.query_str}\nAnswer: {response!s}")
            source_nodes.extend(response.source_nodes)
            final_response_metadata["sub_qa"].append((updated.query_str, str(response)))
            prev_reasoning += f"- {updated.query_str}\n- {response!s}\n"
        return QueryMultiStepEvent(
            nodes=[NodeWithScore(node=TextNode(text=one)) for one in text_chunks],
            source_nodes=source_nodes,
            final_response_metadata=final_response_metadata,
        )

    @step
    async def synthesize(self, ctx: Context, ev: QueryMultiStepEvent) -> StopEvent:
        final_response = await get_response_synthesizer(llm=self.llm).asynthesize(
            query=await ctx.store.get("query"), nodes=ev.nodes, additional_source_nodes=ev.source_nodes
        )
        final_response.metadata = ev.final_response_metadata  # type: ignore[union-attr]
        return StopEvent(result=final_response)


async def multi_step_workflow():
    """The second question is made from the answer to the first."""
    question = "Where did the builder of the great clock learn his trade?"
    builder, trade = "Who built the great clock of Brenn?", "Where did Anton Riedl learn his trade?"
    model = Replies(
        rules=[
            ("- In Sankt Ulm.", "None"),
            ("- A man called Anton Riedl.", trade),
            ("We have an opportunity to answer some", builder),
            ("Answer: In Sankt Ulm.", "Riedl, who built it, was taught at Sankt Ulm."),
            (f"Query: {builder}", "A man called Anton Riedl."),
            (f"Query: {trade}", "In Sankt Ulm."),
        ]
    )
    embedder = Vectors(queries={builder: ("clock_builder", "clock_bell"), trade: ("riedl_trade", "clock_builder")})
    documents = [Document(text=TEXTS[name]) for name in ("clock_bell", "clock_builder", "riedl_trade")]
    index = VectorStoreIndex.from_documents(documents, embed_model=embedder)
    workflow = MultiStepQueryEngineWorkflow(timeout=200)
    workflow.llm = model
    result = await workflow.run(
        query=question,
        query_engine=index.as_query_engine(similarity_top_k=2, llm=model),
        index_summary="Used to answer questions about the clock",
        num_steps=3,
    )
    assert [one[0] for one in result.metadata["sub_qa"]] == [builder, trade]
    return str(result)


class Segment(BaseModel):
    """A piece of a story, and what may be done next."""

    plot: str
    actions: list[str]


class IncrementAdventureEvent(Event):
    new_plot: str
    new_actions: list[str]


class HumanInputEvent(Event):
    chosen_action: str


class HumanInputWorkflow(Workflow):
    """Asks a person."""

    human_input: Any

    @step
    async def ask(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=self.human_input(str(ev.get("prompt", ""))))


class ChooseYourOwnAdventureWorkflow(Workflow):
    """Tells a story piece by piece; a person chooses after each."""

    llm: Any
    human_input: Any
    max_steps: int

    @step
    async def advance_story(
        self, ctx: Context, ev: StartEvent | HumanInputEvent
    ) -> IncrementAdventureEvent | StopEvent:
        blocks = await ctx.store.get("blocks", default=[])
        if isinstance(ev, HumanInputEvent):
            blocks = [*blocks[:-1], f"{blocks[-1]}CHOICE: {ev.chosen_action}\n"]
        story = "\n".join(blocks)
        if len(blocks) == self.max_steps:
            ending = self.llm.predict(PromptTemplate("{story}\n\nEnd the story. FINAL_PLOT: "), story=story)
            return StopEvent(result=ending)
        template = PromptTemplate(
            "CHOOSE YOUR OWN ADVENTURE\n\n{story}\n\nGo on with the story, and offer actions."
        )
        made = self.llm.structured_predict(Segment, template, story=story)
        await ctx.store.set("blocks", [*blocks, f"PLOT: {made.plot}\nACTIONS: {', '.join(made.actions)}\n"])
        return IncrementAdventureEvent(new_plot=made.plot, new_actions=made.actions)

    @step
    async def prompt_human(self, ctx: Context, ev: IncrementAdventureEvent) -> HumanInputEvent:
        actions = "\n".join(f"{place}. {action}" for place, action in enumerate(ev.new_actions, start=1))
        human_prompt = f"{ev.new_plot}\n\n{actions}\n\nChoose an action, or write your own: "
        if isinstance(self.human_input, Workflow):
            human_input = str(await self.human_input.run(prompt=human_prompt))
        else:
            human_input = self.human_input(human_prompt)
        chosen = ev.new_actions[int(human_input) - 1] if human_input.isdigit() else human_input
        return HumanInputEvent(chosen_action=chosen)


async def hitl_patterns():
    """Two stories: a step asks the person in the first, a workflow of its own in the second."""

    def segment(plot, *actions):
        return {"name": "Segment", "arguments": {"plot": plot, "actions": list(actions)}}

    first = ChooseYourOwnAdventureWorkflow(timeout=60)
    first.max_steps = 2
    first.llm = Caller(
        replies=[
            segment("You wake in a hut, and hear bells.", "Open the door", "Sleep on"),
            segment("Cows stand in the snow, and one of them speaks.", "Answer it", "Run"),
            "You talk until the sun is up, and the herd leads you home.",
        ]
    )
    chosen = iter(["1", "2"])
    first.human_input = lambda prompt: next(chosen)
    second = ChooseYourOwnAdventureWorkflow(timeout=60)
    second.max_steps = 1
    second.llm = Caller(
        replies=[
            segment("A rope hangs down the cliff.", "Climb it", "Cut it"),
            "Above the fog you see the whole valley.",
        ]
    )
    asked = HumanInputWorkflow(timeout=60)
    asked.human_input = lambda prompt: "I tie a knot first, then climb."
    second.human_input = asked
    return [await first.run(), await second.run()]


class JudgeEvent(Event):
    query: str


class BadQueryEvent(Event):
    query: str


class NaiveRAGEvent(Event):
    query: str


class HighTopKEvent(Event):
    query: str


class RerankEvent(Event):
    query: str


class ResponseEvent(Event):
    query: str
    source: str
    response: str


class ComplicatedWorkflow(Workflow):
    """Judges a query, improves it, asks three engines side by side, and lets a judge choose an answer."""

    llm: Any
    index: Any
    judge_engine: Any

    @step
    async def judge_query(
        self, ctx: Context, ev: StartEvent | JudgeEvent
    ) -> BadQueryEvent | NaiveRAGEvent | HighTopKEvent | RerankEvent | None:
        response = self.judge_engine.chat(
            "Given a user query, say whether it is likely to yield good results from a RAG system as it is: "
            f"'good' or 'bad'.\n\nHere is the query: {ev.query}\n"
        )
        if str(response) == "bad":
            return BadQueryEvent(query=ev.query)
        for kind in (NaiveRAGEvent, HighTopKEvent, RerankEvent):
            ctx.send_event(kind(query=ev.query))
        return None

    @step
    async def improve_query(self, ctx: Context, ev: BadQueryEvent) -> JudgeEvent:
        response = self.llm.complete(
            f"This is a query to a RAG system: {ev.query}\n\nIt is too vague. Provide a more detailed query."
        )
        return JudgeEvent(query=str(response))

    @step
    async def naive_rag(self, ctx: Context, ev: NaiveRAGEvent) -> ResponseEvent:
        response = self.index.as_query_engine(similarity_top_k=2, llm=self.llm).query(ev.query)
        return ResponseEvent(query=ev.query, source="Naive", response=str(response))

    @step
    async def high_top_k(self, ctx: Context, ev: HighTopKEvent) -> ResponseEvent:
        response = self.index.as_query_engine(similarity_top_k=4, llm=self.llm).query(ev.query)
        return ResponseEvent(query=ev.query, source="High top k", response=str(response))

    @step
    async def rerank(self, ctx: Context, ev: RerankEvent) -> ResponseEvent:
        engine = RetrieverQueryEngine.from_args(
            retriever=self.index.as_retriever(similarity_top_k=4),
            node_postprocessors=[RankGPTRerank(top_n=2, llm=self.llm)],
            llm=self.llm,
        )
        response = engine.query(ev.query)
        return ResponseEvent(query=ev.query, source="Reranker", response=str(response))

    @step
    async def judge(self, ctx: Context, ev: ResponseEvent) -> StopEvent | None:
        ready = ctx.collect_events(ev, [ResponseEvent] * 3)
        if ready is None:
            return None
        shown = "\n".join(
            f"Response {place} ({one.source}): {one.response}" for place, one in enumerate(ready, start=1)
        )
        response = self.judge_engine.chat(
            f"Three strategies have answered a query. The query was: {ev.query}\n\n{shown}\n\n"
            "Please provide the number of the best response (1, 2, or 3), with no other text."
        )
        return StopEvent(result=ready[int(str(response)) - 1].response)


async def multi_strategy_workflow():
    """The judge takes the answer of the engine that ranks anew."""
    question = "How has it changed?"
    improved = "How have the duration of snow and the snow line at Brenn changed since 1980?"
    naive = "There are fewer days of snow, and machines make some."
    high = "Snow days fell, machines and ploughs are used, and the line rose."
    reranked = "A third of the snow days are gone, since the snow line climbed."
    model = Replies(
        rules=[
            *((f"Response {place} (Reranker): {reranked}", str(place)) for place in (1, 2, 3)),
            (f"Here is the query: {improved}", "good"),
            (f"Here is the query: {question}", "bad"),
            ("It is too vague.", improved),
            ("Only response the ranking results", "[3] > [1] > [2] > [4]"),
            (f"{TEXTS['snow_line']}\n\n{TEXTS['snow_depth']}", reranked),
            (TEXTS["snow_plough"], high),
            (TEXTS["snow_guns"], naive),
        ]
    )
    names = ("snow_depth", "snow_guns", "snow_line", "snow_plough")
    workflow = ComplicatedWorkflow(timeout=120)
    workflow.llm = model
    workflow.index = VectorStoreIndex.from_documents(
        [Document(text=TEXTS[name]) for name in reversed(names)], embed_model=Vectors(queries={improved: names})
    )
    workflow.judge_engine = SimpleChatEngine.from_defaults(llm=model)
    return await workflow.run(query=question)


class AnalysisDecision(BaseModel):
    """What a researcher does next."""

    decision: Literal["research", "write", "cancel"]
    research_questions: list[str] | None = None
    cancel_reason: str | None = None


class PlanResearchEvent(Event):
    pass


class ResearchEvent(Event):
    question_id: str
    question: str
    context_nodes: list[NodeWithScore]


class CollectAnswersEvent(Event):
    question_id: str
    question: str
    answer: str


class ReportEvent(Event):
    pass


class UIEvent(Event):
    data: dict


class SourceNodesEvent(Event):
    nodes: list[NodeWithScore]


class AgentStream(Event):
    delta: str


class ArtifactEvent(Event):
    title: str
    content: str
    sources: list[str]


class DeepResearchWorkflow(Workflow):
    """Searches, plans questions, answers them from what was found, and streams a report."""

    llm: Any
    index: Any
    memory: Any
    context_nodes: list[NodeWithScore]
    user_request: str

    @step
    async def retrieve(self, ctx: Context, ev: StartEvent) -> PlanResearchEvent:
        self.user_request = ev.get("user_msg")
        self.memory.put_messages(ev.get("chat_history"))
        await ctx.store.set("total_questions", 0)
        self.memory.put_messages([ChatMessage(role=MessageRole.USER, content=self.user_request)])
        ctx.write_event_to_stream(UIEvent(data={"event": "retrieve", "state": "inprogress"}))
        nodes = self.index.as_retriever(similarity_top_k=3).retrieve(self.user_request)
        self.context_nodes = [*nodes]
        ctx.write_event_to_stream(SourceNodesEvent(nodes=nodes))
        return PlanResearchEvent()

    @step
    async def analyze(self, ctx: Context, ev: PlanResearchEvent) -> ResearchEvent | ReportEvent | StopEvent | None:
        total_questions = await ctx.store.get("total_questions")
        conversation = "\n".join(f"{one.role}: {one.content}" for one in self.memory.get_all())
        found = "\n".join(one.get_content(metadata_mode=MetadataMode.LLM) for one in self.context_nodes)
        template = PromptTemplate(
            "You guide a researcher. Decide on a plan: questions, a report, or the end.\n\n"
            "<Collected information>\n{context_str}\n</Collected information>\n\n"
            "<Conversation context>\n{conversation_context}\n</Conversation context>\n\n{enhanced_prompt}\n\n"
            "Provide your decision for this user request:\n<User request>\n{user_request}\n</User request>"
        )
        res = await self.llm.astructured_predict(
            output_cls=AnalysisDecision,
            prompt=template,
            user_request=self.user_request,
            context_str=found,
            conversation_context=conversation,
            enhanced_prompt="The student has no questions to research." if total_questions == 0 else "",
        )
        if res.decision == "cancel":
            return StopEvent(result=res.cancel_reason)
        if res.decision == "write":
            self._note("No more idea to analyze. We should report the answers.")
            return ReportEvent()
        await ctx.store.set("total_questions", total_questions + len(res.research_questions))
        await ctx.store.set("waiting_questions", len(res.research_questions))
        self._note("We need to find answers to the following questions:\n" + "\n".join(res.research_questions))
        for question in res.research_questions:
            number = str(uuid.uuid4())
            ctx.write_event_to_stream(UIEvent(data={"event": "answer", "state": "pending", "id": number}))
            ctx.send_event(ResearchEvent(question_id=number, question=question, context_nodes=self.context_nodes))
        return None

    @step(num_workers=2)
    async def answer(self, ctx: Context, ev: ResearchEvent) -> CollectAnswersEvent:
        shown = "\n".join(
            f"<Citation id='{one.node.node_id}'>\n{one.get_content(metadata_mode=MetadataMode.LLM)}"
            f"</Citation id='{one.node.node_id}'>"
            for one in ev.context_nodes
        )
        res = await self.llm.acomplete(
            "You are a researcher who answers a question from collected information, with citations such as "
            f"[citation:id].\n\n<Collected information>\n{shown}\n</Collected information>\n\n"
            f"No prior knowledge, just use the provided context to answer the question: {ev.question}"
        )
        return CollectAnswersEvent(question_id=ev.question_id, question=ev.question, answer=res.text)

    @step
    async def collect_answers(self, ctx: Context, ev: CollectAnswersEvent) -> PlanResearchEvent | None:
        results = ctx.collect_events(ev, [CollectAnswersEvent] * await ctx.store.get("waiting_questions"))
        if results is None:
            return None
        for one in results:
            self._note(f"<Question>{one.question}</Question>\n<Answer>{one.answer}</Answer>")
        self._note("Researched all the questions. Now, i need to analyze if it's ready to write a report.")
        return PlanResearchEvent()

    @step
    async def report(self, ctx: Context, ev: ReportEvent) -> StopEvent:
        researched = "\n".join(f"{one.role}: {one.content}" for one in self.memory.get_all())
        res = await self.llm.astream_complete(
            "You write a report on a user request from what was researched. Preserve all citations.\n\n"
            f"<User request>\n{self.user_request}\n</User request>\n\n"
            f"<Research context>\n{researched}\n</Research context>\n\nNow, write a report."
        )
        final_response = ""
        async for chunk in res:
            final_response += chunk.delta or ""
            ctx.write_event_to_stream(AgentStream(delta=chunk.delta or ""))
        ctx.write_event_to_stream(
            ArtifactEvent(
                title="DeepResearch Report",
                content=final_response,
                sources=[one.node.node_id for one in self.context_nodes],
            )
        )
        return StopEvent(result="")

    def _note(self, text):
        self.memory.put(ChatMessage(role=MessageRole.ASSISTANT, content=text))


async def create_llama_deep_research():
    """Two questions are answered side by side from the same passages; the report is read from the stream."""
    request = "What do the bees of Brenn live on through the year?"
    summer, winter = "What do they gather in summer?", "What do they eat in winter?"
    names = ("bees_lime", "bees_pine", "bees_winter")
    model = Replies(
        rules=[
            (
                "Now, write a report.",
                (
                    "# Bees of Brenn\n\nTrees feed them: limes first, pines later "
                    "[citation:bees_lime] [citation:bees_pine]. They live on their stores when it is cold "
                    "[citation:bees_winter]."
                ),
            ),
            (f"answer the question: {summer}", "Limes and pines [citation:bees_lime] [citation:bees_pine]."),
            (f"answer the question: {winter}", "Their stores [citation:bees_winter]."),
            ("Researched all the questions.", json.dumps({"decision": "write"})),
            (
                "The student has no questions",
                json.dumps({"decision": "research", "research_questions": [summer, winter]}),
            ),
        ]
    )
    workflow = DeepResearchWorkflow(timeout=120.0)
    workflow.llm = model
    workflow.index = VectorStoreIndex(
        [TextNode(id_=name, text=TEXTS[name]) for name in reversed(names)],
        embed_model=Vectors(queries={request: names}),
    )
    workflow.memory = SimpleComposableMemory.from_defaults(primary_memory=ChatMemoryBuffer.from_defaults(llm=model))
    handler = workflow.run(user_msg=request, chat_history=[])
    read = "".join([event.delta async for event in handler.stream_events() if isinstance(event, AgentStream)])
    assert await handler == ""
    return read


class Rerank(BaseNodePostprocessor):
    """Keeps the tools of which most words are in the query."""

    top_n: int

    def _postprocess_nodes(self, nodes, query_bundle=None):
        words = set(query_bundle.query_str.lower().rstrip("?.").split())
        return sorted(nodes, key=lambda one: -len(words & set(one.text.lower().split())))[: self.top_n]


class CustomObjectRetriever(ObjectRetriever):
    """Finds agents by their descriptions, and adds one that compares what they say."""

    def __init__(self, retriever, object_node_mapping, node_postprocessors, llm):
        super().__init__(retriever, object_node_mapping, node_postprocessors)
        self._llm = llm

    async def aretrieve(self, str_or_query_bundle):
        tools = await super().aretrieve(str_or_query_bundle)
        sub_agent = FunctionAgent(
            name="compare_tool",
            description="Useful for queries that compare several documents.",
            tools=tools,
            llm=self._llm,
            system_prompt="You compare documents with the tools provided.",
        )

        async def query_sub_agent(query: str) -> str:
            return str(await sub_agent.run(query))

        compare = FunctionTool.from_defaults(
            async_fn=query_sub_agent, name=sub_agent.name, description=sub_agent.description
        )
        return [*tools, compare]


async def multi_document_agents():
    """Agents over a document each are found for a question, and asked one by one; then two of them are compared."""
    grows, compares = "What grows in the gardens and on the roofs of Brenn?", "Compare the gardens to the roofs."
    places = {"gardens": "garden_gentian", "roofs": "roof_moss", "trams": "tram_route"}
    asked = {
        "gardens": ("Which plants are in the gardens?", "garden_beans", "garden_gentian"),
        "roofs": ("What are the roofs like?",),
        "trams": ("How long does a tram take?", "tram_route"),
    }

    class Positions(Vectors):  # of tools, which stand where a text of their document does
        def _get_text_embedding(self, text):
            tool = next((name for name in places if text.startswith(f"Tool name: tool_{name}")), None)
            return super()._get_text_embedding(text if tool is None else TEXTS[places[tool]])

    everywhere = (*places.values(),)
    finding = (grows, compares, "tool_gardens", "tool_roofs", "compare_tool")  # tools are found by their names too
    queries = {**dict.fromkeys(finding, everywhere), **{query: names for query, *names in asked.values()}}
    embedder = Positions(queries={query: tuple(names) for query, names in queries.items()})
    engine_llm = Replies(
        rules=[
            (TEXTS["garden_beans"], "A bitter root, and beans of foreign descent."),
            (TEXTS["roof_houseleek"], "Green: two kinds of plants keep fire and water off."),
        ]
    )
    documents = {
        "gardens": ("garden_gate", "garden_gentian", "garden_beans"),
        "roofs": ("roof_houseleek", "roof_moss"),
        "trams": ("tram_route", "tram_fare"),
    }
    summaries = {
        "gardens": "About plants in the gardens of the town.",
        "roofs": "About plants on the roofs of the town.",
        "trams": "About fares.",
    }
    said = {
        "gardens": ("vector_tool_gardens", "Gentian and beans, says the page."),
        "roofs": ("summary_tool_roofs", "Two plants, says the page, with a use each."),
        "trams": ("vector_tool_trams", "It takes a while."),
    }
    all_tools = []
    for base, names in documents.items():
        nodes = [TextNode(text=TEXTS[name]) for name in names]
        vector_engine = VectorStoreIndex(nodes, embed_model=embedder).as_query_engine(
            similarity_top_k=2, llm=engine_llm
        )
        summary_engine = SummaryIndex(nodes).as_query_engine(response_mode="tree_summarize", llm=engine_llm)
        tool_name, told = said[base]
        agent = FunctionAgent(
            tools=[
                QueryEngineTool.from_defaults(
                    vector_engine, name=f"vector_tool_{base}", description="Useful for specific facts"
                ),
                QueryEngineTool.from_defaults(
                    summary_engine, name=f"summary_tool_{base}", description="Useful for summaries"
                ),
            ],
            llm=Caller(replies=[call(tool_name, input=asked[base][0]), told] * 2),
            system_prompt=f"You answer queries about the page `{base}`. Use at least one of the tools.",
        )

        async def query_agent(query: str, agent=agent) -> str:
            return str(await agent.run(query))

        class Asked(BaseModel):
            query: str

        all_tools.append(
            FunctionTool.from_defaults(
                async_fn=query_agent, name=f"tool_{base}", description=summaries[base], fn_schema=Asked
            )
        )
    llm = Caller(
        replies=[
            call("tool_gardens", query="What grows in the gardens?"),
            call("tool_roofs", query="What grows on the roofs?"),
            "Bitter roots and beans below, and plants against fire and rain above.",
        ]
    )
    comparing = Caller(
        replies=[
            call("compare_tool", query=compares),
            "The gardens feed people, and the roofs guard them.",
        ]
    )
    sub_llm = Caller(
        replies=[
            call("tool_gardens", query="What are the gardens for?"),
            call("tool_roofs", query="What are the roofs for?"),
            "One is for the kitchen, the other for safety.",
        ]
    )
    obj_index = ObjectIndex.from_objects(all_tools, index_cls=VectorStoreIndex, embed_model=embedder)
    retriever = CustomObjectRetriever(
        obj_index.as_node_retriever(similarity_top_k=10),
        obj_index.object_node_mapping,
        node_postprocessors=[Rerank(top_n=2)],
        llm=sub_llm,
    )
    answers = []
    for query, model in ((grows, llm), (compares, comparing)):
        top_agent = FunctionAgent(
            tool_retriever=retriever,
            system_prompt="You answer queries about the documentation. Always use the tools provided.",
            llm=model,
        )
        handler = top_agent.run(query)
        async for _ in handler.stream_events():
            pass
        answers.append(str(await handler))
    return answers


INSTRUMENTED = {
    "multi-step-workflow": multi_step_workflow,
    "hitl-patterns": hitl_patterns,
    "multi-strategy-workflow": multi_strategy_workflow,
    "create-llama-deep-research": create_llama_deep_research,
    "multi-document-agents": multi_document_agents,
}
