"""Applications of LangChain of the eighth draw: tools that a person approves, segments of a report, a quote in three turns,
and a talk about a car."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest
from langchain_classic.agents import AgentType, initialize_agent
from langchain_classic.chains import LLMChain
from langchain_classic.chains.base import Chain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.llms import LLM
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, Tool, tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, Field
from scipy.special import betainc

from tests.apps.langchain_parts import Replies, calls
from tests.public.kit import Directions
from tests.public.texts import TEXTS


class Completions(LLM):
    """A model of texts that goes on by the first rule whose words stand in the prompt."""

    rules: list[tuple[str, str]]

    @property
    def _llm_type(self):
        return "completions"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return next(reply for words, reply in self.rules if words in prompt)


class HumanRejectedError(Exception):
    """A person has said no to the input of a tool."""


class HumanApprovalHandler(BaseCallbackHandler):
    """Asks a person before a tool starts, and stops it where they say no."""

    raise_error = True

    def __init__(self, approve, should_check=lambda serialized: True):
        self._approve, self._should_check = approve, should_check

    def on_tool_start(self, serialized, input_str, **kwargs):
        if self._should_check(serialized) and not self._approve(input_str):
            raise HumanRejectedError(f"Inputs {input_str} to tool {serialized} were rejected.")


class Shell(BaseTool):
    """A terminal whose commands have fixed outputs."""

    name: str = "terminal"
    description: str = "Run shell commands on this Linux machine."
    outputs: dict[str, str]

    def _run(self, commands: str):
        return self.outputs[commands]


class Wikipedia(BaseTool):
    """A search of pages, whose summaries are one text."""

    name: str = "wikipedia"
    description: str = "Summaries of pages about people, places and events. Input should be a search query."
    pages: dict[str, str]

    def _run(self, query: str):
        return TEXTS[self.pages[query]]


class MathChain(Chain):
    """A model translates a problem into a sum, and the program does it."""

    llm_chain: LLMChain

    @property
    def input_keys(self):
        return ["question"]

    @property
    def output_keys(self):
        return ["answer"]

    def _call(self, inputs, run_manager=None):
        llm_output = self.llm_chain.predict(
            question=inputs["question"],
            stop=["```output"],
            callbacks=run_manager.get_child() if run_manager else None,
        )
        left, right = re.search(r"^```text\s*(\d+) - (\d+)\s*```", llm_output.strip()).groups()
        return {"answer": f"Answer: {int(left) - int(right)}"}


def human_approval_tools(config):
    """A shell whose commands a person approves, alone and as one of an agent's tools; a no stops the agent."""
    years_ago = "It's 2026 now. How many years ago did Anne Toft become harbour master of Vester?"
    handlers = config.get("callbacks", [])
    typed = iter(["yes", "no", "no"])
    shown = []
    llm = Completions(
        rules=[
            (
                "Translate a math problem",
                '```text\n2026 - 1909\n```\n...numexpr.evaluate("2026 - 1909")...\n',
            ),
            (
                TEXTS["toft_years"],
                (
                    " I now know the final answer.\n"
                    "Final Answer: Anne Toft became harbour master of Vester in 1909, 117 years ago."
                ),
            ),
            (TEXTS["toft_page"], " I have to subtract.\nAction: Calculator\nAction Input: 2026 - 1909"),
            (years_ago, " I should look her up.\nAction: wikipedia\nAction Input: Anne Toft"),
            ("Observation: Hello World", " I now know the final answer.\nFinal Answer: Hello World"),
            ("print 'Hello World'", " The terminal does it.\nAction: terminal\nAction Input: echo 'Hello World'"),
            ("list all directories", " I need a listing.\nAction: terminal\nAction Input: ls /private"),
        ]
    )
    shell = {
        "outputs": {
            "echo Hello World!": "Hello World!\n",
            "echo 'Hello World'": "Hello World\n",
            "ls /usr": "bin\nlib\nshare\n",
            "ls /private": "etc\nvar\n",
        }
    }

    def ask_person(_input):
        shown.append(
            "Do you approve of the following input? Anything except 'Y'/'Yes' (case-insensitive) will be treated as a no."
            f"\n\n{_input}\n"
        )
        return next(typed).lower() in {"yes", "y"}

    def _should_check(serialized_obj):
        return serialized_obj.get("name") == "terminal"

    def _approve(_input):
        return _input == "echo 'Hello World'" or ask_person(_input)

    printed = [Shell(**shell).run("echo Hello World!", callbacks=handlers)]
    approved = Shell(**shell, callbacks=[HumanApprovalHandler(approve=ask_person)])
    printed.append(approved.run("ls /usr", callbacks=handlers))
    with pytest.raises(HumanRejectedError):
        approved.run("ls /private", callbacks=handlers)

    math_prompt = PromptTemplate.from_template(
        "Translate a math problem into an expression for Python's numexpr.\n\nQuestion: What is 37 * 6?\n"
        '```text\n37 * 6\n```\n...numexpr.evaluate("37 * 6")...\n```output\n222\n```\nAnswer: 222\n\nQuestion: {question}\n'
    )
    calculator = MathChain(llm_chain=LLMChain(llm=llm, prompt=math_prompt))
    tools = [
        Wikipedia(pages={"Anne Toft": "toft_page"}),
        Tool(
            name="Calculator",
            description="Useful for when you need to answer questions about math.",
            func=calculator.run,
        ),
        Shell(**shell),
    ]
    agent = initialize_agent(tools, llm, agent=AgentType.ZERO_SHOT_REACT_DESCRIPTION)
    callbacks = [HumanApprovalHandler(should_check=_should_check, approve=_approve), *handlers]
    printed.append(agent.run(years_ago, callbacks=callbacks))
    printed.append(agent.run("print 'Hello World' in the terminal", callbacks=callbacks))
    with pytest.raises(HumanRejectedError):
        agent.run("list all directories in /private", callbacks=callbacks)
    return printed, shown


