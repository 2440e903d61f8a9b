"""Flows in whose prompts all text is known: it was found, said, asked, or belongs to the template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from textwrap import wrap

from tests.unit.capture.flows.kit import Flow, Prompt, Run
from tests.unit.capture.flows.topics import CHINESE, GERMAN, ISLAND, JAPANESE, LAKE, THAI, Topic

RULES = """You are the desk of the lake's tourist office. You speak for the office, never for the town or for its council.
Read the notes below with care before you say anything. Each note was written by one of our rangers and checked by another.
1. Say only what the notes say. Where two of them disagree, give both, the younger one first.
2. Where no note tells, answer that the office does not know, and name the ranger's hut as the place to ask.
3. Give numbers with their units, as they were measured. Do not turn metres into feet, or crowns into other money.
4. Never promise weather, the strength of ice, or a free place in a boat. People have drowned for less.
5. Guests may write in any language. Answer in theirs, in at most three sentences, and leave out greetings.
6. Do not mention these rules, the notes, or that you are a program, unless somebody asks you in earnest.
7. Words in capitals are names of huts and boats. Leave them as they stand.
8. If somebody is in danger, tell them to call 112 at once, and stop there.
After the answer, in a line of its own, name the note that you leaned on most, in brackets."""

EXAMPLES = """Here is how the office answers.
Guest: Are dogs allowed on the steamer? Office: On the upper deck they are, with a leash no longer than a metre.
Guest: Do I need boots for the gorge? Office: You do until the end of May, since meltwater stands in the tunnel.
Guest: Is the tower open on Mondays? Office: It is shut on Mondays, and on each day with a gale warning.
Reply with JSON that fits this schema: {"type": "object", "properties": {"answer": {"type": "string", "description":
"what the office says, in at most three sentences"}, "sure": {"type": "boolean", "description": "whether a note says it"}},
"required": ["answer", "sure"]}"""

CHOSEN = (
    "Q: Which bus goes to the falls on a Sunday? A: Line 12 goes there twice, at ten and at three.",
    "Q: May children steer a pedal boat by themselves? A: From the age of twelve on, in sight of the pier.",
    "Q: Where can a phone be charged near the beach? A: The kiosk has four sockets under its counter.",
    "Q: Is there a lift to the castle's upper court? A: A slow one, for which the porter keeps the key.",
    "Q: How warm is the outdoor pool in September? A: Nineteen degrees, as long as the sun shines on its roof.",
    "Q: What is played at the village theatre this summer? A: A comedy about two millers and one donkey.",
)

NAMES = (
    "Anna Berg", "Jon Platter", "Ida Kofler", "Per Dahl", "Maja Holm", "Ove Lund", "Else Ravn",
    "Bodil Krag", "Jens Toft", "Inger Holm", "Ebba Lund", "Rut Åkesson", "Olof Rask", "Tove Berg",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(texts)


def _numbered(passages: Sequence[str]) -> str:
    return "\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1))


def _plain(
    kind: str, topics: Sequence[Topic], texts: Callable[[int, Topic], Sequence[str]], **more: object
) -> Flow:
    """Return a flow of one prompt a run; `more` has functions of what else is explained, and of held values."""
    explains = more.get("explains") or (lambda _at, _topic: ())
    holds = more.get("holds") or (lambda _at, _topic: ())
    return Flow(
        kind,
        tuple(
            Run(
                (topic.question, *topic.passages, *explains(at, topic)),
                (Prompt(tuple(texts(at, topic)), topic.answer),),
                (("input.question", topic.question), *holds(at, topic)),
            )
            for at, topic in enumerate(topics)
        ),
    )


def long_system() -> Flow:
    return _plain(
        "a long system prompt",
        LAKE,
        lambda _at, topic: (RULES, f"Notes:\n{_numbered(topic.passages)}\n\nGuest: {topic.question}"),
        holds=lambda _at, topic: (("state.context", _numbered(topic.passages)),),
    )


def static_examples() -> Flow:
    return _plain(
        "static examples and a schema",
        LAKE,
        lambda _at, topic: (f"{EXAMPLES}\n\nNotes: {' '.join(topic.passages)}\n\nGuest: {topic.question} Office:",),
    )


def chosen_examples() -> Flow:
    return _plain(
        "examples chosen for each question",
        ISLAND,
        lambda at, topic: (
            "Answer as these examples do.\n"
            + "\n".join(CHOSEN[(at * step + at // 3) % len(CHOSEN)] for step in (1, 5))
            + f"\nUse this context:\n{' '.join(topic.passages)}\nQ: {topic.question} A:",
        ),
    )


def dates() -> Flow:
    return _plain(
        "dates",
        LAKE,
        lambda at, topic: (
            (
                f"You help guests of the lake. It is {DAYS[at * 3 % 7]}, {at * 11 % 28 + 1} March 2026, {at % 12 + 8}:{at * 7 % 60:02} "
                f"(CET). The office closes at 18:00 today and opens again on {DAYS[(at * 3 + 1) % 7]}. Use the notes and nothing else."
            ),
            f"{_numbered(topic.passages)}\n\n{topic.question}",
        ),
    )


def names() -> Flow:
    return _plain(
        "names of users",
        LAKE,
        lambda at, topic: (
            (
                f"You talk with {NAMES[at]}, who is logged in as {NAMES[at].split()[0].lower()}.{at * 37 % 100}. Be kind to "
                f"{NAMES[at].split()[0]}, and answer from the notes alone. Session 7f{at * 7919 % 65536:04x}."
            ),
            f"Notes:\n{_numbered(topic.passages)}\n\n{NAMES[at]} asks: {topic.question}",
        ),
        holds=lambda at, _topic: (("input.user", NAMES[at]),),
    )


def _metadata(at: int, number: int) -> dict[str, object]:
    return {
        "source": f"guides/{at * 3 + number}.md",
        "page": at + number,
        "heading": f"Chapter {number} of guide {at}",
    }


def _told(at: int, topic: Topic) -> list[str]:
    """Return the metadata of a topic's passages, each value by itself."""
    return [str(one) for number in range(len(topic.passages)) for one in _metadata(at, number).values()]


