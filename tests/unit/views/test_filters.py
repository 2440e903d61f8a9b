"""Filters choose runs, and their form in a URL is exact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrace.errors import InputError
from ragtrace.views import NewRating, RunFilter, Views, filter_from_query, filter_to_query
from tests import make
from tests.unit.views.scored_runs import START, emit, line, open_store, reading, write

NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.none() | st.text(min_size=1, max_size=40).map(str.strip).filter(bool)
FILTERS = st.builds(
    RunFilter,
    metric=NAMES,
    order=st.sampled_from(["worst", "best", "newest", "oldest"]),
    low=st.none(),
    high=NUMBERS,
    verdict=st.sampled_from([None, "failed", "ok", "lost_in_rerank"]),
    stage=st.sampled_from([None, "retrieval", "model"]),
    workflow=NAMES,
    model=NAMES,
    tag=NAMES,
    session=NAMES,
    state=st.sampled_from([None, "ok", "na", "error", "missed"]),
    since=NUMBERS,
    until=NUMBERS,
    text=st.none() | st.text(min_size=1, max_size=40),
    labelled=st.sampled_from([None, True, False]),
    sign=st.sampled_from([None, "any", "question_guessed"]),
)


@given(FILTERS)
def test_a_filter_survives_its_url(which):
    assert filter_from_query(filter_to_query(which)) == which


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"low": "x"}, "low must be a number, got 'x'"),
        ({"since": "inf"}, "since must be a number"),
        ({"verdict": "bad"}, "verdict must be one of failed, not_retrieved"),
        ({"low": "0.9", "high": "0.1"}, "low 0.9 is above high 0.1; exchange them"),
        ({"sign": "guessed"}, "sign must be one of any, question_guessed, .*, got 'guessed'"),
        ({"text": "x" * 501}, "text may have 500 characters, got 501"),
    ],
)
def test_a_wrong_field_is_one_clear_line(query, said):
    with pytest.raises(InputError, match=said):
        filter_from_query(query)


def test_unknown_and_empty_fields_are_ignored():
    assert filter_from_query({"page": "2", "metric": "", "order": ""}) == RunFilter()


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    found = Views.of_file(write(tmp_path_factory.mktemp("v") / "a.jsonl", LINES))
    found.rate([NewRating(run_id="3", value=1.0)])
    found._looked_at = 0.0
    return found


LINES = [line(n) for n in range(40)]


def value(it):
    return it["scores"]["faithfulness"]["value"]


@pytest.mark.parametrize(
    ("which", "is_chosen"),
    [
        (RunFilter(low=0.3, high=0.6), lambda it: 0.3 <= value(it) <= 0.6),
        (RunFilter(verdict="failed"), lambda it: value(it) < 0.5),
        (RunFilter(stage="model"), lambda it: value(it) < 0.5),
        (RunFilter(state="missed"), lambda it: value(it) < 0.5),
        (RunFilter(state="error"), lambda _it: False),
        (RunFilter(workflow="shop"), lambda it: it["workflow"] == "shop"),
        (RunFilter(workflow="none"), lambda _it: False),
        (RunFilter(tag="web"), lambda it: it["tags"] == ["web"]),
        (RunFilter(session="s4"), lambda it: it["session"] == "s4"),
        (
            RunFilter(since=START + 602.0, until=START + 1_202.0),
            lambda it: 10 <= (it["ended"] - START - 2) / 60 < 20,
        ),
        (RunFilter(text="REFUND 7 "), lambda it: it["id"] == "r7"),
        (RunFilter(text="order 8 is"), lambda it: it["id"] == "r8"),
        (RunFilter(text="r12"), lambda it: it["id"] == "r12"),
        (RunFilter(labelled=True), lambda it: it["id"] == "r2"),
    ],
)
def test_a_filter_chooses_exactly_its_runs(views, which, is_chosen):
    found = views.runs(which, size=100)
    assert {it.id for it in found.lines} == {str(n) for n, it in enumerate(LINES, 1) if is_chosen(it)}
    assert found.count == len(found.lines) == views.overview(which).runs


SIGNED = {
    "none": None,
    "sure": reading(),
    "guessed": reading("question_guessed", "tool_unused"),
    "text of a tool beside others": reading("tool_text_guessed"),
    "text of a tool alone": reading("tool_text_guessed", how="guess"),
}


@pytest.mark.parametrize("kind", ["file", "store", "store without texts"])
@pytest.mark.parametrize(
    ("sign", "names"),
    [
        ("any", {"guessed", "text of a tool alone"}),
        ("question_guessed", {"guessed"}),
        ("tool_unused", {"guessed"}),
        ("tool_text_guessed", {"text of a tool beside others", "text of a tool alone"}),
        ("follows_answer", set()),
    ],
)
def test_signs_are_known_of_every_run(tmp_path, kind, sign, names):
    lines = [line(n, **({} if it is None else {"reading": it})) for n, it in enumerate(SIGNED.values())]
    if kind == "file":
        views = Views.of_file(write(tmp_path / "a.jsonl", lines))
    else:
        path = tmp_path / "s.sqlite"
        store = open_store(path) if kind == "store" else make.store(path)
        for it in lines:
            emit(store, it)
        views = Views.of_store(path)
    order = {it.id: place for place, it in enumerate(views.runs(RunFilter(order="oldest")).lines)}
    found = {list(SIGNED)[order[it.id]] for it in views.runs(RunFilter(sign=sign)).lines}
    assert found == names
    assert dict(views.choices().signs) == {"question_guessed": 1, "tool_unused": 1, "tool_text_guessed": 2}
    assert (views.overview().signed, views.overview(RunFilter(sign=sign)).runs) == (2, len(names))


def test_orders_follow_the_direction_of_the_metric(views):
    worst = [it.value for it in views.runs(RunFilter()).lines]
    assert worst == sorted(worst)
    down = [it.value for it in views.runs(RunFilter(metric="contradicted_rate")).lines]
    assert down == sorted(down, reverse=True)
    assert [it.id for it in views.runs(RunFilter(order="newest")).lines][:2] == ["40", "39"]
    assert [it.id for it in views.runs(RunFilter(order="oldest")).lines][:2] == ["1", "2"]


def test_pages_hold_each_run_once_and_neighbours_follow_the_list(views):
    pages = [views.runs(RunFilter(), page=page, size=15) for page in (1, 2, 3, 9)]
    ids = [it.id for page in pages[:3] for it in page.lines]
    assert sorted(ids, key=int) == [str(n) for n in range(1, 41)]
    assert pages[3].page == 3
    assert views.neighbours(RunFilter(), ids[15]) == (ids[14], ids[16])
    assert views.neighbours(RunFilter(), ids[0]) == (None, ids[1])
    assert views.neighbours(RunFilter(), "99") == (None, None)
    assert views.run("99") is None
    assert pages[0].lines[0].claim.startswith("not supported (0.10): Order ")
