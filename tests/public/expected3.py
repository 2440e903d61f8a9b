"""What a person says of each application of the fourth draw; written before any of them ran with ragtrace.

The reasons of `expected.py` and `expected2.py` hold here too. Further ones:

- What is picked out or graded behind an answer is no answer.
- Structured output without an answer's field is read whole, as each framework's README and tests write it.
- A query that a model rewrote, widened or split is what its run gave: it is the answer of a run that searched nothing.
- A page that a function found is evidence once a prompt shows it from the state, in whatever words it is wrapped.
- A topic that is researched is the question.
- A feedback of a judge and a plan are a model's own words: they are no evidence, and no answer.
- A text that is summarised piece by piece was found, and stands in the prompts with all of its pieces.
- A symbol that is the argument in capitals, "None" of a tool that stores, and a transfer that is confirmed in the words of
  its arguments are no evidence.
- What a tool found for an earlier turn's question is no evidence of this turn.
- A person who approves a tool while the run goes on neither asks nor interrupts.
"""

from __future__ import annotations

from tests.public.kit import Said

NETS = ("#nets_gill", "#nets_shop", "#nets_trap", "#nets_museum")
SEICHE = ("#seiche_period", "#seiche_height", "#seiche_record")
WARMER = "Why is the lake getting warmer?"

EXPECTED: dict[str, tuple[Said, ...]] = {
    "reliable-rag": (
        Said(
            question="Which nets may be used on the lake?",
            answer="Wide gill nets in summer, and traps if you have a permit.",
            pool=NETS,
            chosen=("#nets_gill", "#nets_trap"),
            prompt=("#nets_gill", "#nets_trap"),
            replies=7,  # four grades, the answer, the check, the lookup
        ),
    ),
    "extraction-long-text": (
        Said(
            question="Key developments of the regatta",
            answer=(
                '{"key_developments": [{"year": 1887, "description": "The first regatta.", '
                '"evidence": "The first regatta was sailed in 1887."}, {"year": 1911, '
                '"description": "No engines any more.", "evidence": "In 1911 motor boats were shut out."}]}'
            ),
            pool=("#race_founded",),
            prompt=("#race_founded",),
            replies=1,  # the pieces of the whole page were extracted before
        ),
    ),
    "scientific-paper-agent": (
        Said(
            question="Find a paper on smelt in warm lakes, and tell me what it says.",
            answer="Within six years they left 9 m for 15 m (Berg and Lund, 2021).",
            pool=("#paper_found", "#paper_text"),
            prompt=("#paper_found", "#paper_text"),
            replies=9,  # the decision, two plans, two calls, two answers, two verdicts
            tools=frozenset({"search-papers", "download-paper"}),
        ),
    ),
    "joint-qa-summary": (
        Said(
            question="Can you give me a summary of the mole's life?",
            answer="Prisoners built it, a storm mended it with stone, and people fish from it now.",
            pool=("#mole_built", "#mole_storm", "#mole_rented"),
            prompt=("#mole_built", "#mole_storm", "#mole_rented"),
            replies=2,  # the router's choice, which is no tool, and the answer
        ),
        Said(
            question="What was put in place of oak?",
            answer="Stone: granite, after the storm.",
            pool=("#mole_storm", "#mole_built"),
            prompt=("#mole_storm", "#mole_built"),
            replies=2,
        ),
        Said(
            question="Who may stand on the mole today?",
            answer="Whoever fishes and pays for the day.",
            pool=("#mole_rented", "#mole_storm"),
            prompt=("#mole_rented", "#mole_storm"),
            replies=2,
        ),
    ),
    "local-deep-researcher": (
        Said(
            question="Where do smelt spend the summer?",
            answer=(
                "## Summary\nSmelt avoid heat; in July they keep to fourteen metres of depth. "
                "They also gather at the springs near Näs.\n\n"
                " ### Sources:\n* Layer : https://layer.example\n* Springs : https://springs.example"
            ),
            pool=("#page_layer", "#page_springs"),
            prompt=("#page_layer", "#page_springs"),
            replies=5,  # the query, two summaries, two reflections
        ),
    ),
    "plan-and-execute": (
        Said(
            question="Which village does the winner of the regatta of 2024 come from?",
            answer="From Södra Näs: that is where Ebba Lund lives.",
            pool=("#regatta_2024", "#regatta_calm", "#village"),
            prompt=("#regatta_2024", "#regatta_calm", "#village"),
            replies=7,  # the plan, two of the agent for each of two steps, two plans anew
            tools=frozenset({"tavily_search_results_json"}),
        ),
    ),
    "sql-join-engine": (
        Said(
            question="Which feasts are kept in the parish with the most people?",
            answer="Tuna, the largest parish, keeps three: for fish, for midsummer and for rowers.",
            pool=("#rows_parishes", "#feast_vendace", "#feast_pole", "#feast_boats"),
            prompt=("#rows_parishes", "#feast_vendace", "#feast_pole", "#feast_boats"),
            replies=9,  # the choice, SQL, its answer, the query, the sub-questions, their answers, two that join
        ),
    ),
    "query-decomposition": (
        Said(question=WARMER, answer="What has raised the surface temperature of Lake Ilm since 1960?", replies=1),
        Said(question=WARMER, answer="What governs the temperature of lakes?", replies=1),
        Said(
            question=WARMER,
            answer="Sub-queries:\n1. How warm is the inflow?\n2. How much sun reaches the lake?",
            replies=1,
        ),
    ),
    "pydantic-tree-summarize": (
        Said(
            question="who is Ida Moen?",
            answer=(
                '{"name":"Ida Moen","best_known_for":["a rescue","records"],'
                '"extra_info":"As a girl she saved sailors; later she tended a light and observed the sky."}'
            ),
            pool=("#essay_keeper",),
            prompt=("#essay_keeper",),
            replies=3,  # an object of each piece, and one of both
        ),
    ),
    "flare-chain": (
        Said(
            question="How long does a seiche of the lake take, how high is it, and who measured it first?",
            answer=(
                "It takes 71 minutes to swing, and rises by a foot in a storm. "
                "Olof Rask, who taught at the school, was the first: in 1904."
            ),
            pool=SEICHE,
            prompt=SEICHE,
            replies=7,  # two drafts, three questions, two that are written from passages
        ),
    ),
    "propositional-retrieval": (
        Said(
            question="Who blew the first glass of Storby, and why is it green",
            answer="Brothers from Bohemia; the colour is from iron.",
            pool=("#glass_first", "#glass_colour"),
            prompt=("#glass_first", "#glass_colour"),
            replies=1,  # the propositions were made before
        ),
    ),
    "multi-agent-concierge": (
        Said(
            question="What does a kilo of smelt cost?",
            answer="A kilo of smelt costs 4.20 now.",
            pool=("#fish_price",),
            prompt=("#fish_price",),
            replies=4,  # the hand-over, two calls, the answer
            tools=frozenset({"search_for_fish_symbol", "lookup_fish_price"}),
        ),
        Said(
            question="I am anna, and my password is tern. How much money do I have?",
            answer="Welcome, Anna: you have 1000.",
            pool=("#login",),
            prompt=("#login",),
            replies=5,  # the wish for a transfer, the hand-over, two calls, the answer
            tools=frozenset({"store_username", "login"}),
        ),
        Said(
            question="Please send 20 of it to account 7.",
            answer="Your 20 are on their way.",
            replies=4,
            tools=frozenset({"transfer_money"}),
        ),
    ),
}
