"""Complaints of a server, wherever it or a gateway before it puts them.

An error may be the status, an object in a 200, a list of one, an error of a choice, a finish reason, or the body of
the provider behind a gateway. What holds the judge for all is read from statuses and codes, since servers quote
texts of users; words decide only where the status speaks of the account or the model already (429, 404). What fails
one unit only may be read from the text.
"""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal["limited", "overloaded", "quota", "filtered", "too_long", "input", "no_model", "account", ""]

_MOST_CHARS = 4_000
_MOST_VALUES = 200
_CODES = ("code", "status", "status_code", "statusCode", "error_code", "errorCode", "type")
_MESSAGES = ("message", "msg", "detail", "error_message", "error", "errors")
_RAW = frozenset({"raw", "body", "error", "errors"})  # of these a text may be the provider's JSON
AT_LIMIT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})
"""What servers call the end of a reply that hit the limit."""
FILTERED = frozenset({
    "content_filter", "content_filtered", "guardrail_intervened", "safety", "prohibited_content", "blocklist",
    "spii", "recitation", "sensitive", "refusal",
})  # fmt: skip
"""And that of a reply that a content filter stopped."""
FAILED = frozenset({"error", "abort", "aborted", "network_error", "insufficient_system_resource"})
"""And that of a reply in whose middle the server failed."""
_LIMITED = re.compile(r"rate.?limit|too.?many.?requests|resource.?exhausted|throttl|limit_requests")
_OVERLOADED = re.compile(r"overloaded|capacity.?exceeded|service.?unavailable|\bunavailable|not.?ready")
_QUOTA = frozenset({"insufficient_quota", "insufficient_user_quota", "billing_hard_limit_reached"})
_NO_MODEL = frozenset({"model_not_found", "unknown_model", "invalid_model"})
_BAD_INPUT = frozenset({"invalid_prompt", "invalid_image", "string_below_min_length", "invalid_unicode"})
_OWN = frozenset({
    "response_format", "temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "encoding_format",
})  # fmt: skip
"""Parameters that a request carries whatever its texts are."""

