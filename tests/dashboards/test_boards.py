"""The committed boards are what the generator writes, and what Grafana's own models read and write."""

from __future__ import annotations

import enum
import json
import sys
import types
import typing
import warnings
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from ragtrace_dashboards import INVESTIGATE, OVERVIEW, SCORER, Config, Watched, boards
from tests.dashboards.lint import panels, walk
from tests.dashboards.promql import variables

DIST = Path(__file__).resolve().parents[2] / "dashboards" / "ragtrace_dashboards" / "dist"
UIDS = sorted(boards(Config()))


@pytest.mark.parametrize("uid", UIDS)
def test_grafanas_models_lose_nothing(uid):
    """The round trip through grafana-foundation-sdk may add defaults; what we wrote comes back as it was."""
    board = boards(Config())[uid]
    plugins.register_default_plugins()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it prefers the v2 schema, which older Grafanas lack
        read = models.Dashboard.from_json(board)
    assert list(misfits(read)) == []
    back = json.loads(JSONEncoder(sort_keys=True).encode(read))
    kept = dict(walk(back))
    lost = {path: value for path, value in walk(board) if kept.get(path, "lost") != value}
    assert lost == {}


def misfits(value, path="board"):
    """Places of a read board whose value is not of the type that Grafana's model states: its schema, checked."""
    hints = typing.get_type_hints(type(value).__init__, vars(sys.modules[type(value).__module__]))
    for name, hint in hints.items():
        if name != "return":
            yield from _misfit(getattr(value, name), hint, f"{path}.{name}")


def _misfit(value, hint, path):
    if not _fits(value, hint):
        yield f"{path}: {value!r} is no {hint}"
    elif type(value).__module__.startswith("grafana_foundation_sdk.models") and not isinstance(value, enum.Enum):
        yield from misfits(value, path)
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _misfit(part, typing.Any, f"{path}[{at}]")


def _fits(value, hint):
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in {typing.Any, object} or isinstance(hint, str | typing.ForwardRef | typing.TypeVar):
        return True
    if origin in {typing.Union, types.UnionType}:
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return value in parts
    if origin is list:
        return isinstance(value, list) and all(_fits(it, parts[0]) for it in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(it, parts[1]) for it in value.values())
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in {it.value for it in hint} or isinstance(value, hint)
    if isinstance(value, dict) and hasattr(hint, "from_json"):  # a few places it leaves unread
        return not list(misfits(hint.from_json(value)))
    return not isinstance(hint, type) or isinstance(value, hint)


def test_the_type_check_finds_a_wrong_type():
    board = boards(Config())[UIDS[0]] | {"title": 5}
    assert any("title" in it for it in misfits(models.Dashboard.from_json(board)))


def test_another_configuration_gives_other_boards():
    watched = (Watched(name="faithfulness"), Watched(name="hallucination", direction="down"))
    text = json.dumps(boards(Config(day_window_s=43_200, canary_gap=0.3, metrics=watched)))
    assert "[12h]" in text
    assert "hallucination" in text
    assert "answer_relevancy" not in text
    assert 0.3 in dict(walk(boards(Config(canary_gap=0.3))[SCORER])).values()


def test_there_are_about_sixty_panels():
    count = sum(len(panels(board)) for board in boards(Config()).values())
    assert 55 <= count <= 66


def test_the_first_two_questions_are_seen_on_a_small_screen():
    shown = [it["gridPos"] for it in boards(Config())[OVERVIEW]["panels"] if it["title"].startswith(("1.", "2."))]
    assert max(it["y"] + it["h"] for it in shown) <= 17  # of 30 pixels and a gap of 8, in 768 pixels


def test_the_command_and_the_traces_take_the_labels_of_the_alerts_link():
    of_alert = {"job", "workflow", "metric"}
    board = boards(Config())[INVESTIGATE]
    assert of_alert <= {it["name"] for it in board["templating"]["list"]}
    told = next(it["options"]["content"] for it in panels(board) if it["type"] == "text")
    assert "ragtrace investigate" in told
    assert {"workflow", "metric"} <= variables(told)
    searched = next(it["targets"][0]["query"] for it in panels(board) if it["id"] == 53)
    assert variables(searched) == {"metric", "workflow"}
