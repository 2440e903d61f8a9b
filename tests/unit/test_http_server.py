"""The server behind metrics and health checks, over real connections."""

from __future__ import annotations

import http.client
import os
import threading
import time

import pytest

from ragtrace.http_server import HttpServer, Page


def answered(client, path):
    client.request("GET", path)
    return client.getresponse().read()


def test_a_connection_that_a_client_keeps_ends_with_the_server():
    before = set(threading.enumerate())
    server = HttpServer("test", lambda path, headers: Page(200, "text/plain", path.encode()))
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    assert answered(client, "/a") == b"/a"
    server.close()
    with pytest.raises(ConnectionError):
        answered(client, "/b")
    client.close()
    until = time.monotonic() + 5.0  # the server's own patience with a silent client is 10 s
    while left := set(threading.enumerate()) - before:
        assert time.monotonic() < until, left
        time.sleep(0.01)


def test_what_is_being_answered_when_it_closes_is_answered_to_its_end():
    is_asked, is_closed = threading.Event(), threading.Event()

    def answer(path, headers):
        is_asked.set()
        is_closed.wait(30)
        return Page(200, "text/plain", path.encode())

    server = HttpServer("test", answer)
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    client.request("GET", "/a")
    assert is_asked.wait(30)
    server.close()
    is_closed.set()
    assert client.getresponse().read() == b"/a"
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_ends_its_copy_leaves_the_connections_to_the_parent():
    server = HttpServer("test", lambda path, headers: Page(200, "text/plain", path.encode()))
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    assert answered(client, "/a") == b"/a"
    child = os.fork()
    if not child:
        server.close()
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert answered(client, "/b") == b"/b"
    client.close()
    server.close()


def status(server, host):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        client.putrequest("GET", "/", skip_host=True)
        if host is not None:
            client.putheader("Host", host)
        client.endheaders()
        return client.getresponse().status
    finally:
        client.close()


HOSTS = [
    (None, 200), ("localhost", 200), ("LOCALHOST:9464", 200), ("app.localhost:80", 200), ("127.0.0.1:9464", 200),
    ("[::1]:9464", 200), ("10.0.0.7", 200), ("evil.example", 403), ("evil.example:9464", 403), ("", 403),
    ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403), ("[::1", 403), ("127.0.0.1, localhost", 403),
    ("user@localhost", 403),
]  # fmt: skip


@pytest.mark.parametrize(("host", "expected"), HOSTS)
def test_on_loopback_a_web_page_s_own_name_is_refused(host, expected):
    """A page whose name is made to point to loopback (DNS rebinding) sends its own name as the host."""
    server = HttpServer("test", lambda path, headers: Page(200, "text/plain", b"secret"))
    try:
        assert status(server, host) == expected
    finally:
        server.close()


def test_behind_an_address_of_the_network_any_name_is_taken():
    server = HttpServer("test", lambda path, headers: Page(200, "text/plain", b""), host="0.0.0.0")
    try:
        assert status(server, "metrics.cluster.example") == 200
    finally:
        server.close()
