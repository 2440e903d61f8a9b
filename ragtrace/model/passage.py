"""Passages and the pools they stand in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping
from typing import Literal
from unicodedata import normalize

from msgspec import Struct

Stage = Literal["retrieved", "reranked", "used"]
# Beginnings of the id of a passage that came without one: a hash of its text, and one with a key.
CONTENT_ID, KEYED_ID = "sha256:", "salted:"
_SIZE = 8  # bytes of a hash, 16 hex digits


class IdKey:
    """A key of hashes: whoever reads a hash and has no key cannot confirm a guess of the text.

    Args:
        secret: of any length; the same one makes the same key in every process.

    Example:
        >>> content_id("Oslo.", IdKey(b"ours")) == content_id("Oslo.", IdKey(b"ours")), IdKey(b"ours")
        (True, IdKey(***))
    """

    __slots__ = ("_key",)

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(secret).digest()

    def __repr__(self) -> str:
        return "IdKey(***)"

    def digest(self, data: bytes) -> str:
        """Return 16 hex digits of some bytes."""
        return hashlib.blake2b(data, key=self._key, digest_size=_SIZE).hexdigest()


def content_id(text: str, key: IdKey | None = None) -> str:
    """Return the id of a passage that came without one: ``sha256:`` and 16 hex digits of its text in NFC.

    The same text gives the same id in every stage, so that pool and selection join. With a key it is ``salted:``
    and 16 hex digits.

    Example:
        >>> content_id("Refunds take 5 days."), content_id("Refunds take 5 days.", IdKey(b"ours"))[:7]
        ('sha256:558c378376e08651', 'salted:')
    """
    form = text if text.isascii() else normalize("NFC", text)
    return f"{CONTENT_ID if key is None else KEYED_ID}{content_hash(form, key)}"


def is_content_id(name: str) -> bool:
    """Tell whether an id was made of a passage's text.

    Example:
        >>> is_content_id("sha256:558c378376e08651"), is_content_id("faq-7")
        (True, False)
    """
    return name.startswith((CONTENT_ID, KEYED_ID))


def content_hash(text: str, key: IdKey | None = None) -> str:
    """Return 16 hex digits of a text's SHA-256, or of its hash with a key.

    Example:
        >>> content_hash("Refunds take 5 days.")
        '558c378376e08651'
    """
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[: 2 * _SIZE] if key is None else key.digest(data)


_CHUNK_HASH = re.compile(r"#[0-9a-f]{8}\Z")


def chunk_id(shared: str, text: str, key: IdKey | None = None) -> str:
    """Return the id of one of several passages of a run under one id: that with 8 hex digits of its text behind it.

    It is made of the text, so that it is the same in every run, whatever was found beside it.

    Example:
        >>> chunk_id("manual", "Refunds take 5 days.")
        'manual#558c3783'
    """
    return f"{shared}#{content_id(text, key)[7:15]}"


def label_id(passage: Passage, labels: Container[str]) -> str:
    """Return the id by which labels know a passage: its own, that which it shares with others, or that of a chunk.

    A document's label counts for each of its chunks, and the label of a chunk where no other chunk was found.

    Example:
        >>> chunk = Passage(id="manual#558c3783", text="Refunds take 5 days.", rank=1)
        >>> label_id(chunk, {"manual": 5}), label_id(chunk, {"manual#558c3783": 5, "manual": 1})
        ('manual', 'manual#558c3783')
        >>> label_id(Passage(id="manual", text="Refunds take 5 days.", rank=1), {"manual#558c3783": 5})
        'manual#558c3783'
    """
    names = (passage.id, shared_id(passage.id), chunk_id(passage.id, passage.text))
    return next((name for name in names if name in labels), passage.id)


def shared_id(name: str) -> str:
    """Return the id that a chunk shares with others; of any other id that itself.

    Example:
        >>> shared_id("manual#558c3783"), shared_id("faq-7")
        ('manual', 'faq-7')
    """
    return _CHUNK_HASH.sub("", name)


class Passage(Struct, frozen=True, kw_only=True, gc=False):
    """One retrieved piece of text.

    Attributes:
        id: stable identifier; `content_id` of the text when the application gave none, with a key where texts are
            redacted or do not leave.
        text: the passage itself; may be empty when contents were redacted.
        rank: 1-based place in its pool. Capture sets it to the place in the list that was reported.
        score: the score of the stage the passage stands in, None when the framework gave none.
        source: the data source it came from.
        metadata: small facts the application attached: scalars, and lists of them.
        truncated: length of the original text in characters when `text` was cut, else 0.

    Example:
        >>> Passage(id="faq-7", text="Refunds take 5 days.", rank=1, score=0.83).rank
        1
    """

    id: str
    text: str
    rank: int
    score: float | None = None
    source: str | None = None
    metadata: Mapping[str, object] = {}
    truncated: int = 0


class Pool(Struct, frozen=True, kw_only=True):
    """The ranked passages of one stage, best first.

    Attributes:
        stage: ``retrieved`` (the candidate pool), ``reranked`` (the selection) or ``used`` (what the prompt held).
        passages: best first; ids may repeat when the framework returned duplicates.
    """

    stage: Stage
    passages: tuple[Passage, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids in rank order."""
        return tuple(passage.id for passage in self.passages)
