"""Texts that stand in place of passages: what tools gave out, contexts that were joined, rows of databases."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.capture.content_blocks import content_text, documents_in_blocks
from ragtrace.capture.documents import contexts_in, document_of, documents_in, pages_in, rows_held, value_of_text
from ragtrace.capture.own_words import Part, decide, texts_of
from ragtrace.capture.scopes import Scope
from ragtrace.capture.types import LeftOut
from ragtrace.capture.values import LISTS, Steer, Turn, fields_of, identity_of, mapping_of, told
from ragtrace.capture.words import tokens
from ragtrace.model import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.capture.evidence import Rows
    from ragtrace.capture.integration_run import IntegrationRun
    from ragtrace.capture.own_words import Kept
    from ragtrace.capture.scopes import Speech
    from ragtrace.capture.values import Doc

_HANDS_OFF = re.compile(
    r"transfer|hand_?(?:off|over|back)|delegate|escalate|assign_to|route_to|forward", re.IGNORECASE
)
# Names of calls that no tool runs: the graph goes on with another agent, and notes it under the call.
_HANDS_ON = re.compile(
    r"To[A-Z]|(?i:(?:transfer|assign|route|delegate|hand_?off|forward|switch)_to|\w*(?:escalate|hand_?off))"
)
_SHORTEST_REPEAT_CHARS = 16
_MOST_TEXTS = 1_000  # of one result of a tool; a run keeps 256
_MOST_LEFT_OUT = 64  # texts of a run that are told of
_SENTENCE_WORDS = 4
_BLANK_VALUES = frozenset(("", "None"))
_TELLING_CHARS = 4
_OF_FRAMEWORK = {Steer, Turn}


class ToolText(NamedTuple):
    """A text that a tool gave out: its sentences as they were then, and how much models had said before it."""

    tool: str
    text: str
    parts: list[Part]
    told: int
    call_id: str | None


class Sources:
    """Finds texts of a run that came from outside its models, and the documents that they write out.

    What of a tool's text is evidence is known at the end: a later reply may say what is new in it.

    Args:
        run: takes the texts.
        speech: what the models said: texts that only repeat that are no evidence.
    """

    def __init__(self, run: IntegrationRun, speech: Speech) -> None:
        self._run = run
        self._speech = speech
        self._given_out: list[ToolText] = []
        self._of_tools: list[str] = []  # once the run is settled
        self._answered: set[str | None] = set()  # ids of tool calls with a known output
        self._called_after: dict[str, int] = {}  # replies before a tool call, by its id
        self._pages: list[str] = []  # that functions read
        self._rows: dict[str, Rows] = {}  # of databases, by the first form of their text
        self._looked_at: dict[int, str] = {}  # texts, by identity
        self.given: list[Doc] | None = None  # the first documents given to a step before any search

    @property
    def are_looked_up(self) -> bool:
        """Whether a tool gave a text that is evidence."""
        return bool(self._of_tools)

    @property
    def has_rows(self) -> bool:
        """Whether a step had rows of a database."""
        return bool(self._rows)

    def called(self, reply: Turn) -> None:
        """Note what a model gave to its tools: it is no evidence when it comes back."""
        for call in reply.calls:
            given = call["args"]
            self._speech.says(value_of_text(given) if isinstance(given, str) else given)
            self._called_after[call["id"]] = len(self._speech.replies)

    def from_outside(self, documents: list[Doc] | None, arguments: object = None) -> list[Doc]:
        """Return documents less those whose text a model of the run wrote."""
        first = self._speech.first
        return [one for one in documents or () if not first.owns(one.text, arguments)]

    # -- tools --

    def of_tool(self, tool: Scope, outputs: object, documents: list[Doc] | None) -> list[Doc] | None:
        """Return the documents that a tool gave; note its text where it gave none."""
        # A call's own message is new, also where the ids of calls begin anew with each model call.
        answered = self._answered - {tool.call_id}
        messages = [message for message in _messages_in(outputs) if message.call_id not in answered]
        if _is_hand_off(tool, outputs):
            self._answered.update(message.call_id for message in messages if message.call_id == tool.call_id)
            self._answered.update(message.call_id for message in messages[-1:])
            return None
        self._answered.update(message.call_id for message in messages)
        arguments = tool.inputs if tool.is_called else None
        if tool.sources or tool.found or tool.is_marked:
            return documents
        if documents is not None:
            return self._kept(documents, arguments)
        if not messages:
            return None if type(outputs) in _OF_FRAMEWORK else self._written(tool, outputs, arguments)
        found = [self._written(tool, _content_of(message), arguments) for message in messages]
        return next((documents for documents in found if documents), None)

    def in_prompt(self, scope: Scope, prompt: Sequence[Turn]) -> Iterator[tuple[Scope, list[Doc]]]:
        """Note the tool messages of this question whose tools fired no event; yield the documents in them.

        Those before the last human message are of earlier questions.
        """
        turn = list(takewhile(lambda message: message.role != "user", reversed(prompt)))
        if self.given is None and len(turn) < len(prompt):
            self.given = documents_in_blocks(prompt[-1 - len(turn)].content) or None
        calls = {call["id"]: call for message in prompt for call in message.calls}
        for message in reversed(turn):
            if message.role != "tool" or message.call_id in self._answered:
                continue
            self._answered.add(message.call_id)
            call = calls.get(message.call_id)
            name = message.name or (call["name"] if call else "")
            if call is not None and _HANDS_ON.match(call["name"]):
                continue
            tool = Scope(scope.parent, "tool", name or "tool", scope.started_ns)
            arguments = call["args"] if call else None
            tool.replies_before = self._called_after.get(message.call_id or "", len(self._speech.replies))
            documents = documents_in(message.artifact, tool.name)
            if documents:
                documents = self._kept(documents, arguments)
            else:
                documents = self._written(tool, _content_of(message), arguments)
            if documents:
                yield tool, documents

    def _kept(self, documents: list[Doc], arguments: object) -> list[Doc] | None:
        """Return the documents that are evidence; None where the model gave all of them."""
        return self.from_outside(documents, arguments) or (None if documents else [])

    def _written(self, tool: Scope, value: object, arguments: object) -> list[Doc] | None:
        """Return the documents that a tool's value writes out; note its texts where it has none."""
        blocks = documents_in_blocks(value)
        if blocks:
            return self._kept(blocks, arguments)
        texts = _texts_of(value, tool.shown)
        if len(texts) > _MOST_TEXTS:  # each is compared with those before it
            texts = [*texts[:_MOST_TEXTS], "\n".join(texts[_MOST_TEXTS:])]
        written = [_written_in(text, tool.name) for text in texts]
        if written and all(written):
            return self._kept([document for documents in written for document in documents], arguments)
        self.note(tool, texts, arguments)
        return None

    def note(self, tool: Scope, texts: Sequence[str], arguments: object) -> None:
        """Note a tool's texts, with what of them the models had said by then."""
        first, told = self._speech.first, len(self._speech.told)
        for text in texts:
            if text.strip():
                parts = first.parts(text, arguments)
                self._given_out.append(ToolText(tool.name, text, parts, told, tool.call_id))
                first.add("evidence", text)

    def _settle_tools(self) -> None:
        """Report what of the tools' texts is evidence, and note what is left out."""
        said, left_out = self._speech.told, self._run.findings.left_out
        later: set[str] = set()
        unread = len(said)
        kept: list[tuple[ToolText, Kept]] = []
        for given in reversed(self._given_out):
            while unread > given.told:
                unread -= 1
                later.update(word for text in texts_of(said[unread]) for word in tokens(text))
            kept.append((given, decide(given.text, given.parts, later)))
        for given, one in reversed(kept):
            if (one.own or not one.evidence) and len(left_out) < _MOST_LEFT_OUT:
                told = " ".join(one.own) or given.text
                left_out.append(LeftOut(given.tool, told, is_part=bool(one.evidence)))
            text = one.evidence
            is_known = len(text) >= _SHORTEST_REPEAT_CHARS and any(_holds(known, text) for known in self._of_tools)
            if text and not is_known:
                self._of_tools.append(text)
                self._run.add_text(text, source=given.tool)

    # -- contexts and rows --

    def contexts(self, name: str, given: object, outputs: object) -> None:
        """Note the texts of a value that stand in place of documents."""
        for source, text in contexts_in(outputs, name, given):
            if not self._speech.first.owns(text):
                self._run.add_text(text, source=source, kind="context_text")

    def pages(self, name: str, given: object, outputs: object) -> None:
        """Note the texts of pages that a function read, less what models said and what the function was given."""
        for source, text in pages_in(outputs, name, given):
            if any(page in text for page in self._pages):  # it was set in a frame
                continue
            if not self._speech.first.owns(text, given):
                self._pages.append(text)
                self._run.add_text(text, source=source, kind="context_text")

    def rows(self, name: str, value: object, *, is_of_run: bool = False) -> None:
        """Note rows of a database in what a step was given or gave out, less those that a model wrote.

        Args:
            name: of the step.
            value: what it was given or gave out.
            is_of_run: the whole run was given it.
        """
        fields = fields_of(value)
        for key, part in (fields or {name: value}).items():
            if id(part) in self._looked_at:  # a text is handed on from step to step
                continue
            if isinstance(part, str):
                self._looked_at[id(part)] = part
            for rows in rows_held(part, str(key)):
                first = rows.forms[0]
                if first not in self._rows and first not in self._of_tools and not self._is_own(rows):
                    self._rows[first] = rows._replace(is_given=is_of_run)

    def _is_own(self, rows: Rows) -> bool:
        """Tell whether a model said all sentences in rows, or all values: findings with titles, short facts."""
        own = self._speech.first
        values = [*rows.values()]
        said = {value for value in values if own.owns(value)}
        if said and all(one in said or len(one.split()) < _SENTENCE_WORDS for one in values):
            return True
        return own.owns(rows.forms[0])

    def settle(self, *, has_model: bool) -> None:
        """Report the texts of tools, and rows of databases as a prompt shows them."""
        self._settle_tools()
        for rows in self._rows.values():
            shown = [form for form in rows.forms if self._is_shown(form, _least_shown(form, rows))][:1]
            each = (next((form for form in row if self._is_shown(form, len(form))), None) for row in rows.rows)
            texts = shown or [form for form in each if form is not None]
            is_known = rows.is_named or (not rows.is_given and self._are_values_shown(rows))
            for text in texts or (rows.forms[:1] if is_known and has_model else ()):
                self._run.add_text(text, source=rows.source)

    def _are_values_shown(self, rows: Rows) -> bool:
        """Tell whether prompts have all values of rows in words of their own, as in "Oslo has 12 rooms"."""
        values = {value for value in rows.values() if value not in _BLANK_VALUES}
        is_telling = any(len(value) >= _TELLING_CHARS and not value.isdigit() for value in values)
        return is_telling and all(self._is_shown(value, len(value)) for value in values)

    def _is_shown(self, text: str, least_chars: int = 0) -> bool:
        return self._run.prompt_contains([Passage(id="", text=text, rank=1)], least_chars=least_chars)