def json_frames() -> Flow:
    def texts(at: int, topic: Topic) -> list[str]:
        shown = [
            {
                "id": f"p-{at}-{number}",
                "score": round(0.91 - number / 13 - at / 99, 4),
                **_metadata(at, number),
                "text": text,
            }
            for number, text in enumerate(topic.passages)
        ]
        return [f"Answer from these documents, and cite ids.\n{json.dumps(shown)}", topic.question]

    return _plain("passages in JSON", LAKE, texts, explains=_told)


def xml_frames() -> Flow:
    def texts(at: int, topic: Topic) -> list[str]:
        shown = "\n".join(
            f'<document index="{number}" source="{_metadata(at, number)["source"]}">\n<text>'
            + text.replace("&", "&amp;").replace('"', "&quot;").replace("'", "&#x27;")
            + "</text>\n</document>"
            for number, text in enumerate(topic.passages)
        )
        return [
            "Answer from the documents.",
            f"<documents>\n{shown}\n</documents>\n<question>{topic.question}</question>",
        ]

    return _plain("passages in XML", LAKE, texts, explains=_told)


def cut_passages() -> Flow:
    return _plain(
        "passages that were cut",
        LAKE,
        lambda _at, topic: (
            "Snippets of pages, cut to fit:\n"
            + "\n".join(f"- {text[:57]}..." for text in topic.passages)
            + f"\nWhat do they say to this? {topic.question}",
        ),
    )


def wrapped_passages() -> Flow:
    def quoted(text: str) -> str:
        return "\n".join(f"> {line}" for line in wrap(" ".join(text.split()).replace("–", "-"), 34))

    return _plain(
        "passages squeezed and wrapped anew",
        LAKE,
        lambda _at, topic: (
            "Quotations of the guide stand behind marks.",
            "\n\n".join(map(quoted, topic.passages)) + f"\n\nGuest: {topic.question}",
        ),
    )


def known_history() -> Flow:
    def told(at: int) -> list[str]:
        return [text for topic in LAKE[max(0, at - 3) : at] for text in (topic.question, topic.answer)]

    def texts(at: int, topic: Topic) -> list[str]:
        lines = [f"{'Guest' if turn % 2 == 0 else 'Office'}: {text}" for turn, text in enumerate(told(at))]
        return [f"The talk so far:\n{_lines(lines)}\n\nNotes:\n{' '.join(topic.passages)}", topic.question]

    return _plain(
        "known history",
        LAKE,
        texts,
        explains=lambda at, _topic: told(at),
        holds=lambda at, _topic: (("input.chat_history", "\n".join(told(at))),),
    )


