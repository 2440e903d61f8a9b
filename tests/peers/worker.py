"""Computes what is asked with the peers' libraries. Run by the python of build/peers: it imports nothing of ours.

One JSON object a line on stdin, ``{"op": NAME, ...}``; one line back: ``{"value": ...}``, or ``{"error": TYPE}`` with
a ``message`` where the library raised. NaN and infinity come back as null.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from typing import Any


def rank(queries: list[dict[str, Any]], relevant: int) -> list[dict[str, dict[str, float]]]:
    """P@K, AP@K, reciprocal rank and nDCG of each query, by library."""
    import ir_measures
    import pytrec_eval
    from ir_measures import AP, RR, P, nDCG
    from ranx import Qrels, Run, evaluate

    found = []
    for query in queries:
        labels, ranked, k = query["labels"], query["ranked"], query["k"]
        qrels = {"q": labels}
        run = {"q": {name: float(len(ranked) - place) for place, name in enumerate(ranked)}}
        names = {f"P.{k}", f"map_cut.{k}", "recip_rank"}
        trec = pytrec_eval.RelevanceEvaluator(qrels, names, relevance_level=relevant).evaluate(run)["q"]
        trec |= pytrec_eval.RelevanceEvaluator(qrels, {f"ndcg_cut.{k}"}).evaluate(run)["q"]
        wanted = [P(rel=relevant) @ k, AP(rel=relevant) @ k, RR(rel=relevant), nDCG @ k]
        measures = ir_measures.calc_aggregate(wanted, qrels, run)
        level = f"-l{relevant}"
        ranx_names = [f"precision@{k}{level}", f"map@{k}{level}", f"mrr{level}", f"ndcg@{k}"]
        ranx = evaluate(Qrels(qrels), Run(run), ranx_names)
        ours = ["p_at_k", "ap_at_k", "mrr", "ndcg_at_k"]
        found.append(
            {
                "pytrec_eval": {
                    "p_at_k": trec[f"P_{k}"],
                    "ap_at_k": trec[f"map_cut_{k}"],
                    "mrr": trec["recip_rank"],
                    "ndcg_at_k": trec[f"ndcg_cut_{k}"],
                },
                "ir_measures": dict(zip(ours, [float(measures[one]) for one in wanted], strict=True)),
                "ranx": dict(zip(ours, [float(ranx[one]) for one in ranx_names], strict=True)),
            }
        )
    return found


def rouge(pairs: list[tuple[str, str]]) -> list[dict[str, list[float]]]:
    """Precision, recall and F of ROUGE-1, 2 and L of each (reference, candidate), without a stemmer."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
    scored = [scorer.score(reference, candidate) for reference, candidate in pairs]
    return [{name: list(score) for name, score in scores.items()} for scores in scored]


def alpha(ratings: list[list[float | None]], level: str) -> float:
    """Krippendorff's alpha of coders by units; a missing rating is null."""
    import krippendorff
    import numpy as np

    table = np.array([[math.nan if rating is None else rating for rating in row] for row in ratings])
    return float(krippendorff.alpha(reliability_data=table, level_of_measurement=level))


def bootstrap(values: list[float], n_resamples: int, seed: int) -> list[float]:
    """The percentile interval of the mean at 95 %."""
    import numpy as np
    from scipy.stats import bootstrap as resample

    found = resample((values,), np.mean, method="percentile", n_resamples=n_resamples, rng=seed)
    return [float(found.confidence_interval.low), float(found.confidence_interval.high)]


def correlation(a: list[float], b: list[float]) -> dict[str, float]:
    """Pearson's and Spearman's coefficient."""
    from scipy.stats import pearsonr, spearmanr

    return {"pearson": float(pearsonr(a, b).statistic), "spearman": float(spearmanr(a, b).statistic)}


def auroc(high: list[float], low: list[float]) -> float:
    """The Mann-Whitney statistic over all pairs."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(high, low).statistic) / (len(high) * len(low))


def ragas(**job: Any) -> Any:
    """Return what `worker_ragas.score` says of one metric over worlds."""
    from worker_ragas import score

    return score(**job)


OPS = {made.__name__: made for made in (rank, rouge, alpha, bootstrap, correlation, auroc, ragas)}


def finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def answer(line: str) -> dict[str, Any]:
    job = json.loads(line)
    try:
        return {"value": finite(OPS[job.pop("op")](**job))}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def main() -> None:
    # What a library prints must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        answers.write(json.dumps(answer(line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
