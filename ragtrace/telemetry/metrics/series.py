"""Series of scores: labels with a bounded number of values, and weighted means over a sliding window."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import structs

from ragtrace import semconv
from ragtrace.capture import record_internal_error
from ragtrace.model import SeriesKey
from ragtrace.stats.intervals import UNIT, Range, Sums, mean_interval
from ragtrace.telemetry.wire import clean_attributes
from ragtrace.text import MAX_LABEL_CHARS, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.util.types import AttributeValue

    from ragtrace.model import MetricResult, Scale
    from ragtrace.telemetry.metrics.clusters import Squares

    Attributes = dict[str, AttributeValue]

EVALUATOR = "ragtrace"
OTHER = "other"
_MOST_WINDOWS = 2_000
_MOST_NAMES = 100
_MOST_K = 1_000
_OTHER_K = -1  # shown as `OTHER`
_SLOTS = 60


class AnsweredBy(NamedTuple):
    """Model and prompt behind a run's answer as points have them, as far as they are known."""

    model: str | None = None
    prompt: str | None = None
    prompt_version: str | None = None


class LabelValues:
    """Names of an application as label values; ``other`` beyond 100 values of a label.

    Threads may pass the limit by a name or two; it guards memory.

    Example:
        >>> labels = LabelValues()
        >>> {labels.bounded("workflow", f"w{number}") for number in range(150)} >= {"w0", "w99", "other"}
        True
    """

    def __init__(self) -> None:
        self._known: defaultdict[str, set[str]] = defaultdict(set)

    def bounded(
        self, label: Literal["workflow", "model", "source", "k", "rating", "prompt", "version"], name: str
    ) -> str:
        """Return a name as a value of a label."""
        known = self._known[label]
        if name in known:
            return name
        value = bounded_text(name)
        if value not in known and len(known) >= _MOST_NAMES:
            return OTHER
        known.add(value)
        return value


def measured(result: MetricResult, labels: LabelValues, workflow: str = "") -> SeriesKey:
    """Return the key of a result as points have it.

    An application or its retriever names the cut-off, so it is bounded. A version is that of a judge.
    """
    k, version = result.k, judge_version(result)
    if k is not None and not (0 <= k <= _MOST_K and labels.bounded("k", str(k)) != OTHER):
        k = _OTHER_K
    return structs.replace(SeriesKey.of(result), workflow=workflow, version=version, k=k)


def key_attributes(key: SeriesKey) -> dict[str, str | int | None]:
    """Return the point attributes of a series, without those of its runs."""
    return {
        semconv.GEN_AI_EVALUATION_NAME: key.metric,
        semconv.JUDGE_MODEL: key.judge,
        semconv.JUDGE_VERSION: key.version,
        semconv.K: OTHER if key.k == _OTHER_K else key.k,
        semconv.LABEL_SCALE: key.label_scale,
        semconv.UNIVERSE: key.universe,
    }


def score_attributes(key: SeriesKey, by: AnsweredBy, stratum: str = "random") -> Attributes:
    """Return the point attributes of the scores of a series, by what answered and the stratum."""
    return clean_attributes(
        {
            semconv.GEN_AI_WORKFLOW_NAME: key.workflow,
            semconv.GEN_AI_REQUEST_MODEL: by.model,
            semconv.GEN_AI_PROMPT_NAME: by.prompt,
            semconv.GEN_AI_PROMPT_VERSION: by.prompt_version,
            semconv.EVALUATOR: EVALUATOR,
            **key_attributes(key),
            semconv.STRATUM: stratum,
        }
    )


def judge_version(result: MetricResult) -> str | None:
    """Return the version under which a result's scores are exported; None where nothing was judged."""
    return (result.version or result.judge.prompt_hash or None) if result.judge else None


def bounded_text(text: str) -> str:
    """Return a label value of at most 128 characters in valid Unicode."""
    return cut(text, MAX_LABEL_CHARS)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMean:
    """Weighted mean, its 95 % bounds, and the weighted share that passes (None without a threshold).

    The bounds are None for one cluster of scores without ends, such as lengths.

    Example:
        >>> WindowMean(mean=0.9, low=0.8, high=1.0, passed=None).mean
        0.9
    """

    mean: float
    low: float | None
    high: float | None
    passed: float | None


