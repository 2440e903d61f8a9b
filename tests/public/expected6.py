"""What a person says of each application of the seventh draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- A list of what was found, with ranks and distances, is no answer.
- A passage that an index holds several times is one passage, found once.
- The kind of a question, better queries, sub-questions and viewpoints are a model's words on the way: no question, no answer.
- Of several searches a passage stands where it was found first. A passage that is selected by its place in their joined list
  was chosen, and the prompt of the choice, which shows beginnings of texts, is not the answer's.
- What a dartboard takes was chosen, also where it takes each text that was found, in another order.
- A model that is asked by a plain request replies as others do, where the application tells of it; so does a grader.
- Chunks of two searches that stand twice in one prompt stand there once. A comparison with a known answer is plain code.
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
- An answer that is written ahead of its searches goes back through what was filled in to the passages that the engine saw.
  It ends with the blank that the engine puts before the `done` which it takes away.
- A passage that is cut into numbered sources was found once, and stands in the prompt in its parts; nobody chose.
- An object is read as the JSON that its engine gives out. Where an engine gives out one object for each passage, they are
  read as the text that it makes of them.
- A form that a model fills in by a call, and that is checked and never run, is the answer, and no tool. Of one with an `answer`
  that is what the person reads. What a check says of a form is no evidence.
- A form that was patched is read as it is in the end; a run that gives up on a form has no answer.
- A message that asks for a summary of a conversation is the question whole: nothing was searched for.
"""

from __future__ import annotations

import json

from tests.public.kit import Said

CLIFF = "Why does the cliff of Vester retreat?"
TALL = ("#wheels_height", "#wheels_first", "#wheels_noise", "#wheels_birds")
CHANGED = ("#wheels_money", "#wheels_noise", "#wheels_cable")
GOOD = ("#wheels_birds", "#wheels_money", "#wheels_noise")
RENT = ("#wheels_noise", "#wheels_height", "#wheels_money", "#wheels_birds")
SEARCH = frozenset({"duckduckgo_results_json"})
SEALS = ("#seals_reef", "#seals_storm", "#seals_count")
TRADE = "What was Maren Holk's path in trade?"
LIFE = "Tell me about Maren Holk from childhood on."
BALLE = ("#balle_pram", "#balle_atlas")
CONVERSATION = (
    "Extract the summary from the following conversation:\n\n<convo>\n"
    "Pia: Thanks for coming up to the loft. Did you hear both brass bands at the harbour feast?\n"
    "Tor: At once, you mean. Nobody heard the ferry leave.\n"
    "Pia: It began when the young ones bought their own tuba, in spring.\n"
    "Anna: Well, the old band never said a word against it.\n"
    "Tor: And both play better since. A quarrel like that is good for music.\n"
    "Anna: Hm.\n"
    "Pia: So, one feast with two stages?\n"
    "</convo>"
)
SUMMARY = {
    "participants": [
        {"name": {"sources": "the transcript", "content": "Pia"}},
        {"name": {"sources": "the transcript", "content": "Tor"}},
        {"name": {"sources": "the transcript", "content": "Anna"}},
    ],
    "key_moments": [
        {
            "topic": "Two bands",
            "happy_moments": [],
            "tense_moments": [
                {
                    "quote": "Hm.",
                    "description": "Anna has her doubts.",
                    "expressed_preference": {"sources": "Anna", "content": "One band is enough."},
                }
            ],
            "moments_summary": "They argue whether rivalry helps.",
        }
    ],
    "insightful_quotes": [
        {
            "quote": {"sources": "Tor", "content": "A quarrel like that is good for music."},
            "speaker": "Tor",
            "analysis": "He likes contests.",
        }
    ],
    "overall_summary": "Three islanders talk about rival bands.",
    "metadata": {
        "title": "Bands",
        "location": {"sources": "Pia", "content": "the loft"},
        "duration": "five minutes",
    },
    "next_steps": ["Ask both bands."],
}

