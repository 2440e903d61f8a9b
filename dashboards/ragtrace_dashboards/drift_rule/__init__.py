"""Parts of the drift rule: baselines, variances, the form over raw counters, and what it cannot see."""
