"""Addresses and options of Kafka: wrong ones are one line, and no secret is repeated."""

from __future__ import annotations

import pytest

pytest.importorskip("confluent_kafka", reason="the extra kafka")

from ragtrace.errors import ConfigError
from ragtrace.queues import KafkaAddress, KafkaQueue, open_queue
from ragtrace.settings import Settings, shown

BOUNDS = {"capacity": 10, "capacity_bytes": 10_000, "spool_bytes": 10_000, "is_producer": True}


def test_an_address_names_brokers_topic_and_group():
    at = KafkaAddress.parse("kafka://a:9092,b:9092/units?group=blue&partitions=3")
    assert (at.brokers, at.topic, at.group, at.partitions) == ("a:9092,b:9092", "units", "blue", 3)
    assert KafkaAddress.parse("kafka://a:9092/units").group == "ragtrace.units"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("kafka://a:9092", "names no topic"),
        ("kafka:///units", "names no broker"),
        ("kafka://a:9092/so many units", "is not a topic"),
        ("kafka://a:9092/units?gruppe=x", "unknown option 'gruppe'"),
        ("kafka://a:9092/units?partitions=0", "whole number from 1"),
        ("kafka://ada:hunter2@a:9092/units", "holds no login"),
    ],
)
def test_a_wrong_address_is_refused_in_one_line(address, text):
    with pytest.raises(ConfigError, match=text) as caught:
        open_queue(address, **BOUNDS, ended=lambda state, reason: None)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("sasl.password=hunter2\nno.such.option=hunter2", "refuses the option 'no.such.option'"),
        ("security.protocol=hunter2", "refuses the option 'security.protocol'"),
        ("sasl.password hunter2", "line 1 is not KEY=VALUE"),
        ("# =\ngroup.id=hunter2", "line 2: group.id is set by ragtrace"),
    ],
)
def test_a_wrong_option_is_refused_without_its_value(tmp_path, lines, text):
    (tmp_path / "kafka.properties").write_text(lines)
    for config in (lines, str(tmp_path / "kafka.properties")):
        if "=" not in lines.partition("\n")[0] and config is lines:
            continue  # not one KEY=VALUE is the name of a file
        with pytest.raises(ConfigError, match=text) as caught:
            open_queue("kafka://127.0.0.1:9/units", **BOUNDS, ended=lambda state, reason: None, config=config)
    assert "hunter2" not in str(caught.value)


def test_options_of_a_login_are_never_shown(tmp_path):
    (tmp_path / "kafka.properties").write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.password=hunter2"
    )
    at = KafkaAddress.parse("kafka://127.0.0.1:9/units", str(tmp_path / "kafka.properties"))
    assert at.client()["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(at)
    assert "hunter2" not in repr(Settings.resolve({}, {"RAGTRACE_KAFKA_CONFIG": "sasl.password=hunter2"}))
    with pytest.raises(ConfigError, match="kafka_config: the file cannot be read: No such file"):
        KafkaAddress.parse("kafka://127.0.0.1:9/units", "/no/such/file")


def test_queue_and_spool_exclude_each_other():
    with pytest.raises(ConfigError, match="queue and spool are both set; unset one"):
        Settings.resolve({"queue": "kafka://a:1/t", "spool": "x"}, environ={})
    with pytest.raises(ConfigError, match="spool must be a file; set queue"):
        Settings.resolve({"spool": "kafka://a:1/t"}, environ={})
    with pytest.raises(ConfigError, match="queue must be an address"):
        Settings.resolve({"queue": "spool.sqlite"}, environ={})
    settings = Settings.resolve({}, {"RAGTRACE_QUEUE": "acme://ada:pw@a:1/t"})
    assert (settings.units_at, shown(settings)["queue"]) == ("acme://ada:pw@a:1/t", "acme://***@a:1/t")


def test_a_broker_that_is_away_holds_nothing_up():
    queue = open_queue("kafka://127.0.0.1:9/units", **BOUNDS, ended=lambda state, reason: None)
    assert isinstance(queue, KafkaQueue)
    assert queue.close(0.1)
