"""Retrieval and reranking: the pool, the selection, harm, and empty searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragtrace import semconv
from ragtrace_dashboards.boards import operations, scores
from ragtrace_dashboards.boards.panels import Panel, Row
from ragtrace_dashboards.config import PANELS
from ragtrace_dashboards.expressions import CUTOFF, JOB, WORKFLOW, label, of

if TYPE_CHECKING:
    from ragtrace_dashboards.config import Config

MODEL = label(semconv.GEN_AI_REQUEST_MODEL)
RANKED = ("mrr", "ndcg_at_k", "ap_at_k_retrieved", "p_at_k")
SET_FAMILY = (
    "ra_nwg_at_k", "proc_at_k", "pct_proc_at_k", "n_recall4_at_k", "n_recall5_at_k", "precision4_at_k",
    "selection_efficiency_at_k", "context_utility_at_k", "pool_recall4_at_k", "ra_nwg_upper_at_k", "harm_at_k",
    "proc_shadow_at_k", "ra_nwg_upper_shadow_at_k",
)  # fmt: skip


def rows(config: Config) -> list[Row]:
    """Return the rows along the way of a passage."""
    return [
        Row(10, "The pool: was it found?", _pool()),
        Row(20, "Selection: was the best of the pool taken?", _selection(config)),
        Row(30, "Harm: what should not be in the prompt", _harm(config)),
        Row(40, "Empty retrievals", _empty()),
        Row(50, "Rank metrics and all numbers", _numbers(config)),
        Row(60, "Slices by $slice", [scores.by_slice(number=61)]),
        Row(70, "Time of search and rerank", _times()),
    ]


def _pool() -> list[Panel]:
    return [
        scores.several(
            ("proc_at_k", "proc_shadow_at_k", "ra_nwg_upper_at_k", "ra_nwg_upper_shadow_at_k"),
            number=11,
            title="Ceiling of the pool: PROC",
            description="The best that any selection could have made of the candidates. Down: mend retrieval "
            "(index, embedding, filters, candidates asked for); a reranker cannot.",
            width=8,
            height=9,
        ),
        scores.several(
            ("pool_recall4_at_k", "n_recall4_at_k", "n_recall5_at_k", "context_recall"),
            number=12,
            title="Recall of good passages",
            description="Share of the passages graded 4 and 5 that came back, in the pool and after selection. "
            "Pool high and delivered low is the reranker; both low is retrieval.",
            width=8,
            height=9,
        ),
        scores.pool_size(number=13, width=8, height=9),
    ]


def _selection(config: Config) -> list[Panel]:
    return [
        scores.trend(
            config,
            number=PANELS["selection_efficiency"][1],
            title="Selection efficiency with its 95 % band",
            description="What selection delivered of what the pool allowed. A drop beside a steady pool is the "
            "reranker or the cut: its model, its input length, or top n.",
            where=f'{of(["selection_efficiency_at_k"])},{CUTOFF}=~"$k"',
            width=12,
        ),
        scores.several(
            ("ra_nwg_at_k", "pct_proc_at_k", "context_utility_at_k"),
            number=22,
            title="RA-nWG, %PROC and utility",
            description="RA-nWG = PROC times %PROC. Which of the two factors moved tells where to look: PROC in "
            "the pool above, %PROC in the reranker.",
            width=12,
        ),
    ]


def _harm(config: Config) -> list[Panel]:
    return [
        scores.trend(
            config,
            number=PANELS["harm"][1],
            title="Harm with its 95 % band",
            description="Share of delivered passages graded 1 or 2: noise that models copy. Less is better. A rise "
            "after a larger K or another reranker is the price of recall: lower K or raise the score threshold.",
            where=f'{of(["harm_at_k"])},{CUTOFF}=~"$k"',
            width=12,
        ),
        scores.several(
            ("precision4_at_k", "context_precision", "context_precision_graded"),
            number=32,
            title="Precision of what was delivered",
            description="Share of delivered passages that help. Read it beside harm: both low means passages of "
            "middling use, and a smaller K loses little.",
            width=12,
        ),
    ]


def _empty() -> list[Panel]:
    return [
        scores.empty_share(number=PANELS["empty_retrieval"][1], width=12),
        operations.counted(
            semconv.RETRIEVAL_EMPTY,
            number=42,
            title="Empty retrievals an hour",
            description="How many runs found nothing, by workflow. A steady few are questions outside the corpus: "
            "decide what the application answers then, and watch no_answer.",
            by=(WORKFLOW,),
            width=12,
        ),
        scores.bad_answers(
            f"{{ span.{semconv.RETRIEVAL_DOCUMENT_COUNT} = 0 }}",
            number=43,
            title="Recent searches that found nothing",
            description="Open some and read the question: a wrong filter, another language, or a subject that the "
            "corpus lacks. Add the documents or teach the application to say so.",
        ),
    ]


def _times() -> list[Panel]:
    operation = label(semconv.GEN_AI_OPERATION_NAME)
    return [
        operations.latency(
            semconv.CLIENT_OPERATION_DURATION,
            number=71,
            title="Time of a search",
            description="Time of single searches by data source. A slow p95 beside a steady p50 is an index that "
            "is loaded or cold; both slow is the index itself, its filters, or the embedding of the question.",
            by=(label(semconv.GEN_AI_DATA_SOURCE_ID),),
            where=f'{JOB},{operation}="{semconv.OPERATION_RETRIEVAL}"',
            width=8,
        ),
        operations.latency(
            semconv.RERANK_DURATION,
            number=72,
            title="Time of a rerank",
            description="Time of single calls of the reranker, by model. It grows with the candidates: fewer of "
            "them, or a smaller model, if selection efficiency above does not pay for it.",
            by=(MODEL,),
            width=8,
        ),
        operations.latency(
            semconv.CLIENT_EMBEDDINGS_DURATION,
            number=73,
            title="Time of an embedding call",
            description="Time of single calls of embedding models. It is part of the search beside it: where both "
            "rise together, look at the provider of the embeddings and not at the index.",
            by=(MODEL,),
            width=8,
        ),
    ]


def _numbers(config: Config) -> list[Panel]:
    return [
        scores.several(
            RANKED,
            number=51,
            title="Order: MRR, nDCG, AP, P@K",
            description="How early the useful passages come. Models read the beginning best: order matters less "
            "with a reranker and more with a large K.",
            width=24,
        ),
        scores.means(config, number=52),
    ]