REPORT = (
    *("kelp_report", "kelp_board", "kelp_lines", "kelp_sales", "kelp_note", "kelp_costs", "kelp_thanks"),
    *("kelp_owns", "kelp_owes", "kelp_storm", "kelp_bakers", "kelp_cash", "kelp_audit", "kelp_yard"),
)


@dataclass(frozen=True)
class RerankResult:
    """A text's place in the list that was given, and how relevant it is."""

    index: int
    relevance_score: float


def relevant_segment_extraction():
    """All chunks of a report are ranked by a service; the best runs of neighbours are taken as they stand in it."""
    query = "Nordhav's financial statements"
    relevance = {
        "kelp_sales": 0.97,
        "kelp_owns": 0.95,
        "kelp_costs": 0.94,
        "kelp_owes": 0.93,
        "kelp_cash": 0.92,
        "kelp_audit": 0.9,
        "kelp_note": 0.06,
        "kelp_thanks": 0.05,
        "kelp_yard": 0.04,
        "kelp_report": 0.03,
        "kelp_lines": 0.02,
        "kelp_board": 0.015,
        "kelp_bakers": 0.003,
        "kelp_storm": 0.002,
    }

    def rerank(query, documents):
        """Stand for a service that ranks texts."""
        scores = {TEXTS[name]: score for name, score in relevance.items()}
        results = [RerankResult(place, scores[text]) for place, text in enumerate(documents)]
        return sorted(results, key=lambda one: one.relevance_score, reverse=True)

    def split_into_chunks(text, chunk_size):
        splitter = RecursiveCharacterTextSplitter(chunk_size=chunk_size, chunk_overlap=0, length_function=len)
        return [one.page_content for one in splitter.create_documents([text])]

    def transform(x):
        return float(betainc(0.4, 0.4, x))  # spreads values that lie close to 0 or 1

    def rerank_chunks(run, query, chunks):
        decay_rate = 30
        results = rerank(query, chunks)
        run.retrieved([chunks[one.index] for one in results], source="report")
        similarity_scores, chunk_values = [0.0] * len(chunks), [0.0] * len(chunks)
        for place, one in enumerate(results):
            similarity_scores[one.index] = transform(one.relevance_score)
            chunk_values[one.index] = float(np.exp(-place / decay_rate)) * similarity_scores[one.index]
        return similarity_scores, chunk_values

    def get_best_segments(relevance_values, max_length, overall_max_length, minimum_value):
        best_segments, scores, total_length = [], [], 0
        count = len(relevance_values)
        while total_length < overall_max_length:
            candidates = [
                (sum(relevance_values[start:end]), -start, -end)
                for start in range(count)
                for end in range(start + 1, min(start + max_length, count) + 1)
                if relevance_values[start] >= 0
                and relevance_values[end - 1] >= 0
                and not any(start < seg_end and end > seg_start for seg_start, seg_end in best_segments)
                and total_length + end - start <= overall_max_length
            ]
            if not candidates or max(candidates)[0] < minimum_value:
                break
            value, start, end = max(candidates)
            best_segments.append((-start, -end))
            scores.append(value)
            total_length += start - end
        return best_segments, scores

    chunks = split_into_chunks("\n\n".join(TEXTS[name] for name in REPORT), chunk_size=100)

    def ask(recorder):
        with recorder.start(query=query) as run:
            _, chunk_values = rerank_chunks(run, query, chunks)
            irrelevant_chunk_penalty = 0.2
            relevance_values = [value - irrelevant_chunk_penalty for value in chunk_values]
            best_segments, scores = get_best_segments(
                relevance_values, max_length=6, overall_max_length=9, minimum_value=0.7
            )
            run.reranked(
                [chunk for start, end in best_segments for chunk in chunks[start:end]],
                model="rerank-english-v3.0",
            )
        return best_segments, scores, ["\n".join(chunks[start:end]) for start, end in best_segments]

    return ask


