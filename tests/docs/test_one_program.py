"""Pages with the comment ``one program``: their blocks run in their order in one process, and print what they show."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from docs.blocks import ROOT, blocks_of
from ragtrace.metrics import all_metrics
from tests.docs import code_blocks
from tests.docs.test_code_blocks import LIMIT_S, _environment

if TYPE_CHECKING:
    from pathlib import Path

    from docs.blocks import Block

PAGES = [page for page in code_blocks.pages() if code_blocks.is_one_program(page)]
METRICS = ROOT / "docs" / "concepts" / "metrics"
_TRACE = re.compile(r"\b[0-9a-f]{32}\b")
_MARK = "\x1e"
_SHELL = "subprocess.run(['bash', '-euo', 'pipefail', '-c', {text!r}], check=True, stderr=subprocess.STDOUT)"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_shows_what_its_blocks_print(page: Path, tmp_path: Path) -> None:
    blocks = [block for block in blocks_of(page) if block.note("not run") is None]
    shown = {before: block for before, block in itertools.pairwise(blocks) if block.kind == "text"}
    code = [block for block in blocks if block.kind in code_blocks.RUN]
    for block, printed in zip(code, _printed(code, tmp_path), strict=True):
        said = shown[block].text.splitlines() if block in shown else []
        got = printed.splitlines()
        assert len(said) == len(got), f"{block.place} prints\n{printed}"
        assert [pair for pair in zip(said, got, strict=True) if not _is_said(*pair)] == [], block.place


def test_every_metric_has_a_section_that_names_its_outputs() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in METRICS.glob("*.md"))
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))
    for name, metric in all_metrics().items():
        missing = [output.name for output in metric.spec.outputs if output.name not in sections.get(name, "")]
        assert missing == [], name


def _is_said(said: str, printed: str) -> bool:
    """Tell whether a line is printed as the page says, but for trace ids and what stands for ``...``."""
    parts = (re.escape(_TRACE.sub("#", part)) for part in said.split("..."))
    return bool(re.fullmatch(".*".join(parts), _TRACE.sub("#", printed)))


def _printed(blocks: list[Block], folder: Path) -> list[str]:
    lines = ["import subprocess"]
    for block in blocks:
        lines += [
            block.text if block.kind == "python" else _SHELL.format(text=block.text),
            f"print({_MARK!r}, end='', flush=True)",
        ]
    (folder / "page.py").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "page.py"],
        cwd=folder, env=_environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(_MARK)[:-1]
