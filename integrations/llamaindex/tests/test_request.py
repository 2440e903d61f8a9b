"""What a request says of itself, and what `instrument` says where it does not."""

from __future__ import annotations

import asyncio

import pytest
from llama_index_instrumentation.dispatcher import instrument_tags

from integrations.llamaindex.tests.parts import engine
from ragtrace.capture import Recorder, internal_errors
from ragtrace.model import Labels
from ragtrace_llamaindex import instrument, request


def test_all_of_it(keeper):
    with request(
        workflow="support",
        session="s1",
        user="u1",
        corpus="faq",
        corpus_version="2026-01",
        reference="In Oslo.",
        labels={"d0": 5, "d1": 1},
        k=4,
        tags=["beta"],
    ):
        engine().query("Where?")
    record = keeper.only.record
    assert (record.workflow, record.session, record.user) == ("support", "s1", "u1")
    assert (record.corpus, record.corpus_version, record.reference) == ("faq", "2026-01", "In Oslo.")
    assert (record.labels, record.k, record.tags) == (Labels(grades={"d0": 5, "d1": 1}), 4, ("beta",))


def test_metadata_and_the_framework_s_tags(keeper):
    recorder = Recorder(keeper, span_metadata=["tenant", "plan", "stage"])
    instrument(recorder)
    with (
        instrument_tags({"tenant": "t-1", "plan": "free", "tags": ["beta"]}),
        request(metadata={"plan": "gold", "secret": 1}, tags="a"),
        request(metadata={"stage": 2}),
    ):
        engine().query("Where?")
    record = keeper.only.record
    assert record.metadata == {"tenant": "t-1", "plan": "gold", "stage": 2}
    assert record.tags == ("beta", "a")
    assert recorder.open_runs == 0


def test_nothing_is_invented(keeper):
    engine().query("Where?")
    record = keeper.only.record
    assert (record.session, record.user, record.corpus, record.k, record.tags) == (None, None, None, None, ())
    assert record.workflow == "RetrieverQueryEngine"


def test_the_arguments_of_instrument_stand_behind_the_request(keeper, recorder):
    instrument(recorder, workflow="app", session="s0", corpus="faq", k=3, tags=["prod"])
    with request(session="s1", tags=["beta"]):
        engine().query("Where?")
    record = keeper.only.record
    assert (record.workflow, record.session, record.corpus, record.k) == ("app", "s1", "faq", 3)
    assert record.tags == ("prod", "beta")


def test_the_workflow_of_the_request_comes_first_as_all_it_says(keeper, recorder):
    instrument(recorder, workflow="app", tags="prod")
    with request(workflow="support"):
        engine().query("Where?")
    assert (keeper.only.record.workflow, keeper.only.record.tags) == ("support", ("prod",))


def test_a_block_inside_another_adds_to_it(keeper):
    with request(session="s1", user="u1", tags="a"), request(session="s2", tags="b"):
        engine().query("Where?")
    record = keeper.only.record
    assert (record.session, record.user, record.tags) == ("s2", "u1", ("a", "b"))


async def test_it_goes_along_into_tasks(keeper):
    async def ask(number):
        with request(session=f"s{number}"):
            await asyncio.gather(*(engine().aquery(f"{number}?") for _ in range(2)))

    await asyncio.gather(*(ask(number) for number in range(8)))
    assert len(keeper.runs) == 16
    assert all(run.record.session == f"s{run.record.query[:-1]}" for run in keeper.runs)


def test_a_stream_read_outside_the_block_keeps_it(keeper):
    with request(session="s1"):
        response = engine(streaming=True).query("Where?")
    str(response)
    assert keeper.only.record.session == "s1"


def test_labels_with_their_scale(keeper):
    given = {"grades": {"d0": 3}, "universe": "pool", "scale": "umbrela_mapped", "version": 2}
    with request(labels=given):
        engine().query("Where?")
    expected = Labels(grades={"d0": 3}, label_scope="pool", scale="umbrela_mapped", version="2")
    assert keeper.only.record.labels == expected


@pytest.mark.usefixtures("loses")
def test_labels_that_are_none_are_counted(keeper):
    before = internal_errors().get("ragtrace.capture.run.set_labels", 0)
    with request(labels=["d0"]):
        engine().query("Where?")
    assert keeper.only.record.labels is None
    assert internal_errors()["ragtrace.capture.run.set_labels"] == before + 1


class Unreadable:
    def __iter__(self):
        raise RuntimeError("iter")

    def __bool__(self):
        raise RuntimeError("bool")


@pytest.mark.parametrize(("tags", "kept"), [(7, ("7",)), (None, ()), (Unreadable(), ()), (b"vip", ("vip",))])
def test_tags_of_any_type_never_raise_and_leave_no_run_open(keeper, recorder, loses, tags, kept):
    instrument(recorder, tags=tags)
    with request(tags=tags):
        engine().query("Where?")
    assert (keeper.only.record.tags, recorder.open_runs) == (kept, 0)
