"""The plugin in pytest runs of its own: found by name, costs nothing unused, and reports figures."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from importlib.metadata import entry_points

import pytest

pytest_plugins = ("pytester",)

CHECK = """
ROWS = [{"query": "Where?", "answer": "The lab is in Oslo.", "contexts": ["The lab is in Oslo."]}]

def test_good(ragtrace_eval):
    ragtrace_eval(ROWS, metrics=["faithfulness"]).check(faithfulness=0.8)

def test_bad(ragtrace_eval):
    bad = [{**ROWS[0], "answer": "The lab is in Rome."}]
    ragtrace_eval(bad, metrics=["faithfulness"]).check(faithfulness=0.8)
"""
UNUSED = """
import sys

def test_nothing_heavy_came_with_the_plugin():
    assert "ragtrace.testing.pytest_plugin" in sys.modules
    assert not {"numpy", "pydantic", "openai", "opentelemetry.sdk", "rich", "typer"} & sys.modules.keys()
"""
CHAIN = """
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from ragtrace_langchain import RagtraceHandler

class Faq(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content="Refunds take 5 days.")]

def app(question):
    prompt = ChatPromptTemplate.from_template("Answer from {context}: {question}")
    model = FakeListChatModel(responses=["Refunds take 5 days. A fee of 40 euros applies."])
    chain = {"context": Faq() | (lambda docs: docs[0].page_content), "question": RunnablePassthrough()} | prompt | model
    return chain.invoke(question, config={"callbacks": [RagtraceHandler()]})

def test_chain(ragtrace_eval):
    found = ragtrace_eval(app, ["How long does a refund take?", "When is my refund here?"], metrics="faithfulness")
    assert [answer.record.contexts[0].text for answer in found.answers] == ["Refunds take 5 days."] * 2
    found.check(faithfulness=0.8)
"""


def test_pytest_finds_the_fixture_by_the_entry_point(pytester: pytest.Pytester) -> None:
    assert [entry.value for entry in entry_points(group="pytest11", name="ragtrace")] == [
        "ragtrace.testing.pytest_plugin"
    ]
    pytester.makepyfile(CHECK)
    result = pytester.runpytest("--junitxml=out.xml", "-p", "no:asyncio")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E       AssertionError: faithfulness: the mean is below 0.8*",
            "E       mean 0.165, 95 % interval 0.000 to 1.000, n = 1, judge overlap *",
            "E             answer   The lab is in Rome. [[]bad claim 1]",
            "*ragtrace scores*",
            "*::test_good: faithfulness mean 1.000, *, least 0.8",
        ]
    )
    found = ET.parse(pytester.path / "out.xml").findall(".//property[@name='ragtrace']")  # noqa: S314 - our own file
    assert len(found) == 2


@pytest.mark.slow
def test_a_run_without_the_fixture_imports_no_scorer(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(UNUSED)
    pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:langsmith_plugin").assert_outcomes(
        passed=1
    )


@pytest.mark.slow
def test_figures_come_back_from_the_workers_of_xdist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CHECK)
    result = pytester.runpytest_subprocess("-n", "1")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*::test_bad: faithfulness mean 0.165, *, least 0.8"])


@pytest.mark.slow
def test_a_chain_of_langchain_is_scored(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(CHAIN)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*mean 0.500, 95 % interval *, n = 2, *", "E  *A fee of 40 euros applies. [[]bad claim 1]"]
    )
