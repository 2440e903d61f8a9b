"""Replies of a judge at random: of the prompt's schema, nearly of it, and anything else a model or a server sends."""

from __future__ import annotations

import copy
import json
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ragtrace.errors import (
    JudgeFiltered,
    JudgeRateLimited,
    JudgeRefused,
    JudgeTimeout,
    JudgeTruncated,
    JudgeUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Schema = "Mapping[str, Any]"
TEXT = st.text('x1 \u00e9\u6771\u0627\U0001f642\n"\\', max_size=6)
# What stands where something else should: floats and texts for integers, integers beyond 64 bits, no number at all.
# Drawn as copies: a later fault of the same reply may be put inside one of them.
WRONG = st.sampled_from([
    1.0, 1.5, -1, 0, 99, 10**40, -(10**400), 1e308, float("nan"), float("inf"), "1", "", "supported ", "SUPPORTED",
    True, False, None, [], {}, [1], {"id": 1}, [[[]]], "\ud800", "\x00",
]).map(copy.deepcopy)  # fmt: skip
JUNK = st.recursive(
    WRONG | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "verdicts", "claims", "grades", "sources", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
NOT_JSON = st.sampled_from([
    "", "   \n", "null", "[]", "{}", "true", "5", "NaN", "-Infinity", "1e999", '"supported"', "\ufeff{}", "{'a': 1}",
    "{", "}", '{"verdicts": [', "[" * 50_000, '{"a":' * 50_000, "I cannot help with that.",
    "Lo siento, no puedo ayudar con eso.", "\u62b1\u6b49\uff0c\u6211\u65e0\u6cd5\u56de\u7b54\u3002",
    "\u0644\u0627 \u0623\u0633\u062a\u0637\u064a\u0639.", '{"id": 1, "id": 2}', '{"grades": "\\ud800"}',
    '{"verdicts": []} {"verdicts": []}', "<think>5</think>", "\x00", "\ud800", "9" * 5_000,
])  # fmt: skip
# Made anew for each call: a judge writes what it spent onto the error it raises.
FAILURES = st.sampled_from([
    JudgeRefused, JudgeTruncated, JudgeFiltered, JudgeTimeout, JudgeUnavailable, JudgeRateLimited,
    ConnectionResetError, ValueError, KeyError,
]).map(lambda kind: kind("of the test"))  # fmt: skip


def of_schema(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Any value of a JSON schema, with ids and numbers of contexts at random."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: of_schema(inner) for name, inner in schema["properties"].items()})
    if schema["type"] == "array":
        return st.lists(of_schema(schema["items"]), max_size=4)
    return {"string": TEXT, "boolean": st.booleans(), "integer": st.integers(0, 4)}[schema["type"]]


def sound(schema: Mapping[str, Any], data: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """A value of the schema whose rows are numbered as the data, or the texts of the reply itself, ask for."""
    return of_schema(schema).map(lambda made: _numbered(made, data))


def _numbered(made: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
    texts = [name for name, rows in made.items() if isinstance(rows, list) and rows and isinstance(rows[0], str)]
    for name in texts:
        made[name] = [f"{text} text" for text in made[name]]
    numbered = {key: inner for key, inner in data.items() if isinstance(inner, dict)}
    contexts = numbered.pop("contexts", {})
    # Lists of texts in the reply stand before the rows about them; else rows are about numbered texts of the data.
    has_own = any(name in made for name in ("claims", "facts"))
    shown = sum(map(len, numbered.values())) if numbered else len(contexts)
    wanted = sum(len(made.get(name, [])) for name in ("claims", "facts")) if has_own else shown
    for name, rows in made.items():
        if isinstance(rows, list) and rows and isinstance(rows[0], dict):
            made[name] = list(_renumbered(rows, wanted, len(contexts), data))
    return made


def _renumbered(
    rows: list[dict[str, Any]], wanted: int, n_contexts: int, data: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    pairs = [(part["part"], cited) for part in data.get("parts", []) for cited in part["cites"]]
    if "cites" in rows[0]:
        yield from ({**row, "part": part, "cites": cited} for row, (part, cited) in zip(cycle(rows), pairs))
    elif "id" in rows[0]:
        for number, row in enumerate(islice(cycle(rows), wanted), start=1):
            sources = [one for one in row.get("sources", []) if 1 <= one <= n_contexts]
            yield {**row, "id": number} | ({"sources": sources} if "sources" in row else {})
    else:
        yield from rows


@st.composite
def spoiled(draw: st.DrawFn, schema: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """A sound reply with one to three faults, or cut short, or with something around it."""
    made = draw(sound(schema, data))
    for _ in range(draw(st.integers(1, 3))):
        _spoil(made, draw)
    text = json.dumps(made, ensure_ascii=draw(st.booleans()))
    around = draw(st.sampled_from(["{}", "```json\n{}\n```", "Here you are: {}", "{}{}", "cut"]))
    return text[: draw(st.integers(0, len(text)))] if around == "cut" else around.replace("{}", text)


def _spoil(made: Any, draw: st.DrawFn) -> None:
    while True:
        places = list(made) if isinstance(made, dict) else list(range(len(made)))
        if not places:
            return
        place = draw(st.sampled_from(places))
        if isinstance(made[place], dict | list) and made[place] and draw(st.booleans()):
            made = made[place]
            continue
        _put(made, place, draw)
        return


def _put(made: Any, place: Any, draw: st.DrawFn) -> None:
    how = draw(st.sampled_from(["replace", "drop", "double"]))
    if how == "drop":
        del made[place]
    elif how == "double" and isinstance(made, list):
        made.append(made[place])
    else:
        made[place] = draw(WRONG | JUNK)


def anything(schema: Mapping[str, Any], data: Mapping[str, Any]) -> st.SearchStrategy[str | Exception]:
    """Any reply, or a failure of the call."""
    return (
        sound(schema, data).map(json.dumps)
        | of_schema(schema).map(json.dumps)
        | spoiled(schema, data)
        | JUNK.map(json.dumps)
        | NOT_JSON
        | st.text(max_size=20)
        | FAILURES
    )