class Window:
    """One series of scores over the last `length_s` seconds, kept as sums in 60 slots.

    A score leaves between 59 and 60 sixtieths of the window after it came. Not thread-safe.

    Args:
        length_s: seconds.
        low: lowest value a score can have.
        high: highest value.

    Example:
        >>> from ragtrace.telemetry.metrics.clusters import Squares
        >>> window = Window(3_600.0, 0.0, 1.0)
        >>> window.add(0.0, 1.0, 2.0, Squares(4.0, 4.0, 4.0), is_pass=True)
        >>> window.add(1.0, 0.4, 2.0, Squares(4.0, 1.6, 0.64), is_pass=False)
        >>> window.read(2.0).mean
        0.7
        >>> window.read(4_000.0) is None
        True
    """

    __slots__ = ("_ends", "_slot_s", "_slots")

    def __init__(self, length_s: float, low: float, high: float) -> None:
        self._slot_s = length_s / _SLOTS
        self._ends = UNIT if (low, high) == UNIT else Range(low, high)
        # Each: slot number, w, wx, w2, w2x, w2x2, w with a threshold, w that pass.
        self._slots: deque[list[float]] = deque(maxlen=_SLOTS)

    def add(self, now: float, value: float, weight: float, squares: Squares, *, is_pass: bool | None) -> None:
        """Add one score at `now` (monotonic seconds); `is_pass` None for a metric without a threshold.

        `squares` is what it adds to the sums over clusters.
        """
        number = now // self._slot_s
        if not self._slots or self._slots[-1][0] < number:
            self._slots.append([number, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        slot = self._slots[-1]
        rated, passed = (0.0 if is_pass is None else weight), (weight if is_pass else 0.0)
        for place, part in enumerate((weight, weight * value, *squares, rated, passed), start=1):
            slot[place] += part

    def read(self, now: float) -> WindowMean | None:
        """Return mean and bounds at `now`, None when the window is empty.

        The bounds are those of `ragtrace.stats.intervals.mean_interval`. A cluster that began before the window has
        squares in it that are too large, and so the interval is then wider than it need be.
        """
        oldest = now // self._slot_s - _SLOTS + 1
        while self._slots and self._slots[0][0] < oldest:
            self._slots.popleft()
        if not self._slots:
            return None
        *sums, w_rated, w_passed = (sum(column) for column in list(zip(*self._slots, strict=True))[1:])
        found = mean_interval(Sums(*sums), self._ends)
        if found.mean is None:
            return None
        return WindowMean(
            mean=found.mean,
            low=found.low,
            high=found.high,
            passed=w_passed / w_rated if w_rated else None,
        )


class Windows:
    """The window of each series of scores, up to 2,000. Thread-safe.

    Args:
        length_s: seconds of each window.
        clock: monotonic seconds.

    Example:
        >>> from ragtrace.model import Scale
        >>> from ragtrace.telemetry.metrics.clusters import Squares
        >>> windows = Windows(3_600.0, lambda: 0.0)
        >>> key = SeriesKey("mrr", "rag")
        >>> windows.add(key, AnsweredBy("gpt"), Scale(), 0.5, 1.0, Squares(1.0, 0.5, 0.25), is_pass=None)
        >>> [(mean, attributes["gen_ai.workflow.name"]) for mean, attributes in windows.points("mean")]
        [(0.5, 'rag')]
    """

    def __init__(self, length_s: float, clock: Callable[[], float]) -> None:
        self._length_s = length_s
        self._clock = clock
        self._lock = threading.Lock()
        self._series: dict[tuple[SeriesKey, AnsweredBy], tuple[Window, Attributes]] = {}

    def add(
        self,
        key: SeriesKey,
        by: AnsweredBy,
        scale: Scale,
        value: float,
        weight: float,
        squares: Squares,
        *,
        is_pass: bool | None,
    ) -> None:
        """Add one score to the window of its series and of what answered."""
        with self._lock:
            found = self._series.get((key, by))
            if found is None:
                if len(self._series) >= _MOST_WINDOWS:
                    record_internal_error("ragtrace.telemetry.instruments.windows", reason="too many series")
                    return
                low, high = (0.0, 1.0) if scale.is_unit else (scale.low, scale.high)
                window = Window(self._length_s, low, high)
                found = self._series[key, by] = window, score_attributes(key, by)
            found[0].add(self._clock(), value, weight, squares, is_pass=is_pass)

    def points(self, field: str) -> list[tuple[float, Attributes]]:
        """Return one field of `WindowMean` for each series that has it; empty windows are dropped."""
        now = self._clock()
        points = []
        with self._lock:
            for key, (window, attributes) in list(self._series.items()):
                mean = window.read(now)
                if mean is None:
                    del self._series[key]
                elif (value := getattr(mean, field)) is not None:
                    points.append((value, attributes))
        return points
