"""Every metric by name: our own, those a program registered, and those of installed packages.

A module is imported when its metric is wanted. The entry-point group ``ragtrace.metrics`` is read only on a
name that is not known otherwise, as a scan of all installed packages takes 29 ms.
"""

from __future__ import annotations

import importlib
import inspect
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, TypeVar, overload

from ragtrace.errors import ConfigError, nearest
from ragtrace.metrics.base import MetricSpec
from ragtrace.metrics.function_metric import function_metric
from ragtrace.model.printable import is_printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ragtrace.metrics.base import Metric, Need, Output
    from ragtrace.metrics.function_metric import MetricFunction
    from ragtrace.model.score import Direction

GROUP = "ragtrace.metrics"

# In the order of the lists.
_ROOMS = ("diagnosis", "answer", "context", "reference", "ranking", "selection", "consistency")
_registered: dict[str, Metric] = {}
_T = TypeVar("_T")
_F = TypeVar("_F", bound="MetricFunction")


def all_metrics() -> dict[str, Metric]:
    """Return every metric by name: our own room by room, then registered ones. Thread-safe.

    Metrics of installed packages appear once they were selected by name.

    Example:
        >>> all_metrics()["faithfulness"].spec.needs
        ('answer', 'contexts', 'judge')
    """
    return {**_built_in(), **_registered}


def select(names: Iterable[str]) -> list[Metric]:
    """Return metrics by name, alias or output name, each once, in the order asked for.

    Args:
        names: as a person wrote them; ``all`` stands for every metric of a single record, so metrics over several
            runs are left out. An ``@K`` behind a name is ignored.

    Raises:
        ConfigError: a name is unknown (one line with the nearest name), or there is none.

    Example:
        >>> [metric.spec.name for metric in select(["mrr", "citation_recall", "mrr"])]
        ['mrr', 'citations']
        >>> select(["fathfulness"])
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: unknown metric 'fathfulness'; did you mean 'faithfulness'?
    """
    chosen: dict[str, Metric] = {}
    for name in names:
        if name == "all":
            found = [item for item in all_metrics().values() if "runs" not in item.spec.needs]
        else:
            found = [_find(name.partition("@")[0])]
        chosen |= {item.spec.name: item for item in found}
    if not chosen:
        raise ConfigError(f"no metric is given{nearest('', _modules())}")
    return list(chosen.values())


def output(name: str) -> Output:
    """Return one exported number by its name, for example ``p_at_k`` or ``p_at_k@10``.

    Raises:
        ConfigError: no metric exports it.

    Example:
        >>> output("harm_at_k@10").direction
        'down'
    """
    bare = name.partition("@")[0]
    outputs = {item.name: item for metric in all_metrics().values() for item in metric.spec.outputs}
    if bare not in outputs:
        raise ConfigError(f"unknown output {name!r}{nearest(bare, outputs)}")
    return outputs[bare]


def is_lower_better(name: str) -> bool:
    """Return whether a lower value is better; False where no metric exports the number.

    Example:
        >>> is_lower_better("harm_at_k@10"), is_lower_better("faithfulness"), is_lower_better("not_there")
        (True, False, False)
    """
    try:
        return output(name).direction == "down"
    except ConfigError:  # of a package that is not installed here
        return False


@overload
def metric(target: _T) -> _T: ...


@overload
def metric(
    *,
    needs: tuple[Need, ...],
    range: tuple[float, float] = ...,
    direction: Direction = ...,
    threshold: float | None = ...,
    name: str | None = ...,
    summary: str | None = ...,
    version: int = ...,
) -> Callable[[_F], _F]: ...


