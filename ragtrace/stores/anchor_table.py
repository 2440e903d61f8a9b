"""Anchors of a store's file, for the scorer and the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace.capture.off_loop import off_loop
from ragtrace.stores.anchors import (
    adopt_draft,
    anchor_facts,
    anchor_series,
    begin_draft,
    claim_anchor,
    drop_anchors,
    finish_first,
    hurry_anchors,
    note_draft,
    note_scores,
    read_anchors,
    resume_first,
    return_anchor,
    unfinished_reference,
    write_anchors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.sqlite_file import SharedFile
    from ragtrace.stores.anchors import Anchor, AnchorFacts, AnchorScore, AnchorSeries, UnfinishedReference


class AnchorTable:
    """Reads and writes anchors, each call in a transaction of its own. Thread-safe, as the file is.

    Every method raises sqlite3.Error where the disk is full, read-only or broken, or the file stays locked.

    Args:
        file: the store's.
        wall: Unix seconds.
    """

    def __init__(self, file: SharedFile, wall: Callable[[], float]) -> None:
        self._file = file
        self._wall = wall

    def replace(self, anchors: Iterable[Anchor], *, repeats: int, signature: str = "") -> list[Anchor]:
        """Write anchors in the place of all there were; return them with their ids.

        With a signature their first reference counts as begun, until `finish_first`.
        """
        with self._file.transaction() as connection:
            return write_anchors(connection, anchors, repeats=repeats, now=self._wall(), signature=signature)

    def resume_first(self, *, repeats: int, signature: str, judge: str) -> dict[int, int] | None:
        """Return the scores of an unfinished first reference by anchor; None without one of this kind and day."""
        with self._file.connection() as connection:
            return resume_first(connection, repeats=repeats, signature=signature, judge=judge, now=self._wall())

    def finish_first(self) -> None:
        """Note that the first reference was made."""
        with self._file.transaction() as connection:
            finish_first(connection)

    def unfinished(self) -> UnfinishedReference | None:
        """Return the reference that a stopped command may go on with; None without one."""
        with self._file.connection() as connection:
            return unfinished_reference(connection, self._wall())

    def drop(self) -> int:
        """Delete all anchors with their scores; return how many there were."""
        with self._file.transaction() as connection:
            return drop_anchors(connection)

    def begin_draft(self, *, repeats: int, signature: str) -> dict[int, int]:
        """Begin a new reference beside the one in use; return the scores that anchors have in it, by their ids.

        A draft of the same repeats and signature that began within a day is gone on with.
        """
        with self._file.transaction() as connection:
            return begin_draft(connection, repeats=repeats, signature=signature, now=self._wall())

    def note_draft(self, anchor: Anchor, scores: Iterable[AnchorScore]) -> None:
        """Write the scores of an anchor into the draft."""
        with self._file.transaction() as connection:
            note_draft(connection, anchor.id, scores, self._wall())

    def adopt_draft(self) -> bool:
        """Replace the reference of the draft's judge and metrics; False where it has too few runs."""
        with self._file.transaction() as connection:
            return adopt_draft(connection, self._wall())

    def all(self) -> list[Anchor]:
        """Return all anchors in the order in which they are scored."""
        with self._file.connection() as connection:
            return read_anchors(connection)

    @off_loop
    def facts(self) -> AnchorFacts:
        """Return number, time and repeats of the anchors."""
        with self._file.connection() as connection:
            return anchor_facts(connection)

    def series(self, *, fresh_s: float) -> list[AnchorSeries]:
        """Return the scores by series; a latest score older than `fresh_s` seconds makes no pair."""
        with self._file.connection() as connection:
            return anchor_series(connection, since=self._wall() - fresh_s)

    @off_loop
    def claim(self, *, gap_s: float, hurried_gap_s: float) -> Anchor | None:
        """Take the next anchor; None while none is due, for all processes at the file together."""
        with self._file.transaction() as connection:
            return claim_anchor(connection, self._wall(), gap_s=gap_s, hurried_gap_s=hurried_gap_s)

    @off_loop
    def give_back(self, anchor: Anchor) -> None:
        """Make a claimed anchor the next again."""
        with self._file.transaction() as connection:
            return_anchor(connection, anchor)

    @off_loop
    def note(self, anchor: Anchor, scores: Iterable[AnchorScore]) -> None:
        """Write the scores of an anchor: into its reference until that is whole, then as the latest."""
        with self._file.transaction() as connection:
            note_scores(connection, anchor.id, scores, self._wall())

    def hurry(self, *, every_s: float) -> bool:
        """Ask for a round at once; False where one was asked for within `every_s` seconds, or nothing is kept."""
        with self._file.transaction() as connection:
            return hurry_anchors(connection, self._wall(), every_s=every_s)
