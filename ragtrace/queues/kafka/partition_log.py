"""Finished offsets of one partition, and the offset that may be committed."""

from __future__ import annotations

import base64
import binascii
from collections import deque

MOST_METADATA = 4_000  # characters; brokers keep 4,096 by default
_MOST_AHEAD = MOST_METADATA // 4 * 3 * 8  # offsets beyond the watermark that the metadata can name


class PartitionLog:
    """Tracks the offsets of one partition, which begin in order and finish in any order.

    The watermark is the lowest offset that is not finished. Only it is committed, so that a crash loses nothing.
    Offsets finished beyond it go into the commit's metadata as a bitmap. The next owner skips them. Not
    thread-safe.

    Attributes:
        position: the watermark; None before the first offset.

    Example:
        >>> log = PartitionLog()
        >>> [log.begin(offset) for offset in (7, 8, 9)]
        [True, True, True]
        >>> log.finish(8), log.position, log.ahead
        (True, 7, 1)
        >>> after = PartitionLog(7, log.metadata())
        >>> [after.begin(offset) for offset in (7, 8, 9)], after.finish(7), after.position
        ([True, False, True], True, 9)
    """

    def __init__(self, committed: int | None = None, metadata: str | None = None) -> None:
        self.position = committed
        self._end = committed
        self._open: deque[int] = deque()  # in order; those finished leave once they are first
        self._under_way: set[int] = set()
        self._done = _offsets_of(metadata, committed or 0)

    def begin(self, offset: int) -> bool:
        """Note a fetched offset; False when it is finished, or was fetched before."""
        if self._end is not None and offset < self._end:
            return False
        self._end = offset + 1
        self._open.append(offset)
        is_new = offset not in self._done
        if is_new:
            self._under_way.add(offset)
        self._advance()
        return is_new

    def finish(self, offset: int) -> bool:
        """Finish an offset; False when it was finished, or never begun."""
        if offset not in self._under_way:
            return False
        self._under_way.remove(offset)
        self._done.add(offset)
        self._advance()
        return True

    @property
    def ahead(self) -> int:
        """Offsets that are finished beyond the watermark."""
        return len(self._done)

    @property
    def end(self) -> int | None:
        """Offset behind the last fetched one; None before the first."""
        return self._end

    def metadata(self) -> str:
        """Return the finished offsets beyond the watermark as text; the furthest may be left out."""
        if not self._done or self.position is None:
            return ""
        bits = bytearray(min(max(self._done) - self.position, _MOST_AHEAD) // 8 + 1)
        for offset in self._done:
            place = offset - self.position
            if place < _MOST_AHEAD:
                bits[place // 8] |= 1 << place % 8
        return f"{self.position}:{base64.b64encode(bits).decode()}"

    def _advance(self) -> None:
        while self._open and self._open[0] in self._done:
            self._done.discard(self._open.popleft())
        self.position = self._open[0] if self._open else self._end


def _offsets_of(metadata: str | None, committed: int) -> set[int]:
    """Return the offsets of a bitmap; none of a text that another program committed.

    The text names its watermark, as a broker may keep the text of an older commit beside a newer offset.
    """
    position, _, text = (metadata or "").partition(":")
    if position != str(committed):
        return set()
    try:
        bits = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return set()
    return {committed + at for at in range(len(bits) * 8) if bits[at // 8] >> at % 8 & 1}
