"""Redaction: a person's callable, made safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture.guard import record_internal_error

if TYPE_CHECKING:
    from collections.abc import Callable

    Redact = Callable[[str], str]


def safe(redact: Redact | None) -> Redact | None:
    """Return `redact` so that a failure drops the text and is counted; None stays None.

    A redaction that raises, or returns anything but text, must never let the original through.

    Example:
        >>> safe(lambda text: text.replace("Ada", "[name]"))("Ada asked")
        '[name] asked'
        >>> safe(lambda text: 1 / 0)("Ada asked")
        ''
    """
    if redact is None:
        return None

    def redacted(text: str) -> str:
        if not text:
            return text
        try:
            clean = redact(text)
        except Exception as error:
            record_internal_error("ragtrace.capture.redact", error)
            return ""
        if type(clean) is not str:
            record_internal_error("ragtrace.capture.redact")
            return ""
        return clean

    return redacted
