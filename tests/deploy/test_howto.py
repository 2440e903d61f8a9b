"""The blocks of docs/how-to/deploy.md, as far as they run without a cluster."""

from __future__ import annotations

import re
from typing import Any

import yaml

from tests.deploy.chart import ROOT, TOKEN, deploy_python, manifests, of_kind, render
from tests.e2e.howto import blocks

deploy_python()


def test_the_values_of_the_page_install_scaled_workers() -> None:
    values, _ = blocks("deploy", "yaml")
    found = manifests(render([yaml.safe_load(values)])[0])
    assert of_kind(found, "ScaledObject")
    assert [one["metadata"]["name"] for one in of_kind(found, "Deployment")] == ["rt-ragtrace-worker"]


def test_a_sink_of_the_page_gets_its_address_its_keys_and_its_way_out() -> None:
    _, sink = (yaml.safe_load(text) for text in blocks("deploy", "yaml"))
    found = manifests(render([sink | {"serve": TOKEN}])[0])
    (deployment,) = of_kind(found, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (address,) = [one["value"] for one in container["env"] if one["name"] == "LANGFUSE_BASE_URL"]
    assert address.startswith("https://")
    assert container["envFrom"] == [{"secretRef": {"name": "langfuse"}}]
    (policy,) = of_kind(found, "NetworkPolicy")
    assert policy["spec"]["egress"][-1]["ports"] == [{"port": 443, "protocol": "TCP"}]


def test_the_commands_of_the_page_set_values_that_the_chart_takes() -> None:
    text = " ".join(blocks("deploy", "[ ]*sh"))
    given: dict[str, dict[str, Any]] = {"serve": TOKEN}
    for name, value in re.findall(r"--set-string (\S+)=(\S+)", text):
        section, _, key = name.partition(".")
        given.setdefault(section, {})[key] = value
    assert given["settings"] == {"RAGTRACE_SAMPLE_RATE": "0.05", "RAGTRACE_CONSOLE": "0"}, "the last ones win"
    assert of_kind(manifests(render([given])[0]), "Deployment")


def test_every_path_of_the_page_exists() -> None:
    paths = {path for block in blocks("deploy", "[ ]*sh") for path in re.findall(r"deploy/[\w/.-]+", block)}
    paths.discard("deploy/ragtrace-serve")  # a Deployment in the cluster
    assert len(paths) == 5
    assert all((ROOT / path).exists() for path in paths)
