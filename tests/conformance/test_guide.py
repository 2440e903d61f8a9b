"""The integration of docs/how-to/integration.md passes the suite, as the guide says."""

from __future__ import annotations

import re
import sys
import unittest
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from ragtrace.capture import Recorder
from tests.kept import Waiting

GUIDE = Path(__file__).parents[2] / "docs/how-to/integration.md"


def example(number, name):
    """Return a Python example of the guide as a module."""
    text = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[number]
    module = ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)  # noqa: S102 - the guide's own example
    return module


sys.modules["mine"] = example(0, "mine")
SUITE = example(1, "test_mine").TestMine


@pytest.mark.parametrize("test", [name for name in dir(SUITE) if name.startswith("test_")])
def test_the_guide_s_integration(test):
    with suppress(unittest.SkipTest):  # the guide says what its framework lacks
        getattr(SUITE(), test)()


def test_what_the_application_changes_later_is_as_it_was():
    keeper = Waiting()
    hook = sys.modules["mine"].Hook(Recorder(keeper))
    hits = [{"id": "faq-7", "text": "The lab is in Oslo.", "score": 0.9}]
    hook.on_request("Where?")
    hook.on_search("faq", hits)
    hook.on_model("m", "Use: The lab is in Oslo.", "In Oslo.", {})
    hook.on_end("In Oslo.")
    hits[0]["text"] = "changed"
    keeper.process()
    assert [passage.text for passage in keeper.only.record.pool("retrieved")] == ["The lab is in Oslo."]
