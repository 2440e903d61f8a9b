"""Code blocks of the pages parse and run, or say why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.blocks import ROOT, blocks_of
from docs.tutorial import differences
from tests.command_line import environment
from tests.docs import code_blocks

LIMIT_S = 240
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
    printed = ""
    for number, block in enumerate(blocks_of(page)):
        if code_blocks.fate(block) == "run":
            printed = _ran(block, tmp_path, block.title or f"block_{number}.py")
        elif block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        elif code_blocks.fate(block) == "compared":
            assert [*differences(block.text, printed)] == [], block.place


def _ran(block, folder, name):
    text = "".join(path.read_text(encoding="utf-8") for path in code_blocks.setups(block)) + block.text
    text = text.replace("/var/lib/", f"{folder}/var/")
    if block.kind == "python":
        (folder / name).write_text(text, encoding="utf-8")
        command = [sys.executable, name]
    else:
        command = ["bash", "-euo", "pipefail", "-c", text]
    limit = (block.note("stop after") or "").removesuffix(" s")
    stopped = ["timeout", "--signal=INT", limit] if limit else []
    done = subprocess.run(
        [*stopped, *command],
        cwd=folder, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == (124 if limit else 0), f"{block.place}: exit status {done.returncode}\n{done.stdout}"
    return done.stdout


def _environment() -> dict[str, str]:
    exporters = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return environment(PATH=path, PYTHONPATH=str(ROOT), **exporters)
