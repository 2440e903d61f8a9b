"""Eight surfaces say the same of a run: its verdict, the claim against it, and whether its answer is good."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from ragtrace.cli import main
from ragtrace.judges import LLMJudge, OverlapJudge, ScriptedChat
from ragtrace.metrics import EvalContext, evaluate, select
from ragtrace.model import (
    FAILURES,
    INVENTED,
    STAGES,
    VERDICTS,
    Labels,
    MetricResult,
    Pool,
    RagRecord,
    Reading,
    Sign,
    record_to_json,
    score_to_json,
)
from ragtrace.sinks import ConsoleSink
from ragtrace.views import Views
from tests import make
from tests.ui.scored import BEGIN, client_of, write_lines
from tests.unit.views.scored_runs import emit, open_store

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest_plugins = ("pytester",)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

METRICS = ("faithfulness", "invented_specifics", "no_answer", "context_sufficiency", "diagnosis")
SHOWN_BY = "mrr"
"""A metric of the value 0 in each line, so that every list holds every run."""
TEXTS = {
    "fee": "Cancelling a plan costs a fee of 40 euros. The fee is due within 14 days of the letter.",
    "door": "The front door of the shop opens at nine. It is locked at six in the evening.",
    "tea": "Tea is sold in bags of 100 grams. The bags are made of paper.",
}
TRUE = "Cancelling a plan costs a fee of 40 euros."
LONG = f"{TEXTS['fee']} {TEXTS['door']} Wombats sleep beside frozen rivers."
NAMED = "Cancelling a plan costs a fee of 40 euros. Pay it to Quillfeather."
LABELS = Labels(grades={"fee": 5})


def said(*claims: str, sufficient: bool = True, attempted: bool = True, **more: object) -> dict[str, object]:
    """Return the reply of a language model; a claim ends with the verdict on it, where that is not supported."""
    rows = [claim.partition(" -> ") for claim in claims]
    verdicts = [
        {"id": i, "verdict": verdict or "supported", "sources": [1] if verdict != "not_supported" else []}
        for i, (_, _, verdict) in enumerate(rows, start=1)
    ]
    return {
        "sufficient": sufficient,
        "attempted": attempted,
        "noncommittal": False,
        "claims": [text for text, _, _ in rows],
        "verdicts": verdicts,
        "citations": [],
    } | more


def pools(retrieved: str, reranked: str | None = None, used: str | None = None) -> tuple[Pool, ...]:
    stages = {"retrieved": retrieved, "reranked": reranked, "used": used}
    return tuple(
        make.pool(*(TEXTS[it] for it in names.split()), ids=names.split(), stage=stage)  # type: ignore[arg-type]
        for stage, names in stages.items()
        if names is not None
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run, the judge's replies (none: the offline judge), and what every surface must say.

    Attributes:
        word: of the verdict's colour.
        claim: the worst claim or specific with its verdict; "" for none.
    """

    verdict: str
    word: str
    claim: str = ""
    answer: str = TRUE
    replies: tuple[object, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def record(self, name: str) -> RagRecord:
        facts = {"pools": pools("fee door"), **self.given}
        number = [*CASES].index(name)
        return RagRecord(
            id=name,
            trace_id=f"{number + 1:032x}",
            query=f"What does cancelling {name} cost?",
            answer=self.answer,
            ended=BEGIN + number,
            session=f"session {number}",
            **facts,
        )

    async def results(self, name: str) -> list[MetricResult]:
        judge = LLMJudge(ScriptedChat(self.replies), grade_cache="off") if self.replies else OverlapJudge()
        return await evaluate(select(METRICS), EvalContext(self.record(name), judge=judge))


UNSEEN, WRONG = "Students pay half", "Cancelling is free"
CASES: dict[str, Case] = {
    "plan-a": Case(verdict="ok", word="good", replies=(said(TRUE),)),
    "plan-b": Case(verdict="ok", word="good"),
    "plan-c": Case(
        verdict="unsupported", word="bad", answer=LONG, claim="not supported: Wombats sleep beside frozen rivers."
    ),
    "plan-d": Case(
        verdict="unsupported",
        word="bad",
        claim=f"not supported: {UNSEEN}",
        replies=(said(*[TRUE] * 4, f"{UNSEEN} -> not_supported"),),
    ),
    "plan-e": Case(
        verdict="unsupported",
        word="bad",
        answer=NAMED,
        claim="invented: Quillfeather",
        replies=(said("It costs 40 euros", "One pays it to somebody"),),
    ),
    "plan-f": Case(
        verdict="contradicted",
        word="bad",
        claim=f"contradicted: {WRONG}",
        replies=(said(TRUE, f"{WRONG} -> contradicted"),),
    ),
    "plan-g": Case(
        verdict="rightly_refused",
        word="good",
        answer="I do not know.",
        replies=(said(sufficient=False, attempted=False),),
    ),
    "plan-h": Case(
        verdict="wrongly_refused", word="bad", answer="I do not know.", replies=(said(attempted=False),)
    ),
    "plan-i": Case(
        verdict="not_retrieved",
        word="bad",
        claim=f"not supported: {UNSEEN}",
        replies=(said(f"{UNSEEN} -> not_supported", sufficient=False),),
        given={"pools": pools("door tea"), "labels": LABELS},
    ),
    "plan-j": Case(
        verdict="lost_in_rerank",
        word="bad",
        answer="I do not know.",
        replies=(said(sufficient=False, attempted=False),),
        given={"pools": pools("door fee tea", "door tea"), "labels": LABELS},
    ),
    "plan-k": Case(
        verdict="cut_from_prompt",
        word="bad",
        claim=f"not supported: {UNSEEN}",
        replies=(said(f"{UNSEEN} -> not_supported", sufficient=False),),
        given={"pools": pools("door fee", "fee door", "door"), "labels": LABELS},
    ),
    "plan-l": Case(
        verdict="insufficient_but_answered",
        word="bad",
        claim=f"not supported: {UNSEEN}",
        replies=(said(TRUE, f"{UNSEEN} -> not_supported", sufficient=False),),
        given={"pools": pools("door tea"), "labels": Labels(grades={"door": 1})},
    ),
    "plan-m": Case(
        verdict="unknown_retrieval",
        word="bad",
        claim=f"contradicted: {WRONG}",
        replies=(said(f"{WRONG} -> contradicted", f"{UNSEEN} -> not_supported", sufficient=False),),
    ),
    "plan-n": Case(verdict="sufficient_but_ignored", word="bad", replies=(said(TRUE, noncommittal=True),)),
    "plan-o": Case(verdict="undetermined", word="unclear", answer="I do not know."),
    "plan-p": Case(verdict="undetermined", word="unclear", given={"outcome": "partial"}),
    "plan-q": Case(verdict="undetermined", word="unclear", answer="", given={"outcome": "error"}),
    "plan-r": Case(verdict="undetermined", word="unclear", replies=("no JSON", "again none")),
    "plan-s": Case(
        verdict="undetermined", word="unclear", answer="Die Kündigung kostet vierzig Euro, und das sofort."
    ),
    "plan-t": Case(verdict="undetermined", word="unclear", given={"pools": ()}),
    "plan-u": Case(verdict="wrongly_refused", word="bad", answer=" ", given={"labels": LABELS}),
    "plan-v": Case(
        verdict="undetermined",
        word="unclear",
        claim=f"not supported: {UNSEEN}",
        replies=(said(f"{UNSEEN} -> not_supported"),),
        given={"reading": Reading(signs=(Sign("evidence_unread", "prompt"),))},
    ),
}
NAMES = [*CASES]


class Said(NamedTuple):
    """What a surface says of a run."""

    verdict: str
    claim: str
    word: str


EXPECTED = {name: Said(case.verdict, case.claim, case.word) for name, case in CASES.items()}


@cache
def results() -> dict[str, list[MetricResult]]:
    return {name: asyncio.run(case.results(name)) for name, case in CASES.items()}


def line(name: str) -> dict[str, Any]:
    """Return a line of a scored file, with the scores of real metrics and one of `SHOWN_BY`."""
    scores = {result.key: score_to_json(result) for result in results()[name]}
    shown: dict[str, Any] = {"state": "ok", "value": 0.0, "passed": None, "reason": None, "details": {}}
    return {
        **record_to_json(CASES[name].record(name)),
        "scores": {**scores, SHOWN_BY: {**shown, "judge": "labels", "version": "a1"}},
    }


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("standing") / "scored.jsonl", map(line, NAMES))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("standing") / "runs.sqlite"
    with closing(open_store(path)) as opened:
        for name in NAMES:
            emit(opened, line(name))
    return path


