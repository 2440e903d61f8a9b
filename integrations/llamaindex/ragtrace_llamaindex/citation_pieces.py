"""Passages that a citation engine splits into numbered pieces before a model reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragtrace.capture.attribution import found_in, letters
from ragtrace.capture.passages import ranked
from ragtrace.model import Passage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ragtrace.capture import IntegrationRun
    from ragtrace_llamaindex.nodes import NodeColumns
    from ragtrace_llamaindex.run_state import RunState


_NUMBER = re.compile(r"Source (\d{1,4}):\n")
_TAIL_BYTES = 48  # of a piece's letters, to find the passage that it is a part of


def note_pieces(state: RunState, run: IntegrationRun, out: NodeColumns, found: Mapping[str, Passage]) -> None:
    """Note which passage each numbered piece is a part of, and what its number means in the answer."""
    if not found or not are_numbered(out):
        return
    pieces = dict(_pieces(state, out, list(found.values())))
    state.pieces.update(pieces)
    run.label_passages({label: passage.id for label, (passage, _) in pieces.items()})


def are_numbered(out: NodeColumns) -> bool:
    """Tell whether nodes are the pieces of a citation engine, which stand behind their numbers."""
    return bool(out.texts) and isinstance(out.texts[0], str) and _NUMBER.match(out.texts[0]) is not None


def _pieces(
    state: RunState, out: NodeColumns, passages: Sequence[Passage]
) -> Iterator[tuple[str, tuple[Passage, str]]]:
    wholes = [letters(str(state.raw.get(passage.id, passage.text))) for passage in passages]
    at = 0
    for text in out.texts:
        if not isinstance(text, str) or (numbered := _NUMBER.match(text)) is None:
            continue
        piece = text[numbered.end() :].strip()
        tail = letters(piece)[-_TAIL_BYTES:]
        later = (place for place in range(at, len(wholes)) if tail in wholes[place])  # pieces keep the order
        at = next(later, at)
        yield numbered[1], (passages[at], piece)


def record_used_pieces(state: RunState, run: IntegrationRun) -> None:
    """Report the passages whose pieces stand in a prompt as those that the model was shown."""
    if not state.pieces or run.used_passages is not None:
        return
    pieces = [
        Passage(id=label, text=text, rank=rank)
        for rank, (label, (_, text)) in enumerate(state.pieces.items(), start=1)
    ]
    shown = {piece.id for prompt in run.prompts for piece in found_in(prompt, pieces)}
    used = {passage.id: passage for label, (passage, _) in state.pieces.items() if label in shown}
    if used:
        run.used(ranked(tuple(used.values())))
