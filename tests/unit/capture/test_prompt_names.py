"""Name and version of the prompt behind an answer: by hand, from frameworks, on spans, points and in the store."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer

from integrations.llamaindex.tests.parts import Faq, Llm
from ragtrace.capture import Recorder
from ragtrace.model import RagRecord, record_from_json, record_to_json
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler
from ragtrace_llamaindex import instrument, request, uninstrument
from tests.unit.telemetry.runs import Taken


def record_of(report, **facts):
    taken = Taken()
    run = Recorder(taken).start(query="q", **facts)
    report(run)
    run.finish()
    return taken.runs[0][1].record


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("support", ("support", None)),
        ("support:3", ("support", "3")),
        ("team/support:a:3", ("team/support:a", "3")),
        ("support:", ("support:", None)),
        (":3", (":3", None)),
        (7, ("7", None)),
        (SimpleNamespace(), ("namespace()", None)),
    ],
    ids=repr,
)
def test_by_hand(given, found):
    record = record_of(lambda run: None, prompt=given)
    assert (record.prompt_name, record.prompt_version) == found


def test_a_version_of_its_own_leaves_the_name_whole_and_goes_with_its_prompt():
    record = record_of(lambda run: run.set_attributes(prompt="a:b", prompt_version="3"))
    assert (record.prompt_name, record.prompt_version, record.prompt) == ("a:b", "3", "a:b:3")
    record = record_of(lambda run: run.set_attributes(prompt="other"), prompt="support:3")
    assert (record.prompt_name, record.prompt_version) == ("other", None)
    assert record_of(lambda run: run.set_attributes(prompt_version="3")).prompt is None


def test_what_a_framework_tells_gives_way_to_the_application():
    def report(run):
        run.prompted("rewrite", "1")
        run.prompted("answer", "2")

    assert record_of(report).prompt == "answer:2"
    assert record_of(report, prompt="mine:9").prompt == "mine:9"


def test_lines_have_it_and_old_ones_do_not():
    record = RagRecord(id="1", prompt_name="support", prompt_version="3")
    line = record_to_json(record)
    assert (line["prompt_name"], line["prompt_version"]) == ("support", "3")
    assert record_from_json(line, fallback_id="2") == record
    assert record_from_json({"query": "q"}, fallback_id="2").prompt is None


HUB = {"lc_hub_owner": "team", "lc_hub_repo": "support", "lc_hub_commit_hash": "0a1b2c"}


@pytest.mark.parametrize(
    ("metadata", "prompt"), [({}, "team/support:0a1b2c"), ({"ragtrace.prompt": "mine:9"}, "mine:9")]
)
def test_of_langchain_s_hub(metadata, prompt):
    kept = Recording()
    template = ChatPromptTemplate.from_template("Answer {question}")
    template.metadata = HUB
    chain = template | FakeListChatModel(responses=["In Oslo."])
    chain.invoke({"question": "Where?"}, {"callbacks": [RagtraceHandler(kept.recorder)], "metadata": metadata})
    assert kept.only.record.prompt == prompt
    (root,) = kept.spans_of("invoke_workflow")
    assert root.attributes["gen_ai.prompt.name"] == prompt.partition(":")[0]
    assert root.attributes["gen_ai.prompt.version"] == prompt.partition(":")[2]


@pytest.mark.parametrize(("own", "prompt"), [(None, "support:3"), ("mine:9", "mine:9")])
def test_of_llamaindex_s_templates(own, prompt):
    kept = Recording()
    named = {"prompt_name": "support", "prompt_version": 3}
    template = PromptTemplate("Answer {query_str} from {context_str}", metadata=named)
    synthesizer = get_response_synthesizer(llm=Llm(), text_qa_template=template)
    instrument(kept.recorder)
    try:
        with request(prompt=own):
            RetrieverQueryEngine(retriever=Faq(), response_synthesizer=synthesizer).query("Where?")
    finally:
        uninstrument()
    assert kept.only.record.prompt == prompt
