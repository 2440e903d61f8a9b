"""Read answer, token counts and provider of a model call, by the names that frameworks use."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from ragtrace.capture.names import (
    ANSWER_BEGINS,
    ANSWER_ENDS,
    ANSWER_FIELDS,
    ANSWER_TAGS,
    ASKING_ROLES,
    CACHE_READ_TOKENS,
    CACHE_WRITE_TOKENS,
    CACHED_DETAILS,
    CACHED_TOKENS,
    CALLED_FIELDS,
    CHANNEL_ENDS,
    CHOICE_KEYS,
    CUT_THOUGHTS_BEGIN,
    CUT_THOUGHTS_END,
    EPHEMERAL_TOKENS,
    FEEDBACK_KEYS,
    FINISH_KEYS,
    FORMAT_GROUPS,
    FORMAT_NAMES,
    INPUT_DETAILS,
    INPUT_TOKENS,
    INPUT_TOKENS_WITHOUT_CACHE,
    MESSAGE_TYPES,
    OTHER_ROLES,
    OUTPUT_DETAILS,
    OUTPUT_TOKENS,
    PARSED_KEYS,
    PROVIDER_IN,
    PROVIDER_OF,
    REASONING_DETAILS,
    REFUSAL_KEYS,
    REFUSALS,
    REPLY_BLOCK_KEYS,
    REPLY_KEYS,
    REPLY_NOTE_KEYS,
    STREAM_KEYS,
    TEXT_BLOCKS,
    THOUGHT_TAGS,
    THOUGHT_TOKENS,
    THOUGHTS_BEGIN,
    THOUGHTS_END,
)
from ragtrace.model import Usage
from ragtrace.text import clean_count, is_vector, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

# A mapping with none of these tells input and output alone, as most do.
_PARTS = frozenset(
    {*CACHE_READ_TOKENS, *CACHE_WRITE_TOKENS, *INPUT_DETAILS, *OUTPUT_DETAILS, THOUGHT_TOKENS, CACHED_TOKENS}
)

_DEPTH = 8
_MISSING = object()
_PLAIN = (str, bytes, bool, int, float, type(None))
_LISTS = (list, tuple)
_MOST_LISTED = 10_000  # messages or blocks of a reply that are read, the last ones
_MOST_LOOKED_AT = 300  # parts of a reply, for a refusal
_FIELDS = ("__pydantic_fields__", "__dataclass_fields__", "__attrs_attrs__", "__struct_fields__")  # of classes
_THOUGHT_MARKS = re.compile(
    rf"(?=^[ `~]|</?[a-z]|<\||\[[/t]|◁)(?:(?P<fence>^ {{0,3}}(?:```|~~~))"
    rf"|<(?P<tag>{THOUGHT_TAGS})(?:\s[^<>/]{{0,100}})?>"
    rf"|</(?P<end_tag>{THOUGHT_TAGS})\s*>|(?P<begin>{THOUGHTS_BEGIN})|(?P<end>{THOUGHTS_END}))",
    re.IGNORECASE | re.MULTILINE,
)
# Of gpt-oss: a channel's name and what is said in it, a piece of a tag at the end, and text without the tags.
_CHANNEL = re.compile(
    rf"<\|channel\|>\s*(\w++)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>(.*?)(?=<\|(?:{CHANNEL_ENDS})\|>|\Z)",
    re.DOTALL,
)
_TAG_AT_END = re.compile(r"<\|?\w*+\|?\Z")
_BARE_CHANNEL = re.compile(r"analysis\S")
_WRAPPED = re.compile(
    rf"<(?:({ANSWER_TAGS})>|\|(?:{ANSWER_BEGINS})\|>)(.*?)"
    rf"(?:</\1>|<\|(?:{ANSWER_ENDS})\|>)?",
    re.DOTALL | re.IGNORECASE,
)
_NOT_BLANK = re.compile(r"\S")
_SIGNS = ("<", "◁", "[T", "[t", "[/T", "[/t")  # a text without them has no tag; "[1]" is in many
_LEAST_CUT_CHARS = 5  # "</th" may be that of a table's head
_MOST_CUT_CHARS = 32
_NEAR = 200  # characters on either side of a tag that tell whether it is quoted
_SENTENCE_ENDS = frozenset(".!?…。！？")  # noqa: RUF001 - of Chinese too
_QUOTES_BEGIN = frozenset("\"'“‘«„")  # noqa: RUF001
_QUOTES_END = frozenset("\"'”’»“")  # noqa: RUF001
_OPEN_SIGNS = frozenset("([{<:=/\\-–—,")  # noqa: RUF001 - what stands behind them belongs to the sentence


def read_usage(counts: object) -> Usage | None:
    """Return the tokens of a mapping or object; None where it holds neither input nor output.

    LangChain's ``usage_metadata``, the raw usage of OpenAI (both APIs), Anthropic, Bedrock and Gemini, and
    Ollama's counters are read. Input includes cached tokens, and output includes reasoning.

    Example:
        >>> found = read_usage({"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 90})
        >>> found.input_tokens, found.cache_read_tokens
        (95, 90)
    """
    if counts is None:
        return None
    sent, written = _first(counts, INPUT_TOKENS), _first(counts, OUTPUT_TOKENS)
    if sent is None and written is None:
        return None
    if isinstance(counts, dict) and _PARTS.isdisjoint(counts):
        return Usage(input_tokens=sent, output_tokens=written)
    read, stored = _first(counts, CACHE_READ_TOKENS), _first(counts, CACHE_WRITE_TOKENS)
    if sent is not None and _first(counts, INPUT_TOKENS_WITHOUT_CACHE) is not None:
        sent += (read or 0) + (stored or 0)
    thoughts = _first(counts, (THOUGHT_TOKENS,))
    return Usage(
        input_tokens=sent,
        output_tokens=written if written is None or thoughts is None else written + thoughts,
        cache_read_tokens=_known(read, _cached(counts)),
        cache_write_tokens=_known(stored, _stored(counts)),
        reasoning_tokens=_known(thoughts, _detail(counts, OUTPUT_DETAILS, REASONING_DETAILS)),
    )


def clean_usage(usage: Usage | None) -> Usage | None:
    """Return tokens without the counts that are none: a provider's reply may hold any number.

    Example:
        >>> clean_usage(Usage(input_tokens=3, output_tokens=10**5000)) == Usage(input_tokens=3)
        True
    """
    if usage is None:
        return None
    wrong = {name: None for name, n in structs.asdict(usage).items() if n is not None and clean_count(n) is None}
    return structs.replace(usage, **wrong) if wrong else usage


def _cached(counts: object) -> int | None:
    found = _detail(counts, INPUT_DETAILS, CACHED_DETAILS)
    return _known(found, _first(counts, (CACHED_TOKENS,)))


def _stored(counts: object) -> int | None:
    """Return the tokens written to a cache; LangChain gives Anthropic's by their lifetime, and then no total."""
    total = _detail(counts, INPUT_DETAILS, ("cache_creation",))
    parts = [part for name in EPHEMERAL_TOKENS if (part := _detail(counts, INPUT_DETAILS, (name,))) is not None]
    return max(total or 0, sum(parts)) if parts else total


def _known(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _detail(counts: object, groups: tuple[str, ...], names: tuple[str, ...]) -> int | None:
    group = next((found for name in groups if (found := _field(counts, name)) is not None), None)
    return None if group is None else _first(group, names)


def _first(counts: object, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = counts.get(name) if isinstance(counts, dict) else getattr(counts, name, None)
        if type(value) is int and (count := clean_count(value)) is not None:
            return count
    return None


def provider_named(name: str) -> str:
    """Return the conventional name of a provider that a framework names; one that is not known as it is.

    Example:
        >>> provider_named("azure_openai"), provider_named("openai")
        ('azure.ai.openai', 'openai')
    """
    return PROVIDER_OF.get(name, name)


def provider_in(*names: str) -> str | None:
    """Return the provider that the names of a class and its module hold; None where they hold none.

    Example:
        >>> provider_in("MyAzureOpenAI", "shop.models"), provider_in("MockLLM")
        ('azure.ai.openai', None)
    """
    text = " ".join(names).lower()
    return next((provider for word, provider in PROVIDER_IN.items() if word in text), None)


class SaidAnswer(NamedTuple):
    """The text of an answer, and whether the provider declined or a filter stopped it."""

    text: str
    is_refused: bool = False


def said_in(value: object) -> SaidAnswer | None:
    """Return the answer in a text or in a reply of a framework; None for what holds no text.

    Messages, model results, query responses and their dicts are read: of LangChain, LlamaIndex, OpenAI, Anthropic,
    Gemini and Bedrock. Of several messages the model's last counts, and of content blocks the text. A stream is
    never read, since its pieces are the application's. None is a blank answer, as providers give it. Of structured
    output the field `answer` is read, or what `ANSWER_FIELDS` names. What stands before a list's last user message
    was said in an earlier turn, and is not read. Thoughts are left out: see `without_thoughts`.

    Example:
        >>> said_in({"role": "assistant", "content": [{"type": "text", "text": "In Oslo."}]})
        SaidAnswer(text='In Oslo.', is_refused=False)
        >>> said_in({"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]})
        SaidAnswer(text='', is_refused=True)
        >>> said_in(object()) is None
        True
    """
    if value is None or isinstance(value, str | bytes):
        return SaidAnswer(without_thoughts(shown(value)))
    text, has_refused = _text_in(value, 0), is_refused(value)
    if text is None:
        return SaidAnswer("", is_refused=True) if has_refused else None
    return SaidAnswer(without_thoughts(text), has_refused)


def without_thoughts(text: str) -> str:
    r"""Return what a reply says, without the thoughts that a reasoning model writes into its text.

    Thoughts stand between tags, or up to a closing tag where the prompt's template holds the opening one, or in
    the channels of gpt-oss. Thoughts that are not closed reach to the end: nothing is said yet. So it is where a
    stream was cut inside a tag. A tag in code, in quotes or in the middle of a sentence is part of what is said.

    Example:
        >>> without_thoughts("<think>\nIs it 45 days?\n</think>\n\nThirty days.")
        'Thirty days.'
        >>> without_thoughts("Is it 45 days?\n</think>\n\nThirty days."), without_thoughts("<think>Is it")
        ('Thirty days.', '')
        >>> without_thoughts("Thoughts end with `</think>`.")
        'Thoughts end with `</think>`.'
    """
    if not (any(sign in text for sign in _SIGNS) or text[-1:] == "[" or text.lstrip().startswith("analysis")):
        return text
    if (final := _final_channel(text)) is not None:
        return final
    said: list[str] = []  # before `place`
    place = quoted = 0  # `quoted`: opening tags that are part of what is said
    opened: str | None = None  # the tag of the thoughts that are open, "" for a mark of another kind
    is_code = False
    for mark in _THOUGHT_MARKS.finditer(text):
        if mark["fence"]:
            is_code = opened is None and not is_code
            continue
        start, end = mark.span()
        before = text[max(place, start - _NEAR) : start].rpartition("\n")[2]
        after = text[end : end + _NEAR].partition("\n")[0]
        tag = (mark["tag"] or mark["end_tag"] or "").lower()
        is_begin = mark["tag"] is not None or mark["begin"] is not None
        if (opened is None and is_code) or _is_quoted(before, after):
            continue
        if opened is not None:
            if not is_begin and tag == opened:
                opened, place = None, end
        elif is_begin:
            if _begin_thoughts(before, after, is_first=not _NOT_BLANK.search(text, place, start)):
                said.append(text[place:start])
                opened, place = tag, end
            else:
                quoted += 1
        elif not (before.strip() or after.strip()) or (not quoted and _end_thoughts(before, after)):
            said, place, quoted = [], end, 0  # all before it was thought
        else:
            quoted = max(quoted - 1, 0)
    if opened is not None:
        place = len(text)
    end = _end_before_cut(text, place)
    if not place and end == len(text):
        return text
    said.append(text[place:end])
    return _unwrapped("\n".join(stripped for part in said if (stripped := part.strip())))


def _is_quoted(before: str, after: str) -> bool:
    """Tell whether a tag stands in a code span or in quotes, by what is on its line."""
    if before.count("`") % 2 and "`" in after:
        return True
    is_opening = before[-1:] in _QUOTES_BEGIN and not before[:-1].rstrip("(")[-1:].strip()
    return is_opening and after[:1] in _QUOTES_END


def _begin_thoughts(before: str, after: str, *, is_first: bool) -> bool:
    """Tell whether a tag opens thoughts: at the start of the text or of a line, or behind a sentence."""
    if is_first or (not before.strip() and len(before) <= 3):
        return True
    is_subject = after[:1].isspace() and after.lstrip()[:1].islower()  # "It is a tag. <think> opens thoughts."
    return before.rstrip()[-1:] in _SENTENCE_ENDS and not is_subject and after[:1] not in {".", ",", ";", ":", ")"}


def _end_thoughts(before: str, after: str) -> bool:
    """Tell whether a tag without an opening one closes thoughts: it stands in the middle of no sentence."""
    last = before[-1:]
    if not before.strip() or after[:1].isalnum() or before.rstrip()[-1] in _SENTENCE_ENDS:
        return True
    return not last.isspace() and last not in _OPEN_SIGNS


def _end_before_cut(text: str, place: int) -> int:
    """Return where a text ends without the piece of a tag at its end; `place` where what is said is thought."""
    tail_at = max(place, len(text) - _MOST_CUT_CHARS)
    at = max(text.rfind(sign, tail_at) for sign in "<[◁")
    if text.endswith("|>") or at < 0:
        at = text.find("<|", tail_at) if "<|" in text[tail_at:] else at
    if at < 0:
        return len(text)
    piece, before = text[at:].lower(), text[max(place, at - _NEAR) : at].rpartition("\n")[2]
    if any(tag.startswith(piece) for tag in CUT_THOUGHTS_BEGIN):
        is_first = not text[place:at].strip()
        return at if _begin_thoughts(before, "", is_first=is_first) else len(text)
    is_end = len(piece) >= _LEAST_CUT_CHARS and any(tag.startswith(piece) for tag in CUT_THOUGHTS_END)
    return place if is_end and _end_thoughts(before, "") else len(text)


def _final_channel(text: str) -> str | None:
    """Return what gpt-oss says in its final channel, "" for thoughts alone; None for a text without channels."""
    head = text.lstrip()
    if _BARE_CHANNEL.match(head):  # served without its special tokens
        _, found, final = head.partition("assistantfinal")
        if found or head[8].isupper():
            return final.strip()
    at = head.find("<|start|>assistant<|channel|>final")
    is_shown = at > 0 and head[:at].count("`") % 2 == 0
    if not (head.startswith(("<|channel|>", "<|start|>")) or is_shown):
        return None
    final = "\n".join(said.strip() for channel, said in _CHANNEL.findall(head) if channel == "final")
    return _TAG_AT_END.sub("", final).rstrip()


def _unwrapped(said: str) -> str:
    """Return an answer without the tags that some models put around it behind their thoughts."""
    if not said.startswith("<"):
        return said
    found = _WRAPPED.fullmatch(said)
    return found[2].strip() if found else said


def answer_field(value: object) -> str | None:
    """Return the answer of structured output: its field `answer`, or another that `ANSWER_FIELDS` names.

    None where it has none, and for what is no structured output.

    Args:
        value: an object with fields, a mapping, or the JSON text of one.

    Example:
        >>> answer_field({"answer": "28 days.", "sources": [1]}), answer_field('{"final_answer": "28 days."}')
        ('28 days.', '28 days.')
        >>> answer_field({"city": "Oslo"}) is None
        True
    """
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] == "{" else None
        except (ValueError, RecursionError):
            return None
    return _answer_field(value, 0)


def _answer_field(value: object, depth: int) -> str | None:
    for name in ANSWER_FIELDS if depth < _DEPTH else ():
        part = _field(value, name)
        if name in CALLED_FIELDS and isinstance(part, int | float) and not isinstance(part, bool):
            part = str(part)
        if isinstance(part, str):
            return part
        has_fields = isinstance(part, Mapping) or any(hasattr(type(part), one) for one in _FIELDS)
        if has_fields and (found := _answer_field(part, depth + 1)) is not None:
            return found
    return None


def answer_text(text: str, *, is_json: bool) -> str:
    """Return the answer in the text of a reply: without thoughts, and of structured output the answer's field.

    Args:
        text: what the model replied, or what a chain made of it.
        is_json: the application has asked for JSON; other JSON is an answer that the user reads as such.

    Example:
        >>> answer_text('<think>Hm.</think>{"answer": "28 days."}', is_json=True)
        '28 days.'
    """
    said = without_thoughts(text)
    field = answer_field(said) if is_json else None
    return said if field is None else without_thoughts(field)


def is_json_asked(parameters: Mapping[str, object] | None) -> bool:
    """Tell whether the parameters of a model call ask for JSON, by the names of OpenAI, Ollama, vLLM and Gemini.

    Example:
        >>> is_json_asked({"response_format": {"type": "json_object"}}), is_json_asked({"temperature": 0})
        (True, False)
    """
    given = parameters or {}
    return any(name in given and _asks_for_json(given[name]) for name in FORMAT_NAMES) or any(
        isinstance(more := given.get(name), Mapping) and is_json_asked(more) for name in FORMAT_GROUPS
    )


def _asks_for_json(form: object) -> bool:
    if isinstance(form, str):
        return form == "json" or form.startswith(("json_", "application/json"))
    if isinstance(form, Mapping):  # a schema, or OpenAI's {"type": "json_schema"}, which is "text" by default
        return bool(form) and form.get("type") != "text"
    return form is True or isinstance(form, type)  # of pydantic


def is_refused(value: object) -> bool:
    """Tell whether a reply, its message or the provider's raw response says that the provider declined.

    Of its parts at most 300 are looked at.

    Example:
        >>> is_refused({"stop_reason": "refusal"}), is_refused({"stop_reason": "end_turn"})
        (True, False)
    """
    waiting = deque([value])
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            return False
        if _is_refusal(waiting.popleft(), waiting):
            return True
    return False


def _is_refusal(value: object, parts: deque[object]) -> bool:
    """Tell whether a part of a reply says so by itself; add its own parts, which may say it, to the others."""
    if isinstance(value, _PLAIN):
        return False
    if isinstance(value, _LISTS):  # of choices the first counts
        parts.extend(value[:1])
        return False
    if hasattr(type(value), "__pydantic_fields__"):  # a look for a field that it lacks costs 2 us, and most lack
        value = {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}
    names = REFUSAL_KEYS.intersection(value) if type(value) is dict else REFUSAL_KEYS
    told = {name: part for name in names if (part := _field(value, name)) is not None}
    if not told:
        return False
    if any(map(is_refusal_reason, map(told.get, FINISH_KEYS))):
        return True
    refusal = told.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        return True
    if is_refusal_reason(_field(told.get("incomplete_details"), "reason")):
        return True
    if any(map(_is_blocked, map(told.get, FEEDBACK_KEYS))):
        return True
    for name in REPLY_BLOCK_KEYS:
        blocks = _listed(told.get(name))[-_MOST_LOOKED_AT:]
        parts.extend(block for block in blocks if _kind(block) in {"refusal", "non_standard", "message"})
    parts.extend(told[name] for name in REPLY_NOTE_KEYS if name in told)
    return False


def is_refusal_reason(reason: object) -> bool:
    """Tell whether a provider's reason for the end of a reply is its own refusal or a filter's.

    Example:
        >>> is_refusal_reason("content_filter"), is_refusal_reason("FinishReason.SAFETY"), is_refusal_reason("stop")
        (True, True, False)
    """
    name = reason if isinstance(reason, str) else getattr(reason, "name", None)
    return isinstance(name, str) and name.rpartition(".")[2].lower() in REFUSALS


def _is_blocked(feedback: object) -> bool:
    reason = _field(feedback, "block_reason") or _field(feedback, "blockReason")
    return bool(reason) and not str(reason).upper().endswith("UNSPECIFIED")


def _text_in(value: object, depth: int) -> str | None:
    """Return the text of a reply or of a part of one; None where there is none, "" for a blank one."""
    if isinstance(value, str):
        return value
    if depth > _DEPTH or isinstance(value, bytes | bool | int | float | type | BaseException):
        return None
    if isinstance(value, _LISTS):
        return _of_list(value, depth)
    if _is_said_by_others(value):
        return None
    for name in PARSED_KEYS:
        for holder in (value, _field(value, "additional_kwargs")):  # the second of LangChain's messages
            parsed = _field(holder, name)
            if parsed is not None and (answer := answer_field(parsed)) is not None:
                return answer
    for name in CHOICE_KEYS:
        if choices := _listed(_field(value, name)):
            # LangChain's results hold a list of choices for each prompt.
            first = choices[0] if not _listed(choices[0]) else _listed(choices[0])[0]
            return _text_in(first, depth + 1)
    if isinstance(said := _field(value, "output_text"), str) and said:
        return said
    for name in REPLY_KEYS:
        part = _field(value, name, _MISSING)
        if part is not _MISSING and (found := _of_part(value, name, part, depth)) is not None:
            return found
    return _last_said(_listed(_field(value, "messages")), depth)


def _of_part(value: object, name: str, part: object, depth: int) -> str | None:
    """Return what a field of a reply says; None where the text stands elsewhere, or nowhere."""
    if not part and _is_stream(value):  # not read yet
        return None
    if part is None:  # what providers give beside a refusal and beside calls of tools
        is_message = name == "content" and _role(value) is not None
        is_response = name == "response" and _field(value, "source_nodes") is not None  # of LlamaIndex
        return "" if is_message or is_response else None
    if name != "content" or isinstance(part, str):
        return _text_in(part, depth + 1)
    blocks = part if isinstance(part, _LISTS) else _field(part, "parts")  # of Gemini
    return "".join(map(_said_by_block, blocks)) if isinstance(blocks, _LISTS) else None


def _of_list(value: Sequence[object], depth: int) -> str | None:
    """Return what a list says.

    The pieces of a stream are joined. Else it is the last message of a model, or content blocks with a text.
    """
    if type(value) not in _LISTS:
        value = list(islice(value, _MOST_LISTED))
    if is_vector(value):
        return None
    if value and all(_field(item, "type") == "AIMessageChunk" for item in value):
        return "".join(_text_in(item, depth + 1) or "" for item in value)
    value = value[-_MOST_LISTED:]
    if any(_role(item) is not None for item in value):
        return _last_said(value, depth)
    return "".join(map(_said_by_block, value)) if any(map(_is_reply_block, value)) else None


def _last_said(messages: Sequence[object], depth: int) -> str | None:
    """Return what the model said last behind the last question; what stands before that is of an earlier turn."""
    for message in reversed(messages):
        role = _role(message)
        if role in ASKING_ROLES:
            return None
        if role not in OTHER_ROLES and (found := _text_in(message, depth + 1)) is not None:
            return found
    return None


def _is_said_by_others(value: object) -> bool:
    return _role(value) in OTHER_ROLES


def _role(value: object) -> str | None:
    """Return who speaks in a message, by its role, or by its type in LangChain's; None for what is no message."""
    role = _field(value, "role")
    role = getattr(role, "value", role)
    if isinstance(role, str):
        return role.lower()
    kind = _kind(value)
    is_message = kind in MESSAGE_TYPES
    return kind if is_message and _field(value, "content", _MISSING) is not _MISSING else None


def _is_stream(value: object) -> bool:
    return any(_field(value, name) is not None for name in STREAM_KEYS)


def _is_reply_block(block: object) -> bool:
    return _kind(block) in {*TEXT_BLOCKS, "refusal"}


def _said_by_block(block: object) -> str:
    if isinstance(block, str):
        return block
    if _field(block, "thought") is True:  # Gemini's
        return ""
    kind = _kind(block)
    text = _field(block, "refusal" if kind == "refusal" else "text")
    is_said = kind is None or kind == "refusal" or kind in TEXT_BLOCKS
    if kind == "message":  # an item of OpenAI's Responses API
        return "".join(map(_said_by_block, _listed(_field(block, "content"))))
    return text if is_said and isinstance(text, str) else ""


def _kind(value: object) -> str | None:
    kind = _field(value, "type")
    return kind if isinstance(kind, str) else None


def _listed(value: object) -> Sequence[object]:
    if type(value) in _LISTS:
        return value  # type: ignore[return-value]
    return list(islice(value, _MOST_LISTED)) if isinstance(value, _LISTS) else ()


def _field(value: object, name: str, default: object = None) -> object:
    """Return a field of a mapping or an object; an application's object may raise anything when it is looked at."""
    if type(value) is dict or isinstance(value, Mapping):  # the second takes four times as long
        return value.get(name, default)
    if value is None or isinstance(value, str):
        return default
    try:
        return getattr(value, name, default)
    except Exception:
        return default