class BusinessInformation(BaseModel):
    """What a business tells of itself."""

    legal_name: str | None = Field(default="Info not yet provided", description="The legal name")
    primary_products_or_services: str | None = Field(default="Info not yet provided", description="What it sells")
    industries: str | None = Field(default="Info not yet provided", description="In which industries it works")
    projected_revenue: str | None = Field(default="Info not yet provided", description="Revenue of the next year")


class ToUnderwritingAssistant(BaseModel):
    """Transfer work to the underwriting assistant."""

    request: str = Field(description="What the underwriting assistant should know before proceeding.")


class FinalClassificationsInfo(BaseModel):
    """A category that describes the business, and its code."""

    category: str
    classification_description: str
    code: int


class ToQuoteAssistant(BaseModel):
    """Transfer work to the quote assistant."""

    request: str = Field(description="What the quote assistant should know before proceeding.")
    final_classifications: list[FinalClassificationsInfo]


class CompleteOrEscalate(BaseModel):
    """Mark the task as completed, or give control back to the main assistant."""

    cancel: bool = True
    reason: str


class CategoryRationale(BaseModel):
    """A category and why it fits."""

    category: str
    cat_description: str
    code: int
    rate: float
    rationalization: str


class CategoriesOutput(BaseModel):
    """Categories with their rationale."""

    categories: list[CategoryRationale]


class DescriptionGrade(BaseModel):
    """A category and the grade of how well it fits."""

    category: str
    cat_description: str
    code: int
    grade: float


class DescriptionGradeSchema(BaseModel):
    """Categories with their grades."""

    description_grades: list[DescriptionGrade]


def pushed_or_popped(left: list[str], right: str | list[str] | None) -> list[str]:
    """Push an assistant's name once, or take the last one away."""
    if not right:
        return left
    if right == "pop":
        return left[:-1]
    return left + [one for one in (right if isinstance(right, list) else [right]) if one not in left]


class MainState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    business_information: dict[str, Any]
    workflow_state: Annotated[list[str], pushed_or_popped]


class RAGState(TypedDict):
    description: str
    documents: list[str]
    rationale: Any
    graded_categories: list[Any]


class ExtraState(TypedDict):
    tool_call_id: str
    final_classifications: Any


class Assistant:
    """A node that asks a model until it says something."""

    def __init__(self, runnable):
        self.runnable = runnable

    def __call__(self, state: MainState, config: RunnableConfig):
        given = {
            "messages": state["messages"],
            "business_information": state.get("business_information"),
        }
        while True:
            result = self.runnable.invoke(given)
            if result.tool_calls or result.content:
                return {"messages": result}
            given["messages"] = [*given["messages"], ("user", "Respond with a real output.")]


def handle_tool_error(state):
    error = state.get("error")
    return {
        "messages": [
            ToolMessage(content=f"Error: {error!r}\n please fix your mistakes.", tool_call_id=one["id"])
            for one in state["messages"][-1].tool_calls
        ]
    }


