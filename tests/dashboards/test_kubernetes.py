"""Objects for Kubernetes: the rules and boards of the pack, under names and labels by which they are found."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from ragtrace_dashboards import Config, board_files, files, prometheus_files

CONFIGS = {"default": Config(), "demo": Config.demo()}
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")  # RFC 1123
KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
DURATION = re.compile(r"(0|((\d+)y)?((\d+)w)?((\d+)d)?((\d+)h)?((\d+)m)?((\d+)s)?((\d+)ms)?)")
LIMIT, LAST_APPLIED = 262_144, "kubectl.kubernetes.io/last-applied-configuration"
GROUP = {"name", "interval", "rules"}
RULE = {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}
"""Fields of the operator's PrometheusRule, v1: of others it would keep nothing."""


def objects(config):
    found = {path: text for path, text in files(config, "kubernetes").items() if path.startswith("kubernetes/")}
    return {path: yaml.safe_load(text) for path, text in found.items()}


def of_kind(config, kind):
    return {it["metadata"]["name"]: it for it in objects(config).values() if it["kind"] == kind}


@pytest.mark.parametrize("profile", CONFIGS)
def test_every_object_has_a_name_and_the_labels_by_which_it_is_found(profile):
    found = objects(CONFIGS[profile])
    labels = {"PrometheusRule": ("release", "kube-prometheus-stack"), "ConfigMap": ("grafana_dashboard", "1")}
    versions = {"PrometheusRule": "monitoring.coreos.com/v1", "ConfigMap": "v1"}
    assert len({(it["kind"], it["metadata"]["name"]) for it in found.values()}) == len(found)
    for path, it in found.items():
        name = it["metadata"]["name"]
        assert path == f"kubernetes/{name}.yaml"
        assert SUBDOMAIN.fullmatch(name)
        assert len(name) <= 253
        assert it["apiVersion"] == versions[it["kind"]]
        key, value = labels[it["kind"]]
        assert it["metadata"] == {"name": name, "labels": {"app.kubernetes.io/part-of": "ragtrace", key: value}}


@pytest.mark.parametrize("profile", CONFIGS)
def test_the_rules_are_those_of_the_rule_files(profile):
    config = CONFIGS[profile]
    rules = {f"{path.split('/')[1]}": yaml.safe_load(text) for path, text in prometheus_files(config).items()}
    found = of_kind(config, "PrometheusRule")
    assert {f"{name}.yaml": it["spec"] for name, it in found.items()} == rules
    assert all(set(it) == {"apiVersion", "kind", "metadata", "spec"} for it in found.values())
    for spec in rules.values():
        assert len({group["name"] for group in spec["groups"]}) == len(
            spec["groups"]
        )  # the operator's list by name
        for group in spec["groups"]:
            assert set(group) <= GROUP
            assert DURATION.fullmatch(group["interval"])
            for rule in group["rules"]:
                assert set(rule) <= RULE
                assert ("alert" in rule) != ("record" in rule)
                assert all(DURATION.fullmatch(rule.get(it, "0")) for it in ("for", "keep_firing_for"))
                assert all(isinstance(it, str) for it in rule.get("annotations", {}).values())


@pytest.mark.parametrize("profile", CONFIGS)
def test_the_boards_are_those_of_the_pack(profile):
    config = CONFIGS[profile]
    found = {}
    for it in of_kind(config, "ConfigMap").values():
        ((name, text),) = it["data"].items()  # the sidecar writes each key to a file
        assert KEY.fullmatch(name)
        found[name] = json.loads(text)
    assert found == {name: json.loads(text) for name, text in board_files(config).items()}


def test_links_come_from_the_settings():
    config = Config(grafana_url="https://grafana.example.org", runbook_url="https://wiki.example.org")
    groups = of_kind(config, "PrometheusRule")["ragtrace-alerts"]["spec"]["groups"]
    alerts = [it for group in groups for it in group["rules"] if "alert" in it]
    assert len(alerts) > 10
    assert all(it["annotations"]["dashboard_url"].startswith("https://grafana.example.org/d/") for it in alerts)
    assert all(it["annotations"]["runbook_url"].startswith("https://wiki.example.org/Ragtrace") for it in alerts)


@pytest.mark.parametrize("profile", CONFIGS)
def test_every_object_fits_the_annotation_of_kubectl_apply(profile):
    """As written, and as kubectl keeps it: JSON in one line, in which Go escapes three signs by six letters."""
    found = files(CONFIGS[profile], "kubernetes")
    sizes = {path: len(text.encode()) for path, text in found.items() if path.startswith("kubernetes/")}
    kept = {}
    for path in sizes:
        shown = json.dumps(yaml.safe_load(found[path]), separators=(",", ":"), ensure_ascii=False)
        kept[path] = len((LAST_APPLIED + re.sub("[<>&]", r"\\u0000", shown) + "\n").encode())
    assert len(sizes) > 4
    assert {path: size for path, size in sizes.items() if size >= LIMIT} == {}
    assert {path: size for path, size in kept.items() if size > LIMIT} == {}
