"""Flows whose prompts hold text that no event tells of: a function wrote it there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from tests.unit.capture.flows.kit import Flow, Prompt, Run
from tests.unit.capture.flows.silent import NAMES
from tests.unit.capture.flows.topics import ISLAND, JAPANESE, LAKE, Topic

TOWNS = (
    "Storby", "Lillby", "Tuna", "Brenn", "Näs", "Vester", "Aabo", "Skagen", "Nordby", "Ulm", "Hochwart", "Nadel", "Södra Näs",
    "Oberdorf",
)  # fmt: skip


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(texts)


def _unread(
    kind: str, topics: Sequence[Topic], texts: Callable[[int, Topic], Sequence[str]], **more: object
) -> Flow:
    """Return a flow of one prompt a run, of whose passages no event tells; `more` has functions of what is known."""
    explains = more.get("explains") or (lambda _at, _topic: ())
    holds = more.get("holds") or (lambda _at, _topic: ())
    replies = more.get("replies") or (lambda _at, topic: topic.answer)
    return Flow(
        kind,
        tuple(
            Run(
                (topic.question, *explains(at, topic)),
                (Prompt(tuple(texts(at, topic)), replies(at, topic)),),
                (("input.question", topic.question), *holds(at, topic)),
            )
            for at, topic in enumerate(topics)
        ),
    )


def rows_in_state() -> Flow:
    def rows(at: int) -> list[dict[str, object]]:
        return [
            {
                "town": TOWNS[(at + step) % 14],
                "hotel": f"Haus {NAMES[(at * 3 + step) % 14].split()[1]}",
                "rooms": 7 + at * 5 % 31 + step,
            }
            for step in range(4)
        ]

    def table(at: int) -> str:
        return "\n".join(" | ".join(map(str, row.values())) for row in rows(at))

    return _unread(
        "rows that stand in the state",
        LAKE,
        lambda at, _topic: (
            f"Answer from these rows (town | hotel | rooms):\n{table(at)}",
            f"Where is a room near {TOWNS[at]}?",
        ),
        explains=lambda at, _topic: (f"Where is a room near {TOWNS[at]}?",),
        holds=lambda at, _topic: (
            ("state.rows", " ".join(str(cell) for row in rows(at) for cell in row.values())),
        ),
        replies=lambda at, _topic: f"{rows(at)[0]['hotel']} has {rows(at)[0]['rooms']} rooms.",
    )


def fetched_page() -> Flow:
    return _unread(
        "a page that plain code fetched",
        ISLAND,
        lambda _at, topic: (
            "Somebody reads a page of the island and asks about it. Keep to the page.",
            f"Page:\n{' '.join(topic.passages)}\n\nQuestion: {topic.question}",
        ),
    )


def profile() -> Flow:
    return _unread(
        "a profile out of a database",
        LAKE,
        lambda at, topic: (
            (
                f"You help a guest of the lake. Guest: {NAMES[at]}, born {1950 + at * 3} in {TOWNS[at]}, member of the club of "
                f"{TOWNS[-at]} since {2001 + at}, owns the boat {NAMES[-at].split()[0]} of {4 + at} m at berth {at * 7 + 2}, likes "
                f"{('pike', 'eel', 'perch')[at % 3]} and {('tea', 'rye', 'pears', 'juice')[at % 4]}, paid {at * 31 + 80} crowns."
            ),
            f"Notes: {' '.join(topic.passages)}\n{topic.question}",
        ),
        explains=lambda _at, topic: topic.passages,
        replies=lambda at, topic: f"{topic.answer} Your boat lies at berth {at * 7 + 2}, {NAMES[at].split()[0]}.",
    )


def own_search() -> Flow:
    return _unread(
        "a search that a function does itself",
        LAKE,
        lambda at, topic: (
            "Answer with the results of the search, and give their numbers.",
            "Results:\n"
            + "\n".join(
                f"{number}. (score 0.{91 - at - number * 7}) {text}"
                for number, text in enumerate(topic.passages, 1)
            )
            + f"\n\nQuestion: {topic.question}",
        ),
    )


def untold_history() -> Flow:
    return _unread(
        "folded history that nobody told of",
        LAKE,
        lambda at, topic: (
            (
                f"Summary of earlier talks: the guest, a {('painter', 'nurse', 'smith', 'pilot')[at % 4]} from {TOWNS[at]}, asked "
                f"{LAKE[at - 1].question.lower()} and learned that {LAKE[at - 1].answer.lower()} Before that it was about "
                f"{ISLAND[at].question.lower()}"
            ),
            f"Notes: {' '.join(topic.passages)}\nGuest: {topic.question}",
        ),
        explains=lambda _at, topic: topic.passages,
        replies=lambda at, topic: f"{topic.answer} In {TOWNS[at]} you asked of another matter.",
    )


def file_in_input() -> Flow:
    return _unread(
        "a document in the input of the run",
        ISLAND,
        lambda _at, topic: (f"Read the document and answer.\n\n{_lines(topic.passages)}\n\n{topic.question}",),
        holds=lambda _at, topic: (("input.document", "\n".join(topic.passages)),),
    )


def service_reply() -> Flow:
    def reading(at: int) -> dict[str, object]:
        return {
            "station": TOWNS[at], "air_c": round(-3.5 + at * 1.3, 1), "water_c": round(2.1 + at * 0.7, 1), "wind_ms": at * 3 % 17,
            "gust_ms": at * 5 % 23 + 3, "ice_cm": at * 2 % 19, "sight_km": at * 4 % 11 + 1, "warning": f"gale from sector {at % 8}",
            "buoys": [at * 13 % 97, at * 17 % 89, at * 19 % 83], "keeper": NAMES[at],
        }  # fmt: skip

    return _unread(
        "the reply of a service as JSON",
        LAKE,
        lambda at, _topic: (
            f"Readings of the station:\n{json.dumps(reading(at))}",
            f"How is the weather at {TOWNS[at]}?",
        ),
        explains=lambda at, _topic: (f"How is the weather at {TOWNS[at]}?",),
        replies=lambda at, _topic: (
            f"It is {reading(at)['air_c']} °C with a {reading(at)['warning']}, says {NAMES[at]}."
        ),
    )


def context_beside() -> Flow:
    return _unread(
        "a context in the state beside passages that were found",
        LAKE,
        lambda at, topic: (
            f"Notes:\n{' '.join(topic.passages)}\n\nFrom the archive:\n{' '.join(ISLAND[at].passages)}\n\nAnswer: {topic.question}",
        ),
        explains=lambda _at, topic: topic.passages,
        holds=lambda at, _topic: (("state.archive", " ".join(ISLAND[at].passages)),),
    )


def japanese_rows() -> Flow:
    return _unread(
        "texts in Japanese that a function wrote",
        JAPANESE,
        lambda _at, topic: (
            "次の記録を読んで質問に答えてください。記録にないことは書かないでください。",
            f"記録:\n{_lines(topic.passages)}\n{topic.question}",
        ),
    )


def letters() -> Flow:
    def letter(at: int) -> str:
        return (
            f"Dear {NAMES[-at].split()[0]}, the crane at {TOWNS[at]} stood still on {at + 3} June, so that we paid {at * 45 + 300} crowns "
            f"for a barge. {' '.join(ISLAND[at].passages)[:90]}. Who bears that? Yours, {NAMES[at]}"
        )

    return _unread(
        "a letter in the input of the run",
        LAKE,
        lambda at, _topic: (
            "You answer letters for the harbour.",
            f"Letter:\n{letter(at)}\n\nWhat should we write back?",
        ),
        explains=lambda _at, _topic: ("What should we write back?",),
        holds=lambda at, _topic: (("input.letter.body", letter(at)),),
        replies=lambda at, _topic: f"We regret the crane at {TOWNS[at]} and pay {at * 45 + 300} crowns.",
    )


def remembered_facts() -> Flow:
    return _unread(
        "facts of a guest out of a store",
        ISLAND,
        lambda at, topic: (
            (
                f"What is remembered of this guest:\n- rented {('a skiff', 'a kayak', 'a cutter')[at % 3]} from {NAMES[at]} in {2010 + at}\n"
                f"- is afraid of {('fog', 'eels', 'thunder', 'geese', 'heights')[at % 5]} and sleeps at {TOWNS[at * 3 % 14]}\n"
                f"- asked last time: {LAKE[at].question}"
            ),
            f"Notes: {' '.join(topic.passages)}\n{topic.question}",
        ),
        explains=lambda _at, topic: topic.passages,
        replies=lambda at, topic: f"{topic.answer} It is near {TOWNS[at * 3 % 14]}, where you sleep.",
    )


def short_fact() -> Flow:
    return _unread(
        "a few words that a function wrote",
        LAKE,
        lambda at, topic: (
            f"Answer from the notes. Weather now at the pier: {('sunny', 'fog', 'sleet')[at % 3]}, {at - 4} °C, wind {at * 3 % 17} m/s.",
            f"{' '.join(topic.passages)}\n{topic.question}",
        ),
        explains=lambda _at, topic: topic.passages,
    )


def one_handbook() -> Flow:
    handbook = " ".join(text for topic in ISLAND for text in topic.passages)
    return _unread(
        "one handbook for all questions",
        ISLAND,
        lambda _at, topic: (f"The handbook of the island:\n{handbook}\n\nAnswer from it.", topic.question),
    )


UNREAD = (
    rows_in_state(), fetched_page(), profile(), own_search(), untold_history(), file_in_input(), service_reply(), context_beside(),
    japanese_rows(), letters(), remembered_facts(), short_fact(), one_handbook(),
)  # fmt: skip
