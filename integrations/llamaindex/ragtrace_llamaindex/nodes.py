"""LlamaIndex nodes as values: their ids, texts, scores and metadata as they are now."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from llama_index.core.schema import TextNode

from ragtrace.capture import first_passages, shown
from ragtrace.capture.pictures import PICTURE, picture_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.capture.passages import PassageReader, ReadPassages

_PLAIN = {TextNode}
_TEXTS = {str}
_NODE, _SCORE = attrgetter("node"), attrgetter("score")
_DATA = {bytes, str}
_PICTURES = ("image", "image_url", "image_path", "data", "url", "path")
_ID, _TEXT, _METADATA = attrgetter("id_"), attrgetter("text"), attrgetter("metadata")


class NodeColumns:
    """A list of nodes as they are now: the application may write into the same objects later.

    Attributes:
        ids: node ids; "" for one that has none.
        texts: the nodes' own text, without metadata.
        scores: as they stand on the nodes.
        metadata: shallow copies.
        chars: characters of the texts.

    Example:
        >>> from llama_index.core.schema import NodeWithScore
        >>> column = NodeColumns([NodeWithScore(node=TextNode(id_="d1", text="a"), score=0.5)])
        >>> column.ids, column.texts, column.scores
        (['d1'], ['a'], [0.5])
    """

    __slots__ = ("_left_out", "chars", "ids", "metadata", "scores", "texts")

    def __init__(self, nodes: object) -> None:
        some, self._left_out = first_passages(nodes if isinstance(nodes, list | tuple) else ())
        self.ids: list[str]
        self.texts: list[object]
        try:  # the usual list, in loops of C: 50 nodes in 12 us
            inner = list(map(_NODE, some))
            self.scores: list[float | None] = list(map(_SCORE, some))
            texts = list(map(_TEXT, inner))
            self.ids, self.texts, self.chars = list(map(_ID, inner)), texts, sum(map(len, texts))
            self.metadata = list(map(dict.copy, map(_METADATA, inner)))
            is_plain = set(map(type, inner)) <= _PLAIN and set(map(type, self.ids)) <= _TEXTS
        except (AttributeError, TypeError):
            is_plain = False
        if not is_plain:
            self._read_each([getattr(node, "node", node) for node in some])
            self.scores = [getattr(node, "score", None) for node in some]

    def _read_each(self, inner: Sequence[object]) -> None:
        self.ids = [id_of(node) for node in inner]
        self.texts = [text_of(node) for node in inner]
        self.metadata = [_metadata_of(node) for node in inner]
        self.chars = sum(len(text) for text in self.texts if isinstance(text, str))

    def known_again(self, given: NodeColumns) -> None:
        """Give nodes of unknown ids the id of the same text in `given`: a reranker may make nodes anew.

        Example:
            >>> from llama_index.core.schema import NodeWithScore
            >>> given = NodeColumns([NodeWithScore(node=TextNode(id_="d1", text="a"))])
            >>> new = NodeColumns([NodeWithScore(node=TextNode(id_="random", text="a"))])
            >>> new.known_again(given)
            >>> new.ids
            ['d1']
        """
        if set(self.ids) <= set(given.ids):
            return
        known, by_text = set(given.ids), dict(zip(given.texts, given.ids, strict=True))
        self.ids = [
            name if name in known else by_text.get(text, name)
            for name, text in zip(self.ids, self.texts, strict=True)
        ]

    def passages(self, reader: PassageReader, source: str | None = None) -> ReadPassages:
        """Return them as the passages of a run."""
        reader.left_out += self._left_out
        return reader.columns(self.texts, self.ids, self.scores, self.metadata, source)


def id_of(node: object) -> str:
    """Return a node's id, "" where it has none.

    Example:
        >>> id_of(TextNode(id_="d1")), id_of("text")
        ('d1', '')
    """
    name = getattr(node, "node_id", None)
    return name if type(name) is str else shown(name)


def text_of(node: object) -> object:
    """Return a node's own text; of a node of another kind its content, of anything else the thing itself.

    Example:
        >>> text_of(TextNode(text="a")), text_of("b"), text_of(None)
        ('a', 'b', None)
    """
    if isinstance(node, TextNode):
        return node.text
    content = getattr(node, "get_content", None)
    if content is None:
        return node
    try:
        return content()
    except Exception:  # an image or an application's own class may have none
        return None


def _metadata_of(node: object) -> dict[object, object]:
    metadata = getattr(node, "metadata", None)
    found = dict(metadata) if isinstance(metadata, dict) else {}
    picture = picture_in(node)
    return found if picture is None else {PICTURE: picture, **found}


def picture_in(part: object) -> str | None:
    """Return the key of the picture of a node or of a message's block: of its data, link or file; None without one.

    Example:
        >>> from llama_index.core.schema import ImageNode
        >>> picture_in(ImageNode(image_url="https://a.example/b.png")) == picture_key("https://a.example/b.png")
        True
        >>> picture_in(TextNode(text="a")) is None
        True
    """
    holders = (part, getattr(part, "image_resource", None))
    held = (getattr(holder, name, None) for holder in holders for name in _PICTURES)
    found = (
        one if type(one) in _DATA else str(one) for one in held if one is not None and not hasattr(one, "read")
    )
    return next((key for one in found if (key := picture_key(one)) is not None), None)
