"""This turn of a conversation: its question, and what was said in it and in no turn before.

A graph with a checkpointer begins with what earlier turns left in its state, and gives it all out again at its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage

from ragtrace.capture import ANSWER_FIELDS, is_equal, is_verdict
from ragtrace_langchain.documents import fields_of
from ragtrace_langchain.langgraph import is_command
from ragtrace_langchain.messages import content_text, conversation_in, question_in, turn_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


_MESSAGES = "messages"
_DEPTH = 3  # of an input's mappings in mappings


@dataclass(slots=True)
class Beginning:
    """State of a graph before its first step, by the names of the fields.

    `is_past` is True once a step has ended: later states hold what this run wrote. `whole` has each field as the
    first step has it that is given the state, and not a part that was sent to it.
    """

    fields: dict[object, object] = field(default_factory=dict)
    whole: dict[object, object] = field(default_factory=dict)
    is_past: bool = False

    def note(self, state: Mapping[object, object]) -> None:
        """Take the state that a first step is given; of parallel first steps each may be given a part."""
        if not self.is_past:
            for key, value in state.items():
                self.fields.setdefault(key, value)


def is_resumption(inputs: object) -> bool:
    """Tell whether a graph is called to go on with its saved state: with ``None`` or a ``Command``.

    Example:
        >>> is_resumption(None), is_resumption({"question": "Where?"})
        (True, False)
    """
    return inputs is None or is_command(inputs)


# -- the question --

# Names of fields with a question, the surest first; a text that the program wrote itself is none of a person's.
_ASKING = tuple(
    re.compile(words, re.IGNORECASE)
    for words in (
        "question|^(?:\\w*_)?(?:\\w*frage|pregunta|domanda|pergunta|vraag|質問|問題|问题)$",
        "message|utterance|inquir|enquir|nachricht|anliegen|demande|consulta|mensaje|メッセージ|お問い合わせ",
        "query|request|ask|prompt|input|eingabe|入力",
    )
)
_NOT_ASKED = re.compile(
    "(?:^|_)(?:ids?|type|kind|count|number|lang\\w*|system|search|sub|follow|next|new|standalone|condensed|generated"
    "|sprache|langue|idioma|suchanfrage|rewritten|rephrased|reformulated|refined|improved|better|transformed|expanded|hypothetical|previous|last|old)"
    "(?:_|$)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    "answer|response|reply|draft|summar|title|plan|context|prompt|instruct|tone|style|antwort", re.IGNORECASE
)
_MARKS = ("?", "\uff1f", "\u061f", "か。", "か")  # of questions; Japanese writes a particle
_STATE_KEYS = ("question", "user_question", "user_query", "user_input")


def question_in_state(state: Mapping[object, object]) -> str:
    """Return the question that a graph's saved state holds, "" when there is none to be seen.

    Nodes write queries into the state too, so that fewer names count than in an input. Of the messages it is the
    last of a person; agents write under a person's role with a name.

    Example:
        >>> question_in_state({"messages": [("user", "Where?"), ("assistant", "One moment.")], "query": "lab city"})
        'Where?'
    """
    for key in _STATE_KEYS:
        if isinstance(value := state.get(key), str) and value.strip():
            return value
    messages = state.get(_MESSAGES)
    if not isinstance(messages, list):
        asked = [turn.content for turn in conversation_in(state) if turn.role == "user"]
        return asked[-1] if asked else ""
    return question_in([one for one in messages if not getattr(one, "name", None)]) or question_in(messages)


def question_among(inputs: object, queries: Sequence[str]) -> str:
    """Return the question among the texts of an input or a state that names it in its own way, else "".

    It is the text that a retriever was asked with, else the one whose name says that it asks, else the only one
    that ends with a question mark, else, where no retriever was asked, the only one of several words that is no
    draft and no instruction.

    Example:
        >>> given = {"customer_note": "Returns", "lang": "de"}
        >>> question_among(given, ["Returns"]), question_among(given, ["return window"])
        ('Returns', '')
        >>> question_among({"customer_message": "Returns", "lang": "de"}, [])
        'Returns'
    """
    texts = _texts_in(inputs)
    asked = [(name, text) for name, text in texts if text.strip() in queries]
    asked = asked or [(name, text) for name, text in texts if " " in text.strip() and _is_in(text, queries)]
    for some in (asked, texts):
        for words in _ASKING:
            named = [text for name, text in some if words.search(name) and not _NOT_ASKED.search(name)]
            if len(named) == 1:
                return named[0]
        marked = [text for _, text in some if text.rstrip().endswith(_MARKS)]
        if len(marked) == 1:
            return marked[0]
        if some is asked and asked:
            return asked[0][1]
    written = [text for name, text in texts if " " in text.strip() and not _NOT_ASKED.search(name)]
    told = [text for name, text in texts if text in written and not _TOLD.search(name)]
    return told[0] if len(told) == 1 and not queries else ""


def _is_in(text: str, queries: Sequence[str]) -> bool:
    return any(text.strip() in query for query in queries)


def has_texts(inputs: object) -> bool:
    """Tell whether an input has a text of its own, in which the question may be."""
    return bool(_texts_in(inputs))


def _texts_in(inputs: object, depth: int = 0) -> list[tuple[str, str]]:
    """Return the texts in an input with the names of their fields; not those of messages and documents."""
    found: list[tuple[str, str]] = []
    for name, value in (fields_of(inputs) or {}).items():
        if isinstance(value, str):
            if value.strip():
                found.append((str(name), value))
        elif depth < _DEPTH:
            found += _texts_in(value, depth + 1)
    return found


# -- the answer --


def of_this_turn(
    outputs: object, began: Mapping[object, object], said: Collection[str], *, is_draft_kept: bool = False
) -> object:
    """Return a root's output without what the run began with: earlier messages, and answers that were there before.

    Args:
        outputs: the root's output.
        began: what the state or the input held at the beginning, by the names of the fields.
        said: texts that the models of this run said; these are of this turn, whatever was there before.
        is_draft_kept: an answer that was there before is one that a person approved; it is kept.

    Example:
        >>> of_this_turn({"answer": (old := "In Oslo."), "docs": []}, {"answer": old}, said=())
        {'docs': []}
    """
    before = _texts_before(began)
    if isinstance(outputs, dict):
        kept: dict[object, object] = {}
        for key, value in outputs.items():
            earlier = began.get(key)
            if key == _MESSAGES or _are_messages(value):
                kept[key] = new_messages(value, earlier, before, said) if isinstance(value, list) else value
            elif is_draft_kept or key not in ANSWER_FIELDS or not _is_earlier(value, earlier, before, said):
                kept[key] = value
        return kept
    if isinstance(outputs, list) and _are_messages(outputs):
        return new_messages(outputs, began.get(_MESSAGES), before, said)
    return None if _is_earlier(outputs, None, before, said) else outputs


def new_messages(
    messages: Iterable[object], earlier: object, before: Mapping[int, str], said: Collection[str]
) -> list[object]:
    """Return the messages that were not there before; without an earlier state, those behind the last of a person.

    A message of an assistant's whose text is that of an earlier answer is a copy of it, and no new one.
    """
    every = list(messages)
    if isinstance(earlier, list | tuple):
        known = [_key(one) for one in earlier]
        keys = [_key(one) for one in every]
        new = every[len(known) :] if keys[: len(known)] == known else None
        if new is None:
            new = [one for one, key in zip(every, keys, strict=True) if key not in known]
    else:
        asked = [at for at, one in enumerate(every) if _is_asked(one)]
        new = every[asked[-1] + 1 :] if asked else every
    return [one for one in new if not (isinstance(one, BaseMessage) and _is_copy(one.content, before, said))]


def _is_asked(message: object) -> bool:
    turn = turn_of(message)
    return turn is not None and turn.role == "user" and not getattr(message, "name", None)


def _key(message: object) -> object:
    """Return what tells a message from others: its id, else its role and text."""
    if isinstance(message, BaseMessage) and message.id:
        return message.id
    turn = turn_of(message)
    return id(message) if turn is None else (turn.role, turn.content)


def _are_messages(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, BaseMessage) for one in value)


def _texts_before(began: Mapping[object, object]) -> dict[int, str]:
    """Return the texts of answers and messages that were there before, by their identity.

    A node that copies an answer hands the same object on; the same words from a template are another one.
    """
    found = {id(value): value for key, value in began.items() if key in ANSWER_FIELDS and isinstance(value, str)}
    messages = began.get(_MESSAGES)
    for message in messages if isinstance(messages, list | tuple) else ():
        if isinstance(content := getattr(message, "content", None), str):
            found[id(content)] = content
    return found


def _is_earlier(value: object, earlier: object, before: Mapping[int, str], said: Collection[str]) -> bool:
    if isinstance(value, str):
        return _is_copy(value, before, said)
    if isinstance(value, BaseMessage):
        return value is earlier or _is_copy(value.content, before, said)
    if isinstance(value, list):
        return isinstance(earlier, list) and bool(value) and is_equal(value, list(earlier))
    return value is not None and value is earlier


def _is_copy(text: object, before: Mapping[int, str], said: Collection[str]) -> bool:
    return isinstance(text, str) and bool(text) and id(text) in before and text.strip() not in said


# -- answers of branches --

# Names of texts that a program makes beside an answer.
_BESIDE = re.compile(
    "title|topic|follow|suggest|tags?$|keyword|summary|critique|review|feedback|quer|question|language|intent|categor"
    "|sql|plan$|titel|thema|kritik|frage|zusammenfassung|stichw|titre|sujet|résumé|título|resumen",
    re.IGNORECASE,
)


def last_spoken(fields: Mapping[object, object], spoken_at: Mapping[str, int]) -> dict[object, object]:
    """Return the fields of a graph's state without the texts of models that a later step's text stands behind.

    Args:
        fields: what the graph gave out.
        spoken_at: the texts of models that its steps gave out, with the numbers of the steps.

    Example:
        >>> state = {"plan": "Look it up.", "reply": "In Oslo.", "title": "Oslo"}
        >>> last_spoken(state, {"Look it up.": 1, "In Oslo.": 2, "Oslo": 3})
        {'reply': 'In Oslo.'}
    """
    steps = {key: spoken_at[text] for key, text in fields.items() if isinstance(text, str) and text in spoken_at}
    told = {key: number for key, number in steps.items() if not _BESIDE.search(str(key))} or steps
    last = max(told.values(), default=0)
    return {key: value for key, value in fields.items() if key not in steps or told.get(key) == last}


def branch_answers(
    outputs: object, said: Collection[str], prompts: Sequence[str], queries: Collection[str]
) -> list[str]:
    """Return the texts of an output that models of this run said, and that no other model or retriever was given.

    One that has all of them in it, as a report of its sections, stands for them.

    Example:
        >>> said = {"In Oslo.", "In Norway.", "lab city"}
        >>> branch_answers({"short": "In Oslo.", "long": "In Norway."}, said, [], [])
        ['In Norway.', 'In Oslo.']
        >>> branch_answers({"query": "lab city", "reply": "In Oslo."}, said, [], ["lab city"])
        ['In Oslo.']
    """
    leaves = list(_leaves(outputs))
    spoken = sorted({text for text in leaves if text.strip() in said and text.strip() not in queries})
    spoken = [text for text in spoken if not is_verdict(text)] or spoken
    last = [text for text in spoken if not any(text in prompt for prompt in prompts)] or spoken
    if len(last) > 1:
        whole = sorted(text for text in set(leaves) - {*last} if all(_is_part(one, text) for one in last))
        return whole[:1] or last
    return last


def _is_part(text: str, whole: str) -> bool:
    """Tell whether a text is in another one, perhaps without a heading."""
    head, _, rest = text.partition("\n")
    return text in whole or (head.startswith("#") and len(rest.strip()) > 1 and rest.strip() in whole)


def _leaves(value: object, depth: int = 0) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseMessage):
        if isinstance(value, AIMessage):
            yield content_text(value.content)
    elif depth <= _DEPTH and not _are_messages(value):  # those of a conversation follow each other
        parts = value if isinstance(value, list | tuple) else (fields_of(value) or {}).values()
        for part in parts:
            yield from _leaves(part, depth + 1)