def tool_node(tools):
    return ToolNode(tools).with_fallbacks([RunnableLambda(handle_tool_error)], exception_key="error")


def contextual_quoting(config):
    """Assistants gather what a business does, find its trades, ask back, and quote a premium; each message is a turn."""
    told = (
        "We are Toft & Daughters. We mend wooden boats on our slipway, and teach children to sail. "
        "We expect 400,000 dollars of revenue."
    )
    confirmed = "Yes, both: the hulls are ours to mend, and the pupils sail in open boats."
    description = "- Mends hulls made of wood.\n- Gives lessons on the water in summer."
    business = {
        "legal_name": "Toft & Daughters",
        "primary_products_or_services": "mending of wooden boats, teaching children to sail",
        "industries": "boats",
        "projected_revenue": "400000",
    }
    hulls = {
        "category": "BOATS",
        "cat_description": "Hulls of wood--Repair on the owner's own slipway.",
        "code": 41020,
    }
    sailing = {
        "category": "EDUCATION",
        "cat_description": "Schools--Sailing and rowing in open boats.",
        "code": 67513,
    }
    classified = [
        {
            "category": one["category"],
            "classification_description": one["cat_description"],
            "code": one["code"],
        }
        for one in (hulls, sailing)
    ]
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute(
        "CREATE TABLE category_rates (id INTEGER PRIMARY KEY, category TEXT NOT NULL, rate REAL NOT NULL)"
    )
    database.executemany(
        "INSERT INTO category_rates (category, rate) VALUES (?, ?)",
        [("BOATS", 2.35), ("EDUCATION", 9.63), ("RETAIL", 5.80), ("FOOD", 2.85)],
    )

    def main_reply(messages):
        last = messages[-1].content
        if last.startswith("Resuming dialog"):
            return "Your yearly premium comes to $2,396: a fifth of it for boats, the rest for lessons."
        if last == told:
            return calls("info_tool", business_info=business)
        if last == "Looks good.":
            return calls("ToUnderwritingAssistant", request="Toft & Daughters want to be insured.")
        return "Toft & Daughters: boats mended, children taught, $400,000 expected. Is that right?"

    def underwriting_reply(messages):
        if messages[-1].content == confirmed:
            return calls("ToQuoteAssistant", request="Both are confirmed.", final_classifications=classified)
        return "Do you mend those hulls on a slipway of your own, and do pupils go out in open boats?"

    def quote_reply(messages):
        if "Total Annual Premium" in messages[-1].content:
            return calls("CompleteOrEscalate", cancel=True, reason="The premium is known.")
        return calls("fetch_rates", categories=["BOATS", "EDUCATION"], projected_revenue=400000.0)

    llm = Replies(
        rules=[
            ("Extract the operations of a business", description),
            (
                "Give reasons for the categories",
                calls(
                    "CategoriesOutput",
                    categories=[
                        {**hulls, "rate": 2.35, "rationalization": "The firm repairs vessels."},
                        {**sailing, "rate": 9.63, "rationalization": "The firm instructs beginners."},
                    ],
                ),
            ),
            (
                "Grade how well each category",
                calls(
                    "DescriptionGradeSchema",
                    description_grades=[{**hulls, "grade": 0.9}, {**sailing, "grade": 0.8}],
                ),
            ),
            ("You provide a quote", quote_reply),
            ("You evaluate a prospect", underwriting_reply),
            ("You guide a user through the quoting process", main_reply),
        ]
    )
    names = ("trade_smoke", "trade_hulls", "trade_engines", "trade_dance", "trade_sailing", "trade_sweets")
    text_splitter = RecursiveCharacterTextSplitter(
        chunk_size=150, chunk_overlap=0, separators=["\n"], length_function=len
    )
    splits = text_splitter.split_documents([Document(page_content="\n".join(TEXTS[name] for name in names))])
    embeddings = Directions({description: ("trade_hulls", "trade_sailing", "trade_engines", "trade_dance")})
    retriever = InMemoryVectorStore.from_documents(splits, embeddings).as_retriever(search_kwargs={"k": 4})

    @tool
    def info_tool(business_info: BusinessInformation) -> dict:
        """Process and store business information."""
        return {"business_information": business_info.model_dump()}

    @tool
    def fetch_rates(categories: list[str], projected_revenue: float) -> str:
        """Fetch the rates of categories, and compute premiums for parts of the revenue."""
        message_parts = ["Here is the quote that was asked for:\n", "Breakdown:"]
        total_premium = 0.0
        for one in categories:
            row = database.execute("SELECT rate FROM category_rates WHERE category = ?", (one,)).fetchone()
            if not row:
                message_parts.append(f"\nWarning: no rate of category: {one}")
                continue
            portion = projected_revenue / len(categories)
            computed = portion / 1000 * row[0]
            total_premium += computed
            message_parts.append(
                f"\nCategory: {one}\n  - Rate: ${row[0]:.2f} per $1,000\n"
                f"  - Portion of Projected Revenue: ${portion:,.2f}\n  - Computed Premium: ${computed:,.2f}"
            )
        message_parts.append(f"\n\nTotal Annual Premium: ${total_premium:,.2f}")
        return "\n".join(message_parts)

    def assistant(system, tools):
        prompt = ChatPromptTemplate.from_messages(
            [
                ("system", f"{system}\nCurrent business information:\n{{business_information}}"),
                ("placeholder", "{messages}"),
            ]
        )
        return Assistant(prompt | llm.bind_tools(tools))

    def agent(system):
        return ChatPromptTemplate.from_messages([("system", system)])

    retriever_runnable = (
        agent(
            "Extract the operations of a business, as bullet points.\n\nBusiness information:\n{business_information}"
        )
        | llm
        | StrOutputParser()
    )
    reasoning_runnable = agent(
        "Give reasons for the categories of what a business does; say which are relevant.\n"
        "Business description:\n{description}\nCategories:\n{documents}\n"
    ) | llm.with_structured_output(CategoriesOutput)
    classification_grading_runnable = agent(
        "Grade how well each category fits the business.\nBusiness description:\n{description}\n"
        "Categories and reasons:\n{cat_and_rat}\n"
    ) | llm.with_structured_output(DescriptionGradeSchema)

    def retrieve(state: MainState):
        made = retriever_runnable.invoke({"business_information": state["business_information"]})
        return {"description": made, "documents": retriever.invoke(made)}

    def reasoning(rag_state: RAGState):
        given = {"description": rag_state["description"], "documents": rag_state["documents"]}
        return {"rationale": reasoning_runnable.invoke(given)}

    def classification_grading(rag_state: RAGState):
        cat_and_rat = "\n\n".join(
            f"Category: {one.category}\nDescription: {one.cat_description}\nCode: {one.code}\nRationale: {one.rationalization}\n"
            for one in rag_state["rationale"].categories
        )
        graded = classification_grading_runnable.invoke(
            {"description": rag_state["description"], "cat_and_rat": cat_and_rat}
        )
        return {"graded_categories": graded.description_grades}

    def called(state):
        return state["messages"][-1].tool_calls

    def route_main_assistant(state: MainState):
        if tools_condition(state) == END:
            return END
        is_handed_on = called(state)[0]["name"] == "ToUnderwritingAssistant"
        return "pass_tool_call_id" if is_handed_on else "main_assistant_tools"

    def route_underwriting_assistant(state: MainState):
        if tools_condition(state) == END:
            return END
        if called(state)[0]["name"] == "ToQuoteAssistant":
            return "update_workflow_state"
        raise ValueError("invalid route")

    def route_quote_assistant(state: MainState):
        if tools_condition(state) == END:
            return END
        if any(one["name"] == "CompleteOrEscalate" for one in called(state)):
            return "reroute"
        return "quote_assistant_tools"

    def create_entry_node_quote(assistant_name: str, new_workflow_state: str) -> Callable:
        def entry_node(state: MainState):
            call = called(state)[0]
            final_classifications = call["args"]["final_classifications"]
            content = (
                f"The assistant is now {assistant_name}. Provide a quote from the final classifications of the business: "
                f"{final_classifications}. Do not mention who you are."
            )
            return {
                "messages": [ToolMessage(content=content, tool_call_id=call["id"])],
                "business_information": {
                    **state.get("business_information", {}),
                    "final_classifications": final_classifications,
                },
                "workflow_state": new_workflow_state,
            }

        return entry_node

    def route_to_workflow(state: MainState):
        return state.get("workflow_state") or "main_assistant"

    def reroute(state: MainState):
        messages = [
            ToolMessage(content="Resuming dialog with the main assistant.", tool_call_id=one["id"])
            for one in called(state)[:1]
        ]
        return {"workflow_state": "pop", "messages": messages}

    def update_workflow_state(state: MainState):
        return {"workflow_state": "pop"}

    def pass_tool_call_id(state: MainState):
        return {"tool_call_id": called(state)[0]["id"]}

    def pass_final_classifications(rag_state: RAGState):
        return {"final_classifications": rag_state["graded_categories"]}

    def create_tool_message(extra_state: ExtraState):
        content = (
            "Take the role of the main underwriter. These categories have been found to be most relevant to the business: "
            f"{extra_state['final_classifications']}. KEEP THE GRADES PRIVATE. Ask the user follow-up questions to confirm them."
        )
        return {
            "messages": [ToolMessage(content=content, tool_call_id=extra_state["tool_call_id"])],
            "workflow_state": "underwriting_assistant",
        }

    def update_state(state: MainState):
        last = next(one for one in reversed(state["messages"]) if one.type == "tool")
        try:
            business_info = json.loads(last.content).get("business_information", {})
        except json.JSONDecodeError:
            business_info = state.get("business_information", {})
        return {"messages": state["messages"], "business_information": business_info}

    graph = StateGraph(MainState)
    graph.add_node(
        "main_assistant",
        assistant(
            "You guide a user through the quoting process. Store what they tell with info_tool; sum it up for them; then call "
            "ToUnderwritingAssistant. Call one tool at a time.",
            [info_tool, ToUnderwritingAssistant],
        ),
    )
    graph.add_node("main_assistant_tools", tool_node([info_tool]))
    graph.add_node(
        "underwriting_assistant",
        assistant(
            "You evaluate a prospect as the principal underwriter. Call ToQuoteAssistant once all categories are confirmed.",
            [ToQuoteAssistant],
        ),
    )
    graph.add_node(
        "quote_assistant",
        assistant(
            "You provide a quote from the classifications. Call fetch_rates once, then CompleteOrEscalate.",
            [fetch_rates, CompleteOrEscalate],
        ),
    )
    graph.add_node("quote_assistant_tools", tool_node([fetch_rates]))
    graph.add_node("entry_quote_assistant", create_entry_node_quote("Main Quote Assistant", "quote_assistant"))
    for node in (
        *(retrieve, reasoning, classification_grading, update_state, reroute, pass_tool_call_id),
        *(pass_final_classifications, create_tool_message, update_workflow_state),
    ):
        graph.add_node(node.__name__, node)
    graph.set_conditional_entry_point(
        route_to_workflow, ["main_assistant", "underwriting_assistant", "quote_assistant"]
    )
    graph.add_conditional_edges(
        "main_assistant", route_main_assistant, ["main_assistant_tools", "pass_tool_call_id", END]
    )
    graph.add_conditional_edges(
        "underwriting_assistant", route_underwriting_assistant, ["reroute", "update_workflow_state", END]
    )
    graph.add_conditional_edges("quote_assistant", route_quote_assistant, ["quote_assistant_tools", "reroute", END])
    for source, target in (
        ("update_workflow_state", "entry_quote_assistant"),
        ("pass_tool_call_id", "retrieve"),
        ("retrieve", "reasoning"),
        ("reasoning", "classification_grading"),
        ("classification_grading", "pass_final_classifications"),
        ("pass_final_classifications", "create_tool_message"),
        ("create_tool_message", "underwriting_assistant"),
        ("main_assistant_tools", "update_state"),
        ("update_state", "main_assistant"),
        ("reroute", "main_assistant"),
        ("entry_quote_assistant", "quote_assistant"),
        ("quote_assistant_tools", "quote_assistant"),
    ):
        graph.add_edge(source, target)
    final_graph = graph.compile(checkpointer=InMemorySaver())
    config = {**config, "configurable": {"user_id": "1", "thread_id": "quote"}}
    answers = []
    for question in (told, "Looks good.", confirmed, "/exit"):
        if question == "/exit":
            break
        last: dict[str, Any] = {}
        for event in final_graph.stream({"messages": ("user", question)}, config=config, stream_mode="values"):
            last = event
        assert not final_graph.get_state(config).next
        answers.append(last["messages"][-1].content)
    return answers


