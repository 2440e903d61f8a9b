"""A console on which no text can move the cursor or change colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

from ragtrace.model.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.text import Text

_KEPT = "\n\t"


class PlainConsole(Console):
    r"""A rich console that escapes control characters of whatever it renders; its own codes stay.

    Names of metrics and fields, questions and answers come from files and models.

    Example:
        >>> PlainConsole().print("red\x1b[31m", markup=False)
        red\x1b[31m
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text; escaped here, a table's columns are wide enough for it."""
        return super().render_str(printable(text, keep=_KEPT), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of anything."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text, keep=_KEPT), segment.style)
