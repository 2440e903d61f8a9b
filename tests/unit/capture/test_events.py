"""Events that an integration adds are read into question, passages, choices, prompt, answer and outcome.

No framework stands behind them: what they mean is read from the events alone.
"""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from ragtrace.capture import Recorder, internal_errors
from ragtrace.capture.events import Asked, Began, Chosen, Event, Gave, Marked, Said, Sought, shed
from ragtrace.capture.reported import MAX_STEPS
from ragtrace.capture.run_reader import MAX_CHARS, MAX_WAITING
from ragtrace.capture.types import Failure, Rerank, Retrieval
from ragtrace.capture.values import Doc, Turn
from ragtrace.model import Message, Usage
from tests.kept import ANSWER, Keeper, Waiting, ids, kinds, n_unread, scores, step

TEXTS = {name: f"Passage {name} says where the lab number {name} is." for name in "abcd"}


def docs(names, **facts):
    return [Doc(TEXTS[name], name, {"score": 1 - place / 10, **facts}) for place, name in enumerate(names)]


class Story:
    """The events of one run, told in a few words."""

    def __init__(self, keeper=None, **options):
        self.keeper = keeper or Keeper()
        self.run = Recorder(self.keeper, **options).start(workflow="w")
        self._ids = count(1)
        self._ns = count(1_000, 1_000)
        self.root = self.begins("chain", Began({"question": "Where is the lab?"}), "request", parent="")

    def begins(self, kind, data, name="", parent=None):
        above = self.root.id if parent is None else parent
        event = Event(kind, str(next(self._ids)), above, name or kind, next(self._ns), None, data)
        self.run.add(event)
        return event

    def ends(self, event, data, error=None):
        self.run.add(replace(event, ended_ns=next(self._ns), data=data, error=error))

    def finds(self, names, name="faq"):
        found = docs(names)
        self.ends(self.begins("search", Sought("lab"), name), found)
        return found

    def step(self, given, out, name="filter"):
        self.ends(self.begins("chain", Began(given), name), Gave(out))

    def asks(self, prompt, reply=ANSWER, **facts):
        call = self.begins("model", Asked([Turn("user", prompt)], model="m"))
        self.ends(call, Said([Turn("assistant", reply)], usage=Usage(input_tokens=7, output_tokens=2), **facts))

    def ended(self, out=None):
        self.ends(self.root, Gave({"answer": ANSWER} if out is None else out))
        self.run.finish()
        return self.keeper.only


class InParts(Waiting):
    """Notes the parts of open runs, and has them taken when it is told to, as the pipeline's thread does."""

    def __init__(self):
        super().__init__()
        self.parts = []

    def on_part(self, root, run):
        self.parts.append(run)
        return True

    def take(self):
        while self.parts:
            self.parts.pop(0).take_part()


def shown(found):
    return "\n".join(doc.text for doc in found)


def test_a_search_a_prompt_and_an_answer():
    told = Story()
    told.asks(f"{shown(told.finds('abc'))}\nWhere is the lab?")
    run = told.ended()
    assert (run.record.query, run.record.answer, run.record.outcome) == ("Where is the lab?", ANSWER, "answered")
    assert (ids(run, "retrieved"), run.prompt_ids) == (["a", "b", "c"], ("a", "b", "c"))
    assert (kinds(run), run.record.usage.input_tokens) == (["retrieval", "chat"], 7)


def test_a_step_that_gives_out_fewer_documents_chose_among_them():
    told = Story()
    found = told.finds("abcd")
    told.step(found, [found[2], found[0]])
    told.asks(shown([found[2], found[0]]))
    run = told.ended()
    assert (ids(run, "retrieved"), ids(run, "reranked")) == (["a", "b", "c", "d"], ["c", "a"])
    assert run.record.selection_source == "chain"


def test_a_list_that_is_handed_on_is_no_choice():
    told = Story()
    found = told.finds("abc")
    told.step({"docs": found, "question": "?"}, {"docs": found, "grade": "yes"})
    told.asks(shown(found))
    assert not ids(told.ended(), "reranked")


