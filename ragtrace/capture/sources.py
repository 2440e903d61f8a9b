"""Sources of evidence that are no search: texts of tools, and the documents that they write out."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace.capture.content_blocks import content_text, documents_in_blocks, text_of, tool_messages
from ragtrace.capture.declared import Place
from ragtrace.capture.declared_values import brought_at
from ragtrace.capture.documents import document_of, documents_in, value_of_text
from ragtrace.capture.names import PASSAGE_LISTS
from ragtrace.capture.own_words import Part, decide, texts_of
from ragtrace.capture.scopes import Scope
from ragtrace.capture.types import LeftOut
from ragtrace.capture.values import LISTS, Steer, Turn, fields_of, identity_of, mapping_of
from ragtrace.capture.words import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.capture.own_words import Kept
    from ragtrace.capture.run import Run
    from ragtrace.capture.scopes import Speech
    from ragtrace.capture.values import Doc
    from ragtrace.model import How

_SHORTEST_REPEAT_CHARS = 16
_MOST_TEXTS = 1_000  # of one result of a tool; a run keeps 256
_MOST_LEFT_OUT = 64  # texts of a run that are told of
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

    def __init__(self, run: Run, speech: Speech) -> None:
        self._run = run
        self._speech = speech
        self._given_out: list[ToolText] = []
        self._of_tools: list[str] = []  # once the run is settled
        self._answered: set[str | None] = set()  # ids of tool calls with a known output
        self._called_after: dict[str, int] = {}  # replies before a tool call, by its id
        self.given: list[Doc] | None = None  # the first documents given to a step before any search

    @property
    def are_looked_up(self) -> bool:
        """Whether a tool gave a text that is evidence."""
        return bool(self._of_tools)

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
        messages = [message for message in tool_messages(outputs) if message.call_id not in answered]
        if _is_hand_off(outputs):
            self._answered.update(message.call_id for message in messages if message.call_id == tool.call_id)
            self._answered.update(message.call_id for message in messages[-1:])
            return None
        self._answered.update(message.call_id for message in messages)
        arguments = tool.inputs if tool.is_called else None
        declared = self._run.declarations.evidence(tool.name)
        if tool.has_evidence:
            self._run.findings.stays(tool.name, "tool", declared)
            return documents
        if declared is not None:
            is_whole = declared[0] is True
            value = _said_by(tool, outputs) if is_whole or type(outputs) is Turn else outputs
            return self.declared(tool, declared, value, documents)
        if documents is not None:
            return self._kept(documents, arguments)
        if not messages:
            return None if type(outputs) in _OF_FRAMEWORK else self._written(tool, outputs, arguments)
        found = [self._written(tool, _content_of(message), arguments) for message in messages]
        return next((documents for documents in found if documents), None)

    def declared(
        self, tool: Scope, declared: tuple[bool | Place, How], value: object, documents: list[Doc] | None
    ) -> list[Doc] | None:
        """Return the documents of a tool that is declared; note its texts, or that it is left out."""
        run, (said, how) = self._run, declared
        run.findings.hows[tool.name] = how
        if said is False:
            run.findings.left_out.append(LeftOut(tool.name, text_of(value), is_declared=True))
            return None
        if said is True and documents:
            return documents
        place = Place("output") if said is True else said
        brought = brought_at(run.declarations, place, (value,), run.prompts)
        if not brought:
            run.findings.missing.append(("evidence", f"{tool.name}: {place}"))
        whole = _texts_of(value, tool.shown) if said is True else []  # what the tool said
        for text in whole or brought.texts:
            run.add_text(text, source=tool.name, call_id=tool.call_id, is_declared=True)
            self._of_tools.append(text)
        return None if whole else brought.documents or None

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
            tool = Scope(scope.parent, "tool", name or "tool", scope.started_ns)
            tool.call_id = message.call_id
            arguments = call["args"] if call else None
            tool.replies_before = self._called_after.get(message.call_id or "", len(self._speech.replies))
            documents = documents_in(message.artifact, tool.name)
            if (declared := self._run.declarations.evidence(tool.name)) is not None:
                documents = self.declared(tool, declared, _content_of(message), documents)
            elif documents:
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

    def contexts(self, name: str, given: object, value: object) -> None:
        """Note the texts that a value has in the fields in which chains of the frameworks' own hand on contexts."""
        before = fields_of(given) or {}
        for key in PASSAGE_LISTS:
            text = (fields_of(value) or {}).get(key)
            if isinstance(text, str) and text is not before.get(key) and not self._speech.first.owns(text):
                self._run.add_text(text, source=name, kind="context_text")

    def note(self, tool: Scope, texts: Sequence[str], arguments: object) -> None:
        """Note a tool's texts, with what of them the models had said by then."""
        first, told = self._speech.first, len(self._speech.told)
        for text in texts:
            if text.strip():
                parts = first.parts(text, arguments)
                self._given_out.append(ToolText(tool.name, text, parts, told, tool.call_id))
                first.add("evidence", text)

    def settle(self, *, has_found: bool) -> None:
        """Report what of the tools' texts is evidence, and note what is left out.

        A text of which nothing that was said later has a word counts only where nothing else was found.

        Args:
            has_found: the run found passages.
        """
        said, left_out = self._speech.told, self._run.findings.left_out
        later: set[str] = set()
        unread = len(said)
        kept: list[tuple[ToolText, Kept, bool]] = []
        for given in reversed(self._given_out):
            while unread > given.told:
                unread -= 1
                later.update(word for text in texts_of(said[unread]) for word in tokens(text))
            one = decide(given.text, given.parts, later)
            kept.append((given, one, bool(later) and later.isdisjoint(tokens(one.evidence))))
        has_found = has_found or any(one.evidence and not is_unused for _, one, is_unused in kept)
        for given, one, is_unused in reversed(kept):
            if one.evidence and is_unused:
                self._run.findings.unused.append(given.tool)
                if has_found:
                    left_out.append(LeftOut(given.tool, one.evidence, is_unused=True))
                    continue
            if (one.own or not one.evidence) and len(left_out) < _MOST_LEFT_OUT:
                told = " ".join(one.own) or given.text
                left_out.append(LeftOut(given.tool, told, is_part=bool(one.evidence)))
            text = one.evidence
            is_known = len(text) >= _SHORTEST_REPEAT_CHARS and any(_holds(known, text) for known in self._of_tools)
            if text and not is_known:
                self._of_tools.append(text)
                self._run.add_text(text, source=given.tool, call_id=given.call_id)


def _holds(text: str, part: str) -> bool:
    """Tell whether a part stands in a text; two that are the same once redacted may have been different."""
    return part in text and (part != text or identity_of(part) == identity_of(text))


def _content_of(message: Turn) -> object:
    return None if message.is_error else message.content


def _is_hand_off(outputs: object) -> bool:
    """Tell whether a tool says where the graph goes on: its message is then a note."""
    parts = outputs if isinstance(outputs, list) else [outputs]
    return any(type(part) is Steer and part.goto for part in parts)


def _said_by(tool: Scope, outputs: object) -> object:
    """Return what a tool said: the content of its message, of a `Steer` that of its own call; None without one."""
    if type(outputs) is Turn:
        return outputs.content
    if not any(type(part) in _OF_FRAMEWORK for part in (outputs if isinstance(outputs, list) else [outputs])):
        return outputs
    own = [one for one in tool_messages(outputs) if tool.call_id is None or one.call_id == tool.call_id]
    return _content_of(own[-1]) if own else None


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
    return [] if value is None else [shown or text_of(value)]
