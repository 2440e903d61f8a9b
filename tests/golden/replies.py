"""Writes a judge's replies from the ``judge_verdicts`` of a record, for the real parser to read.

The same reply is given again to a repair: a list that is too short or too long stays so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.errors import JudgeTimeout, JudgeUnavailable
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.judges.llm.numbering import grading_batches
from ragtrace.judges.llm.scripted import ScriptedChat
from ragtrace.judges.scales import from_umbrela
from tests.golden.loading import na_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.model import RagRecord

EXCEPTION = "exception"
_WORDS = {"yes": True, "no": False, "true": True, "false": False, 1: True, 0: False}


def judge(record: dict[str, Any], write: Callable[[], Any]) -> LLMJudge:
    """Return a judge over the real parser; without verdicts it must not be asked, and is unavailable if it is."""
    verdicts = record.get("judge_verdicts")
    if verdicts is None:
        return LLMJudge(ScriptedChat())
    return LLMJudge(ScriptedChat(always=failure(record) if fails(verdicts) else write()))


def fails(verdicts: Any) -> bool:
    """Whether a transport failure stands anywhere in the verdicts."""
    if isinstance(verdicts, dict):
        return any(fails(value) for value in verdicts.values())
    if isinstance(verdicts, list):
        return any(fails(value) for value in verdicts)
    return verdicts == EXCEPTION


def failure(record: dict[str, Any]) -> Exception:
    """The failure of a chat model that the record names; one of no known kind is a judge_error."""
    message = "connection reset by the golden vector"
    known = {"judge_timeout": JudgeTimeout(message), "judge_unavailable": JudgeUnavailable(message)}
    return known.get(na_reason(record) or "", ConnectionResetError(message))


def faithfulness(record: dict[str, Any], n_contexts: int) -> dict[str, Any]:
    given = record["judge_verdicts"] or {}
    given = given if isinstance(given, dict) else {"supported": given, "claims": len(given)}
    claims = given.get("claims", 0)
    texts = claims if isinstance(claims, list) else [f"claim {number}" for number in range(1, (claims or 0) + 1)]
    # Without a word on it, a record that expects "abstained" is a refusal.
    refused = bool(given.get("abstained", na_reason(record) == "abstained"))
    return {
        "attempted": _yes(given.get("attempted", not refused)),
        "noncommittal": _yes(given.get("noncommittal", refused)),
        "claims": texts,
        "verdicts": [
            {"id": number, "verdict": _verdict(value), "sources": [1] if _is_yes(value) and n_contexts else []}
            for number, value in enumerate(given.get("supported", given.get("verdicts", [])) or [], start=1)
            if value is not None
        ],
        "citations": [],
    }


def attempt(record: dict[str, Any]) -> dict[str, Any]:
    given = record["judge_verdicts"]
    given = given.get("attempted") if isinstance(given, dict) else given
    said = _yes(given)
    return {"attempted": said, "noncommittal": said is False, "claims": [], "verdicts": [], "citations": []}


def citations(record: dict[str, Any], delivered: set[str]) -> dict[str, Any]:
    rows, seen = [], set()
    for part, verdicts in enumerate(record["judge_verdicts"] or [], start=1):
        for verdict in verdicts:
            cited = str(verdict["citation"])
            # Verdicts on dangling and duplicate citations are never asked for.
            if cited in delivered and (part, cited) not in seen:
                rows.append({"part": part, "cites": cited, "support": verdict["support"]})
                seen.add((part, cited))
    return {"attempted": True, "noncommittal": False, "claims": [], "verdicts": [], "citations": rows}


def questions(record: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    given = record["judge_verdicts"] or {}
    flags = given.get("noncommittal", []) if isinstance(given, dict) else given
    flags = flags if isinstance(flags, list) else []
    return {
        "questions": [
            {"question": text, "noncommittal": _yes(flags[place] if place < len(flags) else 0)}
            for place, text in enumerate(texts)
        ]
    }


def relevance(record: dict[str, Any], contexts: list[str]) -> dict[str, Any]:
    given = record["judge_verdicts"] or {}
    flags = given.get("relevant", []) if isinstance(given, dict) else given
    flags = list(flags) if isinstance(flags, list) else []
    kept = [place for place, text in enumerate(contexts) if text.strip()]
    if len(kept) < len(contexts) == len(flags):
        flags = [flags[place] for place in kept]  # one a context, of which the blank ones are never shown
    return {
        "verdicts": [
            {"id": number, "relevant": _yes(flag)} for number, flag in enumerate(flags, start=1) if flag is not None
        ]
    }


def facts(record: dict[str, Any], contexts: list[str]) -> dict[str, Any]:
    given = record["judge_verdicts"] or {}
    given = given if isinstance(given, dict) else {}
    number = given.get("facts", 0)
    texts = number if isinstance(number, list) else [f"fact {n}" for n in range(1, (number or 0) + 1)]
    attributed = given.get("attributed", [])
    attributed = attributed if isinstance(attributed, list) else []
    sources = given.get("source_context") or []
    kept = [place for place, text in enumerate(contexts, start=1) if text.strip()]
    rows = []
    for place, flag in enumerate(attributed):
        source = sources[place] if place < len(sources) else None
        shown = kept.index(source) + 1 if source in kept else 1
        if flag is not None:
            rows.append({"id": place + 1, "sources": [shown] if _is_yes(flag) else []})
    return {"facts": texts, "attributions": rows}


def umbrela_grades(record: dict[str, Any], made: RagRecord) -> list[dict[str, Any]]:
    """One reply a batch, on our scale of 1 to 5, in the order in which the judge shows the passages."""
    given = record["judge_verdicts"] or []
    by_id = {f"d{place}": verdict for place, verdict in enumerate(given)}
    return [
        {
            "grades": [
                {"id": number, "grade": _grade(by_id[passage.id])}
                for number, passage in enumerate(batch, start=1)
                if by_id.get(passage.id) is not None
            ]
        }
        for batch in grading_batches(made)
    ]


def _grade(verdict: Any) -> Any:
    try:
        return from_umbrela(verdict)
    except ValueError:
        return verdict if isinstance(verdict, str) else 99  # unparseable stays so on our scale


def _is_yes(value: Any) -> bool:
    return _yes(value) is True or value == "supported"


def _yes(value: Any) -> Any:
    """The truth value a record means; anything else goes to the parser as it is."""
    key = value.lower() if isinstance(value, str) else value
    return _WORDS.get(key, value) if isinstance(key, str | int) else value


def _verdict(value: Any) -> str:
    if value in {"supported", "not_supported", "contradicted"}:
        return str(value)
    return "supported" if _is_yes(value) else "not_supported"
