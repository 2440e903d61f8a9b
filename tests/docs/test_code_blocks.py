"""Code blocks of the pages parse and run, or say why not."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from docs.blocks import ROOT, Block, blocks_of
from docs.tutorial import differences
from tests.command_line import environment
from tests.docs import code_blocks

LIMIT_S = 120
MARK = "-- block "
RUN_PAGES = [
    page for page in code_blocks.pages() if any(code_blocks.fate(block) == "run" for block in blocks_of(page))
]


def test_every_block_parses_and_its_comments_are_known() -> None:
    found = code_blocks.blocks()
    assert len(found) > 150
    assert [it for block in found for it in code_blocks.mistakes(block)] == []


def test_a_block_that_is_wrong_is_found() -> None:
    page = "```python\nx =\n```\n\n<!-- not run: tired -->\n```sh\nls\n```\n\n```cobol\n```\n"
    found = [it for block in blocks_of(Path("page.md"), page) for it in code_blocks.mistakes(block)]
    assert [it.partition(": ")[2].split()[0] for it in found] == ["SyntaxError:", "the", "no"]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_PAGES, ids=[str(page.relative_to(ROOT)) for page in RUN_PAGES])
def test_the_blocks_of_a_page_run_in_their_order(page: Path, tmp_path: Path) -> None:
    for name in ("app", "ragtrace"):
        (tmp_path / "var" / name).mkdir(parents=True)
    blocks = blocks_of(page)
    for block in blocks:
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    printed: dict[Block, str] = {}
    run = [block for block in blocks if code_blocks.fate(block) == "run"]
    for kind, grouped in groupby(run, key=lambda block: block.kind):
        group = [*grouped]
        printed |= (
            _ran_python(group, tmp_path) if kind == "python" else {it: _ran_shell(it, tmp_path) for it in group}
        )
    for before, block in pairwise(blocks):
        if code_blocks.fate(block) == "compared":
            assert [*differences(block.text, printed[before])] == [], block.place


def _ran_python(blocks: list[Block], folder: Path) -> dict[Block, str]:
    """Run blocks as one program, which tells in its output where each begins."""
    parts, known = [], set()
    for block in blocks:
        new = [path for path in code_blocks.setups(block) if path not in known]
        known |= set(new)
        mark = f"print({MARK!r} + {block.place!r}, flush=True)"
        parts += [*(path.read_text(encoding="utf-8") for path in new), mark, _text(block, folder)]
    (folder / "blocks.py").write_text("\n".join(parts), encoding="utf-8")
    output = _output([sys.executable, "blocks.py"], folder)
    return {block: part.partition("\n")[2] for block, part in zip(blocks, output.split(MARK)[1:], strict=True)}


def _ran_shell(block: Block, folder: Path) -> str:
    text = "\n".join(path.read_text(encoding="utf-8") for path in code_blocks.setups(block)) + _text(block, folder)
    limit = (block.note("stop after") or "").removesuffix(" s")
    stopped = ["timeout", "--signal=INT", limit] if limit else []
    return _output([*stopped, "bash", "-euo", "pipefail", "-c", text], folder, status=124 if limit else 0)


def _text(block: Block, folder: Path) -> str:
    return block.text.replace("/var/lib/", f"{folder}/var/")


def _output(command: list[str], folder: Path, status: int = 0) -> str:
    done = subprocess.run(
        command,
        cwd=folder, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == status, f"exit status {done.returncode}\n{command[-1]}\n{done.stdout}"
    return done.stdout


def _environment() -> dict[str, str]:
    exporters = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return environment(PATH=path, PYTHONPATH=str(ROOT), **exporters)
