"""Applications of LlamaIndex of the eighth draw: a story with a person's choices, memories that are searched, sub-questions for
agents, tools that answer themselves, and an agent whose message is set between passages.

LlamaIndex looks at the annotations of steps, so that they are no strings here.
"""

import json
import uuid
from typing import Any

from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.agent.workflow import AgentInput, AgentStream, FunctionAgent, ReActAgent, ToolCallResult
from llama_index.core.agent.workflow.workflow_events import AgentWorkflowStartEvent
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer, SimpleComposableMemory, VectorMemory
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolMetadata
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel, Field

from tests.apps.llamaindex_parts import Caller, Replies, call
from tests.public.kit import Vectors
from tests.public.texts import TEXTS


class Segment(BaseModel):
    """A segment of a story."""

    plot: str = Field(description="What happens, in three sentences at most.")
    actions: list[str] = Field(default=[], description="What the hero may do next.")


STORY_RULES = (
    "You and a human write an adventure whose reader chooses how it goes on; the human plays the hero. "
    "It is written in BLOCKs of a PLOT, of ACTIONS to choose from, and of the chosen ACTION.\n\n"
    "PREVIOUS BLOCKS:\n---\n{running_story}\n\n"
)
SEGMENT_GENERATION_TEMPLATE = (
    f"{STORY_RULES}Write the next block's PLOT and ACTIONS. Where there is no block yet, begin a new story, "
    "and give its hero a name and a task.\n\nUse the data model for your output."
)
FINAL_SEGMENT_GENERATION_TEMPLATE = f"{STORY_RULES}The story ends here. Write its last PLOT, without ACTIONS.\n\nUse the data model for your output."


class Block(BaseModel):
    """A segment, and what the person chose after it."""

    id_: str = Field(default_factory=lambda: str(uuid.uuid4()))
    segment: Segment
    choice: str | None = None

    def __str__(self):
        actions = ", ".join(self.segment.actions)
        return f"\nBLOCK\n===\nPLOT: {self.segment.plot}\nACTIONS: {actions}\nCHOICE: {self.choice or ''}\n"


class NewBlockEvent(Event):
    block: Block


class HumanChoiceEvent(Event):
    block_id: str


class ChooseYourOwnAdventureWorkflow(Workflow):
    """Tells a story in blocks; a step asks the person after each."""

    llm: Any
    human_input: Any
    max_steps: int = 3

    @step
    async def create_segment(self, ctx: Context, ev: StartEvent | HumanChoiceEvent) -> NewBlockEvent | StopEvent:
        blocks = await ctx.store.get("blocks", default=[])
        running_story = "\n".join(str(one) for one in blocks)
        is_last = len(blocks) >= self.max_steps
        template = FINAL_SEGMENT_GENERATION_TEMPLATE if is_last else SEGMENT_GENERATION_TEMPLATE
        made = self.llm.structured_predict(Segment, PromptTemplate(template), running_story=running_story)
        block = Block(segment=made)
        blocks.append(block)
        if is_last:
            return StopEvent(result=blocks)
        await ctx.store.set("blocks", blocks)
        return NewBlockEvent(block=block)

    @step
    async def prompt_human(self, ctx: Context, ev: NewBlockEvent) -> HumanChoiceEvent:
        block, actions = ev.block, "\n".join(ev.block.segment.actions)
        human_input = self.human_input(f"\n===\n{block.segment.plot}\n\nChoose your adventure:\n\n{actions}\n\n")
        blocks = await ctx.store.get("blocks")
        block.choice = human_input
        blocks[-1] = block
        await ctx.store.set("blocks", blocks)
        return HumanChoiceEvent(block_id=block.id_)