def test_a_reranker_that_is_told_of_by_itself():
    told = Story()
    found = told.finds("abc")
    out = [Doc(found[1].text, "b", {}, 0.75), Doc(found[0].text, "a", {}, 0.5)]
    event = Event("choice", "9", told.root.id, "cross", 5_000, 6_000, Chosen(found, out, "cross", 2, "framework"))
    told.run.add(event)
    told.asks(shown(out))
    run = told.ended()
    assert (ids(run, "reranked"), scores(run, "reranked")) == (["b", "a"], [0.75, 0.5])
    assert (run.record.selection_source, step(run, Rerank).model) == ("framework", "cross")


def test_a_search_inside_a_search_is_one_pool():
    told = Story()
    outer = told.begins("search", Sought("lab"), "ensemble")
    for names in ("ab", "cd"):
        inner = told.begins("search", Sought("lab"), names, parent=outer.id)
        told.ends(inner, docs(names))
    told.ends(outer, docs("cadb"))
    told.asks(shown(docs("cadb")))
    assert ids(told.ended(), "retrieved") == ["c", "a", "d", "b"]


def test_a_tool_s_text_is_evidence_and_the_model_s_own_words_are_none():
    told = Story()
    call = {"name": "note", "args": {"text": "The lab moved to Rome last year."}, "id": "1"}
    model = told.begins("model", Asked([Turn("user", "Where is the lab?")], model="m"))
    told.ends(model, Said([Turn("assistant", "", [call])]))
    texts = {"note": "Noted: The lab moved to Rome last year.", "search": "The lab stands at the harbour of Oslo."}
    turns = []
    for name, text in texts.items():
        tool = told.begins("tool", Began(call["args"] if name == "note" else {"q": "lab"}, call_id=name), name)
        turns.append(Turn("tool", text, call_id=name))
        told.ends(tool, Gave(turns[-1]))
    model = told.begins("model", Asked([Turn("user", "Where is the lab?"), *turns], model="m"))
    told.ends(model, Said([Turn("assistant", ANSWER)]))
    run = told.ended({"messages": [Turn("user", "Where is the lab?"), Turn("assistant", ANSWER)]})
    assert [passage.text for passage in run.record.contexts] == [texts["search"]]


def test_a_tool_with_an_empty_artifact_is_an_empty_search():
    told = Story()
    call = {"name": "search", "args": {"q": "lab"}, "id": "1"}
    model = told.begins("model", Asked([Turn("user", "Where is the lab?")], model="m"))
    told.ends(model, Said([Turn("assistant", "", [call])]))
    tool = told.begins("tool", Began(call["args"], call_id="1"), "search")
    told.ends(tool, Gave(Turn("tool", "", call_id="1", artifact=[])))
    run = told.ended({"messages": [Turn("user", "Where is the lab?"), Turn("assistant", ANSWER)]})
    assert (step(run, Retrieval).source, run.record.contexts) == ("search", ())


def test_documents_that_the_application_names():
    told = Story()
    marked = Event("mark", "", told.root.id, "", 1, 1, Marked(docs("abc"), is_choice=False, source="files"))
    told.run.add(marked)
    told.run.add(replace(marked, data=Marked(docs("cb"), is_choice=True)))
    told.asks(shown(docs("cb")))
    run = told.ended()
    assert (ids(run, "retrieved"), ids(run, "reranked")) == (["a", "b", "c"], ["c", "b"])
    assert run.record.selection_source == "explicit"


def test_a_step_that_is_told_of_once():
    told = Story()
    told.run.add(Event("search", "7", told.root.id, "faq", 2_000, 3_000, docs("ab")))
    told.asks(shown(docs("ab")))
    run = told.ended()
    assert (ids(run, "retrieved"), step(run, Retrieval).source) == (["a", "b"], "faq")


def test_a_person_is_waited_for():
    told = Story()
    told.asks("Where?", "May I look it up?")
    told.ends(told.root, Gave(asks="May I look it up?", is_steered=True))
    told.run.finish()
    record = told.keeper.only.record
    assert (record.outcome, record.interrupt) == ("interrupted", "May I look it up?")