GOOD = re.compile(r"✓|\b(?:ok|rightly_refused|good|passe[sd]|green)\b")
_FAILURE = re.compile(rf"\b(?:{'|'.join(FAILURES)})\b")
_CLAIM = re.compile(r"(not supported|contradicted|invented)(?: \([\d.]+\))?: (\S.*)")


def in_text(text: str) -> Said:
    """Read the text that a surface prints of one run: the verdict it names, the first claim, and the word for it.

    A text says that an answer is good by a sound verdict or in so many words.
    """
    verdict = next((it for it in re.findall(r"\w+", text) if it in VERDICTS), "")
    claim = _CLAIM.search(text)
    words = [word for word, said in (("good", GOOD), ("bad", _FAILURE)) if said.search(text)]
    return Said(verdict, f"{claim[1]}: {claim[2].strip()}" if claim else "", "+".join(words) or "unclear")


def in_badge(html: str) -> tuple[str, str]:
    """Return the verdict and the colour of the first badge of a verdict in a part of a page."""
    found = re.search(
        r'<span class="(?P<kind>[\w ]+)">(?:<span[^>]*>(?P<sign>[✓✗])</span>\s*|\? )(?P<said>[\w ]+)', html
    )
    assert found is not None, html
    verdict = found["said"].strip().replace(" ", "_")
    colour = "good" if found["sign"] == "✓" else "bad" if "bad" in found["kind"].split() else "unclear"
    return verdict, colour


