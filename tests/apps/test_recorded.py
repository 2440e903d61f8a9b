"""The masked file of every application gives the lineage, counts, order and outcome of the unmasked one."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace

from ragtrace.capture.masks import Masker
from ragtrace.capture.past import PastRuns
from ragtrace.capture.recorded import head, lines_of, read_runs, replayed
from ragtrace.testing.recording import Recording
from tests.apps.test_apps import applications

WORDS = re.compile(r"[^\W\d_]{3,}")
OURS = {"framework", "nan", "decorator"}  # who chose, or declared; a number
# Of fields with a name.
NAMES = {
    *("kind", "role", "name", "type", "path", "operation"),
    *("outcome", "finish_reasons", "teller", "fuses"),
    *("selection_source", "label_scope", "scale"),
}


class Kept:
    def __init__(self):
        self.runs = []

    def write(self, run, redact):
        self.runs.append(run)


def recorded(kind, form, way):
    """Return the recording of an application, and its runs as they are written."""
    kept, events = Recording(), Kept()
    kept.recorder.config = replace(kept.recorder.config, events=events)
    with kind().capturing(way, kept.recorder) as given:
        kind().run(form, given)
    return kept, events.runs


def lines(runs, masker):
    return [
        head(is_masked=masker is not None),
        *(line for number, run in enumerate(runs, start=1) for line in lines_of(run, number, masker)),
    ]


def replay(written):
    past = PastRuns()
    return [found for run in read_runs(written) if (found := replayed(run, past)) is not None]


def told(runs):
    """Return what was captured, with a number for each id in the order in which they come."""
    names = {}

    def number(name):
        return names.setdefault(name, len(names))

    def listed(passages):
        return [(number(one.id), one.rank, one.score) for one in passages]

    return [
        {
            "pools": [(pool.stage, listed(pool.passages)) for pool in run.record.pools],
            "source": run.record.selection_source,
            "prompt": run.prompt_ids and [number(one) for one in run.prompt_ids],
            "cited": [[number(one) for one in part.citations] for part in run.record.answer_parts],
            "steps": [(type(step).__name__, listed(getattr(step, "passages", ()))) for step in run.steps],
            "outcome": (
                run.record.outcome,
                run.record.is_refused,
                bool(run.record.answer),
                run.record.is_answer_given,
            ),
            "k": run.record.k,
            "lossy": dict(run.record.lossy),
            "history": [turn.role for turn in run.record.history],
        }
        for run in runs
    ]


def texts_in(value):
    """Yield the application's texts in a line, without names of fields, steps and tools, and without roles."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)
    elif isinstance(value, dict):
        for name, part in value.items():
            if name in {"dict", "fields"}:
                yield from texts_in([one for key, one in part if key not in NAMES])
            elif name not in NAMES and not (name == "data" and isinstance(part, str)):  # an outcome
                yield from texts_in(part)


def words_of(written):
    texts = [text for line in written[1:] for text in texts_in(json.loads(line))]
    # Names of fields in a text of JSON, or in one that Python shows, stay, as those of a state do.
    bare = [re.sub(r"""["']\w+\\*["']\s*:|\b\w+=(?=["'])""", "", text) for text in texts]
    return {word.casefold() for text in bare for word in WORDS.findall(text)} - OURS


@pytest.mark.parametrize(("kind", "form", "way"), applications())
@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_a_masked_file_tells_the_same(kind, form, way):
    kept, runs = recorded(kind, form, way)
    plain, masked = lines(runs, None), lines(runs, Masker())
    assert told(replay(plain)) == told(kept.runs)
    assert told(replay(masked)) == told(kept.runs)
    assert words_of(plain) & words_of(masked) == set()
