"""The offline writer and the incident repeat with a seed; search finds graded passages."""

from __future__ import annotations

import json
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from ragtrace.demo import (
    Incident,
    OfflineWriter,
    ServerWriter,
    best_sentences,
    channel_of,
    has_answer,
    questions,
    render_prompt,
    rerank,
)
from ragtrace.demo.answers import REFUSAL
from ragtrace.demo.handbook import handbook
from ragtrace.demo.incident import HURT_CHANNEL
from ragtrace.demo.search import search
from ragtrace.errors import ConfigError

TEXTS = {passage.id: passage.text for passage in handbook()}


@cache
def prompts() -> dict[str, str]:
    found = {}
    for question in questions():
        passages = rerank({"question": question.query, "candidates": search(question.query, 12)})
        found[question.id] = render_prompt(question.query, [(str(it.id), it.page_content) for it in passages])
    return found


def answers(seed: int) -> dict[str, str]:
    writer = OfflineWriter(seed)
    return {name: str(writer.write("", prompt).content) for name, prompt in prompts().items()}


def test_the_same_seed_gives_the_same_answers_and_another_seed_other_wording() -> None:
    assert answers(3) == answers(3) != answers(4)


def test_questions_that_the_handbook_does_not_answer_are_refused_and_few_others() -> None:
    refused = {name for name, text in answers(0).items() if text == REFUSAL}
    unanswerable = {question.id for question in questions() if not question.grades}
    assert unanswerable <= refused
    assert len(refused) <= len(unanswerable) + 2
    assert best_sentences("Which cheese goes well with red wine?", list(TEXTS.values())) == []


def test_the_incident_changes_the_answers_of_its_channel_and_repeats_with_the_seed() -> None:
    def said(**options: int | None) -> list[str]:
        incident = Incident(**options, seed=1)  # type: ignore[arg-type]
        return [incident.apply("In Oslo.", number, has_answer=True) for number in range(1, 1001)]

    changed = said(first=1)
    assert changed == said(first=1)
    for number, text in enumerate(changed, start=1):
        assert (text != "In Oslo.") == (channel_of(number, seed=1) == HURT_CHANNEL)
    assert all(text.startswith("In Oslo.") for text in changed)
    assert set(said(first=None)) == set(said(first=1001)) == {"In Oslo."}


def test_the_incident_leaves_answers_whose_prompt_does_not_hold_what_the_question_needs() -> None:
    incident = Incident(first=1, seed=1)
    assert {incident.apply("In Oslo.", number, has_answer=False) for number in range(1, 1001)} == {"In Oslo."}
    held = {name for name, prompt in prompts().items() if has_answer(prompt)}
    graded = {question.id for question in questions() if question.grades}
    assert held <= graded
    assert 0.8 * len(graded) <= len(held) < len(graded)


def test_search_finds_an_answering_passage_for_nine_questions_in_ten() -> None:
    graded = [question for question in questions() if question.grades]
    found = sum(
        any(question.grades.get(str(it.id), 1) >= 4 for it in search(question.query, 12)) for question in graded
    )
    assert found >= 0.9 * len(graded)


class _Echo(BaseHTTPRequestHandler):
    """A server that refuses every key, and repeats it."""

    def do_GET(self) -> None:
        said = json.dumps({"error": {"message": f"no such key: {self.headers['authorization']}"}}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def test_a_refused_key_is_in_no_error() -> None:
    with HTTPServer(("127.0.0.1", 0), _Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with pytest.raises(
            ConfigError, match=r"the server lists no models \(.*401.*\); give --model NAME"
        ) as caught:
            ServerWriter(None, base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="sk-7f3a9c")
        server.shutdown()
    assert (caught.value.__cause__, caught.value.__context__) == (None, None), "the client's own holds its request"
    assert "sk-7f3a9c" not in str(caught.value)