def test_a_search_that_failed_and_the_error_of_the_run():
    told = Story()
    failure = Failure(kind="LookupError", message="no index")
    told.ends(told.begins("search", Sought("lab"), "faq"), Gave(), failure)
    told.ends(told.root, Gave(), failure)
    told.run.failed(failure)
    told.run.finish("error")
    run = told.keeper.only
    assert (run.record.outcome, run.failure, step(run, Retrieval).failure) == ("error", failure, failure)


def test_events_are_read_once_the_run_has_ended_and_show_what_was():
    told = Story(Waiting())
    found = told.finds("ab")
    told.asks(shown(found))
    assert told.run.steps == []
    told.ends(told.root, Gave({"answer": ANSWER}))
    told.run.finish()
    told.keeper.process()
    assert ids(told.keeper.only, "retrieved") == ["a", "b"]


def test_an_endless_run_is_handed_over_in_parts():
    keeper = InParts()
    told = Story(keeper)
    while not told.run.steps:
        told.finds("ab")
        assert not keeper.parts or told.run.steps == [], "nothing is read where it is added"
        if len(keeper.parts) == 2:
            keeper.take()
        assert n_unread(told.run) < MAX_WAITING + 512
    assert len(told.run.steps) == MAX_STEPS


def test_an_event_that_cannot_be_read_is_counted_and_the_others_are_read():
    told = Story()
    before = sum(internal_errors().values())
    told.run.add(Event("no such kind", "x"))
    told.run.add(replace(told.begins("search", Sought("lab"), "faq"), ended_ns=2_000, data=3))
    told.asks(shown(told.finds("ab")))
    run = told.ended()
    assert (ids(run, "retrieved"), run.record.answer) == (["a", "b"], ANSWER)
    assert sum(internal_errors().values()) > before


def test_texts_are_redacted_before_anything_is_kept():
    told = Story(Waiting(), redact=lambda text: text.replace("Ada", "[name]"))
    told.ends(told.begins("search", Sought("Ada?"), "faq"), [Doc("Ada lives in Oslo.", "a")])
    told.asks("Use: Ada lives in Oslo.", "Ada does.")
    told.ends(told.root, Gave({"answer": "Ada does."}))
    assert "Ada" not in repr(told.run._waiting)
    told.run.finish()
    told.keeper.process()
    assert "Ada" not in repr(told.keeper.only)


@pytest.mark.parametrize("kind", ["chain", "tool", "search", "model", "mark", "choice", "end"])
def test_an_event_that_makes_no_sense_is_a_loss_and_the_next_is_read(kind):
    told = Story()
    told.run.add(Event(kind, "x", "nobody", data=object(), ended_ns=None if kind in {"chain", "tool"} else 1))
    found = told.finds("ab")
    told.asks(shown(found))
    if kind != "end":  # what comes behind the end is of no run
        assert told.ended().record.answer == ANSWER


def test_a_key_that_cannot_be_compared_costs_nothing_where_texts_are_redacted():
    class Key:
        def __hash__(self):
            return hash("id")

        def __eq__(self, other):
            raise RuntimeError("no")

    told = Story(redact=lambda text: text.replace("Ada", "[name]"))
    found = told.finds("ab")
    told.step({"docs": found, Key(): "Ada"}, {"docs": found[:1]})
    told.asks(found[0].text)
    assert ids(told.ended(), "reranked") == ["a"]


