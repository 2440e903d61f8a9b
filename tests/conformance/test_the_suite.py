"""The suite sees what it is for: an integration with a planted defect fails, and at the right test."""

from __future__ import annotations

import dataclasses
import re

import pytest
from msgspec.structs import replace

from ragtrace.capture import Run, record_internal_error
from ragtrace.testing.comparing import differences, facts_of
from ragtrace.testing.conformance import IntegrationConformance
from ragtrace.testing.plan import expected_record, plan_of
from tests.conformance.manual import ManualApplication

TESTS = [name for name in vars(IntegrationConformance) if name.startswith("test_")]


def failed(kind, names):
    """Return those of the suite's tests that an application fails."""
    seen = set()
    for name in names:
        try:
            getattr(kind(), name)()
        except AssertionError:
            seen.add(name)
    return seen


def swapped(monkeypatch, name, change):
    whole = getattr(Run, name)
    monkeypatch.setattr(Run, name, lambda self, *args, **kwargs: whole(self, *change(self, args), **kwargs))


def rows(args, change):
    passages, *rest = args
    return ([change(dict(one)) for one in passages or ()], *rest)


# What an integration may get wrong, and a test of the suite that must see it.
DEFECTS = {
    "the reranker's scores are lost": (
        "reranked", lambda run, args: rows(args, lambda one: {**one, "score": None}), "test_pool_selection_and_prompt",
    ),
    "the retriever's scores are lost": (
        "retrieved", lambda run, args: rows(args, lambda one: {**one, "score": None}), "test_no_reranker",
    ),
    "ids are lost": (
        "retrieved", lambda run, args: rows(args, lambda one: {**one, "id": None}), "test_duplicate_ids",
    ),
    "the pool ends after 128": (
        "retrieved", lambda run, args: ((args[0] or [])[:128],), "test_a_thousand_documents",
    ),
    "the pool ends after 99": ("retrieved", lambda run, args: ((args[0] or [])[:99],), "test_a_hundred_documents"),
    "a prompt is not looked at": ("add_prompt", lambda run, args: ("",), "test_a_prompt_that_cuts_its_passages"),
    "the answer is its last piece": (
        "answered", lambda run, args: (args[0].split(" ")[-1],), "test_a_stream_that_is_read",
    ),
    "text goes around redaction": (
        "set_query", lambda run, args: (run.attributes.update(reference="Ada Lovelace") or args[0],),
        "test_redaction_comes_before_anything_is_kept",
    ),
    "names hold texts": (
        "set_attributes", lambda run, args: run.attributes.update(workflow=run.attributes.get("query")) or (),
        "test_what_the_request_says",
    ),
    "something is lost": ("set_query", lambda run, args: record_internal_error("planted") or args, "test_async"),
}  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_seen(monkeypatch, defect):
    method, change, test = DEFECTS[defect]
    assert failed(ManualApplication, [test]) == set()
    swapped(monkeypatch, method, change)
    assert failed(ManualApplication, [test]) == {test}


class _Mixing(ManualApplication):
    """Every run is that of the first plan."""

    def batch(self, plans, recorder):
        for _ in plans:
            self.ask(plans[0], recorder)
        return [plan.answer for plan in plans]

    async def aask(self, plan, recorder):
        return self.ask(dataclasses.replace(plan, question="Question 0?"), recorder)


class _Leaking(ManualApplication):
    """Failures and abandoned streams leave their run open."""

    def ask(self, plan, recorder):
        run = recorder.start(query=plan.question)
        answer = plan.said()
        run.finish()
        return answer

    def stream(self, plan, recorder):
        recorder.start(query=plan.question)
        yield from plan.pieces()


class _Swallowing(ManualApplication):
    """The application does not see its own errors."""

    def ask(self, plan, recorder):
        try:
            return super().ask(plan, recorder)
        except Exception as error:
            return repr(error)


class _Remembering(ManualApplication):
    def held(self, recorder):
        return 1


@pytest.mark.parametrize(
    ("kind", "tests"),
    [
        (_Mixing, {"test_a_batch_of_three", "test_many_tasks_at_once"}),
        (_Leaking, {"test_the_model_fails", "test_a_stream_that_is_left_half_read", "test_a_stream_that_breaks"}),
        (_Swallowing, {"test_the_retriever_fails", "test_the_reranker_fails", "test_the_model_fails"}),
        (_Remembering, set(TESTS)),
    ],
)
def test_a_defective_integration_is_seen(kind, tests):
    assert failed(kind, tests) == tests


def test_texts_on_spans_are_seen_in_content_mode_none(monkeypatch):
    from ragtrace.testing import recording

    whole = recording.SpanWriter
    monkeypatch.setattr(recording, "SpanWriter", lambda tracer, content: whole(tracer, content="full"))
    test = "test_content_none_writes_no_text"
    assert failed(ManualApplication, [test]) == {test}


def test_what_is_lacking_is_a_skip_with_its_reason():
    import unittest

    class Without(ManualApplication):
        lacks = {"reranker": "there is none", "stream": "answers come in one", "block": "it opens its own run"}  # noqa: RUF012 - as an author writes it

    with pytest.raises(unittest.SkipTest, match=re.escape("stream: answers come in one")):
        Without().test_a_stream_that_breaks()
    with pytest.raises(unittest.SkipTest, match="there is none"):
        Without().test_pool_selection_and_prompt()
    Without().test_a_hundred_documents()


def test_every_fact_of_a_record_is_compared():
    record = expected_record(plan_of(3, choice=((2, 0.9),)), "chain")
    changed = {
        "query": "x", "answer": "x", "user": "u", "session": "s", "tags": ("t",), "k": 9, "outcome": "error",
        "lossy": {"x": 1}, "reference": "x", "model": None, "usage": None, "workflow": "x", "pools": (),
    }  # fmt: skip
    for name, value in changed.items():
        assert differences(replace(record, **{name: value}), record), name
    for field in ("text", "score", "rank", "source", "metadata", "truncated", "id"):
        assert f"reranked[1].{field}" in facts_of(record)
        assert f"reranked[1].{field}" not in facts_of(record, {f"passage.{field}"})


def test_an_import_of_the_suite_needs_no_pytest():
    import subprocess
    import sys

    code = "import sys, ragtrace.testing.conformance; print(sorted({'pytest', '_pytest'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
