"""Queues and sinks of another package, found by its entry points."""

from __future__ import annotations

import sys

import pytest

import ragtrace
from ragtrace.errors import ConfigError
from ragtrace.queues import open_queue
from ragtrace.settings import Settings, shown
from ragtrace.sinks import LangfuseSink, sinks_of

PACKAGE = """
from ragtrace.queues import MemoryQueue

class ListSink:
    def __init__(self, argument=""):
        if argument == "broken":
            raise OSError("no such place")
        self.records = []
        self.argument = argument
    def emit(self, record, scores):
        self.records.append(record)

def queue(address, *, capacity, capacity_bytes, spool_bytes, is_producer, ended):
    made = MemoryQueue(capacity, capacity_bytes, ended=ended)
    made.address = address
    return made

def no_queue(address, **given):
    return address
"""
ENTRY_POINTS = """
[ragtrace.queues]
acme = acme_queue:queue
wrong = acme_queue:no_queue
gone = acme_queue:gone
[ragtrace.sinks]
list = acme_queue:ListSink
"""
BOUNDS = {"capacity": 10, "capacity_bytes": 10_000, "spool_bytes": 10_000, "is_producer": False}


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """Install a distribution as pip leaves it."""
    (tmp_path / "acme_queue.py").write_text(PACKAGE)
    info = tmp_path / "acme_queue-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-queue\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("acme_queue", None)


def test_a_queue_is_opened_by_the_scheme_of_its_address():
    queue = open_queue("acme://broker/topic", **BOUNDS, ended=lambda state, reason: None)
    assert (queue.address, queue.capacity) == ("acme://broker/topic", 10)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("wrong://x", "'wrong' returned str, not a queue"),
        ("gone://x", "'gone' of ragtrace.queues cannot be imported"),
        ("other://x", "has no module and no entry point 'other'"),
    ],
)
def test_an_address_that_leads_to_no_queue_is_refused_in_one_line(address, text):
    with pytest.raises(ConfigError, match=text) as caught:
        open_queue(address, **BOUNDS, ended=lambda state, reason: None)
    assert "\n" not in str(caught.value)


def test_a_sink_is_made_by_its_name():
    sink, other = sinks_of(["list:a:b", given := sinks_of(["list"])[0]])
    assert (type(sink).__name__, sink.argument, other) == ("ListSink", "a:b", given)
    with pytest.raises(ConfigError, match="sinks: 'list' cannot be set up: no such place"):
        sinks_of(["list:broken"])
    with pytest.raises(
        ConfigError, match=r"^sinks \(RAGTRACE_SINKS\): ragtrace\.sinks has no module and no entry point 'tape'"
    ):
        sinks_of(["tape"])
    with pytest.raises(ConfigError, match="did you mean 'phoenix'"):
        sinks_of(["fenix"])


def test_a_class_is_refused_before_anything_begins():
    with pytest.raises(
        ConfigError, match=r"^sinks: LangfuseSink is a class, not a sink: write LangfuseSink\(...\)$"
    ):
        ragtrace.configure(sinks=LangfuseSink)


@pytest.mark.parametrize("name", ["phoenix", "langfuse", "mlflow", "webhook"])
def test_a_sink_without_an_address_names_the_setting_once(name):
    with pytest.raises(ConfigError) as caught:
        sinks_of([name])
    assert str(caught.value).count(name) == 1
    assert f"{name.upper()}_" in str(caught.value)
    assert str(caught.value).count("sinks:") == 1


def test_a_sink_of_this_package_is_made_by_the_name_of_its_file():
    assert [type(sink).__name__ for sink in sinks_of(["phoenix:http://127.0.0.1:9"])] == ["PhoenixSink"]


def test_the_environment_names_sinks_and_shows_no_argument_of_theirs():
    settings = Settings.resolve({}, {"RAGTRACE_SINKS": "list:http://ada:secret@host, console"})
    assert settings.sinks == ("list:http://ada:secret@host", "console")
    assert shown(settings)["sinks"] == ("list", "console")
    assert "secret@" not in repr(settings)


def test_a_run_goes_through_both():
    from ragtrace.service import current

    ragtrace.configure(sample_rate=1.0, queue="acme://broker/topic", sinks=["list"], metrics=["mrr"])
    try:
        with ragtrace.query("Where?") as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
            run.answered("In Oslo.")
        assert ragtrace.flush(30)
        assert [record.query for record in current().sinks[0].records] == ["Where?"]
    finally:
        ragtrace.shutdown(5)
