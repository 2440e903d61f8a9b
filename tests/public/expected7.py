"""What a person says of each application of the eighth draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- A shell command that a person hands to a tool asks nothing: there is no run, whether they approve it or not.
- A tool that a person stopped before it started was not called. The no ends the run, with an error and without an answer.
- What the shell printed of a command's own words is no evidence.
- What a calculator says stands in the prompt. It was not found, since a search found the page beside it.
- A service that ranks every chunk of a document is the search. The runs of neighbours that are taken out of it were chosen, in
  the order of the document, with what lies between good chunks. Nobody writes an answer.
- Categories that a model names with its reasons, and another one grades, are their words: no passage was chosen by them. The
  question that is asked back rests on all lines that the first of them saw.
- Hand-overs that the graph answers itself are no tools. A tool that gives back what it was told is one, and no evidence.
- A quote that a tool computes from a table's rates was found in that turn, as one text, and nothing of the turn before was.
- A talk about a car has nothing in its input. What a person asks is what they type when they are first asked; what they type
  later belongs to it. What is told of the car in the end is the answer.
- The listings of a site were found, and a prompt shows them. The person picks one of them, and no step of the program does. The
  answer was written from its title alone, which is no passage.
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
- A story that nobody asked for asks nothing, and neither do a person's choices in it or a segment that is made to see one:
  there is no run.
- A memory that is asked alone is searched: what it is asked is the question, what it finds was found, and nobody answers.
  Its composing of messages chooses nothing, also where it leaves out what the chat holds itself.
- A dialogue that a memory finds is one passage. It stands in the prompt with names before its parts, or as the messages
  of the chat, from which the memory does not repeat it.
- The former agents write each turn into the memory with all turns before it. So the first dialogue stands there twice,
  under two ids: it is found twice, and stands in the prompt twice.
- A memory that finds nothing leaves a function's result as all that was found. Where it finds a dialogue, the result stands
  in the prompt, and nothing searched for it.
- Agents that answer sub-questions are asked by the workflow; their questions are none. A budget that two of them find
  stands where it was found first.
- That a booking was created, updated or confirmed is no evidence. It is the answer where its tool answers the person.
- A message that the agent sets behind passages is not the question; what the person wrote in it is. The passages were found
  before those that a tool found.
- An abbreviation that was found for an earlier turn stands in the chat, and is no evidence of this turn.
"""

from __future__ import annotations

from tests.public.kit import Said

TRADES = ("#trade_hulls", "#trade_sailing", "#trade_engines", "#trade_dance")
RACE = ("#rowing_result", "#rowing_course", "#dahl_life")
WATER = ("#water_lens", "#water_wells", "#water_cisterns", "#water_pond", "#water_meter", "#water_pipe")
GEESE = ("#geese_count", "#geese_meadow", "#farm_geese")
IDA = "What does Ida like?"
MYSTERY_AGAIN = "What was the output of the mystery function on 7 and 4 again? Don't recompute."
MULTIPLY_AGAIN = "What was the output of the multiply function on 12 and 9 again? Don't recompute."
TWICE = ("#sum_mystery", "#sum_mystery")
BOTH = ("#sum_multiply", "#sum_mystery")
BUDGETS = (
    "#budget_2016_total",
    "#budget_2016_road",
    "#budget_2021_before",
    "#budget_2021_total",
    "#budget_2021_wall",
    "#budget_2023_total",
    "#budget_2023_school",
)
STORM = ("#short_yz", "#coop_march_nets", "#coop_march_boat", "#coop_march_roof")
AUTUMN = ("#short_x", "#coop_sept_landings", "#coop_sept_costs", "#coop_sept_note")
MAGIC = ("#coop_sept_costs", "#coop_sept_landings", "#coop_sept_note")

