"""LlamaIndex nodes as values: their ids, texts, scores and metadata as they are now."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.schema import TextNode

from ragtrace.capture import Origin, Origins, first_passages, shown
from ragtrace.capture.pictures import PICTURE, picture_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ragtrace.capture.passages import PassageReader, ReadPassages
    from ragtrace.model import Passage

_PLAIN = {TextNode}
_TEXTS = {str}
_NODE, _SCORE = attrgetter("node"), attrgetter("score")
_DATA = {bytes, str}
_PICTURES = ("image", "image_url", "image_path", "data", "url", "path")
_ID, _TEXT, _METADATA = attrgetter("id_"), attrgetter("text"), attrgetter("metadata")


class _Row(NamedTuple):
    id: str
    text: object
    score: float | None
    facts: dict[Any, object]


def _by_nobody(_text: str) -> bool:
    return False


class NodeColumns:
    """A list of nodes as they are now: the application may write into the same objects later.

    Attributes:
        ids: node ids; "" for one that has none.
        texts: the nodes' own text, without metadata.
        scores: as they stand on the nodes.
        metadata: shallow copies.
        chars: characters of the texts.
        parts: the texts of passages that came in several nodes, by id.

    Args:
        nodes: a list of nodes, with scores or without; anything else is an empty one.
        are_new: a step may have made them of others, so that it counts whether an index knows them.

    Example:
        >>> from llama_index.core.schema import NodeWithScore
        >>> column = NodeColumns([NodeWithScore(node=TextNode(id_="d1", text="a"), score=0.5)])
        >>> column.ids, column.texts, column.scores
        (['d1'], ['a'], [0.5])
    """

    __slots__ = ("_indexed", "_left_out", "chars", "ids", "metadata", "parts", "scores", "texts")

    def __init__(self, nodes: object, *, are_new: bool = False) -> None:
        some, self._left_out = first_passages(nodes if isinstance(nodes, list | tuple) else ())
        self.ids: list[str]
        self.texts: list[object]
        self.parts: dict[str, list[str]] = {}
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
            inner = [getattr(node, "node", node) for node in some]
            self._read_each(inner)
            self.scores = [getattr(node, "score", None) for node in some]
        # An index knows such a node as a part of a document: it is a passage of its own.
        self._indexed = [getattr(node, "source_node", None) is not None for node in inner] if are_new else []

    def _read_each(self, inner: Sequence[object]) -> None:
        self.ids = [id_of(node) for node in inner]
        self.texts = [text_of(node) for node in inner]
        self.metadata = [_metadata_of(node) for node in inner]
        self.chars = sum(len(text) for text in self.texts if isinstance(text, str))

    def known_again(self, given: NodeColumns, is_written: Callable[[str], bool] = _by_nobody) -> None:
        """Give nodes of unknown ids the id of the passage in `given` that they were made of.

        A reranker may make nodes anew, and an extract, a part, a widened or a shortened passage stays its passage.
        Parts of one passage are one; a node that only joins passages is these.

        Args:
            given: what a step was given.
            is_written: tells whether a model wrote a text.

        Example:
            >>> from llama_index.core.schema import NodeWithScore
            >>> given = NodeColumns([NodeWithScore(node=TextNode(id_="d1", text="In Oslo. It opens at 8."))])
            >>> new = NodeColumns([NodeWithScore(node=TextNode(id_="random", text="It opens at 8."))])
            >>> new.known_again(given)
            >>> new.ids
            ['d1']
        """
        if set(self.ids) <= set(given.ids):
            return
        known, by_text = set(given.ids), dict(zip(given.texts, given.ids, strict=True))
        origins: Origins | None = None
        rows: list[_Row] = []
        for row, is_indexed in zip(self._rows(), self._indexed or [False] * len(self.ids), strict=True):
            if row.id in known or row.text in by_text:
                rows.append(row if row.id in known else row._replace(id=by_text[row.text]))
                continue
            if origins is None:
                origins = Origins([Origin(str(one.text), one.facts) for one in given._rows()])
            text = str(row.text)
            places = origins.of(text, row.facts, is_written=is_written(text), is_given=not is_indexed)
            if len(places) > 1 and origins.is_join(text, places):
                rows += [_Row(given.ids[at], given.texts[at], row.score, given.metadata[at]) for at in places]
            else:
                rows += [row._replace(id=given.ids[at]) for at in places] or [row]
        self._take(rows)

    def _rows(self) -> list[_Row]:
        return list(map(_Row, self.ids, self.texts, self.scores, self.metadata))

    def _take(self, rows: Iterable[_Row]) -> None:
        """Become these rows; those of one id stand together, at the first one's place."""
        found: dict[str, _Row] = {}
        for row in rows:
            before = found.setdefault(row.id, row)
            if before is not row and isinstance(before.text, str) and str(row.text) not in before.text:
                found[row.id] = before._replace(text=f"{before.text}\n\n{row.text}")
                self.parts.setdefault(row.id, [before.text]).append(str(row.text))
        self.ids = list(found)
        self.texts = [row.text for row in found.values()]
        self.scores = [row.score for row in found.values()]
        self.metadata = [dict(row.facts) for row in found.values()]
        self.chars = sum(len(text) for text in self.texts if isinstance(text, str))
        self._indexed = []

    def without(self, is_left_out: Callable[[str], bool]) -> NodeColumns:
        """Leave out the nodes of which `is_left_out` says so by their text."""
        if any(is_left_out(str(text)) for text in self.texts):
            self._take(row for row in self._rows() if not is_left_out(str(row.text)))
        return self

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> NodeColumns:
        """Return passages as columns."""
        columns = cls(())
        columns._take(_Row(one.id, one.text, one.score, dict(one.metadata)) for one in passages)
        return columns

    def __len__(self) -> int:
        return len(self.ids)

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
