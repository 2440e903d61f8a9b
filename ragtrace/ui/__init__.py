"""Local web server of ``ragtrace ui``: routes, forms and live updates."""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.ui.app import build_app
    from ragtrace.ui.site import Site
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "app": "build_app",
            "site": "Site",
        },
    )
