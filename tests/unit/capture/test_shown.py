"""Whether a run's prompts show a passage."""

from __future__ import annotations

from ragtrace.capture import Recorder
from ragtrace.model import Passage

OSLO = Passage(id="a", text="The lab moved to Oslo in the spring.", rank=1)
BERGEN = Passage(id="b", text="The office stayed in Bergen that year.", rank=2)


def test_a_run_without_prompts_shows_nothing() -> None:
    assert not Recorder().start().prompt_contains([OSLO])


def test_one_passage_in_one_prompt_is_enough() -> None:
    run = Recorder().start()
    with run.reading():
        run.add_prompt(f"Context: {OSLO.text} Where is the lab?")
        run.add_prompt("Make a title for it.")
    assert run.prompt_contains([BERGEN, OSLO])
    assert not run.prompt_contains([BERGEN])
    assert not run.prompt_contains([])


def test_prompts_before_a_place_are_not_looked_at() -> None:
    run = Recorder().start()
    with run.reading():
        run.add_prompt(OSLO.text)
        run.add_prompt(BERGEN.text)
    assert not run.prompt_contains([OSLO], since=1)
    assert run.prompt_contains([BERGEN], since=1)
