"""What is known of a LangChain run tree while it is open: one `Tree` a root, one `Node` an open event."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragtrace_langchain.documents import KnownDocuments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ragtrace.capture import Run
    from ragtrace.capture.steps import Operation
    from ragtrace.model import Message, Usage
    from ragtrace_langchain.documents import Hit
    from ragtrace_langchain.models import ModelFacts

Kind = Literal["chain", "tool", "retriever", "model"]

MAX_STREAMED_CHARS = 65_536


class Delivery(NamedTuple):
    """Documents that a retriever or a choice handed on, and how many prompts had been rendered by then."""

    hits: dict[str, Hit]
    prompts: int
    is_choice: bool


class Choice(NamedTuple):
    """What a chain gave out, and what it chose that from."""

    node: Node
    out: dict[str, Hit]
    base: dict[str, Hit]
    ended_ns: int


class Tree:
    """One root run: the `Run` it writes to and what its steps have shown so far.

    Attributes:
        run: the open run.
        open: run ids begun and not yet ended, the root's among them.
        seen: every document met, as it was when first met; a reranker may write its scores into the same object.
        known: the names of the documents met.
        pool: the candidates, by key.
        told: what choices made of documents, as each was reported last.
        is_narrowed: some step chose among the documents.
        is_pool_ordered: a step joined or fused several results, and `pool` stands in its order.
        last_chosen: keys of the selection reported last.
        delivered: what retrievers and choices handed on, in turn.
        taken_back: what chains delivered that then failed.
        waiting: a choice that counts once a prompt follows it, and may else be what an answer cited.
        last_text: text of the last model call outside retrievers, `last_model` its model, and `last_called`
            what it called a tool with.
        given: the first documents that a chain was given while none had been retrieved.
        tool_calls: ids of the tool calls whose output was taken.
        interrupts: what the run's interrupts ask.
        is_described: what the call was configured with has been looked at.
        is_joined: the application opened the run itself, and ends it; `root` then stands for its block.
        has_retriever: a retriever was called, or the application marked documents.
        has_model: a model was called outside retrievers.
        searched_ns: when the last retriever outside other retrievers began.
        spoken_ns: when the last model call outside retrievers ended, or began where it is open.
        is_retrieval_only: what the run gave out is no answer, and no model wrote one.
        chain_answer: the answer of the last chain in a joined run.
        root: the root's event, until the tree is dropped.
    """

    __slots__ = (
        "chain_answer",
        "delivered",
        "given",
        "has_model",
        "has_query",
        "has_retriever",
        "interrupts",
        "is_concluded",
        "is_described",
        "is_interrupted",
        "is_joined",
        "is_narrowed",
        "is_pool_ordered",
        "is_retrieval_only",
        "known",
        "last_called",
        "last_chosen",
        "last_model",
        "last_text",
        "lock",
        "open",
        "pool",
        "root",
        "run",
        "searched_ns",
        "seen",
        "selection_source",
        "spoken_ns",
        "taken_back",
        "told",
        "tool_calls",
        "usage",
        "waiting",
    )

    def __init__(self, run: Run, *, is_joined: bool = False) -> None:
        self.run = run
        self.is_joined = is_joined
        self.has_retriever = False
        self.has_model = False
        self.searched_ns = 0
        self.spoken_ns = 0
        self.is_retrieval_only = False
        self.chain_answer: str | None = None
        self.lock = threading.RLock()  # an abandoned stream's finaliser may run anywhere, also inside
        self.open: set[object] = set()
        self.seen: dict[str, Hit] = {}
        self.pool: dict[str, Hit] = {}
        self.told: dict[str, Hit] = {}
        self.known = KnownDocuments()
        self.is_narrowed = False
        self.is_pool_ordered = False
        self.is_interrupted = False
        self.is_concluded = False
        self.is_described = False
        self.given: list[Any] | None = None
        self.interrupts: list[str] = []
        self.tool_calls: set[str | None] = set()
        self.root: Node | None = None
        self.has_query = False
        self.selection_source = "chain"
        self.last_chosen: list[str] = []
        self.delivered: list[Delivery] = []
        self.taken_back: dict[str, Hit] = {}
        self.waiting: Choice | None = None
        self.last_text = ""
        self.last_called: Mapping[str, Any] | None = None
        self.last_model: str | None = None
        self.usage: Usage | None = None

    def is_block(self, node: Node | None) -> bool:
        """Tell whether a node stands for the block of a run that the application opened itself."""
        return self.is_joined and node is self.root


class Node:
    """One open LangChain event and the documents found inside it so far.

    Nodes refer to their parents and never to their children, so that nothing is kept once an event ends.

    Attributes:
        within: the nearest retriever above it.
        found: documents that retrievers inside it delivered, less what rerankers inside it dropped.
        sources: number of retriever results behind `found`.
        chosen: what the last reranker inside it kept.
        has_model: a model was called inside it.
        inputs: what a chain was given.
        given: the documents in `inputs`, in the order in which they came.
    """

    __slots__ = (
        "chosen",
        "found",
        "found_ns",
        "given",
        "has_model",
        "inputs",
        "is_narrowed",
        "key",
        "kind",
        "name",
        "parent",
        "query",
        "source",
        "sources",
        "started_ns",
        "top_k",
        "tree",
        "within",
    )

    def __init__(self, tree: Tree, parent: Node | None, kind: Kind, name: str, started_ns: int) -> None:
        self.tree = tree
        self.parent = parent
        self.kind = kind
        self.name = name
        self.started_ns = started_ns
        self.within: Node | None = None
        if parent is not None:
            self.within = parent if parent.kind == "retriever" else parent.within
        self.key = ""
        self.query = ""
        self.source = name
        self.top_k: int | None = None
        self.inputs: Any = None
        self.given: list[Any] | None = None
        self.found: dict[str, Hit] = {}
        self.found_ns = 0
        self.sources = 0
        self.chosen: dict[str, Hit] | None = None
        self.is_narrowed = False
        self.has_model = False

    @property
    def within_key(self) -> str | None:
        """Key of the nearest retriever above, else of the nearest tool, None outside both."""
        if self.within is not None:
            return self.within.key
        node: Node | None = self
        while node is not None:
            if isinstance(node, ToolCall):
                return node.call_key
            node = node.parent
        return None

    def is_in(self, above: Node) -> bool:
        """Tell whether a node stands above this one, or is this one."""
        node: Node | None = self
        while node is not None and node is not above:
            node = node.parent
        return node is above

    def enclosing(self) -> Iterator[Node]:
        """Yield the nodes above, up to and with the nearest retriever, else up to the root."""
        node = self.parent
        while node is not None:
            yield node
            if node.kind == "retriever":
                return
            node = node.parent


class ToolCall(Node):
    """An open tool call: the arguments, and the description of the tool."""

    __slots__ = ("arguments", "call_id", "call_key", "description")

    def __init__(self, tree: Tree, parent: Node | None, name: str, started_ns: int) -> None:
        super().__init__(tree, parent, "tool", name, started_ns)
        self.arguments: object = None
        self.call_id: str | None = None
        self.call_key: str | None = None
        self.description: str | None = None


class ModelCall(Node):
    """An open model call: what went in, and what streamed out of it so far."""

    __slots__ = ("facts", "first_chunk_ns", "messages", "operation", "streamed", "streamed_chars")

    def __init__(self, tree: Tree, parent: Node | None, name: str, started_ns: int) -> None:
        super().__init__(tree, parent, "model", name, started_ns)
        self.facts: ModelFacts | None = None
        self.operation: Operation = "chat"
        self.messages: tuple[Message, ...] = ()
        self.first_chunk_ns = 0
        self.streamed: list[str] = []
        self.streamed_chars = 0

    def streams(self, token: str, now_ns: int) -> None:
        """Note a streamed piece; what lies beyond 65,536 characters is not kept."""
        if not self.first_chunk_ns:
            self.first_chunk_ns = now_ns
        if token and self.streamed_chars < MAX_STREAMED_CHARS:
            self.streamed.append(token)
            self.streamed_chars += len(token)

    @property
    def first_chunk_s(self) -> float | None:
        """Seconds to the first streamed chunk, None when nothing streamed."""
        return (self.first_chunk_ns - self.started_ns) / 1e9 if self.first_chunk_ns else None
