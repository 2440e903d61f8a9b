"""State of a workflow's run beside its spans: the person it waits for, and its saved context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent, StartEvent

from ragtrace.capture import record_internal_error
from ragtrace_llamaindex.messages import fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WAITING = "WaitingForEvent"


def is_waiting(error: object) -> bool:
    """Tell whether an exception is the one by which ``ctx.wait_for_event`` leaves a step until its event comes.

    Example:
        >>> is_waiting(ValueError("waiting"))
        False
    """
    kind = type(error)
    return kind.__name__ == _WAITING and kind.__module__.startswith("workflows")


def journal_of(workflow: Any) -> object:
    """Return what the runtime of the current run of a workflow keeps of it; None where it keeps nothing.

    Early versions of llama-index-workflows have no such thing, and a runtime of another maker may have none.
    """
    try:
        return workflow.runtime.get_internal_adapter(workflow)
    except Exception:  # it says so in many ways, and each runtime in its own
        return None


def awaited_in(journals: Iterable[Any]) -> object:
    """Return what these runs wait for, as a person is asked it; None where they wait for nobody.

    That is the event that a step gave out, or that ``wait_for_event`` was told to give out, else the name of the
    event that is waited for.
    """
    try:
        return next((one for journal in journals for one in _open_waits(journal)), None)
    except Exception as error:
        record_internal_error("ragtrace_llamaindex.workflow_state.awaited", error)
        return None


def _open_waits(journal: Any) -> Iterator[object]:
    replay = getattr(journal, "replay", None)
    if replay is None:
        return
    waits: dict[object, Any] = {}
    asked: object = None
    for tick in list(replay()):
        came = getattr(tick, "event", None) if getattr(tick, "type", None) == "add_event" else None
        if came is not None:
            asked = None if isinstance(came, HumanResponseEvent) else asked
            waits = {name: wait for name, wait in waits.items() if not _resolves(came, wait)}
        for part in getattr(tick, "result", None) or ():
            kind = getattr(part, "type", None)
            if kind == "add_waiter":
                waits[part.waiter_id] = part
            elif kind == "delete_waiter":
                waits.pop(part.waiter_id, None)
            elif isinstance(given := getattr(part, "result", None), InputRequiredEvent):
                asked = given
    if asked is not None:
        yield asked
    for wait in waits.values():
        yield wait.waiter_event if wait.waiter_event is not None else wait.event_type.__name__


def _resolves(event: Any, wait: Any) -> bool:
    if not isinstance(event, wait.event_type):
        return False
    return all(getattr(event, name, None) == value for name, value in (wait.requirements or {}).items())


class Saved(NamedTuple):
    """Contents of a context when a run begins with it.

    Attributes:
        started: fields of the event with which the conversation began, where a step still has it.
        state: what the steps have put into the store.
        events: fields of the other events that steps have yet to take.
    """

    started: Mapping[str, object]
    state: Mapping[str, object]
    events: tuple[Mapping[str, object], ...]


def saved_in(journal: object, broker: object) -> Saved:
    """Return what a context holds; of a store that keeps its state elsewhere nothing."""
    try:
        events = list(_waiting_events(broker))
        started = next((event for event in events if isinstance(event, StartEvent)), None)
        return Saved(
            {} if started is None else fields_of(started),
            _stored(journal),
            tuple(fields_of(event) for event in events if event is not started),
        )
    except Exception as error:  # an application's own state may raise anything when it is looked at
        record_internal_error("ragtrace_llamaindex.workflow_state.saved", error)
        return Saved({}, {}, ())


def _waiting_events(broker: object) -> Iterator[object]:
    workers = getattr(broker, "workers", None)
    for worker in workers.values() if isinstance(workers, dict) else ():
        for name in ("queue", "in_progress", "collected_waiters"):
            for one in getattr(worker, name, None) or ():
                event = getattr(one, "event", None)
                if event is not None:
                    yield event


def _stored(journal: Any) -> Mapping[str, object]:
    find = getattr(journal, "get_state_store", None)
    store: Any = None if find is None else find()
    if not any(kind.__name__ == "InMemoryStateStore" for kind in type(store).__mro__):
        return {}
    reading = store.get_state()
    try:
        reading.send(None)
    except StopIteration as end:
        state = end.value
    else:  # somebody edits it: nothing of ours may wait
        reading.close()
        return {}
    return fields_of(state) if not isinstance(state, Mapping) else dict(state)
