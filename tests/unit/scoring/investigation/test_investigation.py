"""An investigation over a real store: what fell, since when, at which stage, where, and whom it leaves out."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from ragtrace.model import FAILURES, JudgeInfo, Passage, Pool, SeriesKey
from ragtrace.scoring import (
    NO_VERDICT,
    NoMetric,
    RunScore,
    StoreSource,
    TooFewScores,
    investigated,
    verdict_shares,
)
from ragtrace.scoring.investigation.lines import MEANINGS, lines, report
from ragtrace.stats import TwoPeriods
from tests import make

HOUR = 3_600.0
NOW = 1_800_000_000.0
BEGIN = NOW - 48 * HOUR
JUDGE = JudgeInfo(model="small", prompt_hash="0a1b2c3d")
SECRET = "the moon over Oslo"


def search(store, metric="faithfulness", **given):
    """Look for a fall in the two days until now."""
    return investigated(StoreSource(store), metric=metric, **{"before": BEGIN, "until": NOW} | given)


class Wall:
    at = NOW

    def __call__(self):
        return self.at


@pytest.fixture
def wall():
    return Wall()


@pytest.fixture
def store(tmp_path, wall):
    made = make.store(tmp_path / "store", wall=wall, uptime=lambda: 0.0)
    yield made
    made.close()


class Traffic:
    """Runs of two days, of which some fall from an hour on."""

    def __init__(self, store, wall, *, seed=0):
        self.store, self.wall, self.draw = store, wall, random.Random(seed)
        self.number = 0

    def add(self, hours, n, *, mean=0.9, tags=(), verdict=None, **facts):
        """Add runs that came so many hours ago, evenly over the hour."""
        for i in range(n):
            self.number += 1
            self.wall.at = NOW - hours * HOUR + i * HOUR / n
            record = make.record(
                n=self.number,
                **{"query": f"Where is {SECRET} number {self.number}?", "answer": "It is there.", "tags": tags}
                | facts,
            )
            scores = [self._score(record, "faithfulness", mean)]
            if verdict is not None:
                value = float(verdict in {"ok", "rightly_refused"})
                scores.append(make.score(record, "diagnosis", value, details={"verdict": verdict}, at=self.wall.at))
            self.store.emit(record, scores)
        self.wall.at = NOW

    def _score(self, record, metric, mean):
        value = min(max(self.draw.gauss(mean, 0.08), 0.0), 1.0)
        return make.score(record, metric, value, version="v1", at=self.wall.at, judge=JUDGE)


def fallen(store, wall, *, verdicts=True):
    """Fill a store in which the runs with the tag beta fall six hours ago."""
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        bad = hours <= 6
        for tags in (("beta",), ()):
            hurt = bad and bool(tags)
            verdict = ("lost_in_rerank" if hurt else "ok") if verdicts else None
            traffic.add(hours, 8, mean=0.5 if hurt else 0.9, tags=tags, verdict=verdict)


def test_the_slice_the_stage_and_the_time_are_found(store, wall):
    fallen(store, wall)
    found = search(store)
    assert found.is_fallen
    assert found.change.before.mean == pytest.approx(0.9, abs=0.02)
    assert found.change.window.mean == pytest.approx(0.7, abs=0.02)
    [beta] = found.explained.slices
    assert tuple(beta.slice) == ("tag", "beta")
    assert found.changed_at == found.since == pytest.approx(NOW - 6 * HOUR, abs=HOUR)
    assert found.change.window.n == sum(it.n_window for it in found.shares) == pytest.approx(96, abs=4)
    assert (found.verdict.verdict, found.verdict.stage) == ("lost_in_rerank", "rerank")
    assert found.verdict.share.before == pytest.approx(0.0, abs=0.01)
    assert len(found.examples) == 3
    assert {it.verdict for it in found.examples} == {"lost_in_rerank"}
    json.dumps(found.to_json(), allow_nan=False)


def test_the_lines_name_what_was_found_and_fit_a_terminal(store, wall):
    fallen(store, wall)
    found = search(store)
    said = list(report(found, lambda _: ["Where?" * 40], "ragtrace show store"))
    assert max(map(len, said)) <= 100
    text = "\n".join(said)
    for part in (
        "faithfulness fell by 0.1",
        "tag beta: all of the change",
        "reranking: lost_in_rerank grew",
        "Next",
    ):
        assert part in text
    assert found.examples[0].trace_id in text


def test_the_share_of_each_verdict_is_listed_and_the_changed_ones_are_marked(store, wall):
    fallen(store, wall)
    found = search(store, since=NOW - 6 * HOUR)
    rows = [line[10:] for line in report(found, lambda _: [], "show") if line[12:].startswith(("lost_in", "ok"))]
    assert [row.split()[:6] for row in rows] == [
        ["*", "lost_in_rerank", "0.0%", "0", "50.0%", "48"],
        ["*", "ok", "100.0%", "656", "50.0%", "48"],
    ]
    assert [it.verdict for it in found.shares] == ["lost_in_rerank", "ok"]


def test_the_stage_has_the_figures_of_its_row_in_the_lines_and_json(store, wall):
    fallen(store, wall)
    found = search(store, since=NOW - 6 * HOUR)
    [row] = [it for it in found.shares if it.verdict == "lost_in_rerank"]
    assert found.verdict.share == row
    assert found.to_json()["verdict"]["share"] == found.to_json()["shares"][0]
    said = "\n".join(report(found, lambda _: [], "show"))
    assert f"grew from 0.0% to 50.0% of the runs (+50.0%, {row.low:+.1%} to {row.high:+.1%})" in said
    assert f"+50.0% ({row.low:+.1%} to {row.high:+.1%})" in said


def test_the_share_of_a_verdict_never_grows_by_more_than_all_runs(store, wall):
    traffic = Traffic(store, wall)
    traffic.add(20, 20, verdict="ok")
    traffic.add(2, 20, mean=0.3, verdict="unsupported")
    found = search(store)
    assert found.verdict.verdict == "unsupported"
    assert 0.7 < found.verdict.share.low < found.verdict.share.high <= 1.0


def test_verdicts_are_listed_where_the_mean_stays_and_no_run_without_one_is_hidden(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        for n, verdict in ((6, "cut_from_prompt" if hours > 12 else "unsupported"), (13, "ok"), (1, None)):
            traffic.add(hours, n, verdict=verdict)
    found = search(store, since=NOW - 12 * HOUR)
    assert not found.is_fallen
    marked = {it.verdict: it.is_changed for it in found.shares}
    assert marked == {"cut_from_prompt": True, "unsupported": True, "ok": False, NO_VERDICT: False}
    text = "\n".join(report(found, lambda _: [], "show"))
    assert "* unsupported" in text
    assert "no verdict                    5.0%" in text
    assert sum(it.before for it in found.shares) == pytest.approx(1.0)


def test_runs_without_verdicts_have_no_table(store, wall):
    fallen(store, wall, verdicts=False)
    found = search(store)
    assert "Verdicts" not in "\n".join(report(found, lambda _: [], "show"))


def test_a_session_is_one_piece_of_evidence_for_a_share():
    def shares(turns):
        runs = [
            RunScore(
                trace_id="t", at=0.0, value=1.0, weight=2.0, cluster=str(n), key=SeriesKey("faithfulness"),
                verdict="ok" if n % 10 else "unsupported",
            )
            for n in range(100) for _ in range(turns)
        ]  # fmt: skip
        clusters = np.array([int(run.cluster) for run in runs])
        ones = np.ones(len(runs))
        scores = TwoPeriods(values=ones, weights=2.0 * ones, clusters=clusters, is_window=clusters >= 50)
        return verdict_shares(runs, scores)

    once, often = shares(1), shares(5)
    assert [it.n_window for it in often] == [5 * it.n_window for it in once] == [25, 225]
    for one, other in zip(once, often, strict=True):
        assert (other.low, other.high) == pytest.approx((one.low, one.high))


def test_every_failure_has_a_meaning_for_people():
    assert set(MEANINGS) == set(FAILURES)


def test_without_a_fall_nothing_is_explained(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        traffic.add(hours, 6, tags=("beta",) if hours % 2 else ())
    found = search(store, None)
    assert not found.is_fallen
    assert (found.explained.slices, found.verdict, found.changed_at) == ((), None, None)
    assert "nothing is shown to have fallen" in "\n".join(lines(found))


def test_a_fall_of_all_runs_is_everywhere(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        for tags in (("beta",), ()):
            traffic.add(hours, 6, mean=0.9 if hours > 12 else 0.7, tags=tags)
    found = search(store)
    assert found.is_fallen
    assert found.explained.slices == ()
    assert "everywhere" in "\n".join(lines(found))
    assert not found.has_verdicts


@pytest.mark.parametrize(("is_before", "cause"), [(False, "new"), (True, "gone")])
def test_a_part_that_one_period_lacks_is_new_or_gone(store, wall, is_before, cause):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        traffic.add(hours, 8, mean=0.6)
        if is_before == (hours > 12):
            traffic.add(hours, 8, mean=0.9 if is_before else 0.3, tags=("beta",))
    found = search(store, since=NOW - 12 * HOUR)
    [part] = found.explained.slices
    text = "\n".join(lines(found))
    means = "its mean was 0.8" if is_before else "its mean 0.3"
    shares = "50% of the runs before, none now" if is_before else "none of the runs before, 50% now"
    assert tuple(part.slice) == ("tag", "beta")
    assert means in text
    assert shares in text
    assert f"it is {cause}; without it the mean changed by" in text
    assert not any(other in text for other in ("more of it", "less of it", "mean none", "none;"))


@pytest.mark.parametrize("field", ["query", "answer"])
def test_the_length_of_a_question_is_a_part_and_that_of_an_answer_is_none(store, wall, field):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        for size, mean in ((40, 0.9), (400, 0.9 if hours > 12 else 0.5)):
            for i in range(8):
                traffic.add(hours, 1, mean=mean, **{field: f"{hours}-{size}-{i} " + "a" * (size + i)})
    found = search(store)
    assert found.is_fallen
    assert {it.slice.dimension for it in found.explained.slices} == (
        {"query_length"} if field == "query" else set()
    )


def test_without_a_part_of_twenty_runs_the_place_is_unknown_and_not_everywhere(store, wall):
    traffic = Traffic(store, wall)
    traffic.add(20, 25)
    traffic.add(2, 25, mean=0.3)
    found = search(store)
    assert (found.is_fallen, found.explained.tested) == (True, 0)
    text = "\n".join(lines(found))
    assert "unknown: no part of the traffic is large enough" in text
    assert "it needs 20 independent runs" in text
    assert "everywhere" not in text


def changed(store, wall, before, window, *, mean=0.7):
    """Fill a store whose runs have other facts in the window, and return the lines on them."""
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        for facts in (before if hours > 12 else window) * 5:
            traffic.add(hours, 2, mean=0.9 if hours > 12 else mean, **facts)
    found = search(store)
    json.dumps(found.to_json(), allow_nan=False)
    said = list(lines(found))
    first = next((i for i, line in enumerate(said) if line.startswith("Changed")), len(said))
    return [line[10:] for line in said[first:]]


WARNING = "   (it coincides with the change of the scores, and need not be its cause)"
OLD = {"model": "mini-1", "corpus": "v1", "tags": ("prompt:a", "web")}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"model": "mini-2"}, "model mini-1 -> mini-2"),
        ({"corpus": "v2"}, "data source v1 -> v2"),
        ({"tags": ("prompt:b", "web")}, "tag prompt:a -> prompt:b"),
        ({"tags": ("web",)}, "tag prompt:a: nearly all runs before, hardly any now"),
        (
            {"tags": ("prompt:a", "web", "beta")},
            "tag beta: hardly any runs before, nearly all now",
        ),
    ],
)
def test_a_fact_whose_value_was_replaced_is_told(store, wall, facts, said):
    assert changed(store, wall, [OLD], [OLD | facts]) == [said, WARNING]


@pytest.mark.parametrize(("share", "is_told"), [(9, True), (8, False)])
def test_a_value_is_replaced_from_nine_tenths_of_the_runs_on(store, wall, share, is_told):
    new = OLD | {"model": "mini-2"}
    said = changed(store, wall, [OLD], [new] * share + [OLD] * (10 - share))
    assert said == (["model mini-1 -> mini-2", WARNING] if is_told else [])


def test_where_nothing_fell_no_replaced_fact_is_told(store, wall):
    assert changed(store, wall, [OLD], [OLD | {"model": "mini-2"}], mean=0.9) == []


def test_the_metric_that_fell_is_chosen(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        traffic.add(hours, 6, mean=0.9 if hours > 12 else 0.7)
        for i in range(6):
            wall.at = NOW - hours * HOUR + i
            record = make.record(n=10_000 + hours * 10 + i)
            store.emit(record, [make.score(record, "mrr", 0.8 + 0.01 * i, at=wall.at)])
    wall.at = NOW
    assert search(store, None).key.metric == "faithfulness"


def rising(store, wall, *, faithfulness=0.9, rises=True, every=4):
    """Fill a store whose later runs invent in some answers, and have another faithfulness."""
    traffic = Traffic(store, wall)
    for number in range(240):
        wall.at, is_late = NOW - (24 - number / 10) * HOUR, number >= 120
        record = make.record(n=number)
        invents = float(rises and is_late and number % every == 0)
        scores = [
            traffic._score(record, "faithfulness", faithfulness if is_late else 0.9),
            make.score(record, "invented_specifics", invents, at=wall.at, judge=JUDGE),
            make.score(record, "answer_relevancy", 0.5 + 0.1 * (number % 5), at=wall.at, judge=JUDGE),
        ]
        store.emit(record, scores)
    wall.at = NOW


NAMES = ["faithfulness", "answer_relevancy", "invented_specifics"]


def both_ways(store):
    """Return what is found without a metric: since a time, and since the surest step."""
    return [search(store, None, since=NOW - 12 * HOUR), search(store, None)]


def test_a_rise_alone_of_a_metric_where_less_is_better_is_chosen(store, wall):
    rising(store, wall)
    for found in both_ways(store):
        assert (found.key.metric, found.is_fallen, found.also) == ("invented_specifics", True, ())
        assert "also worse" not in "\n".join(lines(found))


@pytest.mark.parametrize(("faithfulness", "first", "other"), [(0.82, *NAMES[::-2]), (0.5, *NAMES[::2])])
def test_the_surest_change_for_the_worse_is_chosen_and_the_other_is_named(store, wall, faithfulness, first, other):
    rising(store, wall, faithfulness=faithfulness, every=2)
    for found in both_ways(store):
        assert found.key.metric == first
        [also] = found.also
        assert also.metric == other
        told = f"also worse: {other} {also.before:.3f} -> {also.window:.3f}; see --metric {other}"
        assert told in "\n".join(lines(found))
        assert json.loads(json.dumps(found.to_json()))["also"][0]["metric"] == other


def test_where_none_changed_for_the_worse_none_is_named(store, wall):
    rising(store, wall, rises=False)
    for found in both_ways(store):
        assert (found.is_fallen, found.also) == (False, ())


def test_what_is_shown_of_a_metric_that_was_asked_for_is_shown_without_asking(store, wall):
    """Every metric is judged by itself: another that stays does not make a small rise less sure."""
    for number in range(80):
        wall.at = NOW - (80 - number) * HOUR / 10
        record = make.record(n=number)
        invents = float(number >= 40 and number % 4 == 0)
        store.emit(
            record,
            [
                make.score(record, name, value, at=wall.at, judge=JUDGE)
                for name, value in (("faithfulness", 0.9), ("invented_specifics", invents))
            ],
        )
    wall.at = NOW
    asked, usual = search(store, "invented_specifics"), search(store, None)
    assert asked.is_fallen
    assert usual == asked


def test_scores_of_another_judge_are_not_mixed(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        traffic.add(hours, 6)
    for i in range(30):
        wall.at = NOW - HOUR + i
        record = make.record(n=20_000 + i)
        store.emit(record, [make.score(record, "faithfulness", 0.1, version="other", at=wall.at, judge=JUDGE)])
    wall.at = NOW
    found = search(store)
    assert found.key.version == "v1"
    assert not found.is_fallen


def test_the_versions_of_a_judge_are_never_joined_and_the_fall_under_the_newer_is_found(store, wall):
    """The newer version is stricter by .3, which is no fall; the answers themselves fell twelve hours ago."""
    draw = random.Random(5)
    for number in range(1, 461):
        hours = 46.0 - number / 10.0
        wall.at = NOW - hours * HOUR
        version, mean = ("old", 0.95) if hours > 30 else ("new", 0.65 if hours > 12 else 0.4)
        record = make.record(n=number)
        value = min(max(draw.gauss(mean, 0.1), 0.0), 1.0)
        store.emit(record, [make.score(record, value=value, version=version, at=wall.at, judge=JUDGE)])
    wall.at = NOW
    found = search(store)
    assert (found.key.version, found.is_fallen) == ("new", True)
    assert found.change.before.mean == pytest.approx(0.65, abs=0.03)
    assert found.changed_at == pytest.approx(NOW - 12 * HOUR, abs=HOUR)
    assert found.change.before.n + found.change.window.n == 300
    calm = search(store, until=NOW - 14 * HOUR)
    assert (calm.key.version, calm.is_fallen) == ("new", False)


def test_a_part_that_fell_alone_is_found_and_named_where_all_together_hardly_moved(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        traffic.add(hours, 46, mean=0.9)
        traffic.add(hours, 4, mean=0.9 if hours > 6 else 0.65, tags=("beta",))
    found = search(store)
    assert found.is_fallen
    assert found.change.value == pytest.approx(-0.02, abs=0.01)
    assert [tuple(it.slice) for it in found.explained.slices] == [("tag", "beta")]
    assert found.changed_at == pytest.approx(NOW - 6 * HOUR, abs=HOUR)


def test_a_fall_within_the_tolerance_is_a_movement_that_may_be_chance(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        traffic.add(hours, 30, mean=0.85 if hours > 12 else 0.84, verdict="ok")
    found = search(store)
    said = list(lines(found))
    assert not found.is_fallen
    assert said[0] == "What      faithfulness: nothing is shown to have fallen"
    assert said[1].endswith("; this may be chance")
    assert len(said) == 4
    shown = found.to_json()
    assert (shown["changed_at"], shown["since"]) == (None, found.since)
    assert BEGIN < found.since < NOW
    assert "Verdicts  " in "\n".join(report(found, lambda _: [], "show"))


SECOND = JudgeInfo(model="openai:m", prompt_hash="0a1b2c3d")


def two_judges(store, wall, falls):
    """Fill a store in which one judge scores all runs, and another, of the same weight in all, one in ten."""
    number = 0
    for hours in range(47, 0, -1):
        for i in range(40):
            number += 1
            wall.at = NOW - hours * HOUR + i
            record = make.record(n=number)
            shared = {"metric": "faithfulness", "at": wall.at}
            for judge, version, share in ((JUDGE, "first", 1), (SECOND, "second", 10)):
                if number % share == 0:
                    mean = 0.6 if hours <= 12 and version == falls else 0.9
                    weight = share * (1.05 if version != falls else 1.0)
                    value = min(max(random.Random(number).gauss(mean, 0.1), 0.0), 1.0)
                    given = {"version": version, "judge": judge, "weight": weight}
                    store.emit(record, [make.score(record, value=value, **given, **shared)])
    wall.at = NOW


@pytest.mark.parametrize("falls", ["first", "second"])
def test_of_two_judges_the_one_whose_scores_fell_is_looked_at(store, wall, falls):
    two_judges(store, wall, falls)
    found = search(store)
    assert (found.is_fallen, found.key.version) == (True, falls)
    judge, other = (JUDGE, SECOND) if falls == "first" else (SECOND, JUDGE)
    assert f"as {judge.model} scored it; shown less surely: {other.model}" in "\n".join(lines(found))
    json.dumps(found.to_json(), allow_nan=False)


def test_two_scores_of_a_run_are_both_read_where_a_page_ends_between_them(store, wall):
    for number in range(1, 502):
        wall.at = NOW - number
        record = make.record(n=number)
        versions = ("a", "b") if number > 1 else ("a",)
        for version in versions:
            store.emit(record, [make.score(record, "faithfulness", 0.5, version=version, at=wall.at, judge=JUDGE)])
    assert len(StoreSource(store).scores("faithfulness", 0.0, NOW)) == 1_001


def test_runs_of_before_the_facts_were_kept_are_not_compared_by_them(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        hurt = hours <= 12
        traffic.add(hours, 6, mean=0.7 if hurt else 0.9, tags=("beta", "all"))
        traffic.add(hours, 6, mean=0.9, tags=("all",))
    with store._file.transaction() as connection:
        connection.execute("UPDATE runs SET tags = NULL, query_chars = NULL WHERE at < ?", (NOW - 12 * HOUR,))
    found = search(store)
    assert found.is_fallen
    assert not found.has_facts
    assert found.explained.slices == ()
    assert "older runs lack" in "\n".join(lines(found))
    assert found.replaced == ()


TOO_FEW = "scores are too few: 20 of different sessions or questions are needed in the window and before it"


def test_one_session_is_one_run(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 12, -1):
        traffic.add(hours, 6)
    traffic.add(3, 60, mean=0.1, session="one")
    assert not search(store).is_fallen
    with pytest.raises(TooFewScores, match=f"270 {TOO_FEW}; choose another --since, or wait"):
        search(store, since=NOW - 12 * HOUR)


def test_too_few_scores_and_none_are_said(store, wall):
    with pytest.raises(NoMetric, match="no metric"):
        search(store, None)
    traffic = Traffic(store, wall)
    traffic.add(20, 30)
    traffic.add(2, 5)
    with pytest.raises(TooFewScores, match=f"35 {TOO_FEW}"):
        search(store)
    with pytest.raises(NoMetric, match=r"mrr: there is no score .* that has scores: faithfulness"):
        search(store, "mrr")


def test_only_the_newest_scores_of_a_period_are_read_and_only_of_the_workflow(store, wall):
    traffic = Traffic(store, wall)
    traffic.add(20, 30, workflow="a")
    traffic.add(2, 30, workflow="b")
    source = StoreSource(store, most=10)
    read = source.scores("faithfulness", BEGIN, NOW)
    assert [int(run.trace_id, 16) for run in read] == list(range(60, 50, -1))
    assert len(StoreSource(store, workflow="a").scores("faithfulness", BEGIN, NOW)) == 30


def test_sources_and_lengths_are_slices_and_no_text_is_kept(store, wall):
    pool = Pool(stage="retrieved", passages=(Passage(id="p", text=SECRET, rank=1, source="wiki"),))
    Traffic(store, wall).add(2, 3, pools=(pool,), corpus="faq", model="m", environment="prod", answer=SECRET)
    [run, *_] = StoreSource(store).scores("faithfulness", 0.0, NOW)
    assert {tuple(it) for it in run.slices} == {
        ("workflow", "rag"), ("environment", "prod"), ("corpus", "faq"), ("model", "m"), ("language", "en"),
        ("k", "1"), ("source", "wiki"),
    }  # fmt: skip
    assert run.query_chars == len(f"Where is {SECRET} number 3?")
    store.close()
    assert SECRET.encode() not in store.path.read_bytes()


def test_kinds_of_questions_are_slices_once_all_runs_have_one(store, wall):
    traffic = Traffic(store, wall)
    for hours in range(47, 0, -1):
        for is_topic in (True, False):
            store.kind_of = {True: lambda _record: "7", False: lambda _record: "2"}[is_topic]
            traffic.add(hours, 6, mean=0.6 if is_topic and hours <= 12 else 0.9)
    found = search(store)
    assert [tuple(it.slice) for it in found.explained.slices] == [("kind", "7")]
    with store._file.transaction() as connection:
        connection.execute("UPDATE runs SET kind = NULL WHERE id < 100")
    assert search(store).explained.slices == ()
