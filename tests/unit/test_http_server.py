"""The server behind metrics and health checks, over real connections."""

from __future__ import annotations

import http.client
import os
import threading
import urllib.request

import pytest

from ragtrace.http_server import HttpServer, text_page


def echo(environ, start_response):
    return text_page(start_response, "200 OK", environ["PATH_INFO"])


def asked(server, path):
    with urllib.request.urlopen(server.url + path, timeout=30) as reply:  # noqa: S310 - our own
        return reply.read()


def test_a_request_under_way_ends_well_when_the_server_closes():
    is_asked, is_closed = threading.Event(), threading.Event()

    def app(environ, start_response):
        is_asked.set()
        is_closed.wait(30)
        return echo(environ, start_response)

    server = HttpServer("test", app)
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    client.request("GET", "/a")
    assert is_asked.wait(30)
    server.close()
    is_closed.set()
    assert client.getresponse().read() == b"/a\n"
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_ends_its_copy_leaves_the_server_to_the_parent():
    server = HttpServer("test", echo)
    assert asked(server, "/a") == b"/a\n"
    child = os.fork()
    if not child:
        server.close()
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert asked(server, "/b") == b"/b\n"
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
    server = HttpServer("test", echo)
    try:
        assert status(server, host) == expected
    finally:
        server.close()


def test_behind_an_address_of_the_network_any_name_is_taken():
    server = HttpServer("test", echo, host="0.0.0.0")
    try:
        assert status(server, "metrics.cluster.example") == 200
    finally:
        server.close()
