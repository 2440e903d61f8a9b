"""The Collector's configuration: whole, and without a way from a score back into scoring."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from ragtrace import semconv

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "collector"
SECTIONS = ("receivers", "processors", "exporters")


def merged(*names: str) -> dict[str, Any]:
    """Merge files as the Collector does by default: maps by key, lists and scalars replaced."""
    found: dict[str, Any] = {}
    for name in names:
        found = _merge(found, yaml.safe_load((FOLDER / name).read_text(encoding="utf-8")))
    return found


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _merge(old.get(key), new[key]) if key in new else old[key] for key in {**old, **new}}
    return new


@pytest.fixture(params=[("config.yaml",), ("config.yaml", "kafka.yaml")], ids=["serve", "kafka"])
def config(request: pytest.FixtureRequest) -> dict[str, Any]:
    return merged(*request.param)


def test_pipelines_name_every_component_that_is_declared_and_no_other(config: dict[str, Any]) -> None:
    pipelines = config["service"]["pipelines"]
    for section in SECTIONS:
        named = {name for pipeline in pipelines.values() for name in pipeline[section]}
        # With kafka.yaml nothing is sent to `ragtrace serve`, until somebody turns logs/scoring on again.
        spare = {"otlp/ragtrace"} if section == "exporters" and "kafka" in config[section] else set()
        assert named | spare == set(config[section]), section
    assert {name.partition("/")[0] for name in pipelines} == {"traces", "logs", "metrics"}


def test_memory_is_limited_first_and_batches_are_made_last(config: dict[str, Any]) -> None:
    for pipeline in config["service"]["pipelines"].values():
        assert pipeline["processors"][0] == "memory_limiter"
        assert pipeline["processors"][-1].startswith("batch")


def test_scoring_sees_every_trace(config: dict[str, Any]) -> None:
    pipelines = config["service"]["pipelines"]
    assert not [name for name in pipelines["traces/scoring"]["processors"] if "sampl" in name]
    assert "tail_sampling" in pipelines["traces/backend"]["processors"]
    assert not set(pipelines["traces/backend"]["exporters"]) & set(pipelines["traces/scoring"]["exporters"])


def test_no_score_is_scored(config: dict[str, Any]) -> None:
    pipelines = config["service"]["pipelines"]
    for name, pipeline in pipelines.items():
        if "otlp/scores" in pipeline["receivers"]:
            assert not {"otlp/ragtrace", "kafka"} & set(pipeline["exporters"]), name
            assert "tail_sampling" not in pipeline["processors"], name
    for name, signal in (("traces/scoring", "traces"), ("logs/scoring", "logs")):
        (loop,) = [one for one in pipelines[name]["processors"] if one.startswith("filter/")]
        conditions = " ".join(next(iter(config["processors"][loop][signal].values())))
        assert '["ragtrace.internal"] != nil' in conditions
        assert f'instrumentation_scope.name == "{semconv.SCOPE}"' in conditions
    spans = " ".join(config["processors"]["filter/loop"]["traces"]["span"])
    assert f'attributes["{semconv.GEN_AI_OPERATION_NAME}"] == "{semconv.OPERATION_EVALUATION}"' in spans
    assert semconv.EVENT_EVALUATION_RESULT in str(config["processors"]["filter/ratings"])


def test_no_exporter_listens_or_sends_where_another_receives(config: dict[str, Any]) -> None:
    protocols = [one for receiver in config["receivers"].values() for one in receiver["protocols"].values()]
    ports = [one["endpoint"].rpartition(":")[2] for one in protocols]
    assert len(set(ports)) == len(ports) == 4


def test_senders_of_scores_retry_and_bound_their_queue_in_bytes(config: dict[str, Any]) -> None:
    for name in {"otlp/ragtrace", *config["service"]["pipelines"]["traces/scoring"]["exporters"]}:
        exporter = config["exporters"][name]
        assert exporter["retry_on_failure"]["enabled"] is True
        assert exporter["sending_queue"]["sizer"] == "bytes"


def test_kafka_keeps_a_trace_on_one_partition() -> None:
    config = merged("config.yaml", "kafka.yaml")
    assert config["service"]["pipelines"]["traces/scoring"]["exporters"] == ["kafka"]
    kafka = config["exporters"]["kafka"]
    assert kafka["partition_traces_by_id"] is True
    assert kafka["traces"] == {"topic": "otlp_spans", "encoding": "otlp_proto"}
    assert "record_partitioner" not in kafka  # its default is FNV-1a, as our producer's
    # What a batch of one trace holds fits one record.
    assert (
        kafka["producer"]["max_message_bytes"]
        > config["processors"]["batch/scoring"]["send_batch_max_size"] * 6_000
    )


def test_score_events_go_to_a_backend_of_logs_and_nothing_else_does(config: dict[str, Any]) -> None:
    pipeline = config["service"]["pipelines"]["logs/scores"]
    assert pipeline["receivers"] == ["otlp/scores"]
    assert pipeline["exporters"] == ["otlp/events"]
    assert config["exporters"]["otlp/events"]["endpoint"].startswith("${env:LOGS_ENDPOINT:-")
    assert config["processors"]["filter/events"]["logs"]["log_record"] == [
        f'instrumentation_scope.name != "{semconv.SCOPE}"'
    ]


def test_with_kafka_nothing_is_sent_to_a_receiver_that_may_not_run() -> None:
    pipelines = merged("config.yaml", "kafka.yaml")["service"]["pipelines"]
    assert not [name for name, one in pipelines.items() if "otlp/ragtrace" in one["exporters"]]


def test_several_brokers_are_a_list() -> None:
    text = merged("config.yaml", "kafka.yaml")["exporters"]["kafka"]["brokers"]
    default = re.fullmatch(r"\$\{env:KAFKA_BROKERS:-(.*)\}", text).group(1)
    for given, brokers in ((default, ["kafka:9092"]), ("[a:9092, b:9092]", ["a:9092", "b:9092"])):
        assert yaml.safe_load(given) == brokers  # the Collector reads a variable's value as YAML


def test_no_variable_is_a_setting_of_ragtrace() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml"))
    assert not re.findall(r"env:RAGTRACE_\w+", text)


def test_secrets_come_from_the_environment() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml"))
    assert re.findall(r"authorization: .*", text) == ["authorization: Bearer ${env:SCORING_TOKEN:-}"]
    assert not re.findall(r"(?i)(?:password|api[-_]?key):(?! \$\{env:)", text)


def test_the_pod_on_kubernetes_has_the_ports_and_variables_of_the_configuration() -> None:
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    deployment, service = yaml.safe_load_all(text)
    for one in (deployment, service):
        kubernetes_validate.validate(one, "1.37", strict=True)
    config = merged("config.yaml")
    protocols = [one for receiver in config["receivers"].values() for one in receiver["protocols"].values()]
    listening = {int(one["endpoint"].rpartition(":")[2]) for one in [*protocols, config["exporters"]["prometheus"]]}
    assert {one["port"] for one in service["spec"]["ports"]} == listening
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert all(ports[one["targetPort"]] == one["port"] for one in service["spec"]["ports"])
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    read = set(re.findall(r"env:(\w+)", (FOLDER / "config.yaml").read_text(encoding="utf-8")))
    assert {one["name"] for one in container["env"]} - {"GOMEMLIMIT"} == read