_FILTER_WORDS = re.compile(  # of at most 4,000 characters: a complaint
    r"content.{0,2}(?:filter|policy|polici|management|moderation)|responsible.?ai|moderation|\bflagged\b|guardrail"
    r"|safety (?:system|filter|polic|violation|reason|check)|(?:usage|safety) polic|data.?inspection"
    r"|inappropriate content|prohibited content|sensitive (?:content|words?)|usage guideline|content exists risk"
    r"|prompt .{0,20}blocked|\u654f\u611f|\u8fdd\u89c4",  # "sensitive" and "against the rules" in Chinese
    re.IGNORECASE,
)
_FILTER_CODE = re.compile(r"content_?(?:filter|policy)")
_FILTER_FLAGS = frozenset({"filtered", "flagged", "blocked", "detected"})  # fields that say true
_FILTER_FLAG = re.compile(rf"\"(?:{'|'.join(sorted(_FILTER_FLAGS))})\": true")
# Of OpenAI, Azure, vLLM, llama.cpp, LM Studio, Anthropic, Gemini, Mistral, Bedrock and text-generation-inference.
_LONG_WORDS = re.compile(  # of at most 4,000 characters: a complaint
    r"context[ _]?length|context[ _]size|context[ _]?window|maximum context|prompt is too long|prompt too long"
    r"|input is too long|input token count|input_tokens_exceeded|too many (?:input |total )?tokens"
    r"|string_above_max_length|inputs. must have less than|tokens.? \+ .?max_new_tokens"
    r"|exceeds? the (?:model's |maximum )?token limit"
    r"|exceeds? the maximum number of tokens|maximum (?:input|prompt|allowed) (?:length|tokens?)"
    r"|too large for model|longer than the (?:maximum )?model|must be at least 1, got -|max_model_len"
    r"|max_prompt_tokens|(?:prompt|input|request) too large",
    re.IGNORECASE,
)
_CONTEXT_WORDS = re.compile(  # of at most 4,000 characters: a complaint
    r"context[ _]?(?:length|size|window)|\binputs?\b", re.IGNORECASE
)
_INPUT_WORDS = re.compile(  # of at most 4,000 characters: a complaint
    r"\b(?:messages?|inputs?|prompts?)(?:\[\d+\]|\.\d+\b)|\"(?:messages|input|prompt)\", \d|invalid (?:unicode|utf)"
    r"|null (?:byte|character)|surrogate|could not parse the (?:json )?(?:body|message|content)",
    re.IGNORECASE,
)
_INPUT_PARAM = re.compile(r"(?:body\.)?(?:messages?|inputs?|prompt|content)\b", re.IGNORECASE)
_MODEL_WORDS = re.compile(  # of at most 4,000 characters: a complaint
    r"\bmodels?\b.{0,200}?(?:not.found|does.not.exist|not.exist|unknown|not.available|not.a.valid|is.invalid)"
    r"|(?:no.such|unknown|invalid|not.a.valid).{0,20}\bmodel\b|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
# At the start of a text, where no server quotes a user.
_SAID_STATUS = re.compile(r"\W*(?:error\W+)?(?:code\W+)?([45]\d\d)\b", re.IGNORECASE)
_SAID_LIMITED = re.compile(r"\W*(?:error\W+)?(?:rate.?limit|too many requests)", re.IGNORECASE)
# Another form of request would be refused as well.
_ACCOUNT_WORDS = re.compile(r"model.?not.?found|does not exist|billing|quota|credit", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """A server's complaint. What it said is in no traceback, since it may repeat the key.

    Attributes:
        status: of HTTP, or the one in the body of a 200; None where neither is an error's.
        kind: what it is about: ``limited``, ``overloaded``, ``quota``, ``filtered``, ``too_long``, ``input`` (one
            input cannot be read), ``no_model``, ``account`` (another form of request would not help); "" where
            nothing is named.
        text: the whole body, at most 4,000 characters.
        message: the first message in it.
        param: the parameter that it names.
        is_page: whether it is a page for people, as of a firewall before the server, which may refuse one text.
    """

    status: int | None
    kind: Kind
    text: str = field(default="", repr=False)
    message: str = field(default="", repr=False)
    param: str | None = field(default=None, repr=False)
    is_page: bool = False

    @property
    def is_of_one_input(self) -> bool:
        """True where the same request with another text might pass: it says nothing of the judge."""
        return self.kind in {"filtered", "too_long", "input"}


def complaint_in(body: Mapping[str, object]) -> object | None:
    """Return the error in the body of a 200: its own, that of a choice, or a body that is one; None without one.

    Example:
        >>> complaint_in({"choices": [{"error": {"code": 502}, "finish_reason": "error"}]})
        {'code': 502}
        >>> complaint_in({"object": "error", "message": "busy", "code": 503})["code"]
        503
        >>> complaint_in({"choices": [{"message": {"content": "{}"}}], "error": None}) is None
        True
    """
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else choices
    choice = first if isinstance(first, dict) else {}
    for found in (body.get("error"), body.get("errors"), choice.get("error")):
        if _is_said(found):
            return found
    reason = end_of(choice)
    if str(reason).lower() in FAILED:
        return {"type": reason}
    has_reply = bool(choices) or "data" in body
    is_error = not has_reply and any(body.get(name) for name in (*_MESSAGES, *_CODES))
    is_filtered = not isinstance(first, dict) and _FILTER_FLAG.search(_dumped(body)) is not None
    return body if is_error or is_filtered else None


def end_of(choice: Mapping[str, object]) -> object:
    """Return why a reply ended; some gateways put only the provider's own word there."""
    return choice.get("finish_reason") or choice.get("native_finish_reason")


def _is_said(value: object) -> bool:
    """Tell whether an error is one: some gateways send it with nothing in it beside a reply."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return any(part not in (None, "", 0, "0", {}, []) for part in parts)


def complaint_of(status: int, body: object) -> Complaint:
    """Read a complaint.

    Args:
        status: of HTTP, 200 where the body has the error.
        body: its JSON, or a text.

    Example:
        >>> complaint_of(200, {"message": "slow down", "code": 429}).kind
        'limited'
        >>> raw = '{"error": {"code": "content_filter"}}'
        >>> complaint_of(400, {"code": 400, "message": "Provider returned error", "metadata": {"raw": raw}}).kind
        'filtered'
        >>> complaint_of(400, {"message": "bad"}).kind
        ''
    """
    facts = _Facts()
    for name, value in _values(body):
        facts.take(name, value)
    text = _dumped(body)
    message = facts.message or (body if isinstance(body, str) else "")
    said: int | None = status
    if status < 400:
        begin = _SAID_STATUS.match(message)
        said = facts.status or (int(begin[1]) if begin else 429 if _SAID_LIMITED.match(message) else None)
    if said in {400, 500, 502} and 429 in facts.statuses:
        said = 429
    return Complaint(
        status=said,
        kind=_kind_of(said, facts, text),
        text=text,
        message=message,
        param=facts.param,
        is_page=isinstance(body, str) and body.lstrip().startswith("<"),
    )


class _Facts:
    """Codes and texts of an error, from the outside in."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        self.codes: set[str] = set()
        self.message = ""
        self.param: str | None = None
        self.is_filtered = False

    @property
    def status(self) -> int | None:
        return self.statuses[0] if self.statuses else None

    def take(self, name: str, value: object) -> None:
        if name in _CODES and not isinstance(value, bool):
            known = str(value).strip() if isinstance(value, int | str) else ""
            if len(known) == 3 and known.isascii() and known.isdecimal() and "400" <= known <= "599":
                self.statuses.append(int(known))
            elif known:
                self.codes.add(known[:_MOST_CHARS].lower())
        elif name == "param" and isinstance(value, str):
            self.param = self.param or value
        elif name in _MESSAGES and isinstance(value, str) and value.strip():
            self.message = self.message or value
        elif name in _FILTER_FLAGS and value is True:
            self.is_filtered = True


def _kind_of(status: int | None, facts: _Facts, text: str) -> Kind:
    codes = facts.codes
    if codes & _QUOTA or (status == 429 and "insufficient_quota" in text):
        return "quota"
    if status == 429 or (status not in {401, 402, 403, 404, 413} and any(map(_LIMITED.search, codes))):
        return "limited"
    if status in {401, 402}:
        return ""
    is_of_output = facts.param in {"max_tokens", "max_completion_tokens"}
    if facts.param not in _OWN or (is_of_output and _CONTEXT_WORDS.search(text)):
        is_filter_code = any(_FILTER_CODE.search(code) for code in codes)
        may_be_words = status is None or (status <= 500 and status not in {404, 408})  # and no page of an outage
        if facts.is_filtered or is_filter_code or (may_be_words and _FILTER_WORDS.search(text)):
            return "filtered"
        if status == 413 or (status in {None, 400, 422, 500} and _LONG_WORDS.search(text)):
            return "too_long"
        is_input = codes & _BAD_INPUT or _INPUT_PARAM.match(facts.param or "") or _INPUT_WORDS.search(text)
        if status in {None, 400, 422} and is_input:
            return "input"
    if codes & _NO_MODEL or facts.param == "model" or (status == 404 and _MODEL_WORDS.search(text)):
        return "no_model"
    if status in {503, 529} or any(map(_OVERLOADED.search, codes)):
        return "overloaded"
    return "account" if _ACCOUNT_WORDS.search(text) else ""


def _values(body: object) -> Iterator[tuple[str, object]]:
    """Yield the fields of an error from the outside in, at most 200 of them."""
    waiting: deque[tuple[str, object]] = deque([("error", body)])
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        name, value = waiting.popleft()
        yield name, value
        if isinstance(value, str) and name in _RAW:
            value = _parsed(value)
        if isinstance(value, dict):
            waiting.extend((str(key), inner) for key, inner in list(value.items())[:_MOST_VALUES])
        elif isinstance(value, list):
            waiting.extend((name, inner) for inner in value[:_MOST_VALUES])


def _parsed(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")) or len(text) > 10 * _MOST_CHARS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(value: object) -> str:
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)[:_MOST_CHARS]
    except (RecursionError, ValueError):
        return ""
