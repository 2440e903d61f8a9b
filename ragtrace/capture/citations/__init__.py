"""Read which passages an answer cites, from the markers that people and models write."""

from ragtrace.capture.citations.parts import cited_parts, parts_of_run, with_cited_parts

__all__ = ["cited_parts", "parts_of_run", "with_cited_parts"]
