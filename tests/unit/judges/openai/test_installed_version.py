"""An openai that no judge can use is one line, where a judge is made and not where it is first asked."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from ragtrace.errors import ConfigError
from ragtrace.judges import OpenAIChat
from ragtrace.judges.openai.transport import OPENAI_RANGE

ROOT = Path(__file__).resolve().parents[4]
CONFIGURE = """
import sys
import ragtrace
from ragtrace.errors import ConfigError
try:
    ragtrace.configure(judge_base_url="http://127.0.0.1:9/v1", {setting}="{name}")
except ConfigError as error:
    print(error)
print("openai" in sys.modules)
"""


def installed(folder: Path, version: str) -> Path:
    """Install the metadata of a release, as `pip` would, before that of the real one."""
    info = folder / f"openai-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: openai\nVersion: {version}\n", encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def line_of(version: str, folder: Path) -> str:
    return (
        f"openai {version} in {folder} is outside {OPENAI_RANGE}, which judges and embedders openai:MODEL need:"
        f' pip install "openai{OPENAI_RANGE}"'
    )


@pytest.mark.parametrize(
    ("version", "setting", "name"),
    [("1.109.1", "judge", "openai:m"), ("1.109.1", "judge", "overlap,openai:b"), ("4.0.0", "embedder", "openai:m")],
)
def test_a_release_outside_the_range_is_one_line_at_configure(
    tmp_path: Path, version: str, setting: str, name: str
) -> None:
    done = run(installed(tmp_path, version), "-c", CONFIGURE.format(setting=setting, name=name))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [line_of(version, tmp_path), "False"]


@pytest.mark.parametrize(
    ("version", "is_used"),
    [
        ("0.28.1", False),
        ("1.109.1", False),
        ("2.0.0", True),
        ("2.54.0", True),
        ("3.0.0rc1", True),
        ("3.52.0", True),
        ("4.0.0", False),
        ("10.2", False),
        ("20.1", False),
    ],
)
def test_releases_2_and_3_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, *, is_used: bool
) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path, version)))
    if is_used:
        assert OpenAIChat("m", api_key="k").name == "m"
        return
    with pytest.raises(ConfigError) as caught:
        OpenAIChat("m", api_key="k")
    assert str(caught.value) == line_of(version, tmp_path)


def test_a_judge_that_asks_no_server_needs_no_openai(tmp_path: Path) -> None:
    code = CONFIGURE.format(setting="judge", name="overlap")
    assert run(installed(tmp_path, "1.109.1"), "-c", code).stdout == "False\n"


def test_score_ends_with_exit_status_2(tmp_path: Path) -> None:
    records = tmp_path / "answers.jsonl"
    records.write_text('{"id": "1", "query": "Where?", "answer": "In Oslo.", "contexts": ["Oslo."]}\n')
    server = ("--base-url", "http://127.0.0.1:9/v1")
    done = run(
        installed(tmp_path, "4.1.0"), "-m", "ragtrace", "score", str(records), "--judge", "openai:m", *server
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ragtrace: {line_of('4.1.0', tmp_path)}\n"


def test_a_frozen_application_without_metadata_may_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert OpenAIChat("m", api_key="k").name == "m"


def test_the_range_is_that_of_the_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras["openai"] == [f"openai{OPENAI_RANGE}"]
    assert f"openai{OPENAI_RANGE}" in extras["all"]
