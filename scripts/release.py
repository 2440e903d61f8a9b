"""Prepares a release: ``make release VERSION=0.2.0``. It uploads nothing; the last steps are printed.

A clean clone of the current commit is changed, built and checked in a temporary folder. Only when all of it went
well are the release's commit and tag fetched into this repository, and the files put into ``dist/``. With
``--dry-run`` nothing is fetched.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = "build/shipped"
"""Environment of the wheel with all extras, in the clone."""


def run(*command: str, cwd: Path, **more: str) -> str:
    """Run a command and return its output; a failure ends the release."""
    print("$", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=cwd, env=os.environ | more, text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        print(done.stdout)
        sys.exit(f"release: {command[0]} ended with {done.returncode}; nothing was changed here")
    return done.stdout.strip()


def preconditions(version: str, *, dry_run: bool) -> str | None:
    """Return the tag of the last release, or None before the first one.

    The script ends where the version is none or not new, or where the tree is not clean on main.
    """
    try:
        new = Version(version)
    except InvalidVersion:
        sys.exit(f"release: {version!r} is not a version; give one such as 0.2.0")
    tags = [it for it in run("git", "tag", "--list", "v*", cwd=ROOT).split() if re.fullmatch(r"v[\d.]+\w*", it)]
    last = max(tags, key=lambda it: Version(it[1:]), default=None)
    if last and new <= Version(last[1:]):
        sys.exit(f"release: {version} is not newer than {last}")
    if not dry_run:
        if run("git", "status", "--porcelain", cwd=ROOT):
            sys.exit("release: the tree is not clean; commit or remove what git status shows")
        if run("git", "branch", "--show-current", cwd=ROOT) != "main":
            sys.exit("release: releases are made on main")
    return last


def write_version(clone: Path, version: str) -> None:
    """Write the version and the changelog, and commit and tag them in the clone."""
    file = clone / "ragtrace/_version.py"
    file.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', file.read_text()))
    if any(it.suffix == ".md" and it.name.count(".") > 1 for it in (clone / "changes").iterdir()):
        run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, cwd=clone)
    run("git", "add", "--all", cwd=clone)
    run("git", "commit", "--quiet", "--allow-empty", "-m", f"release: {version}", cwd=clone)
    run("git", "tag", f"v{version}", cwd=clone)


def build_twice(clone: Path) -> None:
    """Build wheel and sdist into ``dist`` of the clone, and end where a second build has other bytes."""
    epoch = run("git", "log", "-1", "--format=%ct", cwd=clone)
    for folder in ("dist", "dist-again"):
        run(
            sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ".",
            cwd=clone, SOURCE_DATE_EPOCH=epoch,
        )  # fmt: skip
    for built in (clone / "dist").iterdir():
        if built.read_bytes() != (clone / "dist-again" / built.name).read_bytes():
            sys.exit(f"release: two builds of {built.name} differ")


def main() -> int:
    """Prepare the release and print the steps that are left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="change nothing here")
    parser.add_argument("--without-long-checks", action="store_true", help="leave out .ci/run, SBOM and audit")
    options = parser.parse_args()
    last = preconditions(options.version, dry_run=options.dry_run)
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        run("git", "clone", "--quiet", "--no-local", str(ROOT), str(clone), cwd=ROOT)
        if not options.without_long_checks:
            run(".ci/run", cwd=clone)
        if last:
            run(sys.executable, "-m", "griffe", "check", "ragtrace", "--against", last, cwd=clone)
        write_version(clone, options.version)
        build_twice(clone)
        run(sys.executable, "-m", "scripts.wheel_check", "dist", cwd=clone)
        run(sys.executable, "-m", "scripts.licences", cwd=clone)
        if not options.without_long_checks:
            run("make", "sbom", cwd=clone)
            run("make", "audit", "ARGS=--required", cwd=clone)
            shutil.copy(clone / "build/sbom.json", clone / "dist")
        names = sorted(it.name for it in (clone / "dist").iterdir())
        if not options.dry_run:
            tag = f"refs/tags/v{options.version}"
            run("git", "fetch", "--quiet", str(clone), "HEAD", f"{tag}:{tag}", cwd=ROOT)
            run("git", "merge", "--quiet", "--ff-only", "FETCH_HEAD", cwd=ROOT)
            shutil.rmtree(ROOT / "dist", ignore_errors=True)
            shutil.copytree(clone / "dist", ROOT / "dist")
    print(f"built: {', '.join(names)}")
    if options.dry_run:
        print("A dry run: this repository is as it was.")
        return 0
    print(f"Left to do: git push origin main v{options.version}; then upload the wheel and the sdist in dist/.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
