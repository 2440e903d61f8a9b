"""Decides at a root's end whether it was a question, and which text answers it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ragtrace_langchain.documents import documents_in, fields_of, is_documents_only
from ragtrace_langchain.extract import QUESTION_KEYS, answer_in, called_in, question_in, structured_text

if TYPE_CHECKING:
    from ragtrace.model import Outcome
    from ragtrace_langchain.tree import Node, Tree

# The reply of a grader or a router, compared in lower case without punctuation at its edges.
_VERDICTS = frozenset(
    {
        "yes", "no", "true", "false", "relevant", "irrelevant", "not relevant", "supported", "unsupported",
        "not supported", "grounded", "not grounded", "useful", "not useful", "correct", "incorrect", "vectorstore",
        "web_search", "websearch", "generate", "rewrite",
    }
)  # fmt: skip
_NUMBER = re.compile(r"\d+(?:[./]\d+)?%?")
# Fields of structured output that say what to do next, or why, and are no answer.
_STEERING = re.compile(
    "score|grade|verdict|decision|rout|source|destination|intent|label|categor|relevan|ground|support|quer|search"
    "|keyword|question|reason|explanation|rationale|justif|thought|feedback|critique",
    re.IGNORECASE,
)
_ASKED_KEYS = ("question", "query", "user_query", "user_input", "messages")
_SPOKEN_KEYS = ("answer", "final_answer", "generation", "response")
_GRADED_KEYS = (*_SPOKEN_KEYS, "prediction", "student_answer")


def is_verdict(text: str) -> bool:
    """Tell whether a text is a grade, a route or another step of the program, and no answer for a reader.

    Example:
        >>> is_verdict("Yes."), is_verdict('{"binary_score": "no"}')
        (True, True)
        >>> is_verdict("In Oslo."), is_verdict('{"city": "Oslo"}')
        (False, False)
    """
    bare = text.strip().strip(".!\"'*").lower()
    return not bare or bare in _VERDICTS or bool(_NUMBER.fullmatch(bare)) or _is_steering(bare)


def _is_steering(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        fields = json.loads(text)
    except ValueError:
        return False
    return all(
        _STEERING.search(name) or not isinstance(value, str) or is_verdict(value) for name, value in fields.items()
    )


def is_question(root: Node, answer: str, outcome: Outcome | None) -> bool:
    """Tell whether a root that ended was a question, so that its run is kept.

    There is something to ask and to answer where a model answered, or where a retriever was called. A grader, a
    router and a model that only calls a tool answer nobody when they stand alone. What failed or was stopped before
    either is kept where a chain was asked something.
    """
    tree = root.tree
    if tree.has_retriever or tree.run.selection_source == "explicit":
        return True
    pool = tree.run.candidates()
    if outcome not in {None, "partial"}:
        return tree.has_model or (root.kind == "chain" and tree.has_query)
    if not tree.has_model:
        is_searched = bool(pool) and bool(_plain_question(root))
        return outcome is None and (is_searched or (bool(answer) and not tree.is_retrieval_only))
    if tree.is_retrieval_only:
        return bool(pool) and tree.spoken_ns < _searched_ns(tree)
    is_blank = not answer and tree.last_called is None
    is_told = not is_verdict(answer) or (len(pool) > 1 and not _is_grader(root, answer))
    return outcome == "partial" or is_blank or is_told


def _is_grader(root: Node, verdict: str) -> bool:
    """Tell whether a verdict over several passages grades them or an answer, and is not the answer itself."""
    given = fields_of(root.inputs) or {}
    is_answer_given = any(isinstance(given.get(key), str) and given[key] for key in _GRADED_KEYS)
    return is_answer_given or _is_steering(verdict.strip())


def answer_of(node: Node, outputs: Any, *, is_streamed: bool) -> str | None:
    """Return the answer in a root's output: None for the last model's text, "" where there is none.

    A stream whose pieces cannot be added up leaves the root with the last piece alone; the model has the whole.
    """
    tree = node.tree
    answer = answer_in(outputs)
    if _is_retrieval_only(node, outputs, answer):
        tree.is_retrieval_only = True
        return ""
    if answer is None:
        is_wordless = tree.last_model is not None and not tree.last_text  # it called a tool with its answer
        return (structured_text(outputs) or called_in(outputs, tree.last_called)) if is_wordless else None
    whole = tree.last_text
    is_last_piece = is_streamed and len(answer) < len(whole) and whole.endswith(answer)
    return whole if is_last_piece else answer


def _is_retrieval_only(node: Node, outputs: Any, answer: str | None) -> bool:
    """Tell whether a root gave out what was retrieved, and no answer.

    A model that wrote the query spoke before the retrieval began, one that graded the documents behind it.
    """
    tree = node.tree
    if is_documents_only(outputs) and (outputs or tree.has_retriever):
        return True
    if answer is None and _is_documents_state(node, outputs):
        return True
    if tree.spoken_ns > _searched_ns(tree):
        return False
    if answer is None or answer == structured_text(outputs):
        return True
    if not tree.has_retriever and not _is_stated(node, outputs):
        return True
    return tree.run.is_mostly_passages(answer)


def _searched_ns(tree: Tree) -> int:
    return max((tree.searched_ns, *(step.started_ns for step in tree.run.retrievals())))


def _is_documents_state(node: Node, outputs: Any) -> bool:
    """Tell whether a state holds documents, and beside them no text that is new and longer than a grade."""
    state = fields_of(outputs)
    if not state or documents_in(outputs) is None:
        return False
    given = fields_of(node.inputs) or {}
    others = (value for key, value in state.items() if key not in QUESTION_KEYS and value != given.get(key))
    return all(_is_silent(value) for value in others)


def _is_silent(value: Any) -> bool:
    if isinstance(value, str):
        return is_verdict(value)
    return (
        value is None
        or isinstance(value, bool | int | float)
        or documents_in(value) is not None
        or value in ([], {})
    )


def _is_stated(node: Node, outputs: Any) -> bool:
    """Tell whether a function answered: a question and a new answer stand under names that say so.

    A text is an answer where the question came with documents.
    """
    if not _plain_question(node):
        return False
    given, state = fields_of(node.inputs) or {}, fields_of(outputs)
    if state is None:
        return isinstance(outputs, str) and bool(node.tree.run.candidates() or node.tree.given)
    is_under_key = any(isinstance(said := state.get(key), str) and said != given.get(key) for key in _SPOKEN_KEYS)
    return is_under_key or _is_replied(state.get("messages"), given.get("messages"))


def _plain_question(node: Node) -> str:
    given = fields_of(node.inputs) or {}
    return question_in({key: given[key] for key in _ASKED_KEYS if key in given})


def _is_replied(messages: Any, given: Any) -> bool:
    last = messages[-1] if isinstance(messages, list) and messages else None
    return getattr(last, "type", None) == "ai" and last not in (given or ())
