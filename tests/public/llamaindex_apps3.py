"""Applications of LlamaIndex of the fourth draw: routers, sub-questions behind rows, a tree of objects, a bank.

LlamaIndex looks for `Context` in the signature of a tool, so that annotations are no strings here.
"""

import json

from llama_index.core import Document, SQLDatabase, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, LLMMetadata
from llama_index.core.composability import QASummaryQueryEngineBuilder
from llama_index.core.llms import LLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.program.function_program import get_function_tool
from llama_index.core.query_engine import NLSQLTableQueryEngine, SQLJoinQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.tools import BaseTool, FunctionTool, QueryEngineTool, ToolMetadata, ToolOutput, ToolSelection
from llama_index.core.workflow import (
    Context,
    Event,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)
from pydantic import BaseModel, ConfigDict, Field, create_model
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert
from sqlalchemy.pool import StaticPool

from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


def joint_qa_summary():
    """A router chooses between a summary of all that there is and a search, for each of three questions."""
    life, oak, today = (
        "Can you give me a summary of the mole's life?",
        "What was put in place of oak?",
        "Who may stand on the mole today?",
    )
    model = Caller(
        replies=[
            call("SingleSelection", index=2, reason="A summary is asked for."),
            "Prisoners built it, a storm mended it with stone, and people fish from it now.",
            call("SingleSelection", index=1, reason="One fact is asked for."),
            "Stone: granite, after the storm.",
            call("SingleSelection", index=1, reason="One fact is asked for."),
            "Whoever fishes and pays for the day.",
        ]
    )
    builder = QASummaryQueryEngineBuilder(
        llm=model,
        embed_model=Vectors(queries={oak: ("mole_storm", "mole_built"), today: ("mole_rented", "mole_storm")}),
    )
    documents = [Document(text=TEXTS[name]) for name in ("mole_built", "mole_storm", "mole_rented")]
    engine = builder.build_from_documents(documents)
    return [str(engine.query(question)) for question in (life, oak, today)]


class Biography(BaseModel):
    """A life."""

    name: str
    best_known_for: list[str]
    extra_info: str


class NarrowCaller(Caller):
    """A model whose window holds half of the text."""

    @property
    def metadata(self):
        return LLMMetadata(
            context_window=295,
            num_output=100,
            is_function_calling_model=True,
            is_chat_model=True,
            model_name="narrow",
        )


def pydantic_tree_summarize():
    """Pieces of a long text are summarised into objects, and these into one object."""
    young = {"name": "Ida Moen", "best_known_for": ["a rescue"], "extra_info": "She rowed to a wreck as a girl."}
    old = {
        "name": "Moen",
        "best_known_for": ["a light", "records"],
        "extra_info": "She measured every day until 1941.",
    }
    both = {
        "name": "Ida Moen",
        "best_known_for": ["a rescue", "records"],
        "extra_info": "As a girl she saved sailors; later she tended a light and observed the sky.",
    }
    model = NarrowCaller(replies=[{"name": "Biography", "arguments": one} for one in (young, old, both)])
    summarizer = TreeSummarize(llm=model, output_cls=Biography)
    response = summarizer.get_response("who is Ida Moen?", [TEXTS["essay_keeper"]])
    assert len(model.turns) == 3
    return response.model_dump_json()


