"""``python -m docs.tutorial``: do what docs/tutorial.md says, in a fresh environment and an empty folder.

Every block is taken from the page. One shell runs the commands in their order, as a reader's terminal does. The
`text` block behind commands is their output. There `...` stands for anything. Numbers with decimals may differ by
.15, or 15 %, and whole numbers, times and trace ids at all.
"""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from docs.blocks import ROOT, blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "tutorial.md"
FOLDER = "/tmp/help-centre"  # noqa: S108 - the page's words; the script has a folder of its own
LIMIT_S = 240
_NUMBER = re.compile(r"\b[0-9a-f]{32}\b|\d+\.\d+%?|\d+")
_CLOSE = 0.15


class Terminal:
    """One bash in a folder, which keeps its variables, folder and jobs from block to block."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        self._turn = 0

    def run(self, commands: str) -> tuple[int, str]:
        """Run a block; return the exit status of its last command, and all that it printed."""
        self._turn += 1
        mark = f"-- end {self._turn} "
        assert self._shell.stdin is not None
        self._shell.stdin.write(f'{commands}\nprintf "\\n%s%s\\n" "{mark}" "$?"\n'.encode())
        self._shell.stdin.flush()
        printed = self._until(mark)
        text, _, status = printed.rpartition(mark)
        return int(status), text.removesuffix("\n")

    def close(self) -> None:
        """End the shell and the programs that it started."""
        os.killpg(self._shell.pid, signal.SIGTERM)
        self._shell.wait(10)

    def _until(self, mark: str) -> str:
        assert self._shell.stdout is not None
        printed, deadline = "", time.monotonic() + LIMIT_S
        with selectors.DefaultSelector() as ready:
            ready.register(self._shell.stdout, selectors.EVENT_READ)
            while not re.search(re.escape(mark) + r"\d+\n$", printed):
                if not ready.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"nothing more was printed in {LIMIT_S} s:\n{printed}")
                chunk = os.read(self._shell.stdout.fileno(), 65_536)
                if not chunk:
                    raise EOFError(f"the shell ended:\n{printed}")
                printed += chunk.decode(errors="replace")
        return printed


def run(page: Path, work: Path) -> list[str]:
    """Do what a page says in a folder of ours, and return one line a mistake.

    Args:
        page: its `text` blocks are compared with what the commands before them print.
        work: an empty folder.
    """
    clone = _copied(work / "clone")
    terminal = Terminal(clone, _environment())
    mistakes, printed = [], ""
    try:
        for block in blocks_of(page):
            if block.title:
                (work / "help-centre" / block.title).write_text(block.text, encoding="utf-8")
            elif block.kind == "sh":
                begin = time.monotonic()
                status, printed = terminal.run(block.text.replace(FOLDER, str(work / "help-centre")))
                print(f"{time.monotonic() - begin:6.1f} s  {block.text.splitlines()[0]}", flush=True)
                if status:
                    return [*mistakes, f"{block.place}: exit status {status}:\n{printed}"]
            elif block.kind == "text":
                mistakes += [f"{block.place}: {line}" for line in differences(block.text, printed)]
            if (url := block.note("wait for")) and not _answers(url):
                return [*mistakes, f"{block.place}: {url} does not answer"]
    finally:
        terminal.close()
    return mistakes


def differences(said: str, printed: str) -> Iterator[str]:
    """Yield a line for each line of a page that is not printed in its place.

    Example:
        >>> list(differences("fell by 0.38 to ...", "fell by 0.41 to 2"))
        []
        >>> list(differences("fell by 0.38", "fell by 0.80"))
        ["'fell by 0.38' is not printed, but 'fell by 0.80'"]
    """
    left = [line.rstrip() for line in printed.splitlines() if line.strip()]
    may_skip = False
    for line in (line.rstrip() for line in said.splitlines() if line.strip()):
        if line == "...":
            may_skip = True
            continue
        while may_skip and left and not is_like(line, left[0]):
            left.pop(0)
        found = left.pop(0) if left else ""
        if not is_like(line, found):
            yield f"{line!r} is not printed, but {found!r}"
        may_skip = False
    if left and not may_skip:
        yield f"more is printed: {left[0]!r}"


def is_like(said: str, printed: str) -> bool:
    """Tell whether a printed line is the one of the page, but for `...` and numbers.

    Example:
        >>> is_like("191 answers, mean 0.50 ...", "87 answers, mean 0.61 (n 12)")
        True
    """
    parts = (re.escape(_NUMBER.sub("#", part)) for part in said.split("..."))
    if not re.fullmatch(".*".join(parts), _NUMBER.sub("#", printed)):
        return False
    if "..." in said:
        return True
    pairs = zip(_NUMBER.findall(said), _NUMBER.findall(printed), strict=True)
    return all(_is_close(one, other) for one, other in pairs)


def _is_close(said: str, printed: str) -> bool:
    if "." not in said or "." not in printed:
        return "." not in said and "." not in printed
    scale = 100 if said.endswith("%") else 1
    return abs(float(said.rstrip("%")) - float(printed.rstrip("%"))) <= _CLOSE * scale


def _answers(url: str) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310 - an address of the page
                return bool(reply.status == HTTPStatus.OK)
        except OSError:
            time.sleep(0.2)
    return False


def _copied(clone: Path) -> Path:
    """Copy the files of this clone that git knows or would take."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    return clone


def _environment() -> dict[str, str]:
    ours = ("RAGTRACE_", "OTEL_", "OPENAI_", "HELP_CENTRE_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    python = Path(sys.base_prefix) / "bin"
    return {**kept, "PATH": f"{python}:{kept['PATH']}", "PIP_CONSTRAINT": str(ROOT / "requirements" / "dev.lock")}


def main() -> int:
    """Print how long each block took, and each mistake; return 1 if there is one."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ragtrace-tutorial-") as work:
        mistakes = run(PAGE, Path(work))
    print(f"{time.monotonic() - begin:6.1f} s  {PAGE.name}: {len(mistakes)} mistakes")
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
