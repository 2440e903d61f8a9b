"""Tell a check of an answer from an answer: a grader's or a judge's chain answers nobody."""

from __future__ import annotations

import re

from ragtrace.capture import ANSWER_WORDS, is_verdict
from ragtrace.capture.verdicts import is_steering_name, is_verdict_on
from ragtrace_langchain.documents import fields_of
from ragtrace_langchain.messages import QUESTION_KEYS, content_text

_GRADED = re.compile(
    r"(?:^|_)(?:answer|response|generation|prediction|reply|completion|submission|claim|statement|draft"
    "|antwort|behauptung|entwurf|réponse|reponse|respuesta|risposta|resposta|回答|答え)s?$",
    re.IGNORECASE,
)
_GROUNDS = re.compile(
    "context|document|passage|source|evidence|fact|docs|kontext|dokument|quelle|文脈|文書", re.IGNORECASE
)
_ANSWERS = ("answer", "final_answer", "generation", "response", *ANSWER_WORDS)


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
        return isinstance(outputs, int | float) or is_verdict_on(text, graded)
    texts = {str(key): value for key, value in fields.items() if isinstance(value, str) and not is_verdict(value)}
    if any(key in given for key in QUESTION_KEYS):
        return not any(key in texts for key in _ANSWERS)
    if any(_GROUNDS.search(str(key)) for key in given):
        return True
    shortest = min(map(len, graded)) / 2
    return all(is_steering_name(key) or len(value) < shortest for key, value in texts.items())


def _said(value: object) -> str:
    return value if isinstance(value, str) else content_text(getattr(value, "content", ""))
