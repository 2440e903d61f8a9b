"""Writes a judge's replies from the ``judge_verdicts`` of a record and what the request shows.

The same reply is given again to a repair: a list that is too short or too long stays so.
"""

from __future__ import annotations

from typing import Any

from tests.guards.golden.loading import na_reason

EXCEPTION = "exception"
_WORDS = {"yes": True, "no": False, "true": True, "false": False, 1: True, 0: False}
GRADES = {0: 1, 1: 3, 2: 4, 3: 5}  # of UMBRELA's scale, on that of 1 to 5


def fails(verdicts: Any) -> bool:
    """Whether a failure of the judge's server is anywhere in the verdicts."""
    if isinstance(verdicts, dict):
        return any(fails(value) for value in verdicts.values())
    if isinstance(verdicts, list):
        return any(fails(value) for value in verdicts)
    return verdicts == EXCEPTION


def nothing(*_: object) -> dict[str, Any]:
    """No judge is asked."""
    return {}


def faithfulness(record: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    given = record["judge_verdicts"] or {}
    given = given if isinstance(given, dict) else {"supported": given, "claims": len(given)}
    claims = given.get("claims", 0)
    texts = claims if isinstance(claims, list) else [f"claim {number}" for number in range(1, (claims or 0) + 1)]
    # Without a word on it, a record that expects "abstained" is a refusal.
    refused = bool(given.get("abstained", na_reason(record) == "abstained"))
    return _audit(
        given.get("attempted", not refused),
        noncommittal=given.get("noncommittal", refused),
        claims=texts,
        verdicts=[
            {
                "id": number,
                "verdict": _supported(value),
                "sources": [1] if _is_yes(value) and _contexts(data) else [],
            }
            for number, value in enumerate(given.get("supported", given.get("verdicts", [])) or [], start=1)
            if value is not None
        ],
    )


def no_answer(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    given = record["judge_verdicts"]
    given = given.get("attempted") if isinstance(given, dict) else given
    return _audit(given, noncommittal=_yes(given) is False)


def citations(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    inputs = record["inputs"]
    given = inputs.get("passages") or {}
    delivered = set(given) if isinstance(given, dict) else {str(n) for n in range(1, len(given) + 1)}
    rows, seen = [], set()
    for part, verdicts in enumerate(record["judge_verdicts"] or [], start=1):
        for verdict in verdicts:
            cited = str(verdict["citation"])
            # Verdicts on dangling and duplicate citations are never asked for.
            if cited in delivered and (part, cited) not in seen:
                rows.append({"part": part, "cites": cited, "support": verdict["support"]})
                seen.add((part, cited))
    return _audit(True, noncommittal=False, citations=rows)


def _audit(attempted: Any, *, noncommittal: Any, **lists: Any) -> dict[str, Any]:
    said = {"attempted": _yes(attempted), "noncommittal": _yes(noncommittal)}
    return said | {"claims": [], "verdicts": [], "citations": []} | lists


def answer_relevancy(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    given = record["judge_verdicts"] or {}
    flags = given.get("noncommittal", []) if isinstance(given, dict) else given
    flags = flags if isinstance(flags, list) else []
    return {
        "questions": [
            {"question": text, "noncommittal": _yes(flags[place] if place < len(flags) else 0)}
            for text, place in questions(record)
        ]
    }


def questions(record: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the texts of three questions, and which embedding of the record each has; fewer are said again."""
    given = record["inputs"].get("question_embeddings") or []
    places = [number % len(given) for number in range(max(len(given), 3))] if given else []
    return [
        ("" if given[place] is None else f"question {number} of {record['mark']}?", place)
        for number, place in enumerate(places, start=1)
    ]


def context_precision(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    contexts = record["inputs"].get("contexts") or []
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


def context_recall(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    contexts = record["inputs"].get("contexts") or []
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


def grades(record: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Grades on the scale of 1 to 5."""
    return _graded(record, data, _grade)


def umbrela_grades(record: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Grades on UMBRELA's own scale."""
    return _graded(record, data, lambda verdict: verdict)


def _graded(record: dict[str, Any], data: dict[str, Any], of: Any) -> dict[str, Any]:
    by_text = {f"d{place}": verdict for place, verdict in enumerate(record["judge_verdicts"] or [])}
    rows = [
        {"id": int(number), "grade": of(by_text[text])}
        for number, text in data["passages"].items()
        if by_text.get(text) is not None
    ]
    return {"grades": rows}


def _grade(verdict: Any) -> Any:
    known = isinstance(verdict, int) and verdict in GRADES
    return GRADES[verdict] if known else verdict if isinstance(verdict, str) else 99


def nuggets(record: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Whichever of the three prompts is asked: the list, importance a batch, support a batch.

    Importance is in the order in which nuggets are made, support in that of the list that is looked up: vital first.
    """
    verdicts = record["judge_verdicts"]
    importance = verdicts["importance"]
    texts = [f"nugget {place}" for place in range(1, len(importance) + 1)]
    if "nuggets" not in data:
        return {"nuggets": texts}
    if "answer" not in data:
        said = dict(zip(texts, importance, strict=True))
        return {"labels": [{"id": int(number), "importance": said[it]} for number, it in data["nuggets"].items()]}
    order = sorted(texts, key=lambda text: importance[texts.index(text)] != "vital")
    said = dict(zip(order, verdicts["assignment"], strict=False))
    return {"assignments": [{"id": int(number), "support": said[it]} for number, it in data["nuggets"].items()]}


def context_entities_recall(record: dict[str, Any], _: dict[str, Any]) -> Any:
    return record["judge_verdicts"]


def noise_sensitivity(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    """One reply for the three prompts; the claims of the answer are numbered before those of the reference."""
    verdicts, inputs = record["judge_verdicts"], record["inputs"]
    contexts = first(inputs, "retrieved_contexts", "contexts") or []
    facts = verdicts.get("reference_fact_by_context") or []
    behind = verdicts.get("answer_claim_by_context") or []
    correct = verdicts.get("answer_claim_correct") or []
    n_claims, n_facts = _number(verdicts, "claims", behind), _number(verdicts, "facts", facts)
    places = _places(behind, n_claims, 1, n_claims + n_facts) + _places(facts, n_facts, n_claims + 1, None)
    table = [
        {"id": number, "sources": _sources(row, contexts)}
        for number, row in zip(places, [*behind, *facts], strict=True)
        if row is not None
    ]
    # The records say nothing of the reference's claims against the answer; the metric does not read it.
    flags = [*correct, *[0] * n_facts]
    ids = _places(correct, n_claims, 1, n_claims + n_facts) + list(range(n_claims + 1, n_claims + n_facts + 1))
    return _claims(record, n_claims, n_facts) | {"table": table, "verdicts": _verdicts(ids, flags)}


def factual_correctness(record: dict[str, Any], _: dict[str, Any]) -> dict[str, Any]:
    verdicts = record["judge_verdicts"]
    answer = verdicts.get("answer_claims_entailed") or []
    reference = verdicts.get("reference_claims_entailed") or []
    n_claims = _number(verdicts, "answer_claims", answer)
    n_facts = _number(verdicts, "reference_claims", reference)
    ids = _places(answer, n_claims, 1, n_claims + n_facts) + _places(reference, n_facts, n_claims + 1, None)
    return _claims(record, n_claims, n_facts) | {"verdicts": _verdicts(ids, [*answer, *reference])}


def first(inputs: dict[str, Any], *names: str) -> Any:
    """Return the first of these inputs that the record has."""
    return next((inputs[name] for name in names if inputs.get(name) is not None), None)


def _contexts(data: dict[str, Any]) -> int:
    return len(data.get("contexts") or ())


def _is_yes(value: Any) -> bool:
    return _yes(value) is True or value == "supported"


def _yes(value: Any) -> Any:
    """The truth value a record means; anything else goes to the parser as it is."""
    key = value.lower() if isinstance(value, str) else value
    return _WORDS.get(key, value) if isinstance(key, str | int) else value


def _supported(value: Any) -> str:
    if value in {"supported", "not_supported", "contradicted"}:
        return str(value)
    return "supported" if _is_yes(value) else "not_supported"


def _number(verdicts: dict[str, Any], key: str, rows: list[Any]) -> int:
    """How many claims there are: as the record says, else as many as have a row."""
    given = verdicts.get(key, len(rows))
    return given if isinstance(given, int) else len(given)


def _places(rows: list[Any], known: int, start: int, beyond: int | None) -> list[int]:
    """The ids of rows from `start` on; those past `known` are ids that do not exist."""
    over = (start + known - 1 if beyond is None else beyond) + 1
    return [start + place if place < known else over + place for place in range(len(rows))]


def _claims(record: dict[str, Any], n_claims: int, n_facts: int) -> dict[str, Any]:
    mark = record["mark"]  # a later prompt shows nothing but claims and contexts
    return {
        "answer_claims": [f"claim {number} of {mark}" for number in range(1, n_claims + 1)],
        "reference_claims": [f"fact {number} of {mark}" for number in range(1, n_facts + 1)],
    }


def _sources(row: Any, contexts: list[str]) -> Any:
    """The contexts of a row of the matrix, as the judge numbers those that are not blank."""
    if not isinstance(row, list):
        return row
    kept = [place for place, text in enumerate(contexts) if text.strip()]
    if len(row) == len(kept):
        kept = list(range(len(row)))
    numbers = {place: number for number, place in enumerate(kept, start=1)}
    # A blank context is never shown; a column past the contexts is one that does not exist.
    return [
        numbers.get(place, place + 1)
        for place, cell in enumerate(row)
        if cell and (place in numbers or place >= len(contexts))
    ]


def _verdicts(ids: list[int], flags: list[Any]) -> list[dict[str, Any]]:
    return [
        {"id": number, "verdict": _entailed(flag)}
        for number, flag in zip(ids, flags, strict=True)
        if flag is not None
    ]


def _entailed(flag: Any) -> Any:
    """The word a record means; what it does not know goes to the parser as it is."""
    known = {"entailed": "supported", "neutral": "not_supported", True: "supported", False: "not_supported"}
    return known.get(flag, flag) if isinstance(flag, str | int) else flag
