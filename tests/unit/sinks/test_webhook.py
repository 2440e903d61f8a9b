"""The webhook sink against a real HTTP server on loopback.

Slack itself is a RECORDED contract: its limits as its documentation gives them, and slack_sdk's models, which refuse
blocks that Slack would refuse. Signatures are checked by the library that receivers use, standardwebhooks.
"""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from slack_sdk.models.blocks import Block, SectionBlock
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

import ragtrace
from ragtrace.errors import ConfigError
from ragtrace.model import RagRecord, Score
from ragtrace.sinks import MOST_LISTED, WebhookSink, outbox, sinks_of
from tests import make
from tests.unit.sinks.scores import RECORD, lost_at, score

if TYPE_CHECKING:
    from tests.unit.sinks.server import Scripted

SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOSTILE = "<!channel> <https://evil.example|click> &lt; ``` *bold* @here \x1b[31m\u202e\n\n> quoted"


def failed_run(
    number: int, value: float = 0.25, text: str = "Where?", **facts: Any
) -> tuple[RagRecord, list[Score]]:
    record = make.record(n=number, query=text, answer=text)
    why = {"explanation": text}
    return record, [score(record=record, value=value, passed=False, details=why, **facts), score("mrr", record)]


def posted(server: Scripted) -> list[Any]:
    return [body for _, _, body in server.requests]


def test_five_hundred_failed_runs_are_one_message_with_the_worst_first(serve) -> None:
    server = serve()
    sink = WebhookSink(server.url)
    for number in range(500):
        sink.emit(*failed_run(number, value=(number * 7 % 500) / 1_000))
    assert sink.close(20)
    (message,) = posted(server)
    data = message["data"]
    assert (message["type"], data["runs"], data["by_metric"]) == (
        "ragtrace.runs.failed",
        500,
        {"faithfulness": 500},
    )
    values = [run["failed"][0]["value"] for run in data["worst"]]
    assert values == [number / 1_000 for number in range(MOST_LISTED)]
    assert data["worst"][0]["trace_id"] == "0" * 32
    assert "Where?" not in str(message)


def test_the_first_message_waits_a_little_and_the_next_one_for_its_time(serve) -> None:
    server = serve()
    sink = WebhookSink(server.url, wait_s=0.3, every_s=3_600.0)
    sink.emit(*failed_run(1))
    sink.emit(*failed_run(2))
    assert server.arrived.wait(20)
    assert [body["data"]["runs"] for body in posted(server)] == [2]
    for number in (3, 4):
        sink.emit(*failed_run(number))
        assert sink.flush(20), "an application that flushes after each answer sends no message each"
    assert len(server.requests) == 1
    assert sink.close(20)
    assert [body["data"]["runs"] for body in posted(server)] == [2, 2]


def test_flush_sends_the_first_message_at_once(serve) -> None:
    server = serve()
    sink = WebhookSink(server.url)
    sink.emit(*failed_run(1))
    assert sink.flush(20)
    assert len(server.requests) == 1
    sink.close(1)


def test_runs_that_passed_or_have_no_value_or_came_before_are_not_told(serve) -> None:
    server = serve()
    sink = WebhookSink(server.url)
    sink.emit(RECORD, [score(passed=True), score("mrr"), score("recall", state="error", reason="judge_timeout")])
    assert sink.close(20)
    assert server.requests == []
    sink = WebhookSink(server.url)
    for _ in range(3):
        sink.emit(*failed_run(1))
    assert sink.close(20)
    assert posted(server)[0]["data"]["runs"] == 1


def test_where_low_is_better_the_highest_is_the_worst(serve) -> None:
    server = serve()
    sink = WebhookSink(server.url)
    sink.take_directions({"invented"})
    for number, value in enumerate((0.2, 0.9, 0.5)):
        record, _ = failed_run(number)
        sink.emit(record, [score("invented", record, value=value, passed=False)])
    assert sink.close(20)
    assert [run["failed"][0]["value"] for run in posted(server)[0]["data"]["worst"]] == [0.9, 0.5, 0.2]


def test_a_message_is_signed_and_has_one_id_for_all_its_attempts(serve) -> None:
    server = serve(500, 0)
    sink = WebhookSink(server.url, secret=SIGNING)
    sink.emit(*failed_run(1))
    assert sink.close(20)
    assert len(server.requests) == 3
    ids = {headers["webhook-id"] for _, headers, _ in server.requests}
    assert ids == {headers["Idempotency-Key"] for _, headers, _ in server.requests}
    assert len(ids) == 1
    for (_, headers, _), body in zip(server.requests, server.bodies, strict=True):
        assert Webhook(SIGNING).verify(body, headers)["data"]["runs"] == 1
        with pytest.raises(WebhookVerificationError):
            Webhook(SIGNING).verify(body.replace(b'"runs":1', b'"runs":9'), headers)