def _holds(text: str, part: str) -> bool:
    """Tell whether a part stands in a text; two that are the same once redacted may have been different."""
    return part in text and (part != text or identity_of(part) == identity_of(text))


def _least_shown(form: str, rows: Rows) -> int:
    """Return the characters of a form's first row: less than that may be of another text."""
    first = rows.rows[0] if rows.rows else ("",)
    return len(first[0] if form.startswith("[") else first[-1])


def _content_of(message: Turn) -> object:
    return None if message.is_error else message.content


def _is_hand_off(tool: Scope, outputs: object) -> bool:
    """Tell whether a tool hands over to another agent: its message is a note, and the history goes with it."""
    parts = outputs if isinstance(outputs, list) else [outputs]
    steering = [part for part in parts if type(part) is Steer and part.goto]
    return any(part.graph for part in steering) or (bool(steering) and _HANDS_OFF.search(tool.name) is not None)


def _messages_in(outputs: object) -> Iterator[Turn]:
    """Yield the messages that a tool gave out, itself or in what it writes into a state."""
    for part in outputs if isinstance(outputs, list) else [outputs]:
        if type(part) is Steer:
            messages = (fields_of(part) or {}).get("messages")
            for message in messages if isinstance(messages, LISTS) else [messages]:
                if type(message) is Turn and message.role == "tool":
                    yield message
        elif type(part) is Turn and part.role == "tool":
            yield part


def _written_in(text: str, name: str) -> list[Doc]:
    value = value_of_text(text)
    fields = mapping_of(value)
    one = document_of(fields, is_named=False) if fields is not None else None
    return documents_in(value, name) or ([one] if one is not None else [])


def _unquoted(text: str) -> str:
    """Return a text that a program wrote as JSON as it was before: ``json.dumps(result)`` quotes it."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        with suppress(ValueError):
            return str(json.loads(text))
    return text


def _texts_of(value: Any, shown: str | None) -> list[str]:
    """Return a tool's texts: of a list of texts or blocks, each one, also where LangChain made JSON of it."""
    if isinstance(value, str):
        value = _unquoted(value)
        parts = value_of_text(value)
        if isinstance(parts, list) and parts and all(isinstance(part, str) for part in parts):
            return [part for part in parts if part.strip()]
        return [value]
    if isinstance(value, LISTS):
        return [text for part in value if (text := content_text([part], is_prompt=True))]
    return [] if value is None else [shown or told(value)]