def sql_join_engine():
    """Rows name the parish; an engine of sub-questions is then asked about it; one prompt joins both answers."""
    question = "Which feasts are kept in the parish with the most people?"
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    metadata = MetaData()
    parishes = Table(
        "parish_stats",
        metadata,
        Column("parish_name", String(16), primary_key=True),
        Column("population", Integer),
        Column("county", String(16), nullable=False),
    )
    metadata.create_all(engine)
    with engine.begin() as connection:
        for name, population in (("Tuna", 12400), ("Lillby", 900)):
            connection.execute(insert(parishes).values(parish_name=name, population=population, county="Ilm"))

    ashore, afloat = (
        "What do people do ashore at the feasts of Tuna?",
        "What do they do on the water at the feasts of Tuna?",
    )
    sub_questions = {"items": [{"sub_question": one, "tool_name": "Tuna"} for one in (ashore, afloat)]}
    choice = {"choice": 1, "reason": "The number of people is needed."}
    model = Replies(
        rules=[
            ("Some choices are given below", f"```json\n{json.dumps([choice])}\n```"),
            (
                "syntactically correct",
                "SELECT parish_name, population FROM parish_stats ORDER BY population DESC LIMIT 1\nSQLResult: ",
            ),
            ("from the query results", "More people than anywhere, some twelve thousand, live in Tuna."),
            ("come up with a more specific question", "Which feasts are kept in Tuna?"),
            (
                "a list of tools, output a list of relevant sub-questions",
                f"```json\n{json.dumps(sub_questions)}\n```",
            ),
            ("Sub question: ", "Fish is smoked and a tall pole put up; rowers compete in August."),
            (f"Query: {ashore}", "They smoke fish in July, and put up a tall pole in June."),
            (f"Query: {afloat}", "Rowers of the church compete in August."),
            (
                "Query engine response: ",
                "Tuna, the largest parish, keeps three: for fish, for midsummer and for rowers.",
            ),
        ]
    )
    embedder = Vectors(queries={ashore: ("feast_vendace", "feast_pole"), afloat: ("feast_boats", "feast_vendace")})
    tools = []
    for parish, names in {"Tuna": ("feast_boats", "feast_pole", "feast_vendace"), "Lillby": ("feast_rye",)}.items():
        index = VectorStoreIndex.from_documents(
            [Document(text=TEXTS[name]) for name in names], embed_model=embedder
        )
        tools.append(
            QueryEngineTool(
                query_engine=index.as_query_engine(similarity_top_k=2, llm=model),
                metadata=ToolMetadata(name=parish, description=f"Provides information about {parish}"),
            )
        )
    sub_engine = SubQuestionQueryEngine.from_defaults(
        query_engine_tools=tools,
        llm=model,
        question_gen=LLMQuestionGenerator.from_defaults(llm=model),
        verbose=False,
    )
    sql_engine = NLSQLTableQueryEngine(
        sql_database=SQLDatabase(engine, include_tables=["parish_stats"]),
        tables=["parish_stats"],
        llm=model,
        embed_model=embedder,
    )
    both = SQLJoinQueryEngine(
        QueryEngineTool.from_defaults(
            query_engine=sql_engine, description="Turns a question into SQL on parish_stats."
        ),
        QueryEngineTool.from_defaults(query_engine=sub_engine, description="Answers questions about parishes."),
        llm=model,
        verbose=False,
    )
    return str(both.query(question))


class FunctionToolWithContext(FunctionTool):
    """A tool that is given the context of the workflow first."""

    @classmethod
    def of(cls, function):
        """Make a tool of a coroutine function whose first argument is the context."""
        given = {
            name: (kind, ...) for name, kind in function.__annotations__.items() if name not in {"ctx", "return"}
        }
        metadata = ToolMetadata(
            name=function.__name__,
            description=f"{function.__name__}\n{function.__doc__}",
            fn_schema=create_model(function.__name__, **given),
        )
        return cls(metadata=metadata, async_fn=function)

    async def acall(self, ctx: Context, *args, **kwargs) -> ToolOutput:
        output = await self._async_fn(ctx, *args, **kwargs)
        return ToolOutput(
            content=str(output),
            tool_name=self.metadata.name,
            raw_input={"args": args, "kwargs": kwargs},
            raw_output=output,
        )


