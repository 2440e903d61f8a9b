"""What capture read of a workflow's first runs, and of each new shape, on standard error."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import ragtrace
from ragtrace.model.reading import Found, Reading, Sign, Source
from ragtrace.service import current
from ragtrace.sinks.console_readings import ConsoleReadings
from tests import make
from tests.process.observing import providers

SEARCHED = Reading(
    Found("input.question"), (Found("output"),), (Source("faq", "search", passages=5, chosen=5, shown=0),)
)
TOLD = Reading(Found("input.question"), (Found("output"),))


@pytest.fixture
def shown(capsys):
    """Return the lines that a console writes for some runs, each a workflow and what was read of it."""
    console = ConsoleReadings()

    def write(*runs, **facts):
        for workflow, reading in runs:
            console.remember(make.record(workflow=workflow, reading=reading, **facts))
        return capsys.readouterr().err.splitlines()

    return write


def test_the_lines_of_a_run(shown):
    assert shown(("support", SEARCHED)) == [
        "ragtrace: support: question from input.question; answer from output",
        "  evidence: 5 passages of retriever `faq` (0 in the prompt)",
    ]


def test_three_runs_of_each_workflow_are_shown(shown):
    lines = shown(*[(name, TOLD) for name in ("a", "b") for _ in range(5)])
    assert [sum(line.startswith(f"ragtrace: {name}:") for line in lines) for name in ("a", "b")] == [3, 3]


def test_a_shape_that_comes_and_goes_is_shown_once(shown):
    shown(*[("rag", SEARCHED)] * 3)
    assert [len(shown(("rag", reading))) for reading in (TOLD, SEARCHED, TOLD, SEARCHED)] == [2, 0, 0, 0]


SIGNED = replace(SEARCHED, signs=(Sign("tool_unused", "save_report"),))


@pytest.mark.parametrize(
    ("other", "is_new"),
    [
        (replace(SIGNED, question=Found("input.ticket")), True),
        (replace(SIGNED, question=Found("input.question", "decorator")), True),
        (replace(SIGNED, answers=()), True),
        (replace(SIGNED, sources=(Source("wiki", "search", passages=5, chosen=5),)), True),
        (replace(SIGNED, signs=(Sign("tool_unused", "save_note"),)), True),
        (replace(SIGNED, sources=(Source("faq", "search", passages=9, chosen=2, shown=1, left_out=1),)), False),
        (replace(SIGNED, signs=(Sign("tool_unused", "save_report", "other words", "evidence=..."),)), False),
    ],
)
def test_a_shape_is_what_was_read_and_not_how_much(shown, other, is_new):
    shown(*[("rag", SIGNED)] * 3)
    assert bool(shown(("rag", other))) is is_new


def test_tools_that_end_in_another_order_are_no_new_shape(shown):
    first, second = Source("faq", "search"), Source("wiki", "search")
    shown(*[("rag", replace(SEARCHED, sources=(first, second)))] * 3)
    assert shown(("rag", replace(SEARCHED, sources=(second, first)))) == []


def test_memory_is_bounded(shown):
    changing = [("rag", replace(TOLD, question=Found(f"input.{n}"))) for n in range(40)]
    assert len(shown(*changing)) == 16 * 2
    assert shown(*changing[-1:]) == []
    assert len(shown(*[(f"w{n}", TOLD) for n in range(400)])) == 255 * 2


def test_a_run_that_was_not_captured_and_a_later_revision_say_nothing(shown):
    assert shown(("rag", None)) == []
    assert shown(("rag", TOLD), revision=1) == []


def test_what_a_run_says_commands_no_terminal(shown):
    lines = shown(("a\x1b[2J", replace(TOLD, signs=(Sign("question_guessed", text="two\nlines \x1b[31m"),))))
    assert len(lines) == 3
    assert "\x1b" not in "".join(lines)
    assert r"two\nlines \x1b[31m" in lines[2]


@pytest.mark.parametrize("console", [True, False])
def test_a_service_shows_runs_that_are_not_sampled_where_it_has_a_console(capsys, console):
    ragtrace.configure(sample_rate=0.0, console=console, **providers())
    try:
        service, record = current(), make.record(reading=TOLD)
        assert service.pipeline.unit_of(record, service.sampler.decide(record, ["faithfulness"])) is None
    finally:
        ragtrace.shutdown(5)
    assert ("ragtrace: rag: question from input.question" in capsys.readouterr().err) is console
