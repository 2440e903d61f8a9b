"""Changes that an application makes to its values once it has reported them by hand, and copies of values."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder
from ragtrace.capture.values import Opaque, Walker, copied
from ragtrace.model import Message
from tests.kept import Keeper


def test_what_a_person_reported_is_as_it_was():
    rows = [{"id": "a", "text": "In Oslo.", "metadata": {"tags": ["lab"], "facts": {"page": 1}}}]
    arguments, turns = {"where": ["lab"]}, [Message(role="user", content="Hi")]
    keeper = Keeper()
    with Recorder(keeper).start(query="Where?") as run:
        run.retrieved(rows)
        run.tool_called("look", arguments=arguments, result=rows)
        run.set_history(turns)
        run.answered("In Oslo.")
        rows[0]["metadata"]["tags"].append("changed")
        rows[0]["metadata"]["facts"]["page"] = "changed"
        rows[0]["text"] = "changed"
        arguments["where"].append("changed")
        turns.clear()
    assert "changed" not in repr(keeper.only)
    assert keeper.only.record.history
    (passage,) = keeper.only.record.pool("retrieved")
    assert passage.metadata == {"tags": ["lab"]}


class Broken(dict):
    def keys(self):
        raise RuntimeError("closed")

    def __iter__(self):
        raise RuntimeError("closed")


def test_a_part_that_cannot_be_read_costs_itself_only():
    made, _ = Walker().facts({"page": 1, "rows": [{"a": Broken(b=1)}, 2], "broken": Broken(c=1)})
    assert made == {"page": 1, "rows": [{"a": Opaque("Broken")}, 2]}


class Tensor:
    def __float__(self):
        return 0.5


def test_a_number_of_another_package_is_a_number_and_bytes_stay():
    made, _ = Walker().facts({"score": Tensor(), "image": b"GIF"})
    assert made == {"score": 0.5, "image": b"GIF"}


@pytest.mark.parametrize("wide", [[["a"] * 600] * 600, {n: ["a"] * 600 for n in range(600)}])
def test_a_copy_is_bounded_as_a_whole(wide):
    made = copied(wide)
    parts = made if isinstance(made, list) else made.values()
    assert sum(len(part) for part in parts if isinstance(part, list)) <= 20_000


def test_a_value_that_holds_itself_ends():
    cycle = [1]
    cycle.append(cycle)
    assert len(repr(copied(cycle))) < 500
