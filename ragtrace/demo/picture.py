"""Saves the last frame of the view as an SVG picture."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from ragtrace.demo.console import PlainConsole
from ragtrace.demo.view import WIDEST, Room, frame
from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from ragtrace.demo.progress import Progress
    from ragtrace.demo.view import Heading

HEIGHT = 60
# rich points the picture at a font on a foreign server; every viewer has a monospace font of its own.
_FOREIGN_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def save_picture(path: Path, progress: Progress, heading: Heading) -> None:
    """Write the frame as it stands at the end, at full width and with every row.

    Raises:
        ConfigError: the file cannot be written.
    """
    console = PlainConsole(record=True, width=WIDEST, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    console.print(frame(progress, heading, Room.on(WIDEST, HEIGHT, len(progress.metrics))))
    svg = console.export_svg(title="ragtrace demo")
    try:
        path.write_text(_FOREIGN_FONT.sub("", svg), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--save-svg {path}: {error.strerror or error}; choose another file") from None