EXPECTED: dict[str, tuple[Said, ...]] = {
    "json-rag": (
        Said(
            question="An invention that healed people",
            answer="",
            pool=("#prize_scurvy", "#prize_eyes", "#prize_ribs", "#prize_dog", "#prize_bread"),
            replies=0,
        ),
    ),
    "adaptive-retrieval": (
        Said(
            question="How tall are the wind wheels of Vester?",
            answer="Ninety-two metres; the smith's one was far lower.",
            pool=(
                "#wheels_height",
                "#wheels_cable",
                "#wheels_first",
                "#wheels_money",
                "#wheels_noise",
                "#wheels_birds",
            ),
            chosen=TALL,
            prompt=TALL,
            replies=9,  # the kind, a better query, six scores, the answer
        ),
        Said(
            question="How have the wind wheels changed life on Vester?",
            answer="People earn by them, sleep worse, and sell their surplus.",
            pool=("#wheels_money", "#wheels_cable", "#wheels_noise", "#wheels_birds", "#wheels_first"),
            chosen=CHANGED,
            prompt=CHANGED,
            replies=4,  # the kind, the sub-questions, the choice, the answer
        ),
        Said(
            question="Are the wind wheels good for Vester?",
            answer="That depends: birds and guests stay away, and everybody gets a share.",
            pool=("#wheels_money", "#wheels_height", "#wheels_noise", "#wheels_birds"),
            chosen=GOOD,
            prompt=GOOD,
            replies=4,  # the kind, the viewpoints, the choice, the answer
        ),
        Said(
            question="What should I know before I rent the house below the wheels?",
            answer="You will hear them, and get your part of what they earn.",
            pool=(
                "#wheels_noise",
                "#wheels_height",
                "#wheels_birds",
                "#wheels_money",
                "#wheels_cable",
                "#wheels_first",
            ),
            chosen=RENT,
            prompt=RENT,
            replies=9,  # the kind, the query made anew, six scores, the answer
        ),
    ),
    "dartboard": (
        Said(question=CLIFF, answer="", pool=("#cliff_sea",), replies=0),
        Said(
            question=CLIFF,
            answer="",
            pool=("#cliff_sea", "#cliff_clay", "#cliff_rain"),
            chosen=("#cliff_sea", "#cliff_rain", "#cliff_clay"),
            replies=0,
        ),
    ),
    "eu-green-faq": (
        Said(
            question="When must a business of Vester report its waste?",
            answer="It is due on the last day of March, at a price for those who miss it; small inns are free of it.",
            pool=(
                "#waste_report",
                "#waste_fine",
                "#waste_glass",
                "#waste_school",
                "#waste_nets",
                "#waste_paint",
                "#waste_inn",
            ),
            chosen=("#waste_report", "#waste_fine", "#waste_inn"),
            prompt=("#waste_report", "#waste_fine", "#waste_inn"),
            replies=14,  # the clearer question, six grades for each of two searches, the summary
        ),
    ),
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
    "flare-engine": (
        Said(
            question=TRADE,
            answer=(
                "Maren Holk began with a loft for sails and little money, in 1921. "
                "In the end her former pupils bought the loft. "
            ),
            pool=("#holk_loft", "#holk_brown", "#holk_heirs"),
            prompt=("#holk_loft", "#holk_brown", "#holk_heirs"),
            replies=7,  # three pieces, of which the last is `done`; for each of two an answer, which is filled in
        ),
        Said(
            question=LIFE,
            answer="She grew up in a mill of the south, and learned to weave at Aabo, for three years. ",
            pool=("#holk_child", "#holk_school", "#holk_brown"),
            prompt=("#holk_child", "#holk_school", "#holk_brown"),
            replies=7,
        ),
        Said(
            question=TRADE,
            answer="She made sails at the quay; a brown kind sold well.",
            pool=("#holk_loft", "#holk_brown"),
            prompt=("#holk_loft", "#holk_brown"),
            replies=1,
        ),
        Said(
            question=LIFE,
            answer="She was a miller's child who mended sails, and had a loft later.",
            pool=("#holk_child", "#holk_loft"),
            prompt=("#holk_child", "#holk_loft"),
            replies=1,
        ),
    ),
    "citation-workflow": (
        Said(
            question="How is fog signalled at Vester?",
            answer="By a horn, each half minute [1]; once it was a bell [3].",
            pool=("#signal_horn", "#signal_bell"),
            prompt=("#signal_horn", "#signal_bell"),
            replies=1,
        ),
    ),
    "pydantic-query-engine": (
        Said(
            question="Who was Sten Balle?",
            answer=(
                '{"name":"Sten Balle","best_known_for":["a boat of few planks","charts"],'
                '"extra_info":"He worked at night."}'
            ),
            pool=BALLE,
            prompt=BALLE,
            replies=1,
        ),
        Said(
            question="Who was Sten Balle?",
            answer=(
                '{"name":"Balle, Sten","best_known_for":["a small boat"],'
                '"extra_info":"An islander who also mapped the sea\'s floor."}'
            ),
            pool=BALLE,
            prompt=BALLE,
            replies=1,
        ),
        Said(
            question="Which companies are mentioned in the text?",
            answer=(
                "Response 1: company_name='Holm & Lind' context_info='It made hundreds of boats.'"
                "\n---------------------\n"
                "Response 2: company_name='Sund Line' context_info='It published charts.'"
            ),
            pool=BALLE,
            prompt=BALLE,
            replies=2,  # one for each passage
        ),
    ),
    "extraction-retries": (
        Said(
            question="Does snow stay on Vester?",
            answer="Who eats our kelp needs no more help! As for snow: it stays a week at most.",
            replies=2,
        ),
        Said(
            question=f"{CONVERSATION}\n\nRemember to respond using the TranscriptSummary function.",
            answer="",
            outcome="error",
            replies=4,  # the form, and three more that are as wrong
        ),
        Said(
            question=CONVERSATION,
            answer=json.dumps(SUMMARY),
            replies=2,  # the form, and its patches
        ),
    ),
}