async def story_crafting():
    """A segment is made to see one; then a story of three blocks and an end is told."""

    def segment(plot, *actions):
        return call("Segment", plot=plot, actions=list(actions))

    model = Caller(
        replies=[
            segment("Runa finds a key in a herring.", "Try it at the church", "Throw it back"),
            segment("Runa, a rower, hears a bell below the reef of Vester.", "Row out", "Ask the old pilot"),
            segment("The pilot gives her a lead line, and wants to come along.", "Take him", "Go alone"),
            segment("At the reef the bell rings again, from under the boat.", "Drop the line", "Wait for low tide"),
            segment("At low tide the bell of the lost ferry lies dry, and both row it home."),
        ]
    )
    example = model.structured_predict(Segment, PromptTemplate(SEGMENT_GENERATION_TEMPLATE), running_story="")
    assert str(Block(segment=example)).endswith("CHOICE: \n")
    chosen = iter(["Ask the old pilot", "Take him", "Wait for low tide"])
    workflow = ChooseYourOwnAdventureWorkflow(timeout=None)
    workflow.llm = model
    workflow.human_input = lambda prompt: next(chosen)
    result = await workflow.run()
    assert [one.choice for one in result] == ["Ask the old pilot", "Take him", "Wait for low tide", None]
    return "\n\n".join(one.segment.plot for one in result)


class Remembered(Vectors):
    """Embeds what a memory keeps; what the system says is far from what is asked."""

    def _get_text_embedding(self, text):
        return super()._get_text_embedding(TEXTS["coop_sept_cat"] if text.startswith("You are a ") else text)


class InputEvent(Event):
    pass


class ToolCallEvent(Event):
    tool_calls: list[ToolSelection]


class FunctionCallingAgent(Workflow):
    """The framework's former worker: it asks its memory with the message before each call of the model.

    The turn is put into the memory at its end, with all that the memory holds already.
    """

    llm: Any
    tools: Any
    memory: Any

    @step
    async def prepare(self, ctx: Context, ev: StartEvent) -> InputEvent:
        await ctx.store.set("message", ev.message)
        await ctx.store.set("new_memory", [ChatMessage(role="user", content=ev.message)])
        return InputEvent()

    @step
    async def run_step(self, ctx: Context, ev: InputEvent) -> ToolCallEvent | StopEvent:
        new_memory = await ctx.store.get("new_memory")
        messages = self.memory.get(input=await ctx.store.get("message"))
        response = await self.llm.achat_with_tools(tools=self.tools, chat_history=[*messages, *new_memory])
        new_memory.append(response.message)
        await ctx.store.set("new_memory", new_memory)
        tool_calls = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
        if tool_calls:
            return ToolCallEvent(tool_calls=tool_calls)
        self.memory.set([*self.memory.get_all(), *new_memory])
        return StopEvent(result=response.message.content)

    @step
    async def call_tools(self, ctx: Context, ev: ToolCallEvent) -> InputEvent:
        new_memory = await ctx.store.get("new_memory")
        by_name = {one.metadata.get_name(): one for one in self.tools}
        for made in ev.tool_calls:
            output = await by_name[made.tool_name].acall(**made.tool_kwargs)
            about = {"name": made.tool_name, "tool_call_id": made.tool_id}
            new_memory.append(ChatMessage(role="tool", content=str(output), additional_kwargs=about))
        await ctx.store.set("new_memory", new_memory)
        return InputEvent()


def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


def mystery(a: int, b: int) -> int:
    """Mystery function on two numbers."""
    return a**2 - b**2


def composed(*secondary):
    return SimpleComposableMemory.from_defaults(
        primary_memory=ChatMemoryBuffer.from_defaults(), secondary_memory_sources=list(secondary)
    )


def remembering(embedder, k):
    return VectorMemory.from_defaults(
        vector_store=None, embed_model=embedder, retriever_kwargs={"similarity_top_k": k}
    )


