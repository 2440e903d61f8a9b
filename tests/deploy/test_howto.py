"""The blocks of docs/how-to/deploy.md, as far as they run without a cluster."""

from __future__ import annotations

import re

import yaml

from tests.deploy.chart import ROOT, deploy_python, manifests, of_kind, render
from tests.e2e.howto import blocks

deploy_python()


def test_the_values_of_the_page_install_scaled_workers() -> None:
    (values,) = blocks("deploy", "yaml")
    found = manifests(render([yaml.safe_load(values)])[0])
    assert of_kind(found, "ScaledObject")
    assert [one["metadata"]["name"] for one in of_kind(found, "Deployment")] == ["rt-ragtrace-worker"]


def test_every_path_of_the_page_exists() -> None:
    paths = {path for block in blocks("deploy", "sh") for path in re.findall(r"deploy/[\w/.-]+", block)}
    assert len(paths) == 4
    assert all((ROOT / path).exists() for path in paths)
