"""One self-contained HTML file over scored runs: the pages of `ragtrace ui` without a server."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from markupsafe import Markup

from ragtrace.model.printable import count_text
from ragtrace.pages.choices import calm_sentence, is_worse, shown_metric, stages_of, worse_sentence
from ragtrace.pages.rendering import STATIC, render
from ragtrace.views.types import RunFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.views.source import Views
    from ragtrace.views.types import ComparisonView, RunView

MOST_BYTES = 1_900_000
MOST_LISTED = 1_000
_MOST_COMPARED = 50
_MOST_BINS, _FEWEST_BINS, _BIN_RUNS = 48, 6, 20  # as in the pages of the server
_MOST_CHARS = 1_000  # of a passage
_EXTRA = """
html { scroll-padding-top: 60px; }
main > .title { margin-top: 12px; }
main > .title:target { background: none !important; box-shadow: none; }
details.whole:target { background: var(--panel) !important; }
.stages ul li > span { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 3px 8px; }
details.whole > summary { overflow-wrap: anywhere; }
details.whole > .stack { gap: var(--gap); margin-top: 12px; }
@media print { details.whole { break-inside: avoid; } }
"""
# A run that a link leads to is folded at first, and a folded run has no place to scroll to.
_OPEN = """(() => {
  const open = () => {
    const found = document.getElementById(location.hash.slice(1));
    for (let it = found; it; it = it.parentElement) if (it.tagName === "DETAILS") it.open = true;
    found?.scrollIntoView();
  };
  addEventListener("hashchange", open);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((it) => { it.open = true; }));
  open();
})();"""


@dataclass(slots=True)
class FileLinks:
    """Links within one file: to the runs that stand in it whole, and to nothing else.

    Attributes:
        whole: place of each run that is shown, by its id.
    """

    whole: dict[str, int]
    is_live: bool = False
    is_read_only: bool = True

    def asset(self, name: str) -> None:
        """Return None: styles and scripts stand in the file."""

    def page(self, name: str, **query: str) -> None:
        """Return None: there are no other pages."""

    def runs(self, chosen: RunFilter, page: int = 1) -> None:
        """Return None: the list has no filters."""

    def run(self, name: str, chosen: RunFilter | None = None) -> str | None:  # noqa: ARG002
        """Return the anchor of a run that is shown whole; None for others."""
        return f"#{_prefix(self.whole[name])}run" if name in self.whole else None


def report_html(views: Views, comparison: ComparisonView | None = None, *, metric: str | None = None) -> str:
    """Return the report of a store or scored file; with at most 1,000 runs listed it stays below 2 MB.

    The worst runs come first. As many as fit are shown whole, their passages cut at 1,000 characters. The report
    says how many runs it leaves out.

    Args:
        views: over the runs.
        comparison: with another file or period; None without one.
        metric: the runs are ordered by it; default the first of the source.
    """
    overview = views.overview()
    bins = min(max(overview.runs // _BIN_RUNS, _FEWEST_BINS), _MOST_BINS)
    overview = views.overview(bins=bins)
    listed = views.runs(RunFilter(metric=metric), size=MOST_LISTED)
    fallen = any(map(is_worse, overview.metrics))
    investigation = views.investigate() if fallen else None
    context = {
        "overview": overview,
        "chosen": RunFilter(),
        "query": {},
        "investigation": investigation,
        "calm": calm_sentence(overview),
        "worse": worse_sentence(overview),
        "shown": shown_metric(overview, metric, investigation),
        "stages": stages_of(overview),
        "fine": [share for share in overview.verdicts if share.stage == "none"],
        "found": comparison,
        "runs": comparison.runs[:_MOST_COMPARED] if comparison else (),
        "fields": {},
        "is_periods": False,
        "lines": listed.lines,
        "list_filter": RunFilter(),
        "metric_name": listed.metric,
        "listed_of": listed.count,
        **_assets(),
    }
    links = FileLinks({})
    empty = render("report.html", links, **context, whole=[], left_out=[])
    room = MOST_BYTES - len(empty.encode()) - 64 * len(listed.lines)  # an anchor in the list
    whole = _whole(views, [line.id for line in listed.lines], room, links)
    return render(
        "report.html", links, **context, whole=whole, left_out=_left_out(listed.count, listed.lines, whole)
    )


def _whole(views: Views, ids: Iterable[str], room: int, links: FileLinks) -> list[Markup]:
    """Return the runs that fit, and note the place of each in the links."""
    shown: list[Markup] = []
    for place, name in enumerate(ids, start=1):
        run = views.run(name)
        if run is None:
            continue
        html = Markup(render("report_run.html", links, run=_cut(run), prefix=_prefix(place)))  # noqa: S704 - escaped by it
        room -= len(html.encode())
        if room < 0:
            break
        links.whole[name] = place
        shown.append(html)
    return shown


def _cut(run: RunView) -> RunView:
    """Return a run whose passages fit into a report."""
    passages = tuple(
        it if len(it.text) <= _MOST_CHARS else replace(it, text=f"{it.text[:_MOST_CHARS]}...")
        for it in run.passages
    )
    return replace(run, passages=passages)


def _left_out(count: int, lines: Sequence[object], whole: Sequence[object]) -> list[str]:
    found = []
    if len(whole) < len(lines):
        without = count_text(len(lines) - len(whole), "run")
        found.append(f"listed without answer, passages and scores, for lack of room: {without}")
    if len(lines) < count:
        found.append(f"not listed: {count_text(count - len(lines), 'run')} with better values")
    return found


def _assets() -> dict[str, object]:
    style = "".join(_static(name) for name in ("vendor/uPlot.min.css", "ragtrace.css")) + _EXTRA
    names = ("theme.js", "vendor/uPlot.iife.min.js", "charts.js", "ragtrace.js")
    scripts = [*map(_static, names), _OPEN]
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {' '.join(map(_hash, scripts))}; "
        "base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "scripts": list(map(Markup, scripts)), "policy": policy}  # noqa: S704 - our own files


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _prefix(place: int) -> str:
    return f"r{place}-"
