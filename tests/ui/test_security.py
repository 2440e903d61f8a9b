"""The local server answers its own pages alone, and no script but its own runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ragtrace.pages.rendering import STATIC
from tests.ui.pages import read_page
from tests.ui.scored import client_of, incident, write_lines

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.testclient import TestClient

PAGES = ("/", "/runs", "/runs/1", "/investigate", "/nowhere", "/runs/unknown", "/runs?low=x")


@pytest.fixture(scope="module")
def scored_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("ui") / "scored.jsonl", incident(60))


@pytest.fixture(scope="module")
def client(scored_file: Path) -> TestClient:
    return client_of(scored_file)


@pytest.mark.parametrize("path", PAGES)
def test_each_page_forbids_scripts_of_others_and_keeps_no_copy(client: TestClient, path: str) -> None:
    answer = client.get(path)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_inline_code_or_addresses_of_others(client: TestClient, path: str) -> None:
    page = read_page(client.get(path).text)
    attributes = {attribute for _, attribute in page.shapes()}
    assert "style" not in attributes
    assert not [name for name in attributes if name.startswith("on")]
    assert all(
        dict(given).get("src", "").startswith("/static/") for name, given in page.elements if name == "script"
    )
    assert "style" not in {name for name, _ in page.elements}
    assert all(address.startswith(("/", "#")) for address in [*page.values("href"), *page.values("src")])


def test_our_scripts_evaluate_no_text() -> None:
    for script in STATIC.iterdir():
        if script.name.endswith(".js"):
            text = script.read_text(encoding="utf-8")
            assert not re.search(r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", text), (
                script
            )


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7878", 200),
        ("localhost:7878", 200),
        ("[::1]:7878", 200),
        ("evil.example", 403),
        ("localhost.evil.example:7878", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
        ("[:::1]:7878", 403),
    ],
)
def test_a_name_that_is_not_ours_is_refused(client: TestClient, host: str, status: int) -> None:
    assert client.get("/", headers={"host": host}).status_code == status


def test_a_name_that_a_person_allowed_is_answered(scored_file: Path) -> None:
    client = client_of(scored_file, hosts=["Scores.Example"])
    assert client.get("/", headers={"host": "scores.example"}).status_code == 200


def test_a_rating_needs_the_token_of_a_page(client: TestClient) -> None:
    form = {"value": "0", "metric": "feedback"}
    assert client.post("/rate/1", data=form).status_code == 403
    assert client.post("/rate/1", data={**form, "token": "guessed"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
def test_a_rating_of_another_site_is_refused_even_with_the_token(
    client: TestClient, headers: dict[str, str]
) -> None:
    page = client.get("/runs/1").text
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found is not None
    form = {"value": "0", "metric": "feedback", "token": found[1]}
    assert client.post("/rate/1", data=form, headers=headers).status_code == 403


def test_a_read_only_site_takes_no_form(scored_file: Path) -> None:
    client = client_of(scored_file, is_read_only=True)
    for path in ("/", "/runs/1", "/rate/1", "/queue"):
        assert client.post(path, data={"value": "1"}).status_code in {403, 404, 405}, path
    assert 'method="post"' not in client.get("/runs/1").text


@pytest.mark.parametrize(
    "headers", [{"content-length": "70000"}, {"content-length": "-1"}, {"content-length": "9" * 5_000}]
)
def test_a_long_form_is_refused_before_it_is_read(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/rate/1", content=b"", headers=headers).status_code == 413


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/..%2f..%2fui/app.py", "/static//etc/passwd"])
def test_static_files_are_those_of_the_pages_alone(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404
