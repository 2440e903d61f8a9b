"""Replies of graders, checks and routers: they steer a program, and answer nobody."""

from __future__ import annotations

import json
import re

from ragtrace.capture import ANSWER_WORDS
from ragtrace_langchain.documents import fields_of
from ragtrace_langchain.messages import QUESTION_KEYS, content_text

# The reply of a grader or a router, compared in lower case without punctuation at its edges.
_WORDS = frozenset(
    {
        "yes", "no", "true", "false", "useful", "vectorstore", "web_search", "websearch", "generate", "rewrite",
        "hallucination", "no hallucination", "no support", "partial support", "full support",
        "ja", "nein", "oui", "non", "si", "sí", "sì", "sim", "não", "nee", "nej", "はい", "いいえ", "是", "否",
    }
)  # fmt: skip
_DEGREES = "not|fully|partially|partly|mostly|completely|entirely|largely|somewhat|highly|very|well|strongly"
_JUDGED = "supported|relevant|grounded|useful|correct|accurate|faithful|factual|consistent|sufficient|hallucinated"
_ABROAD = (
    r"(?:(?:nicht|teilweise|voll|vollständig|sehr|non|pas|peu|très|no|muy)[ -]+){0,2}"
    r"(?:(?:ir)?relevant|belegt|gestützt|nützlich|(?:im)?pertinente?|(?:ir)?relevante|関連あり|関連なし)"
)
_PHRASE = re.compile(rf"(?:(?:{_DEGREES})[ -]+){{0,2}}(?:un|ir|in)?(?:{_JUDGED})|{_ABROAD}")
_LABEL = (
    r"(?:final |overall |binary )?(?:score|rating|grade|verdict|judg(?:e)?ment|decision|relevance|label"
    r"|bewertung|urteil|relevanz|entscheidung|évaluation|pertinence|evaluación|評価|判定)"
)
_LABELLED = re.compile(rf"{_LABEL}\s*(?:is|[:=-])\s*")
_NUMBER = re.compile(r"\d+(?:[./]\d+)?%?|\d+(?:\.\d+)?\s*(?:/|out of|of)\s*\d+|\d+(?:\.\d+)?\s*(?:points?|stars?)")
_REASON = re.compile(
    r"(?:reason|explanation|because|justification|rationale|feedback|comment|begründung|raison|razón|motivo|理由)\b"
)
# Fields of structured output that say what to do next, or why, and are no answer.
_STEERING = re.compile(
    "score|grade|verdict|decision|rout|source|destination|intent|label|categor|relevan|ground|support|quer|search"
    "|keyword|question|reason|explanation|rationale|justif|thought|feedback|critique|faithful|halluc|helpful|useful"
    "|bewert|urteil|entscheid|begr(?:ü|ue)nd|kategor|pertinen|évalu|理由|評価|判定"
    "|rating|assess|evaluat|judg|confiden|(?:^|_)(?:next|action|agent|worker|department|topic|tool|pass|passed)(?:_|$)",
    re.IGNORECASE,
)
_REMARK = re.compile("comment|remark|note", re.IGNORECASE)  # steers beside a grade only
# Words that are a judgement of an answer that is given, and may be an answer elsewhere.
_PASSED = frozenset(
    {
        "pass", "passed", "fail", "failed", "accept", "accepted", "reject", "rejected", "approve", "approved", "ok",
        "okay", "good", "bad", "poor", "excellent", "high", "medium", "low", "valid", "invalid", "complete",
        "incomplete", "neutral", "entailment", "contradiction", "retry", "revise", "end", "finish", "continue",
    }
)  # fmt: skip
_GRADED = re.compile(
    r"(?:^|_)(?:answer|response|generation|prediction|reply|completion|submission|claim|statement|draft"
    "|antwort|behauptung|entwurf|réponse|reponse|respuesta|risposta|resposta|回答|答え)s?$",
    re.IGNORECASE,
)
_GROUNDS = re.compile(
    "context|document|passage|source|evidence|fact|docs|kontext|dokument|quelle|文脈|文書", re.IGNORECASE
)
_ANSWERS = ("answer", "final_answer", "generation", "response", *ANSWER_WORDS)
_JUDGING = re.compile(
    r"\b(?:answer|response|claim|statement|generation|grounded|supported|consistent|hallucinat\w+"
    r"|antwort|aussage|behauptung|belegt|gestützt|réponse|respuesta)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"[\s\"'*]*([\w-]+)")


def is_verdict(text: str) -> bool:
    """Tell whether a text is a grade, a route or another step of the program, and no answer for a reader.

    Example:
        >>> [is_verdict(text) for text in ("Yes.", '{"binary_score": "no"}', "Score: 4", "Fully supported")]
        [True, True, True, True]
        >>> is_verdict("In Oslo."), is_verdict('{"city": "Oslo"}')
        (False, False)
    """
    bare = text.strip().removeprefix("```json").strip("`").strip(" \n\t.!\"'*[]").lower()
    return not bare or _is_word(bare) or is_steering(text) or _is_labelled(bare)


def _is_word(bare: str) -> bool:
    return bare in _WORDS or bool(_PHRASE.fullmatch(bare) or _NUMBER.fullmatch(bare))


def _is_labelled(bare: str) -> bool:
    """Tell whether a text names its grade: alone, or in a first line with a reason behind it."""
    label = _LABELLED.match(bare)
    if label is None:
        return False
    head, _, rest = bare[label.end() :].partition("\n")
    return _is_word(head.strip(" .*")) and (not rest.strip() or bool(_REASON.match(rest.strip(" \n*"))))


def is_steering(text: str) -> bool:
    """Tell whether a text is a JSON object whose fields say what to do next, or how good something is.

    Example:
        >>> is_steering('{"score": 4, "reason": "It names the source."}'), is_steering("4")
        (True, False)
    """
    bare = text.strip().removeprefix("```json").strip("`").strip()
    if not bare.startswith("{"):
        return False
    try:
        fields = json.loads(bare)
    except ValueError:
        return False
    left = {name: value for name, value in fields.items() if not _steers(name, value)}
    return all(_REMARK.search(name) for name in left) and len(left) < max(len(fields), 1)


def _steers(name: str, value: object) -> bool:
    return bool(_STEERING.search(name)) or not isinstance(value, str) or is_verdict(value)


def is_check(inputs: object, outputs: object, text: str) -> bool:
    """Tell whether a chain judged an answer that it was given: by a grade, or by an object that holds no answer.

    A chain that translates, shortens or improves an answer gives a text of its own, and is no check.

    Example:
        >>> from types import SimpleNamespace
        >>> given = {"response": "Books may be kept for 28 days.", "context": "..."}
        >>> is_check(given, {"backing": "all of it"}, ""), is_check(given, "Bücher 28 Tage.", "Bücher 28 Tage.")
        (True, False)
    """
    given = fields_of(inputs) or {}
    graded = [said for key, one in given.items() if _GRADED.search(str(key)) and (said := _said(one)).strip()]
    if isinstance(outputs, bool):
        return True
    if not graded:
        return False
    fields = fields_of(outputs)
    if fields is not None and "parsed" in fields and "raw" in fields:  # with_structured_output(include_raw=True)
        fields = fields_of(fields["parsed"])
    if fields is None or given.keys() <= fields.keys():  # a text, or a state that holds its input
        return isinstance(outputs, int | float) or _is_judgement(text, graded)
    texts = {str(key): value for key, value in fields.items() if isinstance(value, str) and not is_verdict(value)}
    if any(key in given for key in QUESTION_KEYS):
        return not any(key in texts for key in _ANSWERS)
    if any(_GROUNDS.search(str(key)) for key in given):
        return True
    shortest = min(map(len, graded)) / 2
    return all(_STEERING.search(key) or len(value) < shortest for key, value in texts.items())


def _said(value: object) -> str:
    return value if isinstance(value, str) else content_text(getattr(value, "content", ""))


def _is_judgement(text: str, graded: list[str]) -> bool:
    """Tell whether a text about an answer begins with a verdict on it, as in "Yes, the answer is grounded"."""
    bare = text.strip().strip(".!\"'*").lower()
    if is_verdict(text) or bare in _PASSED:
        return True
    first = _FIRST.match(bare)
    if first is None or any(answer.lower().startswith(first[1]) for answer in graded):
        return False
    begins = first[1] in _PASSED or _is_word(first[1]) or bool(_LABELLED.match(bare))
    return begins and bool(_JUDGING.search(bare))