def metric(
    target: object = None,
    *,
    needs: tuple[Need, ...] | None = None,
    range: tuple[float, float] = (0.0, 1.0),  # noqa: A002 -- the word that people look for
    direction: Direction = "up",
    threshold: float | None = None,
    name: str | None = None,
    summary: str | None = None,
    version: int = 1,
) -> object:
    """Register a metric of your own: a plain or async function, or a class.

    A function gives one number a record, exported under its name (`ragtrace.metrics.function_metric`):

        @ragtrace.metric(needs=("answer",), range=(0, 2000))
        def characters_in_answer(ctx) -> float: ...

    A class, or an object, has a ``spec`` (`ragtrace.MetricSpec`) and an async ``compute(ctx)`` that returns one
    `ragtrace.MetricResult` for each output; write ``@ragtrace.metric`` over it. Both are returned unchanged.

    Registering the same name again replaces the former metric; a name of a built-in one is refused. The change
    takes effect on metrics that are selected afterwards.

    Args:
        target: a class without constructor arguments, or an object; not with the other arguments.
        needs: inputs of the function; where one is missing, the result is ``na`` and the function is not called.
        range: lowest and highest value; another value is an error.
        direction: ``up`` where a higher value is better, else ``down``.
        threshold: the lowest value that passes (the highest for ``down``); None for no pass or fail.
        name: defaults to the function's.
        summary: one sentence; defaults to the first line of the function's docstring.
        version: raise it when the function changes, so that the new numbers start a new series.

    Raises:
        ConfigError: it is not a metric, or one of its names is reserved or taken; the message is one line.

    Example:
        >>> import ragtrace
        >>> @ragtrace.metric(needs=("answer",), range=(0, 2000))
        ... def characters_in_answer(ctx) -> float:
        ...     '''Characters of the answer, at most 2000.'''
        ...     return min(len(ctx.record.answer), 2000)
        >>> select(["characters_in_answer"])[0].spec.summary
        'Characters of the answer, at most 2000.'

        >>> @ragtrace.metric
        ... class AnswerWords:
        ...     spec = ragtrace.MetricSpec(
        ...         name="answer_words",
        ...         summary="Words of the answer, at most 1000.",
        ...         needs=("answer",),
        ...         outputs=(ragtrace.Output(name="answer_words", high=1000.0, threshold=None),),
        ...         calls="none",
        ...         source="our own",
        ...     )
        ...
        ...     async def compute(self, ctx):
        ...         words = min(len(ctx.record.answer.split()), 1000)
        ...         return [ragtrace.MetricResult(name="answer_words", state="ok", value=float(words))]
        >>> select(["answer_words"])[0].spec.needs
        ('answer',)
    """
    if needs is None:
        if inspect.isroutine(target) or target is None:
            raise ConfigError("a function needs its inputs: write @ragtrace.metric(needs=(...)) over it")
        _register(target)
        return target

    made = partial(
        function_metric,
        needs=needs,
        range=range,
        direction=direction,
        threshold=threshold,
        name=name,
        summary=summary,
        version=version,
    )

    def register(function: _F) -> _F:
        _register(made(function))
        return function

    return register


def _register(target: object) -> Metric:
    made = _checked(target() if isinstance(target, type) else target)
    _registered[made.spec.name] = made
    return made


@cache
def _modules() -> dict[str, str]:
    """Return the module path of each file in the rooms; a metric's file is named after it."""
    here = Path(__file__).parent
    return {
        module.name: f"ragtrace.metrics.{room}.{module.name}"
        for room in _ROOMS
        for module in iter_modules([str(here / room)])
    }


def _load(name: str) -> Metric | None:
    """Return the metric in the file of this name, if any."""
    path = _modules().get(name)
    return None if path is None else getattr(importlib.import_module(path), "METRIC", None)


@cache
def _built_in() -> dict[str, Metric]:
    loaded = (_load(name) for name in _modules())
    return {metric.spec.name: metric for metric in loaded if metric is not None}


def _find(name: str) -> Metric:
    own = _load(name)
    if own is not None:
        return own
    known = all_metrics()
    found = known.get(name) or next((item for item in known.values() if name in _names_of(item)), None)
    found = found or _installed(name)
    if found is None:
        raise ConfigError(f"unknown metric {name!r}{nearest(name, _names(known))}")
    return found


def _names_of(item: Metric) -> set[str]:
    spec = item.spec
    return {spec.name, *spec.aliases, *(out.name for out in spec.outputs)}


def _names(known: dict[str, Metric]) -> set[str]:
    return {"all"}.union(*map(_names_of, known.values()))


def _installed(name: str) -> Metric | None:
    for entry in entry_points(group=GROUP, name=name):
        try:
            target = entry.load()
        except Exception as error:
            raise ConfigError(f"metric {name!r} of {entry.value} cannot be loaded: {error}") from error
        return _registered.get(name) or _register(target)  # a decorator registered it as its module was loaded
    return None


def _checked(made: object) -> Metric:
    spec = getattr(made, "spec", None)
    if not isinstance(spec, MetricSpec) or not callable(getattr(made, "compute", None)):
        raise ConfigError(f"{type(made).__name__} is not a metric: it needs a spec and an async compute(ctx)")
    checked: Metric = made  # type: ignore[assignment]
    names = _names_of(checked)
    odd = sorted(name for name in names if not (name.strip() and is_printable(name)) or {*name} & {*"@,"})
    if odd:
        raise ConfigError(f"metric {odd[0]!r}: a name needs a letter, and no control characters, comma or @")
    others = {key: item for key, item in all_metrics().items() if key != spec.name or key in _built_in()}
    taken = names & _names(others)
    if taken:
        raise ConfigError(f"metric {spec.name!r}: the name {min(taken)!r} is taken")
    return checked
