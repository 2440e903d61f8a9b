"""The ratings of docs/how-to/store.md and the LangChain page, as a reader without an OpenTelemetry SDK gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests import make
from tests.e2e.howto import FOLDER, run_python

if TYPE_CHECKING:
    from pathlib import Path

LANGCHAIN = FOLDER.parents[1] / "integrations" / "langchain" / "README.md"
CHAIN = """
import ragtrace
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from ragtrace_langchain import RagtraceHandler

ragtrace.configure(store="store", sample_rate=1.0, metrics="faithfulness")
search = RunnableLambda(lambda question: [Document("A refund takes five days.", id="d1")])
prompt = ChatPromptTemplate.from_template("{documents} {question}")
model = FakeListChatModel(responses=["A refund takes three days."])
chain = {"documents": search, "question": RunnablePassthrough()} | prompt | model
question = "How long does a refund take?"
"""
END = """
assert answer.content == "A refund takes three days."
ragtrace.shutdown()
"""


@pytest.mark.parametrize("page", [FOLDER / "store.md", LANGCHAIN], ids=["store", "langchain"])
def test_a_rating_of_a_chain_s_answer_stands_in_the_trace_of_its_scores(page: Path, tmp_path: Path) -> None:
    found = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (snippet,) = [code for code in found if "ragtrace.feedback(run.trace_id" in code]
    run_python(CHAIN + snippet + END, tmp_path)
    store = make.store(tmp_path / "store")
    rows = list(store.rows())
    store.close()
    assert sorted((row["source"], row["metric"], row["state"]) for row in rows) == [
        ("human", "feedback", "ok"),
        ("judge", "faithfulness", "ok"),
    ]
    assert len({row["trace_id"] for row in rows}) == 1
    assert [row["value"] for row in rows if row["source"] == "human"] == [0.0]
