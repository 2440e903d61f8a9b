"""Declarations: places in values, what a person may write, what comes first, and names that no run meets."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragtrace.capture import Recorder, finished_run
from ragtrace.capture.declared import HEADS, MOST_FOUND, NOTHING, Declarations, Declared, Place
from ragtrace.capture.events import Began, Event, Gave, Sought
from ragtrace.capture.masks import Masker
from ragtrace.capture.recorded import RecordedRun, head, lines_of, read_runs, run_again
from ragtrace.capture.values import Doc, Fields, Opaque, Prompt, Steer, Turn
from ragtrace.errors import ConfigError, InputError
from tests.kept import Keeper

STEPS = st.none() | st.integers(-99, 99) | st.text(max_size=8)
PLACES = st.builds(Place, st.sampled_from(HEADS), st.lists(STEPS, max_size=6).map(tuple))


@given(PLACES)
def test_a_place_is_written_as_it_is_read(place: Place) -> None:
    assert Place.parse(str(place)) == place


@given(PLACES, st.recursive(st.none() | st.text(), lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_no_value_makes_a_place_raise(place: Place, value: object) -> None:
    assert len(place.in_(value)) <= MOST_FOUND


@pytest.mark.parametrize(
    ("place", "value", "found"),
    [
        ("input", "Where?", ["Where?"]),
        ("state.ticket.body", {"ticket": Fields(body="Where?")}, ["Where?"]),
        ("state.messages[-1].content", {"messages": [Turn("user", "One"), Turn("user", "Two")]}, ["Two"]),
        ("output.pages[*].text", {"pages": [{"text": "a"}, {"title": "none"}, {"text": "b"}]}, ["a", "b"]),
        ("output[*].page_content", [Doc("a"), Doc("b")], ["a", "b"]),
        ("output[*].text", (Doc("a"),), ["a"]),
        ("output.keys[*]", {"keys": {"one": "a", "two": "b"}}, ["a", "b"]),
        ("output.pages[*].text", '{"pages": [{"text": "a"}]}', ["a"]),
        ("output.pages[0].text", Turn("tool", '{"pages": [{"text": "a"}]}'), ["a"]),
        ("output.rows", Steer(goto="write", update={"rows": "| a |"}), ["| a |"]),
        ("input.messages[0].content", Prompt([Turn("user", "Where?")]), ["Where?"]),
        ("output.text", Opaque("Answer", "In Oslo."), ["In Oslo."]),
        ('state["my key"]', {"my key": 7}, [7]),
        ("state.rows", {"rows": None}, []),
        ("state.rows[3]", {"rows": ["a"]}, []),
        ("state.rows.text", {"rows": "{not json"}, []),
        ("state[0]", {"0": "a"}, []),
        ("state[*]", "text", []),
    ],
)
def test_what_stands_at_a_place(place: str, value: object, found: list[object]) -> None:
    assert Place.parse(place).in_(value) == found


def test_a_key_that_raises_is_no_place() -> None:
    class Odd:
        def __hash__(self) -> int:
            return hash("rows")

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

    assert Place.parse("state.rows").in_({Odd(): "a"}) == []


def test_at_most_so_many_stand_at_a_place() -> None:
    assert len(Place.parse("output[*][*]").in_([["a"] * 900] * 900)) == MOST_FOUND


def pick(state: object) -> object:
    return state


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"question": "messages[-1]"},
            "question='messages[-1]' begins with none of input, output, state; write 'state.messages[-1]'",
        ),
        ({"answer": "quote"}, "answer='quote' begins with none of input, output, state; write 'output.quote'"),
        ({"question": "what it is"}, "question='what it is' begins with none of input, output, state"),
        (
            {"evidence": {"fetch_page": "output.pages[*"}},
            (
                "evidence: 'fetch_page' = 'output.pages[*': cannot be read from '[*' on; go on with .name, [0], "
                '[-1], [*] or ["my key"]'
            ),
        ),
        (
            {"question": pick},
            "question=pick is a function: a recorded run is read again from a file; name a place",
        ),
        (
            {"evidence": {"kb": pick}},
            "evidence: 'kb' = pick: is a function: a recorded run is read again from a file; name a place",
        ),
        ({"evidence": [pick]}, "evidence: pick is no name; write its name"),
        ({"evidence": "kb"}, "evidence='kb' is no list of names; write evidence=['kb']"),
        ({"evidence": {"kb": 1}}, "evidence: 'kb' = 1: is neither True nor False nor a place in its output"),
        (
            {"evidence": ["messages[-1]"]},
            "evidence: 'messages[-1]' begins with none of input, output, state; write 'state.messages[-1]'",
        ),
        ({"roots": "answer"}, "roots='answer' is no list of names; write roots=['answer']"),
        ({"roots": [""]}, "roots: '' is no name of a tool, a retriever or a function"),
        ({"follows": 0}, "follows=0 is neither True nor False"),
    ],
)
def test_a_wrong_declaration_is_one_line(given: dict, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        Declared.of(**given)
    assert str(error.value) == said


def test_a_declaration_says_what_it_was_given() -> None:
    said = {
        "question": "input.ticket.body",
        "answer": "output.quote",
        "selected": "state.keys.generation",
        "evidence": {"web": True, "think": False, "fetch": "output.pages[*].text", 'state["my rows"]': True},
        "roots": ["answer_chain"],
        "follows": False,
    }
    declared = Declared.of(**said)
    assert declared.said() == said
    assert Declared.of(**declared.said()) == declared
    assert Declared.of() is NOTHING


def test_the_nearest_layer_comes_first_field_by_field_and_name_by_name() -> None:
    run = Declarations()
    run.add(Declared.of(question="input.a", answer="output.a", evidence={"kb": True, "web": True}), "settings")
    run.add(Declared.of(evidence={"kb": False}), "decorator")
    run.add(Declared.of(question="input.b", evidence={"kb": True, "state.rows": "state.rows[*].t"}), "handler")
    assert run.question() == (Place("input", ("b",)), "handler")
    run.ask("Where is the lab?")
    assert run.question() == ("Where is the lab?", "metadata")
    assert run.answer() == (Place("output", ("a",)), "settings")
    assert run.evidence("kb") == (False, "decorator")
    assert run.evidence("web") == (True, "settings")
    assert run.evidence("notes") is None
    assert run.evidence_places() == [(Place.parse("state.rows"), Place.parse("state.rows[*].t"), "handler")]
    assert run.roots() is run.follows() is run.selected() is None


# -- runs --

DECLARED = Declared.of(
    question='state["my question"].body',
    selected="state.messages[-1].content",
    evidence={"fetch_page": "output.pages[*].text", "think": False, "state.hotel_rows": True},
    roots={"answer_chain"},
    follows=False,
)


def recorded_run() -> tuple[Declarations, list[Event]]:
    """Return what a run was told, and its events."""
    recorder = Recorder(Keeper())
    written: list[RecordedRun] = []

    class Events:
        def write(self, run: RecordedRun, redact: object) -> None:
            written.append(run)

    recorder.config = replace(recorder.config, events=Events(), declared=DECLARED)
    run = recorder.start(query="Where?")
    run.declare(Declared.of(evidence=["kb"]), "handler")
    run.declare(Declared.of(evidence=["kb"]), "handler")  # as the next call of a block does
    run.declare_question("Where is Ada's laboratory?")
    run.add(Event("chain", "1", name="answer_chain", data=Began({"my question": Fields(body="Where?")})))
    run.add(Event("search", "2", "1", "kb", data=Sought("Where?")))
    run.add(Event("search", "2", "1", "kb", ended_ns=1, data=[Doc("The lab is in Oslo.")]))
    run.add(Event("chain", "1", name="answer_chain", ended_ns=1, data=Gave("In Oslo.")))
    run.finish()
    return run.declarations, written[0].events


def test_a_file_holds_the_declarations() -> None:
    told, events = recorded_run()
    lines = [head(is_masked=False), *lines_of(RecordedRun("rag", 1, events, ended_ns=2), 1)]
    (read,) = read_runs(lines)
    again = declarations_of(read)
    assert again == told
    assert again.question() == ("Where is Ada's laboratory?", "metadata")
    assert again.evidence("fetch_page") == (Place.parse("output.pages[*].text"), "settings")


def test_a_masked_file_holds_them_with_the_names_of_its_values() -> None:
    _, events = recorded_run()
    masker = Masker()
    lines = [head(is_masked=True), *lines_of(RecordedRun("rag", 1, events, ended_ns=2), 1, masker)]
    assert not [word for word in ("Ada", "laboratory", "hotel") if word in b"".join(lines).decode()]
    (read,) = read_runs(lines)
    again = declarations_of(read)
    question = again.question()
    assert question is not None
    assert question[0] == masker.text("Where is Ada's laboratory?")
    name = masker.name("hotel_rows")
    assert again.evidence_places() == [(Place("state", (name,)), True, "settings")]
    assert again.selected() == (Place.parse("state.messages[-1].content"), "settings")
    value = next(one.data.value for one in read.events if isinstance(one.data, Began))
    asked = Place("state", tuple(masker.name(step) for step in ("my question", "body")))
    assert asked.in_(value) == [masker.text("Where?")]


def declarations_of(read: RecordedRun) -> Declarations:
    """Return what a run that is replayed was told."""
    again = run_again(read)
    assert finished_run(again) is not None
    return again.declarations


@pytest.mark.parametrize("told", ['"how":"loudly"', '"declared":{"question":"here"}', '"declared":{"rank":1}'])
def test_a_broken_declaration_in_a_file_is_named(told: str) -> None:
    first, *_, last = lines_of(RecordedRun("rag", 1, [], ended_ns=2), 1)
    line = f'{{"run":1,"event":{{"kind":"report","name":"declare","data":{{"how":"handler",{told}}}}}}}\n'
    with pytest.raises(InputError, match="3: is no line of recorded events"):
        list(read_runs([head(is_masked=False), first, line.encode(), last]))


FIELDS = (
    "content role calls call_id tool_calls name id artifact text page_content metadata score turns messages update"
)


@pytest.mark.parametrize("name", FIELDS.split())
def test_a_mask_leaves_the_fields_of_messages_and_documents(name: str) -> None:
    assert Masker().name(name) == name


def test_a_run_is_redacted() -> None:
    run = Recorder(Keeper(), redact=lambda text: text.replace("Ada", "[name]")).start()
    run.declare_question("Where is Ada?")
    run.finish()
    assert run.declarations.question() == ("Where is [name]?", "metadata")


# -- names that no run meets --


def turn(recorder: Recorder, declared: Declared, *names: str) -> None:
    run = recorder.start(query="Where?")
    run.declare(declared, "handler")
    run.add(Event("chain", "root", data=Began({"question": "Where?"})))
    for name in names:
        run.add(Event("search", name, "root", name, data=Sought("Where?")))
        run.add(Event("search", name, "root", name, ended_ns=1, data=[Doc("The lab is in Oslo.")]))
    run.add(Event("chain", "root", ended_ns=1, data=Gave("In Oslo.")))
    run.finish()


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_name_that_20_runs_did_not_meet_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(Keeper())
    declared = Declared.of(evidence={"web_serch": True, "think_tool": False, "state.rows": True})
    for number in range(25):
        turn(recorder, declared, "web_search", "think_tool")
        assert len(warned(caplog)) == (number >= 19)
    assert warned(caplog) == ["evidence: `web_serch` was in none of 20 runs; met: web_search, think_tool"]


def test_a_name_that_one_of_20_runs_met_is_right(caplog: pytest.LogCaptureFixture) -> None:
    keeper = Keeper()
    recorder = Recorder(keeper)
    declared = Declared.of(evidence={"rarely": True}, roots={"hardly"})
    for number in range(20):
        turn(recorder, declared, "rarely" if number == 3 else "often")
    assert (keeper.begun, keeper.runs) == (20, [])  # no call has the name of a root
    assert warned(caplog) == ["roots: `hardly` was in none of 20 runs; met: rarely, often"]


def test_a_place_that_was_empty_in_20_runs_is_told(caplog: pytest.LogCaptureFixture) -> None:
    declared = Declared.of(question="input.ticket.bdy", answer="output.text")
    for number in range(20):
        run = Declarations()
        run.add(declared, "settings")
        run.met(["app"], ["body", "text"])
        run.at(Place.parse("input.ticket.bdy"), {"ticket": {"body": "Where?"}})
        run.at(Place.parse("output.text"), {"text": "" if number else "In Oslo."})
        run.conclude(is_kept=True)
    assert warned(caplog) == ["question: `input.ticket.bdy` held nothing in 20 of 20 runs; met: body, text"]


def test_many_names_leave_room_for_those_that_are_declared(caplog: pytest.LogCaptureFixture) -> None:
    declared = Declared.of(evidence=["last", "lost"])
    for number in range(20):
        run = Declarations()
        run.add(declared, "settings")
        run.met(f"tool{number}-{other}" for other in range(200))
        run.met(["last"] if number == 19 else [])
        run.conclude(is_kept=True)
    (line,) = warned(caplog)
    assert line.startswith("evidence: `lost` was in none of 20 runs; met: ")