def test_the_same_runs_have_the_same_id_in_another_process_and_another_order(serve) -> None:
    server = serve()
    for numbers in ((1, 2), (2, 1), (1, 3)):
        sink = WebhookSink(server.url)
        for number in numbers:
            sink.emit(*failed_run(number))
        assert sink.close(20)
    first, again, other = (headers["webhook-id"] for _, headers, _ in server.requests)
    assert first == again != other


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(form: str, serve, monkeypatch) -> None:
    monkeypatch.setattr(outbox, "_HURRIED_WAIT_S", 30.0)
    said = "2" if form == "seconds" else formatdate(time.time() + 3, usegmt=True)
    server = serve(429, headers={"Retry-After": said})
    sink = WebhookSink(server.url, wait_s=0.0)
    started = time.monotonic()
    sink.emit(*failed_run(1))
    while len(server.requests) < 2 and time.monotonic() < started + 30:
        time.sleep(0.02)
    assert len(server.requests) == 2
    assert time.monotonic() - started >= 1.5
    sink.close(5)


def test_what_cannot_pass_is_counted_and_neither_address_nor_secret_is_told(serve, caplog) -> None:
    caplog.set_level("DEBUG")
    before = lost_at("webhook", "refused")
    server = serve(410)
    sink = WebhookSink(f"{server.url}/services/T0/B0/hook-secret?key=query-secret", secret="s3cret-words")
    sink.emit(*failed_run(1))
    assert not sink.close(20)
    assert lost_at("webhook", "refused") == before + 1
    assert server.requests[0][0] == "/services/T0/B0/hook-secret?key=query-secret"
    assert f"the webhook at {server.url} has no such path (410): check url (RAGTRACE_WEBHOOK_URL)" in caplog.text
    told = caplog.text + repr(sink)
    assert not re.search("hook-secret|query-secret|s3cret-words", told)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("url (RAGTRACE_WEBHOOK_URL)", {"url": "hooks.slack.com/services/private"}),
        ("url (RAGTRACE_WEBHOOK_URL)", {"url": "https://ada:private@host/x"}),
        ("url (RAGTRACE_WEBHOOK_URL)", {"url": "https://host/private?a b"}),
        ("url (RAGTRACE_WEBHOOK_URL)", {"url": None}),
        ("form", {"form": "teams"}),
        ("secret (RAGTRACE_WEBHOOK_SECRET)", {"secret": "whsec_private-é"}),
        ("trace_url", {"trace_url": "https://host/private"}),
        ("trace_url", {"trace_url": "javascript:{trace_id}"}),
        ("trace_url", {"trace_url": "https://host/{trace_id}|x>"}),
        ("attempts", {"attempts": 0}),
    ],
)
def test_a_wrong_option_is_one_clear_line(name: str, options: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        WebhookSink(**({"url": "http://127.0.0.1:9/hook"} | options))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "private" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "path"), [("", "/"), ("/", "/"), ("/a", "/a"), ("/a/", "/a/"), ("/a/?b=c", "/a/?b=c"), ("?b", "/?b")]
)
def test_the_address_is_asked_as_it_was_given(url: str, path: str, serve) -> None:
    server = serve()
    sink = WebhookSink(server.url + url)
    sink.emit(*failed_run(1))
    assert sink.close(20)
    assert server.requests[0][0] == path


def slack_message(server: Scripted, **options: Any) -> WebhookSink:
    trace_url = "https://traces.example/t/{trace_id}?span={span_id}"
    return WebhookSink(server.url, form="slack", trace_url=trace_url, **options)


def checked(message: Any) -> list[Any]:
    """Return the blocks, as slack_sdk reads them and within Slack's limits."""
    blocks: list[Any] = list(Block.parse_all(message["blocks"]))
    for block in blocks:
        block.validate_json()
        assert 1 <= len(block.text.text) <= (3_000 if isinstance(block, SectionBlock) else 150)
    assert len(blocks) <= 50
    assert [block.to_dict() for block in blocks] == message["blocks"], "no field that slack_sdk does not know"
    assert message["text"], "of notifications, which show no blocks"
    return blocks


