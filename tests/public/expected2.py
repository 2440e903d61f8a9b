"""What a person says of each application of the third draw; written before any of them ran with ragtrace.

The reasons of `expected.py` hold here too. Further ones:

- Who writes a mail asks with its text, not with its subject or sender.
- A mail that is sent and a meeting that is put into a calendar are acts of tools: they are no evidence, and no answer.
- A run that goes on after a wait still has what its state holds: what was found for its question before the wait.
- In a run that waits, what stood in the last prompt counts as what stood in the prompt.
- A booking is one row, in whatever notation a prompt shows it.
- What an agent in a tool replies is no evidence; what that agent found is.
- An outline takes only headings from a first search. The report rests on what was found for its sections.
- A page of which a filter keeps a part is that page, and it was chosen. A page of which it keeps nothing was found only.
- A text that a model distils from passages is no passage. The answer goes back through it to the passages.
- A walk that goes from one passage that was chosen to another chooses nothing itself.
- The pages behind pieces or made-up questions were found, not the pieces or the questions.
- Neighbours that plain code puts around a piece were not found.
"""

from __future__ import annotations

from tests.public.kit import Said

MAIL = "Could our club have the boathouse on 16 May, to paint the boats?"
CANCEL = "Am I allowed to cancel it? If so, please do."
HORN = "What does the horn do in fog?"
SHOP = "How much was my most recent purchase? And which albums do you have by U2?"

