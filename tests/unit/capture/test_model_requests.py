"""Parameters and servers of model calls, by the names of frameworks and providers, and what may be kept of them."""

from __future__ import annotations

import pytest

from ragtrace.capture import Recorder, read_request, read_server
from tests.unit.telemetry.runs import Taken


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"temperature": 0, "top_p": 0.9, "top_k": 40}, {"temperature": 0.0, "top_p": 0.9, "top_k": 40}),
        ({"max_completion_tokens": 64, "n": 2, "seed": 7}, {"max_tokens": 64, "choice_count": 2, "seed": 7}),
        ({"options": {"num_predict": 9, "temperature": 0.5}}, {"max_tokens": 9, "temperature": 0.5}),
        ({"inferenceConfig": {"maxTokens": 9, "topP": 0.5}}, {"max_tokens": 9, "top_p": 0.5}),
        ({"stop": ["a", "", 7, "b"], "stream": True}, {"stop_sequences": ("a", "b"), "stream": True}),
        ({"stop": None, "stream": False, "temperature": None, "max_tokens": -1}, {}),
        ({"temperature": float("nan"), "top_k": 0.5, "seed": True, "n": 10**5000, "stop": object()}, {}),
    ],
)
def test_parameters(given, found):
    assert read_request(None, given) == found


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://user:secret@llm.example.com/v1?key=secret#x", ("llm.example.com", 443)),
        ("http://10.0.0.7:8000/v1", ("10.0.0.7", 8000)),
        ("localhost:11434", ("localhost", 11434)),
        ("http://[::1]:8000", ("::1", 8000)),
        ("http://host:99999", (None, None)),
        ("http://[::1", (None, None)),
        ("", (None, None)),
        ("not an address", (None, None)),
        pytest.param(object(), (None, None), id="an object"),
        (None, (None, None)),
    ],
    ids=str,
)
def test_servers(url, server):
    assert read_server({"base_url": url}) == server


def test_a_run_keeps_clean_parameters_and_a_host_alone():
    taken = Taken()
    run = Recorder(taken, redact=lambda text: text.replace("Ada", "[name]")).start(query="q")
    run.generated(
        request={"temperature": "hot", "stop": "Ada", "api_key": "secret", "seed": 3},
        server_address="https://me:secret@llm.example.com/v1",
        server_port="443",
    )
    run.finish()
    (step,) = taken.runs[0][1].steps
    assert dict(step.request) == {"seed": 3, "stop_sequences": ("[name]",)}
    assert (step.server_address, step.server_port) == ("llm.example.com", None)
