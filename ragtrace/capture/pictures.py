"""Know a picture again by its data: in a passage, and in the block of a message.

A prompt's text holds no picture. Its key stands there in place of that, and a passage that is the same picture has
the same key.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragtrace.capture.names import PICTURE_DATA_KEYS, PICTURE_KEYS

if TYPE_CHECKING:
    from ragtrace.model import Passage

PICTURE = "picture"  # the fact of a passage that holds its picture's key
_HEAD_CHARS = 16_384  # of base64, beside its length: a passage may be cut, and pictures are megabytes
# The first bytes of PNG, JPEG, GIF, WebP, TIFF, AVIF or HEIC and SVG in base64.
_BASE64_PICTURE = re.compile(  # of at most 256 characters
    r"\s*(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|SUkqA|TU0AK|AAAA[A-Za-z0-9+/]{4}Z0eX|PHN2Zy|PD94bWw)[\w+/\-]{8,}[\w+/=\-\s]*"
)
_LINK = re.compile(r"\s*(?:https?|gs|s3|file)://\S+\s*", re.IGNORECASE)
_BLANKS = str.maketrans("", "", " \t\r\n")


def picture_key(picture: object, length: int = 0) -> str | None:
    r"""Return the key of a picture: of its base64, its data or its link; None for what is none of these.

    Args:
        picture: a data URL, base64, a link, or the bytes.
        length: of the whole text, where `picture` is its beginning.

    Example:
        >>> picture_key("data:image/png;base64,iVBORw0KGgo=") == picture_key(b"\x89PNG\r\n\x1a\n")
        True
        >>> picture_key("https://a.example/room.png")
        'picture:1dcde3d8ab0a5376'
    """
    if isinstance(picture, bytes | bytearray | memoryview):
        raw = bytes(picture[: _HEAD_CHARS // 4 * 3])
        if not _BASE64_PICTURE.match(raw[:64].decode("latin-1")):
            return _key(base64.b64encode(raw).decode(), -(-len(picture) // 3))
        picture = bytes(picture).decode("latin-1")  # base64 already, as LlamaIndex keeps it
    if not isinstance(picture, str) or not picture:
        return None
    if _LINK.fullmatch(picture):
        return _key(picture.strip().rstrip("/"), 0)
    start = picture.find(",", 0, 256) + 1 if picture[:5].lower() == "data:" else 0
    length = (length or len(picture)) - start
    if "\n" in picture or " " in picture:
        stripped = picture.translate(_BLANKS)
        length -= len(picture) - len(stripped)
        picture, start = stripped, stripped.find(",", 0, 256) + 1 if start else 0
    return _key(picture[start : start + _HEAD_CHARS].translate({45: "+", 95: "/"}), -(-length // 4))


def _key(head: str, length: int) -> str:
    """Return the key of base64 by its beginning and its length in threes of bytes; padding may be left out."""
    head = head.rstrip("=")
    return f"{PICTURE}:{hashlib.sha256(f'{length} {head}'.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def picture_in_block(block: Mapping[Any, Any]) -> str | None:
    """Return the key of the picture that a message's block holds, in the form of any provider; None where none is.

    Example:
        >>> data = "iVBORw0KGgo="
        >>> openai = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        >>> anthropic = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
        >>> picture_in_block(openai) == picture_in_block(anthropic)
        True
    """
    image, source = block.get("image"), block.get("source")
    inner = image.get("source") if isinstance(image, Mapping) else None
    for holder in (block.get("image_url"), source, inner, image, block):
        parts = [holder.get(name) for name in PICTURE_DATA_KEYS] if isinstance(holder, Mapping) else [holder]
        data = next((part for part in parts if isinstance(part, str | bytes)), None)
        if data is not None and (key := picture_key(data)) is not None:
            return key
    return None


def picture_in_facts(facts: Mapping[Any, Any]) -> str | None:
    """Return the key of the picture that stands beside a passage's text; None where none does."""
    if PICTURE_KEYS.isdisjoint(facts):
        return None
    found = (facts[name] for name in PICTURE_KEYS & facts.keys())
    return next((key for one in found if isinstance(one, str | bytes) and (key := picture_key(one))), None)


def picture_of(passage: Passage) -> str | None:
    """Return the key of the picture that a passage is or has; None for a passage of text."""
    text = passage.text
    if _LINK.fullmatch(text) or text[:11].lower() == "data:image/" or _is_base64(text):
        return picture_key(text, passage.truncated)
    key = passage.metadata.get(PICTURE)
    return key if isinstance(key, str) and key.startswith(f"{PICTURE}:") else None


def _is_base64(text: str) -> bool:
    return _BASE64_PICTURE.fullmatch(text[:256]) is not None