EXPECTED: dict[str, tuple[Said, ...]] = {
    "context-window-enrichment": (
        Said(question=HORN, answer="", pool=("#fog_1",), replies=0),  # the baseline, outside the block
        Said(question=HORN, answer="", pool=("#fog_1",), replies=0),
    ),
    "email-assistant-hitl": (
        Said(
            question=MAIL,
            answer="",
            outcome="interrupted",
            pool=("#calendar",),
            prompt=("#calendar",),
            replies=3,  # the sorting, the calendar's call, the meeting's call
            tools=frozenset({"check_calendar_availability"}),
        ),
        Said(
            question=MAIL,
            answer="",
            outcome="interrupted",
            pool=("#calendar",),
            prompt=("#calendar",),
            replies=1,
            tools=frozenset({"schedule_meeting"}),
        ),
        Said(
            question=MAIL,
            answer="",  # the last reply calls Done
            pool=("#calendar",),
            prompt=("#calendar",),
            replies=1,
            tools=frozenset({"write_email"}),
        ),
    ),
    "customer-support-bot": (
        Said(
            question="Hi there, what time is my ferry?",
            answer="It leaves on 18 May at half past six in the morning.",
            pool=("#booking",),
            prompt=("#booking",),
            replies=1,
            tools=frozenset({"fetch_user_ferry_information"}),
            tokens=110,
        ),
        Said(
            question=CANCEL,
            answer="",
            outcome="interrupted",
            pool=("#booking", "#policy"),
            prompt=("#booking", "#policy"),
            replies=2,
            tools=frozenset({"fetch_user_ferry_information", "lookup_policy"}),
            tokens=220,
        ),
        Said(
            question=CANCEL,
            answer="Done: it is cancelled, and you get half of the money back.",
            pool=("#booking", "#policy"),
            prompt=("#booking", "#policy"),
            replies=1,
            tools=frozenset({"cancel_ticket"}),
            tokens=110,
        ),
    ),
    "gpt-researcher-team": (
        Said(
            question="Is Lake Ilm going to freeze over again?",
            answer=(
                "# The ice of Lake Ilm\n#### Date: 2 May\n\n"
                "## Introduction\n"
                "A lake that used to close each winter is measured by floats, and fed by a factory.\n\n"
                "## Table Of Contents\n- What the instruments say\n- Where warmth comes from\n\n"
                "## What the instruments say\nTwo of them float, one shallow and one deep.\n\n"
                "## Where warmth comes from\nMainly from industry, in twelve cubic metres a second.\n\n"
                "## Conclusion\nWith this inflow it will hardly close again.\n\n"
                "## References\n- Buoys, 1998, [buoys](https://page-buoys.example)\n"
            ),
            pool=("#page_freezing", "#page_races", "#page_trend", "#page_buoys", "#page_inflow"),
            chosen=("#page_freezing", "#page_trend", "#page_buoys", "#page_inflow"),
            prompt=("#page_buoys", "#page_inflow"),
            replies=13,  # three of each of three researchers; the outline, the writer, two checks
        ),
    ),
    "sql-auto-vector": (
        Said(
            question="Which arts are found in the town with the most people?",
            answer="Storby, the largest town, is known for glass and for puppets.",
            pool=("#rows_towns", "storby_arts", "storby_quay"),
            prompt=("#rows_towns", "storby_arts", "storby_quay"),
            replies=7,
        ),
    ),
    "explainable-retrieval": (
        Said(
            question="Why is the lake blue?",
            answer=(
                "1. It names the cause: which colour the water takes away.\n"
                "2. It speaks of clear water, and of no colour.\n"
                "3. It has no bearing on colours."
            ),
            pool=("#blue", "#reed", "#warm"),
            prompt=("#blue", "#reed", "#warm"),
            replies=3,
            tokens=147,
        ),
    ),
    "multi-vector": (
        Said(question="drying nets", answer="", pool=("#essay_nets", "#essay_boats"), replies=0),
        Said(question="drying nets", answer="", pool=("#essay_nets", "#essay_boats"), replies=0),
        Said(question="life of a hull", answer="", pool=("#essay_boats", "#essay_nets"), replies=0),
    ),
    "agents-as-tools": (
        Said(
            question="Write me a report on the lighthouse of Näs.",
            answer="The report is ready. In short: a light since 1857, without a keeper for long.",
            pool=("#web_history",),
            prompt=("#web_history",),
            replies=8,  # four of the first agent, two of the researcher, the report, the review
            tools=frozenset({"call_research_agent", "search_web", "call_write_agent", "call_review_agent"}),
        ),
    ),
    "anthropic-iterative-search": (
        Said(
            question="What is known of the dam, and whom did it serve?",
            answer="It was raised twice, and served a mill with 24 paddles.",
            pool=("#mill", "#dam", "#outlet"),
            prompt=("#mill", "#dam", "#outlet"),
            replies=4,
            tools=frozenset({"search"}),
        ),
    ),
    "controllable-rag-agent": (
        Said(
            question="Why was Ask sorry in the morning?",
            answer="Since his open lock had drowned a field.",
            pool=("#lock_night", "#quote_meadow", "#quote_guilt"),
            prompt=("#lock_night", "#quote_meadow", "#quote_guilt"),
            replies=17,
        ),
    ),
    "graph-rag": (
        Said(
            question="What do the fish that spawn at the mouths of streams eat, and where does that live?",
            answer="Smelt eat shrimps, which live on the lake's ground.",
            pool=("#smelt", "#shrimps", "#eels", "#sauna"),
            chosen=("#smelt", "#shrimps"),
            prompt=("#smelt", "#shrimps"),
            replies=6,  # four extracts, two checks; the graph was built before
        ),
    ),
    "music-store-supervisor": (
        Said(question=SHOP, answer="", outcome="interrupted", replies=2),
        Said(
            question=SHOP,
            answer="It was 3.98, in March. Of U2 we have War and Zooropa.",
            pool=("#rows_purchases", "#rows_albums"),
            prompt=("#rows_purchases", "#rows_albums"),
            replies=8,  # who it is, three of the supervisor, two of each agent
            tools=frozenset(
                {
                    "invoice_information_subagent",
                    "get_invoices_by_customer_sorted_by_date",
                    "music_catalog_subagent",
                    "get_albums_by_artist",
                }
            ),
        ),
    ),
}