def memory_alone():
    """A memory is filled, and asked; what it finds is added to the system's message."""
    ole, ida, jens = "What does Ole like?", "What does Ida like?", "What does Jens like?"
    queries = {ole: ("taste_ole",), ida: ("taste_ida",), jens: ("taste_jens",)}
    vector_memory = remembering(Remembered(queries=queries), 1)
    vector_memory.set(
        [
            ChatMessage(role="system", content="You are a SOMEWHAT helpful assistant."),
            ChatMessage(role="user", content="Ole the ferryman likes smoked eel."),
            ChatMessage(role="assistant", content="Indeed, Ole likes pears."),
            ChatMessage(role="user", content=TEXTS["taste_ida"]),
        ]
    )
    composable_memory = composed(vector_memory)
    composable_memory.put(ChatMessage(role="system", content="You are a REALLY helpful assistant."))
    composable_memory.put(ChatMessage(role="user", content=TEXTS["taste_jens"]))
    read = [composable_memory.get(question)[0].content for question in (ole, ida, jens)]
    assert ["eel" in one for one in read] == [True, False, False]
    assert read[2] == "You are a REALLY helpful assistant."  # Jens stands in the chat itself
    composable_memory.primary_memory.reset()
    assert composable_memory.primary_memory.get() == []
    assert [one.content for one in vector_memory.get(ida)] == [TEXTS["taste_ida"]]
    composable_memory.reset()
    assert composable_memory.primary_memory.get() == vector_memory.get(ida) == []
    return read


async def composable_memory():
    """A memory is asked alone; then agents fill one, lack it, and have it, and it is looked into."""
    read = memory_alone()
    mystery_again = "What was the output of the mystery function on 7 and 4 again? Don't recompute."
    multiply_again = "What was the output of the multiply function on 12 and 9 again? Don't recompute."
    embedder = Remembered(
        queries={
            mystery_again: ("sum_mystery", "sum_multiply"),
            multiply_again: ("sum_multiply", "sum_mystery"),
        }
    )
    tools = [FunctionTool.from_defaults(fn=multiply), FunctionTool.from_defaults(fn=mystery)]

    def agent_of(memory, *replies):
        agent = FunctionCallingAgent()
        agent.llm, agent.tools, agent.memory = Caller(replies=list(replies)), tools, memory
        return agent

    vector_memory = remembering(embedder, 2)
    agent = agent_of(
        composed(vector_memory),
        call("mystery", a=7, b=4),
        "The mystery function on 7 and 4 returns 33.",
        call("multiply", a=12, b=9),
        "Multiplied by each other, they are 108.",
    )
    agent_without_memory = agent_of(ChatMemoryBuffer.from_defaults(), "I have no earlier output of it, sorry.")
    answers = [
        await agent.run(message="What is the mystery function on 7 and 4?"),
        await agent.run(message="What happens if you multiply 12 and 9?"),
        await agent_without_memory.run(message=mystery_again),
    ]
    agent_with_memory = agent_of(
        composed(vector_memory.model_copy(deep=True)), "It was 33, as before.", "That one gave 108."
    )
    assert agent_with_memory.memory.get_all() == []
    answers += [
        await agent_with_memory.run(message=mystery_again),
        await agent_with_memory.run(message=multiply_again),
    ]
    assert len(agent_with_memory.memory.get_all()) == 4
    looked_into = composed(vector_memory.model_copy(deep=True))
    (message,) = looked_into.get(mystery_again)
    assert looked_into.get(mystery_again)[0].content == message.content
    return [*read, *answers, message.content]


class QueryEvent(Event):
    question: str


class AnswerEvent(Event):
    question: str
    answer: str


