"""What a person says of each application of the fifth draw; written before any of them ran with ragtrace.

The reasons of `expected.py`, `expected2.py` and `expected3.py` hold here too. Further ones:

- A model that says whether a person's mark bears on a passage grades: outside a block that is no run.
- What plain code sorts anew after a search, and nobody is shown, was not chosen.
- A question that a step makes from an earlier answer is no question of a person, and the pair of both is no passage.
- A schema that is put into a prompt says how to ask. The rows that come back are evidence.
- Documentation that was loaded beforehand and stands in the prompt was found, where nothing else was: the answer rests on it.
- A program as an object is read whole. The error that it raised is no evidence, and no question.
- A story that nobody asked for has no question; a person's choice between its parts is none. A workflow that asks the person
  is a step of the one that waits for it.
- A reservation that plain code writes into a system prompt was found for no question of the turn.
- An article is one passage, whether a prompt shows its first sentence or all of it.
- Where three engines answer and a judge takes one, the answer's prompt is that of the engine which gave it, and what that
  engine chose was chosen.
- A report that a workflow streams is its answer, also where its result is empty.
- A tool that is found for a question is no passage, and what ranks tools chooses none.
- Passages that a chain gives back as they are were found; there is no answer, and no prompt shows them.
"""

from __future__ import annotations

from tests.public.kit import Said

LAST_TRAM = "When does the last tram go up to the observatory?"
TRAMS = ("#tram_route", "#tram_fare", "#tram_depot")
PEAKS = ("#rows_peaks", "#rows_huts", "#rows_rescues")
BEES = ("bees_lime", "bees_pine", "bees_winter")
PLANTS = ("#garden_beans", "#garden_gentian", "#roof_houseleek", "#roof_moss")
CHEESE = ("#source_cheese", "#source_cows", "#source_cellar")
BOTH_RANGERS = "what do Ida Kofler and Jon Platter do"

