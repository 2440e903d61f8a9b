"""A case: what one service sends, and which alerts fire for it at which hours."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ragtrace_dashboards import Config
from tests.monitoring.promtool import firing, run

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path


Kind = Literal["", "low n", "silence", "judge change"]


@dataclass(frozen=True)
class Case:
    """One service.

    Attributes:
        job: its name, which says what happens; no two cases of a set share it.
        series: what is scraped of it.
        expected: for each alert, how many of it fire at which hours.
        kind: what beyond firing and quiet it shows.
        also: checks of recorded series.
    """

    job: str
    series: list[dict[str, str]]
    expected: dict[str, list[tuple[float, int]]]
    kind: Kind = ""
    also: list[dict[str, Any]] = field(default_factory=list)

    def fires(self, alert: str) -> bool:
        """Say whether the alert fires at some hour; a quiet case is one where it never does."""
        return any(count for _, count in self.expected[alert])


def run_cases(
    folder: Path,
    cases: Sequence[Case],
    *,
    only: Collection[str],
    step_min: int,
    config: Config | None = None,
) -> None:
    """Try cases at once, so that no service disturbs another is part of what is tested.

    A rule costs promtool .3 ms an evaluation however few its series are, so one run is cheaper than many.
    """
    jobs = [it.job for it in cases]
    assert len(set(jobs)) == len(jobs)
    series = [it for case in cases for it in case.series]
    checks = [
        firing(alert, hour, count, case.job)
        for case in cases
        for alert, hours in case.expected.items()
        for hour, count in hours
    ]
    checks += [it for case in cases for it in case.also]
    alone = replace(config or Config(), family=1)  # each service is judged as if no other were watched
    run(folder, series, checks, only=only, step_min=step_min, config=alone)
