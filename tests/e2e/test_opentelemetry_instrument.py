"""``opentelemetry-instrument python app.py``: spans of an application that does not name ragtrace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragtrace.testing.otlp import OtlpReceiver

pytestmark = pytest.mark.slow

LANGCHAIN = """
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

class Handbook(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id="d0", page_content="The lab is in Oslo.")]

prompt = ChatPromptTemplate.from_template("{context} {question}")
chain = {"context": Handbook(), "question": RunnablePassthrough()} | prompt | FakeListChatModel(responses=["In Oslo."])
print(chain.invoke("Where is the lab?").content)
"""

LLAMAINDEX = """
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

class Handbook(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(id_="d0", text="The lab is in Oslo."), score=0.9)]

print(RetrieverQueryEngine.from_args(Handbook(), llm=MockLLM()).query("Where is the lab?"))
"""


@pytest.mark.parametrize("application", [LANGCHAIN, LLAMAINDEX], ids=["langchain", "llamaindex"])
def test_spans_of_an_application_that_does_not_name_ragtrace(tmp_path, application):
    app = tmp_path / "app.py"
    app.write_text(application)
    with OtlpReceiver() as receiver:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "support",
            "RAGTRACE_SAMPLE_RATE": "0",
        }
        command = [str(Path(sys.executable).with_name("opentelemetry-instrument")), sys.executable, str(app)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert "Oslo" in done.stdout
        names = [span.name for span in receiver.spans]
    assert {"invoke_workflow", "retrieval"} < {name.split(" ")[0] for name in names}, names