class AgentConfig(BaseModel):
    """An agent: what it is asked to do, and its tools."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    description: str
    system_prompt: str
    tools: list[BaseTool]
    tools_requiring_human_confirmation: list[str] = Field(default_factory=list)


class TransferToAgent(BaseModel):
    """Transfers the user to an agent."""

    agent_name: str


class RequestTransfer(BaseModel):
    """Says that the agent has no tool for it, or is done."""


class ActiveSpeakerEvent(Event):
    pass


class OrchestratorEvent(Event):
    pass


class ToolCallEvent(Event):
    tool_call: ToolSelection
    tools: list[BaseTool]


class ToolCallResultEvent(Event):
    chat_message: ChatMessage


class ToolRequestEvent(InputRequiredEvent):
    tool_name: str
    tool_id: str
    tool_kwargs: dict


class ToolApprovedEvent(HumanResponseEvent):
    tool_name: str
    tool_id: str
    tool_kwargs: dict
    approved: bool
    response: str | None = None


class ProgressEvent(Event):
    msg: str


def state_text(state):
    return "\n".join(f"{name}: {value}" for name, value in state.items())


class ConciergeAgent(Workflow):
    """Hands a user to an agent, which keeps the user until it asks for a transfer."""

    @step
    async def setup(self, ctx: Context, ev: StartEvent) -> ActiveSpeakerEvent | OrchestratorEvent:
        active_speaker = await ctx.store.get("active_speaker", default="")
        chat_history = ev.get("chat_history", default=[])
        self.agents = {one.name: one for one in ev.get("agent_configs")}  # a context keeps only what it can write
        self.llm: LLM = ev.get("llm")
        chat_history.append(ChatMessage(role="user", content=ev.get("user_msg")))
        await ctx.store.set("chat_history", chat_history)
        await ctx.store.set("user_state", ev.get("initial_state"))
        return ActiveSpeakerEvent() if active_speaker else OrchestratorEvent()

    @step
    async def speak_with_sub_agent(
        self, ctx: Context, ev: ActiveSpeakerEvent
    ) -> ToolCallEvent | ToolRequestEvent | OrchestratorEvent | StopEvent | None:
        agent = self.agents[await ctx.store.get("active_speaker")]
        chat_history = await ctx.store.get("chat_history")
        state = state_text(await ctx.store.get("user_state"))
        system = f"{agent.system_prompt}\n\nHere is the current user state:\n{state}"
        response = await self.llm.achat_with_tools(  # type: ignore[attr-defined]
            [get_function_tool(RequestTransfer), *agent.tools],
            chat_history=[ChatMessage(role="system", content=system), *chat_history],
        )
        tool_calls = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)  # type: ignore[attr-defined]
        if not tool_calls:
            chat_history.append(response.message)
            await ctx.store.set("chat_history", chat_history)
            return StopEvent(result={"response": response.message.content, "chat_history": chat_history})
        await ctx.store.set("num_tool_calls", len(tool_calls))
        for tool_call in tool_calls:
            if tool_call.tool_name == "RequestTransfer":
                await ctx.store.set("active_speaker", None)
                ctx.write_event_to_stream(ProgressEvent(msg="Agent is requesting a transfer. Please hold."))
                return OrchestratorEvent()
            if tool_call.tool_name in agent.tools_requiring_human_confirmation:
                request = ToolRequestEvent(  # type: ignore[call-arg]
                    prefix=f"Tool {tool_call.tool_name} requires human approval.",
                    tool_name=tool_call.tool_name,
                    tool_id=tool_call.tool_id,
                    tool_kwargs=tool_call.tool_kwargs,
                )
                ctx.write_event_to_stream(request)
            else:
                ctx.send_event(ToolCallEvent(tool_call=tool_call, tools=agent.tools))
        chat_history.append(response.message)
        await ctx.store.set("chat_history", chat_history)
        return None

    @step
    async def handle_tool_approval(
        self, ctx: Context, ev: ToolApprovedEvent
    ) -> ToolCallEvent | ToolCallResultEvent:
        if not ev.approved:
            refused = ev.response or "The tool call was not approved."
            return ToolCallResultEvent(chat_message=ChatMessage(role="tool", content=refused))
        agent = self.agents[await ctx.store.get("active_speaker")]
        selection = ToolSelection(tool_id=ev.tool_id, tool_name=ev.tool_name, tool_kwargs=ev.tool_kwargs)
        return ToolCallEvent(tools=agent.tools, tool_call=selection)

    @step(num_workers=4)
    async def handle_tool_call(self, ctx: Context, ev: ToolCallEvent) -> ToolCallResultEvent:
        tool = {one.metadata.get_name(): one for one in ev.tools}[ev.tool_call.tool_name]
        try:
            content = (await tool.acall(ctx, **ev.tool_call.tool_kwargs)).content  # type: ignore[attr-defined]
        except ValueError as error:
            content = f"Encountered error in tool call: {error}"
        told = f"Tool {ev.tool_call.tool_name} called with {ev.tool_call.tool_kwargs} returned {content}"
        ctx.write_event_to_stream(ProgressEvent(msg=told))
        message = ChatMessage(
            role="tool",
            content=content,
            additional_kwargs={"tool_call_id": ev.tool_call.tool_id, "name": ev.tool_call.tool_name},
        )
        return ToolCallResultEvent(chat_message=message)

    @step
    async def aggregate_tool_results(self, ctx: Context, ev: ToolCallResultEvent) -> ActiveSpeakerEvent | None:
        results = ctx.collect_events(ev, [ToolCallResultEvent] * await ctx.store.get("num_tool_calls"))
        if not results:
            return None
        chat_history = await ctx.store.get("chat_history")
        chat_history.extend(one.chat_message for one in results)
        await ctx.store.set("chat_history", chat_history)
        return ActiveSpeakerEvent()

    @step
    async def orchestrator(self, ctx: Context, ev: OrchestratorEvent) -> ActiveSpeakerEvent | StopEvent:
        chat_history = await ctx.store.get("chat_history")
        agents = "\n".join(f"{one.name}: {one.description}" for one in self.agents.values())
        state = state_text(await ctx.store.get("user_state"))
        system = f"You decide which agent to run.\nAgents:\n{agents}\n\nHere is the current user state:\n{state}"
        response = await self.llm.achat_with_tools(  # type: ignore[attr-defined]
            [get_function_tool(TransferToAgent)],
            chat_history=[ChatMessage(role="system", content=system), *chat_history],
        )
        tool_calls = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)  # type: ignore[attr-defined]
        if not tool_calls:
            chat_history.append(response.message)
            return StopEvent(result={"response": response.message.content, "chat_history": chat_history})
        selected = tool_calls[0].tool_kwargs["agent_name"]
        await ctx.store.set("active_speaker", selected)
        ctx.write_event_to_stream(ProgressEvent(msg=f"Transferring to agent {selected}"))
        return ActiveSpeakerEvent()


async def search_for_fish_symbol(ctx: Context, fish_name: str) -> str:
    """Search for a fish's symbol, given its name."""
    return fish_name.upper()


