"""Events of a run: what happened, as the application's thread noted it.

An integration adds them to its run in the order in which they happen: one where a step begins, one where it ends. A
step that is told of once, at its end, needs no beginning. `Interpreter` reads them in the pipeline's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragtrace.capture.content_blocks import content_text
from ragtrace.capture.met_values import Met, MetValues
from ragtrace.capture.names import (
    BLOCK_TYPES,
    CALL_ID_KEYS,
    CHUNK_TYPES,
    ID_KEYS,
    MEDIA_TYPES,
    ROLES,
    SOURCE_TYPES,
    TEXT_FORMATS,
)
from ragtrace.capture.passages import PROCESS_KEY
from ragtrace.capture.pictures import PICTURE
from ragtrace.capture.types import Failure, Operation
from ragtrace.capture.values import LISTS, Doc, Fields, Opaque, Redacted, Turn, identity_of
from ragtrace.model import Outcome, Usage, content_id
from ragtrace.model.passage import IdKey
from ragtrace.text import MAX_RECORD_CHARS, folded, kept

Kind = Literal[
    "chain", "tool", "search", "model", "choice", "mark", "told", "ask", "offer", "answer", "report", "end"
]
"""Kinds of events.

- chain: any function of the application's, the whole run among them. It begins with `Began` and ends with `Gave`.
- tool: a call of a tool, which begins and ends as a chain does.
- search: a retriever. It begins with `Sought` and ends with a list of `Doc`.
- model: a call of the application's model. It begins with `Asked` and ends with `Said`.
- choice: a reranker that was told of by itself. It ends with `Chosen`, and may begin before, with None.
- mark: documents that the application names itself, as `Marked`.
- told: the first event of a run whose framework tells question and answer itself, see `Asking` and `Ended`.
- ask: what a framework says of the question, as `Asking`.
- offer: what a function gave out that may come from a search of its own: values by their names.
- answer: the text so far of an answer that is read piece by piece.
- report: what the application or an integration reported of a run. `name` is the method of it, `data` what that
  was given, by the names that the method of the same name of `Reported` takes.
- end: the run has ended, and `data` is its outcome, or `Ended`. `Run.finish` adds it where the integration did not.
"""


class Event(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """One event of a run.

    Attributes:
        kind: see `Kind`.
        id: of the step, in its run.
        parent: id of the step around it; "" for a root.
        name: of the step.
        started_ns: Unix ns at which the step began.
        ended_ns: Unix ns at which it ended; None of a beginning.
        data: see `Kind`.
        error: what made the step fail.
        teller: the integration that tells of it, where several may report into one run.
    """

    kind: Kind
    id: str = ""
    parent: str = ""
    name: str = ""
    started_ns: int = 0
    ended_ns: int | None = None
    data: Any = None
    error: Failure | None = None
    teller: str = ""


class Node(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Place of a step in a graph that runs its nodes in numbered steps.

    Attributes:
        step: number of the step.
        place: of the node among those of the step.
        path: names by which nodes with one place are told apart.
        is_sent: it was given a part that was made for it, and not the state.
    """

    step: int
    place: int = -1
    path: str = ""
    is_sent: bool = False