class TestRoom:
    """Beyond 4 Mi characters the oldest prompts lose their texts, then the passages of the lowest ranks."""

    def test_a_text_counts_once(self):
        text = "x" * 1_000
        turn = Turn("user", text)
        events = [Event("model", str(n), data=Asked([turn, Turn("user", text)])) for n in range(5)]
        assert shed(events, 2_000).chars == 1_000

    def test_the_oldest_prompts_go_first(self):
        turns = [Turn("user", str(n) * 1_000) for n in range(4)]
        events = [Event("model", str(n), data=Asked([turn])) for n, turn in enumerate(turns)]
        assert shed(events, 2_500) == (2_000, 2, 0)
        assert [turn.content[:1] for turn in turns] == ["", "", "2", "3"]

    def test_what_the_last_prompt_shows_stays(self):
        history = [Turn("user", str(n) * 1_000) for n in range(4)]
        events = [Event("model", str(n), data=Asked(history[: n + 1])) for n in range(4)]
        assert shed(events, 1_000).prompts == 0
        assert all(turn.content for turn in history)

    def test_then_the_lowest_ranks_lose_their_texts_and_keep_their_ids(self):
        found = [Doc(str(n) * 1_000, None if n == 3 else f"d{n}") for n in range(4)]
        events = [
            Event("search", "1", ended_ns=1, data=found),
            Event("model", "2", data=Asked([Turn("user", "?")])),
        ]
        assert shed(events, 2_500) == (2_000, 0, 2)
        assert [(doc.lost, bool(doc.text), bool(doc.id)) for doc in found] == [
            (0, True, True),
            (0, True, True),
            (1_000, False, True),
            (1_000, False, True),
        ]

    def test_a_run_keeps_counts_ids_and_the_answer_and_says_what_it_lost(self):
        told = Story(Waiting())
        found = [Doc(f"{n:03d} " * 75_000, f"d{n}") for n in range(20)]  # 6 million characters
        search = told.begins("search", Sought("lab"), "faq")
        told.run.add(replace(search, ended_ns=2_000, data=found), chars=sum(len(doc.text) for doc in found))
        told.run.take_part()
        assert told.run.size_chars <= MAX_CHARS
        told.asks(found[0].text)
        told.ends(told.root, Gave({"answer": ANSWER}))
        told.run.finish()
        told.keeper.process()
        record = told.keeper.only.record
        assert (record.answer, len(record.pool("retrieved"))) == (ANSWER, 20)
        assert record.lossy["passage_texts"] >= 6
        assert record.lossy["contexts_truncated"]

    def test_an_old_prompt_that_is_lost_makes_contexts_uncertain(self):
        told = Story()
        found = told.finds("ab")
        for n in range(6):
            prompt = f"{n}" * 1_000_000
            call = told.begins("model", Asked([Turn("user", prompt)], model="m"))
            told.run.add(
                replace(call, ended_ns=call.started_ns, data=Said([Turn("assistant", f"{n}")])), chars=1_000_000
            )
        told.asks(shown(found))
        record = told.ended().record
        assert record.lossy["prompts"] == 2
        assert record.lossy["contexts_truncated"]

    def test_two_thousand_steps_keep_what_was_searched_and_the_last_prompt(self):
        told = Story()
        for number in range(1_000):
            call = told.begins("tool", Began({"n": number}), "add")
            told.ends(call, Gave(number))
            told.asks(f"Think about {number}.", f"Hm, {number}.")
        found = told.finds("abcd")
        told.asks(shown(found[:2]))
        run = told.ended()
        assert (ids(run, "retrieved"), run.prompt_ids) == (["a", "b", "c", "d"], ("a", "b"))
        assert (len(run.steps), run.record.lossy["steps"]) == (256, 2_002 - 256)
        assert run.steps[-1].outputs[0].content == ANSWER


