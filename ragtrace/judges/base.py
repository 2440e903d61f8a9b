"""Contract of a judge: its tasks and its verdicts.

A judge answers tasks, not metrics: one audit of an answer feeds faithfulness, citations, no-answer and context
use at once. Metrics ask through `ragtrace.metrics.eval_context.EvalContext`, which asks each task at most once
a record. A judge that cannot do a task leaves it out of `Judge.tasks`; the metric is then
``na unsupported_by_judge``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar, runtime_checkable

from ragtrace.errors import JudgeUnsupported
from ragtrace.model import JudgeUsage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ragtrace.judges.llm.session import JudgeSession
    from ragtrace.model import RagRecord
    from ragtrace.modes import Consensus

# A task is named like the judge prompt behind it; "citations", "contradictions" and "sufficiency" are parts of
# "audit" that not every judge can do.
Task = str
Verdict = Literal["supported", "not_supported", "contradicted"]
Support = Literal["full", "partial", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One factual claim of the answer with its verdict.

    Attributes:
        support: in [0, 1]; 1.0 or 0.0 from a judge that decides, graded from one that measures.
        sources: 0-based indexes into the record's contexts (blank contexts keep their index) that support it.
        start: where `text` stands in the answer as given; None of a claim in the judge's own words.
        end: the place behind it there.
    """

    text: str
    verdict: Verdict
    support: float
    sources: tuple[int, ...] = ()
    reason: str = ""
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationVerdict:
    """Support of one (answer part, cited passage) pair. `part` is the 0-based index of the part."""

    part: int
    citation: str
    support: Support


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The fused reading of an answer against its contexts.

    Attributes:
        attempted: whether the answer tries to answer at all (a wrong answer is an attempt).
        noncommittal: whether it evades.
        claims: factual claims in order; empty when there are none.
        citations: one verdict for each distinct non-dangling (part, citation) pair, when parts cite anything.
        truncated: True when only the first claims were judged.
        unscorable: the reason of ``na`` for which the judge has no verdict on the claims; "" where it has.
        invented: numbers, dates, names, quotes and addresses of the answer that no context holds; None where the
            judge does not look for them.
        sufficient: whether the contexts hold all that the query asks; None where the judge did not say.
        has_repaired: whether the one repair of the evaluation is used up.
    """

    attempted: bool
    noncommittal: bool
    claims: tuple[Claim, ...] = ()
    citations: tuple[CitationVerdict, ...] = ()
    truncated: bool = False
    unscorable: str = ""
    invented: tuple[str, ...] | None = None
    sufficient: bool | None = None
    has_repaired: bool = False
    usage: JudgeUsage = field(default_factory=JudgeUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sufficiency:
    """Whether the delivered contexts hold all that the query asks."""

    sufficient: bool
    usage: JudgeUsage = field(default_factory=JudgeUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grades:
    """Grades 1 to 5 by passage id for the judged pool.

    Attributes:
        scale: as in `ragtrace.model.LabelScale`.
        cached: how many of them were known before, and so cost nothing.
        has_repaired: whether the one repair of the evaluation is used up.
        cache_fault: why the cache could not be read or written; "" when all went well.
    """

    grades: Mapping[str, int]
    scale: str = "direct5"
    usage: JudgeUsage = field(default_factory=JudgeUsage)
    cached: int = 0
    has_repaired: bool = False
    cache_fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedQuestion:
    """A question that the answer would answer. `noncommittal` says whether the answer evades it."""

    text: str
    noncommittal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions generated from the answer alone."""

    questions: tuple[GeneratedQuestion, ...]
    usage: JudgeUsage = field(default_factory=JudgeUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact of the reference.

    `sources` are 0-based indexes of the contexts that hold it, empty if none.
    """

    text: str
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of the reference attributed to contexts."""

    facts: tuple[Fact, ...]
    usage: JudgeUsage = field(default_factory=JudgeUsage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Binary relevance of each non-blank context. Keys are 0-based indexes in the record's contexts."""

    relevant: Mapping[int, bool]
    usage: JudgeUsage = field(default_factory=JudgeUsage)


class Costly(Protocol):
    """The result of a task, with its usage."""

    @property
    def usage(self) -> JudgeUsage:
        """Calls and tokens."""
        ...


VerdictT = TypeVar("VerdictT", bound=Costly)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomTask(Generic[VerdictT]):
    """A task of a metric, for judges that answer any prompt.

    Attributes:
        name: of the task; the verdict is kept under it, so that metrics which share it ask once a record.
        prompts: ids of every prompt it may use; their hashes stand in the version of each score made of it.
        ask: the coroutine; raises JudgeError.
    """

    name: str
    prompts: tuple[str, ...]
    ask: Callable[[PromptJudge, RagRecord], Awaitable[VerdictT]]


@runtime_checkable
class PromptJudge(Protocol):
    """A judge that answers any prompt of `ragtrace.prompts`."""

    def session(self, prompt_id: str) -> JudgeSession:
        """Return a new evaluation that begins with this prompt."""
        ...


@runtime_checkable
class Judge(Protocol):
    """Answers tasks about one record.

    Coroutine-safe: many tasks may run at once on one event loop. Inherit from it and write the tasks that the
    judge can do: every other one raises `ragtrace.errors.JudgeUnsupported`, and its metrics are ``na
    unsupported_by_judge``. A task raises a `ragtrace.errors.JudgeError` when it has no usable verdict, and never
    returns a guess. A factory with an entry point of the group ``ragtrace.judges`` is selected by its name.

    Attributes:
        name: ``overlap`` or ``openai:MODEL``; stands on every score.
        tasks: the tasks this judge can do.
        thresholds: the judge's own pass thresholds by metric name, which replace the metric's default.

    Example:
        >>> import asyncio
        >>> from ragtrace.model import Passage, Pool, RagRecord
        >>> class Copied(Judge):
        ...     name, tasks = "copied", frozenset({"audit"})
        ...
        ...     async def audit(self, record):
        ...         is_copied = any(record.answer in passage.text for passage in record.contexts)
        ...         verdict = "supported" if is_copied else "not_supported"
        ...         claim = Claim(text=record.answer, verdict=verdict, support=float(is_copied))
        ...         return Audit(attempted=True, noncommittal=False, claims=(claim,))
        >>> pool = Pool(stage="used", passages=(Passage(id="a", text="The lab is in Oslo.", rank=1),))
        >>> record = RagRecord(id="1", query="Where?", answer="The lab is in Oslo.", pools=(pool,))
        >>> asyncio.run(Copied().audit(record)).claims[0].verdict
        'supported'
    """

    name: str
    tasks: frozenset[Task] = frozenset()
    thresholds: Mapping[str, float] = MappingProxyType({})

    def version(self, task: Task) -> str:
        """Return 8 hex digits over everything that changes a task's verdicts.

        The default covers the names alone.
        """
        return hashlib.sha256(f"{self.name} {task}".encode()).hexdigest()[:8]

    async def audit(self, record: RagRecord) -> Audit:  # noqa: ARG002 -- the contract's arguments
        """Read the answer against the delivered contexts."""
        raise _unsupported(self, "audit")

    async def sufficiency(self, record: RagRecord, audit: Audit) -> Sufficiency:  # noqa: ARG002
        """Decide whether the contexts hold all that the query asks, where the audit did not say."""
        raise _unsupported(self, "sufficiency")

    async def grades(self, record: RagRecord) -> Grades:  # noqa: ARG002
        """Grade each passage of the candidate pool, 1 to 5."""
        raise _unsupported(self, "grades")

    async def questions(self, record: RagRecord, n: int) -> Questions:  # noqa: ARG002
        """Write `n` questions that the answer would answer."""
        raise _unsupported(self, "questions")

    async def facts(self, record: RagRecord) -> Facts:  # noqa: ARG002
        """Attribute the facts of the reference to contexts."""
        raise _unsupported(self, "facts")

    async def relevance(self, record: RagRecord, *, with_reference: bool) -> Relevance:  # noqa: ARG002
        """Decide for each context whether it is relevant to the query."""
        raise _unsupported(self, "relevance")

    async def aclose(self) -> None:
        """Release connections; without any there is nothing to do."""
        return


def _unsupported(judge: Judge, task: Task) -> JudgeUnsupported:
    return JudgeUnsupported(f"judge {judge.name!r} has no task {task!r}; choose --judge openai:MODEL")


@runtime_checkable
class JudgePanel(Judge, Protocol):
    """Several judges, or one judge several times, with combined numbers.

    A panel is a `Judge` that does no task itself, so that one verdict is never taken for that of all. Its name and
    version stand on the combined scores; the version holds members, repeats and consensus rule.

    Attributes:
        members: the judges, each once.
        repeats: how often each is asked, at least 1.
        consensus: how the means of the members become one number.
    """

    members: Sequence[Judge]
    repeats: int
    consensus: Consensus

    def seats(self) -> Sequence[Sequence[Judge]]:
        """Return one judge a repeat for each member. Repeats differ in the seed they send."""
        ...


@runtime_checkable
class Reseeded(Judge, Protocol):
    """A judge whose verdicts depend on a seed.

    A repeat of any other judge is the same request again.
    """

    def with_seed(self, seed: int) -> Judge:
        """Return the same judge, over the same connections, sending another seed."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors; `name` stands on every score that uses it."""

    name: str

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return an array of shape (len(texts), d). A text without content gives a zero row."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSignals:
    """Verdict of a pair model on one (premise, hypothesis).

    Attributes:
        consistency: in [0, 1], higher is better: how surely the premise supports the hypothesis.
        contradiction: in [0, 1], lower is better; None when the model has no such label. It is a signal of its own:
            a claim that a premise does not mention is unsupported and not contradicted.
    """

    consistency: float
    contradiction: float | None = None


class PairScorer(Protocol):
    """A function from (premise, hypothesis) pairs to floats in [0, 1].

    Higher is more consistent. It may be a plain function, which is called in a thread, several at once, or a
    coroutine function. It gets at most 32 pairs a call. The attributes ``name`` and ``version``, where it has
    them, stand on every score. An exception becomes ``error judge_error``; a list of another length, or a number
    outside [0, 1], ``error judge_invalid_output``. A window it does not tell of is not known: it gets all
    contexts as one premise.

    Example:
        >>> def same_words(pairs):
        ...     return [len({*p.split()} & {*h.split()}) / len({*h.split()}) for p, h in pairs]
        >>> scorer: PairScorer = same_words
        >>> scorer([("it is red", "it is blue")])
        [0.6666666666666666]
    """

    def __call__(self, pairs: list[tuple[str, str]], /) -> Sequence[float] | Awaitable[Sequence[float]]:
        """Return one float a pair, in the order given."""
        ...


@runtime_checkable
class PairModel(Protocol):
    """A pair scorer that knows its window.

    It may tell contradictions apart; `ragtrace.judges.nli.onnx` has one.

    Attributes:
        name: stands on every score.
        version: 8 hex digits over everything that changes its numbers.
        window: tokens that a premise and a hypothesis may have together.
    """

    name: str
    version: str
    window: int

    def __call__(self, pairs: list[tuple[str, str]], /) -> Sequence[float]:
        """Return the consistency of each pair."""
        ...

    def size(self, premise: str, hypothesis: str) -> int:
        """Return how many tokens of the window a pair takes."""
        ...

    def signals(self, pairs: list[tuple[str, str]]) -> Sequence[PairSignals]:
        """Return the signals of each pair. Raises JudgeError, also on a pair beyond the window."""
        ...
