"""The checks of a release find what they look for, and imports stay light."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docs import stability_table
from scripts import licences, wheel_check

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "openai", "numpy", "rich", "sqlite3", "starlette", "jinja2", "opentelemetry.sdk", "uvicorn", "mcp", "pydantic",
    "ragtrace.settings",
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "ours", "other"),
    [
        ("sys", "ragtrace, ragtrace.capture, ragtrace.service.runtime", ("langchain_core", "llama_index")),
        pytest.param("langchain_core.callbacks", "ragtrace_langchain", ("llama_index",), marks=pytest.mark.slow),
        pytest.param("llama_index.core", "ragtrace_llamaindex", ("langchain_core",), marks=pytest.mark.slow),
    ],
)
def test_an_import_brings_nothing_heavy_beside_the_framework(before, ours, other):
    """A package counts when the framework alone has not loaded it."""
    code = (
        f"import sys, {before}\nbefore = set(sys.modules)\nimport {ours}\n"
        "print(*sorted(set(sys.modules) - before))\n"
        "print(*before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    new, known = map(str.split, done.stdout.splitlines())
    assert ours.split(", ")[0] in new
    heavy = [name for name in (*HEAVY, *other) if name not in known]
    assert [it for it in new if any(it == name or it.startswith(f"{name}.") for name in heavy)] == []


def test_licences_are_on_the_list_and_the_page_is_current(capsys):
    assert licences.main(write=False) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "expected", "allowed"),
    [
        (["License-Expression: MIT AND PSF-2.0"], "MIT AND PSF-2.0", True),
        (["License: BSD", "Classifier: License :: OSI Approved :: BSD License"], "BSD", True),
        (["Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)"], "unknown", False),
        (["License: AGPL-3.0"], "unknown", False),
        (["License-Expression: GPL-3.0 OR MIT"], "GPL-3.0 OR MIT", True),
        ([], "unknown", False),
    ],
)
def test_a_licence_is_read_and_judged(tmp_path, lines, expected, allowed):
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: x", "Version: 1", *lines]) + "\n\n")
    found = licences.licence(importlib.metadata.Distribution.at(info).metadata)
    assert (found, licences.is_allowed(found)) == (expected, allowed)


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(tmp_path):
    """Over a clone, since the checkout may hold files that are not committed."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)  # noqa: S607 - git of the PATH
    built = []
    for number in (1, 2):
        out = tmp_path / str(number)
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, clone]
        subprocess.run(command, check=True, capture_output=True, timeout=240)
        built.append({it.name: it.read_bytes() for it in out.iterdir()})
    assert built[0] == built[1], "two builds differ"
    (wheel,), (sdist,) = (tmp_path / "1").glob("*.whl"), (tmp_path / "1").glob("*.tar.gz")
    assert wheel_check.wheel_findings(wheel) == wheel_check.sdist_findings(sdist) == []
    worse = shutil.copy(wheel, tmp_path / "worse.whl")
    with zipfile.ZipFile(worse, "a") as opened:
        opened.writestr("ragtrace/tests/notes.txt", "x")
    assert {it.split(":")[0] for it in wheel_check.wheel_findings(worse)} == {"stray file", "a test is shipped"}


def test_the_lists_of_the_stability_page_are_current():
    text = stability_table.PAGE.read_text(encoding="utf-8")
    assert stability_table.with_tables(text) == text, "run python -m docs.stability_table"
    assert set(stability_table.wire_names()) == {
        "development (OpenTelemetry GenAI)", "of OpenInference", "ours (`ragtrace.*`)", "stable (OpenTelemetry)",
    }  # fmt: skip


@pytest.mark.slow
def test_a_dry_run_of_a_release_changes_nothing(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)  # noqa: S607

    def state() -> list[str]:
        asked = (("status", "--porcelain"), ("tag",), ("rev-parse", "HEAD"))
        return [
            subprocess.run(["git", *it], cwd=clone, check=True, capture_output=True, text=True).stdout  # noqa: S607
            for it in asked
        ]

    before = state()
    command = [sys.executable, "-m", "scripts.release", "9.9.9", "--dry-run", "--without-long-checks"]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "built: ragtrace_otel-9.9.9-py3-none-any.whl, ragtrace_otel-9.9.9.tar.gz" in done.stdout
    assert state() == before


@pytest.mark.parametrize("version", ["next", "1.x"])
def test_a_version_that_is_none_is_refused(version):
    command = [sys.executable, "-m", "scripts.release", version, "--dry-run"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert f"'{version}' is not a version" in done.stderr
