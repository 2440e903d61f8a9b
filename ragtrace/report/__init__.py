"""Plots and pages for people, from reports that are already computed.

Owns: the looks of a picture. Imports: scoring's reports, stats; matplotlib (extra ``plots``) when one is drawn.
"""

from typing import TYPE_CHECKING

from ragtrace.lazy_names import lazy_names

if TYPE_CHECKING:
    from ragtrace.report.calibration_plot import check_plot
    from ragtrace.report.html import report_html
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "calibration_plot": "check_plot",
            "html": "report_html",
        },
    )
