"""Pages say what fell, list the worst first, and show one run whole."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from ragtrace.model.reading import SIGNS
from ragtrace.report import report_html
from ragtrace.views import Views
from tests import make
from tests.ui.pages import Page, read_page
from tests.ui.scored import client_of, incident, scored_line, write_lines
from tests.unit.views.scored_runs import emit, line, reading

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    return client_of(write_lines(tmp_path_factory.mktemp("ui") / "scored.jsonl", incident(300)))


def page_of(client: TestClient, path: str, status: int = 200) -> Page:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return read_page(answer.text)


def test_the_cause_of_an_incident_is_named_at_once_and_read_in_two_clicks(client: TestClient) -> None:
    overview = page_of(client, "/")
    said = " ".join(overview.text.split())
    assert re.search(
        r"faithfulness fell by 0\.33 \(95 % interval 0\.\d\d to 0\.\d\d\), from 0\.97 to 0\.63, "
        r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC",
        said,
    )
    assert "Stage: model (unsupported: the answer says what the contexts do not hold)" in said
    assert "Where: tag channel:app, which explains all of it." in said
    assert "tag=channel%3Aapp" in overview.links()["tag channel:app"]
    worst = page_of(client, overview.links()["See the worst of these runs"])
    runs = [attributes["href"] for name, attributes in worst.elements if "data-row" in attributes]
    assert len(runs) == 50
    run = page_of(client, runs[0])
    assert {"v-not_supported", "claim-mark"} <= set(" ".join(run.values("class")).split())
    assert "the answer says what the contexts do not hold" in run.text


def test_a_metric_carries_its_interval_its_scores_and_its_judge(client: TestClient) -> None:
    said = " ".join(page_of(client, "/").text.split())
    assert "faithfulness overlap 0.80 0.76 to 0.83" in said
    assert "300 scores" in said


def test_the_worst_run_stands_first_and_a_filter_stands_in_the_address(client: TestClient) -> None:
    listed = page_of(client, "/runs")
    values = [text for text in listed.text.split() if text in {"0.30", "0.90", "1.00"}]
    assert values[:3] == ["0.30"] * 3
    chosen = page_of(client, "/runs?verdict=unsupported&tag=channel:app")
    assert "75 runs" in chosen.text
    assert chosen.links()["✕"].startswith("/runs?")
    assert "next →" in chosen.links()


def test_an_empty_list_says_what_to_do(client: TestClient) -> None:
    assert "Remove one of the filters" in page_of(client, "/runs?text=zebra").text


def test_a_wrong_filter_is_one_clear_line(client: TestClient) -> None:
    page = page_of(client, "/runs?low=much", status=400)
    assert "low must be a number" in page.text


def test_dates_of_a_form_without_scripts_are_utc(client: TestClient) -> None:
    # Run 150 ended at 1,790,000,150 s.
    assert "150 runs" in page_of(client, "/runs?since=2026-09-21T14:15:50").text
    assert "150 runs" in page_of(client, "/runs?since=1790000150").text


def test_a_run_ties_claims_to_their_evidence(client: TestClient) -> None:
    run = page_of(client, "/runs/152")
    marks = [
        attributes for name, attributes in run.elements if attributes.get("class", "").startswith("claim-mark")
    ]
    ids = set(run.values("id"))
    assert [mark["href"] for mark in marks] == ["#claim-1"]
    assert marks[0]["aria-describedby"] in ids
    assert {address[1:] for address in run.values("href") if address.startswith("#")} <= ids
    rows = [given for _, given in run.elements if given.get("id", "").startswith("passage-")]
    assert [row.get("class") for row in rows] == ["reached", None]
    assert "2 retrieved → 1 selected → 1 in the prompt" in run.text


def test_a_run_leads_to_its_neighbours_in_the_filter(client: TestClient) -> None:
    listed = page_of(client, "/runs?verdict=unsupported")
    first, second = [attributes["href"] for _, attributes in listed.elements if "data-row" in attributes][:2]
    assert page_of(client, first).links()["next j →"] == second
    assert page_of(client, second).links()["← previous k"] == first


def test_a_run_that_is_not_there_is_not_found(client: TestClient) -> None:
    assert "There is no run 99999" in page_of(client, "/runs/99999", status=404).text


def test_the_investigation_links_to_the_runs_before_and_after(client: TestClient) -> None:
    page = page_of(client, "/investigate")
    links = page.links()
    assert "since=" in links["after"]
    assert "until=" in links["before"]
    assert "tag=channel%3Aapp" in links["after"]
    assert "Look whether the model, its prompt or its settings changed." in page.text


CALM = {
    "stays": (
        100,
        "No metric is shown to have changed for the worse; 1 has enough scores to tell.",
        "Nothing is shown to",
    ),
    "too few": (30, "There are too few scores to tell a change.", "faithfulness: 30 scores are too few"),
}


@pytest.mark.parametrize("kind", CALM)
def test_where_no_fall_is_shown_every_page_says_so_plainly(tmp_path: Path, kind: str) -> None:
    count, calm, looked = CALM[kind]
    lines = [scored_line(n, value=0.9 - n % 7 / 100) for n in range(count)]
    views = Views.of_file(write_lines(tmp_path / "scored.jsonl", lines))
    client = client_of(tmp_path / "scored.jsonl")
    overview, looked_at, report = client.get("/").text, client.get("/investigate").text, report_html(views)
    assert calm in " ".join(read_page(overview).text.split())
    assert calm in " ".join(report.split())
    said = " ".join(read_page(looked_at).text.split())
    assert looked in said
    assert ("this may be chance" in said) == (kind == "stays")
    assert not any(word in said for word in ("What fell", "Next steps", "Examples"))
    for page in (overview, looked_at, report):
        [headline] = re.findall(
            r'<section class="([^"]*)" aria-labelledby="headline">.*?<span class="(\w+)"', page, re.DOTALL
        )
        assert headline == ("alert calm", "muted"), "neither good nor bad"


@pytest.mark.parametrize(("every", "low"), [(4, 1.0), (2, 0.4)])
def test_every_page_tells_the_rise_of_inventions(tmp_path: Path, every: int, low: float) -> None:
    """Also where it is small, and where faithfulness, which stands first, changed less surely."""
    lines = [scored_line(n, value=low if n >= 60 and not n % 3 else 1.0) for n in range(120)]
    for n, it in enumerate(lines):
        value = float(n >= 60 and n % every == 0)
        it["scores"]["invented_specifics"] = {"state": "ok", "value": value, "judge": "overlap", "version": "v1"}
    path = write_lines(tmp_path / "scored.jsonl", lines)
    client = client_of(path)
    told = f"invented_specifics rose by {1 / every:.2f}"
    for address in ("/", "/?period=30d", "/investigate"):
        text = " ".join(page_of(client, address).text.split())
        assert told in text
        assert "No metric is shown to have changed for the worse" not in text
        assert ("Also worse: faithfulness 1.00 → 0.80" in text) == (low < 1.0)
    report = report_html(Views.of_file(path))
    assert told in " ".join(report.split())


def test_a_page_costs_nothing_until_the_file_grows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "scored.jsonl", incident(20))
    client = client_of(path)
    seen = client.get("/").headers["etag"]
    assert client.get("/", headers={"if-none-match": seen}).status_code == 304
    assert client.get("/runs", headers={"if-none-match": seen}).status_code == 304
    with path.open("a", encoding="utf-8") as file:
        file.write(write_lines(tmp_path / "more", [scored_line(99)]).read_text(encoding="utf-8"))
    for _ in range(50):
        answer = client.get("/", headers={"if-none-match": seen})
        if answer.status_code == 200:
            break
        time.sleep(0.05)
    assert "21 runs" in answer.text


def test_a_file_without_runs_says_how_they_come(tmp_path: Path) -> None:
    client = client_of(write_lines(tmp_path / "scored.jsonl", []))
    assert "There are no runs here yet" in page_of(client, "/").text
    assert "Scores appear here" in page_of(client, "/runs").text
    page_of(client, "/investigate")


def test_a_run_whose_texts_were_not_kept_says_so_and_shows_its_scores(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    emit(make.store(store), line(0))
    said = page_of(client_of(store), f"/runs/{1:032x}").text
    assert "The texts of this run are not kept." in said
    assert "faithfulness" in said
    assert not any(false in said for false in ("no answer", "passage", "not captured"))


def test_a_run_says_what_capture_read_and_each_sign_has_its_line_to_declare(tmp_path: Path) -> None:
    lines = [scored_line(0, reading=reading("question_guessed")), scored_line(1, reading=reading()), scored_line(2)]
    client = client_of(write_lines(tmp_path / "scored.jsonl", lines))
    page = page_of(client, "/runs/1")
    said = " ".join(page.text.split())
    assert "What capture read 1 sign of what it is unsure of question from input.question; answer from" in said
    assert "evidence: 2 passages of retriever `faq`" in said
    assert "?question guessed the question stands under a name that says nothing of it (input.body)" in said
    assert "“My <order>” To settle it, declare question=... Copy" in said
    (button,) = (attributes for _, attributes in page.elements if "data-copy" in attributes)
    assert any(attributes.get("id") == button["aria-describedby"] for name, attributes in page.elements)
    sure, unknown = (page_of(client, f"/runs/{n}") for n in (2, 3))
    assert "What capture read" in sure.text
    assert "unsure" not in sure.text
    assert "What capture read" not in unknown.text


def test_where_texts_were_not_kept_the_words_of_a_sign_are_missing_and_the_rest_is_shown(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    emit(make.store(store), line(0, reading=reading("question_guessed")))
    said = " ".join(page_of(client_of(store), f"/runs/{1:032x}").text.split())
    assert "says nothing of it (input.body) To settle it, declare question=... Copy" in said
    assert "order" not in said


def test_the_overview_says_how_many_runs_carry_a_sign_and_leads_to_them(tmp_path: Path) -> None:
    lines = [scored_line(n, reading=reading(*["tool_unused"] * (n < 2))) for n in range(6)]
    path = write_lines(tmp_path / "scored.jsonl", lines)
    client = client_of(path)
    links = page_of(client, "/?workflow=support").links()
    assert links["2 of 6 runs carry a sign"] == "/runs?workflow=support&sign=any"
    assert "2 runs" in page_of(client, links["2 of 6 runs carry a sign"]).text
    report = read_page(report_html(Views.of_file(path))).text
    assert "2 of 6 runs carry a sign" in report
    assert report.count("What capture read") == 6


def test_only_signs_that_occur_are_to_choose(client: TestClient, tmp_path: Path) -> None:
    assert "carry a sign" not in page_of(client, "/").text
    assert not [it for name, it in page_of(client, "/runs").elements if it.get("name") == "sign"]
    lines = [scored_line(n, reading=reading("tool_unused")) for n in range(2)]
    page = page_of(client_of(write_lines(tmp_path / "scored.jsonl", lines)), "/runs?sign=follows_answer")
    choices = [it for name, it in page.elements if name == "option" and it["value"] in {"any", *SIGNS}]
    assert [it["value"] for it in choices] == ["any", "tool_unused", "follows_answer"]
    assert ["selected" in it for it in choices] == [False, False, True]
    page_of(client, "/runs?sign=guessed", status=400)


def test_the_form_says_how_comments_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "s.sqlite"
    emit(make.store(store), line(0))
    client = client_of(store)
    dropped = "Comments are dropped here: start ragtrace ui with RAGTRACE_CONTENT=full to keep them."
    monkeypatch.delenv("RAGTRACE_CONTENT", raising=False)
    assert dropped in " ".join(page_of(client, f"/runs/{1:032x}").text.split())
    monkeypatch.setenv("RAGTRACE_CONTENT", "full")
    assert "Comments are dropped" not in page_of(client, f"/runs/{1:032x}").text


def test_the_queue_proposes_rows_that_can_be_read_and_counts_the_others(tmp_path: Path) -> None:
    bare = {"query": "", "answer": "", "contexts": [], "pool": [], "selection": []}
    rows = [scored_line(n, value=0.1 * n, **(bare if n < 4 else {})) for n in range(9)]
    client = client_of(write_lines(tmp_path / "scored.jsonl", rows))
    queue = page_of(client, "/queue?metric=faithfulness")
    assert sum(name == "tr" for name, _ in queue.elements) == 1 + 5
    assert "Left out: 4 of 9 scored runs, which cannot be read. The file holds no texts of 4." in queue.text
    client = client_of(write_lines(tmp_path / "bare.jsonl", [scored_line(n, **bare) for n in range(3)]))
    queue = page_of(client, "/queue?metric=faithfulness")
    assert "No run is left to label" in queue.text
    assert "Every run is labelled" not in queue.text
    assert "Start labelling" not in queue.text
