"""The ends of a trace: the names that the ledger, the gauges and the dashboards share."""

from __future__ import annotations

from ragtrace.model import ENDS, LOST, SERVED, is_drawn
from ragtrace_dashboards import Config, boards


def test_every_end_was_drawn_or_not():
    assert {end for end in ENDS if is_drawn(end, "")} == {"scored", "invalid", "dead", "dropped", "failed"}
    assert set(ENDS) > SERVED
    assert all(is_drawn("skipped", reason) for reason in LOST)


def test_the_dashboard_tells_which_skipped_traces_are_lost():
    described = [
        panel["description"]
        for board in boards(Config()).values()
        for panel in board["panels"]
        if panel["title"].startswith("Ledger")
    ]
    assert described
    assert all(reason in text for text in described for reason in LOST)
