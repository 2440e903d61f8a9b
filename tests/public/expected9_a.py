"""What a person says of each application of the ninth draw, part a; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- What a person replies to a tool that asks them comes from outside the model, and is the text of that tool: as nothing was
  searched, it was found, and so was the calculator's result. It is no question of its own.
- A calculator that gives back its question beside the result has given one text: that of the result.
- A plan of queries is the agent's own. The tools that the plan's tool asks have run, as it has itself; a tool that the plan
  only names has not. What the pages' engines replied is written out as query and response, which is no passage: the answer
  goes back through it, and through what joins them, to the pages.
- An agent that is found by its summary is no passage, and neither is what it replies, which the engine takes for one. What
  its own tools found is evidence. An agent that calls no tool has found nothing.
- That a file was downloaded is no evidence. Papers that a tool fetches for a topic were searched for, and found after those
  of the index; all of them are one text. That an engine finds none fit rests on the papers which it saw, and so does what
  is said after it.
- An article that a chain is given to be summarised is all that it is asked, as a text to extract from is. The chain searches
  nothing, and the instruction around the article is the program's. A list of summaries is read whole; where the program
  takes the last of them, that one is the answer.
- Whoever gives a ticker to a desk of analysts asks with it. Prices, figures and news were found, each text as one, also where
  a function fetched them before a model is asked, and no tool was called; news that are fetched twice were found once. Reports
  and debates are the models' words, and lead back to them. The decision is the answer as the program renders the form; the
  one word that it takes out of it is not.
- What a model learned from an earlier decision is a note of its own and no evidence, though the manager's prompt shows it.
  Nobody asked for it: that the program has it written before the graph starts is no run.
"""

from __future__ import annotations

from tests.public.kit import Said
from tests.public.texts import TEXTS

MARCH = ("#tarn_march_sales", "#tarn_march_rye", "#tarn_march_rent")
JUNE = ("#tarn_june_sales", "#tarn_june_drivers", "#tarn_june_ovens")
SEPT = ("#tarn_sept_sales", "#tarn_sept_gas", "#tarn_sept_mites")
RISKS = (
    "#tarn_march_rye",
    "#tarn_march_rent",
    "#tarn_march_sales",
    "#tarn_june_ovens",
    "#tarn_june_drivers",
    "#tarn_june_sales",
    "#tarn_sept_gas",
    "#tarn_sept_mites",
    "#tarn_sept_sales",
)
BOTH = (
    "#tarn_march_sales",
    "#tarn_march_rent",
    "#tarn_march_rye",
    "#tarn_sept_mites",
    "#tarn_sept_sales",
    "#tarn_sept_gas",
)
INTERESTED = (
    "I am interested in {}. \nFind papers in your knowledge database related to this topic; use the following "
    "template to query research_paper_query_engine_tool tool: 'Provide title, summary, authors and link to download for "
    "papers related to {}'. If there are not, could you fetch the recent one from arXiv? \n"
)
OTHERS = ("#paper_frogs", "#paper_power", "#paper_caves", "#paper_owls", "#paper_moths")
HALM = (
    "#hlm_prices",
    "#hlm_rsi",
    "#hlm_atr",
    "#hlm_snapshot",
    "#hlm_news",
    "#hlm_twits",
    "#hlm_reddit",
    "#hlm_world",
    "#hlm_macro",
    "#hlm_odds",
    "#hlm_company",
    "#hlm_balance",
    "#hlm_cashflow",
    "#hlm_income",
)

