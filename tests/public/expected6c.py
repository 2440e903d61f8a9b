"""What a person says of four applications of the seventh draw; written before any of them ran with ragtrace.

The reasons of the earlier draws hold here too. Further ones:

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
