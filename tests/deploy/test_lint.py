"""Linters over deploy/: yamllint, hadolint and checkov."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.deploy.chart import CASES, ROOT, deploy_python, manifests, render

if TYPE_CHECKING:
    from pathlib import Path

DEPLOY = ROOT / "deploy"
CONTAINERFILE = DEPLOY / "container" / "Containerfile"
YAMLLINT = (
    "{extends: default, rules: {line-length: {max: 120}, document-start: disable, comments: {min-spaces-from-content: 1},"
    " braces: {max-spaces-inside: 1}}}"
)
# Findings that stay, with their reasons.
SKIPPED = {
    "CKV_K8S_11": "no CPU limit: throttling delays heartbeats and makes a pod lose its partitions",
    "CKV_K8S_35": "secrets as variables: every ragtrace setting is one, and the process drops none to children",
    "CKV_DOCKER_7": "the base has tag and digest, which the check does not find behind a build argument",
}


def test_yaml_files_are_clean() -> None:
    files = [
        *(DEPLOY / "collector").glob("*.yaml"),
        DEPLOY / "helm" / "ragtrace" / "values.yaml",
        DEPLOY / "helm" / "ragtrace" / "Chart.yaml",
    ]
    _clean([sys.executable, "-m", "yamllint", "--strict", "-d", YAMLLINT, *map(str, files)])


def test_hadolint_finds_nothing_in_the_containerfile() -> None:
    _clean([str(deploy_python().with_name("hadolint")), str(CONTAINERFILE)])


@pytest.mark.slow
def test_checkov_finds_nothing_that_has_no_reason(tmp_path: Path) -> None:
    import yaml

    everything = manifests(render([CASES["everything"]])[0])
    (tmp_path / "rendered.yaml").write_text(yaml.safe_dump_all(everything), encoding="utf-8")
    shutil.copy(CONTAINERFILE, tmp_path / "Dockerfile")  # the name that checkov looks for
    python = deploy_python()
    _clean(
        [
            *(str(python), str(python.with_name("checkov")), "--directory", str(tmp_path)),
            *("--framework", "kubernetes", "dockerfile", "--skip-download", "--quiet", "--compact"),
            *("--skip-check", ",".join(SKIPPED)),
        ]
    )


def _clean(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
