"""What a person says of four applications of the seventh draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- The path of a file that the state holds is no answer. What the model said to the person is, and the file only keeps it.
- A session that a person has within one call is one run. What they type on the way is no question of its own, and the
  last reply is the answer; a question that the model asks back is none.
- A text of a search tool is one passage, however many results stand in it.
- An act that a program proposes and a person approves asks nothing: there is no run, and a waiting one is none either.
- A program that a tool ran is the model's own, and that it ran, without a word printed, is no evidence.
- Agents of a network show each other all messages, so what one found stands in the other's prompt. The message that ends
  the work is the answer as it is, also as a person's message under an agent's name.
- Documents that are given to an index ask nothing. A user who gave none finds none.
- A turn has what its own search found, though the state held the pages of the turn before.
"""

from __future__ import annotations

from tests.public.kit import Said

SEARCH = frozenset({"duckduckgo_results_json"})
SEALS = ("#seals_reef", "#seals_storm", "#seals_count")

EXPECTED: dict[str, tuple[Said, ...]] = {
    "career-assistant": (
        Said(
            question="I want to learn how a pilot's chart is read. Make a tutorial of it.",
            answer="# How to read a pilot's chart\n\n1. Times 1.83 gives metres.\n2. Keep both beacons in one.",
            pool=("#chart_marks",),
            prompt=("#chart_marks",),
            replies=4,  # two categories, a call, the tutorial
            tools=SEARCH,
        ),
        Said(
            question="I waver between pilot and dredger master: which of them is for whom?",
            answer="Then become a dredger master, and keep your nights.",
            replies=4,
        ),
        Said(
            question="I want to discuss questions of job interviews.",
            answer="# Questions\n\n- Which buoys do you know?\n- Can you tie a bowline blindly?",
            pool=("#pilot_exam",),
            prompt=("#pilot_exam",),
            replies=5,  # two categories, a question back, a call, the list
            tools=SEARCH,
        ),
        Said(
            question="I need a mock interview to practice.",
            answer="Well done.\n\n**Evaluation:** calm and correct; I would take you.",
            replies=4,
        ),
        Said(
            question="Can you help me to write a résumé for a ship's cook?",
            answer="# Ship's cook\n\n- Inn of Vester, six years\n- Salting of herring",
            replies=3,
        ),
        Said(
            question="I want to search jobs.",
            answer="# Jobs\n\n| job | at |\n|---|---|\n| crane | outer quay |\n| ropes | ferry |",
            pool=("#jobs_quay",),
            prompt=("#jobs_quay",),
            replies=2,
            tools=SEARCH,
        ),
    ),
    "approval-agent": (),
    "retrieval-agent-template": (
        Said(
            question="How does the windmill of Vester face the wind?",
            answer="A small wheel at its back turns the whole cap.",
            pool=("#mill_tail", "#mill_sails"),
            prompt=("#mill_tail", "#mill_sails"),
            replies=1,
        ),
        Said(
            question="And how much does it grind in a day?",
            answer="Up to 900 kg, where it blows well.",
            pool=("#mill_stones", "#mill_tail"),
            prompt=("#mill_stones", "#mill_tail"),
            replies=2,
        ),
        Said(
            question="How does the windmill of Vester face the wind?",
            answer="Your documents do not say it.",
            replies=1,
        ),
    ),
    "multi-agent-collaboration": (
        Said(
            question=(
                "First, get the number of seal pups of Vester in the past 3 years, then make a bar chart of it. "
                "Once you make the chart, finish."
            ),
            answer="FINAL ANSWER: Here is the bar chart of seal pups; each year has a longer bar.",
            pool=SEALS,
            prompt=SEALS,
            replies=4,
            tools=frozenset({"tavily_search", "python_repl_tool"}),
        ),
    ),
}
