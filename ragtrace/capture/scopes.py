"""Steps of a run while its events are read, and what its models said: the state that all readers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragtrace.capture.own_words import FirstSpeakers
from ragtrace.capture.values import is_resumption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.capture.events import Asked, Kind, Node
    from ragtrace.capture.known import Hit
    from ragtrace.capture.turns import Beginning
    from ragtrace.capture.values import Doc
    from ragtrace.model import Message


@dataclass(slots=True, eq=False)
class Scope:
    """One step; scopes refer to their parents and never to their children."""

    parent: Scope | None
    kind: Kind
    name: str
    started_ns: int
    id: str = ""
    is_block: bool = False  # stands for the application's own run around its steps
    within: Scope | None = None  # the nearest retriever above
    parent_key: str | None = None  # key of the nearest retriever above, else of the nearest tool or agent
    within_key: str | None = None  # the same for what is inside: a tool's or an agent's own key, else `parent_key`
    key: str = ""
    query: str = ""
    source: str = ""
    top_k: int | None = None
    inputs: Any = None
    given: list[Doc] | None = None  # the documents in `inputs`
    found: dict[str, Hit] = field(default_factory=dict)  # documents delivered inside, less those dropped
    found_ns: int = 0
    sources: int = 0  # number of retriever results behind `found`
    chosen: dict[str, Hit] | None = None  # documents that the last reranker inside kept
    is_narrowed: bool = False
    has_model: bool = False
    node: Node | None = None  # of a graph
    task: tuple[tuple[int, int, str], ...] = ()  # places in the graphs that it runs in
    agent: str | None = None  # name of the agent that a chain runs
    is_engine: bool = False  # its answer may stand for the passages found inside
    calls_tools: bool = False  # an agent, whose model calls tools before it answers
    is_continued: bool = False  # it goes on from a saved state, as its framework tells
    is_evaluation: bool = False  # an evaluator's: it searched texts that the run has
    fuses: str = "all"  # of a retriever, see `Sought`
    is_all: bool = False  # of a retriever that gives out its whole index
    answers: list[tuple[str, dict[str, Hit]]] = field(
        default_factory=list
    )  # of engines inside, with their passages
    results_shown: int = 0  # results of searches and choices when a step inside wrote passages into prompts
    is_sent: bool = False  # in a node that a graph sent a part of its state
    beginning: Beginning | None = None  # of the graph that a root, or a chain right inside a block, runs
    is_marked: bool = False  # the application marked documents inside
    results_before: int = 0  # results of searches and choices when it began
    replies_before: int = 0
    call_id: str | None = None  # of a tool
    description: str | None = None
    is_direct: bool = False  # its result is the agent's answer
    is_called: bool = False  # a tool that was told of by its own events, and not by a message
    shown: str | None = None  # what a tool's output says, where it is an object
    asked: Asked | None = None  # of a model
    messages: tuple[Message, ...] = ()
    is_over: bool = False

    def __post_init__(self) -> None:
        self.source = self.source or self.name
        parent = self.parent
        if parent is None:
            return
        self.within, self.within_key = parent.within, parent.within_key
        self.task, self.is_sent = parent.task, parent.is_sent
        if parent.kind == "search":
            self.within, self.within_key = parent, parent.key
        self.parent_key = self.within_key

    @property
    def is_top(self) -> bool:
        """True for a root, and for a step right inside the application's block."""
        return self.parent is None or self.parent.is_block

    @property
    def is_inner(self) -> bool:
        """True inside a retriever, a reranker or a check, whose prompts ask no question.

        An engine inside a retriever answers with passages, and its answer stands for them.
        """
        parent = self.parent
        if self.is_evaluation or parent is None:
            return self.is_evaluation
        if parent.kind == "choice" or parent.is_inner:
            return True
        return parent.kind == "search" and not self.is_engine

    @property
    def has_evidence(self) -> bool:
        """Whether a search inside found something, or the application marked something inside."""
        return bool(self.sources or self.found) or self.is_marked

    @property
    def holder(self) -> Scope:
        """The nearest retriever or engine above, else the root: it takes what is found here."""
        scope = self.parent
        while scope is not None and scope.kind != "search" and not scope.is_engine and scope.parent is not None:
            scope = scope.parent
        return scope if scope is not None else self

    @property
    def is_in_block(self) -> bool:
        """True right inside the block of a run that the application opened."""
        return self.parent is not None and self.parent.is_block

    @property
    def top(self) -> Scope:
        """The root, or the call right inside the block that this step belongs to."""
        scope = self
        while scope.parent is not None and not scope.parent.is_block:
            scope = scope.parent
        return scope

    @property
    def outermost(self) -> Scope:
        """The root, or the application's block."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def outer_step(self) -> int:
        """The number of the step of the outermost graph that this belongs to; 0 outside graphs."""
        scope: Scope | None = self
        number = 0
        while scope is not None:
            number, scope = scope.node.step if scope.node is not None else number, scope.parent
        return number

    @property
    def is_resumed(self) -> bool:
        """True for a root whose graph goes on with a saved state."""
        return self.beginning is not None and is_resumption(self.inputs)

    @property
    def tool(self) -> Scope | None:
        """The nearest tool above; None outside tools."""
        scope = self.parent
        while scope is not None and scope.kind != "tool":
            scope = scope.parent
        return scope

    @property
    def is_in_tool(self) -> bool:
        """True inside a tool call."""
        return self.tool is not None

    @property
    def path(self) -> str:
        """Names of the scopes above and of this one, outermost first: calls of one step have the same."""
        names = []
        scope: Scope | None = self
        while scope is not None:
            names.append(scope.name)
            scope = scope.parent
        return "/".join(reversed(names))

    def is_in(self, above: Scope) -> bool:
        """Tell whether `above` is this scope or stands above it."""
        scope: Scope | None = self
        while scope is not None and scope is not above:
            scope = scope.parent
        return scope is above

    def mark(self) -> None:
        """Note that the application marked documents in this step."""
        for above in (self, *self.enclosing()):
            above.is_marked = True

    def enclosing(self) -> Iterator[Scope]:
        """Yield the scopes above, up to the nearest retriever, else up to the root."""
        scope = self.parent
        while scope is not None:
            yield scope
            if scope.kind == "search":
                return
            scope = scope.parent


@dataclass(slots=True, eq=False)
class Speech:
    """Words of the models of a run so far."""

    first: FirstSpeakers = field(default_factory=FirstSpeakers)
    replies: list[str] = field(default_factory=list)
    told: list[object] = field(default_factory=list)  # replies, and what models gave to tools, as it came
    said: set[str] = field(default_factory=set)  # texts of models outside retrievers
    last_reply: str = ""  # what the last model said, thoughts included
    last_text: str = ""  # the answer in it
    last_model: str | None = None
    called: list[Mapping[str, object] | None] = field(default_factory=list)  # arguments of each model's first call
    is_json_asked: bool = False  # of the last model
    refused_text: str | None = None  # what it said, where its provider declined
    broken_text: str | None = None  # the answer so far of the last model's stream, where that broke
    has_failed: bool = False  # the last model call did
    is_streamed: bool = False  # the last model that said something did so piece by piece

    def says(self, said: object) -> None:
        """Take what a model said: a reply, or what it gave to a tool."""
        self.told.append(said)
        self.first.add("model", said)

    @property
    def last_called(self) -> Mapping[str, object] | None:
        """The arguments of the last model's first call of a tool; None where it called none."""
        return self.called[-1] if self.called else None
