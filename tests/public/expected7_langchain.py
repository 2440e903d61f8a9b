"""What a person says of each LangChain application of the eighth draw; written before any of them ran with ragtrace.

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
"""

from __future__ import annotations

from tests.public.kit import Said

TRADES = ("#trade_hulls", "#trade_sailing", "#trade_engines", "#trade_dance")

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
}
