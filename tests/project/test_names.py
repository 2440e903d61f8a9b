"""No module of capture or of an integration holds a list of natural words; names of frameworks stand in names.py."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "ragtrace/capture",
    "integrations/langchain/ragtrace_langchain",
    "integrations/llamaindex/ragtrace_llamaindex",
)
NAMES = ROOT / "ragtrace/capture/names.py"
# Modules with the names that one framework's package alone writes.
OF_FRAMEWORKS = {
    "ragtrace_langchain/calls.py",
    "ragtrace_llamaindex/messages.py",
    "ragtrace_llamaindex/span_kinds.py",
}
# Assignments whose words are no knowledge of a language, and what they are.
ALLOWED = {
    ("capture/reported.py", "_NO_REPORTS"): "members of `Reported`",
    ("capture/events.py", "Kind"): "kinds of our own events",
    ("capture/masks.py", "_ESCAPED"): "entities of HTML",
    ("capture/masks.py", "_TOKEN"): "tags and entities of HTML",
}
FEWEST = 4
WORD = re.compile(r"[^\W\d_]{3,}")
PLAIN = re.compile(r"[^\W\d_]?[^\W\d_A-Z]+|[A-Z]+")  # no name in camel case
SYNTAX = re.compile(r"\(\?P[<=]\w+[>)]|\\[a-zA-Z]|\[[^\]]*\]")  # of patterns


def words_in(text: str) -> set[str]:
    """Return the words of three letters or more in a text or a pattern."""
    return {word.lower() for word in WORD.findall(SYNTAX.sub(" ", text)) if PLAIN.fullmatch(word)}


def constants(node: ast.AST) -> Iterator[str]:
    return (one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))


def identifiers(tree: ast.Module) -> set[str]:
    """Return the words of the names that a module itself defines or uses: of variables, fields and functions."""
    found = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                found |= {name.lower(), *words_in(name.replace("_", " "))}
    return found


def lists_in(tree: ast.Module) -> Iterator[tuple[int, str, set[str]]]:
    """Yield line, name and words of each list, of the keys of each mapping, and of each pattern or row of words."""
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        name = next((one.id for one in targets if isinstance(one, ast.Name)), "")
        docs = {node.value for node in ast.walk(statement) if isinstance(node, ast.Expr)}
        for node in ast.walk(statement):
            if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
                items = node.keys if isinstance(node, ast.Dict) else node.elts
                texts = {one.value for one in items if isinstance(one, ast.Constant) and isinstance(one.value, str)}
                yield node.lineno, name, {text.lower() for text in texts if words_in(text) == {text.lower()}}
            elif isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Constant) and isinstance(node.value, str)
            ):
                text = " ".join(constants(node))
                if node not in docs and (is_pattern(text) or (name.isupper() and is_row(text))):
                    yield node.lineno, name, words_in(text)


def is_pattern(text: str) -> bool:
    """Tell whether a text has words as alternatives."""
    return re.search(r"\w[)?]*\|[(?:]*\w", text) is not None


def is_row(text: str) -> bool:
    """Tell whether a text is nothing but words, as one that is split has them."""
    return len(text.split()) >= FEWEST and all(WORD.fullmatch(word) for word in text.split())


def found_in(source: str, known: set[str], module: str) -> list[str]:
    tree = ast.parse(source)
    known = known | identifiers(tree)
    return [
        f"{module}:{line}: {' '.join(sorted(words - known))}"
        for line, name, words in lists_in(tree)
        if len(words - known) >= FEWEST and (module, name) not in ALLOWED
    ]


def known_names() -> set[str]:
    tree = ast.parse(NAMES.read_text())
    return {word for text in constants(tree) for word in (text.lower(), *words_in(text.replace("_", " ")))}


def test_the_check_sees_words() -> None:
    sources = (
        '_GRADES = frozenset({"good", "bad", "poor", "fine"})',
        '_GRADES = {"good": 1, "bad": 2, "poor": 3, "fine": 4}',
        '_GRADES = re.compile(r"\\b(?:good|bad|poor|fine)\\b")',
        '_GRADES = re.compile(rf"(?:good|bad|{_SOME}|poor|fine)")',
        '_GRADES = frozenset("good bad poor fine".split())',
        'def f():\n    return x in ("good", "bad", "poor", "fine")',
    )
    assert [len(found_in(source, set(), "a.py")) for source in sources] == [1] * len(sources)
    assert found_in(sources[0], {"good"}, "a.py") == []


def test_lists_of_words_are_names_that_frameworks_write() -> None:
    known, found = known_names(), []
    for package in PACKAGES:
        for path in sorted((ROOT / package).glob("*.py")):
            module = f"{path.parent.name}/{path.name}"
            if path != NAMES and module not in OF_FRAMEWORKS:
                found += found_in(path.read_text(), known, module)
    assert found == []