def folded_history() -> Flow:
    runs = []
    for at, topic in enumerate(LAKE):
        before = [text for one in LAKE[max(0, at - 2) : at] for text in (one.question, one.answer)]
        summary = (
            f"The guest first wanted to know about {LAKE[at - 1].question.rstrip('?').lower()}, and heard that "
            f"{LAKE[at - 1].answer.lower()} Then the talk turned to {topic.question.split()[-1].rstrip('?')} in general."
        )
        fold = Prompt(
            ("Fold this talk into two sentences, and keep all numbers:\n" + "\n".join(before),),
            summary,
            "desk/fold",
        )
        answer = Prompt(
            (
                f"Of the talk so far: {summary}\nNotes: {' '.join(topic.passages)}\nAnswer the guest.",
                topic.question,
            ),
            topic.answer,
        )
        runs.append(
            Run(
                (topic.question, *topic.passages, *before),
                (fold, answer),
                (("state.summary", summary), ("input.question", topic.question)),
            )
        )
    return Flow("history that a model of this run folded", tuple(runs))


def summaries() -> Flow:
    runs = []
    for at, topic in enumerate(LAKE):
        said = [
            f"In short, this one says of {topic.question.rstrip('?').split(' ', 1)[1]}: {' '.join(text.split()[2:9])}, as of year {at}."
            for text in topic.passages
        ]
        maps = [
            Prompt(
                (f"Sum up this note for the desk in one sentence, without opinions of yours:\n{text}",),
                reply,
                "desk/map",
            )
            for text, reply in zip(topic.passages, said, strict=True)
        ]
        refined = Prompt(
            (f"Join these summaries into one answer.\n{_lines(said)}\n\nGuest: {topic.question}",),
            topic.answer,
            "desk/reduce",
        )
        last = Prompt(
            (
                f"The answer so far is: {topic.answer}\nMake it better with this note, or leave it: {topic.passages[0]}\n{topic.question}",
            ),
            topic.answer,
            "desk/refine",
        )
        runs.append(
            Run((topic.question, *topic.passages), (*maps, refined, last), (("state.summaries", " ".join(said)),))
        )
    return Flow("summaries by models", tuple(runs))


def japanese() -> Flow:
    return _plain(
        "Japanese",
        JAPANESE,
        lambda _at, topic: (
            "あなたは市立図書館の案内係です。次の資料だけを使い、丁寧な言葉で短く答えてください。資料にないことは分からないと言ってください。",
            f"資料:\n{_lines(f'・{text}' for text in topic.passages)}\n\n質問: {topic.question}\n回答:",
        ),
    )


def chinese() -> Flow:
    return _plain(
        "Chinese",
        CHINESE,
        lambda at, topic: (
            f"你是图书馆的咨询员。今天是二〇二六年三月{'一二三四五六七八九'[at % 9]}日。请只根据下面的资料回答读者的问题，不要编造，最多两句话。",
            f"资料：{''.join(topic.passages)}\n读者：{topic.question}",
        ),
    )


def thai() -> Flow:
    return _plain(
        "Thai",
        THAI,
        lambda _at, topic: (
            (
                f"คุณเป็นเจ้าหน้าที่ห้องสมุด ตอบคำถามจากข้อความต่อไปนี้เท่านั้น ถ้าไม่รู้ให้บอกว่าไม่รู้\n\nข้อความ: {' '.join(topic.passages)}"
                f"\n\nคำถาม: {topic.question}\nคำตอบ:"
            ),
        ),
    )


TEMPLATES = (
    "Guests of the lake ask about fish and fishing. Be exact about days, sizes and licences, since wardens read along. Notes: {notes}",
    "Somebody asks about ice. Remember that lives hang on it: say who measured, where and when, and send doubters home. Notes: {notes}",
    "This is a question on the history of our towns. Tell it as to a child of ten, with one number at most. Notes: {notes}",
)


def several_templates() -> Flow:
    return _plain(
        "several templates of one step",
        LAKE,
        lambda at, topic: (
            TEMPLATES[at * 5 % 3 if at % 4 else 0].format(notes=_numbered(topic.passages)),
            topic.question,
        ),
        holds=lambda at, _topic: (("state.route", ("fish", "ice", "towns")[at * 5 % 3 if at % 4 else 0]),),
    )


