"""The report: one small file, which escapes every text and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace.cli import main
from ragtrace.views import Views
from tests.ui.pages import read_page
from tests.ui.scored import incident, scored_line, write_lines

pytest.importorskip("jinja2", reason="the extra ui is not installed")

from ragtrace.report import report_html

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    before = Views.of_file(write_lines(folder / "before.jsonl", [scored_line(n) for n in range(60)]))
    views = Views.of_file(write_lines(folder / "after.jsonl", incident(60)))
    return report_html(views, views.compared_with(before))


def test_it_has_the_overview_the_comparison_and_each_run_whole(written: str) -> None:
    text = read_page(written).text
    assert "60 of 60 listed, 60 of them whole, by faithfulness" in text
    assert "Where answers fail" in text
    assert "before.jsonl" in text
    assert text.count("Passage one.") == 60


def test_texts_of_tools_have_a_block_of_their_own_that_claims_lead_to(tmp_path: Path) -> None:
    claims = [{"text": "Claim 1.", "verdict": "supported", "support": 1.0, "sources": [1]}]
    told = [{"id": "t", "text": "Told by a tool.", "source": "fees"}]
    line = scored_line(1, unranked_contexts=told)
    line["scores"]["faithfulness"]["details"]["claims"] = claims
    page = read_page(report_html(Views.of_file(write_lines(tmp_path / "one.jsonl", [line]))))
    ranked, _, unranked = page.text.partition("Texts of tools, without rank")
    assert "2 passages" in ranked
    assert "Told by a tool." not in ranked
    assert "Told by a tool." in unranked
    assert "fees" in unranked
    prefix = next(name for name in page.values("id") if name.endswith("unranked-title")).removesuffix(
        "unranked-title"
    )
    assert f"{prefix}passage-3" in page.values("id")
    assert {f"#{prefix}passage-3", f"#{prefix}claim-1"} <= {*page.values("href")}


def test_a_single_bad_run_is_one_run_and_lists_no_good_verdict(tmp_path: Path) -> None:
    (line,) = [one for one in incident(60) if one["scores"].get("diagnosis", {}).get("value") == 0.0][:1]
    text = " ".join(read_page(report_html(Views.of_file(write_lines(tmp_path / "one.jsonl", [line])))).text.split())
    assert "share of the 1 run shown here" in text
    assert "No stage failed" not in text


def test_nothing_is_loaded_and_every_anchor_stands_in_the_file(written: str) -> None:
    page = read_page(written)
    assert not [value for name in ("src", "action", "data-hx-get") for value in page.values(name)]
    anchors, ids = page.values("href"), page.values("id")
    assert len(ids) == len(set(ids))
    assert {anchor[:1] for anchor in anchors} == {"#"}
    assert {anchor[1:] for anchor in anchors} <= set(ids)
    assert {value for name in ("aria-labelledby", "aria-describedby") for value in page.values(name)} <= set(ids)


def test_the_policy_names_each_script_and_style_by_its_hash(written: str) -> None:
    policy = next(value for value in read_page(written).values("content") if "default-src" in value)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    inline = [
        *re.findall(r"<script>(.*?)</script>", written, re.DOTALL),
        *re.findall(r"<style>(.*?)</style>", written, re.DOTALL),
    ]
    assert len(inline) == 6
    for text in inline:
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy
    assert not re.search(r"<[a-z]+ [^>]*\b(style|onclick|onload)=", written)


@pytest.mark.slow
def test_a_thousand_runs_stay_below_two_megabytes(tmp_path: Path) -> None:
    lines = [scored_line(n, value=n / 1_100, answer="An answer. " * 60) for n in range(1_100)]
    for line in lines:
        line["contexts"] = [{"id": f"p{n}", "text": f"{n} passage " * 80} for n in range(20)]
    text = report_html(Views.of_file(write_lines(tmp_path / "many.jsonl", lines)))
    assert len(text.encode()) < 2_000_000
    shown = read_page(text).text
    assert "1,000 of 1,100 listed" in shown
    assert "for lack of room" in shown
    assert "not listed: 100 runs with better values" in shown


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></details><b>",
    "&lt;",
    "#x",
]


@settings(max_examples=10)
@given(text=st.one_of(st.sampled_from(HOSTILE), st.text(min_size=1, max_size=20)))
def test_no_text_changes_the_elements_of_the_file(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    def shapes(said: str) -> set[tuple[str, str]]:
        folder = tmp_path_factory.mktemp("hostile")
        facts = dict.fromkeys(
            ("query", "claim", "reason", "workflow", "session", "user", "model", "reference"), said
        )
        lines = [scored_line(n, value=0.1, **facts) for n in range(3)]
        for line in lines:
            line["contexts"] = [{"id": "p", "text": said, "source": said}]
            line["scores"]["faithfulness"]["judge"] = said
        return read_page(report_html(Views.of_file(write_lines(folder / "scored.jsonl", lines)))).shapes()

    assert shapes(text) <= shapes("Plain words.") | {("a", "data-row"), ("span", "title")}


def test_the_command_writes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write_lines(tmp_path / "scored.jsonl", incident(20)), tmp_path / "report.html"
    assert main(["report", str(source), "-o", str(out), "--compare", str(source)]) == 0
    assert re.fullmatch(r".*report\.html: 0\.\d\d MB\n", capsys.readouterr().out)
    assert "<h1>Compare</h1>" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-o", "{source}"], "is read or written already"),
        (["-o", "{folder}/none/report.html"], "cannot be written there"),
        (["-o", "{folder}/report.html", "--metric", "mrr"], "no run has a score of mrr; known: faithfulness"),
        ([], "Missing option"),
    ],
)
def test_wrong_use_is_one_line(
    args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_lines(tmp_path / "scored.jsonl", incident(20))
    assert main(["report", str(source), *(arg.format(source=source, folder=tmp_path) for arg in args)]) == 2
    assert said in capsys.readouterr().err
