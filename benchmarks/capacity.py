"""Workers, judge calls, partitions, bytes and dollars that a rate of traces needs, with the bottleneck named.

``python -m benchmarks.capacity --traces-per-minute 10000`` prints one plan; without an argument, the table of
docs/how-to/capacity.md. `benchmarks.capacity_measured` runs real workers beside the model and measures constants.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

COUNTS = {"concurrency", "workers", "receivers", "partitions"}
MOST_AT_ONCE = 128  # of a worker; its core is the bound at about 200 with a judge of 2 s
STEPS = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True, kw_only=True)
class Load:
    """A service, its judge, and the limits and parts that are set; defaults are those of ragtrace's settings."""

    traces_per_minute: float = 1_000
    sample_rate: float = 0.05
    first_judge: bool = False  # the offline judge scores every sampled trace, the language model judge_rate of them
    judge_rate: float = 0.1
    judge_latency_ms: float = 2_000
    calls_per_trace: float = 2  # the default metrics: one audit, one list of questions
    prompt_tokens: float = 680  # per call: 1,137 of the audit, 227 of the questions (`make bench-cost`)
    reply_tokens: float = 160
    price_input: float = 0.15  # dollars for a million tokens
    price_output: float = 0.60
    spans_per_trace: float = 10
    kb_per_trace: float = 12  # 10 documents of 500 characters, question, answer and attributes
    concurrency: int = 8  # RAGTRACE_CONCURRENCY
    judge_rpm: float = 500
    judge_tpm: float = 200_000
    budget: float = 10  # dollars a day
    workers: int = 1
    receivers: int = 1  # cores of `ragtrace serve`
    partitions: int = 12


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What one core or one part does; each number has its source."""

    receiver_spans: float = 20_000  # spans/s and core over gRPC: the bound of `python -m benchmarks.receiver`
    parse_spans: float = 100_000  # spans/s and core from Kafka, parsed and sampled: the same benchmark's bound
    judged_cpu_ms: float = 20.0  # a trace with two calls, whole worker: `python -m benchmarks.capacity_measured`
    offline_cpu_ms: float = 11.0  # a trace with the offline judge: the same
    store_kb: float = 1.5  # a scored trace in the store, without its texts: the same
    partition_mb: float = 10  # MB/s of one partition: a usual rule of thumb, not measured here
    headroom: float = 0.7  # share of a part that is planned for; the rest is for bursts and restarts


def rate_of_worker(concurrency: int, wait_s: float, cpu_s: float) -> float:
    """Traces a second of one worker: exact mean value analysis of a closed network.

    `concurrency` traces go round between a wait without a queue (the judge) and one core with a queue. Where the
    core is idle this is Little's law, concurrency / (wait + cpu); where it is busy it is 1 / cpu.

    Example:
        >>> round(rate_of_worker(8, 0.2, 0.001)), round(rate_of_worker(1000, 0.2, 0.01))
        (40, 100)
    """
    rate = queued = 0.0
    for n in range(1, concurrency + 1):
        spent = cpu_s * (1 + queued)
        rate = n / (wait_s + spent)
        queued = rate * spent
    return rate


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The needs of a load. Rates are a second, money is dollars a day.

    Attributes:
        limits: demand over what is set, by the name of the limit; above 1 it holds the service up.
    """

    scored: float
    judged: float
    judge_concurrency: float
    judge_rpm: float
    judge_tpm: float
    dollars: float
    workers: int
    receivers: int
    kafka_mb: float
    partitions: int
    store_gb_per_day: float
    limits: dict[str, float]

    @property
    def bottleneck(self) -> str:
        """Return the limit that is exceeded most, "none" where all hold."""
        worst = max(self.limits, key=self.limits.__getitem__)
        return worst if self.limits[worst] > 1 else "none"


def plan(load: Load, machine: Machine | None = None) -> Plan:
    """Return what a load needs.

    Example:
        >>> plan(Load(traces_per_minute=1_000)).bottleneck
        'budget'
    """
    machine = machine or Machine()
    traces = load.traces_per_minute / 60
    scored = traces * load.sample_rate
    judged = scored * (load.judge_rate if load.first_judge else 1)
    calls = judged * load.calls_per_trace
    tokens = calls * 60 * (load.prompt_tokens + load.reply_tokens)
    dollars = calls * 86_400 * (load.prompt_tokens * load.price_input + load.reply_tokens * load.price_output) / 1e6
    wait_s = load.judge_latency_ms / 1e3 * load.calls_per_trace
    busy = judged / rate_of_worker(load.concurrency, wait_s, machine.judged_cpu_ms / 1e3)
    busy += traces * load.spans_per_trace / machine.parse_spans
    busy += scored * machine.offline_cpu_ms / 1e3 if load.first_judge else 0
    received = traces * load.spans_per_trace / machine.receiver_spans
    mb = traces * load.kb_per_trace / 1e3
    workers, receivers = (math.ceil(need / machine.headroom) for need in (busy, received))
    partitions = max(workers, math.ceil(mb / machine.partition_mb / machine.headroom))
    return Plan(
        scored=scored,
        judged=judged,
        judge_concurrency=calls * load.judge_latency_ms / 1e3,  # Little's law
        judge_rpm=calls * 60,
        judge_tpm=tokens,
        dollars=dollars,
        workers=workers,
        receivers=receivers,
        kafka_mb=mb,
        partitions=partitions,
        store_gb_per_day=scored * 86_400 * machine.store_kb / 1e6,
        limits={
            "budget": _over(dollars, load.budget),
            "judge quota": max(_over(calls * 60, load.judge_rpm), _over(tokens, load.judge_tpm)),
            "workers": workers / load.workers,
            "receivers": receivers / load.receivers,
            "partitions": partitions / load.partitions,
        },
    )


