"""Receivers: the shipped files are taken by the real programs, and the messages say the right things."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import alerting
from slack_sdk.models.attachments import Attachment

from ragtrace_dashboards import (
    ALERTMANAGER,
    CONTACT_POINTS,
    POLICIES,
    ROUTES,
    Config,
    Severity,
    alerts,
    receiver_files,
)
from ragtrace_dashboards.receivers import TEMPLATE
from ragtrace_dashboards.receivers.routing import chosen
from tests.dashboards.receiving import (
    KEY,
    PAGERDUTY,
    PASSWORD,
    SLACK,
    alertmanager,
    alertmanager_program,
    inhibited,
    local_config,
    post,
    receiving,
    until,
)
from tests.monitoring.drift_cases import FALL
from tests.monitoring.promtool import tool
from tests.monitoring.test_alert_cases import LINKED, QUALITY, WELL, Scores, labels, scores, told, verdicts

MESSAGES = Path(__file__).parent / "messages"
FILES = receiver_files(LINKED)
STARTED, ENDED = "2026-11-20T08:05:00Z", "2026-11-20T17:35:00Z"
HOSTILE = "<!channel> & `id` '; rm"
PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/receivers.md").read_text(encoding="utf-8")


def template_data(found: list[dict[str, Any]], status: str = "firing") -> dict[str, Any]:
    """Return alerts as both Alertmanager and Grafana hand them to a template."""
    common = {
        kind: dict(set.intersection(*(set(it[kind].items()) for it in found))) for kind in ("labels", "annotations")
    }
    rows = [it | {"status": status, "startsAt": STARTED, "endsAt": ENDED} for it in found]
    return {
        "receiver": "ragtrace", "status": status, "alerts": rows, "groupLabels": {}, "externalURL": "http://x",
        "commonLabels": common["labels"], "commonAnnotations": common["annotations"],
    }  # fmt: skip


def rendered(folder: Path, name: str, data: dict[str, Any], kind: str = "text") -> str:
    """Return a template's text, by Alertmanager's own tool."""
    (folder / "ragtrace.tmpl").write_text(FILES[TEMPLATE])
    (folder / "data.json").write_text(json.dumps(data))
    command = [
        tool("amtool"), "template", "render", f"--template.glob={folder / 'ragtrace.tmpl'}", f"--template.type={kind}",
        f'--template.text={{{{ template "{name}" . }}}}', f"--template.data={folder / 'data.json'}",
    ]  # fmt: skip
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def alert(name: str, workflow: str = "support", **annotations: str) -> dict[str, Any]:
    """Return an alert as Grafana gives it: no recorded numbers among its annotations."""
    it = next(it for it in alerts(Config()) if it.name == name)
    given = {
        "summary": f"faithfulness of {workflow} is worse than its baseline", "description": "Answers score worse.",
        "dashboard_url": "http://grafana/d/x", "runbook_url": f"http://wiki/{name}.md",
    }  # fmt: skip
    whose = {"alertname": name, "severity": it.severity, "job": "shop", "gen_ai_workflow_name": workflow}
    return {"labels": whose, "annotations": given | annotations}


def test_amtool_takes_the_configuration(tmp_path):
    for name in (ALERTMANAGER, TEMPLATE):
        (tmp_path / Path(name).name).write_text(FILES[name])
    subprocess.run([tool("amtool"), "check-config", tmp_path / "alertmanager.yml"], check=True, capture_output=True)


@pytest.mark.parametrize("receivers", [("slack",), ("pagerduty",), ("email",), ("slack", "email")])
def test_every_choice_of_receivers_reaches_somebody(tmp_path, receivers):
    config = Config(receivers=receivers)
    made = receiver_files(config)
    for name in (ALERTMANAGER, TEMPLATE):
        (tmp_path / Path(name).name).write_text(made[name])
    subprocess.run([tool("amtool"), "check-config", tmp_path / "alertmanager.yml"], check=True, capture_output=True)
    ours = yaml.safe_load(made[ALERTMANAGER])["receivers"]
    theirs = yaml.safe_load(made[CONTACT_POINTS])["contactPoints"]
    for route, one, other in zip(ROUTES, ours, theirs, strict=True):
        kinds = chosen(config, route.severity)
        assert kinds
        assert set(kinds) <= set(receivers)
        assert set(one) == {"name", *(f"{it}_configs" for it in kinds)}
        assert [it["type"] for it in other["receivers"]] == list(kinds)


@pytest.mark.parametrize(("config", "longest"), [(Config(), 300), (Config.demo(), 2)], ids=["default", "demo"])
def test_messages_wait_no_longer_than_their_alerts(config, longest):
    made = receiver_files(config)
    ours = yaml.safe_load(made[ALERTMANAGER])["route"]
    theirs = yaml.safe_load(made[POLICIES])["policies"][0]
    for route in (ours, *ours["routes"], *theirs["routes"]):
        for name in {"group_wait", "group_interval"} & set(route):
            assert 0 < seconds(route[name]) <= longest


def test_alertmanager_remembers_for_as_long_as_it_is_silent():
    for route in yaml.safe_load(FILES[ALERTMANAGER])["route"]["routes"]:
        assert seconds(route["repeat_interval"]) <= 120 * 3_600, "its default of --data.retention"


def seconds(time):
    return int(time[:-1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[time[-1]]


def test_every_alert_has_a_route_of_its_severity(tmp_path):
    for name in (ALERTMANAGER, TEMPLATE):
        (tmp_path / Path(name).name).write_text(FILES[name])

    def routed(**given: str) -> str:
        asked = [f"{name}={value}" for name, value in given.items()]
        command = [
            tool("amtool"),
            "config",
            "routes",
            "test",
            "--config.file",
            tmp_path / "alertmanager.yml",
            *asked,
        ]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    assert [it.severity for it in ROUTES] == list(get_args(Severity))
    for it in alerts(Config()):
        assert routed(alertname=it.name, severity=it.severity) == f"ragtrace-{it.severity}"
    assert routed(alertname="DiskFull", severity="critical") == "ragtrace-warning"


def test_no_secret_stands_in_a_file():
    read = re.compile(r"(_file: /|\$__file\{/)")
    for text in FILES.values():
        named = [
            it
            for it in text.splitlines()
            if re.search(r"^\s*(api_url|routing_key|auth_password|url|integrationKey)", it)
        ]
        assert all(read.search(it) for it in named)
    assert (
        len(read.findall("".join(FILES.values()))) == 7
    )  # Slack in two receivers, PagerDuty in one, for both senders; a mail's password


def test_inhibit_rules_name_alerts_that_exist():
    names = [it.name for it in alerts(Config())]
    for rule in yaml.safe_load(FILES[ALERTMANAGER])["inhibit_rules"]:
        for side in ("source_matchers", "target_matchers"):
            (found,) = (re.fullmatch(r'alertname=~?"(.*)"', it) for it in rule[side] if it.startswith("alertname"))
            assert found is not None
            for pattern in found[1].split("|"):
                assert any(re.fullmatch(pattern, it) for it in names), pattern


def test_grafanas_files_fit_its_models():
    points, policies = (yaml.safe_load(FILES[it]) for it in (CONTACT_POINTS, POLICIES))
    for point in points["contactPoints"]:
        for integration in point["receivers"]:
            model = alerting.ContactPoint.from_json(integration | {"name": point["name"]})
            assert model.to_json() == integration | {"name": point["name"]}
            assert len(integration["uid"]) <= 40  # Grafana's limit
            assert not re.search(r"\$(?!__file\{)", json.dumps(integration)), "Grafana would expand it"
    (template,) = points["templates"]
    assert alerting.NotificationTemplate.from_json(template).template == FILES[TEMPLATE]
    (policy,) = policies["policies"]
    model = alerting.NotificationPolicy.from_json(policy)
    assert json.loads(json.dumps(model, cls=JSONEncoder)) | {"orgId": 1} == policy
    names = {it["name"] for it in points["contactPoints"]}
    assert model.routes is not None
    assert {model.receiver, *(it.receiver for it in model.routes)} == names


def test_every_template_that_a_file_names_is_defined():
    defined = set(re.findall(r'\{\{ define "([\w.]+)"', FILES[TEMPLATE]))
    named = set(re.findall(r'\{\{ template "([\w.]+)"', "".join(FILES.values())))
    assert named == defined


@pytest.mark.parametrize("status", ["firing", "resolved"])
@pytest.mark.parametrize("name", ["ragtrace.text", "ragtrace.slack.text", "ragtrace.html"])
def test_an_alert_of_a_pack_without_addresses_has_no_empty_link(tmp_path, name, status):
    plain = alert(QUALITY, runbook=f"runbooks/{QUALITY}.md")
    for link in ("dashboard_url", "runbook_url"):
        del plain["annotations"][link]
    text = rendered(tmp_path, name, template_data([plain], status))
    assert not re.search(r"Board|href|<\|", text)
    assert (f"What to do: runbooks/{QUALITY}.md" in text) == (status == "firing")
    assert "\n\n\n" not in text


def test_receivers_of_a_pack_without_addresses_name_no_link(tmp_path):
    made = receiver_files(Config())
    for name in (ALERTMANAGER, TEMPLATE):
        (tmp_path / Path(name).name).write_text(made[name])
    subprocess.run([tool("amtool"), "check-config", tmp_path / "alertmanager.yml"], check=True, capture_output=True)
    linked = re.compile(r"title_link|client_url|links:|href")
    for name in (ALERTMANAGER, CONTACT_POINTS):
        assert linked.search(FILES[name])
        assert not linked.search(re.sub(r"(?s)templates:\n.*?contactPoints:", "", made[name]))


@pytest.mark.parametrize("status", ["firing", "resolved"])
@pytest.mark.parametrize("name", ["ragtrace.text", "ragtrace.slack.text", "ragtrace.html"])
def test_an_alert_without_recorded_numbers_leaves_no_gap(tmp_path, name, status):
    """An alert of Grafana has no change, stage and culprit; an alert of a silent scorer has no labels but two."""
    silent = alert("RagtraceScorerSilent")
    silent["labels"] = {"alertname": "RagtraceScorerSilent", "severity": "critical"}
    text = rendered(tmp_path, name, template_data([alert(QUALITY), silent], status))
    assert "no value" not in text
    assert "\n\n\n" not in text
    assert ("2026-11-20 17:35 UTC, fired for 9h30m0s" in text) == (status == "resolved")
    assert ("Firing since 2026-11-20 08:05 UTC" in text) == (status == "firing")


def test_a_name_cannot_call_a_channel_or_leave_its_tag(tmp_path):
    data = template_data([alert(QUALITY, HOSTILE, command="ragtrace doctor")])
    slack = rendered(tmp_path, "ragtrace.slack.text", data) + rendered(tmp_path, "ragtrace.slack.title", data)
    assert "<!channel>" not in slack
    assert "&lt;!channel&gt; &amp;" in slack
    html = rendered(tmp_path, "ragtrace.html", data, "html")
    assert "<!channel>" not in html
    assert "workflow &lt;!channel&gt; &amp;" in html


def test_a_large_group_is_five_alerts_and_a_list(tmp_path):
    found = [alert(QUALITY, f"flow{number}") for number in range(9)]
    text = rendered(tmp_path, "ragtrace.slack.text", template_data(found))
    assert text.count("Answers score worse.") == 5
    assert text.count("• ") == 4
    title = rendered(tmp_path, "ragtrace.slack.title", template_data(found))
    assert title.strip() == "WARNING (first of 9): faithfulness of flow0 is worse than its baseline"


def expanded(text: str) -> dict[str, Any]:
    """Return labels and annotations of an alert as promtool prints it: by the real rules, over real series."""
    kinds = {}
    for kind in ("Labels", "Annotations"):
        (pairs,) = re.findall(rf"{kind}:\{{(.*)\}}$", text, re.MULTILINE)
        kinds[kind.lower()] = {
            key: json.loads(value) for key, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*")', pairs)
        }
    return kinds


def real_alerts(folder: Path, workflow: str) -> list[dict[str, Any]]:
    """Return the alerts of an incident: quality fell, scores are low, and another judge came."""
    whose = labels("shop") | {"gen_ai_workflow_name": workflow}
    series = scores(whose, Scores(4 * 24, 400), Scores(30, 400, 0.6, low=0.6))
    after = {"ok": 0.65, "unsupported": 0.08, "lost_in_rerank": 0.25, "undetermined": 0.02}
    series += verdicts("shop", (4 * 24, 400, WELL), (30, 400, after))
    other = {"ragtrace_judge_model": "openai:gpt-5", "ragtrace_judge_version": "bbbb2222"}
    found = []
    for name, given in (
        (FALL, series),
        (QUALITY, series),
        ("RagtraceLowScores", series),
        (
            "RagtraceJudgeChanged",
            [*scores(whose, Scores(4 * 24, 200)), *scores(whose | other, Scores(20, 200), begin_h=4 * 24)],
        ),
    ):
        folder.joinpath(name).mkdir()
        found.append(
            expanded(told(folder / name, given, 5 * 24 if name != "RagtraceJudgeChanged" else 4 * 24 + 12, name))
        )
    return found


def kept(name: str, text: str) -> None:
    """Compare a message with the one that reviewers read; RAGTRACE_WRITE_MESSAGES=1 writes it."""
    target = MESSAGES / name
    if os.environ.get("RAGTRACE_WRITE_MESSAGES"):
        MESSAGES.mkdir(exist_ok=True)
        target.write_text(text)
    assert text == target.read_text(), f"{name} changed: look at it, and write it with RAGTRACE_WRITE_MESSAGES=1"


def both(payloads: list[dict[str, Any]], word: str) -> list[dict[str, Any]]:
    """Return the payloads with a word about both metrics; alerts this old may be sent before their group is whole."""
    return [it for it in payloads if word in json.dumps(it) and "(first of 2)" in json.dumps(it)]


@pytest.mark.slow
def test_a_real_alertmanager_delivers_the_messages(tmp_path):
    program = alertmanager_program()
    found = real_alerts(tmp_path, "support")
    relevancy = json.loads(json.dumps(found[0]).replace("faithfulness", "answer_relevancy"))
    later = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).isoformat()
    firing = [it | {"startsAt": STARTED, "endsAt": later} for it in (*found, relevancy)]
    with receiving() as (received, http, smtp_port):
        (tmp_path / "ragtrace.tmpl").write_text(FILES[TEMPLATE])
        (tmp_path / "alertmanager.yml").write_text(local_config(FILES[ALERTMANAGER], tmp_path, http, smtp_port))
        slack, pages = received.posts[SLACK], received.posts[PAGERDUTY]
        with alertmanager(program, tmp_path) as url:
            post(url, firing)
            until(lambda: both(slack, "CRITICAL") and both(pages, '"trigger"') and received.mails)
            assert inhibited(url) == {QUALITY, "RagtraceLowScores"}  # the fall says it all
            post(url, [it | {"startsAt": STARTED, "endsAt": ENDED} for it in (*found, relevancy)])
            until(lambda: both(slack, "OVER") and both(pages, '"resolve"') and len(received.mails) > 1)
    assert received.passwords[0] == PASSWORD.encode()
    _check_slack(both(slack, "CRITICAL")[0], both(slack, "OVER")[0])
    _check_pages(both(pages, '"trigger"')[0], both(pages, '"resolve"')[0])
    _check_mails(received.mails[0], received.mails[1])


def _check_slack(first: dict[str, Any], over: dict[str, Any]) -> None:
    shown = []
    for payload in (first, over):
        (attachment,) = payload["attachments"]
        known = {key: value for key, value in attachment.items() if key in Attachment.attributes}
        model = Attachment(**known)
        model.validate_json()
        assert model.to_dict()["text"] == attachment["text"]
        assert len(attachment["text"]) < 3_000
        shown.append(f"{attachment['title']}\n{attachment['title_link']}\n\n{attachment['text']}")
    assert [it["attachments"][0]["color"] for it in (first, over)] == ["danger", "good"]
    kept("slack-firing.txt", shown[0])
    kept("slack-over.txt", shown[1])
    title, _link, _blank, *lines = shown[0].splitlines()
    command = "ragtrace investigate --since 6h --metric answer_relevancy --workflow support"
    assert re.fullmatch(
        r"CRITICAL \(first of 2\): answer_relevancy of support fell from 0\.920 to 0\.600 \(by 0\.320, 95 % interval "
        r"0\.2\d\d to 0\.3\d\d\) since about \d\d:\d\d UTC, mostly \"lost_in_rerank\" \(5\.0 % to 25\.0 % of runs\)\. "
        f"Run: {command}",
        title,
    ), title
    assert lines[0] == f"`{command}`"
    message = "\n".join(lines).strip()
    assert f"```text\n{title}\n\n{message}\n```" in PAGE, "docs/how-to/receivers.md shows another message"


def _check_pages(first: dict[str, Any], over: dict[str, Any]) -> None:
    assert first["routing_key"] == KEY
    assert [it["event_action"] for it in (first, over)] == ["trigger", "resolve"]
    assert first["dedup_key"] == over["dedup_key"]
    payload = first["payload"]
    assert (payload["severity"], payload["group"], payload["component"]) == ("critical", "shop", "support")
    assert len(payload["summary"]) <= 1024
    assert payload["source"]
    assert [it["text"] for it in first["links"]] == ["Board", "What to do"]
    assert all(it["href"].startswith("http") for it in first["links"])
    assert len(json.dumps(first)) < 512_000  # PagerDuty's limit
    kept("pagerduty-firing.json", json.dumps(first | {"dedup_key": "...", "client_url": "..."}, indent=1) + "\n")


def _check_mails(first: Any, over: Any) -> None:
    assert first["Subject"].startswith("INFO: A new judge or prompt scores")
    assert over["Subject"].startswith("OVER: A new judge or prompt scores")
    text, html = (first.get_body((kind,)).get_content().replace("\r\n", "\n") for kind in ("plain", "html"))
    assert "openai:gpt-5 version bbbb2222 began to score today" in text
    kept("email-firing.txt", f"Subject: {first['Subject']}\n\n{text}")
    kept("email-firing.html", html)
