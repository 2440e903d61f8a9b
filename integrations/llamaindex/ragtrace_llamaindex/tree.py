"""What is known of a LlamaIndex call tree while it is open: one `Tree` a root, one `Node` a span of interest."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ragtrace.capture import Defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragtrace.capture import Run
    from ragtrace.capture.passages import ReadPassages
    from ragtrace.model import Message, Passage, Usage
    from ragtrace_llamaindex.kinds import Kind
    from ragtrace_llamaindex.nodes import Column

MAX_IDS = 16_384  # of spans that have ended, of one tree


class Tree:
    """One outermost span: the `Run` it writes to, once anything worth a run happened in it.

    Attributes:
        run: None until then.
        ids: span ids of this tree on the map; ended ones too, since tasks begun in them may outlive them.
        open: nodes begun and not yet ended.
        streams: what is still being read.
        raw: text of each node by id, as it was when first met.
        seen: its passage.
        pieces: by its number, a piece of a passage that a citation engine showed: the passage, the piece's text.
        stands_for: passages behind a node that is an engine's answer, by the node's id.
        explicit: the selection that the application itself named.
        interrupt: what a workflow asked a person for last.
        arguments: of a root that has no run yet.
        is_joined: the application opened the run itself, and ends it; the root then stands for its block.
        is_model_asked: a model was asked for an answer, after all that was retrieved.
        is_question: the run is kept; known at its end.
        is_searched: a retriever was called, which may run still in another thread.
        is_waiting: the root has returned, and its answer is being read.
        last: the list that was delivered or chosen last, in any scope.
        question: the run's question, as it was asked.
        examples: turns that a chat engine puts before those of its memory.
        is_told: the turns before the question are known.
        keeps_turns: the root is a chat engine or an agent, which may keep them itself.
    """

    __slots__ = (
        "answer",
        "arguments",
        "defaults",
        "error",
        "examples",
        "explicit",
        "has_query",
        "ids",
        "interrupt",
        "is_cancelled",
        "is_ended",
        "is_joined",
        "is_model_asked",
        "is_narrowed",
        "is_partial",
        "is_question",
        "is_searched",
        "is_told",
        "is_waiting",
        "keeps_turns",
        "last",
        "last_model",
        "last_text",
        "lock",
        "open",
        "pieces",
        "question",
        "raw",
        "root",
        "run",
        "seen",
        "stands_for",
        "streams",
        "usage",
    )

    def __init__(self, defaults: Defaults) -> None:
        self.defaults = defaults
        self.run: Run | None = None
        self.root: Node | None = None
        self.arguments: Mapping[str, Any] | None = None
        self.interrupt: object = None
        self.error: BaseException | None = None
        self.lock = threading.RLock()  # a stream's finaliser may run anywhere, also inside
        self.ids: list[str] = []
        self.open: set[Node] = set()
        self.streams: set[Stream] = set()
        self.raw: dict[Any, Any] = {}
        self.seen: dict[str, Passage] = {}
        self.pieces: dict[str, tuple[Passage, str]] = {}
        self.stands_for: dict[str, dict[str, Passage]] = {}
        self.explicit: ReadPassages | None = None
        self.is_narrowed = False
        self.is_ended = False
        self.is_joined = False
        self.is_model_asked = False
        self.is_cancelled = False
        self.is_waiting = False
        self.is_partial = False
        self.is_question = True
        self.is_searched = False
        self.has_query = False
        self.question = ""
        self.examples: tuple[Message, ...] = ()
        self.is_told = False
        self.keeps_turns = False
        self.last: ReadPassages | None = None
        self.answer: str | None = None
        self.last_text = ""
        self.last_model: str | None = None
        self.usage: Usage | None = None


class Node:
    """One open span of interest.

    Nodes refer to their parents and never to their children.

    Attributes:
        owner: id() of the object whose method runs; valid while it runs.
        within: the nearest retriever above it.
        tool: the nearest tool above it.
        is_handle: a workflow's run whose span stands around the call that starts it, as early versions have it.
        is_outer: a retriever inside it failed, so that its own result is the pool.
        is_inner: it runs inside a retriever, a postprocessor or a check of an answer, whose prompts do not ask
            for the answer.
        answers: of a retriever, the answers of engines that it asked, with the passages behind each.
        found: passages that retrievers inside it delivered, less what rerankers inside it dropped, by id.
        last: the list delivered last inside it.
        sources: number of retriever results behind `found`.
        lists: the ids of each, in turn, and `synthesized` how many of them a synthesizer has followed.
        given: nodes that a postprocessor was given.
    """

    __slots__ = (
        "answers",
        "found",
        "found_ns",
        "given",
        "id",
        "is_handle",
        "is_inner",
        "is_narrowed",
        "is_outer",
        "kind",
        "last",
        "lists",
        "model",
        "name",
        "owner",
        "parent",
        "query",
        "source",
        "sources",
        "started_ns",
        "synthesized",
        "tool",
        "top_k",
        "tree",
        "within",
    )

    def __init__(self, tree: Tree, parent: Node | None, kind: Kind, id_: str, owner: int, started_ns: int) -> None:
        self.tree = tree
        self.parent = parent
        self.kind = kind
        self.id = id_
        self.owner = owner
        self.started_ns = started_ns
        self.within: Node | None = None
        self.tool: ToolNode | None = None
        self.is_handle = False
        self.is_inner = False
        self.is_outer = False
        if parent is not None:
            self.within = parent if parent.kind == "retriever" else parent.within
            self.tool = parent if isinstance(parent, ToolNode) else parent.tool
            # An engine inside a retriever answers with passages, and its answer stands for them.
            is_engine = kind == "query" and parent.kind == "retriever" and not parent.is_inner
            self.is_inner = parent.is_inner or (parent.kind in {"retriever", "rerank"} and not is_engine)
        self.name = ""
        self.query = ""
        self.source: str | None = None
        self.model: str | None = None
        self.top_k: int | None = None
        self.given: Column | None = None
        self.answers: list[tuple[str, dict[str, Passage]]] = []
        self.found: dict[str, Passage] = {}
        self.found_ns = 0
        self.last: ReadPassages | None = None
        self.sources = 0
        self.lists: list[list[str]] = []
        self.synthesized = 0
        self.is_narrowed = False

    @property
    def within_key(self) -> str | None:
        """Key of the nearest retriever above, None outside retrievers."""
        return self.within.id if self.within is not None else None

    @property
    def is_top(self) -> bool:
        """Tell whether the application made this call itself."""
        parent = self.parent
        return parent is None or (parent.parent is None and self.tree.is_joined)

    def scope(self) -> Node:
        """Return the nearest node above that what is found here is delivered to."""
        node = self.parent
        while node is not None and node.kind not in {"retriever", "query"} and node.parent is not None:
            node = node.parent
        return node if node is not None else self


def ended_root() -> Node:
    """Return the root of a tree that has ended: nothing that begins in it is recorded.

    Example:
        >>> ended_root().tree.is_ended
        True
    """
    tree = Tree(Defaults())
    tree.is_ended = True
    return Node(tree, None, "other", "", 0, 0)


class ToolNode(Node):
    """An open tool call.

    Attributes:
        has_found: something was searched inside it, so that its text stands for passages that are known.
        has_model: a model was asked inside it.
    """

    __slots__ = ("arguments", "description", "has_found", "has_model")

    def __init__(self, tree: Tree, parent: Node | None, kind: Kind, id_: str, owner: int, started_ns: int) -> None:
        super().__init__(tree, parent, kind, id_, owner, started_ns)
        self.arguments = ""
        self.description: str | None = None
        self.has_found = False
        self.has_model = False


class Stream:
    """What a reader reads piece by piece: kept apart from the generator, so that nothing keeps that alive.

    Attributes:
        pieces: what came so far.
        is_answer: it is the answer to the run's question, not a model's reply inside it.
        is_fed: a model streams into it now.
        feeds: of a model's reply that is read through an answer: that answer, and how much of it was there before.
    """

    __slots__ = ("feeds", "is_answer", "is_done", "is_fed", "node", "pieces", "watch")

    def __init__(self, node: Node, *, is_answer: bool) -> None:
        self.node = node
        self.is_answer = is_answer
        self.is_done = False
        self.is_fed = False
        self.feeds: tuple[Stream, int] | None = None
        self.pieces: list[Any] = []
        self.watch: object = None

    @property
    def text(self) -> str:
        """What came so far, as one text."""
        pieces = self.pieces
        if self.feeds is not None:
            answer, start = self.feeds
            pieces = answer.pieces[start:]
        return "".join(piece for piece in pieces if type(piece) is str)


class ModelCall(Node):
    """An open model call: what went in, and what streams out of it."""

    __slots__ = (
        "first_chunk_ns",
        "is_in_process",
        "lazy_key",
        "messages",
        "operation",
        "provider",
        "read_through",
        "stream",
    )

    def __init__(self, tree: Tree, parent: Node | None, kind: Kind, id_: str, owner: int, started_ns: int) -> None:
        super().__init__(tree, parent, kind, id_, owner, started_ns)
        self.messages: tuple[Message, ...] = ()
        self.operation: Any = "chat"
        self.provider: str | None = None
        self.is_in_process = False
        self.first_chunk_ns = 0
        self.lazy_key: tuple[int, int] | None = None
        self.read_through: Stream | None = None
        self.stream: Stream | None = None

    @property
    def first_chunk_s(self) -> float | None:
        """Seconds to the first streamed chunk, None when nothing streamed."""
        return (self.first_chunk_ns - self.started_ns) / 1e9 if self.first_chunk_ns else None