EXPECTED: dict[str, tuple[Said, ...]] = {
    "chainlit-ask-human": (
        Said(
            question="How old will my kiln be in 2031?",
            answer="Your kiln will be 57 years old in 2031.",
            pool=("#kiln_year", "#kiln_age"),
            prompt=("#kiln_year", "#kiln_age"),
            replies=4,  # the question back, the call, the calculator's expression, the answer
            tools=frozenset({"human", "Calculator"}),
        ),
        Said(
            question="My kiln takes 48 bowls, and I fire it 36 times a month. How many bowls is that?",
            answer="That makes 1,728 bowls a month.",
            pool=("#kiln_bowls",),
            prompt=("#kiln_bowls",),
            replies=3,  # the call, the calculator's expression, the answer
            tools=frozenset({"Calculator"}),
        ),
    ),
    "agent-query-plan": (
        Said(
            question="What were the risk factors in sept 2022?",
            answer="In September 2022 these were mites in the flour, and gas.",
            pool=("#tarn_sept_mites", "#tarn_sept_gas", "#tarn_sept_sales"),
            prompt=("#tarn_sept_mites", "#tarn_sept_gas", "#tarn_sept_sales"),
            replies=3,  # the plan, what the engine says, the answer
            tools=frozenset({"query_plan_tool", "sept_2022"}),
        ),
        Said(
            question="Analyze Tarn's revenue growth in March, June, and September",
            answer="It grew in each quarter: first by 1.22 million, then by 0.27 million.",
            pool=(*MARCH, *JUNE, *SEPT),
            prompt=(*MARCH, *JUNE, *SEPT),
            replies=6,  # the plan, what three engines say, what joins them, the answer
            tools=frozenset({"query_plan_tool", "march_2022", "june_2022", "sept_2022"}),
        ),
        Said(
            question="Analyze changes in risk factors in march, june, and september for Tarn",
            answer="At first one mill, then gas and wages, in the end gas and mites.",
            pool=RISKS,
            prompt=RISKS,
            replies=6,
            tools=frozenset({"query_plan_tool", "march_2022", "june_2022", "sept_2022"}),
        ),
        Said(
            question=(
                "First look at Tarn's revenue growth and risk factors in March, then revenue growth and risk factors in "
                "September, and then compare and contrast the two documents?"
            ),
            answer="In September more was earned than in March, and more was at risk.",
            pool=BOTH,
            prompt=BOTH,
            replies=5,
            tools=frozenset({"query_plan_tool", "march_2022", "sept_2022"}),
        ),
    ),
    "recursive-retriever-agents": (
        Said(
            question="Tell me about the sports teams in Dunsey",
            answer="Two clubs play there: rowers, and a team of chess players.",
            replies=2,  # of the agent, and of the engine
        ),
        Said(
            question="Tell me about the sports teams in Elsta",
            answer="It has one team on ice with a ball, and one with a puck.",
            pool=("#elsta_bandy", "#elsta_hockey"),
            prompt=("#elsta_bandy", "#elsta_hockey"),
            replies=4,  # a call, what the agent's engine says, the agent's reply, the answer
            tools=frozenset({"vector_tool"}),
        ),
        Said(
            question="Give me a summary on all the positive aspects of Corvel",
            answer="Employment, warm water and free transport speak for it.",
            pool=("#corvel_work", "#corvel_baths", "#corvel_trams"),
            prompt=("#corvel_work", "#corvel_baths", "#corvel_trams"),
            replies=4,
            tools=frozenset({"summary_tool"}),
        ),
    ),
    "mistral-arxiv-agent": (
        Said(
            question=INTERESTED.format("Bat-Call Models", "Bat-Call Models"),
            answer="One paper fits, on commands that are hidden in bats' calls.",
            pool=("#paper_echo", "#paper_moths", "#paper_caves", "#paper_owls", "#paper_frogs"),
            prompt=("#paper_echo", "#paper_moths", "#paper_caves", "#paper_owls", "#paper_frogs"),
            replies=3,  # an action, what the engine says, the answer
            tools=frozenset({"research_paper_query_engine_tool"}),
        ),
        Said(
            question="Download the papers, which you mentioned above",
            answer="I saved the paper as a file for you.",
            replies=2,
            tools=frozenset({"download_pdf_file_tool"}),
        ),
        Said(
            question=INTERESTED.format("Tide Prediction", "Tide Prediction"),
            answer="The index has none. Lunde and Said (2025) hear tides in the noise of ships.",
            pool=(*OTHERS, "#paper_tides"),
            prompt=(*OTHERS, "#paper_tides"),
            replies=4,  # two actions, what the engine says, the answer
            tools=frozenset({"research_paper_query_engine_tool", "fetch_from_arxiv"}),
        ),
    ),
    "kr-chain-of-density": (
        Said(
            question=TEXTS["kr_salt"],
            answer=(
                '[{"Missing_Entities": "salt field", "Denser_Summary": '
                '"The post tells of a salt field by the sea, of the people in it, and of their long work there."}, '
                '{"Missing_Entities": "Sinan; May to October", "Denser_Summary": '
                '"A salt field of Sinan is worked from May to October, by people who rise early."}, '
                '{"Missing_Entities": "twenty days; tiles", "Denser_Summary": '
                '"At Sinan, May to October, brine ripens for twenty days until salt grows on tiles."}]'
            ),
            replies=1,
        ),
        Said(
            question=TEXTS["kr_paper"],
            answer="전주의 한정우는 닥나무 껍질을 아흔아홉 번 손질해 종이를 뜨며, 제자를 찾고 있습니다.",
            replies=1,
        ),
    ),
    "trading-agents": (
        Said(
            question="HLM.OL",
            answer=(
                "**Rating**: Underweight\n\n"
                "**Executive Summary**: Sell a third this week, with a limit of 88 crowns.\n\n"
                "**Investment Thesis**: Orders are signed, but steel eats the margin; the last wait paid.\n\n"
                "**Price Target**: 82.0\n\n**Time Horizon**: 3-6 months"
            ),
            pool=HALM,
            prompt=HALM,
            # four on the market, one on sentiment, three on news, three on fundamentals; two that debate and a plan, the
            # proposal, three on risk and the decision
            replies=19,
            tools=frozenset(
                {
                    "get_stock_data",
                    "get_indicators",
                    "get_verified_market_snapshot",
                    "get_news",
                    "get_global_news",
                    "get_macro_indicators",
                    "get_prediction_markets",
                    "get_fundamentals",
                    "get_balance_sheet",
                    "get_cashflow",
                    "get_income_statement",
                }
            ),
        ),
    ),
}