class TestReports:
    """What an application reports by hand waits as the events of a framework do."""

    def test_nothing_is_read_before_the_run_has_ended(self):
        keeper = Waiting()
        run = Recorder(keeper).start(query="Where is the lab?")
        run.retrieved([{"id": "a", "text": "The lab is in Oslo."}])
        run.answered("In Oslo.")
        assert (run.steps, run.attributes.get("query")) == ([], None)
        assert [event.name for event, _ in run._waiting] == ["set_query", "retrieved", "answered"]
        run.finish()
        keeper.process()
        record = keeper.only.record
        assert (record.query, record.answer, ids(keeper.only, "retrieved")) == (
            "Where is the lab?",
            "In Oslo.",
            ["a"],
        )

    def test_they_are_read_in_their_place_among_the_others(self):
        told = Story()
        told.run.retrieved([{"id": "x", "text": "The office is in Bergen."}])
        found = told.finds("ab")
        told.run.reranked([{"id": "b", "text": found[1].text}])
        told.asks(found[1].text)
        run = told.ended()
        assert [type(step).__name__ for step in run.steps] == ["Retrieval", "Retrieval", "Rerank", "Generation"]
        assert [passage.id for passage in run.steps[2].candidates] == ["x", "a", "b"]

    def test_what_the_application_changes_later_stays_as_it_was(self):
        keeper = Waiting()
        found = [{"id": "a", "text": "The lab is in Oslo.", "metadata": {"page": 1}}]
        with Recorder(keeper).start(query="Where?") as run:
            run.retrieved(found)
            found[0]["text"] = found[0]["metadata"]["page"] = "changed"
            run.labels(grades := {"a": 5})
            grades["a"] = 1
        keeper.process()
        record = keeper.only.record
        assert record.contexts[0].text == "The lab is in Oslo."
        assert (record.contexts[0].metadata, record.labels.grades) == ({"page": 1}, {"a": 5})

    @pytest.mark.parametrize(
        "report",
        [
            lambda run, text: run.retrieved([{"id": text[:3], "text": text}]),
            lambda run, text: run.reranked([], candidates=[{"id": text[:3], "text": text}]),
            lambda run, text: run.add_selected([{"id": text[:3], "text": text}]),
            lambda run, text: run.set_candidates([{"id": text[:3], "text": text}]),
            lambda run, text: run.used([text]),
            lambda run, text: run.add_prompt(text),
            lambda run, text: run.generated(outputs=[Message(role="assistant", content=text)]),
            lambda run, text: run.tool_called("read", result=text),
            lambda run, text: run.add_text(text),
            lambda run, text: run.answered(text),
        ],
    )
    def test_those_that_find_no_room_are_read_before_the_end(self, report):
        keeper = InParts()
        run = Recorder(keeper).start(query="Where?")
        limit = MAX_CHARS // 30_000
        for n in range(limit + 5):
            report(run, f"{n:03d} " * 7_500)
        assert "query" not in run.attributes
        keeper.take()
        assert n_unread(run) < limit
        assert "query" in run.attributes

    def test_what_is_reported_beyond_the_room_is_as_it_was(self):
        keeper = Waiting()
        run = Recorder(keeper).start(query="Where?")
        run.retrieved([{"id": "a", "text": TEXTS["a"]}, {"id": "b", "text": TEXTS["b"]}])
        run.add_prompt(f"Use: {TEXTS['a']}")
        for n in range(150):
            run.tool_called("read", result=f"{n} " * 12_000)
        run.used([TEXTS["a"]])
        run.answered(ANSWER)
        run.finish()
        keeper.process()
        assert (ids(keeper.only, "retrieved"), ids(keeper.only, "used")) == (["a", "b"], ["a"])
        assert keeper.only.record.lossy == {}

    def test_large_reports_take_no_text_out_of_what_a_framework_found(self):
        told = Story()
        found = told.finds("ab")
        for n in range(150):
            told.run.tool_called("read", result=f"{n} " * 12_000)
        told.asks(shown(found[:1]))
        run = told.ended()
        assert (ids(run, "retrieved"), ids(run, "used")) == (["a", "b"], ["a"])
        assert [passage.text for passage in run.record.pool("retrieved")] == [TEXTS["a"], TEXTS["b"]]

    def test_what_cannot_be_read_beside_an_answer_leaves_it(self):
        for parts in (["In Oslo."], 5, [{"text": "In Oslo.", "citations": None}]):
            keeper = Waiting()
            with Recorder(keeper).start(query="Where?") as run:
                run.answered("In Oslo.", model="m", parts=parts)
            keeper.process()
            assert (keeper.only.record.answer, keeper.only.record.model) == ("In Oslo.", "m")

    def test_an_answer_that_is_lost_is_one_of_the_workflow_that_was_named(self):
        keeper = Waiting()
        recorder = Recorder(keeper)
        with recorder.start(query="Where?") as run:
            run.set_attributes(workflow="chat")
            run.answered(object())
        for workflow in ("chat", "rag"):
            with recorder.start(query="Where?", workflow=workflow) as run:
                run.retrieved([])
                run.expects_no_answer(is_of_application=True)
        keeper.process()
        assert [one.record.is_answer_expected for one in keeper.runs] == [True, True, False]

    def test_the_corpus_of_the_settings_is_said(self):
        recorder = Recorder(Waiting())
        recorder.config = replace(recorder.config, corpus="conf")
        assert recorder.start().said["corpus"] == "conf"
