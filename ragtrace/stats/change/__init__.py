"""The change of a mean, and the slices that explain it."""