class SubQuestionQueryEngine(Workflow):
    """Splits a question, has an agent with all tools answer each part, and joins the answers."""

    @step
    async def query(self, ctx: Context, ev: StartEvent) -> QueryEvent | None:
        await ctx.store.set("original_query", ev.query)
        await ctx.store.set("llm", ev.llm)
        await ctx.store.set("tools", ev.tools)
        response = ev.llm.complete(
            "Split a user's question into sub-questions for these tools, so that their answers together answer it. "
            'Reply in bare JSON, like {"sub_questions": ["How many people live on Aabo?", "What does Aabo spend?"]}\n'
            f"Here is the user question: {ev.query}\n\nAnd here is the list of tools: {ev.tools}\n"
        )
        sub_questions = json.loads(str(response))["sub_questions"]
        await ctx.store.set("sub_question_count", len(sub_questions))
        for question in sub_questions:
            ctx.send_event(QueryEvent(question=question))
        return None

    @step(num_workers=1)  # one after the other: the framework's former agents kept the loop to themselves
    async def sub_question(self, ctx: Context, ev: QueryEvent) -> AnswerEvent:
        agent = ReActAgent(tools=await ctx.store.get("tools"), llm=await ctx.store.get("llm"))
        response = await agent.run(user_msg=ev.question)
        return AnswerEvent(question=ev.question, answer=str(response))

    @step
    async def combine_answers(self, ctx: Context, ev: AnswerEvent) -> StopEvent | None:
        ready = ctx.collect_events(ev, [AnswerEvent] * await ctx.store.get("sub_question_count"))
        if ready is None:
            return None
        answers = "\n\n".join(f"Question: {one.question}: \n Answer: {one.answer}" for one in ready)
        llm = await ctx.store.get("llm")
        response = llm.complete(
            "A question was split into sub-questions, and each was answered. Make one answer of the answers.\n\n"
            f"Original question: {await ctx.store.get('original_query')}\n\nSub-questions and answers:\n{answers}\n"
        )
        return StopEvent(result=str(response))


def pages(file_name, *names):
    """Return the pages of a file as a reader of PDFs does: the model sees their numbers, and not the file's name."""
    return [
        Document(
            text=TEXTS[name],
            metadata={"page_label": str(number), "file_name": file_name},
            excluded_embed_metadata_keys=["page_label", "file_name"],
            excluded_llm_metadata_keys=["file_name"],
        )
        for number, name in enumerate(names, start=1)
    ]


def tool_of(index, name, description, **kwargs):
    metadata = ToolMetadata(name=name, description=description)
    return QueryEngineTool(query_engine=index.as_query_engine(**kwargs), metadata=metadata)


async def sub_question_workflow():
    """Four years are asked for, of which three have a budget of their own: the fourth stands in a later one."""
    asked = {  # of each year: the tool, its input, what is found, what its engine says, what the agent says
        2016: ("budget_2016", "total of 2016", ("budget_2016_total", "budget_2016_road"), "310,000."),
        2020: (
            "budget_2021",
            "total of 2020",
            ("budget_2021_before", "budget_2021_total"),
            "402,000, at its close.",
        ),
        2021: ("budget_2021", "total of 2021", ("budget_2021_total", "budget_2021_wall"), "455,000, planned."),
        2023: ("budget_2023", "total of 2023", ("budget_2023_total", "budget_2023_school"), "498,000."),
    }
    questions = {year: f"How much was Vester's budget in {year}?" for year in asked}
    rules = [
        ("Sub-questions and answers:", "It rose each time, from 310,000 crowns to 498,000 in seven years."),
        ("Split a user's question", json.dumps({"sub_questions": list(questions.values())})),
    ]
    for year, (tool, query, _, told) in asked.items():
        action = f"Thought: I need a tool.\nAction: {tool}\nAction Input: {json.dumps({'input': query})}\n"
        rules += [
            (f"Query: {query}\n", told),
            (f"Observation: {told}", f"Thought: I can answer.\nAnswer: In {year} it was {told}"),
            (questions[year], action),
        ]
    llm = Replies(rules=rules)
    embedder = Vectors(queries={query: names for _, query, names, _ in asked.values()})
    books = {
        2016: ("budget_2016_road", "budget_2016_total"),
        2021: ("budget_2021_wall", "budget_2021_before", "budget_2021_total"),
        2023: ("budget_2023_school", "budget_2023_total"),
    }
    query_engine_tools = [
        tool_of(
            VectorStoreIndex.from_documents(pages(f"{year} - budget.pdf", *names), embed_model=embedder),
            f"budget_{year}",
            f"Information about the island's budget in {year}",
            llm=llm,
        )
        for year, names in books.items()
    ]
    engine = SubQuestionQueryEngine(timeout=120)
    return await engine.run(
        llm=llm, tools=query_engine_tools, query="How has the budget of Vester changed from 2016 to 2023?"
    )


