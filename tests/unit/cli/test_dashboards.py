"""``ragtrace dashboards export``: what it writes, and that the links it writes lead somewhere."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
import urllib.request

import pytest
import yaml

from ragtrace.cli import main
from ragtrace_dashboards import Config, files


@pytest.fixture
def served(tmp_path):
    """The export folder behind `http.server`, as docs/how-to/alerts.md serves it; its address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def export(*options):
    return main(["dashboards", "export", *map(str, options)])


def test_every_runbook_link_of_both_senders_answers(served, tmp_path, capsys):
    assert export(tmp_path, "--runbook-url", f"{served}/runbooks/", "--grafana-url", GRAFANA) == 0
    assert not capsys.readouterr().err
    prometheus = yaml.safe_load((tmp_path / "rules" / "ragtrace-alerts.yaml").read_text())
    grafana = yaml.safe_load((tmp_path / "grafana" / "alerting" / "ragtrace.yaml").read_text())
    alerts = [
        it
        for file in (prometheus, grafana)
        for group in file["groups"]
        for it in group["rules"]
        if "record" not in it
    ]
    links = [it["annotations"]["runbook_url"] for it in alerts]
    assert len(links) == 2 * len({it.get("alert") or it["title"] for it in alerts})
    for link in set(links):
        with urllib.request.urlopen(link, timeout=10) as answer:  # noqa: S310 - our own server
            page = answer.read().decode()
        assert page.startswith(f"# {link.rpartition('/')[2].partition('.md#')[0]}\n")
        assert "\n## Meaning\n" in page


GRAFANA, WIKI = "https://grafana.example.org", "https://wiki.example.org/ragtrace"
RUNBOOK_OPTION = "--runbook-url, where you serve DIR/runbooks"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), f"Alerts have no links to boards and runbooks: give --grafana-url and {RUNBOOK_OPTION}.\n"),
        (("--runbook-url", WIKI), "Alerts have no links to boards: give --grafana-url.\n"),
        (("--grafana-url", GRAFANA), f"Alerts have no links to runbooks: give {RUNBOOK_OPTION}.\n"),
        (("--grafana-url", GRAFANA, "--runbook-url", WIKI), ""),
    ],
    ids=["none", "runbooks", "grafana", "both"],
)
@pytest.mark.parametrize("profile", [(), ("--demo",)], ids=["default", "demo"])
def test_links_come_from_options_and_what_is_missing_is_said_at_the_end(tmp_path, capsys, profile, given, said):
    assert export(tmp_path, *profile, *given) == 0
    assert capsys.readouterr().err == said
    written = {it: it.read_text() for it in tmp_path.rglob("*.*") if it.is_file()}
    for path, text in written.items():
        assert not re.search(r"localhost|127\.0\.0\.1", text), path
        assert GRAFANA in given or not re.search(r"dashboard_url: |/d/ragtrace-\w+\?viewPanel", text), path
        assert WIKI in given or "runbook_url: " not in text, path
    rules = (tmp_path / "rules" / "ragtrace-alerts.yaml").read_text()
    assert (f"dashboard_url: {GRAFANA}/d/" in rules) == (GRAFANA in given)
    assert (f"runbook_url: {WIKI}/RagtraceQualityDrift.md#first-five-minutes" in rules) == (WIKI in given)
    assert ("runbook: runbooks/RagtraceQualityDrift.md" in rules) == (WIKI not in given)


def test_paths_are_printed(tmp_path, capsys):
    assert export(tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / it) for it in files(Config())]
    assert {it.relative_to(tmp_path).as_posix() for it in tmp_path.rglob("*.*")} == set(files(Config()))


@pytest.mark.parametrize(
    ("part", "folders"),
    [
        ("--grafana", {"grafana", "runbooks"}),
        ("--prometheus", {"alertmanager", "rules", "runbooks"}),
        ("--kubernetes", {"kubernetes", "runbooks"}),
    ],
)
def test_one_part_alone(tmp_path, part, folders):
    assert export(tmp_path, part) == 0
    assert {it.name for it in tmp_path.iterdir() if it.is_dir()} == folders
    assert bool(list(tmp_path.glob("*.json"))) == (part == "--grafana")


def provisioned(folder):
    found = yaml.safe_load((folder / "grafana" / "datasources" / "ragtrace.yaml").read_text())["datasources"]
    return {it["type"]: it["uid"] for it in found}


def test_the_uid_of_your_data_source_goes_into_alerts_and_no_second_one_is_made_of_it(tmp_path):
    """Grafana does not start with two data sources of one uid."""
    assert export(tmp_path, "--grafana") == 0
    assert provisioned(tmp_path) == {"prometheus": Config().datasource_uid, "tempo": Config().tempo_uid}
    assert export(tmp_path, "--grafana", "--datasource-uid", "mine") == 0
    assert provisioned(tmp_path) == {"tempo": Config().tempo_uid}
    rules = yaml.safe_load((tmp_path / "grafana" / "alerting" / "ragtrace.yaml").read_text())["groups"][0]["rules"]
    assert {it["data"][0]["datasourceUid"] for it in rules} == {"mine"}
    assert '"mine"' not in json.dumps([it.read_text() for it in tmp_path.glob("*.json")])


def test_only_the_receivers_that_are_asked_for(tmp_path):
    assert export(tmp_path, "--receivers", "slack") == 0
    written = [*tmp_path.glob("alertmanager/*.yml"), *tmp_path.glob("grafana/receivers/*.yaml")]
    text = "".join(it.read_text() for it in written)
    assert "slack_url" in text
    assert "pagerduty_key" not in text
    assert "smtp" not in text.replace("[smtp]", "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--datasource-uid", "not a uid"), "1 to 40 letters"),
        (("--kubernetes", "--all"), "give one of --grafana, --prometheus, --kubernetes and --all"),
        (("--runbook-url", "wiki/runbooks"), "begins with http:// or https://"),
        (("--receivers", "slack,teams"), "'teams' is not one of slack, pagerduty, email"),
        (("--kubernetes", "--receivers", "slack"), "--receivers: --kubernetes writes none"),
        (("--grafana-url", "https://{{ $labels.job }}"), "begins with http:// or https://"),
        (("--grafana-url", "https://me:secret@grafana.example.org"), "must not hold a name or password"),
        (("--grafana-url", "https://[::1"), "no valid host and port"),
        (("--runbook-url", "https://wiki.example.org:port/x"), "no valid host and port"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(tmp_path, capsys, options, says):
    assert export(tmp_path / "pack", *options) == 2
    told = capsys.readouterr().err
    assert says in told
    assert "secret" not in told
    assert not (tmp_path / "pack").exists()


def test_a_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "pack").write_text("")
    assert export(tmp_path / "pack") == 2
    assert "choose another DIR" in capsys.readouterr().err
