"""Grades that are kept: what is asked for again, what is shared, what a file outlives, and how a bad file fails."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from typing import TYPE_CHECKING

import pytest

from ragtrace.errors import ConfigError, JudgeIncomplete
from ragtrace.judges import (
    CachedGrade,
    GradeFile,
    GradeLru,
    LLMJudge,
    ScriptedChat,
    grade_key,
    make_grade_cache,
    text_key,
    universe_key,
)
from tests import make

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ragtrace.model import RagRecord


def grades(*values: int) -> dict[str, object]:
    return {"grades": [{"id": n, "grade": value} for n, value in enumerate(values, start=1)]}


def record(*texts: str, **more: object) -> RagRecord:
    return make.record(**{"query": "Where?", "pools": (make.pool(*texts, stage="retrieved"),)} | more)


def grade(n: int, universe: str = "u", value: int = 3) -> CachedGrade:
    return CachedGrade(
        key=grade_key("q", f"{universe}{n}", "r", "j"),
        grade=value,
        universe=universe_key(universe, "", "r", "j"),
        passage=text_key(str(n)),
    )


@pytest.fixture
def file(tmp_path: Path) -> Iterator[GradeFile]:
    cache = GradeFile(tmp_path / "grades.sqlite")
    yield cache
    cache.close()


@pytest.mark.parametrize("form", ["memory", "file"])
async def test_an_identical_passage_costs_nothing_and_only_the_unseen_are_asked(form: str, tmp_path: Path) -> None:
    cache = GradeLru() if form == "memory" else GradeFile(tmp_path / "grades.sqlite")
    chat = ScriptedChat([grades(4, 4), grades(2)])
    judge = LLMJudge(chat, grade_cache=cache)
    first = await judge.grades(record("a", "b"))
    again = await judge.grades(record("a", "b", query=" Where? "))
    assert (first.cached, again.cached, again.usage.llm_calls, again.usage.input_tokens) == (0, 2, 0, 0)
    assert again.grades == first.grades
    more = await judge.grades(record("a", "new", "b"))
    assert (more.cached, more.usage.llm_calls, more.grades) == (2, 1, {"p1": 4, "p2": 2, "p3": 4})
    assert '"new"' in chat.prompts[-1].user
    assert '"a"' not in chat.prompts[-1].user
    await judge.aclose()


async def test_another_query_text_rubric_model_seed_or_batch_form_is_another_grade() -> None:
    cache = GradeLru()
    chat = ScriptedChat(always=grades(4))
    judge = LLMJudge(chat, grade_cache=cache)
    await judge.grades(record("a"))
    others = [
        (judge, record("A")),
        (judge, record("a", query="Who?")),
        (judge.with_seed(43), record("a")),
        (LLMJudge(chat, grade_cache=cache, batch_size=1), record("a")),
        (LLMJudge(ScriptedChat(always=grades(4), name="other"), grade_cache=cache), record("a")),
        (LLMJudge(ScriptedChat(always=grades(3)), grade_cache=cache, scale="umbrela"), record("a")),
        (LLMJudge(chat, grade_cache="off"), record("a")),
    ]
    for other, asked in others:
        assert (await other.grades(asked)).usage.llm_calls == 1
    assert (await judge.grades(record("a"))).usage.llm_calls == 0


async def test_what_was_graded_before_a_failure_is_kept() -> None:
    bad = {"grades": []}
    chat = ScriptedChat([grades(*[3] * 10), bad, bad, grades(5)])
    judge = LLMJudge(chat)
    asked = record(*[f"text {n}" for n in range(11)])
    with pytest.raises(JudgeIncomplete):
        await judge.grades(asked)
    again = await judge.grades(asked)
    assert (again.cached, again.usage.llm_calls, sorted(again.grades.values())) == (10, 1, [3] * 10 + [5])


async def test_coroutines_that_ask_at_once_both_get_their_grades(file: GradeFile) -> None:
    judge = LLMJudge(ScriptedChat(always=grades(4)), grade_cache=file)
    found = await asyncio.gather(*(judge.grades(record("a")) for _ in range(8)))
    assert [verdict.grades for verdict in found] == [{"p1": 4}] * 8
    assert file.facts().labels == 1


async def test_a_label_set_grows_with_its_version_and_stays_when_frozen(file: GradeFile) -> None:
    judge = LLMJudge(ScriptedChat([grades(5), grades(4), grades(1)]), grade_cache=file)
    await judge.grades(record("a"))
    before = await judge.labelled(record(query="Where?"))
    await judge.grades(record("a", "b"))
    after = await judge.labelled(record())
    assert before is not None
    assert after is not None
    assert (len(before.grades), len(after.grades)) == (1, 2)
    assert after.version > before.version
    assert after.grown_at >= before.grown_at
    frozen = LLMJudge(ScriptedChat(), grade_cache=GradeFile(file.path, frozen=before.version))
    assert (await frozen.labelled(record())).grades == before.grades  # type: ignore[union-attr]
    assert (await frozen.grades(record("a", "b"))).cached == 2
    await frozen.aclose()


async def test_labels_of_another_corpus_are_no_part_of_the_universe(file: GradeFile) -> None:
    judge = LLMJudge(ScriptedChat([grades(5), grades(4)]), grade_cache=file)
    await judge.grades(record("a", corpus="one"))
    await judge.grades(record("b", corpus="two"))
    await judge.grades(record("a", corpus="two"))  # known, and so free; but now a label of this corpus too
    found = await judge.labelled(record(corpus="two"))
    assert found is not None
    assert sorted(found.grades.values()) == [4, 5]


async def test_the_memory_forgets_what_was_not_used_for_longest() -> None:
    cache = GradeLru(max_grades=2)
    await cache.put([grade(1), grade(2)])
    await cache.get([grade(1).key])
    await cache.put([grade(3)])
    assert set(await cache.get([grade(n).key for n in (1, 2, 3)])) == {grade(1).key, grade(3).key}


async def test_a_file_at_its_bound_forgets_whole_queries_that_grew_longest_ago(tmp_path: Path) -> None:
    cache = GradeFile(tmp_path / "grades.sqlite", max_bytes=65_536)
    for universe in range(60):
        await cache.put([grade(n, f"u{universe}") for n in range(20)])
    sizes = []
    for universe in range(60):
        found = await cache.labels(universe_key(f"u{universe}", "", "r", "j"))
        sizes.append(0 if found is None else len(found.grades))
    assert set(sizes) == {0, 20}
    assert sizes == sorted(sizes)
    cache.close()


def _put(path: Path, start: int) -> None:
    cache = GradeFile(path)
    for n in range(start, start + 25):
        asyncio.run(cache.put([grade(n), grade(1_000)]))
    cache.close()


@pytest.mark.slow
def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "grades.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_put, args=(path, start)) for start in (0, 25)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert GradeFile(path).facts().labels == 51


def test_a_forked_child_opens_the_file_anew(tmp_path: Path) -> None:
    cache = GradeFile(tmp_path / "grades.sqlite")
    asyncio.run(cache.put([grade(1)]))
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: asyncio.run(cache.put([grade(2)])))
    child.start()
    child.join(60)
    asyncio.run(cache.put([grade(3)]))
    assert (child.exitcode, cache.facts().labels) == (0, 3)
    cache.close()


def test_the_file_is_private_and_holds_no_text(tmp_path: Path) -> None:
    cache = GradeFile(tmp_path / "grades.sqlite")
    judge = LLMJudge(ScriptedChat([grades(4)]), grade_cache=cache)
    asyncio.run(judge.grades(record("a secret passage", query="a secret query")))
    asyncio.run(judge.aclose())
    assert (cache.path.stat().st_mode & 0o777) == 0o600
    assert all(b"secret" not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("broken", ["garbage", "foreign", "newer"])
def test_a_file_of_something_else_is_refused_and_left_alone(broken: str, tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    if broken == "garbage":
        path.write_bytes(b"these are my holiday notes, " * 100)
    else:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE mine (a)" if broken == "foreign" else "PRAGMA user_version = 9")
        db.close()
    with pytest.raises(ConfigError, match="grade cache"):
        GradeFile(path)
    if broken == "garbage":
        assert path.read_bytes().startswith(b"these are my holiday notes")


async def test_a_file_that_breaks_costs_calls_and_no_verdict(file: GradeFile) -> None:
    judge = LLMJudge(ScriptedChat(always=grades(4)), grade_cache=file)
    with sqlite3.connect(file.path) as db:
        db.execute("DROP TABLE labels")
    db.close()
    found = await judge.grades(record("a"))
    assert found.grades == {"p1": 4}
    assert "labels" in found.cache_fault


def test_names_of_caches(tmp_path: Path) -> None:
    assert make_grade_cache("off") == "off"
    assert isinstance(make_grade_cache("memory"), GradeLru)
    assert isinstance(make_grade_cache(str(tmp_path / "a.sqlite")), GradeFile)
    for spec in ("memory", "off"):
        with pytest.raises(ConfigError, match="label_freeze"):
            make_grade_cache(spec, frozen=3)
    with pytest.raises(ConfigError, match="grade cache"):
        make_grade_cache(str(tmp_path / "no" / "folder.sqlite"))
