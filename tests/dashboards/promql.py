"""Selectors and groupings of a board's expression, parsed after Grafana's variables are replaced."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

import promql_parser as pp

VALUES = {
    "__rate_interval": "1h", "__interval": "1h", "__range": "7d", "window": "1d", "slice": "gen_ai_workflow_name",
    "job": ".+", "workflow": ".*", "metric": ".+", "k": ".*", "slice_value": ".+",
}  # fmt: skip
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")


def variables(text: str) -> set[str]:
    """Names of the variables in a text."""
    return {braced or plain for braced, plain in _VARIABLE.findall(text)}


def filled(text: str, **values: str) -> str:
    """The text with each variable replaced; a KeyError for one that no board has."""
    known = VALUES | values
    return _VARIABLE.sub(lambda found: known[found[1] or found[2]], text)


@dataclass
class Asked:
    """Selectors and calls of one expression."""

    selectors: list[tuple[str, dict[str, tuple[str, str]], tuple[str, ...]]] = field(default_factory=list)
    """Name, matchers by label as (operator, value), and the functions around it, innermost last."""
    grouped: list[tuple[set[str], set[str]]] = field(default_factory=list)
    """Labels of a ``by`` and the metric names below it."""


@cache  # each rule of the lint parses the same expressions
def asked(expr: str) -> Asked:
    """Parse an expression whose variables are filled; ValueError where it is none."""
    found = Asked()
    _visit(pp.parse(expr), (), found)
    return found


def _visit(node: object, around: tuple[str, ...], found: Asked) -> set[str]:
    if isinstance(node, pp.VectorSelector):
        return _select(node, around, found)
    if isinstance(node, pp.MatrixSelector):
        return _select(node.vector_selector, around, found)
    if isinstance(node, pp.Call):
        return _join(_visit(it, (*around, node.func.name), found) for it in node.args)
    if isinstance(node, pp.AggregateExpr):
        names = _visit(node.expr, around, found)
        if node.modifier is not None and not is_without(node):
            found.grouped.append((set(node.modifier.labels), names))
        return names
    if isinstance(node, pp.BinaryExpr):
        return _visit(node.lhs, around, found) | _visit(node.rhs, around, found)
    if isinstance(node, pp.ParenExpr | pp.UnaryExpr | pp.SubqueryExpr):
        return _visit(node.expr, around, found)
    return set()


def is_without(node: pp.AggregateExpr) -> bool:
    """Whether it keeps all labels but those named."""
    return node.modifier is not None and node.modifier.type == pp.AggModifierType.Without


def _select(node: pp.VectorSelector, around: tuple[str, ...], found: Asked) -> set[str]:
    matchers: dict[str, tuple[str, str]] = {}
    for it in node.matchers.matchers:
        matchers[it.name] = (str(it.op), it.value)
    name = node.name or matchers.get("__name__", ("", ""))[1]
    found.selectors.append((name, matchers, around))
    return {name}


def _join(parts) -> set[str]:
    return set().union(*parts)
