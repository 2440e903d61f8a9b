"""What a person says of four applications of the seventh draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

- A list of what was found, with ranks and distances, is no answer.
- A passage that an index holds several times is one passage, found once.
- The kind of a question, better queries, sub-questions and viewpoints are a model's words on the way: no question, no answer.
- Of several searches a passage stands where it was found first. A passage that is selected by its place in their joined list
  was chosen, and the prompt of the choice, which shows beginnings of texts, is not the answer's.
- What a dartboard takes was chosen, also where it takes each text that was found, in another order.
- A model that is asked by a plain request replies as others do, where the application tells of it; so does a grader.
- Chunks of two searches that stand twice in one prompt stand there once. A comparison with a known answer is plain code.
"""

from __future__ import annotations

from tests.public.kit import Said

CLIFF = "Why does the cliff of Vester retreat?"
TALL = ("#wheels_height", "#wheels_first", "#wheels_noise", "#wheels_birds")
CHANGED = ("#wheels_money", "#wheels_noise", "#wheels_cable")
GOOD = ("#wheels_birds", "#wheels_money", "#wheels_noise")
RENT = ("#wheels_noise", "#wheels_height", "#wheels_money", "#wheels_birds")

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
}
