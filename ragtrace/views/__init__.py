"""Views of scored runs for people: overview, lists, one run, comparison and labelling queue, as plain values."""
