"""Keep scores and feedback of a service in its store, and delete old ones."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.capture import guarded, record_internal_error
from ragtrace.capture.guard import kind_of
from ragtrace.errors import ConfigError, StoreError
from ragtrace.model.passage import IdKey
from ragtrace.service.feedback.within_runs import labels_of
from ragtrace.sinks.outbox import Attempt, Outbox
from ragtrace.stores import Label, Policy
from ragtrace.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragtrace.model import RagRecord
    from ragtrace.settings import Settings

_AGE_EVERY_S = 60.0
_REMEMBERED = 10_000  # runs with a session or user: 1.5 MB, half an hour of 5 a second
_RUNS_S = 5.0  # for runs that ended before their feedback to be remembered
_NO_KEY = (
    "ragtrace: the store gives no key ({}): ids that are made of texts are other ones in this process; "
    "set RAGTRACE_ID_KEY"
)
_open: dict[str, Storing] = {}


class _WaitingLabel(NamedTuple):
    """A label that waits to be written.

    Attributes:
        label: the person's judgement.
        is_of_ended_run: it was given within a run, whose record has told its session and user and was counted.
    """

    label: Label
    is_of_ended_run: bool


class Storing:
    """Keeps scores, and takes feedback without waiting.

    Its scores are written and published by `ragtrace.service.score_outbox`. Thread-safe.

    Attributes:
        wait_for_runs: waits until every ended run is remembered; called in the thread that writes feedback.
        on_rated: called with the labels that were written, in the same thread, but for those given within runs.

    Args:
        store: the file.
        is_joined: whether a spool of the same file ends the jobs.
    """

    def __init__(self, store: SqliteStore, *, is_joined: bool) -> None:
        self.store = store
        self.is_joined = is_joined
        self._labels: Outbox[_WaitingLabel] = Outbox(self._deliver, site="ragtrace.feedback")
        self.wait_for_runs: Callable[[float], object] | None = None
        self.on_rated: Callable[[Sequence[Label]], None] | None = None
        self._aged_at = -_AGE_EVERY_S
        self._id_key: IdKey | None = None
        self._people: deque[tuple[str, tuple[str | None, str | None]]] = deque(maxlen=_REMEMBERED)

    @classmethod
    def of(cls, settings: Settings) -> Storing | None:
        """Return the store of some settings, None without one; the same file is opened once for the same settings.

        Raises:
            ConfigError: it cannot be opened.
        """
        if settings.store.path is None:
            return None
        path, policy = os.path.realpath(settings.store.path), policy_of(settings)
        is_joined = settings.spool.path is not None and os.path.realpath(settings.spool.path) == path
        found = _open.get(path)
        if found is None or (found.store.policy, found.is_joined) != (policy, is_joined):
            try:
                store = SqliteStore(Path(settings.store.path), policy)
            except StoreError as error:
                raise ConfigError(f"store: {error}") from error
            found = _open[path] = cls(store, is_joined=is_joined)
        return found

    def id_key(self) -> IdKey | None:
        """Return the key in the file, see `SqliteStore.id_key`; None where the file cannot be used now."""
        if self._id_key is None:
            try:
                self._id_key = IdKey(self.store.id_key())
            except Exception as error:
                record_internal_error("ragtrace.service.storing.id_key", error, line=_NO_KEY.format(kind_of(error)))
        return self._id_key

    def remember(self, record: RagRecord) -> None:
        """Note a run's session and user, and take the ratings that the application gave within it.

        Feedback on an unscored run is found by its session and user.
        """
        if record.session is not None or record.user is not None:
            self._people.append((record.trace_id, (record.session, record.user)))
        if record.feedback:
            self._labels.offer([_WaitingLabel(label, is_of_ended_run=True) for label in labels_of(record)])

    def rate(self, label: Label) -> None:
        """Take a label; a thread writes it. Beyond 4,096 waiting ones it is lost and counted."""
        self._labels.offer([_WaitingLabel(label, is_of_ended_run=False)])

    @guarded
    def sweep(self) -> None:
        """Delete what is too old, about once a minute, and from the journal too; call it as often as you like."""
        if time.monotonic() - self._aged_at >= _AGE_EVERY_S:
            self._aged_at = time.monotonic()
            self.store.apply_retention()
        self.store.empty_journal()

    def flush(self, timeout_s: float) -> bool:
        """Wait until the feedback is written."""
        return self._labels.flush(timeout_s)

    def retire(self) -> None:
        """Take this object out of the open stores, before it is closed."""
        for path, other in list(_open.items()):
            if other is self:
                _open.pop(path, None)

    def close(self, timeout_s: float) -> bool:
        """Write the feedback and close the file; False when some was lost."""
        self.retire()
        is_whole = self._labels.close(timeout_s)
        return self.store.close() and is_whole

    def _deliver(self, waiting: Sequence[_WaitingLabel]) -> Attempt:
        given_later = [one.label for one in waiting if not one.is_of_ended_run]
        try:
            if self.wait_for_runs is not None and given_later:
                self.wait_for_runs(_RUNS_S)
            self.store.rate(self._with_people([one.label for one in waiting]))
        except Exception as error:
            record_internal_error("ragtrace.feedback.write", error)
            return Attempt(may_repeat=True, complaint=f"feedback cannot be written: {type(error).__name__}")
        if self.on_rated is not None:
            self.on_rated(given_later)
        return Attempt(is_delivered=True)

    def _with_people(self, labels: Sequence[Label]) -> list[Label]:
        people = dict(self._people.copy())
        known = [people.get(label.trace_id, (None, None)) for label in labels]
        return [
            replace(label, session=label.session or session, user=label.user or user)
            for label, (session, user) in zip(labels, known, strict=True)
        ]


def policy_of(settings: Settings) -> Policy:
    """Return the retention policy of some settings.

    Example:
        >>> from ragtrace.settings import Settings
        >>> policy_of(Settings.resolve({}, {})).payloads_s
        259200.0
    """
    return Policy(
        has_content=settings.content == "full",
        scores_s=settings.store.scores_days * 86_400.0,
        has_all_texts=settings.store.texts == "all",
        payloads_s=settings.store.payload_hours * 3_600.0,
        file_bytes=settings.store.bytes,
    )
