"""Docstrings open with a verb or a noun, and cite only files that the repository holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "ragtrace",
    "integrations/langchain/ragtrace_langchain",
    "integrations/llamaindex/ragtrace_llamaindex",
    "dashboards/ragtrace_dashboards",
)
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
CLAUSE = re.compile(
    r"(What|Who|Whose|Whom|Which|Where|That|Of which|From which|In which|How much|One that|Those|Be|Let)\b"
)
CITED = re.compile(r"\b[A-Z][A-Z_]{3,}\.md\b")


def first_lines(source: str) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [text.splitlines()[0] for text in found if text]


def test_the_check_sees_a_clause() -> None:
    assert [line for line in first_lines('def f():\n    """What it is."""\n') if CLAUSE.match(line)] == [
        "What it is."
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_open_with_a_verb_or_a_noun(package: str) -> None:
    sources = [path for path in SOURCES if path.is_relative_to(ROOT / package)]
    clauses = [
        f"{path.name}: {line}" for path in sources for line in first_lines(path.read_text()) if CLAUSE.match(line)
    ]
    assert clauses == []


def test_cited_files_are_in_the_repository() -> None:
    known = {path.name for path in ROOT.rglob("*.md")}
    cited = {name for path in SOURCES for name in CITED.findall(path.read_text())}
    assert cited <= known