_BAD_ITEM = re.compile(
    r'<span class="badge bad"[^>]*><span aria-hidden="true">[✗≠]</span>([\w ]+?)(?: · support [\d.]+)?</span>'
    r'.*?<p class="text">([^<]*)</p>',
    re.DOTALL,
)


def in_page(html: str) -> Said:
    """Read the page of one run: the badge on top, and the first claim that is marked as bad."""
    verdict, colour = in_badge(html[html.index("<header") :] if "<header class=" in html else html)
    claim = _BAD_ITEM.search(html)
    says_good = colour == "good" or 'class="hidden-text"> passes' in html or 'answer <strong class="good"' in html
    word = colour if colour == "good" or not says_good else f"{colour}+good"
    return Said(verdict, f"{claim[1]}: {claim[2]}" if claim else "", word)


def in_row(html: str) -> Said:
    """Read the row of one run in a list."""
    verdict, colour = in_badge(html[html.index('data-label="verdict"') :])
    claim = re.search(r'<span class="claim">.*?</span> ([^<]*)</span>', html, re.DOTALL)
    found = _CLAIM.search(claim[1]) if claim else None
    word = colour if colour == "good" or " passes" not in html else f"{colour}+good"
    return Said(verdict, f"{found[1]}: {found[2].strip()}" if found else "", word)


def by_show(source: str, name: str, capsys: pytest.CaptureFixture[str]) -> Said:
    which = [CASES[name].record(name).trace_id] if source.endswith("sqlite") else ["--id", name]
    assert main(["show", source, *which]) == 0
    text = capsys.readouterr().out
    verdict = text.partition("\nVerdict\n")[2].partition("\n\n")[0].split(",")[0].splitlines()[0]
    claim = text.partition("\nBad claims\n")[2].partition("\n")[0]
    return in_text(f"{verdict}\n{claim}")


