"""Texts beside passages: what a tool said, contexts in one text, and texts that no prompt shows."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder
from ragtrace.model import Message, content_id
from tests.kept import Keeper

OSLO = 'The "lab" is in Oslo,\nsays the Straße.'
ORDER = "Order 7 was shipped on May 4."
ANSWER = "In Oslo, shipped on May 4."


def recorded(report, prompt, answer=ANSWER):
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        report(run)
        run.add_prompt(prompt)
        run.generated(inputs=[Message(role="user", content=prompt)])
        run.answered(answer)
    return keeper.runs[0]


def ids(run, stage):
    return [passage.id for passage in run.record.pool(stage)]


@pytest.mark.parametrize("kind", ["tool_output", "context_text"])
def test_a_text_in_the_prompt_counts_without_a_rank(kind):
    run = recorded(lambda run: run.add_text(OSLO, source="search", kind=kind), f"Read:\n{OSLO}\nWhere?")
    (text,) = run.record.unranked_contexts
    assert (text.id, text.source, dict(text.metadata)) == (content_id(OSLO), "search", {"kind": kind})
    assert (run.record.contexts, run.prompt_ids) == ((text,), (content_id(OSLO),))
    assert (run.record.pools, run.record.k, run.record.selection_source) == ((), None, None)


@pytest.mark.parametrize(("kind", "counts"), [("tool_output", True), ("context_text", False)])
def test_beside_passages_only_tools_count_and_no_ranking_changes(kind, counts):
    def report(run):
        run.add_text(ORDER, source="orders", kind=kind)
        run.retrieved([{"id": "a", "text": OSLO}, {"id": "b", "text": "Not shown at all."}])

    run = recorded(report, f"{ORDER}\n{OSLO}")
    texts = [content_id(ORDER)] * counts
    assert (ids(run, "retrieved"), ids(run, "used"), run.record.k) == (["a", "b"], ["a"], None)
    assert [one.id for one in run.record.unranked_contexts] == texts
    assert run.prompt_ids == ("a", *texts)


def test_the_text_of_a_search_is_its_passages():
    def report(run):
        run.retrieved([{"id": "a", "text": OSLO}])
        run.add_text(f"Found:\n{OSLO}", source="search")

    run = recorded(report, f"Found:\n{OSLO}")
    assert (ids(run, "used"), run.record.unranked_contexts) == (["a"], ())


def test_what_the_application_says_was_used_stays():
    def report(run):
        run.add_text(ORDER)
        run.used([{"id": "a", "text": OSLO}])

    run = recorded(report, f"{ORDER}\n{OSLO}")
    assert (ids(run, "used"), run.record.unranked_contexts) == (["a"], ())


UNREAD = {
    "a tool's text that is cut away": (lambda run: run.add_text(ORDER), "Where?", ANSWER, 1),
    "no context": (lambda run: None, "You are helpful. Where?", ANSWER, 0),
    "no answer": (lambda run: run.add_text(ORDER), "Where?", "", 0),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_text_that_no_prompt_shows_is_told(name):
    report, prompt, answer, unread = UNREAD[name]
    assert [sign.name for sign in recorded(report, prompt, answer).record.signs] == ["evidence_unread"] * unread


def test_selections_that_the_application_names_add_up():
    def report(run):
        run.retrieved([{"id": name, "text": f"Text {name}."} for name in "abc"])
        run.add_selected([{"id": "c", "text": "Text c."}])
        run.selected([{"id": "a", "text": "Text a."}], selection_source="chain")
        run.add_selected([{"id": "c", "text": "Text c."}, {"id": "b", "text": "Text b."}])

    run = recorded(report, "Text c. Text b.")
    assert [(p.id, p.rank) for p in run.record.pool("reranked")] == [("c", 1), ("b", 2)]
    assert run.record.selection_source == "explicit"