class Began(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Input of a chain or a tool.

    Attributes:
        value: its input.
        node: the node of a graph that it is.
        is_graph: it runs a graph.
        agent: name of the agent that it runs; "" where that has none, None where it runs no agent.
        call_id: id that the model gave the call of a tool.
        description: what a tool says of itself.
        is_direct: a tool whose result is the agent's answer.
        is_block: it stands for the run that the application opened around its steps; it has no end.
        is_engine: it answers a question, so that its answer may stand for the passages found inside.
        is_retry: an engine that asks again and shows its model the answer that it gave up.
        calls_tools: an agent, whose model calls tools before it answers.
        is_resumed: it goes on from a saved state.
        shows: the passages that it was given to write them into its prompts.
        texts: texts that it was given in place of passages.
    """

    value: Any = None
    node: Node | None = None
    is_graph: bool = False
    agent: str | None = None
    call_id: str | None = None
    description: str | None = None
    is_direct: bool = False
    is_block: bool = False
    is_engine: bool = False
    is_retry: bool = False
    calls_tools: bool = False
    is_resumed: bool = False
    shows: list[Doc] | None = None
    texts: list[str] = []


class Gave(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Output of a chain or a tool, or how it stopped.

    Attributes:
        value: its output; None where it failed.
        text: what the output says where it is an object.
        streamed_input: what a chain that streams was given, which is known at its end only.
        is_streamed: `streamed_input` holds what it was given.
        is_left: a generator was closed before its end.
        is_waiting: a graph stopped at a breakpoint: it waits for a person.
        is_steered: it ended with an exception by which the framework steers, and with no error.
        is_stopped: it did not fail by itself: it was cancelled, closed or interrupted by a key.
        asks: what an interrupt asks a person; None where there was no interrupt.
    """

    value: Any = None
    text: str | None = None
    streamed_input: Any = None
    is_streamed: bool = False
    is_left: bool = False
    is_waiting: bool = False
    is_steered: bool = False
    is_stopped: bool = False
    asks: str | None = None


class Sought(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Question to a retriever.

    Attributes:
        fuses: where its result is the order of what was searched inside: it gave out all of it, there were several
            searches or passages of its own, or always, as the framework says of it.
        is_all: it gives out all that its index holds.
    """

    query: str
    source: str | None = None
    top_k: int | None = None
    fuses: Literal["all", "several", "always"] = "all"
    is_all: bool = False


class Asked(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Prompt of a model call, and what is known of the model; see `Generation`."""

    messages: list[Turn] = []
    operation: Operation = "chat"
    model: str | None = None
    provider: str | None = None
    request: Mapping[str, Any] = {}
    server_address: str | None = None
    server_port: int | None = None
    is_in_process: bool = False
    is_json_asked: bool = False


class Said(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Reply of a model.

    Attributes:
        choices: its replies, mostly one.
        streamed: the pieces that came before a stream broke.
        first_chunk_ns: Unix ns of the first piece; 0 of a reply that was not streamed.
        chunks: number of pieces.
        is_streamed: the reply was to be read piece by piece, also where no piece came.
        is_refused: the provider declined, or its filter stopped the reply.
        goes_on: the reply calls a tool in its text, and is no answer.
        is_open: the call was open when the run ended.
    """

    choices: list[Turn] = []
    streamed: str = ""
    first_chunk_ns: int = 0
    chunks: int = 0
    is_streamed: bool = False
    usage: Usage | None = None
    finish_reasons: tuple[str, ...] = ()
    response_model: str | None = None
    response_id: str | None = None
    is_refused: bool = False
    goes_on: bool = False
    is_open: bool = False


class Chosen(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Choice of a reranker: what it was given and gave out, best first; `source` says who told of it."""

    given: list[Doc]
    out: list[Doc]
    model: str
    top_n: int | None = None
    source: str = "explicit"


class Asking(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Question of a run, as its framework tells it.

    Attributes:
        question: "" where nothing is said of it.
        place: where it was read, as in `ragtrace.model.Found`.
        is_guess: it stands under a name that says nothing of it, or an inner step was asked it.
        history: the turns before it; None where nothing is said of them.
        told: answers of earlier turns, which the state still holds.
    """

    question: str = ""
    history: list[Turn] | None = None
    told: tuple[str, ...] = ()
    place: str = ""
    is_guess: bool = False


class Ended(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """How a run ended whose framework tells its answer.

    Attributes:
        answer: None where the result has no answer that a name tells.
        texts: the texts in such a result.
        asks: what it asks a person that it waits for.
        value: what it gave out, where something is declared of it.
    """

    outcome: Outcome | None = None
    answer: str | None = None
    texts: tuple[str, ...] = ()
    asks: str | None = None
    value: Any = None


class Marked(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Documents that the application names itself: as found, or as chosen.

    Attributes:
        is_ranked: they are in an order, best first; False of texts that stand in place of passages.
    """

    documents: list[Doc]
    is_choice: bool
    source: str | None = None
    is_ranked: bool = True


class Redactor:
    """Redacts the events of one run before they are kept; what was one object stays one.

    Ids, roles, names of tools and of models stay, as in every other report. So do the names of fields, and the
    words by which the frameworks tell blocks and messages apart. Of a text that was changed a keyed hash is kept:
    texts that became alike are told apart by it.

    Args:
        redact: applied to every text.
        id_key: of the hashes.

    Attributes:
        longest_cut: characters of the longest text of which `redact` was given only a beginning; 0 for none.

    Example:
        >>> found = [Doc("Ada lives in Oslo.", "d1", {"by": "Ada"})]
        >>> Redactor(lambda text: text.replace("Ada", "[name]")).event(Event("search", data=found)).data
        [Doc(text='[name] lives in Oslo.', id='d1', metadata={'by': '[name]'})]
    """

    def __init__(self, redact: Callable[[str], str], id_key: IdKey = PROCESS_KEY) -> None:
        self._redact = redact
        self._id_key = id_key
        self._met = MetValues()
        self._marks: dict[str, str] = {}  # of texts, by that of their folded form
        self._replies: list[str] = []  # of models, while the run is open
        self._streamed: list[tuple[str, Redacted]] = []  # what chains streamed, as it was and redacted
        self.longest_cut = 0

    def event(self, event: Event) -> Event:
        """Return an event with its texts redacted."""
        data = event.data
        if event.kind == "end":
            made = replace(event, data=self._of(data, 0) if isinstance(data, Struct) else data)
            self._met = MetValues()  # no text as it was outlives its run
            self._replies.clear()
            self._streamed.clear()
            return made
        made = replace(event, data=self._of(data, 0))
        if type(data) is Said:
            replies = [content_text(choice.content) for choice in data.choices] or [data.streamed]
            self._replies += replies
            self._compare(self._streamed, replies)
        elif type(data) is Gave and data.is_streamed:
            found = [(text, one) for text in _texts_in(data.value) if type(one := self._of(text, 0)) is Redacted]
            self._streamed += found
            self._compare(found, self._replies)
        return made

    def _compare(self, streamed: list[tuple[str, Redacted]], replies: list[str]) -> None:
        """Note which texts a reply begins or ends with: redacted, a part may be none of the whole any more."""
        for text, made in streamed:
            made.is_begin = made.is_begin or any(said.startswith(text) for said in replies)
            made.is_end = made.is_end or any(len(text) < len(said) and said.endswith(text) for said in replies)

    def _of(self, value: Any, depth: int) -> Any:
        if type(value) not in _KINDS and not isinstance(value, Struct | str):
            return value
        if type(value) is list:
            known_list = self._met.list_made(value)
            return self._list(value, depth) if known_list is None else known_list
        known = self._met.objects.get(id(value))
        if known is None:
            made = Opaque("depth", is_framework=True) if depth > _DEPTH else self._made(value, depth)
            known = self._met.objects[id(value)] = Met(value, made, [])  # nobody changes it
        return known.made

    def _list(self, value: list[Any], depth: int) -> Any:
        if depth > _DEPTH:
            return Opaque("depth", is_framework=True)
        head = self._met.head(value)
        is_message = len(value) == 2 and type(value[0]) is str and value[0] in ROLES  # ["user", "Where?"]
        first = [value[0]] if is_message else head.made
        made = [*first, *(self._of(part, depth + 1) for part in value[len(first) :])]
        self._met.keep_head(value, made, head)
        self._met.keep_list(value, made, value)
        return made

    def _made(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            made, length = kept(value, MAX_RECORD_CHARS, self._redact)
            self.longest_cut = max(length, self.longest_cut)
            if made == value:
                return made
            key = self._id_key
            mark = self._marks.setdefault(content_id(folded(value), key), content_id(value, key))
            return Redacted(made, mark)
        if isinstance(value, dict):
            return type(value)(
                (key, part if _stays(key, part) else self._of(part, depth + 1)) for key, part in value.items()
            )
        if isinstance(value, tuple):
            is_message = len(value) == 2 and type(value[0]) is str and value[0] in ROLES  # ("user", "Where?")
            return (
                (value[0], self._of(value[1], depth + 1))
                if is_message
                else tuple(self._of(part, depth + 1) for part in value)
            )
        stays = _NAMES if type(value) is not Chosen else {*_NAMES, "source"}  # who told of it
        changed = {
            name: self._of(getattr(value, name), depth + 1) for name in value.__struct_fields__ if name not in stays
        }
        if isinstance(value, Turn):
            changed["calls"] = [{**call, "args": self._of(call["args"], depth + 1)} for call in value.calls]
        return replace(value, **changed)


def _stays(key: object, part: object) -> bool:
    """Tell whether a field holds an id, or a word of the frameworks' own, and no text of the application's."""
    if type(key) is not str or type(part) is not str:  # an application's own key may raise
        return False
    return key in _IDS or part in _WORDS.get(key, ()) or (key == PICTURE and part.startswith(f"{PICTURE}:"))


def _texts_in(value: object) -> list[str]:
    """Return the texts that a stream gave out so far: the value, a message's, or those under its names."""
    if isinstance(value, str):
        return [value]
    if type(value) is Turn:
        return [value.content] if isinstance(value.content, str) else []
    parts = value.values() if isinstance(value, dict) else ()
    return [text for part in parts if not isinstance(part, dict) for text in _texts_in(part)]


_KINDS = frozenset({dict, list, tuple, Fields})
_IDS = CALL_ID_KEYS | {*ID_KEYS}
_WORDS: dict[str, frozenset[str]] = {
    "type": BLOCK_TYPES | ROLES | CHUNK_TYPES | SOURCE_TYPES,
    "role": ROLES,
    "media_type": MEDIA_TYPES,
    "mime_type": MEDIA_TYPES,
    "format": TEXT_FORMATS,
}
# Names of fields without texts of the application's.
_NAMES = frozenset(
    (
        "call_id", "calls", "error", "finish_reasons", "first_chunk_ns", "fuses", "id", "kind", "label", "model",
        "name", "node", "operation", "outcome", "path", "provider", "request", "response_id", "response_model",
        "role", "server_address", "usage",
    )
)  # fmt: skip


class Shed(NamedTuple):
    """Characters that are left in events, and the prompts and passages that lost their texts."""

    chars: int
    prompts: int
    passages: int


def shed(events: Sequence[Event], most: int, id_key: IdKey | None = None) -> Shed:
    """Take texts out of events until they have at most `most` characters, each longer text counted once.

    Passages are cut as they would be when they are read. Then the oldest prompts lose theirs, less what the last
    prompt shows too. Then passages lose theirs, from the lowest rank of a search up; they keep their ids, which
    `id_key` makes of texts. The answer, and whatever else steps were given and gave out, stays. Reports keep
    theirs.
    """
    texts: dict[int, int] = {}
    ranks: dict[int, tuple[int, Doc]] = {}
    prompts = [event.data.messages for event in events if type(event.data) is Asked]
    for event in events:
        if event.kind == "search" and isinstance(event.data, list):
            for rank, doc in enumerate(event.data):
                ranks[id(doc)] = (min(rank, ranks.get(id(doc), (rank, doc))[0]), doc)
        _count(event.data, texts, 0)
    chars, n_prompts, n_passages = sum(texts.values()), 0, 0
    for _, doc in ranks.values():
        if chars > most and len(doc.text) > MAX_RECORD_CHARS:
            chars -= _cut_text(doc, MAX_RECORD_CHARS, id_key)
    shown = {id(turn) for turn in prompts[-1]} if prompts else set()
    for turns in prompts[:-1]:
        old = [turn for turn in turns if id(turn) not in shown and turn.content]
        if chars <= most or not old:
            continue
        n_prompts += 1
        for turn in old:
            held: dict[int, int] = {}
            _count(turn.content, held, 0)
            chars -= sum(held.values())
            turn.content = ""
    for _, doc in sorted(ranks.values(), key=lambda ranked: -ranked[0]):
        if chars <= most:
            break
        if doc.text:
            n_passages += 1
            chars -= _cut_text(doc, 0, id_key)
    return Shed(chars, n_prompts, n_passages)


def _cut_text(doc: Doc, most: int, id_key: IdKey | None) -> int:
    """Cut a passage's text, and return how many characters went; it keeps its id."""
    doc.id = doc.id or (content_id(doc.text, id_key) if type(doc.text) is str else identity_of(doc.text))
    left = len(doc.text) - most
    doc.lost, doc.text = max(doc.lost, len(doc.text)), doc.text[:most]
    return left


def _count(value: object, texts: dict[int, int], depth: int) -> None:
    """Note the texts in a value with their lengths, by identity."""
    if isinstance(value, str):
        if len(value) > _SHORT_CHARS:
            texts[id(value)] = len(value)
    elif depth <= _DEPTH:
        if isinstance(value, Struct):
            parts: Iterable[object] = (getattr(value, name) for name in value.__struct_fields__)
        elif isinstance(value, dict):
            parts = value.values()
        else:
            parts = value if isinstance(value, LISTS) else ()
        for part in parts:
            if type(part) is not int:
                _count(part, texts, depth + 1)


_DEPTH = 12
_SHORT_CHARS = 256  # a shorter text is not counted
