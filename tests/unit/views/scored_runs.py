"""Scored lines and stores for the tests of views."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.model import JudgeInfo, record_from_json
from tests import make

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ragtrace.stores import SqliteStore

START = 1_790_000_000.0


def score(value: float | None, *, judge: str = "overlap", **details: object) -> dict[str, Any]:
    """Return one score of a line; without a value it is `na`."""
    state = {"state": "ok", "reason": None} if value is not None else {"state": "na", "reason": "no_claims"}
    passed = None if value is None else value >= 0.5
    return {**state, "value": value, "passed": passed, "details": details, "judge": judge, "version": "a1"}


def line(number: int, value: float | None = None, **fields: Any) -> dict[str, Any]:
    """Return one scored line; three runs share a session."""
    rng = random.Random(number)
    value = round(rng.random(), 3) if value is None else value
    claims = [
        {"text": "Refunds take five days.", "verdict": "supported", "support": 1.0, "sources": [0], "reason": "r"},
        {"text": f"Order {number} is free.", "verdict": "not_supported", "support": 0.1, "sources": []},
    ]
    passages = [{"id": "a", "text": "Refunds take five days.", "score": 0.9}, {"id": "b", "text": "Shipping."}]
    return {
        "id": f"r{number}",
        "trace_id": f"{number + 1:032x}",
        "workflow": "shop" if number % 2 else "support",
        "session": f"s{number // 3}",
        "query": f"How long does refund {number} take?",
        "answer": f"Refunds  take five days. Order {number} is free. Bye.",
        "pool": passages,
        "contexts": passages[:1],
        "model": "m1",
        "tags": ["app"] if number % 5 else ["web"],
        "started": START + number * 60.0,
        "ended": START + number * 60.0 + 2.0,
        "scores": {
            "faithfulness": score(value, claims=claims),
            "contradicted_rate": score(round(1.0 - value, 3)),
            "diagnosis": score(float(value >= 0.5), verdict="ok" if value >= 0.5 else "unsupported"),
        },
        **fields,
    }


def reading(*signs: str, how: str = "structure") -> dict[str, Any]:
    """Return what capture read of a run, of a line, with these signs; `how` is that of its source."""
    return {
        "question": {"place": "input.question"},
        "answers": [{"place": "output"}],
        "sources": [{"name": "faq", "kind": "search", "passages": 2, "chosen": 2, "how": how}],
        "signs": [
            {"name": name, "about": "input.body", "text": "My <order>", "declare": "question=..."} for name in signs
        ],
    }


def write(path: Path, lines: Iterable[object]) -> Path:
    """Write lines to a file; a text is written as it is."""
    path.write_text("".join(f"{it if isinstance(it, str) else json.dumps(it)}\n" for it in lines))
    return path


def emit(store: SqliteStore, given: dict[str, Any], *, weight: float = 1.0, stratum: Any = "random") -> None:
    """Write a line to a store."""
    record = replace(record_from_json(given, fallback_id="1"), span_id="s" * 16)
    drawn = {"weight": weight, "stratum": stratum, "at": given["ended"]}
    named = ("state", "value", "reason", "passed", "details", "version")
    scores = [
        make.score(record, name, judge=JudgeInfo(model=it["judge"]), **{fact: it[fact] for fact in named}, **drawn)
        for name, it in given["scores"].items()
    ]
    store.emit(record, scores)


def open_store(path: Path) -> SqliteStore:
    """Open a store that keeps every text."""
    return make.store(path, has_content=True, payload_share=1.0)
