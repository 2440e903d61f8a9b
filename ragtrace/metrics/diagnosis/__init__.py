"""The verdict on a run: at which stage it failed."""
