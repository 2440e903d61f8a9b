"""What happens to each code block of the pages: run, parsed, compared, or left out for a stated reason.

``python -m tests.docs.code_blocks`` prints the counts and every reason.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import promql_parser
import yaml

from docs.blocks import ROOT, blocks_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from docs.blocks import Block

REASONS = (
    "needs a server",
    "needs a key",
    "needs a cluster",
    "needs the network",
    "needs a model",
    "needs a browser",
    "takes minutes",
    "excerpt",
)
"""Kinds of reasons behind ``not run:``. The words after the kind name the server, the key or the rest of the file."""
TUTORIAL = "docs/tutorial.md"
CORPUS = (
    "ragtrace/demo/corpus/"  # the demo searches these pages, and a comment would be found; their blocks are parsed
)
SETUPS = Path(__file__).parent / "setups"
RUN = ("python", "sh", "bash")
SHOWN = ("text", "slack")
_NOTES = ("not run", "run by", "setup", "stop after", "output", "wait for", "made by")
_COMMAND = re.compile(r"\s*(ragtrace|pip|python|cat|export|\$) \S+( |$)(?<!: )")
_GLOBS = (
    "*.md",
    "changes/*.md",
    "dashboards/*.md",
    "dashboards/ragtrace_dashboards/dist/runbooks/*.md",
    "dashboards/stack/*.md",
    "deploy/**/*.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "integrations/*/*.md",
    "ragtrace/demo/corpus/*.md",
)


def pages() -> list[Path]:
    """Return every page that people read, as paths in the repository."""
    return sorted({path for glob in _GLOBS for path in ROOT.glob(glob) if "node_modules" not in path.parts})


def blocks() -> list[Block]:
    """Return the blocks of all pages."""
    return [block for page in pages() for block in blocks_of(page)]


def fate(block: Block) -> str:
    """Return what is done with a block: run, run by a test, output, parsed, text or left out."""
    if block.note("not run") is not None:
        return "left out"
    if block.page == TUTORIAL or block.note("run by") is not None or is_one_program(ROOT / block.page):
        return "run by a test of its own"
    if block.kind in RUN and not block.page.startswith(CORPUS):
        return "run"
    if block.kind in SHOWN:
        return "compared" if block.note("output") is not None else "text"
    return "parsed"


def is_one_program(page: Path) -> bool:
    """Tell whether the blocks of a page run in one process, by `test_one_program.py`: its last line says so."""
    return page.is_file() and page.read_text(encoding="utf-8").endswith("<!-- one program -->\n")


def mistakes(block: Block) -> list[str]:
    """Return what is wrong with a block's kind, comments and syntax."""
    found = [f"unknown comment {note!r}" for note in block.notes if not note.startswith(_NOTES)]
    reason = block.note("not run")
    if reason is not None and not reason.startswith(REASONS):
        found.append(f"the reason {reason!r} begins with none of {', '.join(REASONS)}")
    if (test := block.note("run by")) is not None:
        found += _wrong_test(block, test)
    found += [f"no setup {path.name}" for path in setups(block) if not path.is_file()]
    if block.kind in SHOWN:
        found += ["commands belong into a block of sh"] if _COMMAND.match(block.text) else []
    elif block.kind not in PARSERS:
        found.append(f"no kind of block is {block.kind!r}; known: {', '.join((*SHOWN, *PARSERS))}")
    else:
        try:
            PARSERS[block.kind](block.text)
        except Exception as error:  # each parser has errors of its own
            found.append(f"{type(error).__name__}: {error}")
    return [f"{block.place}: {it}" for it in found]


def setups(block: Block) -> list[Path]:
    """Return the files that run before a block and that readers do not see."""
    end = ".py" if block.kind == "python" else ".sh"
    return [SETUPS / (name.strip() + end) for name in (block.note("setup") or "").split(",") if name.strip()]


def _wrong_test(block: Block, test: str) -> list[str]:
    path = ROOT / test.partition("::")[0]
    if not path.is_file():
        return [f"no test {test}"]
    names = (block.page, Path(block.page).name, Path(block.page).stem)
    return [] if any(name in path.read_text(encoding="utf-8") for name in names) else [f"{test} does not name it"]


def _bash(text: str) -> None:
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SyntaxError(done.stderr.strip())


def _ini(text: str) -> None:
    configparser.ConfigParser(interpolation=None).read_string(text if text.startswith("[") else f"[file]\n{text}")


def _json(text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        for line in filter(None, text.splitlines()):  # JSON lines
            json.loads(line)


PARSERS: dict[str, Callable[[str], object]] = {
    "python": ast.parse,
    "sh": _bash,
    "bash": _bash,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "json": _json,
    "toml": tomllib.loads,
    "ini": _ini,
    "promql": promql_parser.parse,
    "dockerfile": str,
    "diff": str,
}


def main() -> int:
    """Print the counts and the reasons."""
    found = blocks()
    for name, count in sorted(Counter(map(fate, found)).items()):
        print(f"{count:4} {name}")
    for block in found:
        if (reason := block.note("not run")) is not None:
            print(f"     {block.place}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