def test_slack_gets_a_count_and_the_worst_three_with_links(serve) -> None:
    server = serve()
    sink = slack_message(server, content="full", service="shop")
    sink.take_thresholds({"faithfulness": 0.7})
    for number in range(9, 12):
        record, scores = failed_run(number)
        for _ in range(2):
            sink.emit(record, scores[1:])  # which passed; a repeat is no further run
    for number in range(9):
        sink.emit(*failed_run(number, value=number / 10, text="Where is <it> & why?"))
    assert sink.close(20)
    (message,) = posted(server)
    header, counts, *worst, more = checked(message)
    assert header.text.text == message["text"]
    assert re.fullmatch(r"9 of 12 scored runs failed, .*\d\d:\d\d to .*\d\d:\d\d UTC", message["text"])
    summary = ["service shop, sampled runs only, not all traffic", "9 x faithfulness below 0.70"]
    assert counts.text.text.splitlines() == summary
    assert len(worst) == 3
    assert more.text.text == "and 6 more"
    assert worst[1].text.text.splitlines() == [
        f"rag, <https://traces.example/t/{1:032x}?span={1:016x}|trace {1:032x}>",
        "*faithfulness* 0.10, below 0.70",
        "&gt; Where is &lt;it&gt; &amp; why?",
        "&gt; Where is &lt;it&gt; &amp; why?",
    ]


def test_a_high_value_fails_above_its_threshold_and_the_worst_claim_is_told(serve) -> None:
    claims = [{"text": "There is a pool. " * 40, "verdict": "not_supported", "support": 0.1}]
    for content in ("full", "none"):
        server = serve()
        sink = slack_message(server, content=content)
        sink.take_directions({"invented_specifics"})
        sink.take_thresholds({"invented_specifics": 0.5})
        record = replace(RECORD, environment="production")
        sink.emit(record, [score("invented_specifics", value=1.0, passed=False, details={"claims": claims})])
        assert sink.close(20)
        first, second, *said = checked(posted(server)[0])[-1].text.text.splitlines()
        assert first.startswith("support, production, <")
        assert second == "*invented_specifics* 1.00, above 0.50"
        assert [line[:40] for line in said] == (
            ["&gt; Where is it?", "&gt; not supported (0.10): There is a po"] if content == "full" else []
        )
        assert max(map(len, said), default=0) < 320


def test_without_content_slack_gets_ids_and_numbers(serve) -> None:
    server = serve()
    sink = slack_message(server)
    sink.emit(*failed_run(1, text="a private question"))
    assert sink.close(20)
    (message,) = posted(server)
    checked(message)
    assert "private" not in str(message)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.one_of(st.just(HOSTILE), st.text(alphabet="<>&|!@#*`\n\x00\ud800a", max_size=6_000), st.text()),
    names=st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=40, unique=True),
)
def test_no_text_of_people_breaks_a_message_or_commands_slack(text: str, names: list[str], serve) -> None:
    server = serve()
    record = RagRecord(id="1", trace_id="a" * 32, span_id="b" * 16, query=text, workflow=text)
    scores = [score(name, record, value=0.1, passed=False, details={"explanation": text}) for name in names]
    for form in ("slack", "json"):
        sink = WebhookSink(server.url, form=form, content="full", trace_url="https://t.example/{trace_id}")
        sink.emit(record, scores)
        assert sink.close(20)
    slack, plain = posted(server)
    assert plain["data"]["runs"] == 1
    _, *sections = checked(slack)
    for section in sections:
        links = re.findall(r"<[^>]*>?", section.text.text)
        assert set(links) <= {f"<https://t.example/{'a' * 32}|trace {'a' * 32}>"}
        without_links = re.sub(r"<[^>]*>", "", section.text.text)
        assert ">" not in without_links
        assert not re.search(r"&(?!amp;|lt;|gt;)", without_links)
        assert section.text.to_dict()["verbatim"] is True


def test_an_address_of_slack_gets_slacks_form() -> None:
    assert WebhookSink("https://hooks.slack.com/services/T0/B0/x")._form == "slack"
    assert WebhookSink("https://hooks.slack.com/services/T0/B0/x", form="json")._form == "json"


def test_its_name_is_enough_and_an_object_works_too(serve, own_providers, monkeypatch) -> None:
    server = serve()
    monkeypatch.setenv("RAGTRACE_WEBHOOK_URL", server.url)
    monkeypatch.setattr("ragtrace.sinks.webhook.SLACK", "127.0.0.1")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    for sinks in ("webhook", f"webhook:{server.url}", WebhookSink(server.url)):
        ragtrace.configure(metrics=["faithfulness"], content="full", sinks=sinks, **own_providers)
        with ragtrace.query("Where is the lab?") as run:
            run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}], source="faq")
            run.answered("The lab is in Oslo. It has a pool on its roof. The pool is made of marble.")
        assert ragtrace.shutdown(20)
        told = checked(posted(server)[-1])[-1].text.text
        assert "Where is the lab?" in told
        assert "service shop, " in str(posted(server)[-1])
        assert re.search(r"\*faithfulness\* 0\.\d\d, below 0\.\d\d", told)
        assert "&gt; not supported" in told
    assert len(server.requests) == 3
    monkeypatch.delenv("RAGTRACE_WEBHOOK_URL")
    with pytest.raises(ConfigError, match="set RAGTRACE_WEBHOOK_URL"):
        sinks_of(["webhook"])
