"""An environment for each peer under build/overhead, made once; the rest runs in the main process's own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.overhead.candidates import Candidate

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "build" / "overhead"
LOCK = ROOT / "requirements" / "dev.lock"
_LIMIT_S = 900


class Unavailable(Exception):
    """A candidate cannot be measured here; the reason is printed in its row."""


def python_of(candidate: Candidate) -> tuple[Path, str]:
    """Return the interpreter of a candidate and what is to be said of its environment; make it if need be.

    Raises:
        Unavailable: pip could not make it.
    """
    if not candidate.is_peer:
        return Path(sys.executable), ""
    home = HOME / candidate.key
    python, ready = home / "bin" / "python", home / ".ready"
    wanted = ROOT / "requirements" / "overhead" / f"{candidate.key}.in"
    state = hashlib.sha256(wanted.read_bytes() + LOCK.read_bytes()).hexdigest()
    if ready.exists() and ready.read_text().partition("\n")[0] == state:
        return python, ready.read_text().partition("\n")[2]
    print(f"making {home.relative_to(ROOT)}", file=sys.stderr, flush=True)
    note = _made(home, python, wanted)
    ready.write_text(f"{state}\n{note}")
    return python, note


def _made(home: Path, python: Path, wanted: Path) -> str:
    """Make the environment with our versions of all it shares with us, or with its own where it refuses ours."""
    _run([sys.executable, "-m", "venv", "--clear", str(home)])
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(wanted)]
    try:
        _run([*install, "-c", str(LOCK)])
    except Unavailable:
        _run(install)
        return "its requirements refuse requirements/dev.lock"
    return ""


def checked_out(revision: str) -> Path:
    """Return a folder under build/overhead that holds the project's files at a commit.

    Raises:
        Unavailable: git does not know the commit.
    """
    home = HOME / "before"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    archive = home.with_suffix(".tar")
    _run(["git", "-C", str(ROOT), "archive", "--output", str(archive), revision])
    with tarfile.open(archive) as files:
        files.extractall(home, filter="data")
    archive.unlink()
    # Its own code under today's benchmark, which may know measures that the commit's does not.
    shutil.copytree(ROOT / "benchmarks", home / "benchmarks", dirs_exist_ok=True)
    return home


def python_path(source: Path) -> str:
    """Return the PYTHONPATH of a checkout, which comes before the installed packages."""
    places = [source, *sorted((source / "integrations").iterdir()), source / "dashboards"]
    return os.pathsep.join(map(str, places))


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{type(error).__name__}: {command[:4]}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith(("ERROR", "fatal"))] or ["it failed"]
        raise Unavailable(lines[-1].removeprefix("ERROR: "))
