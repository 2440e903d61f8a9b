"""CPU of every compiled pattern over pumped texts: `python -m benchmarks.patterns [WORD ...]`.

A pattern holds the interpreter's lock for a whole call, so one that takes the square of its text stops every thread
of the application. Each is run as the package calls it (``match``, ``search``, ``finditer`` ...), over 262,144
characters, or as many as its lines say with "of at most N characters": runs of one character, the pattern's own
literals repeated, and a literal before such a run. At most 50 ms of process CPU, best of five.

Patterns are compiled at module level, so that a new one is found without a list. What is compiled or called
elsewhere is a fault too. Words choose the modules and patterns whose names hold one of them.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

PACKAGES = ("ragtrace", "ragtrace_langchain", "ragtrace_llamaindex", "ragtrace_dashboards")
MOST_CHARS = 262_144
MOST_SECONDS = 0.05
_ROUNDS = 5
_SIZES = (64, 256, 1_024, 4_096, 16_384)
_CALLS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")
_RUNS = (
    *" \t\n\\\"'`1aA\u00e9\u4e00\u8a9e!?.,;:-_*#|/@$&%=~+^()[]{}<>",
    *"\u00ab\u201c\u2019\u2026\u200b\u0301\ufffd\U0001f600",
    *"a |A |Ab |a. |1 |1,|1.|1-|a,|a-|a.a|a'|[1]|[a](|(1)|<a>|</|](|**|a@|http://|://a|&amp;|''|\\n|\\u0061".split(
        "|"
    ),
    *(" \n", "\n\n", "\r\n", "\n- ", "\n1. ", "\n| ", "a\n", '{"', '":', "```\n"),
)
_BOUND = re.compile(r"of at most ([\d,]+) characters")


class Found(NamedTuple):
    """A compiled pattern and how it is called."""

    module: str
    name: str
    pattern: re.Pattern[str] | re.Pattern[bytes]
    calls: frozenset[str]
    chars: int


class Slow(NamedTuple):
    """A text that takes too long."""

    found: Found
    call: str
    text: str
    chars: int
    seconds: float


@cache
def modules() -> dict[str, ModuleType]:
    """Return the modules of the packages; one whose extra is not installed is named on the error stream."""
    loaded = {}
    for package in PACKAGES:
        loaded[package] = root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            if info.name.rpartition(".")[2] == "__main__":
                continue
            try:
                loaded[info.name] = importlib.import_module(info.name)
            except ImportError as error:
                print(f"{info.name}: not looked at, {error}", file=sys.stderr)
    return loaded


@cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))


def misplaced() -> list[str]:
    """Return where `re` is called with a text, or a pattern is compiled and given no name at module level."""
    found = []
    for name, module in modules().items():
        assigned = (top for top in _tree(module).body if isinstance(top, ast.Assign | ast.AnnAssign))
        outside = {id(one) for top in assigned for one in _outside_functions(top)}
        for node in ast.walk(_tree(module)):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr)) if attr in _CALLS or (
                    attr == "compile" and id(node) not in outside
                ):
                    found.append(f"{name}:{node.lineno}: re.{attr}")
    return found


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _outside_functions(child)


@cache
def _called() -> Mapping[str, frozenset[str]]:
    """Return by names of variables which methods of a pattern are called on them; a private one's in its module."""
    calls: dict[str, set[str]] = {}
    for module_name, module in modules().items():
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and node.attr in _CALLS:
                on = node.value
                while isinstance(on, ast.Subscript | ast.Call):
                    on = on.value if isinstance(on, ast.Subscript) else on.func
                if isinstance(on, ast.Name | ast.Attribute):
                    name = on.id if isinstance(on, ast.Name) else on.attr
                    calls.setdefault(f"{module_name}.{name}" if name[0] == "_" else name, set()).add(node.attr)
    return {name: frozenset(its) for name, its in calls.items()}


def patterns() -> list[Found]:
    """Return the compiled patterns that modules hold, in names, tuples and tables."""
    found, seen = [], set()
    for module_name, module in modules().items():
        lines = Path(str(module.__file__)).read_text(encoding="utf-8").splitlines()
        for statement in _tree(module).body:
            if not isinstance(statement, ast.Assign | ast.AnnAssign):
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            beside = " ".join(lines[statement.lineno - 1 : statement.end_lineno])
            bound = _BOUND.search(beside)
            for name in [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]:
                for number, pattern in enumerate(_held(getattr(module, name, None))):
                    if id(pattern) in seen and isinstance(statement.value, ast.Name):
                        continue
                    seen.add(id(pattern))
                    chars = int(bound[1].replace(",", "")) if bound else MOST_CHARS
                    calls = _called().get(f"{module_name}.{name}" if name[0] == "_" else name) or frozenset(
                        {"finditer"}
                    )
                    found.append(Found(module_name, f"{name}[{number}]" if number else name, pattern, calls, chars))
    return found


