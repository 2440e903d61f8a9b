"""Public applications are read as a person reads them, or are wrong in the ways that are held here.

Where one that is wrong carries the sign that names what is wrong, a line may settle it, see `declared.py`.
"""

from __future__ import annotations

import pytest

from ragtrace.capture import internal_errors
from tests.public.declared import DECLARED
from tests.public.measure import EXPECTED, measured

# The facts that are wrong, and why.
SIGNED = {
    "research-assistant-template": ("pool prompt", "pages in a text that a step of its own writes"),
    "python-agents-hitl": ("pool prompt", "a receipt counts as a tool's text"),
    "agent-workflow-multi": ("pool prompt", "receipts count as tools' texts"),
    "long-term-memory-agent": ("pool prompt", "a tool's text stands behind passages, and not in the pool"),
    "agents-as-tools": ("pool prompt", "a part of a sub-agent's reply counts as a tool's text"),
    "local-deep-researcher": ("pool prompt", "pages that a node writes into one text"),
    "retrieval-feedback-loop": ("runs", "a check that is given the answer is a run that follows"),
    "code-assistant": ("pool prompt", "documentation that a program writes into its prompt is text of the prompt"),
    "news-tldr": ("question", "the question has a name of its own, and searches are asked otherwise"),
    "database-discovery-fleet": ("pool", "a schema that led to a plan stands in no prompt of the answer"),
    "jsonalyze-workflow": ("pool prompt", "rows of a database are text of the prompt"),
    "company-researcher": ("question", "the question has a name of its own, and searches are asked otherwise"),
    "rewrite-retrieve-read": ("pool prompt", "a function searches and gives a text"),
    "career-assistant": ("answer", "the answer is in a file, and the state has its path"),
    "multi-agent-collaboration": ("prompt", "the order of two tools' texts in the prompt"),
    "human-approval-tools": ("pool prompt", "a figure and a refusal of a person count as tools' texts"),
    "contextual-quoting": ("pool prompt", "hand-offs count as tools' texts"),
    "return-direct-agent": ("pool prompt", "receipts count as tools' texts"),
    "mistral-arxiv-agent": (
        "pool prompt",
        "a fetched paper is a tool's text beside the pool, and a receipt counts",
    ),
    "trading-agents": ("runs", "a reflection before the graph is a run that follows"),
    "research-assistant-workflow": ("pool", "extracted pages are tools' texts beside the pool"),
    "executive-ai-assistant": ("runs", "graphs that learn from a person's changes are runs"),
    "notebookllama": ("runs", "a mind map and a check are runs"),
}
SILENT = {
    "advanced-text-to-sql": ("pool", "an index of tables is a search whose schemas are no passages to be graded"),
    "structured-refine": (
        "prompt",
        "a text whose reply was dropped stands in the pool and in no prompt of the answer",
    ),
    "email-assistant-hitl": (
        "pool prompt question",
        "the question is in a mail, and receipts count as tools' texts",
    ),
    "customer-support-bot": ("pool prompt", "a booking that a node writes into the state is text of the prompt"),
    "gpt-researcher-team": ("prompt", "an outline leads back to pages that made no sentence of the answer"),
    "sql-research-assistant": ("pool prompt", "rows of a database are text of the prompt"),
    "hitl-patterns": ("runs", "a workflow that nothing is asked of is no run"),
    "data-enrichment": (
        "pool prompt question tools",
        "pages that a tool writes into the prompt of a model of its own",
    ),
    "reflection-workflow": ("runs", "a text from which a workflow extracts asks nothing"),
    "open-deep-research-legacy": ("pool prompt", "pages that a function writes into one text"),
    "dartboard": ("pool", "an index that holds a text several times finds it once"),
    "eu-green-faq": ("chosen", "a chunk that two searches found is chosen once"),
    "extraction-retries": ("runs", "a form that a call filled in is no answer, and two runs are read"),
    "car-buyer-agent": ("answer pool", "what a program types into a message of its own is text of the prompt"),
    "open-deep-research": ("pool prompt tools", "a call that a program carries out itself is no tool's"),
    "recursive-retriever-agents": ("pool prompt", "the reply of an agent that an engine found is a passage"),
    "hf-advanced-rag": ("prompt", "a model that the framework does not know has no prompt"),
    "deep-agents-from-scratch": (
        "answer pool prompt",
        "the report stands beside a call, and the last message is empty",
    ),
    "contextual-rag": ("chosen", "a choice that a plain function makes without a mark"),
    "hf-knowledge-graph-rag": (
        "pool prompt replies",
        "rows of a graph, and a model that is called without the handler",
    ),
    "nvidia-hitl-multi-agents": ("answer tools", "a call that a program carries out itself is no tool's"),
    "garay-virtual-assistant": ("answer prompt", "the rewritten question is read as the answer"),
    "all-in-rag-recipes": ("prompt", "pieces that were not chosen stand in the whole recipes of the prompt"),
}
# Of what is declared: wrong still, and why.
UNSETTLED = {
    "long-term-memory-agent": "a tool's text is never in the pool",
    "email-assistant-hitl": "a part of the mail; schedule_meeting: False is not kept to",
    "customer-support-bot": "no tool of that name is called: a node calls it",
    "local-deep-researcher": "the state at the end has no such field",
    "code-assistant": "no line found yet",
    "database-discovery-fleet": "the schema stands in no prompt of the answer",
    "open-deep-research-legacy": "the state at the end has no such field",
    "human-approval-tools": "the figure is no passage of the pool for a person",
    "sql-research-assistant": "rows in a chain's own field have no place in the state",
    "data-enrichment": "text of a prompt inside a tool",
    "car-buyer-agent": "the answer is the last message",
    "open-deep-research": "tools without an event: False is not kept to",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_application_is_read_as_a_person_reads_it(name):
    before = internal_errors()
    found = measured(name)
    held = "signed" if name in SIGNED else "silent" if name in SILENT else "right"
    facts, _ = (SIGNED | SILENT).get(name, ("", ""))
    assert (found.kind, " ".join(sorted(found.wrong))) == (held, facts)
    # Of a tool that another handler stopped before it began LangChain tells nothing more: the sweep ends that run.
    assert (found.kept.recorder.open_runs, internal_errors()) == (name == "human-approval-tools", before)


def test_no_application_is_held_twice_or_is_unknown():
    assert not SIGNED.keys() & SILENT.keys()
    assert SIGNED.keys() | SILENT.keys() <= EXPECTED.keys()
    assert UNSETTLED.keys() <= DECLARED.keys() <= SIGNED.keys() | SILENT.keys()


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_settles_what_is_wrong(name):
    assert (measured(name, **DECLARED[name]).kind == "right") == (name not in UNSETTLED)
