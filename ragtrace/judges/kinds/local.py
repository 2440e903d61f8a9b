"""Static word vectors of a folder, or of the installed package wordllama."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragtrace.judges.kinds import JudgeParameters
    from ragtrace.judges.offline.static_vectors import StaticEmbedder

IS_OFFLINE = True


def embedder(folder: str, options: JudgeParameters) -> StaticEmbedder:  # noqa: ARG001 -- it has no settings
    """Return the embedder of a folder."""
    from ragtrace.judges.offline.static_vectors import StaticEmbedder  # noqa: PLC0415 -- only the chosen one is loaded

    return StaticEmbedder(folder or None)
