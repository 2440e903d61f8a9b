"""Tell the replies of graders, checks and routers: they steer a program, and answer nobody."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ragtrace.text import MAX_NAME_CHARS, ends

if TYPE_CHECKING:
    from collections.abc import Collection

# The reply of a grader or a router, compared in lower case without punctuation at its edges.
_WORDS = frozenset(
    {
        "yes", "no", "true", "false", "safe", "unsafe", "useful", "vectorstore", "web_search", "websearch",
        "generate", "rewrite",
        "hallucination", "no hallucination", "no support", "partial support", "full support",
        "wahr", "falsch", "vrai", "faux",
        "ja", "nein", "oui", "non", "si", "sí", "sì", "sim", "não", "nee", "nej", "はい", "いいえ", "是", "否",
    }
)  # fmt: skip
_DEGREES = "not|fully|partially|partly|mostly|completely|entirely|largely|somewhat|highly|very|well|strongly"
_JUDGED = "supported|relevant|grounded|useful|correct|accurate|faithful|factual|consistent|sufficient|hallucinated"
_ABROAD = (
    r"(?:(?:nicht|teilweise|voll|vollständig|sehr|non|pas|peu|très|no|muy)[ -]+){0,2}"
    r"(?:(?:ir)?relevant|belegt|gestützt|nützlich|(?:im)?pertinente?|(?:ir)?relevante|関連あり|関連なし)"
)
_LONGEST_GRADE_CHARS = 256
_LONGEST_LAST_CHARS = 512  # of a line, and what is before it, in which a judge that reasons first says its grade
_LOOKED_AT_CHARS = 65_536
_PHRASE = re.compile(  # of at most 256 characters
    rf"(?:(?:{_DEGREES})[ -]+){{0,2}}(?:un|ir|in)?(?:{_JUDGED})|{_ABROAD}"
)
_LABEL = (
    r"(?:final |overall |binary )?(?:score|rating|grade|verdict|judg(?:e)?ment|decision|relevance|label"
    r"|bewertung|urteil|relevanz|entscheidung|évaluation|pertinence|evaluación|評価|判定)"
)
_LABELLED = re.compile(rf"{_LABEL}\s*(?:is|[:=-])\s*")
_NUMBER = re.compile(  # of at most 256 characters
    r"\d+(?:[./]\d+)?%?|\d+(?:\.\d+)?\s*(?:/|out of|of)\s*\d+|\d+(?:\.\d+)?\s*(?:points?|stars?)"
)
_UNSAFE = re.compile(r"unsafe\ns\d+(?:, ?s\d+)*")  # Llama Guard's hazards; of at most 256 characters
# A judge that reasons first: its last line is the verdict.
_AT_END = re.compile(r"(?:\[result\]\W*\d|\n\s*[yn]|\[\[[abc]\]\])\W*$")  # of at most 512 characters
_LABELLED_AT_END = re.compile(  # of at most 512 characters
    r"\n\W*(?:final |overall )?(?:verdict|judge?ment|urteil)\W*[:=-]\W*([^\n]+)$"
)
_REASON = re.compile(
    r"(?:reason|explanation|because|justification|rationale|feedback|comment|begründung|raison|razón|motivo|理由)\b"
)
# Fields of structured output that say what to do next, or why, and are no answer.
_STEERING = re.compile(  # of at most 256 characters: a name
    "score|grade|verdict|decision|rout|source|destination|intent|label|categor|relevan|ground|support|quer|search"
    "|keyword|question|reason|explanation|rationale|justif|thought|feedback|critique|faithful|halluc|helpful|useful"
    "|rating|assess|evaluat|judg|confiden|bewert|begr(?:ü|ue)nd|urteil|entscheid|punkte|kategor|pertinen|évalu|jugement"
    "|理由|評価|判定"
    "|(?:^|_)(?:next|action|agent|worker|department|topic|tool|pass|passed|grund|raison|raz[oó]n|motivo)(?:_|$)",
    re.IGNORECASE,
)
_REMARK = re.compile("comment|remark|note", re.IGNORECASE)  # steers beside a grade only
_STATED = re.compile("statement|claim|sentence|assertion", re.IGNORECASE)  # beside its verdict only
_VERDICTS = ("verdict", "attributed", "supported")  # names of a number or a truth value
# Words that are a judgement of an answer that is given, and may be an answer elsewhere.
_PASSED = frozenset(
    {
        "pass", "passed", "fail", "failed", "accept", "accepted", "reject", "rejected", "approve", "approved", "ok",
        "okay", "good", "bad", "poor", "excellent", "high", "medium", "low", "valid", "invalid", "complete",
        "incomplete", "neutral", "entailment", "contradiction", "retry", "revise", "end", "finish", "continue",
    }
)  # fmt: skip
_JUDGING = re.compile(  # of at most 65,536 characters
    r"\b(?:answer|response|claim|statement|generation|grounded|supported|consistent|hallucinat\w+"
    r"|antwort|aussage|gestützt|belegt|behauptung|réponse|respuesta|affirmation|fondée?|étayée?)\b|回答|文脈|裏付け",
    re.IGNORECASE,
)
# "The answer is fully supported by the context."
_SENTENCE = re.compile(
    r"(?:the |this |your |all |each )?(?:answer|response|reply|claim|statement|generation)s?,? "
    rf"(?:is|are|was|were|seems?|appears?) (?:\w+[ -]+){{0,3}}(?:un|ir|in)?(?:{_JUDGED})\b"
)
_FIRST = re.compile(r"[\s\"'*]*([\w-]+)")
_GRADING = re.compile(  # of at most 65,536 characters
    r"\b(?:grad(?:e|er|ing)|judge|assess\w*|evaluat\w*|verif(?:y|ies)|determine|decide|fact-check\w*|rate|score"
    r"|classif\w*|unsafe (?:content|categor\w*)|moderation|supported by|grounded in|hallucinat\w*|faithful|relevant"
    r"|consistent with"
    r"|bewert\w*|beurteil\w*|pr(?:ü|ue)fe?n?|gestützt|vérifi\w*|évalu\w*|jug(?:e|er|ez)|déterminez?|evalúa|verifica)\b"
    r"|判定|評価|検証|裏付け|判断|评估|评价",
    re.IGNORECASE,
)


def is_verdict(text: str) -> bool:
    """Tell whether a text is a grade, a route or another step of the program, and no answer for a reader.

    Example:
        >>> is_verdict("Yes."), is_verdict('{"binary_score": "no"}'), is_verdict("Score: 4")
        (True, True, True)
        >>> is_verdict("In Oslo."), is_verdict('{"city": "Oslo"}')
        (False, False)
    """
    bare = text.strip().removeprefix("```json").strip("`").strip(" \n\t.!\"'*[]").lower()
    return not bare or _is_word(bare) or is_steering(text) or _is_labelled(bare)


def _is_word(bare: str) -> bool:
    is_short = len(bare) <= _LONGEST_GRADE_CHARS
    return is_short and (bare in _WORDS or any(form.fullmatch(bare) for form in (_PHRASE, _NUMBER, _UNSAFE)))


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
        >>> is_steering('{"punkte": 3, "grund": "ok"}'), is_steering('{"ort": "Oslo", "schiffe": ["Ran"]}')
        (True, False)
    """
    bare = text.strip().removeprefix("```json").strip("`").strip()
    if not bare.startswith(("{", "[")):
        return False
    try:
        value = json.loads(bare)
        if isinstance(value, list):
            return bool(value) and all(map(_is_judged, value))
        left = [name for name, part in value.items() if not _steers(name, part)]
    except (ValueError, RecursionError):
        return False
    return all(map(_REMARK.search, left)) and len(left) < max(len(value), 1)


