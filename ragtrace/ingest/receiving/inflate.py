"""Bounded decompression."""

from __future__ import annotations

import zlib
from io import BytesIO
from typing import TYPE_CHECKING

from ragtrace.ingest.receiving.refusal import ReceiverRefusal

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = 4 * 2**20


def inflated(body: bytes, most: int, charge: Callable[[int], None]) -> bytes:
    """Return a gzip or zlib body decompressed, step by step within its limit.

    Args:
        body: one stream; a second one behind it is refused, as no OTLP sender writes one.
        most: bytes of the result.
        charge: called with the size of each step; raises when there is no room.

    Raises:
        ReceiverRefusal: the result is larger, or the body is broken or cut off.

    Example:
        >>> import gzip
        >>> inflated(gzip.compress(b"spans"), 100, lambda size: None)
        b'spans'
    """
    engine = zlib.decompressobj(wbits=47)  # both headers
    whole = BytesIO()  # grows in place; a list of pieces would take the memory twice when it is joined
    size, rest = 0, body
    while not engine.eof:
        try:
            piece = engine.decompress(rest, _STEP)
        except zlib.error:
            raise _broken() from None
        rest = engine.unconsumed_tail
        if not piece and not rest and not engine.eof:
            raise _broken()
        size += len(piece)
        if size > most:
            raise ReceiverRefusal("too_large", f"the body is larger than {most} bytes after decompression")
        charge(len(piece))
        whole.write(piece)
    if engine.unused_data:
        raise _broken()
    return whole.getvalue()


def _broken() -> ReceiverRefusal:
    return ReceiverRefusal("malformed", "the body is not valid gzip")
