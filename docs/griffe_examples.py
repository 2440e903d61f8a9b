"""Lets the reference show the ``Example:`` of a docstring as code; griffe knows the plural alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from griffe import Object


class Examples(griffe.Extension):
    """Writes ``Examples:`` where a docstring has ``Example:``; as an admonition its lists became links."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change one docstring as it is loaded."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"(?m)^Example:$", "Examples:", obj.docstring.value)
