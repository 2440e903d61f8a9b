"""Filters of runs in the query of a URL."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

from ragtrace.errors import InputError
from ragtrace.model.diagnosis import STAGES, VERDICTS
from ragtrace.model.reading import ANY_SIGN, SIGNS
from ragtrace.views.columns import STATES
from ragtrace.views.types import Order, RunFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FAILED = "failed"
"""Stands for every verdict that names a stage."""
MISSED = "missed"
"""State of a value that misses its threshold."""
_MOST_CHARS = 500
_WORDS = {"yes": True, "no": False}
_CHOICES: dict[str, tuple[str, ...]] = {
    "order": get_args(Order),
    "verdict": (FAILED, *VERDICTS),
    "stage": tuple(dict.fromkeys(stage for stage in STAGES.values() if stage != "none")),
    "state": (*STATES[:3], MISSED),
    "labelled": tuple(_WORDS),
    "sign": (ANY_SIGN, *SIGNS),
}


def filter_from_query(query: Mapping[str, str]) -> RunFilter:
    """Return the filter that a URL's query holds; unknown and empty fields are ignored.

    Raises:
        InputError: a field has a wrong value; the message names the field and what to write.

    Example:
        >>> filter_from_query({"workflow": "support", "high": "0.5", "page": "2"}).high
        0.5
    """
    given: dict[str, Any] = {}
    for it in fields(RunFilter):
        text = query.get(it.name, "").strip() if it.name != "text" else query.get(it.name, "")
        if text:
            given[it.name] = _READERS.get(it.name, _name)(it.name, text)
    found = RunFilter(**given)
    if found.low is not None and found.high is not None and found.low > found.high:
        raise InputError(f"low {found.low:g} is above high {found.high:g}; exchange them")
    return found


def filter_to_query(which: RunFilter) -> dict[str, str]:
    """Return the fields of a filter that differ from the default, for a URL's query.

    Example:
        >>> filter_to_query(RunFilter(verdict="failed", low=0.25, order="worst"))
        {'low': '0.25', 'verdict': 'failed'}
    """
    plain = RunFilter()
    changed = {
        it.name: value for it in fields(which) if (value := getattr(which, it.name)) != getattr(plain, it.name)
    }
    return {name: _shown(value) for name, value in changed.items()}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} must be a number, got {text!r:.40}")
    return value


def _choice(name: str, text: str) -> str:
    if text not in _CHOICES[name]:
        raise InputError(f"{name} must be one of {', '.join(_CHOICES[name])}, got {text!r:.40}")
    return text


def _name(name: str, text: str) -> str:
    if len(text) > _MOST_CHARS:
        raise InputError(f"{name} may have {_MOST_CHARS} characters, got {len(text)}")
    return text


_READERS: dict[str, Callable[[str, str], object]] = {
    **dict.fromkeys(("low", "high", "since", "until"), _number),
    **dict.fromkeys(("order", "verdict", "stage", "state", "sign"), _choice),
    "labelled": lambda name, text: _WORDS[_choice(name, text)],
}
