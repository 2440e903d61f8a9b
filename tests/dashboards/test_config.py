"""The configuration: what it says of metrics is so, and each of its fields does something."""

from __future__ import annotations

import sys
from dataclasses import fields, replace

import pytest

from ragtrace.errors import MissingExtra
from ragtrace.metrics import all_metrics, select
from ragtrace.settings import DEFAULT_METRICS
from ragtrace_dashboards import (
    LOWER_IS_BETTER,
    OVERVIEW,
    Config,
    Watched,
    board_files,
    boards,
    files,
    generated_files,
    grafana_files,
    prometheus_files,
    receiver_files,
    runbook_files,
    shipped_files,
)

DEFAULT = generated_files(Config())
PARTS = {
    part: part(Config()) for part in (prometheus_files, grafana_files, board_files, runbook_files, receiver_files)
}
OTHER = {
    int: lambda it: 2 * it or 7,
    float: lambda it: 1.5 * it,
    str: lambda it: f"{it}x",
    tuple: lambda it: it[:-1],
}


def test_directions_are_those_of_the_registry():
    outputs = [it for metric in all_metrics().values() for it in metric.spec.outputs]
    down = tuple(sorted(it.name for it in outputs if it.direction == "down"))
    assert down == LOWER_IS_BETTER, f"config.py: LOWER_IS_BETTER = {down}"


def test_every_default_metric_that_can_drop_is_watched_inventions_first():
    """Those that have a threshold, and the share of answered questions."""
    metrics = select(DEFAULT_METRICS)
    outputs = [it.name for metric in metrics for it in metric.spec.outputs if it.can_drift]
    watched = [it.name for it in Config().metrics]
    assert {it for it in outputs if it not in watched} == set(), "config.py: metrics"
    assert watched[0] == "invented_specifics"
    assert "invented_specifics" in Config().down_metrics
    assert len(set(watched)) == len(watched)


def test_slices_have_the_bad_side_of_each_metric_watched_or_not():
    config = Config(metrics=(Watched(name="faithfulness"), Watched(name="hallucination", direction="down")))
    down = "|".join(sorted((*LOWER_IS_BETTER, "hallucination")))
    panel = next(it for it in boards(config)[OVERVIEW]["panels"] if it["id"] == 53)
    assert all(f'!~"{down}"' in it["expr"] and f'=~"{down}"' in it["expr"] for it in panel["targets"])


@pytest.mark.parametrize(
    ("watched", "is_down"),
    [
        (Watched(name="faithfulness"), False),
        (Watched(name="contradicted_rate"), True),
        (Watched(name="own"), False),
        (Watched(name="own", direction="down"), True),
    ],
)
def test_a_watched_metric_has_the_direction_that_it_declares(watched, is_down):
    assert (Config(metrics=(watched,)).down_metrics == (watched.name,)) == is_down


@pytest.mark.parametrize("name", [it.name for it in fields(Config)])
def test_every_field_changes_a_file(name):
    value = getattr(Config(), name)
    changed = replace(Config(), **{name: OTHER[type(value)](value)})
    assert any(part(changed) != default for part, default in PARTS.items())


def test_the_package_holds_the_files_of_the_default(monkeypatch):
    assert shipped_files() == DEFAULT, "run `make dashboards`"
    assert {path: text for made in PARTS.values() for path, text in made.items()} == DEFAULT
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert files(Config()) == DEFAULT
    assert "kubernetes/ragtrace-alerts.yaml" in files(Config(), "kubernetes")
    assert {path.split("/")[0] for path in files(Config(), "prometheus")} == {"alertmanager", "rules", "runbooks"}
    assert "rules" not in {path.split("/")[0] for path in files(Config(), "grafana")}
    with pytest.raises(MissingExtra, match=r"PyYAML is not installed: .*\[dashboards\]"):
        files(Config.demo())


@pytest.mark.parametrize("name", [it.name for it in fields(Watched)])
def test_every_field_of_a_watched_metric_changes_a_file(name):
    plain = Watched(name="own")
    other = replace(plain, **{name: {"name": "other", "direction": "down"}[name]})
    assert files(Config(metrics=(plain,))) != files(Config(metrics=(other,)))
