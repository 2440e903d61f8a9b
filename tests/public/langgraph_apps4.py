"""Applications of LangGraph of the fifth draw: a program that is run, two desks, news in short, a team that writes."""

from __future__ import annotations

import json
import operator
import re
from typing import Annotated, Any, Literal, TypedDict, cast

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, Send
from pydantic import BaseModel

from tests.apps.langchain_parts import Replies, calls
from tests.public.texts import ROWS, TEXTS


class code(BaseModel):  # noqa: N801 - the application's name
    """A program: what it does, its imports, and the rest of it."""

    prefix: str
    imports: str
    code: str


class CodeState(TypedDict):
    error: str
    messages: list
    generation: Any
    iterations: int


def code_assistant(config):
    """A program is written from pages that were loaded beforehand, run, and written anew since it failed."""
    first = calls(
        "code",
        prefix="A float becomes a quotient by its class.",
        imports="from fractions import Fractions",
        code="print(Fractions(0.75))",
    )
    second = calls(
        "code",
        prefix="The class is called Fraction; limit_denominator keeps it short.",
        imports="from fractions import Fraction",
        code="result = Fraction(0.75).limit_denominator(100)",
    )
    llm = Replies(rules=[("failed the import test", second), ("", first)])
    code_gen_prompt = ChatPromptTemplate.from_messages(
        [
            (
                "system",
                (
                    "You are a coding assistant. Here is a full set of documentation: \n ------- \n {context} \n ------- \n"
                    "Answer the user question based on it, with a description, imports and a code block."
                ),
            ),
            ("placeholder", "{messages}"),
        ]
    )
    structured_llm = llm.with_structured_output(code, include_raw=True)
    code_gen_chain = code_gen_prompt | structured_llm | (lambda made: made["parsed"])
    concatenated_content = TEXTS["fraction_pages"]

    def generate(state: CodeState):
        messages = state["messages"]
        if state["error"] == "yes":
            messages += [("user", "Now, try again. Invoke the code tool to structure the output:")]
        made = code_gen_chain.invoke({"context": concatenated_content, "messages": messages})
        messages += [("assistant", f"{made.prefix} \n Imports: {made.imports} \n Code: {made.code}")]
        return {"generation": made, "messages": messages, "iterations": state["iterations"] + 1}

    def code_check(state: CodeState):
        messages, made = state["messages"], state["generation"]
        for program, test in ((made.imports, "import"), (f"{made.imports}\n{made.code}", "code execution")):
            try:
                exec(program, {})  # noqa: S102 - the application runs what a model wrote
            except Exception as error:
                messages += [("user", f"Your solution failed the {test} test: {error}")]
                return {**state, "messages": messages, "error": "yes"}
        return {**state, "messages": messages, "error": "no"}

    def decide_to_finish(state: CodeState):
        return "end" if state["error"] == "no" or state["iterations"] == 3 else "generate"

    workflow = StateGraph(CodeState)
    workflow.add_node("generate", generate)
    workflow.add_node("check_code", code_check)
    workflow.add_edge(START, "generate")
    workflow.add_edge("generate", "check_code")
    workflow.add_conditional_edges("check_code", decide_to_finish, {"end": END, "generate": "generate"})
    question = "How do I write 0.75 as a quotient of two whole numbers?"
    solution = workflow.compile().invoke({"messages": [("user", question)], "iterations": 0, "error": ""}, config)
    return solution["generation"]


class SwarmState(MessagesState, total=False):
    active_agent: str | None


class AssistantState(AgentState, total=False):
    active_agent: str | None