def two_languages() -> Flow:
    mixed = [GERMAN[at] if at % 3 == 1 else LAKE[at] for at in range(14)]
    english = (
        "You work at the desk of a town by a lake. Use the notes below, and say so where they do not tell. Notes:"
    )
    german = "Du arbeitest an der Auskunft einer Stadt am See. Nimm nur die folgenden Notizen, und sag es, wenn sie schweigen. Notizen:"
    return _plain(
        "prompts in two languages",
        mixed,
        lambda at, topic: (f"{german if at % 3 == 1 else english} {' '.join(topic.passages)}", topic.question),
    )


def numbered_passages() -> Flow:
    def texts(at: int, topic: Topic) -> list[str]:
        shown = "\n\n".join(
            f"--- Passage {number + 1} of {len(topic.passages)} ---\nSource: {_metadata(at, number)['source']}\nPage: "
            f"{_metadata(at, number)['page']}\nHeading: {_metadata(at, number)['heading']}\nRelevance: 0.{97 - at - number * 9}\n{text}"
            for number, text in enumerate(topic.passages)
        )
        return ["Cite the numbers of passages.", f"{shown}\n\nQuestion: {topic.question}"]

    return _plain("metadata lines above numbered passages", LAKE, texts, explains=_told)


def tool_results() -> Flow:
    runs = []
    for at, topic in enumerate(ISLAND):
        head = (
            "Answer the question as well as you can. You may use these tools: guide(words): looks into the guide of the island. "
            "Write Thought, Action, Action Input, and then wait for the Observation. End with Final Answer.\n"
            f"Question: {topic.question}\n"
        )
        call = (
            f"Thought: I do not know this by heart, and look for what the guide has.\nAction: guide\nAction Input: "
            f"{topic.question.rstrip('?').lower()} on the island, chapter {at}"
        )
        found = "\n".join(topic.passages)
        runs.append(
            Run(
                (topic.question, found, f"{topic.question.rstrip('?').lower()} on the island, chapter {at}"),
                (
                    Prompt((head,), call, "agent"),
                    Prompt(
                        (f"{head}{call}\nObservation: {found}\nThought:",), f"Final Answer: {topic.answer}", "agent"
                    ),
                ),
                (("input.input", topic.question),),
            )
        )
    return Flow("results of tools as text", tuple(runs))


def given_instructions() -> Flow:
    style = (
        "Write as the harbour master would: short, dry and without flattery. Name the boat or the quay first, then the hour, "
        "then the price. Never use the word please, and never end with a question."
    )
    return _plain(
        "the same instructions in the input of each run",
        ISLAND,
        lambda _at, topic: (style, f"Notes: {' '.join(topic.passages)}", topic.question),
        holds=lambda _at, _topic: (("input.style", style),),
    )


def sub_questions() -> Flow:
    runs = []
    for at, topic in enumerate(LAKE):
        asked = [
            f"What is known at the lake of part {number} of this: {topic.question[:-1].lower()}, in year {at}?"
            for number in (1, 2)
        ]
        parts = [f"Of part {number} the notes of the lake say {topic.answer.lower()[:40]}" for number in (1, 2)]
        plan = Prompt(
            ("Split the question into two.", topic.question), json.dumps({"questions": asked}), "desk/plan"
        )
        answers = [
            Prompt(
                (f"Use the note to answer.\nNote: {topic.passages[number]}\nQuestion: {asked[number]}",),
                parts[number],
                "desk/part",
            )
            for number in (0, 1)
        ]
        pairs = "\n".join(f"Sub-question: {one}\nResponse: {two}" for one, two in zip(asked, parts, strict=True))
        last = Prompt(
            (
                f"Context of all parts:\n{pairs}\n---\nGiven it, and nothing you knew before, answer: {topic.question}",
            ),
            topic.answer,
        )
        runs.append(
            Run(
                (topic.question, *topic.passages),
                (plan, *answers, last),
                (("state.questions", " ".join(asked)), ("state.parts", pairs)),
            )
        )
    return Flow("questions that a model split, with their answers", tuple(runs))


SILENT = (
    long_system(), static_examples(), chosen_examples(), dates(), names(), json_frames(), xml_frames(), cut_passages(),
    wrapped_passages(), known_history(), folded_history(), summaries(), japanese(), chinese(), thai(), several_templates(),
    two_languages(), numbered_passages(), tool_results(), given_instructions(), sub_questions(),
)  # fmt: skip
