"""The demo's chain with a model as its judge, in a process that may use LlamaIndex's own OpenAI package too.

It runs in every environment: the main one, `make test-openai2`, and those of other neighbours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace import semconv
from ragtrace.testing.otlp import OtlpReceiver, attributes_of
from tests import make
from tests.guards.judge_server import Answer, JudgeServer, Request, completion
from tests.unit.judges.llm.obedient import Reply, parted

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

ANSWER = "The lab is in Oslo. It moved there in 2010."
QUESTIONS = 4
JUDGED = ("faithfulness", "answer_relevancy")
METRICS = (*JUDGED, "mrr")

CHAIN = """
import json, sys

import ragtrace
from ragtrace.demo.answers import ServerWriter
from ragtrace.demo.chain import build_chain
from ragtrace.demo.handbook import shuffled_questions
from ragtrace.demo.incident import Incident
from ragtrace_langchain import RagtraceHandler

url, store, metrics, count = sys.argv[1:5]
ragtrace.configure(
    judge="openai:judge", judge_base_url=url, judge_api_key="sk-judge-0a1b2c3d", metrics=metrics.split(","),
    store=store, sample_rate=1.0, content="full",
)
chain = build_chain(ServerWriter("writer", base_url=url, api_key="sk-0a1b2c3d"), Incident(first=None, seed=0))
answers = []
for question in shuffled_questions(int(count), seed=0):
    labels = {"grades": question.labels(), "universe": "gold", "version": "1"}
    config = {
        "callbacks": [RagtraceHandler(workflow="handbook")],
        "metadata": {"ragtrace.labels": labels, "ragtrace.reference": question.reference},
    }
    answers.append(chain.invoke(question.query, config=config))
"""

LLAMAINDEX = """
import ragtrace_llamaindex
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai import OpenAI

class Handbook(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(id_="d0", text="The lab is in Oslo."), score=0.9)]

ragtrace_llamaindex.instrument(workflow="lab")
model = OpenAI(model="gpt-4o-mini", api_base=url, api_key="sk-0a1b2c3d")
answers.append(str(RetrieverQueryEngine.from_args(Handbook(), llm=model).query("Where is the lab?")))
"""

END = """
assert ragtrace.shutdown(60)
json.dump(answers, sys.stdout)
"""


def replied(request: Request) -> Answer:
    """The judge's reply to a prompt with a schema, and the chain's answer to any other."""
    wanted = request.body.get("response_format")
    if wanted is None:
        return Answer(200, completion(ANSWER))
    _, body, _ = parted(request.body["messages"][-1]["content"])
    said = Reply(json.loads(body), obeys=False).of(wanted["json_schema"]["schema"])
    return Answer(200, completion(said))


def run(tmp_path: Path, server: JudgeServer, receiver: OtlpReceiver, application: str) -> list[str]:
    script = tmp_path / "app.py"
    script.write_text(application, encoding="utf-8")
    foreign = ("OTEL_", "RAGTRACE_", "OPENAI_", "LANGCHAIN_", "LANGSMITH_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(foreign)},
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "handbook",
    }
    arguments = [server.url, str(tmp_path / "ragtrace.db"), ",".join(METRICS), str(QUESTIONS)]
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for word in ("AssertionError", "Traceback", "cannot be reached", "not sent"):
        assert word not in done.stderr, done.stderr
    answers: list[str] = json.loads(done.stdout)
    return answers


def check(tmp_path: Path, receiver: OtlpReceiver, workflows: dict[str, int]) -> None:
    """Each run has its spans, its scores in the store and in its events, and the metrics count them."""
    runs = sum(workflows.values())
    store = make.store(tmp_path / "ragtrace.db")
    found = [(row["metric"], row["state"], row["value"], row["reason"]) for row in store.rows()]
    store.close()
    states = {metric: [state for name, state, *_ in found if name == metric] for metric in METRICS}
    for metric in JUDGED:
        assert states[metric] == ["ok"] * runs, found
    assert "ok" in states["mrr"], found  # needs labels, which have a passage that answers
    assert all(0.0 <= value <= 1.0 for _, state, value, _ in found if state == "ok"), found

    roots = [span for span in receiver.spans if not span.parent_span_id]
    names = [span.name for span in roots]
    for workflow, count in workflows.items():
        assert names.count(f"invoke_workflow {workflow}") == count, names
        inside = {span.name.split(" ")[0] for span in receiver.spans if span.trace_id in traces(roots, workflow)}
        assert {"invoke_workflow", "retrieval", "chat", "evaluation"} <= inside, inside
    assert len({span.trace_id for span in receiver.spans}) == runs, "the judge's own calls are in nobody's trace"

    events = [attributes_of(record.attributes) for record in receiver.logs]
    told = [event.get(semconv.GEN_AI_EVALUATION_NAME) for event in events]
    assert told.count("faithfulness") == runs, told
    points = receiver.metrics[semconv.SCORE_N].sum.data_points
    counted = {"faithfulness": 0.0}
    for point in points:
        name = attributes_of(point.attributes)[semconv.GEN_AI_EVALUATION_NAME]
        counted[name] = counted.get(name, 0.0) + (point.as_int or point.as_double)
    assert counted["faithfulness"] == runs, counted


def traces(roots: list[Any], workflow: str) -> set[bytes]:
    return {span.trace_id for span in roots if span.name == f"invoke_workflow {workflow}"}


def test_the_demo_chain_is_scored_by_a_model(tmp_path: Path, judge_server: JudgeServer) -> None:
    judge_server.always = replied
    with OtlpReceiver() as receiver:
        assert run(tmp_path, judge_server, receiver, CHAIN + END) == [ANSWER] * QUESTIONS
        check(tmp_path, receiver, {"handbook": QUESTIONS})


def test_beside_llamaindex_own_openai_package(tmp_path: Path, judge_server: JudgeServer) -> None:
    pytest.importorskip(
        "llama_index.llms.openai", reason="no llama-index-llms-openai here: `make test-openai2` has it"
    )
    judge_server.always = replied
    with OtlpReceiver() as receiver:
        answers = run(tmp_path, judge_server, receiver, CHAIN + LLAMAINDEX + END)
        assert answers == [ANSWER] * (QUESTIONS + 1)
        check(tmp_path, receiver, {"handbook": QUESTIONS, "lab": 1})
    models = {request.body["model"] for request in judge_server.requests}
    assert models == {"judge", "writer", "gpt-4o-mini"}
