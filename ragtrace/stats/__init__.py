"""Statistics: intervals, agreement, changes and baselines.

Owns: pure arithmetic on scores. Imports: numpy where an array pays, and of ragtrace semconv alone.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names
from ragtrace.stats.dispersion import dispersion

if TYPE_CHECKING:
    from ragtrace.stats.agreement import Level, krippendorff_alpha, mid_ranks, pearson, quadratic_kappa, spearman
    from ragtrace.stats.anchors import AnchorPair, JudgeChange, judge_change
    from ragtrace.stats.baselines import Baseline, Learner
    from ragtrace.stats.blocks import Block, design_effect
    from ragtrace.stats.change.mean import TwoPeriods, adjusted, change_place, mean_change
    from ragtrace.stats.change.slices import Slice
    from ragtrace.stats.clusters import Clustered
    from ragtrace.stats.differences import paired_difference, unpaired_difference
    from ragtrace.stats.figure import Figure
    from ragtrace.stats.intervals import (
        Interval,
        Range,
        Sums,
        bootstrap_mean_ci,
        cluster_sums,
        clustered_interval,
        mean_interval,
        student_t,
        wilson,
    )
    from ragtrace.stats.mix import mix_adjusted
    from ragtrace.stats.ppi import PoweredMean, powered_mean
    from ragtrace.stats.question_kinds import Codebook
    from ragtrace.stats.separation import auroc, balanced_accuracy, best_threshold, cross_validated, roc
    from ragtrace.stats.shares import WeightSums, mean_whatever_is_missing, share_changes, weighted_shares
    from ragtrace.stats.stratified import Stratum, stratified_mean
    from ragtrace.stats.two_phase import JudgedRun, combined_mean, fitted_curve
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "agreement": "Level krippendorff_alpha mid_ranks pearson quadratic_kappa spearman",
            "anchors": "AnchorPair JudgeChange judge_change",
            "baselines": "Baseline Learner",
            "blocks": "Block design_effect",
            "change.mean": "TwoPeriods adjusted change_place mean_change",
            "change.slices": "Slice",
            "clusters": "Clustered",
            "differences": "paired_difference unpaired_difference",
            "figure": "Figure",
            "intervals": (
                "Interval Range Sums bootstrap_mean_ci cluster_sums clustered_interval mean_interval "
                "student_t wilson"
            ),
            "mix": "mix_adjusted",
            "ppi": "PoweredMean powered_mean",
            "question_kinds": "Codebook",
            "separation": "auroc balanced_accuracy best_threshold cross_validated roc",
            "shares": "WeightSums mean_whatever_is_missing share_changes weighted_shares",
            "stratified": "Stratum stratified_mean",
            "two_phase": "JudgedRun combined_mean fitted_curve",
        },
    )
