"""Records for judge tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ragtrace.model import AnswerPart, RagRecord
from tests import make

if TYPE_CHECKING:
    from ragtrace.judges import ScriptedChat


def record(*texts: str, ids: tuple[str, ...] | None = None, **fields: Any) -> RagRecord:
    names = ids or tuple(f"p{i}" for i in range(len(texts)))
    fields = {"query": "Where is the lab?", "answer": "In Oslo, since 2010."} | fields
    return make.record(**{"pools": (make.pool(*texts, ids=names),)} | fields)


def parts(*cited: tuple[str, ...]) -> tuple[AnswerPart, ...]:
    return tuple(AnswerPart(text=f"Part {i}.", citations=ids) for i, ids in enumerate(cited))


def verdict(
    number: int, word: str = "supported", sources: tuple[int, ...] = (1,), reason: str = ""
) -> dict[str, Any]:
    return {"id": number, "verdict": word, "sources": list(sources), "reason": reason}


def audit(claims: list[str], verdicts: list[dict[str, Any]], citations: Any = (), **fields: Any) -> dict[str, Any]:
    return {
        "attempted": True,
        "noncommittal": False,
        "claims": claims,
        "verdicts": verdicts,
        "citations": list(citations),
    } | fields


def data_of(chat: ScriptedChat, call: int = -1) -> dict[str, Any]:
    """Return what a call put between the marks of its prompt."""
    found: dict[str, Any] = json.loads(chat.prompts[call].user.split("<data-", 1)[1].split("\n")[1])
    return found
