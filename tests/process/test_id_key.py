"""Ids that are made of texts: with `content=none` nobody without the key can try a text out on what leaves."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys

import pytest

import ragtrace
from ragtrace.capture.passages import PROCESS_KEY
from ragtrace.model import RagRecord, chunk_id, content_id
from ragtrace.model.passage import IdKey, content_hash
from ragtrace.service import current
from ragtrace.settings import Settings, shown
from ragtrace.stores.tables import SCHEMA_VERSION
from ragtrace.telemetry import input_digest
from tests import make
from tests.process.observing import providers

SECRET = "a secret that all processes have"
SHORT = "Yes."  # which anybody guesses
CHUNKS = ("Room 1.", "Breakfast is served from seven to ten.")
PASSAGES = [SHORT, {"id": "own", "text": "No."}, *({"id": "manual", "text": text} for text in CHUNKS)]


@pytest.fixture
def start():
    def configure(**settings):
        spans = make.Spans()
        ragtrace.configure(sample_rate=1.0, **providers(tracer_provider=spans.provider), **settings)
        return spans.exporter

    yield configure
    ragtrace.shutdown(5)


def told(exporter, passages=PASSAGES, **labels):
    """Answer a question, and return all that its spans say, and the ids of its pool."""
    with ragtrace.query(SHORT) as run:
        run.retrieved(passages)
        run.reranked(passages[:1])
        run.generated(model="m", request={"stop": ["###Zanzibar"], "seed": 3})
        if labels:
            run.labels(labels, label_scope="gold")
        run.answered(SHORT)
    assert ragtrace.flush(20)
    spans = exporter.get_finished_spans()
    ids = next(
        json.loads(span.attributes["ragtrace.pool.ids"]) for span in spans if span.name == "invoke_workflow rag"
    )
    return "\n".join(f"{span.name} {dict(span.attributes)}" for span in spans), ids


def guesses():
    """Return the hashes that somebody makes of the texts that they try."""
    texts = (SHORT, "No.", *CHUNKS)
    found = {content_hash(text)[:8] for text in texts}
    given = RagRecord(id="1", query=SHORT, answer=SHORT, pools=(make.pool(SHORT),))
    return found | {input_digest(given)}


@pytest.mark.parametrize("dialect", ["genai", "openinference", "both"])
def test_without_content_no_hash_of_a_text_can_be_tried_out(start, dialect):
    said, ids = told(start(dialect=dialect, id_key=SECRET))
    assert not [guess for guess in guesses() if guess in said]
    assert (ids[0][:7], ids[1]) == ("salted:", "own")
    assert "Zanzibar" not in said
    assert '"hash"' in said
    assert SECRET not in said
    key = IdKey(SECRET.encode())
    assert ids == [content_id(SHORT, key), "own", *(chunk_id("manual", text, key) for text in CHUNKS)]


@pytest.mark.parametrize("dialect", ["openinference", "both"])
def test_with_content_ids_are_those_of_everybody(start, dialect):
    said, ids = told(start(content="full", id_key=SECRET, dialect=dialect))
    assert ids == [content_id(SHORT), "own", *(chunk_id("manual", text) for text in CHUNKS)]
    assert "###Zanzibar" in said


def test_redacted_texts_have_ids_with_the_same_key(start):
    ids = told(start(content="full", id_key=SECRET, redact=lambda text: text.replace("Yes", "[word]")))[1]
    assert ids[0] == content_id(SHORT, IdKey(SECRET.encode()))


def test_without_a_secret_and_a_store_the_key_is_the_process_s(start):
    assert told(start())[1][0] == content_id(SHORT, PROCESS_KEY)


def test_a_text_is_known_again_in_each_stage(start):
    exporter = start()
    with ragtrace.query("Which?") as run:
        run.retrieved([{"id": "d1", "text": SHORT}, "No.", "Zu\u0308rich"])
        run.reranked([SHORT, "No.", "Z\u00fcrich"])  # a person names them by their texts
    ragtrace.flush(20)
    root = next(one for one in exporter.get_finished_spans() if one.name == "invoke_workflow rag")
    assert json.loads(root.attributes["ragtrace.pool.ids"]) == json.loads(root.attributes["ragtrace.selected.ids"])


def test_a_label_names_the_only_chunk_of_a_document_by_the_id_that_it_has_among_others(start):
    exporter = start(id_key=SECRET, metrics="mrr")
    chunk = chunk_id("manual", CHUNKS[0], IdKey(SECRET.encode()))
    told(exporter, [{"id": "manual", "text": CHUNKS[0]}], **{chunk: 5})
    evaluation = next(one for one in exporter.get_finished_spans() if one.name.startswith("evaluation"))
    assert evaluation.attributes["ragtrace.score.mrr"] == 1.0


APP = """
import os, sys
import ragtrace
from ragtrace.model import RagRecord
from ragtrace.service import current

given = {"store": sys.argv[1]} if len(sys.argv) > 1 else {}
ragtrace.configure(sample_rate=0.0, **given)
from ragtrace.model import content_id
child = os.fork()
key = current().id_key
os.write(1, (content_id("Yes.", key) + "\\n").encode())
if child:
    os.waitpid(child, 0)
os._exit(0)
"""


def ids_in(n, *args, **variables):
    """Return the ids of one text in some processes that begin together, and in a child of each."""
    off = dict.fromkeys(("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "none")
    env = os.environ | off | variables
    begun = [
        subprocess.Popen([sys.executable, "-c", APP, *args], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(n)
    ]
    return [one.communicate(timeout=60)[0].split() for one in begun]


def test_processes_with_one_secret_make_one_id():
    assert ids_in(2, RAGTRACE_ID_KEY=SECRET) == [[content_id("Yes.", IdKey(SECRET.encode()))] * 2] * 2


@pytest.mark.slow
def test_processes_of_one_store_make_one_id_also_when_they_begin_together(tmp_path):
    first = ids_in(4, str(tmp_path / "store"))
    assert len({one for ids in first for one in ids}) == 1
    assert ids_in(1, str(tmp_path / "store"))[0] == first[0]
    assert ids_in(1, str(tmp_path / "other"))[0] != first[0]


def test_other_processes_make_other_ids():
    (one, child), (other, _) = ids_in(2)
    assert (one == child, one == other) == (True, False)


def test_a_store_that_gives_no_key_is_one_warning_and_the_process_has_one(start, tmp_path, caplog):
    make.store(tmp_path / "store").close()
    with sqlite3.connect(tmp_path / "store") as file:
        file.execute("DROP TABLE store_facts")
        file.execute(f"CREATE VIEW store_facts AS SELECT 'schema' AS name, {SCHEMA_VERSION} AS value")
    start(store=str(tmp_path / "store"))
    assert current().id_key is PROCESS_KEY
    assert len([one for one in caplog.records if "set RAGTRACE_ID_KEY" in one.getMessage()]) == 1


def test_the_secret_is_shown_nowhere(start, capsys, caplog):
    settings = Settings.resolve({}, {"RAGTRACE_ID_KEY": SECRET})
    start(id_key=SECRET)
    run = ragtrace.query("Where?")
    seen = [repr(settings), str(shown(settings)), repr(run._config), repr(current().id_key), caplog.text]
    assert not [one for one in seen if SECRET in one]
    assert re.search(r"id_key=IdKey\(\*\*\*\)", repr(run._config))
    with pytest.raises(ragtrace.errors.ConfigError) as error:
        ragtrace.configure(id_key=SECRET.encode())
    assert SECRET not in str(error.value)
