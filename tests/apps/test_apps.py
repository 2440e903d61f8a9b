"""Small applications after public templates: each leaves the record that its author wrote down before the first run.

With ragtrace each returns, raises and streams the same as without it.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from ragtrace.capture import internal_errors
from ragtrace.testing.recording import Recording
from tests.apps.application import Application, recorded


def applications():
    """Return each application in each of its forms, captured in each of its framework's ways."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*_apps.py") if path != Path(__file__))
    modules = [importlib.import_module(f"tests.apps.{name}") for name in names]
    kinds = [kind for module in modules for kind in vars(module).values() if is_application(kind, module)]
    return [
        pytest.param(kind, form, way, id=f"{kind.__name__}-{form}-{way}")
        for kind in kinds
        for form in kind.forms()
        for way in kind.captures
        if way != "none"
    ]


def is_application(kind, module):
    is_kind = isinstance(kind, type) and issubclass(kind, Application)
    return is_kind and bool(kind.expected) and kind.__module__ == module.__name__


@pytest.mark.parametrize(("kind", "form", "way"), applications())
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_the_record_is_what_a_person_says_it_is(kind, form, way):
    with kind().capturing("none", None) as given:
        without = kind().run(form, given)
    kept, before = Recording(), internal_errors()
    with kind().capturing(way, kept.recorder) as given:
        result = kind().run(form, given)
    assert result == without
    assert [recorded(run) for run in kept.runs] == list(kind.expected)
    assert (kept.recorder.open_runs, internal_errors()) == (0, before)
