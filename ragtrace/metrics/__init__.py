"""Metrics of a record, one file each, and the arithmetic behind them.

`ragtrace.metrics.ranking.rank` and `ragtrace.metrics.selection.set_family` take ids and grades instead of records,
for a notebook or a batch job.

Owns: metric specs, states and reasons. Imports: judges, stats, model, errors; never a concrete judge.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.metrics.evaluate import evaluate

if TYPE_CHECKING:
    from ragtrace.metrics.answer.nuggets import nugget_scores
    from ragtrace.metrics.base import CoroutineMetric, Metric, MetricSpec, Output, answer_lacking
    from ragtrace.metrics.consistency.bertscore_consistency import bertscore_consistency
    from ragtrace.metrics.consistency.rouge import rouge, rouge_of_tokens
    from ragtrace.metrics.consistency.rouge_consistency import rouge_consistency
    from ragtrace.metrics.consistency.runs import answers_of, by_query, query_key
    from ragtrace.metrics.consistency.score_consistency import score_consistency
    from ragtrace.metrics.context.context_precision import context_precision
    from ragtrace.metrics.context.entity_names import folded, names_in, normalised
    from ragtrace.metrics.cosine import cosines_with_first
    from ragtrace.metrics.deep_retrieval import DeepRetriever
    from ragtrace.metrics.diagnosis.contrary import is_contradicted
    from ragtrace.metrics.diagnosis.needed import PassageGrades
    from ragtrace.metrics.diagnosis.table import DiagnosisFacts, Known, decide
    from ragtrace.metrics.eval_context import EvalContext, MetricOptions
    from ragtrace.metrics.evaluate import expected
    from ragtrace.metrics.panel import agreed, combined, mean_abs_diff
    from ragtrace.metrics.reference.factual_correctness import f_beta
    from ragtrace.metrics.reference.noise_sensitivity import incorrect_claims
    from ragtrace.metrics.registry import all_metrics, output, select
    from ragtrace.metrics.selection.census import KnownGrades, census_scores
    from ragtrace.metrics.selection.precision4 import precision4
    from ragtrace.metrics.selection.ra_nwg import ra_nwg
    from ragtrace.metrics.selection.set_family import (
        QUANTITIES,
        SetParams,
        SetScores,
        best_gain,
        set_bounds,
        set_scores,
        weights_of,
    )
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "answer.nuggets": "nugget_scores",
            "base": "CoroutineMetric Metric MetricSpec Output answer_lacking",
            "consistency.bertscore_consistency": "bertscore_consistency",
            "consistency.rouge": "rouge rouge_of_tokens",
            "consistency.rouge_consistency": "rouge_consistency",
            "consistency.runs": "answers_of by_query query_key",
            "consistency.score_consistency": "score_consistency",
            "context.context_precision": "context_precision",
            "context.entity_names": "folded names_in normalised",
            "cosine": "cosines_with_first",
            "deep_retrieval": "DeepRetriever",
            "diagnosis.contrary": "is_contradicted",
            "diagnosis.needed": "PassageGrades",
            "diagnosis.table": "DiagnosisFacts Known decide",
            "eval_context": "EvalContext MetricOptions",
            "evaluate": "expected",
            "panel": "agreed combined mean_abs_diff",
            "reference.factual_correctness": "f_beta",
            "reference.noise_sensitivity": "incorrect_claims",
            "registry": "all_metrics output select",
            "selection.census": "KnownGrades census_scores",
            "selection.precision4": "precision4",
            "selection.ra_nwg": "ra_nwg",
            "selection.set_family": "QUANTITIES SetParams SetScores best_gain set_bounds set_scores weights_of",
        },
    )
