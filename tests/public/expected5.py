"""What a person says of each application of the sixth draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- A model that makes a query and a filter of a wish is asked inside the search. Rooms that are found are nobody's answer.
- A picture that is shown beside texts was found as they were, and stands before them in the prompt.
- Notes that a model took of pages lead back to them, also where only the model's prompt held the pages.
- A form that is filled in, or called as a tool, is the answer; whoever checks it answers nothing.
- A task that nobody searched for has no pool.
- The schema of a database that was read led to a plan, and to none of the answer's prompts.
- Of attempts side by side the one that the application takes is the answer.
- A text from which something is to be extracted is the person's word, and nothing was found.
- Documents that are read, and an engine that is made of them, are no question.
"""

from __future__ import annotations

from tests.public.kit import Said

MOLE = ("#photo_mole", "#mole_text", "#mole_table")
HARBOUR = "How does the harbour of Vester stay open?"

EXPECTED: dict[str, tuple[Said, ...]] = {
    "self-query-hotel-search": (
        Said(
            question="I want to stay somewhere highly rated by the sea, and a room where I can sit at a fire.",
            answer="",
            pool=("#room_dune", "#room_pier"),
            replies=1,
        ),
    ),
    "multi-modal-rag": (
        Said(
            question="What has a storm done to the mole of Vester?",
            answer="It tore stones off the west arm; the lantern stands.",
            pool=MOLE,
            prompt=MOLE,
            replies=1,
        ),
    ),
    "data-enrichment": (
        Said(
            question="The ferry line of Vester",
            answer='{"founded": 1897, "ships": ["Hilda", "Ran", "Sif"]}',
            pool=("#ferry_line", "#ferry_fleet"),
            prompt=("#ferry_line", "#ferry_fleet"),
            replies=5,  # two of the agent; the queries, the notes, the check
            tools=frozenset({"perform_web_research", "Info"}),
        ),
    ),
    "task-decomposition-parallel": (
        Said(
            question="Write a short guide to collecting amber on a winter beach, with gear, tides and the law.",
            answer=(
                "# Amber in winter\n\nTake a lamp and gloves, go before low water after a storm, and leave the dunes alone."
            ),
            replies=6,  # the parts, three of them written, the whole, its grade
        ),
    ),
    "database-discovery-fleet": (
        Said(question="Hi there, how goes it?", answer="Very well, thank you! How are you?", replies=2),
        Said(
            question="Which two ferries carried the most passengers?",
            answer="- Hilda: 91,200\n- Ran: 77,150",
            pool=("#schema_ferries", "#rows_ferries"),
            prompt=("#rows_ferries",),
            replies=7,  # the kind, two to discover, the plan, two to infer, the answer
            tools=frozenset({"sql_db_schema", "sql_db_query"}),
        ),
    ),
    "long-rag-workflow": (
        Said(
            question="How tall is the lighthouse of Vester, and why was the church moved?",
            answer="It is 38 m tall; the church fled from a dune.",
            pool=("#lighthouse_long", "#church_long"),
            prompt=("#lighthouse_long", "#church_long"),
            replies=1,
        ),
    ),
    "reflection-workflow": (
        Said(
            question="I own two boats: the cutter Maren of 14 m, and a pram of 4 m, Bo.",
            answer=(
                '{"boats": [{"kind": "cutter", "name": "Maren", "length": 14}, {"kind": "pram", "name": "Bo", "length": 4}]}'
            ),
            replies=2,
        ),
    ),
    "jsonalyze-workflow": (
        Said(
            question="Which harbour do most divers come from?",
            answer="From Skagen, with 17 of them.",
            pool=("#rows_divers",),
            prompt=("#rows_divers",),
            replies=2,
        ),
    ),
    "company-researcher": (
        Said(
            question="Nordhav Seaweed",
            answer='{"founded": 2011, "products": ["dulse", "sugar kelp"], "staff": 34}',
            pool=("#line_history", "#line_products", "#line_people"),
            prompt=("#line_history", "#line_products", "#line_people"),
            replies=7,  # the queries; notes, a record and a check, twice
        ),
    ),
    "rewrite-retrieve-read": (
        Said(
            question="who built the mole of Vester?",
            answer="A merchant, and later the state.",
            pool=("#search_mole",),
            prompt=("#search_mole",),
            replies=1,
        ),
        Said(
            question="My aunt keeps geese on the island, and she is always right. Who built the mole of Vester?",
            answer="Oluf Brandt began it, Anne Toft went on.",
            pool=("#search_both",),
            prompt=("#search_both",),
            replies=2,
        ),
    ),
    "lats": (
        Said(
            question="When do herring come to Vester, and how large are they?",
            answer="In April, with 24 cm; the fatter ones of autumn keep off until November.",
            pool=("#herring_spring", "#herring_autumn", "#herring_salt"),
            prompt=("#herring_spring", "#herring_autumn"),
            replies=5,  # a call, its grade, two candidates at once, a grade of each
            tools=frozenset({"tavily_search_results_json"}),
        ),
    ),
    "open-deep-research-legacy": (
        Said(question=HARBOUR, answer="", outcome="interrupted", pool=("#harbour_overview",), replies=2),
        Said(
            question=HARBOUR,
            answer=(
                "## Sand\nEach March 40,000 m³ are taken out and given to the beach.\n\n"
                "## Quays\nFerries land by day at the outer quay, fish at night at the inner one.\n\n"
                "## Conclusion\nA dredger and a timetable keep it open."
            ),
            pool=("#harbour_sand", "#harbour_quays"),
            prompt=("#harbour_sand", "#harbour_quays"),
            replies=7,  # queries, a section and a grade, for each of two; the conclusion
        ),
    ),
}
