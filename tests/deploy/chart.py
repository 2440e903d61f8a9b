"""The chart of deploy/helm/ragtrace, rendered for a table of values."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "ragtrace"
DEFAULT_PYTHON = ROOT / "build" / "deploy" / "bin" / "python"
KAFKA = {"brokers": "kafka:9092"}
TOKEN = {"token": {"existingSecret": "token"}}
OPENAI = {"name": "openai:gpt-4o-mini", "existingSecret": "judge"}
EXTRA_EGRESS = {"ports": [{"port": 8443, "protocol": "TCP"}], "to": [{"ipBlock": {"cidr": "198.51.100.0/24"}}]}

CASES: dict[str, dict[str, Any]] = {
    "defaults": {"serve": TOKEN},
    "no-token": {"serve": {"requireToken": False}},
    "kafka-keda": {
        "worker": {
            "enabled": True,
            "maxReplicas": 6,
            "autoscaling": {"mode": "keda", "keda": {"triggerAuthentication": "kafka"}},
        },
        "kafka": {**KAFKA, "existingSecret": "kafka"},
        "judge": OPENAI,
        "serve": {"enabled": False},
    },
    "hpa-cpu": {
        "worker": {"enabled": True, "autoscaling": {"mode": "hpa"}, "checks": True},
        "kafka": {**KAFKA, "group": "scorers"},
        "serve": TOKEN,
    },
    "keda-prometheus": {
        "worker": {
            "enabled": True,
            "autoscaling": {"mode": "keda", "keda": {"prometheus": {"serverAddress": "http://prometheus:9090"}}},
        },
        "kafka": KAFKA,
        "serve": {"enabled": False},
        "judge": {"name": "openai:local", "keyless": True, "baseUrl": "http://judge.models:8000/v1"},
    },
    "no-limit": {"serve": TOKEN, "judge": {"budgetUsdPerDay": 0, "unlimited": True}},
    "embedder": {
        "serve": TOKEN,
        "settings": {
            "RAGTRACE_EMBEDDER": "openai:text-embedding-3-small",
            "RAGTRACE_JUDGE_RPM": "60",
            "RAGTRACE_JUDGE_TPM": "0",
        },
    },
    "hpa-lag": {
        "worker": {"enabled": True, "autoscaling": {"mode": "hpa", "hpa": {"metric": "lag"}}},
        "kafka": KAFKA,
        "serve": TOKEN,
    },
    "own-canaries": {
        "worker": {"enabled": True},
        "kafka": KAFKA,
        "serve": TOKEN,
        "settings": {"RAGTRACE_CANARY_EVERY_S": "600"},
    },
    "no-networkpolicy": {
        "serve": TOKEN,
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
    },
    "everything": {
        "image": {
            "repository": "registry.example/ragtrace",
            "digest": "sha256:" + "a" * 64,
            "pullPolicy": "Always",
        },
        "imagePullSecrets": ["pull"],
        "secretSettings": ["langfuse"],
        "judge": {**OPENAI, "baseUrl": "https://judge.example/v1", "budgetUsdPerDay": 25.5},
        "otlp": {"existingSecret": "otlp", "endpoint": "https://collector:4327"},
        "serve": {
            "replicas": 2,
            "maxReplicas": 4,
            "autoscaling": {"enabled": True},
            "ports": {"grpc": 14317, "http": 14318},
            "token": {"existingSecret": "token"},
            "tls": {"existingSecret": "tls"},
        },
        "worker": {"enabled": True, "replicas": 3},
        "kafka": {**KAFKA, "existingSecret": "kafka"},
        "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
        "networkPolicy": {
            "otlpFrom": [{"podSelector": {"matchLabels": {"app": "otel-collector"}}}],
            "kafkaTo": [{"ipBlock": {"cidr": "203.0.113.0/24"}}],
            "dnsTo": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "openshift-dns"}}}],
            "extraEgress": [EXTRA_EGRESS],
        },
        "serviceAccount": {"annotations": {"example.com/role": "scorer"}},
        "podAnnotations": {"example.com/team": "rag"},
        "podLabels": {"team": "rag"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "scoring", "operator": "Exists"}],
    },
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no judge key": ({"judge": {"name": "openai:gpt-4o-mini"}}, "judge.existingSecret: the judge openai:gpt-4o-mini needs"),
    "no brokers": ({"worker": {"enabled": True}}, "kafka.brokers: the worker reads Kafka"),
    "nothing runs": ({"serve": {"enabled": False}}, "serve.enabled and worker.enabled are both false"),
    "no account": ({"serve": TOKEN, "serviceAccount": {"create": False}}, "serviceAccount.name: name the account"),
    "a secret in the open": ({"settings": {"RAGTRACE_JUDGE_API_KEY": "sk-1"}}, "settings.RAGTRACE_JUDGE_API_KEY is a secret"),
    "a webhook in the open": ({"settings": {"RAGTRACE_SINKS": "webhook:https://hooks.example/T0"}}, "settings.RAGTRACE_SINKS is a secret"),
    "an unknown value": ({"serve": {"replica": 2}}, "replica"),
    "a wrong mode": ({"worker": {"autoscaling": {"mode": "vpa"}}}, "mode"),
    "no token": ({}, "serve.token.existingSecret: the receiver listens on 0.0.0.0"),
    "no limit by accident": ({"judge": {"budgetUsdPerDay": 0}}, "judge.budgetUsdPerDay: 0 means no limit"),
    "a budget of one's own": ({"settings": {"RAGTRACE_BUDGET_USD_PER_DAY": "1"}}, "settings.RAGTRACE_BUDGET_USD_PER_DAY: the chart sets it"),
    "no time to end": ({"worker": {"terminationGracePeriodSeconds": 30}}, "terminationGracePeriodSeconds"),
    "a short digest": ({"image": {"digest": "sha256:abc"}}, "digest"),
}  # fmt: skip


def deploy_python() -> Path:
    """The interpreter of the environment with Helm, checkov and hadolint; a visible skip where there is none."""
    given = os.environ.get("DEPLOY_PYTHON")
    if given and not Path(given).is_file():
        pytest.fail(f"DEPLOY_PYTHON={given} does not exist")
    found = Path(given) if given else DEFAULT_PYTHON
    if not found.is_file():
        pytest.skip(
            "no Helm on this machine: `make test-deploy` installs it in build/deploy", allow_module_level=True
        )
    return found


def render(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Render the chart for each of several values."""
    done = subprocess.run(
        [deploy_python(), Path(__file__).with_name("render.py"), CHART],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


def manifests(rendered: dict[str, Any]) -> list[dict[str, Any]]:
    """Parse the manifests of a rendered chart."""
    assert "error" not in rendered, rendered
    texts = (text for name, text in rendered["files"].items() if name.endswith(".yaml"))
    return [one for text in texts for one in yaml.safe_load_all(text) if one]


def of_kind(found: list[dict[str, Any]], kind: str, name: str = "") -> list[dict[str, Any]]:
    """Return the manifests of one kind, of one name if it is given."""
    return [one for one in found if one["kind"] == kind and name in one["metadata"]["name"]]
