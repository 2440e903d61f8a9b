"""Metrics that are functions: a value from an evaluation context, checked before it becomes a result."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, get_args

from ragtrace.errors import ConfigError, nearest
from ragtrace.metrics.base import CoroutineMetric, MetricSpec, Need, Output, result
from ragtrace.model.score import ERROR_REASONS, NA_REASONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ragtrace.metrics.eval_context import EvalContext
    from ragtrace.model import MetricResult
    from ragtrace.model.score import Direction

    # A number, None for "no value", or a reason of the closed lists.
    Value = float | str | None
    MetricFunction = Callable[[EvalContext], Value | Awaitable[Value]]

_NEEDS = tuple(need for need in get_args(Need) if need != "runs")  # a function sees one record


def function_metric(
    function: MetricFunction,
    *,
    needs: tuple[Need, ...],
    range: tuple[float, float],  # noqa: A002 -- the word that people look for
    direction: Direction,
    threshold: float | None,
    name: str | None,
    summary: str | None,
    version: int,
) -> CoroutineMetric:
    """Return the metric of a function; see `ragtrace.metrics.registry.metric` for the arguments.

    A plain function runs on the scorer's event loop, so a slow one should be async. The function's value becomes
    the result's; True and False count as 1 and 0. None gives ``na missing_input:value``, and a reason of the closed
    lists gives that reason. NaN, a number outside the range, and anything else give ``error internal_error``.

    Raises:
        ConfigError: the function, a need or the range is unusable; the message is one line.
    """
    shown = getattr(function, "__name__", type(function).__name__)
    name = name or shown
    if not inspect.isfunction(function) or inspect.isgeneratorfunction(function) or not _takes_one(function):
        example = shown if shown.isidentifier() else "score"  # a lambda has no name to show
        raise ConfigError(f"metric {name!r}: write a function of one argument, `def {example}(ctx)`")
    wrong = _wrong_need(needs)
    if wrong is not None:
        raise ConfigError(f"metric {name!r}: needs is a tuple of inputs, got {wrong!r}{nearest(wrong, _NEEDS)}")
    low, high = _bounds(name, range)
    if direction not in {"up", "down"}:
        raise ConfigError(f"metric {name!r}: direction is 'up' or 'down', got {direction!r}")
    if threshold is not None and not low <= threshold <= high:
        raise ConfigError(f"metric {name!r}: the threshold {threshold!r} is outside the range {low:g} to {high:g}")
    first_line = (inspect.getdoc(function) or f"The value of {name}.").partition("\n")[0]
    spec = MetricSpec(
        name=name,
        summary=summary or first_line,
        needs=tuple(needs),
        outputs=(Output(name=name, low=low, high=high, direction=direction, threshold=threshold),),
        calls="its own",
        source=f"{function.__module__}.{function.__qualname__}",
        code_version=version,
    )

    async def compute(ctx: EvalContext) -> list[MetricResult]:
        value = function(ctx)
        if inspect.isawaitable(value):
            value = await value
        return [_result(spec.outputs[0], value)]

    return CoroutineMetric(spec, compute)


def _result(output: Output, value: object) -> MetricResult:
    if value is None:
        return result(output.name, "missing_input:value")
    if isinstance(value, str) and value in NA_REASONS | ERROR_REASONS:
        return result(output.name, value)
    number = _number(value)
    if number is None or not math.isfinite(number):
        shown = repr(value) if isinstance(value, int | float) else type(value).__name__
        return result(output.name, "internal_error", {"message": f"the function returned {shown}"})
    if not output.low <= number <= output.high:
        message = f"{number:g} is outside the range {output.low:g} to {output.high:g}"
        return result(output.name, "internal_error", {"message": message})
    return result(output.name, number)


def _takes_one(function: Callable[..., object]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    return True


def _wrong_need(needs: object) -> str | None:
    if not isinstance(needs, tuple | list):
        return str(needs)
    return next((str(need) for need in needs if need not in _NEEDS), None)


def _bounds(name: str, given: object) -> tuple[float, float]:
    numbers = [_number(bound) for bound in given] if isinstance(given, tuple | list) else []
    match numbers:
        case [float() as low, float() as high] if low < high:
            return low, high
        case _:
            raise ConfigError(f"metric {name!r}: range is two numbers, the lower one first, got {given!r}")


def _number(value: object) -> float | None:
    """Return a number of any kind as a float; None for anything else."""
    if isinstance(value, str | bytes | complex) or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
