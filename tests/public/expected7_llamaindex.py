"""What a person says of applications of LlamaIndex of the eighth draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

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