def blocks(text: str) -> dict[str, str]:
    """Return the lines of each run in a text where a line with its question stands first."""
    found: dict[str, str] = {}
    name = ""
    for one in text.splitlines():
        asked = re.search(r"cancelling (plan-\w) cost", one)
        if asked:
            name = asked[1]
        elif name and not one.strip():
            name = ""
        elif name:
            found[name] = f"{found.get(name, '')}{one}\n"
    return found


@pytest.mark.parametrize("kind", ["scored", "store"])
@pytest.mark.parametrize("name", NAMES)
def test_show(kind: str, name: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    assert by_show(str(request.getfixturevalue(kind)), name, capsys) == EXPECTED[name]


@pytest.mark.parametrize("kind", ["scored", "store"])
def test_worst(kind: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worst", str(request.getfixturevalue(kind)), "--metric", SHOWN_BY, "-n", "30"]) == 0
    found = blocks(capsys.readouterr().out)
    assert {name: in_text(text) for name, text in found.items()} == EXPECTED


@pytest.mark.parametrize("kind", ["scored", "store"])
def test_the_page_of_a_run_and_the_list(kind: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(kind)
    client = client_of(path)
    names = {
        name: str(number) if kind == "scored" else CASES[name].record(name).trace_id
        for number, name in enumerate(NAMES, start=1)
    }
    pages = {name: in_page(client.get(f"/runs/{run}").text.partition("<main")[2]) for name, run in names.items()}
    assert pages == EXPECTED
    rows = re.findall(r"<tr>.*?</tr>", client.get(f"/runs?metric={SHOWN_BY}").text, re.DOTALL)
    listed = {found[1]: in_row(row) for row in rows if (found := re.search(r"cancelling (plan-\w)", row))}
    assert listed == EXPECTED


def test_the_report(scored: Path, tmp_path: Path) -> None:
    assert main(["report", str(scored), "-o", str(tmp_path / "report.html"), "--metric", SHOWN_BY]) == 0
    html = (tmp_path / "report.html").read_text()
    runs = re.findall(r'<details class="panel whole".*?(?=<details class="panel whole"|</main>)', html, re.DOTALL)
    assert {re.search(r"cancelling (plan-\w)", run)[1]: in_page(run) for run in runs} == EXPECTED  # type: ignore[index]
    rows = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
    listed = {
        found[1]: in_row(row)
        for row in rows
        if 'data-label="verdict"' in row and (found := re.search(r"cancelling (plan-\w)", row))
    }
    assert listed == EXPECTED


def test_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink({"invented_specifics"})
    found = {}
    for name in NAMES:
        record = CASES[name].record(name)
        sink.emit(record, make.scores(record, *results()[name]))
        text = capsys.readouterr().err
        found[name] = in_text(text[text.index("diagnosis") :].replace(record.query, ""))
    assert found == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_investigate(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fall by nothing but copies of the run; each example says what the run's own page says."""
    copy, count = line(name), 40
    before = {**copy, "scores": {SHOWN_BY: {**copy["scores"][SHOWN_BY], "value": 1.0}}}
    lines = [
        {**(copy if n >= count else before), "id": f"r{n}", "trace_id": f"{n:032x}", "session": f"s{n}"}
        for n in range(2 * count)
    ]
    path = write_lines(tmp_path / "fall.jsonl", [{**it, "ended": BEGIN + n} for n, it in enumerate(lines)])
    assert main(["investigate", str(path), "--metric", SHOWN_BY]) == 0
    examples = capsys.readouterr().out.partition("Examples")[2].partition("\nNext")[0]
    parts = re.split(r"(?m)^\s*0\.00  ", examples)[1:]
    assert len(parts) == 3
    assert {in_text(part.replace(copy["query"], "")) for part in parts} == {EXPECTED[name]}


def test_pytest(scored: Path, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import json
        import pathlib
        import pytest

        LINES = pathlib.Path({str(scored)!r}).read_text().splitlines()

        @pytest.mark.parametrize("row", map(json.loads, LINES), ids=lambda row: row["id"])
        def test_run(row, ragtrace_eval):
            ragtrace_eval([row]).check({SHOWN_BY}=1.0)
        """
    )
    result = pytester.runpytest("-p", "no:asyncio", "--tb=short")
    result.assert_outcomes(failed=len(NAMES))
    text = re.sub(r"(?m)^E {3,7}", "", result.stdout.str())
    failures = text.partition("short test summary")[0].partition("= FAILURES =")[2]
    found = {name: in_text(block.partition("verdict")[2]) for name, block in blocks(failures).items()}
    assert found == EXPECTED


@pytest.mark.parametrize("kind", ["scored", "store"])
async def test_mcp(kind: str, request: pytest.FixtureRequest) -> None:
    from ragtrace.mcp import build_server

    path = request.getfixturevalue(kind)
    views = Views.of_file(path) if kind == "scored" else Views.of_store(path)
    found, listed = {}, {}
    async with mcp.Client(build_server(views, has_content=True)) as client:
        page = await client.call_tool("worst_runs", {"metric": SHOWN_BY, "count": 50})
        for it in page.structured_content["runs"]:  # type: ignore[index]
            name = re.search(r"plan-\w", it["question"])[0]  # type: ignore[index]
            claim = in_text(it["worst_claim"] or "").claim
            listed[name] = Said(it["verdict"], claim, it["standing"])
            run = (await client.call_tool("run", {"id": it["id"]})).structured_content
            bad = [c for c in run["claims"] if c["verdict"] != "supported"]  # type: ignore[index]
            said_of_it = f"{bad[0]['verdict'].replace('_', ' ')}: {bad[0]['text']}" if bad else ""
            found[name] = Said(run["verdict"], said_of_it, run["standing"])  # type: ignore[index]
    assert found == EXPECTED
    assert listed == EXPECTED


def test_a_run_that_is_not_good_is_called_good_nowhere(scored: Path) -> None:
    """Its mean passes, and yet no page says that it passes or that the judge calls the answer good."""
    (name,) = [name for name, case in CASES.items() if case.answer == LONG]
    scores = line(name)["scores"]
    assert scores["faithfulness"]["passed"] is True
    assert scores["diagnosis"]["value"] == 0.0
    html = client_of(scored).get(f"/runs/{NAMES.index(name) + 1}?rate=faithfulness").text
    assert "the judge calls this answer" not in html
    assert "and yet the answer is not called good: not supported" in html
    good = client_of(scored).get("/runs/2?rate=faithfulness").text
    assert 'the judge calls this answer <strong class="good">good</strong>' in good


def test_worst_keeps_a_bad_run_of_the_best_value(scored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All its claims are supported, and a number stands in no context."""
    (name,) = [name for name, case in CASES.items() if case.claim.startswith(INVENTED)]
    assert line(name)["scores"]["faithfulness"]["value"] == 1.0
    assert main(["worst", str(scored)]) == 0
    text = capsys.readouterr().out
    assert in_text(blocks(text)[name]) == EXPECTED[name]
    assert "plan-a" not in text, "a sound run of the best value is none of the worst"


def test_the_scores_of_two_judges_that_disagree_call_no_answer_good() -> None:
    from ragtrace.model import standing_of

    ok, bad = line("plan-a")["scores"], line("plan-d")["scores"]
    found = standing_of({**ok, "faithfulness": bad["faithfulness"]})
    assert (found.verdict, found.word) == ("ok", "unclear")
    assert standing_of({"faithfulness": bad["faithfulness"]}).word == "bad"
    assert standing_of({"faithfulness": ok["faithfulness"]}).word is None


def test_the_cases_are_many_and_of_each_verdict() -> None:
    assert len(CASES) >= 20
    assert {case.verdict for case in CASES.values()} == {*VERDICTS}
    assert {*STAGES} == {*VERDICTS}