async def lookup_fish_price(ctx: Context, fish_symbol: str) -> str:
    """Look up a fish's price."""
    return f"Symbol {fish_symbol} is currently trading at 4.20 a kilo."


async def store_username(ctx: Context, username: str) -> None:
    """Add the username to the user state."""
    state = await ctx.store.get("user_state")
    state["username"] = username
    await ctx.store.set("user_state", state)


async def login(ctx: Context, password: str) -> str:
    """Log in, and store a session token."""
    state = await ctx.store.get("user_state")
    state.update(session_token="1234567890", account_id="123", account_balance=1000)
    await ctx.store.set("user_state", state)
    return (
        f"Logged in user {state['username']} with session token {state['session_token']}. "
        f"They have an account with id {state['account_id']} and a balance of {state['account_balance']}."
    )


async def is_authenticated(ctx: Context) -> bool:
    """Check if the user has a session token."""
    return (await ctx.store.get("user_state"))["session_token"] is not None


async def transfer_money(ctx: Context, from_account_id: str, to_account_id: str, amount: int) -> str:
    """Transfer money between accounts."""
    if not await is_authenticated(ctx):
        raise ValueError("User is not authenticated!")
    return f"Transferred {amount} to account {to_account_id}"


async def multi_agent_concierge():
    """Three turns: a price, a login, and a transfer that a person approves while the run waits."""
    agents = [
        AgentConfig(
            name="Fish Price Agent",
            description="Looks up prices and symbols of fish",
            system_prompt="You look up prices. Trust the symbols of search_for_fish_symbol.",
            tools=[FunctionToolWithContext.of(one) for one in (lookup_fish_price, search_for_fish_symbol)],
        ),
        AgentConfig(
            name="Authentication Agent",
            description="Handles user authentication",
            system_prompt="You log the user in, with a username and a password.",
            tools=[FunctionToolWithContext.of(one) for one in (store_username, login, is_authenticated)],
        ),
        AgentConfig(
            name="Transfer Money Agent",
            description="Handles money transfers between accounts",
            system_prompt="You transfer money for users who are authenticated.",
            tools=[FunctionToolWithContext.of(one) for one in (transfer_money, is_authenticated)],
            tools_requiring_human_confirmation=["transfer_money"],
        ),
    ]
    model = Caller(
        replies=[
            call("TransferToAgent", agent_name="Fish Price Agent"),
            call("search_for_fish_symbol", fish_name="smelt"),
            call("lookup_fish_price", fish_symbol="SMELT"),
            "A kilo of smelt costs 4.20 now.",
            call("RequestTransfer"),
            call("TransferToAgent", agent_name="Authentication Agent"),
            call("store_username", username="anna"),
            call("login", password="tern"),
            "Welcome, Anna: you have 1000.",
            call("RequestTransfer"),
            call("TransferToAgent", agent_name="Transfer Money Agent"),
            call("transfer_money", from_account_id="123", to_account_id="7", amount=20),
            "Your 20 are on their way.",
        ]
    )
    memory = ChatMemoryBuffer.from_defaults(llm=model)
    initial_state = dict.fromkeys(("username", "session_token", "account_id", "account_balance"))
    workflow = ConciergeAgent(timeout=None)
    ctx, answers = None, []
    for user_msg in (
        "What does a kilo of smelt cost?",
        "I am anna, and my password is tern. How much money do I have?",
        "Please send 20 of it to account 7.",
    ):
        handler = workflow.run(
            ctx=ctx,
            user_msg=user_msg,
            agent_configs=agents,
            llm=model,
            chat_history=memory.get(),
            initial_state=initial_state,
        )
        async for event in handler.stream_events():
            if isinstance(event, ToolRequestEvent):
                approval = ToolApprovedEvent(
                    tool_id=event.tool_id,
                    tool_name=event.tool_name,
                    tool_kwargs=event.tool_kwargs,
                    approved=True,
                )
                handler.ctx.send_event(approval)
        result = await handler
        for message in result["chat_history"][len(memory.get()) :]:
            memory.put(message)
        ctx = handler.ctx
        answers.append(result["response"])
    return answers


INSTRUMENTED = {
    "joint-qa-summary": joint_qa_summary,
    "pydantic-tree-summarize": pydantic_tree_summarize,
    "sql-join-engine": sql_join_engine,
    "multi-agent-concierge": multi_agent_concierge,
}