class WebsiteInterface(ABC):
    """A site of car dealers."""

    base_url = ""
    url = ""

    @abstractmethod
    async def crawl(self) -> list[dict[str, str]]: ...

    @abstractmethod
    def get_filters_info(self) -> str: ...

    @abstractmethod
    def set_filters_from_llm_response(self, llm_response: str) -> None: ...


class AutotraderInterface(WebsiteInterface):
    """A site whose listings are read from its pages."""

    base_url = "https://cars.example/cars-for-sale/all-cars"
    pages: tuple[tuple[str, ...], ...] = (
        ("7001", "Used 1996 Fiat Panda 4x4", "88,400 mi.", "2,750", "Brix Motors of Aabo"),
        ("7002", "Used 1994 Lada Niva", "143,200 mi.", "2,100", "Garage at the Dune"),
        ("7003", "Used 1999 Suzuki Jimny", "120,900 mi.", "2,990", "Ferry Cars"),
    )

    async def crawl(self):
        assert self.url
        site = re.sub(r"^(https?://[^/]+).*$", r"\1", self.base_url)
        return [
            {
                "id": f"{type(self).__name__}_{number}",
                "title": title,
                "mileage": mileage,
                "price": price,
                "dealer": dealer,
                "url": f"{site}/vehicle/{number}",
            }
            for number, title, mileage, price, dealer in self.pages
        ]

    def get_filters_info(self):
        return (
            f"You translate a person's wishes into a URL with query parameters.\nThe base URL is: {self.base_url}\nFilters:\n"
            "- startYear: least year of the car.\n- driveGroup: one of AWD4WD, FWD, RWD.\n- listingType: NEW or USED.\n"
            f"Example: {self.base_url}/cars-under-10000?startYear=2010&driveGroup=FWD\nReply with the URL only."
        )

    def set_filters_from_llm_response(self, llm_response):
        if not llm_response.startswith(self.base_url):
            raise ValueError(f"invalid URL: {llm_response}")
        self.url = llm_response.strip()


