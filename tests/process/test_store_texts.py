"""`store_texts`: which texts a service keeps, how long, and what labels of them stand for."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import sys
import time

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

import ragtrace
from ragtrace.service import storing
from ragtrace.stores import Label
from ragtrace_langchain import RagtraceHandler
from tests import make
from tests.command_line import ran
from tests.e2e.howto import blocks
from tests.guards.processes import until
from tests.process.observing import environment, providers
from tests.ui.pages import read_page
from tests.ui.scored import client_of
from tests.unit.stores.conftest import Wall, age_until

pytestmark = pytest.mark.slow

SENTENCE = "The lab is in Oslo, near the old harbour."
GOOD, BAD = SENTENCE, "A king of France sold it for 20 euros."
FULL = {"content": "full", "metrics": ["faithfulness"]}


class Search(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(SENTENCE, id="lab"), Document("Lunch is at noon.", id="lunch")]


def ask(answers, question="Where is the lab?", **metadata):
    """Ask a LangChain application whose scripted model gives these answers, one a question."""
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    model = FakeListChatModel(responses=list(answers))
    chain = {"context": Search(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    for n in range(len(answers)):
        about = {"ragtrace.session": f"s{n}", **{f"ragtrace.{name}": text for name, text in metadata.items()}}
        chain.invoke(question, config={"callbacks": [RagtraceHandler()], "metadata": about})


@pytest.fixture
def serve(tmp_path):
    """Configure a real service over a store; leaving ends it."""

    def configure(name="scores.sqlite", **settings):
        ragtrace.configure(store=str(tmp_path / name), **{"sample_rate": 1.0, **FULL, **providers(), **settings})
        return tmp_path / name

    yield configure
    ragtrace.shutdown(20)


def reasons(path):
    """Return the reasons to keep that stand at the runs, and the number of texts."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT kept_for, count(*) FROM runs WHERE span_id != '' GROUP BY 1").fetchall()
        (texts,) = connection.execute("SELECT count(*) FROM payloads").fetchone()
    return dict(found), texts


# -- what is kept --


def test_the_texts_of_every_scored_run_are_kept_or_those_of_selected_ones(serve):
    for texts, wanted in (("all", {"all": 30}), ("selected", {"low": 10})):
        path = serve(f"{texts}.sqlite", store_texts=texts)
        ask([GOOD, GOOD, BAD] * 10)
        assert ragtrace.flush(60)
        ragtrace.shutdown(20)
        found, count = reasons(path)
        found.pop(None, None)
        drawn = found.pop("sample", 0)  # 1 % of 20 good runs
        assert (found, count) == (wanted, sum(wanted.values()) + drawn), texts
        assert drawn <= 4
    kept = [record for record, probability in make.store(path.with_name("all.sqlite")).records()]
    assert sorted({record.answer for record in kept}) == [BAD, GOOD]
    assert all(record.query == "Where is the lab?" and record.contexts[0].text == SENTENCE for record in kept)


def test_texts_of_unscored_runs_are_not_kept_and_those_a_rule_took_stay_flagged(serve):
    path = serve(store_texts="all", sample_rate=0.5)
    ask([GOOD] * 60)
    for _ in range(20):
        with ragtrace.query("Where is the lab?") as run:
            run.retrieved([SENTENCE])
            run.answered(GOOD)
            run.feedback(0.0)  # forces the scoring, where the draw did not take the run
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    found, texts = reasons(path)
    with sqlite3.connect(path) as connection:
        sql = (
            "SELECT count(DISTINCT run) FROM scores WHERE stratum = ? AND series IN"
            " (SELECT id FROM series WHERE source != 'human')"
        )
        by_stratum = [connection.execute(sql, (name,)).fetchone()[0] for name in ("random", "forced")]
    assert 20 <= found["all"] < 60
    assert [found["all"], found["flagged"]] == by_stratum
    assert texts == found["all"] + found["flagged"]


def test_a_worker_keeps_all_texts_by_its_own_variables(serve, tmp_path):
    spool = tmp_path / "spool"
    path = serve(spool=str(spool), scorer="worker", content="none")
    ask([GOOD] * 5)
    assert ragtrace.flush(20)
    ragtrace.shutdown(20)
    env = {"RAGTRACE_STORE": str(path), "RAGTRACE_CONTENT": "full", "RAGTRACE_STORE_TEXTS": "all"}
    command = [sys.executable, "-m", "ragtrace", "worker", "--once", "--spool", str(spool)]
    done = subprocess.run(command, env=environment(**env), capture_output=True, text=True, timeout=120, check=True)
    assert reasons(path) == ({"all": 5}, 5), done.stderr


def test_redaction_comes_before_a_text_is_kept(serve, tmp_path):
    path = serve(store_texts="all", redact=lambda text: text.replace("Oslo", "[place]"))
    ask([GOOD] * 3, question="Is the lab in Oslo?", user="Oslo")
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    assert reasons(path) == ({"all": 3}, 3)
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Oslo" not in files
    assert b"Is the lab in [place]?" in files


# -- how long --