EXPECTED: dict[str, tuple[Said, ...]] = {
    "retrieval-feedback-loop": (
        Said(
            question=LAST_TRAM,
            answer="At midnight, from the mill.",
            pool=TRAMS,
            prompt=TRAMS,
            replies=1,
        ),
        Said(question=LAST_TRAM, answer="", pool=TRAMS, replies=0),  # the grades behind it are no runs
    ),
    "multi-step-workflow": (
        Said(
            question="Where did the builder of the great clock learn his trade?",
            answer="Riedl, who built it, was taught at Sankt Ulm.",
            pool=("#clock_builder", "#clock_bell", "#riedl_trade"),
            prompt=("#clock_builder", "#clock_bell", "#riedl_trade"),
            replies=6,  # three questions, of which the last is none, two answers, the whole
        ),
    ),
    "sql-research-assistant": (
        Said(
            question="Is the Nadel more dangerous than the Hochwart?",
            answer="# Nadel and Hochwart\n\nThe Nadel is lower, yet more people sleep and get lost there.",
            pool=PEAKS,
            prompt=PEAKS,
            replies=9,  # the role, the queries, SQL and an answer for each of three, the report
        ),
    ),
    "code-assistant": (
        Said(
            question="How do I write 0.75 as a quotient of two whole numbers?",
            answer=(
                '{"prefix": "The class is called Fraction; limit_denominator keeps it short.", '
                '"imports": "from fractions import Fraction", '
                '"code": "result = Fraction(0.75).limit_denominator(100)"}'
            ),
            pool=("#fraction_pages",),
            prompt=("#fraction_pages",),
            replies=2,  # the program that failed, and the one that did not
        ),
    ),
    "hitl-patterns": (
        Said(question="", answer="You talk until the sun is up, and the herd leads you home.", replies=3),
        Said(question="", answer="Above the fog you see the whole valley.", replies=2),
    ),
    "swarm-customer-support": (
        Said(
            question="Which coach goes from Brenn to the Hochwart tomorrow?",
            answer="A yellow one leaves in the morning; shall I book it?",
            pool=("#coach",),
            prompt=("#coach",),
            replies=2,
            tools=frozenset({"search_coaches"}),
            tokens=200,
        ),
        Said(
            question="Yes, book it, and find me a bed up there.",
            answer="There is one in the upper village, in a house called Enzian.",
            pool=("#room",),
            prompt=("#room",),
            replies=4,  # three calls and the answer
            tools=frozenset({"book_coach", "transfer_to_room_assistant", "search_rooms"}),
            tokens=400,
        ),
        Said(
            question="I take that room.",
            answer="Done, the room is yours.",
            replies=2,
            tools=frozenset({"book_room"}),
            tokens=200,
        ),
    ),
    "news-tldr": (
        Said(
            question="What is new about nature around the Hochwart?",
            answer=(
                "Here are the top 2 articles based on search terms:\nglacier Hochwart, Alps\n\n"
                "Ice report\nhttps://news-glacier.example\n* It got thinner by more than a metre.\n* Some stakes lean.\n\n"
                "Early risers\nhttps://news-marmots.example\n* They sleep for a shorter time.\n* Cameras saw it."
            ),
            pool=("#news_glacier", "#news_cables", "#news_marmots"),
            chosen=("#news_glacier", "#news_marmots"),
            prompt=("#news_glacier", "#news_marmots"),
            replies=5,  # what to ask, twice; the choice; two summaries
        ),
    ),
    "multi-strategy-workflow": (
        Said(
            question="How has it changed?",
            answer="A third of the snow days are gone, since the snow line climbed.",
            pool=("#snow_depth", "#snow_guns", "#snow_line", "#snow_plough"),
            chosen=("#snow_line", "#snow_depth"),
            prompt=("#snow_line", "#snow_depth"),
            replies=8,  # two verdicts on the query, a better one, the ranks, three answers, the judge
        ),
    ),
    "create-llama-deep-research": (
        Said(
            question="What do the bees of Brenn live on through the year?",
            answer=(
                "# Bees of Brenn\n\nTrees feed them: limes first, pines later "
                "[citation:bees_lime] [citation:bees_pine]. They live on their stores when it is cold "
                "[citation:bees_winter]."
            ),
            pool=BEES,
            prompt=BEES,
            replies=5,  # two plans, two answers, the report
        ),
    ),
    "open-deep-research-multi-agent": (
        Said(
            question="Write a report on how the cheese of Brenn is made.",
            answer=(
                "# Cheese of Brenn\n\nThree months of turning come after two days under weights.\n\n"
                "## The pastures\nThe herd is grey, and stays on the mountain from June to September.\n\n"
                "## The cellar\nA cave of soft rock, cool and wet, does the rest.\n\n"
                "## Conclusion\nGrass, time and a cave make it."
            ),
            pool=CHEESE,
            prompt=CHEESE,  # the introduction is written with the first, each section with one of the others
            replies=11,  # five of the supervisor, three of each of two researchers
            tools=frozenset({"tavily_search", "Sections", "Section", "Introduction", "Conclusion"}),
        ),
    ),
    "multi-document-agents": (
        Said(
            question="What grows in the gardens and on the roofs of Brenn?",
            answer="Bitter roots and beans below, and plants against fire and rain above.",
            pool=PLANTS,
            prompt=PLANTS,
            replies=9,  # three of the first agent; two of each page's agent, and one of its engine
            tools=frozenset({"tool_gardens", "vector_tool_gardens", "tool_roofs", "summary_tool_roofs"}),
        ),
        Said(
            question="Compare the gardens to the roofs.",
            answer="The gardens feed people, and the roofs guard them.",
            pool=PLANTS,
            prompt=PLANTS,
            replies=11,  # two of the first agent, three of the one that compares, three for each page
            tools=frozenset(
                {"compare_tool", "tool_gardens", "vector_tool_gardens", "tool_roofs", "summary_tool_roofs"}
            ),
        ),
    ),
    "multi-query-structured": (
        Said(
            question=BOTH_RANGERS,
            answer='{"queries": ["Ida Kofler work", "Jon Platter work"]}',
            replies=1,
        ),
        Said(question="what does Ida Kofler do", answer="", pool=("#ranger_ida",), replies=1),
        Said(question=BOTH_RANGERS, answer="", pool=("#ranger_ida", "#ranger_jon"), replies=1),
    ),
}
