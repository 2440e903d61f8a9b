"""Filters of the templates: numbers, times and words as people read them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from ragtrace.model.diagnosis import VERDICTS
from ragtrace.model.reading import signed_text
from ragtrace.model.standing import word_of
from ragtrace.scoring.investigation.lines import ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.stats.intervals import Interval

NONE = "–"
FACTS = {
    "sufficient": "contexts hold the answer",
    "found": "every needed passage was retrieved",
    "selected": "no needed one was left out for a worse",
    "shown": "every needed one selected stood in the prompt",
    "reached": "the best needed ones stood in the prompt",
    "related": "contexts hold two of five words of the question",
    "attempted": "the answer tries to answer",
    "supported": "contexts support its claims",
    "contradicted": "contexts contradict a claim",
    "responsive": "it turns to the question",
    "used": "it rests on a needed passage",
    "complete": "it holds all the facts",
    "by": "needed passages are known from",
    "n_needed": "needed passages",
    "n_needed_in_pool": "of them retrieved",
    "n_needed_in_prompt": "of them in the prompt",
    "n_claims": "claims",
    "n_unsupported": "of them not supported",
    "n_contradicted": "of them contradicted",
    "n_invented": "numbers, dates, names, quotes and addresses that no context has",
    "because": "why it is undetermined",
}
"""Words for the facts of a diagnosis, see `ragtrace.metrics.diagnosis.table.DiagnosisFacts`."""


def number(value: float | None) -> str:
    """Return a number with as many digits as matter; a dash for none.

    Example:
        >>> number(0.934), number(1.0), number(312.4), number(None)
        ('0.93', '1.00', '312', '–')
    """
    if value is None:
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def signed(value: float | None) -> str:
    """Return a difference with its sign.

    Example:
        >>> signed(0.12), signed(-0.12), signed(0.0)
        ('+0.12', '−0.12', '0.00')
    """
    if value is None:
        return NONE
    text = number(abs(value))
    return text if not float(text.replace(",", "")) else f"{'−' if value < 0 else '+'}{text}"


def percent(share: float | None) -> str:
    """Return a share of 0 to 1 as a percentage.

    Example:
        >>> [percent(share).split() for share in (0.123, 0.004, None)]
        [['12', '%'], ['0.4', '%'], ['–']]
    """
    if share is None:
        return NONE
    digits = 1 if 0 < abs(share) < 0.095 or 0.995 <= share < 1 else 0
    return f"{share * 100:.{digits}f}\N{NO-BREAK SPACE}%"


def count(value: int | None) -> str:
    """Return a whole number with thousands apart.

    Example:
        >>> count(12345)
        '12,345'
    """
    return NONE if value is None else f"{value:,d}"


def interval(found: Interval, form: Callable[[float | None], str] = number) -> str:
    """Return the bounds of an interval; a dash without bounds."""
    return NONE if found.low is None or found.high is None else f"{form(found.low)} to {form(found.high)}"


def part_of_fall(share: float | None) -> str:
    """Return which part of a fall is explained, as `ragtrace investigate` prints it.

    Example:
        >>> [part_of_fall(share).split() for share in (0.9, 0.951, None)]
        [['90', '%'], ['all'], ['–']]
    """
    return "all" if share is not None and share >= ALL else percent(share)


def percent_interval(found: Interval) -> str:
    """Return the bounds of a share's interval."""
    return interval(found, percent)


def seconds(value: float | None) -> str:
    """Return a duration.

    Example:
        >>> seconds(0.0123), seconds(2.34), seconds(7322)
        ('12 ms', '2.3 s', '2 h 2 min')
    """
    if value is None:
        return NONE
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes = round(value / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def moment(at: float | None) -> Markup:
    """Return a `time` element in UTC; a dash for none.

    Example:
        >>> moment(1_700_000_000.5)
        Markup('<time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13:20 UTC</time>')
    """
    try:
        when = datetime.fromtimestamp(at, UTC) if at else None
    except (OSError, OverflowError, ValueError):  # no moment of a calendar
        when = None
    if when is None:
        return escape(NONE)
    return Markup('<time datetime="{:%Y-%m-%dT%H:%M:%SZ}">{:%Y-%m-%d %H:%M:%S} UTC</time>').format(when, when)


def input_moment(at: float | None) -> str:
    """Return the value of an input of a date and time, in UTC; empty for none.

    Example:
        >>> input_moment(1_700_000_000.5), input_moment(None)
        ('2023-11-14T22:13:20', '')
    """
    try:
        return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"
    except (OSError, OverflowError, ValueError):  # no moment of a calendar
        return ""


def file_name(path: str) -> str:
    """Return the last part of a path.

    Example:
        >>> file_name("/data/scored.jsonl"), file_name("s3://bucket/scored/")
        ('scored.jsonl', 'scored')
    """
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def words(name: str | None) -> str:
    """Return a name of our code as words.

    Example:
        >>> words("cut_from_prompt"), words(None)
        ('cut from prompt', '–')
    """
    return NONE if name is None else name.replace("_", " ")


def verdict_word(name: str | None) -> str | None:
    """Return good, bad or unclear for a verdict; None for none.

    Example:
        >>> verdict_word("cut_from_prompt"), verdict_word(None)
        ('bad', None)
    """
    return next((word_of(verdict) for verdict in VERDICTS if verdict == name), None)


def known_facts(found: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the facts of a diagnosis that have words, in the order of the words.

    Example:
        >>> known_facts([("n_claims", "2"), ("matched", "yes")])
        [('claims', '2')]
    """
    facts = dict(found)
    return [(said, facts[name]) for name, said in FACTS.items() if name in facts]


def plural(value: int, noun: str) -> str:
    """Return a count with its noun.

    Example:
        >>> plural(1, "run"), plural(1200, "run")
        ('1 run', '1,200 runs')
    """
    return f"{value:,d} {noun}{'s' * (value != 1)}"


def web_address(url: str | None) -> str | None:
    """Return an address of the web, None for any other, such as ``javascript:``.

    Example:
        >>> web_address("https://grafana/explore"), web_address("javascript:alert(1)")
        ('https://grafana/explore', None)
    """
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def as_json(value: object) -> str:
    """Return JSON for an attribute; a browser reads it from the element's data set."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


FILTERS: dict[str, Callable[..., object]] = {
    "as_json": as_json,
    "count": count,
    "file_name": file_name,
    "input_moment": input_moment,
    "interval": interval,
    "known_facts": known_facts,
    "moment": moment,
    "number": number,
    "part_of_fall": part_of_fall,
    "percent": percent,
    "percent_interval": percent_interval,
    "plural": plural,
    "seconds": seconds,
    "signed": signed,
    "signed_text": signed_text,
    "verdict_word": verdict_word,
    "web_address": web_address,
    "words": words,
}
