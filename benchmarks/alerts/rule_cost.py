"""The cost of each recording rule in docs/reference/recording-rules.md: ``python -m benchmarks.alerts.rule_cost``.

A month of 50 watched series is backfilled, scraped every minute, with a month of what the rules recorded meanwhile.
Then a Prometheus evaluates the shipped rules for two minutes and tells the time of each. Needs prometheus and
promtool, 6 GB of disk and some minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import yaml

from ragtrace import semconv
from ragtrace_dashboards.config import Config, duration
from ragtrace_dashboards.expressions import (
    JUDGE_MODEL,
    JUDGE_VERSION,
    METRIC,
    SERIES,
    VERDICT,
    WORKFLOW,
)
from ragtrace_dashboards.groups import recording_groups
from ragtrace_dashboards.rule_files import prometheus_files
from tests.dashboards.server import backfill, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKFLOWS, METRICS = 10, 5
DAY, DAYS, SCRAPE_S, EVERY_S = 86_400, 30, 60, 10
WATCHED_S = 120
_SUMS = {
    semconv.SCORE_N: lambda _: 1.0,
    semconv.SCORE_W: lambda _: 2.0,
    semconv.SCORE_WX: lambda x: 2.0 * x,
    semconv.SCORE_W2: lambda _: 4.0,
    semconv.SCORE_W2X: lambda x: 4.0 * x,
    semconv.SCORE_W2X2: lambda x: 4.0 * x * x,
}
_VERDICTS = {"ok": 0.85, "unsupported": 0.1, "lost_in_rerank": 0.05}
_RECORDED = {
    "normal_mean": 0.92, "normal_n_eff": 2_000.0, "normal_s2": 0.04, "score_mean": 0.92, "score_n_eff": 200.0,
    "score_w": 20.0, "score_wx": 18.4, "drift_drop": 0.0, "drift_error": 0.02, "drift_limit": 0.07,
    "drift_wander": 0.0001, "drift_t2": 0.0001, "baseline_mean": 0.92, "baseline_n_eff": 2_000.0,
    "baseline_s2": 0.04,
}  # fmt: skip
"""Values of what was recorded before, by the middle of the name; the rules only have to find them."""


def month(end: int, days: int) -> Iterator[str]:
    """Yield the month as OpenMetrics text: the counters, and what the rules that look back have recorded."""
    times = range(end - days * DAY, end + 1, SCRAPE_S)
    for name, of in _SUMS.items():
        yield from _scores(name, of, times)
    for name, each in ((semconv.DIAGNOSIS_W, 2.0), (semconv.DIAGNOSIS_W2, 4.0)):
        yield from _verdicts(name, each, times)
    for group in recording_groups(Config()):
        for rule in group.rules:
            value = _RECORDED.get(rule.record.removeprefix("ragtrace:").partition(":")[0])
            if value is not None:
                # Windows are read back for a week at most.
                begin = end - min(days, days if group.interval_s >= 900 else 8) * DAY
                yield from _recorded(rule.record, value, range(begin, end - 400, group.interval_s))
    yield "# EOF\n"


def _scores(name: str, of: Callable[[float], float], times: range) -> Iterator[str]:
    yield f"# TYPE {SERIES[name].removesuffix('_total')} counter\n"
    for labels in _identities():
        total, drawn, head = 0.0, random.Random(labels), f"{SERIES[name]}{{{labels}}}"
        for at in times:
            total += of(0.3 if drawn.random() < 0.1 else 1.0)
            yield f"{head} {total:.2f} {at}\n"


def _verdicts(name: str, each: float, times: range) -> Iterator[str]:
    yield f"# TYPE {SERIES[name].removesuffix('_total')} counter\n"
    for workflow in range(WORKFLOWS):
        for verdict, share in _VERDICTS.items():
            head = f'{SERIES[name]}{{job="rag",{WORKFLOW}="w{workflow}",{VERDICT}="{verdict}"}}'
            for place, at in enumerate(times):
                yield f"{head} {each * share * place:.3f} {at}\n"


def _recorded(name: str, value: float, times: range) -> Iterator[str]:
    yield f"# TYPE {name} gauge\n"
    for labels in _identities():
        for at in times:
            yield f"{name}{{{labels}}} {value} {at}\n"


def measured(folder: Path, days: int) -> dict[str, tuple[float, int]]:
    """Return the milliseconds of each rule, and the series that it records for one watched series."""
    end = int(time.time())
    backfill(folder, month(end, days), limit_s=3_600)
    (folder / "month.txt").unlink()
    for path, text in prometheus_files(Config()).items():
        document = yaml.safe_load(text)
        for group in document["groups"]:
            group["interval"] = f"{EVERY_S}s"
        (folder / Path(path).name).write_text(yaml.safe_dump(document))
    found: dict[str, list[float]] = {}
    with serving(folder, f"rule_files: [{folder}/*.yaml]\n") as server:
        until = time.monotonic() + WATCHED_S
        while time.monotonic() < until:
            time.sleep(EVERY_S)
            for name, seconds in _times(server.url):
                found.setdefault(name, []).append(1_000 * seconds)
        now = time.time()
        counts = {name: server.ask(f"count({name})", now) for name in found}
    series = {name: int(it[0]["value"][1]) if it else 0 for name, it in counts.items()}
    return {name: (median(times), series[name]) for name, times in found.items()}


def table(found: dict[str, tuple[float, int]]) -> Iterator[str]:
    """Yield the lines of the page's tables, one a group."""
    for group in recording_groups(Config()):
        yield f"\n## `{group.name}`, every {duration(group.interval_s)}\n"
        yield "| rule | what it records | series | ms |"
        yield "|---|---|---|---|"
        for rule in group.rules:
            millis, series = found[rule.record]
            name = rule.record.removeprefix("ragtrace:")
            yield f"| `{name}` | {rule.says} | {series / (WORKFLOWS * METRICS):g} | {millis:.1f} |"


def _identities() -> Iterator[str]:
    names = [it.name for it in Config().metrics][:METRICS]
    for workflow in range(WORKFLOWS):
        for name in names:
            yield f'job="rag",{WORKFLOW}="w{workflow}",{METRIC}="{name}",{JUDGE_VERSION}="a1",{JUDGE_MODEL}="m"'


def _times(url: str) -> Iterator[tuple[str, float]]:
    with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=60) as reply:  # noqa: S310 - http on loopback
        groups: list[dict[str, Any]] = json.load(reply)["data"]["groups"]
    for group in groups:
        for rule in group["rules"]:
            if rule["type"] == "recording" and rule["lastEvaluation"] > "1":
                assert rule["health"] != "err", rule
                yield rule["name"], rule["evaluationTime"]


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--days", type=int, default=DAYS)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), options.parse_args().days)
    print("\n".join(table(found)))
    total = sum(millis for millis, _ in found.values())
    print(f"\nTogether {total:.0f} ms for {WORKFLOWS * METRICS} watched series, each rule once.")


if __name__ == "__main__":
    main()
