"""Reasons of state ``na``: what each means, and what a person can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING_INPUT = "missing_input:"


class NaReason(NamedTuple):
    """Meaning of a reason and what to do, both in small letters and without a full stop."""

    meaning: str
    advice: str


_OTHER_PART = "choose a judge, an embedder or a pair scorer that can, or leave the metric out"

NA: Mapping[str, NaReason] = {
    "no_answer": NaReason("the application gave a blank answer", "look at the model's reply"),
    "answer_missing": NaReason(
        "an answer was not captured whole: it never came, came late, was no text, or was cut",
        "look how the run ended, and what the application gave as its answer",
    ),
    "follows_answer": NaReason(
        "the run was given the answer of a run before it and asked nothing new: it belongs to that run",
        "where it is a run of its own, declare `follows=False`",
    ),
    "contexts_unread": NaReason(
        "a prompt shows text that came from no known source, and nothing else was found",
        'copy the line that the run\'s page offers, such as `evidence={"state.rows": True}`',
    ),
    "several_answers": NaReason(
        "branches that ran side by side gave several answers, and none of them is named the answer",
        "give one out under `answer`, or make each branch a run of its own",
    ),
    "contexts_truncated": NaReason(
        "a delivered context was cut or left out for size, by us, a span or the judge's window",
        "hand the model fewer or shorter passages, or choose a judge with a larger window",
    ),
    "no_answer_expected": NaReason(
        "the record is of a search alone, and an answer was never asked for",
        "choose metrics of the search",
    ),
    "abstained": NaReason(
        "the answer is a refusal, by its words or by the provider's, and states nothing to judge",
        "look at `answered` and `diagnosis`, which say whether it had to refuse",
    ),
    "no_contexts": NaReason(
        "nothing was retrieved, or no passage reached the prompt",
        "look whether the search is captured, and what it finds",
    ),
    "no_ranking": NaReason(
        "the contexts are texts of tools, which have no rank",
        'declare the place of the tool\'s list, as `evidence={"search": "output[*]"}`, or leave the metric out',
    ),
    "no_claims": NaReason(
        "the answer states no fact, for example a greeting or a question back", "nothing needs mending"
    ),
    "no_entities": NaReason("the reference names no person, place, date or number", "nothing needs mending"),
    "no_labels": NaReason(
        "the metric needs relevance labels of its kind, and the record has none",
        "give labels with the record, or leave the metric out",
    ),
    "unlabelled_topk": NaReason(
        "a passage among the first K has no grade, and it decides the value", "label it, or lower K"
    ),
    "zero_oracle": NaReason(
        "no graded passage is relevant, so the best ranking has a gain of 0 too",
        "look whether the index holds what was asked",
    ),
    "zero_pool": NaReason(
        "no passage of the pool is relevant, so no selection could gain anything",
        "look whether the index holds what was asked",
    ),
    "k_not_positive": NaReason("K is 0 or below", "set `metric_options_k_values` to 1 or more"),
    "insufficient_runs": NaReason(
        "consistency needs several answers to one question", "give several, or leave the metric out"
    ),
    "insufficient_ratings": NaReason("too few ratings for a consensus", "give more ratings"),
    "no_samples": NaReason(
        "the record holds no further answers to compare with",
        "give several, or leave the metric out",
    ),
    "no_tokens": NaReason("a text has no word to compare", "nothing needs mending"),
    "no_citations": NaReason(
        "the answer cites nothing", "let the prompt ask for citations, or leave the metric out"
    ),
    "no_parts": NaReason("there is neither an answer nor a list of cited parts", "give either with the record"),
    "unsupported_by_judge": NaReason(
        "this judge cannot do the task, for example relevancy with the offline judge", _OTHER_PART
    ),
    "unsupported_language": NaReason(
        "the offline judge and `invented_specifics` read English alone",
        "choose a language model as judge, and leave `invented_specifics` out",
    ),
    "partial_run": NaReason(
        "the run ended by an error, a cancelled stream or a limit, so its answer is not whole",
        "look at the run's error",
    ),
    "undetermined": NaReason(
        "the evidence does not decide between the verdicts", "look at the scores that `diagnosis` reads"
    ),
}
"""The closed list; ``missing_input:NAME`` stands beside it."""

_MISSING = NaReason("the record lacks this field", "give it with the record, or leave the metric out")


def na_reason(reason: str) -> NaReason:
    """Return what a reason of state ``na`` means.

    Raises:
        KeyError: the reason is not of the closed list.

    Example:
        >>> na_reason("missing_input:reference").meaning
        'the record lacks this field'
    """
    return _MISSING if reason.startswith(MISSING_INPUT) else NA[reason]