def _over(need: float, limit: float) -> float:
    """Return the need over a limit; 0 turns a limit off."""
    return need / limit if limit else 0.0


def by_concurrency(load: Load) -> list[tuple[int, Plan]]:
    """Return the plan of each doubled concurrency, while it needs fewer workers.

    Example:
        >>> load = Load(traces_per_minute=60_000)
        >>> [(concurrency, found.workers) for concurrency, found in by_concurrency(load)]
        [(8, 37), (16, 19), (32, 10), (64, 5), (128, 3)]
    """
    plans = [(load.concurrency, plan(load))]
    while (concurrency := 2 * plans[-1][0]) <= MOST_AT_ONCE:
        found = plan(replace(load, concurrency=concurrency))
        if found.workers >= plans[-1][1].workers:
            break
        plans.append((concurrency, found))
    return plans


def lifted(load: Load, found: Plan, *, is_sample_kept: bool = False) -> tuple[str, Load]:
    """Return what to change about the bottleneck, and the load with it. Cheaper changes come first."""
    name = found.bottleneck
    if name == "workers":
        plans = by_concurrency(load)
        concurrency = next((n for n, other in plans if other.workers <= load.workers), plans[-1][0])
        if concurrency > load.concurrency:
            return f"a concurrency of {concurrency}", replace(load, concurrency=concurrency)
    if name in {"workers", "receivers", "partitions"}:
        count = getattr(found, name)
        return f"{count:,} {name}", replace(load, **{name: count})
    if name == "judge quota":
        rpm, tpm = _round_up(found.judge_rpm), _round_up(found.judge_tpm)
        return f"a quota of {rpm:,} calls and {tpm:,} tokens a minute", replace(load, judge_rpm=rpm, judge_tpm=tpm)
    if not is_sample_kept and not load.first_judge and found.dollars > 100:
        return "two judges, the model scores 1 in 10", replace(load, first_judge=True)
    if not is_sample_kept and load.sample_rate > 0.01 and found.dollars > 100:
        return "a sampling rate of 1 %", replace(load, sample_rate=0.01)
    budget = _round_up(found.dollars)
    return f"a budget of {budget:,} dollars a day", replace(load, budget=budget)


def _round_up(value: float) -> int:
    """Return the next number of one digit and zeros.

    Example:
        >>> _round_up(2_095), _round_up(21)
        (3000, 30)
    """
    unit = 10 ** int(math.log10(value))
    return math.ceil(value / unit) * unit


def steps(load: Load, *, is_sample_kept: bool = False) -> Iterator[tuple[str, Plan]]:
    """Yield the change and its plan, from a load to where nothing is exceeded."""
    words, found = "as given", plan(load)
    yield words, found
    while found.bottleneck != "none":
        words, load = lifted(load, found, is_sample_kept=is_sample_kept)
        found = plan(load)
        yield words, found


def table() -> str:
    """Return the way of each rate as Markdown: what to set in turn, and which limit is met next."""
    heads = (
        *("traces a minute", "set", "scored/s", "by the model/s", "calls at once", "dollars a day", "workers"),
        *("Kafka MB/s", "store GB a day", "next bottleneck"),
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rate in STEPS:
        for words, found in steps(Load(traces_per_minute=rate)):
            over = "" if found.bottleneck == "none" else f", {found.limits[found.bottleneck]:,.1f} x"
            cells = (
                *(f"{rate:,}", words, f"{found.scored:,.1f}", f"{found.judged:,.2f}"),
                *(f"{found.judge_concurrency:,.1f}", f"{found.dollars:,.0f}", str(found.workers)),
                *(f"{found.kafka_mb:,.1f}", f"{found.store_gb_per_day:,.1f}", found.bottleneck + over),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    if not words:
        print(table())
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    for one in fields(Load):
        name, kind = f"--{one.name.replace('_', '-')}", type(one.default)
        if kind is bool:
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, type=kind if one.name in COUNTS else float, default=one.default)
    load = Load(**vars(parser.parse_args(words)))
    found = plan(load)
    for name in (one.name for one in fields(Plan) if one.name != "limits"):
        print(f"{name:18} {round(getattr(found, name), 2):,.10g}")
    print("\ndemand over limit  " + ", ".join(f"{name} {value:,.2f}" for name, value in found.limits.items()))
    print()
    for concurrency, other in by_concurrency(load):
        print(f"concurrency {concurrency}: workers {other.workers:,}, partitions of the topic {other.partitions:,}")
    print()
    for words_, after in steps(load, is_sample_kept=True):  # the traffic and its sample are the user's
        print(f"{words_}: {after.bottleneck}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
