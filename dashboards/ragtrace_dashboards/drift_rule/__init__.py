"""Parts of the drift rule: baselines, variances, the culprit, and what it cannot see."""
