"""What a request says of itself through metadata, tags and the handler's arguments."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough, chain
from langgraph.graph import START, MessagesState, StateGraph

from integrations.langchain.tests.parts import Faq, chat, lcel
from ragtrace.capture import Recorder, Retrieval, internal_errors
from ragtrace.model import Labels
from ragtrace_langchain import RagtraceHandler
from tests.kept import step


def test_metadata_and_tags(keeper, config):
    config["metadata"] = {
        "ragtrace.session": "s1",
        "ragtrace.user": 42,
        "ragtrace.workflow": "support",
        "ragtrace.corpus": "faq",
        "ragtrace.corpus_version": "2026-01",
        "ragtrace.reference": "In Oslo.",
        "ragtrace.labels": {"d0": 5, "d1": 1},
        "ragtrace.k": 4,
    }
    config["tags"] = ["beta"]
    lcel().invoke("Where?", config)
    record = keeper.only.record
    assert (record.session, record.user, record.workflow) == ("s1", "42", "support")
    assert (record.corpus, record.corpus_version, record.reference) == ("faq", "2026-01", "In Oslo.")
    assert record.labels == Labels(grades={"d0": 5, "d1": 1})
    assert (record.k, record.tags) == (4, ("beta",))


@pytest.mark.parametrize("key", ["session_id", "conversation_id", "thread_id"])
def test_usual_names(keeper, config, key):
    config["metadata"] = {key: "s9", "user_id": "u9"}
    lcel().invoke("Where?", config)
    assert (keeper.only.record.session, keeper.only.record.user) == ("s9", "u9")


def test_nothing_is_invented(keeper, config):
    lcel().invoke("Where?", config)
    record = keeper.only.record
    assert (record.session, record.user, record.corpus, record.k, record.tags) == (None, None, None, None, ())


def test_handler_arguments_stand_behind_the_request(keeper, recorder):
    handler = RagtraceHandler(recorder, workflow="app", session="s0", corpus="faq", k=3, tags=["prod"])
    config = {"callbacks": [handler], "metadata": {"ragtrace.session": "s1", "ragtrace.workflow": "other"}}
    lcel().invoke("Where?", config)
    record = keeper.only.record
    assert (record.workflow, record.session, record.corpus) == ("other", "s1", "faq")
    assert (record.k, record.tags) == (3, ("prod",))


def test_a_text_is_one_tag(keeper, recorder):
    lcel().invoke(
        "Where?", {"callbacks": [RagtraceHandler(recorder, workflow="app", tags="vip")], "tags": ["beta"]}
    )
    assert (keeper.only.record.workflow, keeper.only.record.tags) == ("app", ("vip", "beta"))


@pytest.mark.usefixtures("loses")
def test_a_k_that_is_none_is_counted(keeper, config):
    before = internal_errors().get("ragtrace.capture.run.set_k", 0)
    config["metadata"] = {"ragtrace.k": "many"}
    lcel().invoke("Where?", config)
    assert (keeper.only.record.k, internal_errors()["ragtrace.capture.run.set_k"]) == (None, before + 1)


def test_workflow_defaults_to_the_name_of_the_root(keeper, config):
    lcel().with_config(run_name="support bot").invoke("Where?", config)
    assert keeper.only.record.workflow == "support bot"


def test_labels_with_their_scale(keeper, config):
    given = {"grades": {"d0": 3}, "universe": "pool", "scale": "umbrela_mapped", "version": 2}
    config["metadata"] = {"ragtrace.labels": given}
    lcel().invoke("Where?", config)
    expected = Labels(grades={"d0": 3}, label_scope="pool", scale="umbrela_mapped", version="2")
    assert keeper.only.record.labels == expected


@pytest.mark.usefixtures("loses")
def test_labels_that_are_none_are_counted(keeper, config):
    before = internal_errors().get("ragtrace.capture.run.set_labels", 0)
    config["metadata"] = {"ragtrace.labels": ["d0"]}
    lcel().invoke("Where?", config)
    assert keeper.only.record.labels is None
    assert internal_errors()["ragtrace.capture.run.set_labels"] == before + 1


def test_a_retriever_names_its_source_and_its_k(keeper, config):
    retriever = Faq(metadata={"ragtrace.source": "faq-index", "ragtrace.top_k": 50})
    retriever.invoke("Where?", config)
    asked = step(keeper.only, Retrieval)
    assert (asked.source, asked.top_k) == ("faq-index", 50)


def test_metadata_that_the_setting_names(keeper):
    handler = RagtraceHandler(Recorder(keeper, span_metadata=["tenant", "plan"]))
    said = {"tenant": "acme", "plan": 3, "secret": "x", "ragtrace.session": "s1"}
    lcel().invoke("Where?", {"callbacks": [handler], "metadata": said, "tags": ["vip"]})
    record = keeper.only.record
    assert (dict(record.metadata), record.session, record.tags) == ({"tenant": "acme", "plan": 3}, "s1", ("vip",))


def graph(name=None):
    built = StateGraph(MessagesState)
    built.add_node("say", lambda state: {"messages": chat().invoke(state["messages"])})
    built.add_edge(START, "say")
    return built.compile(name=name)


def said(question):
    return chat().invoke(question)


NAMES = {
    "rag": [
        lcel,
        lambda: lcel() | RunnableLambda(str.upper),
        lambda: RunnableLambda(lambda question: chat().invoke(question)),
        lambda: RunnableParallel(answer=lcel(), question=RunnablePassthrough()),
        lambda: lcel().with_fallbacks([lcel()]),
        lambda: lcel().with_retry(),
        lambda: RunnableLambda(lambda text: {"messages": [("user", text)]}) | graph(),
    ],
    "desk": [
        lambda: lcel().with_config(run_name="desk"),
        lambda: RunnableLambda(said, name="desk"),
        lambda: lcel().with_config(run_name="desk", tags=["a"]),
    ],
    "said": [lambda: chain(said)],
}


@pytest.mark.parametrize(("name", "made"), [(name, made) for name, forms in NAMES.items() for made in forms])
def test_name_of_a_run(keeper, config, name, made):
    made().invoke("Where?", config)
    assert keeper.only.record.workflow == name


@pytest.mark.parametrize(("name", "shown"), [(None, "rag"), ("desk", "desk")])
def test_name_of_a_graph(keeper, config, name, shown):
    graph(name).invoke({"messages": [("user", "Where?")]}, config)
    assert keeper.only.record.workflow == shown


class Unreadable:
    def __iter__(self):
        raise RuntimeError("iter")

    def __bool__(self):
        raise RuntimeError("bool")


def odd_tags():
    yield "vip"
    raise RuntimeError("next")


@pytest.mark.parametrize(
    ("make", "kept"), [(lambda: 7, ("7",)), (lambda: None, ()), (Unreadable, ()), (odd_tags, ("vip",))]
)
def test_tags_of_any_type_never_raise_and_leave_no_run_open(keeper, recorder, loses, make, kept):
    lcel().invoke("Where?", {"callbacks": [RagtraceHandler(recorder, tags=make())]})
    assert (keeper.only.record.tags, recorder.open_runs) == (kept, 0)
