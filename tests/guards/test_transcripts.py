"""Every command of transcripts/*.txt prints what its transcript says, in a folder that has the files of given/.

A line that begins with `$ ` is a command for bash. What it writes to standard output follows, then its lines of
standard error behind `2> `, then its exit status where it is not 0. A command that ends with ` &` is a server: it
prints nothing until `$ kill -INT %1` (Ctrl-C) or `-TERM` ends it. PORT in later commands is the port that it has.

`REWRITE_TRANSCRIPTS=1 pytest tests/guards/test_transcripts.py` writes what the commands print into the files,
and fails where they changed. Read the difference before you commit it: it is what users will see.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import ragtrace
from tests.guards.setting_up import environment

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "transcripts"
TRANSCRIPTS = sorted(path.stem for path in FOLDER.glob("*.txt"))
# What differs from run to run. Times of the records in given/ are of 2024 and are compared, as is help's example.
UNSTABLE = {
    r"\b(?!2026-11-21T08:00)20(?:2[6-9]|[3-9]\d)(?:-\d\d){2}[ T]\d\d(?::\d\d){1,2}(?:\.\d+)?(?:Z|\+00:00)?": "TIME",
    r"\b1(?:7[6-9]|[89]\d)\d{7}\.\d+": "SECONDS",
    r"\b\d+\.\d\d MB": "SIZE",
    rf"(?<!\d\.){re.escape(ragtrace.__version__)}(?!\.?\d)": "VERSION",
}


class Shell:
    """Commands of one transcript, run one after the other in a folder of their own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder, self.environment = folder, environment(name)
        self.server: subprocess.Popen[bytes] | None = None
        self.port = "PORT"

    def run(self, command: str) -> str:
        if ends := re.fullmatch(r"kill -(INT|TERM) %1", command):
            return self.stop(signal.Signals[f"SIG{ends[1]}"])
        if command.endswith(" &"):
            return self.start(command.removesuffix(" &").replace("PORT", self.port))
        done = subprocess.run(
            ["/bin/bash", "-o", "pipefail", "-c", command.replace("PORT", self.port)],
            cwd=self.folder, env=self.environment, capture_output=True, stdin=subprocess.DEVNULL,
            timeout=100, check=False,
        )  # fmt: skip
        return self.said(done.stdout, done.stderr, done.returncode)

    def start(self, command: str) -> str:
        out, err = self.folder / ".stdout", self.folder / ".stderr"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            self.server = subprocess.Popen(
                ["/bin/bash", "-c", f"exec {command}"],
                cwd=self.folder, env=self.environment, stdout=stdout, stderr=stderr,
            )  # fmt: skip
        until = time.monotonic() + 60
        while not (found := re.search(r"127\.0\.0\.1:(\d+).*\n", out.read_text() + err.read_text())):
            assert self.server.poll() is None, err.read_text()
            assert time.monotonic() < until, err.read_text()
            time.sleep(0.05)
        self.port = found[1]
        return ""

    def stop(self, by: signal.Signals) -> str:
        assert self.server is not None
        self.server.send_signal(by)
        status = self.server.wait(timeout=60)
        self.server = None
        return self.said((self.folder / ".stdout").read_bytes(), (self.folder / ".stderr").read_bytes(), status)

    def said(self, out: bytes, err: bytes, status: int) -> str:
        lines = [*out.decode().splitlines(), *(f"2> {line}" for line in err.decode().splitlines())]
        text = "\n".join(line.rstrip() for line in lines + [f"[exit {status}]"] * (status != 0)).strip("\n")
        text = text.replace(str(self.folder), "FOLDER").replace(f"127.0.0.1:{self.port}", "127.0.0.1:PORT")
        for pattern, name in UNSTABLE.items():
            text = re.sub(pattern, name, text)
        return text


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_commands_print_what_their_transcript_says(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.txt"
    expected = path.read_text(encoding="utf-8")
    head, *commands = re.split(r"^\$ ", expected, flags=re.MULTILINE)
    shutil.copytree(FOLDER / "given", tmp_path, dirs_exist_ok=True)
    shell = Shell(name, tmp_path)
    try:
        seen = head.strip()
        for command in (one.splitlines()[0] for one in commands):
            seen += f"\n\n$ {command}\n{shell.run(command)}".rstrip()
    finally:
        if shell.server is not None:
            shell.server.kill()
            shell.server.wait()
    seen += "\n"
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text(seen, encoding="utf-8")
    different = difflib.unified_diff(expected.splitlines(), seen.splitlines(), "transcript", "now", lineterm="")
    assert not (said := "\n".join(different)), said