class Speaker(Caller):
    """Says something beside its calls, of which a reply may have several."""

    def _reply(self):
        reply = self.replies[len(self.turns)]
        self.turns.append(reply)
        text, *calls = reply
        return text, {"tool_calls": calls} if calls else {}


class Booking(BaseModel):
    """A booking, as far as it is known."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    date: str | None = None
    time: str | None = None


async def return_direct_agent():
    """A table is booked in three turns; two of the tools answer the person themselves."""
    bookings: dict[str, Booking] = {}

    def get_booking_state(user_id: str) -> str:
        """Get the current state of a booking for a given booking ID."""
        return str(bookings[user_id].model_dump()) if user_id in bookings else f"Booking ID {user_id} not found"

    def update_booking(user_id: str, detail: str, value: str) -> str:
        """Update a detail of a booking for a given booking ID. Only enter details that were given."""
        setattr(bookings[user_id], detail, value)
        return f"Booking ID {user_id} updated with {detail} = {value}"

    def create_booking(user_id: str) -> str:
        """Create a new booking and return the booking ID."""
        bookings[user_id] = Booking()
        return "Booking created, but not yet confirmed. Please provide your name, email, phone, date, and time."

    def confirm_booking(user_id: str) -> str:
        """Confirm a booking for a given booking ID."""
        missing = next((name for name, value in bookings[user_id] if value is None), None)
        if missing is not None:
            raise ValueError(f"Please provide your {missing}.")
        return f"Booking ID {user_id} confirmed!"

    user = "user123"

    def update(name, value):
        return call("update_booking", user_id=user, detail=name, value=value)

    agent = FunctionAgent(
        tools=[
            FunctionTool.from_defaults(fn=get_booking_state),
            FunctionTool.from_defaults(fn=update_booking),
            FunctionTool.from_defaults(fn=create_booking, return_direct=True),
            FunctionTool.from_defaults(fn=confirm_booking, return_direct=True),
        ],
        llm=Speaker(
            replies=[
                ("Very well, I start a booking for you.", call("create_booking", user_id=user)),
                (
                    "Thanks, I write down both.",
                    update("name", "Solveig"),
                    update("email", "solveig@vester.example"),
                ),
                ("Now I need a phone number, a day and an hour.",),
                (
                    "Thank you, I add these.",
                    update("phone", "5550199"),
                    update("date", "2026-04-05"),
                    update("time", "17:00"),
                ),
                ("That is all I need, so I confirm it.", call("confirm_booking", user_id=user)),
            ]
        ),
        system_prompt=(
            f"You are connected to the booking system of an inn, and help {user} to book a table.\n"
            "Only enter details that the user has given. Do not make up any.\n"
        ),
    )
    ctx, answers = Context(agent), []
    memory = ChatMemoryBuffer.from_defaults()  # the newest contexts lose one of their own between two runs
    for message in (
        "Hello! I would like to make a booking, around 5pm?",
        "Sure! My name is Solveig, and my email is solveig@vester.example?",
        "Right! My phone number is 5550199, the date of the booking is April 5, at 5pm.",
    ):
        handler = agent.run(message, ctx=ctx, memory=memory)
        async for event in handler.stream_events():
            assert not isinstance(event, ToolCallResult) or not event.tool_output.is_error
            assert not isinstance(event, AgentStream) or event.delta is not None
        answers.append(str(await handler))
    assert all(value is not None for _, value in bookings[user])
    return answers


CONTEXT_QA_PROMPT = PromptTemplate(
    "Context information is below.\n---------------------\n{context_str}\n---------------------\n"
    "By this context alone, pick a tool or answer: {query_str}\n"
)


class ContextRetrieverAgent(FunctionAgent):
    """Searches with the message first, and goes on with the message set behind what was found."""

    context_retriever: Any

    @step
    async def init_run(self, ctx: Context, ev: AgentWorkflowStartEvent) -> AgentInput:
        message = ev.get("user_msg")
        nodes = await self.context_retriever.aretrieve(message)
        context_str = "\n".join(one.node.get_content() for one in nodes)
        formatted = CONTEXT_QA_PROMPT.format(context_str=context_str, query_str=message)
        about = {"user_msg": formatted, "chat_history": [], "memory": ev.get("memory")}
        return await super().init_run(ctx, AgentWorkflowStartEvent(**about))


def magic_formula(revenue: int, cost: int) -> int:
    """Runs MAGIC_FORMULA on revenue and cost."""
    return revenue - cost


async def openai_agent_context_retrieval():
    """An agent finds an abbreviation and asks a report by it, twice; another finds pages of a report and has a formula."""
    losses, autumn = "What is the YZ of March 2022?", "What is the X and Z in September 2022?"
    magic = "Can you run MAGIC_FORMULA on the cooperative's revenue and cost?"
    storm, landed = "Storm losses of the first quarter", "Landings and Z of the third quarter"
    sept_names = ("coop_sept_landings", "coop_sept_costs", "coop_sept_note")
    embedder = Vectors(
        queries={
            losses: ("short_yz",),
            autumn: ("short_x",),
            magic: ("coop_sept_costs", "coop_sept_landings", "coop_sept_note"),
            storm: ("coop_march_nets", "coop_march_boat", "coop_march_roof"),
            landed: sept_names,
        }
    )
    engine_llm = Replies(
        rules=[
            (f"Query: {storm}\n", "Forty nets, a boat and a roof were lost."),
            (f"Query: {landed}\n", "812 tonnes were landed. The report has no word on Z."),
        ]
    )

    def read(file_name, *names):
        return VectorStoreIndex.from_documents(pages(file_name, *names), embed_model=embedder)

    march_index = read("march.pdf", "coop_march_cod", "coop_march_roof", "coop_march_boat", "coop_march_nets")
    june_index = read("june.pdf", "coop_june_feast", "coop_june_ice")
    sept_index = read("sept.pdf", "coop_sept_cat", *sept_names)
    query_engine_tools = [
        tool_of(
            index,
            f"vester_{month}",
            f"Provides information about the cooperative's report of {month}. Ask it with a detailed question.",
            similarity_top_k=3,
            llm=engine_llm,
        )
        for month, index in (("march", march_index), ("june", june_index), ("sept", sept_index))
    ]
    docs = [Document(text=TEXTS[name]) for name in ("short_x", "short_yz", "short_z")]
    context_index = VectorStoreIndex.from_documents(docs, embed_model=embedder)
    context_agent = ContextRetrieverAgent(
        tools=query_engine_tools,
        context_retriever=context_index.as_retriever(similarity_top_k=1),
        llm=Caller(
            replies=[
                call("vester_march", input=storm),
                "The storm took nets, the Alke and the roof of the ice house.",
                call("vester_sept", input=landed),
                "X was 812 tonnes; nobody tells me what Z is.",
            ]
        ),
    )
    memory = ChatMemoryBuffer.from_defaults()
    answers = [str(await context_agent.run(question, memory=memory)) for question in (losses, autumn)]
    magic_agent = ContextRetrieverAgent(
        tools=[FunctionTool.from_defaults(fn=magic_formula, name="magic_formula")],
        context_retriever=sept_index.as_retriever(similarity_top_k=3),
        llm=Caller(
            replies=[
                call("magic_formula", revenue=2327, cost=2496),
                "MAGIC_FORMULA gives a loss of 169 thousand crowns.",
            ]
        ),
    )
    return [*answers, str(await magic_agent.run(magic, memory=ChatMemoryBuffer.from_defaults()))]


INSTRUMENTED = {
    "story-crafting": story_crafting,
    "composable-memory": composable_memory,
    "sub-question-workflow": sub_question_workflow,
    "return-direct-agent": return_direct_agent,
    "openai-agent-context-retrieval": openai_agent_context_retrieval,
}
