"""Renders templates, with every value escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ragtrace._version import __version__
from ragtrace.model.printable import printable
from ragtrace.pages.charts import bars, chart_data, interval_bar, points, spark
from ragtrace.pages.choices import blamed, failed_with, is_listed, missed_by, part_of, signed_of, worst_of
from ragtrace.pages.formats import FILTERS

if TYPE_CHECKING:
    from ragtrace.pages.links import Links

_PICTURES_AND_LISTS = (
    bars,
    chart_data,
    interval_bar,
    points,
    spark,
    blamed,
    failed_with,
    is_listed,
    missed_by,
    part_of,
    signed_of,
    worst_of,
)
STATIC = files("ragtrace.pages") / "static"


def render(name: str, links: Links, **context: object) -> str:
    """Return the HTML of a template.

    Args:
        name: file in `templates`, for example ``overview.html``.
        links: addresses of pages and assets.
        context: values of the template; a missing one raises `jinja2.UndefinedError`.
    """
    return _environment().get_template(name).render(links=links, version=__version__, **context)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        extensions=["jinja2.ext.do"],
        finalize=_visible,
        loader=PackageLoader("ragtrace.pages"),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(FILTERS)
    environment.filters.update({function.__name__: function for function in _PICTURES_AND_LISTS})
    return environment


def _visible(value: object) -> object:
    """Write control characters as escapes, as the command line does; markup of our templates stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value, keep="\n\t")
    return value
