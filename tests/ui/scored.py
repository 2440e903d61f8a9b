"""Scored files and sites for the tests of pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.testclient import TestClient

from ragtrace.pages import ServerLinks
from ragtrace.ui import Site, build_app
from ragtrace.views import Views

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

BEGIN = 1_790_000_000.0


def scored_line(number: int, *, value: float | None = 1.0, verdict: str = "ok", **facts: Any) -> dict[str, Any]:
    """Return a line of a scored file, with one claim, two passages and a diagnosis."""
    claim = facts.pop("claim", f"Claim {number}.")
    reason = facts.pop("reason", "nearest: something")
    is_good = value is None or value >= 0.8
    state = {"state": "na", "reason": "abstained"} if value is None else {"state": "ok", "value": value}
    claims = [
        {
            "text": claim,
            "verdict": "supported" if is_good else "not_supported",
            "support": value or 0.0,
            "sources": [0],
            "reason": reason,
        }
    ]
    return {
        "id": f"run-{number}",
        "trace_id": f"{number:032x}",
        "workflow": "support",
        "query": f"Question {number}?",
        "answer": f"Before. {claim} After.",
        "pool": [{"id": "a", "text": "Passage one.", "score": 0.9}, {"id": "b", "text": "Passage two. " * 40}],
        "selection": [{"id": "a"}],
        "contexts": [{"id": "a"}],
        "ended": BEGIN + number,
        "tags": ["channel:app" if number % 2 else "channel:web"],
        "scores": {
            "faithfulness": {
                **state,
                "passed": None if value is None else is_good,
                "judge": "overlap",
                "version": "v1",
                "details": {"claims": claims},
            },
            "diagnosis": {
                "state": "ok",
                "value": 1.0 if verdict == "ok" else 0.0,
                "judge": "overlap",
                "version": "v1",
                "details": {"verdict": verdict},
            },
        },
        **facts,
    }


def incident(count: int = 300) -> list[dict[str, Any]]:
    """Return lines of which those of the app invent facts from half-way on."""
    return [
        scored_line(n, value=0.3, verdict="unsupported")
        if n >= count // 2 and n % 2
        else scored_line(n, value=1.0 if n % 3 else 0.9)
        for n in range(count)
    ]


def write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def client_of(path: Path, *, is_read_only: bool = False, hosts: Iterable[str] = (), **options: Any) -> TestClient:
    read = Views.of_store if path.suffix == ".sqlite" else Views.of_file
    site = Site(views=read(path, **options), links=ServerLinks(is_read_only=is_read_only))
    return TestClient(build_app(site, hosts), base_url="http://127.0.0.1:7878")
