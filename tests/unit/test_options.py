"""Option groups and flat names of `ragtrace.configure` against the table of settings."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import get_type_hints

import pytest

import ragtrace
from ragtrace import options, settings
from ragtrace.errors import ConfigError
from ragtrace.options import GROUPS, FlatSettings, JudgeOptions, StoreOptions, flat
from ragtrace.settings import Settings

TABLE = {item.name: item for item in fields(Settings)}
NAMES = {**vars(settings), "os": os, "Callable": Callable, "Iterable": Iterable, "Mapping": Mapping}
BESIDE = {"tracer_provider", "meter_provider", "logger_provider", *GROUPS} - TABLE.keys()


def test_configure_names_every_setting_once():
    named = set(inspect.signature(ragtrace.configure).parameters) - {"settings"} - BESIDE
    flat_names = set(FlatSettings.__annotations__)
    assert not named & flat_names
    assert named | flat_names == set(TABLE)


@pytest.mark.parametrize("group", GROUPS.values())
def test_an_option_has_the_type_of_its_setting_and_a_description(group):
    wanted, given = get_type_hints(Settings), get_type_hints(group, NAMES)
    for option in fields(group):
        assert given[option.name] == wanted[option.metadata["setting"]] | None
        assert f"\n        {option.name}: " in group.__doc__


def test_a_flat_name_has_the_type_of_its_setting():
    wanted, given = get_type_hints(Settings), get_type_hints(FlatSettings, None, NAMES)
    for name, kind in given.items():
        if not isinstance(TABLE[name].default, tuple) and name not in {"spool", "grade_cache"}:
            assert kind == wanted[name] | None, name


def test_groups_and_flat_names_give_the_same_settings():
    grouped = flat(
        {"judge": JudgeOptions(name="overlap", rpm=7), "store": StoreOptions(path="s.db"), "k_values": 3}
    )
    assert grouped == {"judge": "overlap", "judge_rpm": 7, "store": "s.db", "k_values": 3}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"judge": JudgeOptions(rpm=1), "judge_rpm": 2}, "judge_rpm is given twice"),
        ({"budget": 3}, "budget takes BudgetOptions"),
        ({"console": JudgeOptions()}, "console takes no options"),
        ({"budget": JudgeOptions()}, "budget takes BudgetOptions"),
    ],
)
def test_a_wrong_group_is_refused(given, words):
    with pytest.raises(ConfigError, match=words):
        flat(given)


def test_options_are_those_that_ragtrace_exports():
    assert {kind.__name__ for kind in GROUPS.values()} <= set(ragtrace.__all__)
    assert options.GROUPS["judge"] is ragtrace.JudgeOptions
