"""What a person says of the applications of LangGraph of the eighth draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- A task that is to be solved is the question. The name of a tool in a plan's text is no tool; what was run is.
- What a model replies to a step of a plan is its own, also where its whole message is written out as text. It is no
  evidence, and neither are the query and the instruction that it is written into.
- A page that two searches found stands where it was found first, once.
- A form with an `answer` whose call no tool runs is the answer, also where the model said a few words beside the call. Where a
  tool runs the form's call, as its queries are to be searched, the form's tool was called, and so was the search in it.
- The revised answer is written from all that was searched before it. The error of a form that was filled in wrongly is no
  evidence, and its call was no tool's.
- A program that asks the person back, and ends, has told them that question: it is the answer. What the person then says is the
  question of the next run. Words such as "I start research" stand before the report, and are not the answer.
- Pages that a search reads, and has summarised one by one, were found, each on its own; of a page without a full text the
  piece that the search returned. The findings, and the report behind them, lead back through the summaries to the pages.
- Researchers side by side stand as the supervisor sent them out, which is the order of the findings in the last prompt.
- A call that a program carries out itself, and replies to under the tool's name, was a tool's: research that is conducted. One
  that only ends the work is a tool's where it is run.
"""

from __future__ import annotations

from tests.public.kit import Said

RACE = ("#rowing_result", "#rowing_course", "#dahl_life")
WATER = ("#water_lens", "#water_wells", "#water_cisterns", "#water_pond", "#water_meter", "#water_pipe")
GEESE = ("#geese_count", "#geese_meadow", "#farm_geese")

EXPECTED: dict[str, tuple[Said, ...]] = {
    "rewoo": (
        Said(
            question="In which village was the winner of Vester's rowing race of 2026 born?",
            answer="Nordby, on the north shore",
            pool=RACE,
            prompt=RACE,
            replies=4,  # the plan, two of its steps, the answer
            tools=frozenset({"tavily_search_results_json"}),
        ),
    ),
    "reflexion": (
        Said(
            question="How should Vester keep its fresh water?",
            answer=(
                "Pump less than lets salt in [1], fill cisterns by law [2], and let winter rain seep back [3]; "
                "a pipe has no majority [4].\n\nReferences:\n- [1] https://water-lens.example\n"
                "- [2] https://water-cisterns.example\n- [3] https://water-pond.example\n- [4] https://water-pipe.example"
            ),
            pool=WATER,
            prompt=WATER,
            replies=5,  # a draft that lacks its queries, the draft, three revisions
            tools=frozenset({"AnswerQuestion", "ReviseAnswer", "tavily_search_results_json"}),
        ),
    ),
    "open-deep-research": (
        Said(
            question="Write a report on the geese of Vester.",
            answer="Do you mean the wild geese of winter, those of the farms, or both?",
            replies=1,
        ),
        Said(
            question="On both: how many of the wild ones come, and what farms do with theirs.",
            answer=(
                "# Geese of Vester\n\n## Wild geese\nSeven times as many as in 1990 spend the winter here, on a meadow "
                "that is theirs [1][2].\n\n## Geese of farms\nThey graze on the marsh until they are sold in November [3]."
                "\n\n### Sources\n- [1] Geese counted: https://geese-count.example\n"
                "- [2] The south meadow: https://geese-meadow.example\n- [3] Farm geese: https://farm-geese.example"
            ),
            pool=GEESE,
            prompt=GEESE,
            # whether to ask, the brief, three of the supervisor; of one researcher three, of the other two; a summary of each
            # of two pages, two sets of findings, the report
            replies=15,
            tools=frozenset({"think_tool", "ConductResearch", "tavily_search", "ResearchComplete"}),
        ),
    ),
}
