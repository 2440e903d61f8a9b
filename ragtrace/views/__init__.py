"""Views of scored runs for people: overview, lists, one run, comparison and labelling queue, as plain values."""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.views.filters import filter_from_query, filter_to_query
    from ragtrace.views.source import Views, compare_sources
    from ragtrace.views.types import NewRating, RunFilter
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "filters": "filter_from_query filter_to_query",
            "source": "Views compare_sources",
            "types": "NewRating RunFilter",
        },
    )
