"""HTML of views: templates, styles, scripts and charts that the server and the report share."""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.pages.links import ServerLinks
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "links": "ServerLinks",
        },
    )
