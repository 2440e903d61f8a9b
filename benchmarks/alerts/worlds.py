"""False alarms and delays of the drift rule in every world, as in docs/how-to/alerts.md (``make bench-alerts``).

The worlds and the rule are those of tests/monitoring; the tests there run fewer months of them.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from tests.monitoring.drift_worlds.named_worlds import BURSTS, INVENTIONS, UNSEEN, USUAL, VOLUMES, WORLDS
from tests.monitoring.drift_worlds.random_worlds import random_world
from tests.monitoring.drift_worlds.simulation import (
    FAMILY,
    WORKFLOW,
    delays,
    drawn,
    false_alarms,
    of_workflow,
    page_delays,
    pages,
)
from tests.monitoring.drift_worlds.worlds import DAY, NEAR_PERFECT, UNINVENTED, World
from tests.monitoring.rule_f import Window

_VOLUMES = [f"{it:,}" for it in VOLUMES]
BUSY = VOLUMES[2:]
DROPS = ((0.85, 0.0), (0.80, 0.0), (0.85, 7.0))


def print_false_alarms(worlds: dict[str, World], months: int) -> None:
    print(f"\n| months with a false alarm, % | {' | '.join(_VOLUMES)} | mean | as one of {FAMILY} | a workflow |")
    print("|---" * (len(VOLUMES) + 4) + "|")
    found = {}
    for name, world in worlds.items():
        by_volume = [false_alarms(world, per_day, months) for per_day in VOLUMES]
        shares = [it.alone.mean() for it in by_volume]
        in_family = np.mean([it.in_family.mean() for it in by_volume])
        together = np.mean([of_workflow(world, per_day, months // 5).mean() for per_day in BUSY])
        found[name] = (*shares, np.mean(shares), in_family, together)
        cells = " | ".join(f"{100 * it:.1f}" for it in (*shares, np.mean(shares)))
        print(f"| {name} | {cells} | {100 * in_family:.2f} | {100 * together:.1f} |", flush=True)
    steady = np.array([it for name, it in found.items() if name not in BURSTS])
    for told, cells in (("mean", steady.mean(axis=0)), ("least", steady.min(axis=0)), ("most", steady.max(axis=0))):
        print(f"| {told} without bursts | {' | '.join(f'{100 * it:.2f}' for it in cells)} |")
    print(f"{months} months of each world and volume; a fifth of them for {WORKFLOW} metrics of one workflow.")


def print_pages(services: int, steps: int) -> None:
    print(f"\n| pages in 90 days | {' | '.join(_VOLUMES[2:])} |")
    print("|---" * (len(BUSY) + 1) + "|")
    for name, world in WORLDS.items():
        cells = " | ".join(f"{pages(world, per_day, services).mean():.2f}" for per_day in BUSY)
        print(f"| {name} | {cells} |", flush=True)
    print("\n| hours until a fall from .92 pages | series | a day | median | nine of ten |")
    print("|---" * 5 + "|")
    for fall_to in (0.80, 0.72, 0.62):
        for series in (1, WORKFLOW):
            for per_day in BUSY:
                found = 24 * page_delays(replace(USUAL, fall_to=fall_to, days=10), per_day, steps, series=series)
                median, late = (np.quantile(found, part, method="lower") for part in (0.5, 0.9))
                print(f"| to {fall_to} | {series} | {per_day:,} | {median:.1f} | {late:.1f} |", flush=True)


def print_inventions(steps: int) -> None:
    print("\n| days until inventions in a tenth of the answers are seen | series | median | 95 of 100 |")
    print("|---" * 4 + "|")
    world = replace(INVENTIONS, fall_to=UNINVENTED.good_mean - 0.06, days=14)
    for per_day in BUSY:
        for series in (1, WORKFLOW, FAMILY):
            found = delays(world, per_day, steps, series=series)
            median, late = (np.quantile(found, part, method="lower") for part in (0.5, 0.95))
            print(f"| {per_day:,} a day | {series} | {median:.2f} | {late:.2f} |", flush=True)


def print_repeated_questions() -> None:
    print("\n| effective scores of a day, of so many questions | " + " | ".join(_VOLUMES[2:]) + " |")
    print("|---" * (len(BUSY) + 1) + "|")
    for questions in (20, 50, 200, 1_000):
        found = []
        for per_day in BUSY:
            ((sums, _drops),) = drawn(World(questions=questions, history=10, days=4), per_day, 20, seed=1)
            found.append(np.nanmean(Window.of(sums, 86_400).n_eff[:, 5 * DAY :: DAY]))
        print(f"| {questions:,} | {' | '.join(f'{it:.0f}' for it in found)} |", flush=True)


def print_random_worlds(worlds: int, months: int) -> None:
    rng = np.random.default_rng(1)
    drawn = [random_world(rng) for _ in range(worlds)]
    found = [
        [false_alarms(world, per_day, months, seed).alone.mean() for per_day in VOLUMES]
        for seed, world in enumerate(drawn)
    ]
    by_volume, by_world = (np.mean(found, axis=axis) for axis in (0, 1))
    cells = " | ".join(f"{100 * it:.1f}" for it in (*by_volume, by_world.mean()))
    print(f"| {worlds} worlds at random, {months} months each | {cells} |")
    above = " and ".join(f"{100 * (by_world > bar).mean():.0f} % above {100 * bar:.0f} %" for bar in (0.05, 0.1))
    print(f"Of these worlds {above}, averaged over volumes.")


def print_undeclared_sessions(worlds: int, months: int) -> None:
    rng = np.random.default_rng(2)
    drawn = list(enumerate(random_world(rng) for _ in range(worlds)))
    print(f"\n| sessions that nobody declares, {months} months of each world | {' | '.join(_VOLUMES)} | mean |")
    print("|---" * (len(VOLUMES) + 2) + "|")
    for turns in sorted({world.turns for _seed, world in drawn} - {1}):
        found = [
            [false_alarms(replace(world, is_clustered=False), it, months, seed).alone.mean() for it in VOLUMES]
            for seed, world in drawn
            if world.turns == turns
        ]
        cells = " | ".join(f"{100 * it:.1f}" for it in (*np.mean(found, axis=0), np.mean(found)))
        print(f"| {len(found)} worlds, {turns} turns with one score | {cells} |", flush=True)


def print_usual_delays(steps: int) -> None:
    print("\n| drop from .92 | series | a day | median, days | nine of ten | within 3 days, % | 7 days | 3 weeks |")
    print("|---" * 8 + "|")
    for fall_to, ramp_days in DROPS:
        for series in (1, FAMILY):
            for per_day in VOLUMES:
                dropping = replace(USUAL, fall_to=fall_to, ramp_days=ramp_days, days=28)
                found = delays(dropping, per_day, steps, series=series)
                median, late = (np.quantile(found, part, method="lower") for part in (0.5, 0.9))
                seen = " | ".join(f"{100 * (found <= limit).mean():.0f}" for limit in (3, 7, 21))
                told = f"to {fall_to} over {ramp_days:g} days | {series} | {per_day:,}"
                print(f"| {told} | {median:.2f} | {late:.2f} | {seen} |", flush=True)


def print_median_delays(worlds: dict[str, World], steps: int) -> None:
    print(f"\n| median days to see .92 to .85 | {' | '.join(_VOLUMES)} |")
    print("|---" * (len(VOLUMES) + 1) + "|")
    for name, world in worlds.items():
        dropping = replace(world, fall_to=0.85, days=21)
        medians = [np.quantile(delays(dropping, per_day, steps), 0.5, method="lower") for per_day in VOLUMES]
        print(f"| {name} | {' | '.join(f'{it:.2f}' for it in medians)} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure the drift rule in simulated worlds.")
    parser.add_argument("--months", type=int, default=200, help="months of each world and volume")
    parser.add_argument("--steps", type=int, default=200, help="drops of each world and volume")
    given = parser.parse_args()
    print_repeated_questions()
    print_inventions(given.steps)
    print_pages(given.months // 2, given.steps)
    print_false_alarms(WORLDS, given.months)
    print_false_alarms(UNSEEN, given.months)
    print_random_worlds(given.months // 2, 20)
    print_undeclared_sessions(60, 20)
    print_usual_delays(given.steps)
    print_median_delays(
        {name: it for name, it in WORLDS.items() if it.shape not in (NEAR_PERFECT, UNINVENTED)}, given.steps // 4
    )


if __name__ == "__main__":
    main()