def test_retention_deletes_all_texts_after_their_hours_and_the_reason_stays(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(storing, "_AGE_EVERY_S", 0.2)
    monkeypatch.setattr("ragtrace.sqlite_file.EMPTY_EVERY_S", 0.2)
    path = serve(store_texts="all", store_payload_hours=4.0 / 3_600.0)
    ask([GOOD] * 4)
    assert ragtrace.flush(60)
    assert b"old harbour" in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    until(lambda: reasons(path) == ({"all": 4}, 0))
    until(lambda: all(b"Where is the lab" not in file.read_bytes() for file in tmp_path.iterdir()))
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM scored WHERE name = 'faithfulness'").fetchone() == (4,)


def test_forget_erases_these_texts(serve, tmp_path):
    path = serve(store_texts="all")
    ask([GOOD], question="What does Ada Lovelace ask?", user="ada")
    ask([GOOD], question="What does Bob ask?", user="bob")
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    done = ran("forget", "--user", "ada", "--store", str(path))
    assert b"user ada: 1 score, 0 human labels, 1 record, 0 waiting units erased" in done.stdout
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"Lovelace" not in files
    assert b"What does Bob ask?" in files


# -- a store of before --


def test_a_store_of_version_3_is_opened_and_knows_why_its_texts_were_kept(serve):
    path = serve()
    ask([BAD, BAD, GOOD])
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "ALTER TABLE runs DROP COLUMN kept_for; UPDATE store_facts SET value = 3 WHERE name = 'schema'"
        )
    connection.close()
    serve(store_texts="all")
    ask([GOOD])
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    found, _ = reasons(path)
    assert (found["low"], found["all"]) == (2, 1)


# -- what is labelled --


def labelled(serve, texts, rater="ada"):
    """Return a store of 40 runs, of which a person labelled up to 30 that can be read."""
    path = serve(f"{texts}.sqlite", store_texts=texts)
    answers = [GOOD] * 24 + [BAD] * 16
    random.Random(5).shuffle(answers)
    ask(answers)
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    store = make.store(path)
    readable = [(record.trace_id, record.answer) for record, _ in store.records()][:30]
    store.rate(
        Label(trace_id=trace, value=float(answer == GOOD), metric="faithfulness", rater=rater)
        for trace, answer in readable
    )
    store.close()
    return path, len(readable)


def calibrated(path, folder):
    """Export a store, join its labels and texts as the page says, and return what `calibrate` prints."""
    (program,) = blocks("serve", "python", after="## Scores of people")
    rows = folder / "rows.jsonl"
    rows.unlink(missing_ok=True)
    assert ran("export", "--store", path, "--out", rows).returncode == 0
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, timeout=60)
    report = folder / "report.json"
    done = ran("calibrate", folder / "answers.jsonl", "--label", "label", "--json", report)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode(), json.loads(report.read_text())


def flat(text):
    return re.sub(r"\s+", " ", text)


def test_calibrate_and_the_pages_say_that_labels_are_of_runs_kept_for_being_bad(serve, tmp_path):
    path, count = labelled(serve, "selected")
    bad = 16
    line = (
        f"{bad} of {count} labelled runs were kept for being bad ({bad} low): their labels and the corrected mean do"
        ' not stand for all runs; set store_texts="all" and label runs that come after'
    )
    printed, report = calibrated(path, tmp_path)
    assert flat(printed).count(line) == 1
    assert "random choice of all" not in printed
    assert report["kept_as_bad"] == {"low": bad}
    with client_of(path) as client:
        for page in ("calibrate", "queue"):
            text = flat(read_page(client.get(f"/{page}?metric=faithfulness").text).text)
            assert text.count(line) == 1, page
            assert "over all runs" not in text
        queue = read_page(client.get("/queue?metric=faithfulness").text)
    left = 40 - count
    assert (
        f"Left out: {left} of 40 scored runs, which cannot be read. The store kept no texts of {left}"
        ' (content="full" with store_texts="all" keeps them).'
    ) in flat(queue.text)
    assert "No run is left to label" in queue.text
    assert "Every run is labelled" not in queue.text


def test_labels_of_all_texts_stand_for_all_runs(serve, tmp_path):
    path, count = labelled(serve, "all")
    assert count == 30
    printed, report = calibrated(path, tmp_path)
    assert "kept for being bad" not in printed
    assert report["kept_as_bad"] == {}
    assert "the corrected mean holds if the labelled records are a random choice of all" in flat(printed)
    with client_of(path) as client:
        for page in ("calibrate", "queue"):
            text = flat(read_page(client.get(f"/{page}?metric=faithfulness").text).text)
            assert "over all runs" in text
            assert "kept for being bad" not in text
            assert "Left out" not in text


def test_the_reason_outlives_the_text(serve):
    path, count = labelled(serve, "selected")
    wall = Wall()
    wall.at = time.time()
    late = make.store(path, wall=wall)
    age_until(late, wall, wall.at + 73 * 3_600.0)
    late.close()
    assert reasons(path)[1] == 0
    with client_of(path) as client:
        text = flat(read_page(client.get("/calibrate?metric=faithfulness").text).text)
    assert f"16 of {count} labelled runs were kept for being bad (16 low)" in text


def test_an_open_page_stops_proposing_runs_whose_texts_are_deleted(serve):
    path = serve(store_texts="all")
    ask([GOOD] * 6)
    assert ragtrace.flush(60)
    ragtrace.shutdown(20)
    with client_of(path) as client:
        before = read_page(client.get("/queue?metric=faithfulness").text)
        assert sum("run=" in link for link in before.links().values()) >= 1
        assert "Left out" not in before.text
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM payloads WHERE run > 2")
        connection.close()
        time.sleep(0.6)  # the pages look at most twice a second
        after = client.get("/queue?metric=faithfulness").text
        assert after.count("data-row") == 2
        assert (
            "Left out: 4 of 6 scored runs, which cannot be read. The texts of 4 were deleted (store_payload_hours,"
            " store_bytes)."
        ) in flat(read_page(after).text)
