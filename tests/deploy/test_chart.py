"""The Helm chart, rendered by Helm: what it says of pods, of their scaling, of their secrets and of the network."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ragtrace.settings import GONE_VARIABLES, TABLE
from tests.command_line import parsed
from tests.deploy.chart import CASES, CHART, EXTRA_EGRESS, REFUSED, TOKEN, deploy_python, manifests, of_kind, render

deploy_python()  # one skip for the file where Helm is missing

LIMITS = (
    "RAGTRACE_BUDGET_USD_PER_DAY",
    "RAGTRACE_BUDGET_TOKENS_PER_DAY",
    "RAGTRACE_JUDGE_RPM",
    "RAGTRACE_JUDGE_TPM",
)
SINK_SECRETS = [
    "PHOENIX_API_KEY",
    "LANGFUSE_PUBLIC_KEY",
    "LANGFUSE_SECRET_KEY",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "RAGTRACE_WEBHOOK_URL",
    "RAGTRACE_WEBHOOK_SECRET",
]
FOREIGN = {"ScaledObject", "ServiceMonitor"}  # resources of operators, whose schemas Kubernetes does not have


@pytest.fixture(scope="module")
def rendered() -> dict[str, dict[str, Any]]:
    values = [*CASES.values(), *(given for given, _ in REFUSED.values())]
    return dict(zip([*CASES, *REFUSED], render(values), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_every_case_fits_the_schemas_of_kubernetes_and_helm_s_lint(case: str, rendered: dict[str, Any]) -> None:
    assert rendered[case]["lint"] == []
    found = manifests(rendered[case])
    for one in found:
        assert one["metadata"]["namespace"] == "scoring"
        if one["kind"] not in FOREIGN:
            kubernetes_validate.validate(one, "1.37", strict=True)
    names = [(one["kind"], one["metadata"]["name"]) for one in found]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", REFUSED)
def test_a_contradiction_is_refused_with_the_value_s_name(case: str, rendered: dict[str, Any]) -> None:
    assert REFUSED[case][1] in rendered[case]["error"]


@pytest.mark.parametrize("case", CASES)
def test_pods_run_without_rights(case: str, rendered: dict[str, Any]) -> None:
    found = manifests(rendered[case])
    for deployment in of_kind(found, "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert pod["topologySpreadConstraints"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == "health"
    assert all(one["automountServiceAccountToken"] is False for one in of_kind(found, "ServiceAccount"))


@pytest.mark.parametrize("case", CASES)
def test_the_process_ends_before_the_pod_is_killed(case: str, rendered: dict[str, Any]) -> None:
    for deployment in of_kind(manifests(rendered[case]), "Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        deadline = int(next(arg for arg in container["args"] if arg.startswith("--deadline=")).partition("=")[2])
        wait = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        assert wait + deadline < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("case", CASES)
def test_the_limits_of_all_pods_add_up_to_the_limit(case: str, rendered: dict[str, Any]) -> None:
    found, total = manifests(rendered[case]), dict.fromkeys(LIMITS, Fraction(0))
    for deployment in of_kind(found, "Deployment"):
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0
        for name in total:
            total[name] += Fraction(_env(deployment)[name]["value"]) * _most_pods(found, deployment)
    given, judge = CASES[case].get("settings", {}), CASES[case].get("judge", {})
    for name, spent in total.items():
        default = next(one.field.default for one in TABLE.values() if one.variable == name)
        all_pods = Fraction(
            judge.get("budgetUsdPerDay", given.get(name, default)) if "USD" in name else given.get(name, default)
        )
        assert Fraction(95, 100) * all_pods <= spent <= all_pods, name


def test_secrets_are_named_and_never_written(rendered: dict[str, Any]) -> None:
    found = manifests(rendered["everything"])
    assert not of_kind(found, "Secret")
    serve, worker = (_env(of_kind(found, "Deployment", name)[0]) for name in ("serve", "worker"))
    assert _secret(serve["RAGTRACE_JUDGE_API_KEY"]) == ("judge", "api-key")
    assert _secret(serve["OTEL_EXPORTER_OTLP_HEADERS"]) == ("otlp", "headers")
    assert not {"RAGTRACE_SPOOL", "RAGTRACE_QUEUE"} & worker.keys()  # the Kafka worker takes none
    for name, files in (("serve", {"tls": "tls", "token": "token"}), ("worker", {"kafka": "kafka"})):
        pod = of_kind(found, "Deployment", name)[0]["spec"]["template"]["spec"]
        assert {one["name"]: one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one} == files
        mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
        assert all(mounts[name] == f"/etc/ragtrace/{name}" for name in files)
        assert pod["containers"][0]["envFrom"] == [{"secretRef": {"name": "langfuse"}}]


def test_every_secret_is_refused_under_settings() -> None:
    secrets = [one.variable for one in TABLE.values() if one.is_secret] + SINK_SECRETS
    secrets += [name for name in GONE_VARIABLES if name.endswith(("_KEY", "_PASSWORD", "_TOKEN"))]
    for name, one in zip(
        secrets, render([{"serve": TOKEN, "settings": {name: "x"}} for name in secrets]), strict=True
    ):
        assert f"settings.{name}" in one["error"]


def test_the_arguments_are_those_of_the_commands(rendered: dict[str, Any]) -> None:
    for case in CASES:
        for deployment in of_kind(manifests(rendered[case]), "Deployment"):
            args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
            if args[0] == "serve":
                given = parsed(args)
                assert given["grpc"].startswith("0.0.0.0:")
                assert (given["token_file"] is not None) == bool(CASES[case].get("serve", {}).get("token"))
            else:
                assert ("--kafka-config=/etc/ragtrace/kafka/config" in args) == (
                    "existingSecret" in CASES[case]["kafka"]
                )


def test_keda_scales_the_worker_on_the_lag_of_its_group(rendered: dict[str, Any]) -> None:
    found = manifests(rendered["kafka-keda"])
    (scaled,) = of_kind(found, "ScaledObject")
    (worker,) = of_kind(found, "Deployment")
    (trigger,) = scaled["spec"]["triggers"]
    assert scaled["apiVersion"] == "keda.sh/v1alpha1"
    assert scaled["spec"]["scaleTargetRef"]["name"] == worker["metadata"]["name"]
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (2, 6)
    assert trigger["type"] == "kafka"
    assert all(isinstance(value, str) for value in trigger["metadata"].values())  # KEDA refuses other types
    args = worker["spec"]["template"]["spec"]["containers"][0]["args"]
    assert not [one for one in args if one.startswith("--group")]  # the command's default is ragtrace.TOPIC
    assert trigger["metadata"]["consumerGroup"] == "ragtrace.otlp_spans"
    (other,) = of_kind(manifests(rendered["hpa-cpu"]), "Deployment", "worker")
    assert "--group=scorers" in other["spec"]["template"]["spec"]["containers"][0]["args"]
    assert trigger["authenticationRef"] == {"name": "kafka"}
    assert "replicas" not in worker["spec"]  # else each upgrade would undo the scaling


def test_keda_scales_on_records_without_an_end_where_prometheus_is_named(rendered: dict[str, Any]) -> None:
    (scaled,) = of_kind(manifests(rendered["keda-prometheus"]), "ScaledObject")
    (trigger,) = scaled["spec"]["triggers"]
    assert trigger["type"] == "prometheus"
    assert all(isinstance(value, str) for value in trigger["metadata"].values())
    # A partition that moves is reported twice for a while.
    assert trigger["metadata"]["query"] == (
        'sum(max by (ragtrace_kafka_partition) (ragtrace_kafka_lag{ragtrace_kafka_topic="otlp_spans"}))'
    )


def test_canaries_and_anchors_run_in_workers_only_on_demand(rendered: dict[str, Any]) -> None:
    names = ("RAGTRACE_CANARY_EVERY_S", "RAGTRACE_ANCHORS_EVERY_S")
    env = {
        case: _env(of_kind(manifests(rendered[case]), "Deployment", "worker")[0])
        for case in ("everything", "own-canaries", "hpa-cpu")
    }
    assert [env["everything"][name]["value"] for name in names] == ["0", "0"]
    assert [env["own-canaries"][name]["value"] for name in names] == ["600", "0"], "what is set stays"
    assert not env["hpa-cpu"].keys() & set(names)
    assert not _env(of_kind(manifests(rendered["everything"]), "Deployment", "serve")[0]).keys() & set(names)


@pytest.mark.parametrize("case", CASES)
def test_a_worker_that_is_held_stalls_no_rollout_and_no_drain(case: str, rendered: dict[str, Any]) -> None:
    found = manifests(rendered[case])
    for deployment in of_kind(found, "Deployment", "worker"):
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == "25%"
    for deployment in of_kind(found, "Deployment"):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    for budget in of_kind(found, "PodDisruptionBudget"):
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize(("case", "kind"), [("hpa-cpu", "Resource"), ("hpa-lag", "External")])
def test_an_hpa_scales_the_worker_where_keda_does_not(case: str, kind: str, rendered: dict[str, Any]) -> None:
    found = manifests(rendered[case])
    (scaler,) = of_kind(found, "HorizontalPodAutoscaler")
    assert not of_kind(found, "ScaledObject")
    assert [one["type"] for one in scaler["spec"]["metrics"]] == [kind]
    if kind == "External":
        assert scaler["spec"]["metrics"][0]["external"]["metric"]["name"] == "ragtrace_kafka_lag"
    assert "replicas" not in of_kind(found, "Deployment", "worker")[0]["spec"]


def test_the_network_leads_in_to_otlp_and_metrics_alone(rendered: dict[str, Any]) -> None:
    found = manifests(rendered["everything"])
    serve, worker = (of_kind(found, "NetworkPolicy", name)[0]["spec"] for name in ("serve", "worker"))
    assert _ports(serve["ingress"]) == {"otlp-grpc", "otlp-http", "metrics"}
    assert _ports(worker["ingress"]) == {"metrics"}
    assert serve["ingress"][0]["from"] == [{"podSelector": {"matchLabels": {"app": "otel-collector"}}}]
    assert _ports(serve["egress"]) == {53, 443, 4317, 4318, 4337, 4338, 8443}
    assert serve["egress"][-1] == worker["egress"][-1] == EXTRA_EGRESS
    assert _ports(worker["egress"]) == _ports(serve["egress"]) | {9092, 9093}
    assert not of_kind(manifests(rendered["no-networkpolicy"]), "NetworkPolicy")
    offline = of_kind(manifests(rendered["defaults"]), "NetworkPolicy")[0]["spec"]
    assert 443 not in _ports(offline["egress"])  # the offline judge asks nobody
    assert worker["egress"][0]["to"] != offline["egress"][0]["to"]  # DNS elsewhere
    assert {"ipBlock": {"cidr": "203.0.113.0/24"}} in worker["egress"][2]["to"]


def test_the_judge_s_port_is_that_of_its_address(rendered: dict[str, Any]) -> None:
    for case, port in (("keda-prometheus", 8000), ("kafka-keda", 443), ("embedder", 443)):
        (policy,) = of_kind(manifests(rendered[case]), "NetworkPolicy")
        rule = policy["spec"]["egress"][-1]
        assert rule["ports"] == [{"port": port, "protocol": "TCP"}]
        assert [one["ipBlock"]["cidr"] for one in rule["to"]] == ["0.0.0.0/0", "::/0"]


def test_services_lead_to_ports_of_the_pods(rendered: dict[str, Any]) -> None:
    for case in CASES:
        found = manifests(rendered[case])
        for service in of_kind(found, "Service"):
            (pod,) = of_kind(found, "Deployment", service["metadata"]["name"])
            ports = {
                one["name"]: one["containerPort"]
                for one in pod["spec"]["template"]["spec"]["containers"][0]["ports"]
            }
            # A headless Service maps no port.
            assert all(ports[one["targetPort"]] == one["port"] for one in service["spec"]["ports"])
            labels = pod["spec"]["template"]["metadata"]["labels"]
            assert service["spec"]["selector"].items() <= labels.items()


def test_every_setting_that_the_chart_names_exists() -> None:
    known = {one.variable for one in TABLE.values()} | set(SINK_SECRETS)
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(CHART.rglob("*")) if path.is_file())
    named = set(re.findall(r"RAGTRACE_[A-Z_]+[A-Z]", text))
    assert named - known == set()


def test_the_notes_tell_of_missing_protection(rendered: dict[str, Any]) -> None:
    assert "on 0.0.0.0 without a token" in rendered["no-token"]["files"]["ragtrace/templates/NOTES.txt"]
    notes = rendered["everything"]["files"]["ragtrace/templates/NOTES.txt"]
    assert "WARNING" not in notes
    assert "loadbalancing exporter" in notes


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("defaults", None),
        ("everything", "Each of at most 7 pods may spend 3.64 dollars a day, 25.5 together."),
        ("kafka-keda", "Each of at most 6 pods may spend 1.67 dollars a day, 10 together."),
        ("embedder", "Each of at most 1 pods may spend 10 dollars a day, 10 together."),
    ],
)
def test_the_notes_say_what_a_pod_may_spend(case: str, words: str | None, rendered: dict[str, Any]) -> None:
    notes = rendered[case]["files"]["ragtrace/templates/NOTES.txt"]
    assert "A share of 0.05 of the traces is scored" in notes
    assert words in notes if words else "dollars" not in notes


def test_the_chart_has_the_version_of_the_package() -> None:
    from ragtrace._version import __version__

    assert yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["appVersion"] == __version__


def _env(deployment: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}


def _secret(variable: dict[str, Any]) -> tuple[str, str]:
    ref = variable["valueFrom"]["secretKeyRef"]
    return ref["name"], ref["key"]


def _ports(rules: list[dict[str, Any]]) -> set[object]:
    return {port["port"] for rule in rules for port in rule["ports"]}


def _most_pods(found: list[dict[str, Any]], deployment: dict[str, Any]) -> int:
    name = deployment["metadata"]["name"]
    for kind, key in (("ScaledObject", "maxReplicaCount"), ("HorizontalPodAutoscaler", "maxReplicas")):
        for scaler in of_kind(found, kind, name):
            return scaler["spec"][key]
    return deployment["spec"]["replicas"]
