"""Tags of any type: none raises, none leaves a run open, and a lone text is one tag."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import ragtrace
from ragtrace.capture import Defaults, Recorder, Run, describe, tags_of
from tests.kept import Keeper


class Loud(str):
    """A text whose methods raise."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("str")


class Unreadable:
    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("str")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")


def broken() -> Any:
    yield "first"
    raise RuntimeError("next")


TAGS: list[Any] = [
    ("vip", ("vip",)),
    ("", ()),
    (None, ()),
    (7, ("7",)),
    (True, ("True",)),
    (2.5, ("2.5",)),
    (b"vip", ("vip",)),
    (["vip", "beta", "vip"], ("vip", "beta")),
    ([1, None, "", "x"], ("1", "x")),
    ({"vip": 1, "beta": 2}, ("vip", "beta")),
    (Loud("vip"), ("<Loud>",)),
    ([Unspeakable(), "vip"], ("<Unspeakable>", "vip")),
    (Unreadable(), ()),
    (object, ("<class 'object'>",)),
]


def made() -> list[Any]:
    return [
        *TAGS,
        (iter(["vip"]), ("vip",)),
        (broken(), ("first",)),
        (map(str, itertools.count()), tuple(map(str, range(64)))),
    ]


@pytest.mark.parametrize("place", range(len(made())))
@pytest.mark.parametrize("way", ["start", "tagged", "describe", "defaults"])
def test_tags_of_any_type_never_raise_and_leave_no_run_open(place: int, way: str) -> None:
    given, expected = made()[place]
    keeper = Keeper()
    recorder = Recorder(keeper)
    with recorder.start(query="q", **({"tags": given} if way == "start" else {})) as run:
        if way == "tagged":
            run.add_tags(given)
        elif way == "describe":
            describe(run, Defaults(), {"tags": given})
        elif way == "defaults":
            describe(run, Defaults(tags=given), {})
    assert recorder.open_runs == 0
    assert [kept.record.tags for kept in keeper.runs] == [expected]


@pytest.mark.parametrize("place", range(len(made())))
def test_a_query_by_hand_takes_any_tags(place: int) -> None:
    ragtrace.configure(enabled=False)
    with ragtrace.query("q", tags=made()[place][0]) as run:
        assert isinstance(run, Run)
    assert run.is_finished


def test_a_workflow_that_has_no_truth_value_does_not_lose_the_run() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q", workflow=Unreadable()):  # type: ignore[arg-type]
        pass
    assert len(keeper.runs) == 1


def test_no_more_tags_are_read_than_are_kept() -> None:
    assert len(tags_of(itertools.repeat("x"))) == 256