def create_handoff_tool(agent_name, description):
    """Return a tool that hands the conversation to an agent beside the one that calls it."""
    name = f"transfer_to_{agent_name}"

    @tool(name, description=description)
    def handoff(state: Annotated[Any, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
        told = ToolMessage(f"Successfully transferred to {agent_name}", name=name, tool_call_id=tool_call_id)
        return Command(
            goto=agent_name,
            graph=Command.PARENT,
            update={"messages": [*state["messages"], told], "active_agent": agent_name},
        )

    return handoff


def swarm_customer_support(config):
    """Two assistants with a booking each keep the customer until they hand over; three turns of one conversation."""
    keys = {"coach": ("from", "to", "company", "date", "id"), "room": ("place", "name", "quarter", "id")}
    values = {
        "coach": ("Brenn", "Hochwart", "Gelbe Post", "2026-07-04", "1"),
        "room": ("Hochwart", *ROWS["room"], "1"),
    }
    coaches, rooms = ([dict(zip(keys[kind], values[kind], strict=True))] for kind in ("coach", "room"))
    reservations: dict[str, dict] = {"anna": {"coach_info": {}, "room_info": {}}}

    @tool
    def search_coaches(departure: str, arrival: str, date: str) -> list[dict]:
        """Search coaches."""
        return coaches

    @tool
    def book_coach(coach_id: str, config: RunnableConfig) -> str:
        """Book a coach."""
        user = config["configurable"]["user_id"]
        reservations[user]["coach_info"] = next(one for one in coaches if one["id"] == coach_id)
        return "Successfully booked coach"

    @tool
    def search_rooms(location: str) -> list[dict]:
        """Search rooms."""
        return rooms

    @tool
    def book_room(room_id: str, config: RunnableConfig) -> str:
        """Book a room."""
        user = config["configurable"]["user_id"]
        reservations[user]["room_info"] = next(one for one in rooms if one["id"] == room_id)
        return "Successfully booked room"

    def counted(reply):
        message = AIMessage(reply) if isinstance(reply, str) else reply
        usage = {"input_tokens": 80, "output_tokens": 20, "total_tokens": 100}
        return message.model_copy(update={"usage_metadata": usage})

    def make_prompt(base):
        @dynamic_prompt
        def prompt(request: ModelRequest) -> str:
            return f"{base}\n\nUser's active reservation: {reservations['anna']}\nToday is: 2026-07-03"

        return prompt

    model = Replies(
        rules=[
            ("Successfully booked room", counted("Done, the room is yours.")),
            ("I take that room", counted(calls("book_room", room_id="1"))),
            ("Haus Enzian", counted("There is one in the upper village, in a house called Enzian.")),
            ("transferred to room_assistant", counted(calls("search_rooms", location="Hochwart"))),
            ("Successfully booked coach", counted(calls("transfer_to_room_assistant"))),
            ("find me a bed", counted(calls("book_coach", coach_id="1"))),
            ("Gelbe Post", counted("A yellow one leaves in the morning; shall I book it?")),
            ("", counted(calls("search_coaches", departure="Brenn", arrival="Hochwart", date="2026-07-04"))),
        ]
    )
    to_rooms = create_handoff_tool("room_assistant", "Transfer user to the assistant for rooms.")
    to_coaches = create_handoff_tool("coach_assistant", "Transfer user to the assistant for coaches.")
    coach_assistant = create_agent(
        model,
        tools=[search_coaches, book_coach, to_rooms],
        middleware=[make_prompt("You are a coach booking assistant")],
        state_schema=AssistantState,
        name="coach_assistant",
    )
    room_assistant = create_agent(
        model,
        tools=[search_rooms, book_room, to_coaches],
        middleware=[make_prompt("You are a room booking assistant")],
        state_schema=AssistantState,
        name="room_assistant",
    )
    builder = StateGraph(SwarmState)
    builder.add_conditional_edges(
        START,
        lambda state: state.get("active_agent") or "coach_assistant",
        ["coach_assistant", "room_assistant"],
    )
    builder.add_node("coach_assistant", coach_assistant, destinations=("room_assistant",))
    builder.add_node("room_assistant", room_assistant, destinations=("coach_assistant",))
    app = builder.compile(checkpointer=InMemorySaver())
    settings = {**config, "configurable": {"thread_id": "1", "user_id": "anna"}}
    answers = []
    for asked in (
        "Which coach goes from Brenn to the Hochwart tomorrow?",
        "Yes, book it, and find me a bed up there.",
        "I take that room.",
    ):
        result = app.invoke({"messages": [{"role": "user", "content": asked}]}, settings)
        answers.append(result["messages"][-1].content)
    return answers


class NewsState(TypedDict):
    news_query: str
    num_searches_remaining: int
    newsapi_params: dict
    past_searches: list[dict]
    articles_metadata: list[dict]
    scraped_urls: list[str]
    num_articles_tldr: int
    potential_articles: list[dict[str, str]]
    tldr_articles: list[dict[str, str]]
    formatted_results: str


class NewsApiParams(BaseModel):
    """What is asked of the news."""

    q: str
    sources: str
    language: str


async def news_tldr(config):
    """News are searched twice and their pages read; a model chooses two, which are summarised one by one."""
    searches = {"glacier Hochwart": ("news_glacier",), "Alps": ("news_glacier", "news_cables", "news_marmots")}
    narrow, wide = searches
    addresses = {name: f"https://{name.replace('_', '-')}.example" for name in searches[wide]}

    def params(words):
        return json.dumps({"q": words, "sources": "brenner-bote,abend", "language": "en"})

    llm = Replies(
        rules=[
            (f"'q': '{narrow}'", params(wide)),
            ("Create a param dict", params(narrow)),
            (
                "relevant urls",
                json.dumps([addresses["news_glacier"], addresses["news_marmots"]]),
            ),
            (
                TEXTS["news_glacier"],
                f"Ice report\n{addresses['news_glacier']}\n* It got thinner by more than a metre.\n* Some stakes lean.",
            ),
            (
                TEXTS["news_marmots"],
                f"Early risers\n{addresses['news_marmots']}\n* They sleep for a shorter time.\n* Cameras saw it.",
            ),
        ]
    )
    titles = {"news_glacier": "Ice report", "news_cables": "Vote in spring", "news_marmots": "Early risers"}

    def get_everything(q, sources, language):
        return {
            "articles": [
                {"title": titles[name], "url": addresses[name], "description": TEXTS[name].partition(". ")[0]}
                for name in searches[q]
            ]
        }

    pages = {addresses[name]: TEXTS[name] for name in addresses}

    def generate_newsapi_params(state: NewsState) -> NewsState:
        parser = JsonOutputParser(pydantic_object=NewsApiParams)
        prompt_template = PromptTemplate(
            template=(
                "Today is {today_date}.\n\nCreate a param dict for the News API based on the user query:\n{query}\n\n"
                "These searches have already been made. Loosen the search terms.\n{past_searches}\n\n"
                "{format_instructions}\n\nYou have {num_searches_remaining} searches remaining."
            ),
            input_variables=["today_date", "query", "past_searches", "num_searches_remaining"],
            partial_variables={"format_instructions": parser.get_format_instructions()},
        )
        asked = {
            "query": state["news_query"],
            "today_date": "2026-10-05",
            "past_searches": state["past_searches"],
            "num_searches_remaining": state["num_searches_remaining"],
        }
        state["newsapi_params"] = (prompt_template | llm | parser).invoke(asked)
        return state

    def retrieve_articles_metadata(state: NewsState) -> NewsState:
        state["num_searches_remaining"] -= 1
        articles = get_everything(**state["newsapi_params"])
        state["past_searches"].append(state["newsapi_params"])
        state["articles_metadata"] = [
            one for one in articles["articles"] if one["url"] not in state["scraped_urls"]
        ]
        return state

    def retrieve_articles_text(state: NewsState) -> NewsState:
        for one in state["articles_metadata"]:
            state["potential_articles"].append({**one, "text": pages[one["url"]]})
            state["scraped_urls"].append(one["url"])
        return state

    def articles_text_decision(state: NewsState) -> str:
        if state["num_searches_remaining"] == 0:
            return "select_top_urls" if state["potential_articles"] else "END"
        enough = len(state["potential_articles"]) >= state["num_articles_tldr"]
        return "select_top_urls" if enough else "generate_newsapi_params"

    def select_top_urls(state: NewsState) -> NewsState:
        shown = "\n".join(f"{one['url']}\n{one['description']}\n" for one in state["potential_articles"])
        prompt = (
            f"Based on the user news query:\n{state['news_query']}\n\n"
            f"Reply with a list of strings of up to {state['num_articles_tldr']} relevant urls.\n{shown}"
        )
        urls = re.findall(r'(https?://[^\s",]+)', llm.invoke(prompt).content)
        state["tldr_articles"] = [one for one in state["potential_articles"] if one["url"] in urls]
        return state

    async def summarize_articles_parallel(state: NewsState) -> NewsState:
        prompt = (
            "Create a * bulleted summarizing tldr for the article:\n{text}\n\n"
            "Be sure to follow the following format:\n{title}\n{url}\n* tl;dr bulleted summary\n"
        )
        for one in state["tldr_articles"]:
            result = llm.invoke(prompt.format(title=one["title"], url=one["url"], text=one["text"]))
            one["summary"] = result.content
        return state

    def format_results(state: NewsState) -> NewsState:
        asked = ", ".join(one["q"] for one in state["past_searches"])
        shown = f"Here are the top {len(state['tldr_articles'])} articles based on search terms:\n{asked}\n\n"
        state["formatted_results"] = shown + "\n\n".join(one["summary"] for one in state["tldr_articles"])
        return state

    workflow = StateGraph(NewsState)
    workflow.set_entry_point("generate_newsapi_params")
    for node in (
        generate_newsapi_params,
        retrieve_articles_metadata,
        retrieve_articles_text,
        select_top_urls,
        summarize_articles_parallel,
        format_results,
    ):
        workflow.add_node(node.__name__, node)
    workflow.add_edge("generate_newsapi_params", "retrieve_articles_metadata")
    workflow.add_edge("retrieve_articles_metadata", "retrieve_articles_text")
    workflow.add_conditional_edges(
        "retrieve_articles_text",
        articles_text_decision,
        {
            "generate_newsapi_params": "generate_newsapi_params",
            "select_top_urls": "select_top_urls",
            "END": END,
        },
    )
    workflow.add_edge("select_top_urls", "summarize_articles_parallel")
    workflow.add_conditional_edges(
        "summarize_articles_parallel",
        lambda state: "format_results" if state["tldr_articles"] else "END",
        {"format_results": "format_results", "END": END},
    )
    workflow.add_edge("format_results", END)
    initial_state = {
        "news_query": "What is new about nature around the Hochwart?",
        "num_searches_remaining": 3,
        "newsapi_params": {},
        "past_searches": [],
        "articles_metadata": [],
        "scraped_urls": [],
        "num_articles_tldr": 2,
        "potential_articles": [],
        "tldr_articles": [],
        "formatted_results": "No articles with text found.",
    }
    return (await workflow.compile().ainvoke(initial_state, config))["formatted_results"]


class Section(BaseModel):
    """Section of the report."""

    name: str
    description: str
    content: str


class Sections(BaseModel):
    """List of section titles of the report."""

    sections: list[str]


class Introduction(BaseModel):
    """Introduction to the report."""

    name: str
    content: str


class Conclusion(BaseModel):
    """Conclusion to the report."""

    name: str
    content: str


class FinishResearch(BaseModel):
    """Finish the research."""


class FinishReport(BaseModel):
    """Finish the report."""


class ReportStateOutput(MessagesState):
    final_report: str


class ReportState(MessagesState):
    sections: list[str]
    completed_sections: Annotated[list[Section], operator.add]
    final_report: str


class SectionState(MessagesState):
    section: str
    completed_sections: list[Section]


class SectionOutputState(TypedDict):
    completed_sections: list[Section]


async def open_deep_research_multi_agent(config):
    """A supervisor searches and names sections; a researcher for each searches and writes; the whole is a report."""
    web = {
        "cheese of Brenn": ("source_cheese", "Pressing", "https://cheese.example"),
        "cows of Brenn in summer": ("source_cows", "Up and down", "https://cows.example"),
        "cellars for cheese": ("source_cellar", "In the tuff", "https://cellar.example"),
    }
    overview, cows, cellar = web
    pasture, storing = "The pastures: which cows, and when", "The cellar: how it is kept"

    @tool
    async def tavily_search(queries: list[str]) -> str:
        """Search the web; return sources as one text."""
        shown = "Search results: \n\n"
        for place, (name, title, url) in enumerate((web[query] for query in queries), start=1):
            shown += (
                f"\n\n--- SOURCE {place}: {title} ---\nURL: {url}\n\nSUMMARY:\n{TEXTS[name]}\n\n" + "-" * 80 + "\n"
            )
        return shown

    def makes(part):  # an argument of some tools is called `name`
        return AIMessage(
            "", tool_calls=[{"name": type(part).__name__, "args": part.model_dump(), "id": "call-made"}]
        )

    herd = Section(
        name="The pastures",
        description=pasture,
        content="## The pastures\nThe herd is grey, and stays on the mountain from June to September.",
    )
    cave = Section(
        name="The cellar",
        description=storing,
        content="## The cellar\nA cave of soft rock, cool and wet, does the rest.",
    )
    opening = Introduction(
        name="Cheese of Brenn", content="Three months of turning come after two days under weights."
    )
    ending = Conclusion(name="Conclusion", content="## Conclusion\nGrass, time and a cave make it.")
    researcher = Replies(
        rules=[
            ("## The pastures", calls("FinishResearch")),
            ("## The cellar", calls("FinishResearch")),
            (TEXTS["source_cows"], makes(herd)),
            (TEXTS["source_cellar"], makes(cave)),
            (pasture, calls("tavily_search", queries=[cows])),
            (storing, calls("tavily_search", queries=[cellar])),
        ]
    )
    chief = Replies(
        rules=[
            ("Report is now complete", calls("FinishReport")),
            ("Now write a conclusion section", makes(ending)),
            ("Research is complete", makes(opening)),
            (TEXTS["source_cheese"], calls("Sections", sections=[pasture, storing])),
            ("", calls("tavily_search", queries=[overview])),
        ]
    )
    supervisor_tool_list = [tool(Sections), tool(Introduction), tool(Conclusion), tool(FinishReport), tavily_search]
    research_tool_list = [tool(Section), tool(FinishResearch), tavily_search]

    async def supervisor(state: ReportState, config: RunnableConfig):
        messages = state["messages"]
        if state.get("completed_sections") and not state.get("final_report"):
            bodies = "\n\n".join(one.content for one in state["completed_sections"])
            told = (
                "Research is complete. Now write the introduction and conclusion for the report. "
                f"Here are the completed main body sections: \n\n{bodies}"
            )
            messages = [*messages, {"role": "user", "content": told}]
        llm = chief.bind_tools(supervisor_tool_list, parallel_tool_calls=False, tool_choice="any")
        system = {
            "role": "system",
            "content": "You supervise research: search, name sections, then write the ends.",
        }
        return {"messages": [await llm.ainvoke([system, *messages])]}

    async def called(state, tools, config):
        observations = []
        for call in state["messages"][-1].tool_calls:
            observation = await {one.name: one for one in tools}[call["name"]].ainvoke(call["args"], config)
            message = {"role": "tool", "content": observation, "name": call["name"], "tool_call_id": call["id"]}
            observations.append((call["name"], observation, message))
        return observations

    async def supervisor_tools(
        state: ReportState, config: RunnableConfig
    ) -> Command[Literal["supervisor", "research_team", "__end__"]]:
        result: list[dict] = []
        sections_list, intro_content, conclusion_content = [], None, None
        for name, observation, message in await called(state, supervisor_tool_list, config):
            result.append(message)
            if name == "Sections":
                sections_list = cast("Sections", observation).sections
            elif name == "Introduction":
                made = cast("Introduction", observation)
                starts = made.content.startswith("# ")
                intro_content = made.content if starts else f"# {made.name}\n\n{made.content}"
            elif name == "Conclusion":
                ended = cast("Conclusion", observation)
                starts = ended.content.startswith("## ")
                conclusion_content = ended.content if starts else f"## {ended.name}\n\n{ended.content}"
        update: dict[str, Any] = {"messages": result}
        if sections_list:
            sends = [Send("research_team", {"section": one}) for one in sections_list]
            return Command(goto=sends, update=update)  # type: ignore[arg-type]
        if intro_content:
            told = "Introduction written. Now write a conclusion section."
            result.append({"role": "user", "content": told})
            update["final_report"] = intro_content
        elif conclusion_content:
            bodies = "\n\n".join(one.content for one in state["completed_sections"])
            told = "Report is now complete with introduction, body sections, and conclusion."
            result.append({"role": "user", "content": told})
            update["final_report"] = f"{state.get('final_report', '')}\n\n{bodies}\n\n{conclusion_content}"
        return Command(goto="supervisor", update=update)

    async def supervisor_should_continue(state: ReportState) -> str:
        made = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        return END if not made or [one["name"] for one in made] == ["FinishReport"] else "supervisor_tools"

    async def research_agent(state: SectionState, config: RunnableConfig):
        asked = {"role": "user", "content": f"Please research and write the section: {state['section']}"}
        llm = researcher.bind_tools(research_tool_list, parallel_tool_calls=False, tool_choice="any")
        system = {"role": "system", "content": f"You research one section of a report: {state['section']}"}
        return {"messages": [await llm.ainvoke([system, *(state.get("messages") or [asked])])]}

    async def research_agent_tools(state: SectionState, config: RunnableConfig):
        observations = await called(state, research_tool_list, config)
        update: dict[str, Any] = {"messages": [message for _, _, message in observations]}
        completed = [observation for name, observation, _ in observations if name == "Section"]
        if completed:
            update["completed_sections"] = completed[-1:]
        return update

    async def research_agent_should_continue(state: SectionState) -> str:
        made = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        return END if made[0]["name"] == "FinishResearch" else "research_agent_tools"

    research_builder = StateGraph(SectionState, output_schema=SectionOutputState)
    research_builder.add_node("research_agent", research_agent)
    research_builder.add_node("research_agent_tools", research_agent_tools)
    research_builder.add_edge(START, "research_agent")
    research_builder.add_conditional_edges(
        "research_agent", research_agent_should_continue, ["research_agent_tools", END]
    )
    research_builder.add_edge("research_agent_tools", "research_agent")
    supervisor_builder = StateGraph(ReportState, input_schema=MessagesState, output_schema=ReportStateOutput)
    supervisor_builder.add_node("supervisor", supervisor)
    supervisor_builder.add_node("supervisor_tools", supervisor_tools)
    supervisor_builder.add_node("research_team", research_builder.compile())
    supervisor_builder.add_edge(START, "supervisor")
    supervisor_builder.add_conditional_edges("supervisor", supervisor_should_continue, ["supervisor_tools", END])
    supervisor_builder.add_edge("research_team", "supervisor")
    asked = "Write a report on how the cheese of Brenn is made."
    given = {"messages": [{"role": "user", "content": asked}]}
    return (await supervisor_builder.compile().ainvoke(given, config))["final_report"]


WITH_HANDLER = {
    "code-assistant": code_assistant,
    "swarm-customer-support": swarm_customer_support,
    "news-tldr": news_tldr,
    "open-deep-research-multi-agent": open_deep_research_multi_agent,
}
