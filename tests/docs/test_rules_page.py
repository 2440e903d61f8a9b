"""Each rule of docs/concepts/question-evidence-answer.md names tests, and all of them exist."""

from __future__ import annotations

import ast
import re

import pytest

from docs.blocks import ROOT

PAGE = ROOT / "docs" / "concepts" / "question-evidence-answer.md"
TEXT = PAGE.read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::([\w:]+)`")
RULE = re.compile(r"^\*\*.*?(?=^\*\*|^## |\Z)", re.MULTILINE | re.DOTALL)
RULES = [part[0] for part in RULE.finditer(TEXT)]


def has_test(file: str, name: str) -> bool:
    """Tell whether a file of the repository has a test, in a class where the name says so."""
    path = ROOT / file
    if not path.is_file():
        return False
    inner: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for part in name.split("::"):
        found = next((node for node in inner if isinstance(node, kinds) and node.name == part), None)
        if found is None:
            return False
        inner = found.body
    return part.startswith("test_")


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED.findall(TEXT))))
def test_a_named_test_exists(file: str, name: str) -> None:
    assert has_test(file, name)


def test_each_rule_and_each_way_out_names_a_test() -> None:
    ways = [line for line in TEXT.splitlines() if re.match(r"\| .*(?:mark_|run\.|ragtrace\.query).*", line)]
    assert (len(RULES), len(ways)) == (25, 5)
    assert [part for part in (*RULES, *ways) if not NAMED.search(part)] == []


def test_a_missing_test_is_seen() -> None:
    file, name = "tests/docs/test_rules_page.py", "test_a_missing_test_is_seen"
    assert [has_test(file, name), has_test(file, name[:-1]), has_test("tests/none.py", name)] == [
        True,
        False,
        False,
    ]
    assert not has_test(file, f"Class::{name}")
    assert not has_test(file, "has_test")