EXPECTED: dict[str, tuple[Said, ...]] = {
    "human-approval-tools": (
        Said(
            question="It's 2026 now. How many years ago did Anne Toft become harbour master of Vester?",
            answer="Anne Toft became harbour master of Vester in 1909, 117 years ago.",
            pool=("#toft_page",),
            prompt=("#toft_page", "#toft_years"),
            replies=4,  # two actions, the calculator's expression, the answer
            tools=frozenset({"wikipedia", "Calculator"}),
        ),
        Said(
            question="print 'Hello World' in the terminal",
            answer="Hello World",
            replies=2,
            tools=frozenset({"terminal"}),
        ),
        Said(question="list all directories in /private", answer="", outcome="error", replies=1),
    ),
    "relevant-segment-extraction": (
        Said(
            question="Nordhav's financial statements",
            answer="",
            pool=(
                "#kelp_sales",
                "#kelp_owns",
                "#kelp_costs",
                "#kelp_owes",
                "#kelp_cash",
                "#kelp_audit",
                "#kelp_note",
                "#kelp_thanks",
                "#kelp_yard",
                "#kelp_report",
                "#kelp_lines",
                "#kelp_board",
                "#kelp_bakers",
                "#kelp_storm",
            ),
            chosen=(
                "#kelp_sales",
                "#kelp_note",
                "#kelp_costs",
                "#kelp_thanks",
                "#kelp_owns",
                "#kelp_owes",
                "#kelp_cash",
                "#kelp_audit",
            ),
            replies=0,
        ),
    ),
    "contextual-quoting": (
        Said(
            question=(
                "We are Toft & Daughters. We mend wooden boats on our slipway, and teach children to sail. "
                "We expect 400,000 dollars of revenue."
            ),
            answer="Toft & Daughters: boats mended, children taught, $400,000 expected. Is that right?",
            replies=2,
            tools=frozenset({"info_tool"}),
        ),
        Said(
            question="Looks good.",
            answer="Do you mend those hulls on a slipway of your own, and do pupils go out in open boats?",
            pool=TRADES,
            prompt=TRADES,
            replies=5,  # the hand-over, the description, the categories, their grades, the question back
        ),
        Said(
            question="Yes, both: the hulls are ours to mend, and the pupils sail in open boats.",
            answer="Your yearly premium comes to $2,396: a fifth of it for boats, the rest for lessons.",
            pool=("#quote_rates",),
            prompt=("#quote_rates",),
            replies=4,  # the hand-over, the call, the end of the task, the answer
            tools=frozenset({"fetch_rates"}),
        ),
    ),
    "car-buyer-agent": (
        Said(
            question="I look for a small car that gets up the dune road of Vester in winter.",
            answer="Its engine has 1.7 litres and lasts long; gears whine, sills rust. It is worth about that sum.",
            pool=("#car_panda", "#car_niva", "#car_jimny"),
            replies=7,  # two questions back and what was learned from each reply; the URL, the choice, the answer
        ),
    ),
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
    "story-crafting": (),
    "composable-memory": (
        Said(question="What does Ole like?", answer="", pool=("#taste_ole",), replies=0),
        Said(question=IDA, answer="", pool=("#taste_ida",), replies=0),
        Said(question="What does Jens like?", answer="", pool=("#taste_jens",), replies=0),
        Said(question=IDA, answer="", pool=("#taste_ida",), replies=0),
        Said(question=IDA, answer="", replies=0),  # the memory is empty
        Said(
            question="What is the mystery function on 7 and 4?",
            answer="The mystery function on 7 and 4 returns 33.",
            pool=("#sum_mystery_result",),
            prompt=("#sum_mystery_result",),
            replies=2,
            tools=frozenset({"mystery"}),
        ),
        Said(
            question="What happens if you multiply 12 and 9?",
            answer="Multiplied by each other, they are 108.",
            pool=("#sum_mystery",),
            prompt=("#sum_mystery", "#sum_multiply_result"),
            replies=2,
            tools=frozenset({"multiply"}),
        ),
        Said(question=MYSTERY_AGAIN, answer="I have no earlier output of it, sorry.", replies=1),
        Said(question=MYSTERY_AGAIN, answer="It was 33, as before.", pool=TWICE, prompt=TWICE, replies=1),
        Said(question=MULTIPLY_AGAIN, answer="That one gave 108.", pool=BOTH, prompt=BOTH, replies=1),
        Said(question=MYSTERY_AGAIN, answer="", pool=TWICE, replies=0),
        Said(question=MYSTERY_AGAIN, answer="", pool=TWICE, replies=0),
    ),
    "sub-question-workflow": (
        Said(
            question="How has the budget of Vester changed from 2016 to 2023?",
            answer="It rose each time, from 310,000 crowns to 498,000 in seven years.",
            pool=BUDGETS,
            prompt=BUDGETS,
            replies=14,  # the sub-questions; for each of four two of its agent and one of an engine; the answer
            tools=frozenset({"budget_2016", "budget_2021", "budget_2023"}),
        ),
    ),
    "return-direct-agent": (
        Said(
            question="Hello! I would like to make a booking, around 5pm?",
            answer=(
                "Booking created, but not yet confirmed. Please provide your name, email, phone, date, and time."
            ),
            replies=1,
            tools=frozenset({"create_booking"}),
        ),
        Said(
            question="Sure! My name is Solveig, and my email is solveig@vester.example?",
            answer="Now I need a phone number, a day and an hour.",
            replies=2,
            tools=frozenset({"update_booking"}),
        ),
        Said(
            question="Right! My phone number is 5550199, the date of the booking is April 5, at 5pm.",
            answer="Booking ID user123 confirmed!",
            replies=2,
            tools=frozenset({"update_booking", "confirm_booking"}),
        ),
    ),
    "openai-agent-context-retrieval": (
        Said(
            question="What is the YZ of March 2022?",
            answer="The storm took nets, the Alke and the roof of the ice house.",
            pool=STORM,
            prompt=STORM,
            replies=3,  # a call, what the engine says, the answer
            tools=frozenset({"vester_march"}),
        ),
        Said(
            question="What is the X and Z in September 2022?",
            answer="X was 812 tonnes; nobody tells me what Z is.",
            pool=AUTUMN,
            prompt=AUTUMN,
            replies=3,
            tools=frozenset({"vester_sept"}),
        ),
        Said(
            question="Can you run MAGIC_FORMULA on the cooperative's revenue and cost?",
            answer="MAGIC_FORMULA gives a loss of 169 thousand crowns.",
            pool=MAGIC,
            prompt=(*MAGIC, "#coop_magic"),
            replies=2,
            tools=frozenset({"magic_formula"}),
        ),
    ),
}