def _held(value: object, depth: int = 4) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):  # a method of one
        yield value.__self__  # type: ignore[attr-defined]
    elif depth and isinstance(value, Mapping):
        for part in (*value, *value.values()):
            yield from _held(part, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for part in value:
            yield from _held(part, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, type | ModuleType) and not callable(value):
        for part in vars(value).values():
            yield from _held(part, depth - 1)


def pumped(pattern: re.Pattern[str] | re.Pattern[bytes]) -> list[tuple[str, str]]:
    """Return beginnings, and what is repeated behind each."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    literals = list(dict.fromkeys(_literals(parser.parse(source, pattern.flags & ~re.DEBUG & ~re.UNICODE))))[:60]
    texts = [("", run) for run in _RUNS]
    texts += [("", literal) for literal in literals]
    texts += [("", f"{literal} ") for literal in literals] + [("", f"{literal}\n") for literal in literals]
    texts += [
        (literal, run) for literal in literals[:30] for run in (" ", "1", "a", "\\", '"', "\n", ".", "a ", "1 ")
    ]
    texts += [("", f"{literal}{run * 40}") for literal in literals[:30] for run in (" ", "1", "a")]
    return list(dict.fromkeys(texts))


def _literals(tree: object) -> Iterator[str]:
    run = ""
    for kind, value in tree:  # type: ignore[attr-defined]
        if kind is constants.LITERAL:
            run += chr(value)
            continue
        if run:
            yield run
        run = ""
        if kind is constants.IN:
            firsts = [one for what, one in value if what is constants.LITERAL]
            firsts += [one[0] for what, one in value if what is constants.RANGE]
            yield from map(chr, firsts[:8])
        elif kind is constants.BRANCH:
            for branch in value[1]:
                yield from _literals(branch)
        elif kind in {constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT}:
            yield from _literals(value[2])
        elif kind is constants.SUBPATTERN:
            yield from _literals(value[3])
        elif kind is constants.ATOMIC_GROUP:
            yield from _literals(value)
        elif kind in {constants.ASSERT, constants.ASSERT_NOT}:
            yield from _literals(value[1])
    if run:
        yield run


def _runner(pattern: re.Pattern[Any], call: str) -> Callable[[Any], object]:
    method = getattr(pattern, call)
    if call == "finditer":
        return lambda text: sum(1 for _ in method(text))
    return (lambda text: method(text[:0], text)) if call in {"sub", "subn"} else method


def slow(found: Found, most_seconds: float = MOST_SECONDS) -> Slow | None:
    """Return the first text that takes a pattern too long; None where none does."""
    for call in sorted(found.calls):
        run = _runner(found.pattern, call)
        for begin, part in pumped(found.pattern):
            taken = _slow_text(found, run, begin, part, most_seconds)
            if taken:
                return Slow(found, call, f"{begin!r} + {part!r} * n", *taken)
    return None


def _slow_text(
    found: Found, run: Callable[[Any], object], begin: str, part: str, most_seconds: float
) -> tuple[int, float] | None:
    """Return the size and the seconds at which a text takes too long. Sizes grow: no square is waited for."""
    before = last = 0.0
    for chars in (*(size for size in _SIZES if size < found.chars), found.chars):
        is_linear = last < 8 * max(before, 1e-4)
        if chars > _SIZES[-1] and is_linear and last * chars / _SIZES[-1] < most_seconds / 4:
            return None
        text: str | bytes = (begin + part * (chars // len(part) + 1))[: chars - 1] + "\x00"
        if isinstance(found.pattern.pattern, bytes):
            text = text.encode()  # type: ignore[union-attr]
        before, last = last, _once(run, text)
        for _ in range(_ROUNDS - 1):
            if most_seconds < last < 8 * most_seconds:
                last = min(last, _once(run, text))
        if last > most_seconds:
            return chars, last
    return None


def _once(run: Callable[[Any], object], text: str | bytes) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began


def main(words: list[str]) -> int:
    """Print what is slow or misplaced; 1 where anything is."""
    faults = 0
    for line in misplaced():
        if not words or any(word in line for word in words):
            print(f"{line}, and not a name at module level")
            faults += 1
    chosen = [one for one in patterns() if not words or any(word in f"{one.module}.{one.name}" for word in words)]
    for found in chosen:
        if it := slow(found):
            faults += 1
            took = f"{it.seconds * 1e3:,.0f} ms for {it.chars:,} characters of {it.text}"
            print(f"{found.module}.{found.name}.{it.call}: {took}", flush=True)
    bound = f"at most {MOST_SECONDS * 1e3:.0f} ms for {MOST_CHARS:,} characters or a stated bound"
    print(f"{len(chosen)} patterns, {faults} faults; {bound}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
