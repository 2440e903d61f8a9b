"""Checks the wheel and the sdist in a folder: contents, size, metadata, entry points and types.

Run ``python -m scripts.wheel_check [FOLDER]`` after ``make wheel``. It exits with 1 and one line for each finding.
"""

from __future__ import annotations

import configparser
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "ragtrace": "ragtrace",
    "ragtrace_langchain": "integrations/langchain/ragtrace_langchain",
    "ragtrace_llamaindex": "integrations/llamaindex/ragtrace_llamaindex",
    "ragtrace_dashboards": "dashboards/ragtrace_dashboards",
}
WHEEL_BYTES, SDIST_BYTES = 2_000_000, 2_000_000
"""Budgets. On 2026-11-24 the wheel had 1.62 MB and the sdist 1.39 MB."""

LICENCES = {"LICENSE", "htmx.LICENSE", "uplot.LICENSE"}


def wheel_findings(wheel: Path) -> list[str]:
    """Return the findings in a wheel: it holds the packages' files of git, and no others."""
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        info = next(it.split("/")[0] for it in names if it.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(opened.read(f"{info}/METADATA"))
        entries = opened.read(f"{info}/entry_points.txt").decode()
    shipped = {it for it in names if not it.startswith(f"{info}/")}
    expected = {
        f"{name}/{path.removeprefix(folder + '/')}"
        for name, folder in PACKAGES.items()
        for path in _tracked(folder)
    }
    licences = {it.rsplit("/", 1)[1] for it in names if it.startswith(f"{info}/licenses/")}
    return [
        *(f"stray file: {it}" for it in sorted(shipped - expected)),
        *(f"missing file: {it}" for it in sorted(expected - shipped)),
        *(f"no py.typed: {it}" for it in PACKAGES if f"{it}/py.typed" not in names),
        *(f"no licence: {it}" for it in sorted(LICENCES - licences)),
        *(f"a test is shipped: {it}" for it in sorted(shipped) if "/tests/" in it or "/test_" in it),
        *_size(wheel, WHEEL_BYTES),
        *([] if metadata.license_expression == "Apache-2.0" else ["the metadata name another licence"]),
        *([] if metadata.description_content_type == "text/markdown" else ["the description is no Markdown"]),
        *_dead_entry_points(entries, names),
    ]


def sdist_findings(sdist: Path) -> list[str]:
    """Return the findings in an sdist: all its files are in git, and the packages are whole."""
    with tarfile.open(sdist) as opened:
        names = {it.name.split("/", 1)[1] for it in opened if it.isfile()}
    tracked = set(_tracked("."))
    packages = {it for folder in PACKAGES.values() for it in _tracked(folder)}
    return [
        *(f"stray file in the sdist: {it}" for it in sorted(names - tracked - {"PKG-INFO"})),
        *(f"missing file in the sdist: {it}" for it in sorted(packages - names)),
        *_size(sdist, SDIST_BYTES),
    ]


def typing_findings(wheel: Path) -> list[str]:
    """Return mypy's findings in a user's file, against the installed wheel."""
    with tempfile.TemporaryDirectory() as folder:
        env = Path(folder) / "env"
        venv.create(env)
        (site,) = env.glob("lib/python3*/site-packages")
        with zipfile.ZipFile(wheel) as opened:
            opened.extractall(site)
        # Dependencies come from the environment that runs this. Its own editable ragtrace is not seen.
        (site / "dependencies.pth").write_text(next(it for it in sys.path if it.endswith("site-packages")))
        user = Path(folder) / "user.py"
        user.write_text((ROOT / "tests/typing/api.py").read_text(encoding="utf-8"))
        command = [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--python-executable",
            str(env / "bin/python"),
            str(user),
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"mypy: {it}" for it in (done.stdout + done.stderr).splitlines()]


def _tracked(folder: str) -> list[str]:
    command = ["git", "ls-files", "-z", folder]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [it for it in listed.stdout.split("\0") if it]


def _size(path: Path, budget: int) -> list[str]:
    size = path.stat().st_size
    return [f"{path.name} has {size:,} bytes, more than {budget:,}"] if size > budget else []


def _dead_entry_points(text: str, names: set[str]) -> list[str]:
    parsed = configparser.ConfigParser()
    parsed.read_string(text)
    values = {value for section in parsed.sections() for value in parsed[section].values()}
    modules = {value.split(":")[0].replace(".", "/") for value in values}
    return [f"dead entry point: {it}" for it in sorted(modules) if not names & {f"{it}.py", f"{it}/__init__.py"}]


def main(folder: Path) -> int:
    """Check the only wheel and sdist of a folder, and return the exit status."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    findings = [*wheel_findings(wheel), *sdist_findings(sdist), *typing_findings(wheel)]
    for finding in findings:
        print(finding)
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")))