class CarState(TypedDict):
    user_needs: Any
    web_interfaces: list[WebsiteInterface]
    listings: list[dict[str, str]]
    selected_listing: dict[str, str]
    additional_info: dict[str, str]
    user_input: str
    next_node: str
    messages: list


def car_buyer_agent(config):
    """A person is asked for their needs until a site can be searched; they pick a listing, and a model tells more of it."""
    typed = iter(
        [
            "I look for a small car that gets up the dune road of Vester in winter.",
            "At most 3,000, and it has to tow a boat.",
            "Tell me more about the second one.",
        ]
    )
    printed = []
    details = "Its engine has 1.7 litres and lasts long; gears whine, sills rust. It is worth about that sum."

    def talk(messages):
        last = messages[-1].content
        if last.startswith("Summarize"):
            if any("tow a boat" in one.content for one in messages):
                return "A cheap little all-wheel drive with a hook for a trailer.\n\n\nbuild_filters"
            return "A little all-wheel drive for snow.\n\n\nask_user_needs"
        if last.startswith("Ask the user"):
            return "How much may it cost, and what has it to carry?"
        return "Good day, I help to find cars. What do you need one for?"

    llm = Replies(
        rules=[
            ("Provide additional information about this car", details),
            ("select_listing LISTING_ID", "select_listing 7002"),
            (
                "You translate a person's wishes",
                f"{AutotraderInterface.base_url}/cars-under-3000?driveGroup=AWD4WD&listingType=USED",
            ),
            ("", talk),
        ]
    )

    def typed_after(prompt):
        printed.append(prompt)
        return next(typed)

    def ask_user_needs(state: CarState):
        messages = state.get("messages", [])
        system_message = (
            "Ask the user for more that can narrow down the search. Answer their questions first."
            if messages
            else "You are a car buying assistant. Introduce yourself, and ask for use, budget, size and features."
        )
        if state.get("user_needs"):
            system_message += f" Here is what we know of their needs so far:\n\n{state['user_needs']}"
        messages.append(SystemMessage(system_message))
        response = llm.invoke(messages).content
        messages += [AIMessage(response), HumanMessage(typed_after(response))]
        messages.append(
            SystemMessage(
                "Summarize the user's needs in one sentence, as the first line. Then skip two lines, and write "
                "'ask_user_needs' if you need more, or 'build_filters' if you can search for cars. Nothing else."
            )
        )
        response = llm.invoke(messages).content
        messages.append(AIMessage(response))
        lines = response.split("\n")
        state["user_needs"] = lines[0].strip()
        state["next_node"] = lines[-1].strip() if len(lines) > 1 else "build_filters"
        printed.append(f"I have summarized your needs as follows:\n{state['user_needs']}")
        return state

    def build_filters(state: CarState):
        for interface in state["web_interfaces"]:
            prompt = f"{interface.get_filters_info()}\n\nUser needs:\n{state['user_needs']}"
            try:
                interface.set_filters_from_llm_response(llm.invoke([SystemMessage(prompt)]).content.strip())
                printed.append(f"Updated URL: {interface.url}")
            except ValueError as error:
                printed.append(f"Failed to set filters for {interface.base_url}: {error}")
        return state

    async def fetch_listings_from_sources(web_interfaces):
        return [listing for interface in web_interfaces for listing in await interface.crawl()]

    def search_listings(state: CarState):
        state["listings"] = asyncio.run(fetch_listings_from_sources(state["web_interfaces"]))
        ai_message = "Here are recent listings that match your requirements:\n"
        for place, listing in enumerate(state["listings"][:5], 1):
            fields = "".join(
                f"   {key.replace('_', ' ').capitalize()}: {value}\n" for key, value in listing.items()
            )
            ai_message += f"{place}.\n{fields}\n"
        user_prompt = "Would you like to view more details about a listing, or refine your search?"
        printed.append(ai_message + user_prompt)
        state["messages"] += [AIMessage(ai_message + user_prompt), HumanMessage(typed_after(user_prompt))]
        state["messages"].append(
            SystemMessage(
                "Provide the next step from the user's response: 'select_listing LISTING_ID', 'refine_search' or "
                "'end_conversation'."
            )
        )
        response = llm.invoke(state["messages"]).content
        state["messages"].append(AIMessage(response))
        if "select" in response.lower():
            state["next_node"] = "fetch_additional_info"
            chosen = response.split()[1].strip()
            state["selected_listing"] = next(one for one in state["listings"][:5] if chosen in one["id"])
        else:
            state["next_node"] = "ask_user_needs" if "refine" in response.lower() else END
        return state

    def fetch_additional_info(state: CarState):
        listing = state["selected_listing"]
        prompt = SystemMessage(
            f"Provide additional information about this car: {listing['title']}, "
            "with its engine, common issues of the model, and its market value."
        )
        listing["additional_info"] = llm.invoke([prompt]).content
        printed.append(f"Here is additional information about the selected car:\n{listing['additional_info']}\n")
        state["next_node"] = END
        return state

    def next_node(state: CarState):
        return state["next_node"]

    workflow = StateGraph(CarState)
    for node in (ask_user_needs, build_filters, search_listings, fetch_additional_info):
        workflow.add_node(node.__name__, node)
    workflow.add_conditional_edges("ask_user_needs", next_node, ["build_filters", "ask_user_needs"])
    workflow.add_edge("build_filters", "search_listings")
    workflow.add_conditional_edges("search_listings", next_node, ["fetch_additional_info", "ask_user_needs", END])
    workflow.set_entry_point("ask_user_needs")
    workflow.add_conditional_edges("fetch_additional_info", next_node, ["ask_user_needs", END])
    app = workflow.compile()
    result = app.invoke(
        CarState(
            user_needs={},
            web_interfaces=[AutotraderInterface()],
            listings=[],
            selected_listing={},
            additional_info={},
            user_input="",
            next_node="",
            messages=[],
        ),
        config,
    )
    listing = result["selected_listing"]
    printed.append(f"Final Recommendation:\n{listing['title']} - {listing['price']} - {listing['mileage']} km")
    return listing["additional_info"], printed


WITH_HANDLER = {
    "human-approval-tools": human_approval_tools,
    "contextual-quoting": contextual_quoting,
    "car-buyer-agent": car_buyer_agent,
}
IN_BLOCK = {"relevant-segment-extraction": relevant_segment_extraction}  # what is returned is asked in a block
