"""The examples that answer questions: with their scripts as their READMEs say, and with a model on loopback."""

from __future__ import annotations

import pytest

from tests.examples.model_server import asked, model_server
from tests.examples.running import EXAMPLES, ragtrace, rows, run, with_model, written_output

pytestmark = pytest.mark.slow
APPLICATIONS = {
    "plain_python": ("app.py", "help-desk.sqlite", 3),
    "langgraph_agent": ("agent.py", "lamps.sqlite", 2),
    "llamaindex_app": ("app.py", "garden.sqlite", 3),
}


def reply(request):
    """Call the tool where there is one, and else repeat the first passage."""
    if request.get("tools"):
        call = {"name": "search", "arguments": '{"query": "How many years is the guarantee on a lamp?"}'}
        number = len(request["messages"])
        return {
            "role": "assistant", "content": None,
            "tool_calls": [{"id": f"call-{number}", "type": "function", "function": call}],
        }  # fmt: skip
    return "Yes." if "Say yes or no" in asked(request) else "The guarantee on a lamp is two years."


@pytest.mark.parametrize("example", APPLICATIONS)
def test_it_prints_what_its_readme_shows(example, tmp_path):
    script, store, runs = APPLICATIONS[example]
    said = run(tmp_path, EXAMPLES / example / script)
    for line in written_output(example):
        assert line.removesuffix(" ...") in said
    if example == "langgraph_agent":  # one run with both searches
        _, _, tree = said.partition("The spans of the first question:")
        assert (tree.count("invoke_workflow"), tree.count("retrieval search <-")) == (1, 2)
    values = rows(tmp_path / store, "SELECT value FROM scored WHERE metric = 'faithfulness' ORDER BY value")
    assert len(values) == runs
    assert values[0] < 0.8
    assert values[1:] == [1.0] * (runs - 1)
    assert "not supported" in ragtrace(tmp_path, "worst", store)


@pytest.mark.parametrize("example", APPLICATIONS)
def test_a_real_server_answers_by_one_flag(example, tmp_path):
    script, store, runs = APPLICATIONS[example]
    with model_server(reply) as model:
        said = run(tmp_path, EXAMPLES / example / script, *with_model(model.url))
    assert said.count("The guarantee on a lamp is two years.") >= runs
    assert {request["model"] for request in model.requests} == {"loopback"}
    assert rows(tmp_path / store, "SELECT count(*) FROM scored WHERE metric = 'answered'") == [runs]
