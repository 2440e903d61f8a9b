"""ARCHITECTURE.md tells the way of one question in steps whose files and functions exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEP = re.compile(r"^\d+\. \[`(?P<path>[^`]+\.py)`\]\((?P<link>[^)]+)\) `(?P<function>[\w.]+)`", re.MULTILINE)


def walk_section() -> str:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    return text.split("## One question, step by step", 1)[1].split("\n## ", 1)[0]


def functions(path: Path) -> set[str]:
    """Return the names of functions, and of methods as Class.method."""
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in tree.body if isinstance(node, kinds)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, kinds)}
    return found


def test_every_step_names_a_file_and_a_function_that_exist() -> None:
    section = walk_section()
    steps = list(STEP.finditer(section))
    assert len(steps) == len(re.findall(r"^\d+\. ", section, re.MULTILINE)), "a step without a file and a function"
    assert steps
    for step in steps:
        path = ROOT / step["path"]
        assert step["link"] == step["path"]
        assert path.is_file(), step["path"]
        assert step["function"] in functions(path), step[0]
