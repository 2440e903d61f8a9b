"""A listener that keeps finished runs, and short readings of one; shared by the tests of both integrations."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragtrace.capture import (
    Agent,
    FinishedRun,
    Generation,
    Rerank,
    Retrieval,
    Run,
    ToolCall,
    finished_run,
)
from ragtrace.capture.declared import Declarations

ANSWER = "The lab is in Oslo."


@dataclass
class Ref:
    trace_id: str
    span_id: str


@dataclass
class Keeper:
    runs: list[FinishedRun] = field(default_factory=list)
    begun: int = 0

    def on_start(self, workflow: str, started_ns: int) -> Ref:
        self.begun += 1
        return Ref(f"{self.begun:032x}", f"{self.begun:016x}")

    def on_end(self, root: Ref, run: Run) -> None:
        finished = finished_run(run)
        if finished is not None:  # a run that was no question
            self.runs.append(finished)

    @property
    def only(self) -> FinishedRun:
        assert len(self.runs) == 1, [run.record.query for run in self.runs]
        return self.runs[0]


@dataclass
class Declaring(Keeper):
    """Keeps what each run was told too."""

    told: list[Declarations] = field(default_factory=list)

    def on_end(self, root: Ref, run: Run) -> None:
        super().on_end(root, run)
        self.told.append(run.declarations)


@dataclass
class Waiting(Keeper):
    """Keeps ended runs as they wait for the pipeline's thread, and processes them later."""

    ended: list[tuple[Ref, Run]] = field(default_factory=list)

    def on_end(self, root: Ref, run: Run) -> None:
        self.ended.append((root, run))

    def process(self) -> None:
        for root, run in self.ended:
            super().on_end(root, run)


def n_unread(run: Run) -> int:
    """Return the number of events of a run that wait or were taken, and that nobody has read."""
    reader = run._run_reader
    return len(run._waiting) + (0 if reader is None else len(reader._unread))


def ids(captured, stage):
    return [passage.id for passage in captured.record.pool(stage)]


def scores(captured, stage):
    return [passage.score for passage in captured.record.pool(stage)]


def kinds(captured):
    names = {Retrieval: "retrieval", Rerank: "rerank", Generation: "chat", ToolCall: "tool", Agent: "agent"}
    return [names[type(step)] for step in captured.steps]


def step(captured, kind):
    found = [one for one in captured.steps if isinstance(one, kind)]
    assert len(found) == 1, found
    return found[0]


ROOT = "invoke_workflow"


def edges(recording):
    """Return the name of each span and of its parent, in the order in which they began; roots are called `ROOT`."""
    names = {span.context.span_id: span.name if span.parent else ROOT for span in recording.spans}
    began = sorted(recording.spans, key=lambda span: (span.start_time, span.parent is not None))
    return [(names[span.context.span_id], names[span.parent.span_id] if span.parent else None) for span in began]
