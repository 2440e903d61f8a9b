"""This turn of a conversation: its question, the turns before it, and what it answered.

A graph with a checkpointer begins with what earlier turns left in its state, and gives it all out again at its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from msgspec.structs import replace

from ragtrace.capture.content_blocks import content_text, json_of, said_text
from ragtrace.capture.guard import is_equal
from ragtrace.capture.messages import before_question, spoken
from ragtrace.capture.model_calls import answer_field
from ragtrace.capture.names import ANSWER_FIELDS, API_ROLE_OF, API_ROLES, EARLIER_KEYS, HISTORY_KEYS, QUESTION_KEYS
from ragtrace.capture.values import Doc, Opaque, Prompt, Steer, Turn, fields_of, mapping_of
from ragtrace.model import Call, Message
from ragtrace.text import MAX_NAME_CHARS, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_DEPTH = 4  # of containers in containers, for cyclic ones
_MESSAGES = "messages"


# -- questions, answers and turns in a value --


def question_in(inputs: object) -> str:
    """Return the question in a root run's input, "" when there is none to be seen.

    A text, a message, a list of messages (the last human one), a prompt value, or a dict with one of those
    under ``question``, ``query``, ``input`` or ``messages``, with one list of messages, or with one text only.

    Example:
        >>> question_in({"input": "Where?", "chat_history": []})
        'Where?'
        >>> question_in({"messages": [("user", "Where?")]})
        'Where?'
    """
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, dict):
        return _question_under_keys(inputs)
    value = inputs.turns if type(inputs) is Prompt else inputs
    for part in reversed(value) if isinstance(value, list | tuple) and not _is_pair(value) else (value,):
        turn = turn_of(part)
        if turn is not None and turn.role == "user":
            blocks = part["content"] if isinstance(part, dict) else getattr(part, "content", None)
            return said_text(blocks) or turn.content
    return ""


def _question_under_keys(inputs: Mapping[object, object]) -> str:
    for key in (*QUESTION_KEYS, _MESSAGES):
        value = inputs.get(key)
        if value is not None and not isinstance(value, dict) and (found := question_in(value)):
            return found
    talk = conversation_in(inputs)
    if talk and talk[-1].role == "user":
        return talk[-1].content
    return only_text(inputs)


def conversation_in(fields: Mapping[object, object]) -> tuple[Message, ...]:
    """Return the turns of the one list of messages among fields, under a name of the application's own.

    Those under ``messages`` are not meant, nor earlier turns under the names that LangChain's chains have for them.

    Example:
        >>> [turn.content for turn in conversation_in({"talk": [("user", "Where?")], "lang": "en"})]
        ['Where?']
        >>> conversation_in({"chat_history": [("user", "Where?")]})
        ()
    """
    found = [
        turns
        for name, part in fields.items()
        if isinstance(part, list) and part and name != "messages" and name not in EARLIER_KEYS
        if len(turns := turns_in(part)) == len(part) and any(turn.role == "user" for turn in turns)
        if all(turn.role in API_ROLES for turn in turns)
    ]
    return found[0] if len(found) == 1 else ()


def history_in(inputs: object) -> tuple[Message, ...]:
    """Return the turns before the question, oldest first; system messages are not among them.

    Example:
        >>> [m.content for m in history_in([("user", "Hi"), ("assistant", "Hello"), ("user", "Where?")])]
        ['Hi', 'Hello']
    """
    if isinstance(inputs, dict):
        for key in HISTORY_KEYS:
            turns = turns_in(inputs.get(key))
            if turns:
                return before_question(turns) if key == "messages" else spoken(turns)
        return before_question(conversation_in(inputs))
    return before_question(turns_in(inputs))


def recalled_in(inputs: object, asked: object) -> tuple[Message, ...]:
    """Return the earlier turns that a framework's memory put into an inner step's input, oldest first.

    They are messages under ``chat_history`` or ``history``, or before the question in any list that ends with it;
    other lists may be examples for the model. `asked` is the root's input.

    Example:
        >>> talk = (("user", "Hi"), ("assistant", "Hello"), ("user", "Where?"))
        >>> state = {"messages": [Turn(role, text) for role, text in talk]}
        >>> [turn.content for turn in recalled_in(state, "Where?")]
        ['Hi', 'Hello']
    """
    parts = inputs.items() if isinstance(inputs, dict) else (("messages", inputs),)
    for key, part in parts:
        if not (isinstance(part, list) and part and type(part[0]) is Turn):
            continue
        turns = turns_in(part)
        if key in HISTORY_KEYS and key != "messages":
            return spoken(turns)
        if question_in(part) == question_in(asked):
            return before_question(turns)
    return ()


def turns_in(value: object, *, is_prompt: bool = False) -> tuple[Message, ...]:
    """Return the messages in a value: a message, a list of them, a prompt value; pairs and dicts count too.

    Of a prompt, the documents in blocks are told too.

    Example:
        >>> turns_in([{"role": "user", "content": "Hi"}])
        (Message(role='user', content='Hi'),)
    """
    if type(value) is Prompt:
        value = value.turns
    if isinstance(value, list | tuple) and not _is_pair(value):
        return tuple(turn for part in value if (turn := turn_of(part, is_prompt=is_prompt)) is not None)
    one = turn_of(value, is_prompt=is_prompt)
    return () if one is None else (one,)


def turn_of(value: object, *, is_prompt: bool = False) -> Message | None:
    """Return one message with its role in words of the API (user, assistant, system, tool), else None.

    Example:
        >>> turn_of(("human", "Hi"))
        Message(role='user', content='Hi')
        >>> turn_of(Turn("assistant", calls=[{"name": "search", "args": {"q": "lab"}, "id": "1"}])).shown
        'search({"q": "lab"})'
    """
    if type(value) is Turn:
        return Message(
            role=value.role,
            content=content_text(value.content, is_prompt=is_prompt),
            calls=tuple(map(_call, value.calls)),
            call_id=value.call_id,
        )
    if _is_pair(value):
        return Message(role=role_named(value[0]), content=value[1])
    if isinstance(value, dict) and "role" in value and "content" in value:
        return Message(role=role_named(value["role"]), content=content_text(value["content"], is_prompt=is_prompt))
    return None


def _is_pair(value: object) -> TypeGuard[tuple[str, str]]:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value)


def role_named(name: object) -> str:
    """Return the API's word for a role that a framework names; "user" for what is no name.

    Example:
        >>> role_named("human"), role_named("critic")
        ('user', 'critic')
    """
    return API_ROLE_OF.get(name, name) if isinstance(name, str) else "user"


def _call(call: Mapping[str, object]) -> Call:
    given = call["args"]
    arguments = given if isinstance(given, str) else json_of(given)
    return Call(
        name=shown(call["name"]),
        arguments=arguments,
        id=name if isinstance(name := call.get("id"), str) and name else None,
    )


def answer_in(outputs: object, depth: int = 0) -> str | None:
    """Return the answer in a root run's output, None when there is none to be seen.

    A text, a message, the last assistant message of a list, a dict or object with ``answer``, ``output``,
    ``result``, ``response`` and the like, a state with ``messages``, or another object, as JSON.

    Example:
        >>> answer_in({"question": "Where?", "answer": "In Oslo."})
        'In Oslo.'
        >>> answer_in({"context": []}) is None
        True
    """
    if isinstance(outputs, str):
        return outputs
    if outputs is None or depth > _DEPTH:
        return None
    if type(outputs) is Turn:
        return content_text(outputs.content)
    if type(outputs) is Opaque:
        return outputs.answer
    if isinstance(outputs, list | tuple):
        return _last_said(outputs)
    if (fields := mapping_of(outputs)) is not None:
        answer = _answer_under_keys(fields, depth)
        return structured_text(outputs) if answer is None and depth else answer  # a root's dict is a state
    answer = answer_field(outputs)
    return structured_text(outputs) if answer is None else answer


def structured_text(value: object) -> str | None:
    """Return structured output as JSON: of an object with fields, a dict or a list.

    None for other values, and where LangChain's own objects stand in it: that is a state and no answer.

    Example:
        >>> structured_text({"city": "Oslo"})
        '{"city": "Oslo"}'
        >>> structured_text({"said": Turn("assistant", "Oslo")}) is None
        True
    """
    parts = value if isinstance(value, list) else fields_of(value)
    if not parts:
        return None
    try:
        return json.dumps(parts, default=_plain, ensure_ascii=False)
    except Exception:  # an application's object may raise anything here; it is then no answer
        return None


def called_in(outputs: object, called: Mapping[str, object] | None) -> str | None:
    """Return the answer that a model gave by calling a tool, where a state holds it as an object under any key.

    Example:
        >>> called_in({"docs": [], "found": {"city": "Oslo"}}, {"city": "Oslo"})
        '{"city": "Oslo"}'
    """
    parts = (fields_of(outputs) or {}).values() if called else ()
    found = (part for part in parts if (held := fields_of(part)) and held.keys() >= (called or {}).keys())
    return answer_in(next(found, None), 1)


def form_in(outputs: object, called: Mapping[str, object] | None) -> str | None:
    """Return the form that a model filled in by a call, where a state holds just that under any key.

    Example:
        >>> form_in({"notes": ["In Oslo."], "info": {"city": "Oslo"}}, {"city": "Oslo"})
        '{"city": "Oslo"}'
    """
    parts = (fields_of(outputs) or {}).values()
    return next((structured_text(part) for part in parts if called and fields_of(part) == called), None)


def _plain(value: object) -> object:
    is_framework = type(value) is Opaque and value.is_framework
    if is_framework or isinstance(value, Doc | Turn | Prompt):
        raise TypeError
    if type(value) is Opaque and not str(value):  # it says nothing
        raise TypeError
    fields = fields_of(value)
    if type(value) is Steer and fields is None:
        raise TypeError
    return str(value) if fields is None else fields


def _answer_under_keys(outputs: dict[object, object], depth: int) -> str | None:
    for key in ANSWER_FIELDS:
        if key in outputs and (found := answer_in(outputs[key], depth + 1)) is not None:
            return found
    if "messages" not in outputs and not depth:
        talks = [part for name, part in outputs.items() if _are_messages(part) and name not in EARLIER_KEYS]
        return _last_said(talks[0]) if len(talks) == 1 else None
    messages = outputs.get("messages")
    return _last_said(messages if isinstance(messages, Iterable) else ())


def _are_messages(part: object) -> TypeGuard[list[Turn]]:
    return isinstance(part, list) and bool(part) and all(type(one) is Turn for one in part)


def _last_said(parts: Iterable[object]) -> str | None:
    said = [part for part in parts if type(part) is Turn and part.role == "assistant"]
    return content_text(said[-1].content) if said else None


# -- the state that a turn begins with --


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


# -- the question --


def question_in_state(state: Mapping[object, object]) -> str:
    """Return the question that a graph's saved state holds, "" when there is none to be seen.

    Nodes write queries into the state too, so that ``question`` counts alone. Of the messages it is the last of a
    person; agents write under a person's role with a name.

    Example:
        >>> question_in_state({"messages": [("user", "Where?"), ("assistant", "One moment.")], "query": "lab city"})
        'Where?'
    """
    value = state.get("question")
    if isinstance(value, str) and value.strip():
        return value
    messages = state.get(_MESSAGES)
    if not isinstance(messages, list):
        asked = [turn.content for turn in conversation_in(state) if turn.role == "user"]
        return asked[-1] if asked else ""
    return question_in([one for one in messages if not getattr(one, "name", None)]) or question_in(messages)


def text_asked(inputs: object, queries: Sequence[str]) -> str:
    """Return the text of an input or a state that a search was asked with, or that stands in what it was asked.

    Without one it is the only text, and "" where there are several.

    Example:
        >>> given = {"customer_note": "Returns", "lang": "de"}
        >>> text_asked(given, ["Returns"]), text_asked(given, []), text_asked({"note": "Returns"}, [])
        ('Returns', '', 'Returns')
    """
    texts = [text for _, text in _texts_in(inputs)]
    asked = [text for text in texts if text.strip() in queries]
    asked = asked or [
        text for text in texts if " " in text.strip() and any(text.strip() in query for query in queries)
    ]
    return asked[0] if asked else only_text(inputs)


def only_text(inputs: object) -> str:
    """Return the only text in an input; "" where it has none, or several that differ.

    Example:
        >>> only_text({"note": "Where?", "k": 4}), only_text({"note": "Where?", "lang": "en"})
        ('Where?', '')
    """
    texts = {text for _, text in _texts_in(inputs)}
    return texts.pop() if len(texts) == 1 else ""


def has_texts(inputs: object) -> bool:
    """Tell whether an input has a text of its own, in which the question may be."""
    return bool(_texts_in(inputs))


def given_texts(inputs: object) -> list[str]:
    """Return the texts that a step was given: a text, those of its fields, and messages of a person or a program.

    What a model said is history there, and so is what was said before a person's last message.
    """
    if isinstance(inputs, str):
        return [inputs]
    turns = turns_held(inputs)
    asked = max((place for place, turn in enumerate(turns) if turn.role == "user"), default=0)
    said = [turn.content for place, turn in enumerate(turns) if turn.role == "system" or place >= asked]
    left = {turn.content for turn in turns if turn.role == "assistant"}
    return [*(text for text in said if text not in left), *(text for _, text in _texts_in(inputs))]


def turns_held(inputs: object) -> list[Message]:
    """Return the messages in an input: itself, a list of them, or those in its fields."""
    found = list(turns_in(inputs)) if not isinstance(inputs, dict) else []
    return [*found, *(turn for part in (fields_of(inputs) or {}).values() for turn in turns_in(part))]


def _texts_in(inputs: object, depth: int = 0) -> list[tuple[str, str]]:
    """Return the texts in an input with the names of their fields; not those of messages and documents."""
    found: list[tuple[str, str]] = []
    for name, value in (fields_of(inputs) or {}).items():
        if isinstance(value, str):
            if value.strip():
                found.append((str(name)[:MAX_NAME_CHARS], value))
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
    if (fields := mapping_of(outputs)) is not None:
        kept: dict[object, object] = {}
        for key, value in fields.items():
            earlier = began.get(key)
            if isinstance(value, list) and (key == _MESSAGES or _are_messages(value)):
                new = new_messages(value, earlier, before, said)
                is_draft = is_draft_kept and _last_said(new) is None  # it stands behind the question
                kept[key] = new_messages(value, None, {}, said) if is_draft else new
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
        asked = [at for at, one in enumerate(every) if _is_asked(one) and _as_said(one, said) is one]
        new = every[asked[-1] + 1 :] if asked else every
    return [_as_said(one, said) for one in new if not (type(one) is Turn and _is_copy(one.content, before, said))]


def _as_said(message: object, said: Collection[str]) -> object:
    """Return a model's reply that an agent hands on as a person's message, as what it is."""
    if type(message) is Turn and message.role == "user" and content_text(message.content).strip() in said:
        return replace(message, role="assistant")
    return message


def _is_asked(message: object) -> bool:
    turn = turn_of(message)
    return turn is not None and turn.role == "user" and not getattr(message, "name", None)


def _key(message: object) -> object:
    """Return what tells a message from others: its id and its text, which a person may have edited."""
    turn = turn_of(message)
    if type(message) is Turn and message.id and turn is not None:
        return message.id, turn.content
    return id(message) if turn is None else (turn.role, turn.content)


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
    if type(value) is Turn:
        return value is earlier or _is_copy(value.content, before, said)
    if isinstance(value, list):
        return isinstance(earlier, list) and bool(value) and is_equal(value, list(earlier))
    return value is not None and value is earlier


def _is_copy(text: object, before: Mapping[int, str], said: Collection[str]) -> bool:
    return isinstance(text, str) and bool(text) and id(text) in before and text.strip() not in said


# -- answers of branches --


def last_spoken(fields: Mapping[object, object], spoken_at: Mapping[str, int]) -> dict[object, object]:
    """Return the fields of a graph's state without the texts of models that a later step's text stands behind.

    Args:
        fields: what the graph gave out.
        spoken_at: the texts of models that its steps gave out, with the numbers of the steps.

    Example:
        >>> last_spoken({"plan": "Look it up.", "reply": "In Oslo."}, {"Look it up.": 1, "In Oslo.": 2})
        {'reply': 'In Oslo.'}
    """
    steps = {key: spoken_at[text] for key, text in fields.items() if isinstance(text, str) and text in spoken_at}
    last = max(steps.values(), default=0)
    return {key: value for key, value in fields.items() if key not in steps or steps[key] == last}


def branch_answers(
    outputs: object,
    said: Collection[str],
    prompts: Sequence[str],
    queries: Collection[str],
    passages: Sequence[str] = (),
) -> list[str]:
    """Return the texts of an output that models of this run said, and that no other model or retriever was given.

    One that has all of them in it, as a report of its sections, stands for them. A prompt that shows a passage with
    the words of an answer gives that to nobody.

    Example:
        >>> said = {"In Oslo.", "In Norway.", "lab city"}
        >>> branch_answers({"short": "In Oslo.", "long": "In Norway."}, said, [], [])
        ['In Norway.', 'In Oslo.']
        >>> branch_answers({"query": "lab city", "reply": "In Oslo."}, said, [], ["lab city"])
        ['In Oslo.']
    """
    leaves = list(texts_held(outputs))
    spoken = sorted({text for text in leaves if text.strip() in said and text.strip() not in queries})
    last = [text for text in spoken if not any(_is_given(text, prompt, passages) for prompt in prompts)] or spoken
    if len(last) > 1:
        whole = sorted(text for text in set(leaves) - {*last} if all(_is_part(one, text) for one in last))
        return whole[:1] or last
    return last


def _is_given(text: str, prompt: str, passages: Sequence[str]) -> bool:
    """Tell whether a prompt has a text, outside the passages that it shows."""
    if text not in prompt:
        return False
    for passage in passages:
        prompt = prompt.replace(passage, "")
    return text in prompt


def new_texts(outputs: object, began: Mapping[object, object]) -> list[str]:
    """Return the new texts of a state that a program may have made of replies: several words.

    Example:
        >>> new_texts({"topic": "Bees", "report": "Bees fly far."}, {"topic": "Bees"})
        ['Bees fly far.']
    """
    fields = fields_of(outputs) or {}
    return [
        one
        for key, one in fields.items()
        if isinstance(one, str) and one != began.get(key) and len(one.split(None, 3)) > 2
    ]


def _is_part(text: str, whole: str) -> bool:
    """Tell whether a text is in another one, perhaps without a heading."""
    head, _, rest = text.partition("\n")
    return text in whole or (head.startswith("#") and len(rest.strip()) > 1 and rest.strip() in whole)


def texts_held(value: object, depth: int = 0) -> Iterable[str]:
    """Yield the texts in a value, and those of models' messages that stand alone in it."""
    if isinstance(value, str):
        yield value
    elif type(value) is Turn:
        if value.role == "assistant":
            yield content_text(value.content)
    elif depth <= _DEPTH and not _are_messages(value):  # those of a conversation follow each other
        parts = value if isinstance(value, list | tuple) else (fields_of(value) or {}).values()
        for part in parts:
            yield from texts_held(part, depth + 1)
