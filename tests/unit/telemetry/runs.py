"""Finished runs for the tests of telemetry: built by the real recorder, with fixed times."""

from __future__ import annotations

from ragtrace.capture import FinishedRun, Recorder, finished_run
from ragtrace.model import Message, Score, Usage
from tests import make

T0 = 1_700_000_000_000_000_000
MS = 1_000_000
POOL = [
    {
        "id": f"d{rank}",
        "text": f"Passage number {rank} says something of its own.",
        "score": round(1 - rank / 100, 2),
    }
    for rank in range(1, 51)
]
CHOSEN = [
    {**POOL[place - 1], "score": round(0.9 - i / 10, 1)} for i, place in enumerate((7, 3, 1, 20, 5, 2, 9, 11))
]
PROMPT = "Answer from these.\n" + "\n".join(p["text"] for p in CHOSEN) + "\nHow do I cancel?"


class Taken:
    """A listener that keeps finished runs."""

    def __init__(self, writer=None):
        self.writer = writer
        self.runs = []

    def on_start(self, workflow, started_ns):
        if self.writer is None:
            return _Ref()
        return self.writer.open_root(workflow, started_ns)

    def on_end(self, ref, ended):
        self.runs.append((ref, finished_run(ended)))


class _Ref:
    trace_id = "0" * 31 + "a"
    span_id = "0" * 15 + "b"


def support_run(writer=None, *, pool=POOL, chosen=CHOSEN, prompt=PROMPT, **facts) -> tuple[object, FinishedRun]:
    """A run that retrieves 50 passages, reranks to 8 and answers."""
    taken = Taken(writer)
    run = Recorder(taken).start(
        query="How do I cancel?", workflow="support", session="s-1", user="u-1", corpus="faq", corpus_version="3",
        started_ns=T0, **facts,
    )  # fmt: skip
    run.retrieved(pool, source="faq", top_k=50, started_ns=T0 + MS, ended_ns=T0 + 11 * MS, key="r")
    run.reranked(chosen, model="cross", top_n=8, started_ns=T0 + 11 * MS, ended_ns=T0 + 21 * MS)
    run.add_prompt(prompt)
    run.generated(
        model="gpt-x", provider="openai", response_model="gpt-x-1", response_id="resp-1", first_chunk_s=0.25,
        inputs=[Message(role="user", content=prompt)], outputs=[Message(role="assistant", content="In settings.")],
        usage=Usage(input_tokens=900, output_tokens=12), finish_reasons=["stop"],
        started_ns=T0 + 21 * MS, ended_ns=T0 + 521 * MS,
    )  # fmt: skip
    run.answered("In settings.", model="gpt-x")
    run.finish(ended_ns=T0 + 530 * MS)
    return taken.runs[0]


def score(name="faithfulness", value=0.75, *, root=None, stratum="random", weight=20.0, **facts) -> Score:
    """One score; a `state` other than ok needs a `reason`."""
    root = root or _Ref()
    of = make.record(trace_id=root.trace_id, span_id=root.span_id)
    drawn = {"stratum": stratum, "weight": weight, "at": T0 / 1e9 + 2}
    return make.score(of, name, value, version="0a1b2c3d", **drawn, **facts)
