"""The recorder: what a run leaves behind, and that nothing it is given can break the application."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from ragtrace.capture import (
    Limits,
    Recorder,
    Retrieval,
    internal_errors,
)
from ragtrace.model import Message, Passage, Usage, content_id
from tests.kept import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable


POOL = [{"id": f"d{i}", "text": f"Passage number {i} about refunds.", "score": 1 - i / 100} for i in range(50)]


def test_the_chain_of_pool_selection_and_prompt() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="How do I cancel?", workflow="support") as run:
        run.retrieved(POOL, source="faq", top_k=50)
        run.reranked([{**POOL[7], "score": 3.1}, {**POOL[2], "score": 2.0}], model="x")
        run.add_prompt("Use this: " + POOL[7]["text"] + " And answer.")
        run.answered("In settings.", model="m", usage={"input_tokens": 5, "output_tokens": 2})
    record = keeper.runs[0].record
    assert [pool.stage for pool in record.pools] == ["retrieved", "reranked", "used"]
    assert len(record.pool("retrieved")) == 50
    assert [(p.id, p.score, p.rank) for p in record.pool("reranked")] == [("d7", 3.1, 1), ("d2", 2.0, 2)]
    assert [p.id for p in record.contexts] == ["d7"]
    assert keeper.runs[0].prompt_ids == ("d7",)
    assert record.selection_source == "explicit"
    assert record.usage == Usage(input_tokens=5, output_tokens=2)
    assert (record.workflow, record.query, record.outcome) == ("support", "How do I cancel?", "answered")
    assert record.trace_id == f"{1:032x}"


def test_ids_are_made_of_the_text_and_join_over_stages() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q") as run:
        run.retrieved(["alpha", "beta"])
        run.reranked(["beta"])
    record = keeper.runs[0].record
    assert record.pool("reranked")[0].id == record.pool("retrieved")[1].id
    assert record.contexts[0].id.startswith("sha256:")


def test_leaves_and_composites() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q") as run:
        run.retrieved(["a", "b"], key="1", parent_key="0")
        run.retrieved(["b", "c"], key="2", parent_key="0")
        run.retrieved(["b", "a", "c"], key="0", is_fused=True)
    texts = [p.text for p in keeper.runs[0].record.pool("retrieved")]
    assert texts == ["b", "a", "c"]
    assert [p.rank for p in keeper.runs[0].record.pool("retrieved")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(ValueError("x"), "error"), (asyncio.CancelledError(), "cancelled"), (GeneratorExit(), "partial")],
)
def test_an_exception_passes_and_decides_the_outcome(error: BaseException, outcome: str) -> None:
    keeper = Keeper()
    with pytest.raises(type(error)), Recorder(keeper).start(query="q"):
        raise error
    assert keeper.runs[0].record.outcome == outcome


async def test_the_async_form() -> None:
    keeper = Keeper()
    async with Recorder(keeper).start(query="q") as run:
        run.answered("a")
    assert keeper.runs[0].record.answer == "a"


def test_a_run_ends_once() -> None:
    keeper = Keeper()
    run = Recorder(keeper).start(query="q")
    run.finish("partial")
    run.finish()
    assert [r.record.outcome for r in keeper.runs] == ["partial"]


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def test_nothing_handed_over_can_raise() -> None:
    keeper = Keeper()
    run = Recorder(keeper).start(query="\ud800 lone surrogate")
    cyclic: dict = {}
    cyclic["self"] = cyclic
    run.retrieved(
        [Broken(), None, 7, {"text": None, "id": 12, "score": "x", "metadata": cyclic}, {"text": "\udfff"}]
    )
    run.retrieved(Broken())  # type: ignore[arg-type]
    run.labels({Broken(): 3})  # type: ignore[dict-item]
    run.feedback(float("nan"))
    run.answered(Broken())  # type: ignore[arg-type]
    run.finish()
    record = keeper.runs[0].record
    assert "\ud800" not in record.query
    record.query.encode()
    assert [p.text for p in record.pool("retrieved")] == ["", "\ufffd"]
    assert record.pool("retrieved")[0].id == "12"
    assert record.pool("retrieved")[0].score is None
    assert (record.lossy["passages_unread"], record.answer) == (4, "")
    assert {"ragtrace.capture.passages.unread", "ragtrace.capture.run.answered"} <= {*internal_errors()}


def test_redaction_runs_before_anything_is_kept() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, redact=lambda text: text.replace("Ada", "[name]"))
    with recorder.start(query="Ada asks") as run:
        run.set_history([Message(role="user", content="I am Ada")])
        run.retrieved([{"text": "Ada lives here", "metadata": {"by": "Ada"}}], query="where is Ada")
        run.add_prompt("Ada lives here")
        run.generated(inputs=[Message(role="user", content="Ada?")], outputs=[Message(role="ai", content="Ada!")])
        run.answered("Ada it is", parts=[{"text": "Ada it is", "citations": ["1"]}])
        run.reference("Ada")
        run.feedback(1.0, "Ada liked it", source="Ada")
        run.failed(ValueError("Ada broke it"))
    assert "Ada" not in repr(keeper.runs[0])
    assert keeper.runs[0].record.contexts[0].text == "[name] lives here"


def test_redaction_sees_tags_and_the_sources_of_a_search_and_of_each_passage_once() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, redact=lambda text: f"<{text.replace('Ada', '')}>")
    with recorder.start(query="q", tags=["of Ada"]) as run:
        run.add_tags(["Ada"])
        run.retrieved(
            [{"id": "a", "text": "Oslo."}, Passage(id="b", text="Rome.", rank=1, source="Ada's")], source="Ada"
        )
        run.retrieved(run.reader.columns(["Bonn."], ["c"], [0.5], source="Ada"), source="Ada")
    (kept,) = keeper.runs
    assert "Ada" not in repr(kept)
    assert kept.record.tags == ("<of >", "<>")
    assert [step.source for step in kept.steps] == ["<>", "<>"]
    assert [p.source for p in kept.record.pool("retrieved")] == ["<>", "<'s>", "<>"]


def test_a_tag_that_cannot_be_redacted_is_dropped() -> None:
    keeper = Keeper()
    with Recorder(keeper, redact=lambda text: str(1 / 0)).start(query="q", tags=["Ada"]) as run:
        run.retrieved([{"id": "a", "text": "Oslo."}], source="Ada")
    assert "Ada" not in repr(keeper.runs[0])
    assert keeper.runs[0].record.tags == ()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"tenant": "acme", "plan": 3, "secret": "x"}, {"tenant": "acme", "plan": 3}),
        ({"tenant": ["a", "b", 7]}, {"tenant": ["a", "b", 7]}),
        ({"tenant": {"deep": 1}, "plan": None}, {}),
        ({"tenant": "Ada & Co"}, {"tenant": "[name] & Co"}),
        ({"tenant": ["Ada"]}, {"tenant": ["[name]"]}),
        ({"tenant": "x" * 2_000, "plan": 1 << 70}, {"tenant": "x" * 512, "plan": str(1 << 70)}),
        ({"tenant": "\ud800"}, {"tenant": "\ufffd"}),
    ],
)
def test_metadata_is_kept_by_name_redacted_and_bounded(given: dict[str, object], kept: dict[str, object]) -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, redact=lambda text: text.replace("Ada", "[name]"), span_metadata=("tenant", "plan"))
    with recorder.start(query="q") as run:
        run.add_metadata(given)
    assert keeper.runs[0].record.metadata == kept


def test_metadata_of_several_reports_add_up_and_none_is_kept_unless_named() -> None:
    keeper = Keeper()
    with Recorder(keeper, span_metadata=("tenant", "plan")).start(query="q") as run:
        run.add_metadata({"tenant": "acme", "plan": "free"})
        run.add_metadata({"plan": "gold"})
    with Recorder(keeper).start(query="q") as run:
        run.add_metadata({"tenant": "acme"})
    assert [kept.record.metadata for kept in keeper.runs] == [{"tenant": "acme", "plan": "gold"}, {}]


def test_redaction_sees_metadata_whole_and_their_names_too() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, redact=lambda text: text.replace("ada@acme.com", "[mail]"))
    facts = {"note": "y" * 508 + "ada@acme.com", "ada@acme.com": 1, 7: "seven"}
    with recorder.start(query="q") as run:
        run.retrieved([{"id": "a", "text": "Oslo.", "metadata": facts}])
    assert keeper.runs[0].record.pool("retrieved")[0].metadata == {
        "note": "y" * 508 + "[mai",
        "[mail]": 1,
        "7": "seven",
    }


def test_redaction_sees_a_text_that_is_an_object_whole() -> None:
    class Text:
        def __str__(self) -> str:
            return "y" * 96 + "ada@acme.com"

    keeper = Keeper()
    recorder = Recorder(
        keeper, redact=lambda text: text.replace("ada@acme.com", ""), limits=Limits(passage_chars=100)
    )
    with recorder.start(query="q") as run:
        run.retrieved([{"id": "a", "text": Text()}])
    assert keeper.runs[0].record.pool("retrieved")[0].text == "y" * 96


def test_a_redaction_that_raises_drops_the_text_and_is_counted() -> None:
    keeper = Keeper()
    before = internal_errors().get("ragtrace.capture.redact", 0)

    def fails(text: str) -> str:
        raise RuntimeError("no")

    with Recorder(keeper, redact=fails).start(query="secret") as run:
        run.retrieved(["secret"])
        run.answered("secret")
    assert "secret" not in repr(keeper.runs[0])
    assert internal_errors()["ragtrace.capture.redact"] == before + 3


def test_what_is_too_large_is_cut_from_the_lowest_ranks_and_said() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, limits=Limits(record_chars=1_000, passage_chars=400))
    with recorder.start(query="q") as run:
        run.retrieved([{"id": str(i), "text": f"{i}" * 500, "score": 1.0} for i in range(10)])
    record = keeper.runs[0].record
    assert [p.id for p in record.contexts] == [str(i) for i in range(10)]
    assert [len(p.text) for p in record.contexts] == [400, 400] + [0] * 8
    assert record.contexts[0].truncated == 500
    assert record.lossy["passage_texts"] == 8


def test_a_formatter_that_cuts_a_passage_is_seen() -> None:
    keeper = Keeper()
    text = "The refund takes five working days after the parcel has come back to the warehouse in Oslo."
    with Recorder(keeper).start(query="q") as run:
        run.retrieved([{"id": "a", "text": text}, {"id": "b", "text": "Another thing."}])
        run.add_prompt("Context: " + text[:60] + "...")
    assert [(p.id, p.text, p.truncated) for p in keeper.runs[0].record.contexts] == [("a", text[:60], len(text))]


def test_a_prompt_that_shows_none_keeps_what_was_delivered() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q") as run:
        run.retrieved(["Some passage."])
        run.add_prompt("Nothing of it.")
    assert keeper.runs[0].prompt_ids == ()
    assert [(sign.name, sign.about) for sign in keeper.runs[0].record.signs] == [("evidence_unread", "prompt")]
    assert len(keeper.runs[0].record.contexts) == 1


def test_idle_runs_end_as_partial() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, limits=Limits(run_idle_s=10))
    run = recorder.start(query="q")
    recorder.sweep(run.last_activity + 5)
    assert recorder.open_runs == 1
    recorder.sweep(run.last_activity + 11)
    assert recorder.open_runs == 0
    assert keeper.runs[0].record.outcome == "partial"


def test_open_runs_are_bounded() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper, limits=Limits(open_runs=3))
    runs = [recorder.start(query=str(i)) for i in range(5)]
    assert recorder.open_runs == 3
    assert [r.record.query for r in keeper.runs] == ["0", "1"]
    assert runs[0].is_finished


def test_a_recorder_shared_by_many_threads_mixes_nothing() -> None:
    keeper = Keeper()
    recorder = Recorder(keeper)

    def work(name: int) -> None:
        for i in range(50):
            with recorder.start(query=f"{name}-{i}") as run:
                run.retrieved([f"{name}-{i}"])
                run.answered(f"{name}-{i}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(keeper.runs) == 400
    assert all(r.record.query == r.record.answer == r.record.contexts[0].text for r in keeper.runs)
    assert recorder.open_runs == 0


def test_without_a_listener_nothing_is_kept() -> None:
    recorder = Recorder()
    run = recorder.start(query="q")
    run.retrieved(["a"])
    run.finish()
    assert (run.trace_id, recorder.open_runs) == ("", 0)


def test_a_passage_given_as_such_keeps_its_facts() -> None:
    keeper = Keeper()
    with Recorder(keeper).start() as run:
        run.set_query("late")
        run.retrieved([Passage(id="x", text="t", rank=9, score=0.5, source="s", metadata={"page": 3})])
    passage = keeper.runs[0].record.contexts[0]
    assert (passage.id, passage.rank, passage.source, passage.metadata) == ("x", 1, "s", {"page": 3})
    assert isinstance(keeper.runs[0].steps[0], Retrieval)


def test_a_run_may_say_its_own_environment() -> None:
    keeper = Keeper()
    with Recorder(keeper, environment="prod").start(query="q") as run:
        run.set_attributes(environment="staging", corpus="faq")
    assert (keeper.runs[0].record.environment, keeper.runs[0].record.corpus) == ("staging", "faq")


def test_a_fact_that_there_is_not_is_counted_and_the_run_is_kept() -> None:
    keeper = Keeper()
    before = internal_errors().get("ragtrace.capture.run.Run.set_attributes", 0)
    with Recorder(keeper).start(query="q") as run:
        run.set_attributes(enviroment="staging")  # type: ignore[call-arg]
        run.answered("a")
    assert keeper.runs[0].record.answer == "a"
    assert internal_errors()["ragtrace.capture.run.Run.set_attributes"] == before + 1


def test_one_tag_may_be_given_as_a_text() -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q", tags="vip") as run:
        run.add_tags("beta")
    assert keeper.runs[0].record.tags == ("vip", "beta")


@pytest.mark.parametrize(
    ("given", "kept"), [(3, 3), (0, 0), (-1, None), (True, None), ("3", None), (1 << 70, None)]
)
def test_a_cut_off_is_a_whole_number_of_0_or_more(given: object, kept: int | None) -> None:
    keeper = Keeper()
    with Recorder(keeper).start(query="q", k=given):  # type: ignore[arg-type]
        pass
    assert keeper.runs[0].record.k == kept


def ids_of(redact: Callable[[str], str] | None, texts: list[str]) -> list[list[str]]:
    keeper = Keeper()
    with Recorder(keeper, redact=redact).start(query="q") as run:
        run.retrieved(texts)
        run.reranked([{"text": text} for text in reversed(texts)])
    return [[p.id for p in pool.passages] for pool in keeper.runs[0].record.pools]


def test_an_id_made_of_a_text_is_salted_where_texts_are_redacted() -> None:
    """A plain hash of the original text would confirm a guess of what was redacted."""
    texts = ["Ada lives in Oslo.", "Bo lives in Oslo."]
    pool, chosen = ids_of(lambda text: text.replace("Ada", "[name]").replace("Bo", "[name]"), texts)
    guesses = {content_id(text) for text in (*texts, "[name] lives in Oslo.")}
    assert chosen == pool[::-1]
    assert len({*pool}) == 2
    assert not {name.partition(":")[2] for name in pool} & {name.partition(":")[2] for name in guesses}
    assert {name.partition(":")[0] for name in pool} == {"salted"}
    assert ids_of(None, texts)[0] == [content_id(text) for text in texts]


def test_the_salt_is_another_one_in_each_process_and_the_same_in_its_children() -> None:
    code = (
        "import os, sys; from ragtrace.capture.passages import PROCESS_KEY; from ragtrace.model import content_id;"
        "child = os.fork(); sys.stdout.write(content_id('Ada', PROCESS_KEY) + ' '); sys.stdout.flush();"
        "child and os.waitpid(child, 0)"
    )
    run = [sys.executable, "-c", code]
    one, other = (subprocess.run(run, capture_output=True, text=True, check=True).stdout.split() for _ in range(2))
    assert len(one) == len(other) == 2
    assert len({*one}) == len({*other}) == 1
    assert {*one}.isdisjoint(other)