def _is_judged(fields: object) -> bool:
    """Tell whether fields are a statement with its verdict, as ragas has them."""
    if not isinstance(fields, dict) or not any(isinstance(fields.get(name), int) for name in _VERDICTS):
        return False
    return all(_steers(name, part) or _STATED.search(name) for name, part in fields.items())


def _steers(name: str, value: object) -> bool:
    if is_steering_name(name):
        return True
    if isinstance(value, list):  # of texts it is a part of a form
        return all(_steers(name, part) for part in value)
    if isinstance(value, dict):
        return _is_judged(value) or all(_steers(of, part) for of, part in value.items())
    return not isinstance(value, str) or is_verdict(value)


def is_steering_name(name: str) -> bool:
    """Tell whether a field of that name says what to do next, or how good something is.

    Example:
        >>> is_steering_name("binary_score"), is_steering_name("answer")
        (True, False)
    """
    return bool(_STEERING.search(name[:MAX_NAME_CHARS]))


def is_verdict_on(text: str, answers: Collection[str] = ()) -> bool:
    r"""Tell whether a text judges answers: a verdict alone, or a sentence that begins with one and speaks of them.

    A sentence that begins as one of the answers does is that answer, put in other words.

    Example:
        >>> is_verdict_on("Yes, the answer is grounded."), is_verdict_on("Passed"), is_verdict_on("In Oslo.")
        (True, True, False)
        >>> is_verdict_on("No answer is due before May.", ["No, it is due in June."])
        False
        >>> is_verdict_on("It names a fee that the page has not.\n\nVerdict: no")
        True
    """
    bare = text.strip().strip(".!\"'*").lower()
    end = bare[-_LONGEST_LAST_CHARS:]
    if is_verdict(text) or bare in _PASSED or _AT_END.search(end):
        return True
    last = _LABELLED_AT_END.search(end)
    if last is not None and _is_word(last[1].strip(" .*")):
        return True
    first = _FIRST.match(bare)
    if first is None or any(answer.lower().startswith(first[1]) for answer in answers):
        return False
    if _SENTENCE.match(bare):
        return True
    begins = first[1] in _PASSED or _is_word(first[1]) or bool(_LABELLED.match(bare))
    return begins and bool(_JUDGING.search(ends(bare, _LOOKED_AT_CHARS)))


def is_judgement(asked: str, text: str) -> bool:
    """Tell whether a reply judges what its prompt shows: the prompt asks for that, or the reply is JSON of grades.

    Example:
        >>> is_judgement("Determine whether the answer is grounded.", "Yes, the answer is grounded in the context.")
        True
        >>> is_judgement("Where is the lab?", "Yes, the answer is Oslo."), is_judgement("How many days?", "28")
        (False, False)
    """
    if _GRADING.search(ends(asked, _LOOKED_AT_CHARS)) and _FIRST.match(text.strip().strip(".!\"'*")):
        return is_verdict_on(text)
    return is_steering(text)
