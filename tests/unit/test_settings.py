"""Settings: where they come from, and what a person reads when one is wrong."""

from __future__ import annotations

import logging
import os
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import SecretStr

from ragtrace.cli import main
from ragtrace.errors import ConfigError
from ragtrace.settings import (
    GONE_ARGUMENTS,
    GONE_VARIABLES,
    GROUPS,
    TABLE,
    Arguments,
    Judge,
    Options,
    Settings,
    names,
    shown,
    table,
    unknown_variables,
)
from ragtrace.sinks import Sink


def test_the_order_argument_variable_others_default() -> None:
    env = {
        "RAGTRACE_CONTENT": "none",
        "RAGTRACE_SAMPLE_RATE": "0.5",
        "RAGTRACE_METRICS": "faithfulness, mrr",
        "RAGTRACE_METRIC_OPTIONS_K_VALUES": "3,5",
        "RAGTRACE_METRICS_PORT": "9464",
        "RAGTRACE_ENABLED": "no",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OPENAI_API_KEY": "of-openai",
        "OPENAI_BASE_URL": "http://of-openai/v1",
        "RAGTRACE_JUDGE_BASE_URL": "http://ours/v1",
    }
    settings = Settings.resolve({"sample_rate": 1}, env)
    assert (settings.sample_rate, settings.content, settings.judge.base_url) == (1.0, "none", "http://ours/v1")
    assert (settings.metrics, settings.metric_options.k_values) == (("faithfulness", "mrr"), (3, 5))
    assert (settings.metrics_port, settings.enabled, settings.judge.api_key) == (
        9464,
        False,
        SecretStr("of-openai"),
    )
    assert Settings.resolve({"judge_base_url": "http://said/v1"}, env).judge.base_url == "http://said/v1"
    assert (
        Settings.resolve({}, {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"}).content == "full"
    )
    assert Settings.resolve({}, {}).sample_rate == 0.05


def shop(query: str, top_k: int) -> list[str]:
    return [query] * top_k


@pytest.mark.parametrize(
    ("given", "env"),
    [
        ({"judge": "openai:m", "judge_rpm": 60}, {}),
        ({"judge": {"name": "openai:m", "rpm": 60}}, {}),
        ({"judge": {"rpm": 60}}, {"RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_RPM": "7"}),
        ({}, {"RAGTRACE_JUDGE": "openai:m", "RAGTRACE_JUDGE_RPM": "60"}),
    ],
)
def test_a_group_is_a_text_a_dict_flat_names_or_variables(given: dict, env: dict) -> None:
    judge = Settings.resolve(given, env).judge
    assert (judge.name, judge.rpm, judge.tpm) == ("openai:m", 60, 200_000)


def test_groups_take_functions_paths_and_several_values() -> None:
    settings = Settings.resolve(
        {
            "shadow": shop,
            "shadow_rate": 1,
            "store": {"path": Path("a") / "s.sqlite", "bytes": 2_000_000},
            "metric_options": {"k_values": [3]},
        },
        {},
    )
    assert (settings.shadow.retrieve, settings.shadow.rate) == (shop, 1.0)
    assert (settings.store.path, settings.store.bytes) == (str(Path("a") / "s.sqlite"), 2_000_000)
    assert settings.metric_options.k_values == (3,)
    assert Settings.resolve({"shadow": {"retrieve": shop}}, {}).shadow.retrieve is shop


@pytest.mark.parametrize(
    ("given", "env", "words"),
    [
        ({"sample_rat": 1.0}, {}, "did you mean 'sample_rate'?"),
        ({"content": "ful"}, {}, "did you mean 'full'?"),
        ({"sample_rate": 1.5}, {}, "sample_rate=1.5 must lie between 0.0 and 1.0"),
        ({"sample_rate": float("nan")}, {}, "sample_rate=nan is not a finite number"),
        ({"concurrency": 0}, {}, "concurrency=0 must be above 0"),
        ({"concurrency": "8"}, {}, "of type int"),
        ({"judge": {"rpm": -1}}, {}, "judge_rpm=-1 must be at least 0"),
        ({"judge": {"rmp": 1}}, {}, "judge has no setting 'rmp'; did you mean 'rpm'?"),
        ({"judge": {"rpm": 1}, "judge_rpm": 2}, {}, "judge_rpm is given twice: by itself and in judge"),
        ({"budget": 3}, {}, "budget takes a dict with usd_per_day, tokens_per_day"),
        ({"metric_options": {"k_values": (0,)}}, {}, "metric_options_k_values=(0,) must be above 0"),
        ({"redact": "x"}, {}, "redact must be a function from text to text"),
        ({}, {"RAGTRACE_SAMPLE_RATE": "many"}, "RAGTRACE_SAMPLE_RATE='many' is not a number"),
        ({}, {"RAGTRACE_SAMPLE_RATE": "2"}, "RAGTRACE_SAMPLE_RATE=2.0 must lie between 0.0 and 1.0"),
        ({}, {"RAGTRACE_ENABLED": "maybe"}, "not a truth value"),
        ({"metrics_port": 70_000}, {}, "65535"),
        ({"health_port": -1}, {}, "65535"),
        ({"metric_options_k_values": 5}, {}, "metric_options_k_values=5 is not a list"),
        ({"metric_options_k_values": (True,)}, {}, "of type int"),
        ({"metric_options_k_values": "3,x"}, {}, "metric_options_k_values='3,x' is not a whole number"),
        ({"metrics": (5,)}, {}, "of type str"),
        ({"metrics": (None,)}, {}, "of type str"),
        ({"spool": 7}, {}, "spool=7 is not of type str"),
        ({}, {"RAGTRACE_METRICS_PORT": "60.0"}, "RAGTRACE_METRICS_PORT='60.0' is not a whole number"),
        ({"spool": "kafka://b/t"}, {}, "spool must be a file; set queue to this address instead"),
        ({"queue": "units.sqlite"}, {}, "queue must be an address such as kafka://HOST:9092/TOPIC"),
        ({"sample_rate": True}, {}, "of type float"),
        ({"canary_every_s": "often"}, {}, "of type float"),
        ({"pairs": 7}, {}, "pairs=7 must be onnx:FOLDER, or a function"),
        ({"shadow": 7}, {}, "shadow must be a function of query and top_k"),
        (
            {},
            {"RAGTRACE_METRIC_OPTIONS_K_VALUES": "3,x"},
            "RAGTRACE_METRIC_OPTIONS_K_VALUES='3,x' is not a whole number",
        ),
        ({"store_texts": "al"}, {}, "store_texts='al' is not valid; did you mean 'all'?"),
        ({}, {"RAGTRACE_STORE_TEXTS": "al"}, "RAGTRACE_STORE_TEXTS='al' is not valid; did you mean 'all'?"),
        ({"store_texts": True, "content": "full"}, {}, "store_texts=True is not valid; valid: all, selected"),
        ({"store_texts": "all"}, {}, "store_texts='all' keeps no texts with content='none': set content to 'full'"),
        ({}, {"RAGTRACE_STORE_TEXTS": "all"}, "set content to 'full' (RAGTRACE_CONTENT=full), or store_texts to"),
        (
            {"store_texts": "all", "content": "none"},
            {"RAGTRACE_CONTENT": "full"},
            "keeps no texts with content='none'",
        ),
        ({"k_values": (3,)}, {}, "k_values is called metric_options_k_values now"),
        ({"judge_calls": 3}, {}, "judge_calls is called concurrency now"),
        ({"judge": {"calls": 3}}, {}, "judge_calls is called concurrency now"),
        ({"judge": {"k_values": 3}}, {}, "k_values is called metric_options_k_values now"),
        ({"budget": {"share": 0.5}}, {}, "budget_share is gone: write the part of budget_usd_per_day"),
        ({"server": {"metrics_port": 1}}, {}, "server is gone: write metrics_port"),
        ({"webhook_url": "http://h"}, {}, "webhook_url is gone: write sinks=WebhookSink(url)"),
        (
            {"budget": {"canary_usd_per_day": 1}},
            {},
            "budget has no setting 'canary_usd_per_day'; it is a setting of its own: canary_usd_per_day=...",
        ),
        ({"store": {"spool": "f"}}, {}, "store has no setting 'spool'; it is a setting of its own: spool=..."),
        ({"judge": {"judge_rpm": 1}}, {}, "judge has no setting 'judge_rpm'; did you mean 'rpm'?"),
        ({"judge": {"judge": "overlap"}}, {}, "judge has no setting 'judge'; did you mean 'name'?"),
        ({"judge_name": "overlap"}, {}, "unknown setting 'judge_name'; did you mean 'judge'?"),
        ({"store_path": "f"}, {}, "unknown setting 'store_path'; did you mean 'store'?"),
        ({"zzz": {"qqq": 1}}, {}, "unknown setting 'zzz'; see `ragtrace settings`"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(given: dict, env: dict, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.resolve(given, env)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_all_texts_are_kept_where_content_is_full_whoever_says_so() -> None:
    assert Settings.resolve({}, {}).store.texts == "selected"
    assert Settings.resolve({"store_texts": "all", "content": "full"}, {}).store.texts == "all"
    env = {"RAGTRACE_STORE_TEXTS": "all", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"}
    assert Settings.resolve({}, env).store.texts == "all"
    assert Settings.resolve({"store_texts": "selected"}, env).store.texts == "selected"


def test_an_unknown_variable_is_a_warning_with_the_nearest_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ragtrace"):
        Settings.resolve({}, {"RAGTRACE_SAMPEL_RATE": "1"})
    assert "did you mean 'RAGTRACE_SAMPLE_RATE'?" in caplog.text


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("RAGTRACE_BATCH_METRICS", "RAGTRACE_METRIC_OPTIONS_GRADE_BATCH=1 grades one passage a call"),
        ("RAGTRACE_GRADING", "is called RAGTRACE_METRIC_OPTIONS_GRADING now"),
        ("RAGTRACE_BUDGET_SHARE", "is gone: set RAGTRACE_BUDGET_USD_PER_DAY"),
        ("RAGTRACE_SERVICE_NAME", "is gone: set OTEL_SERVICE_NAME"),
        ("RAGTRACE_PHOENIX_ENDPOINT", "is gone: set PHOENIX_COLLECTOR_ENDPOINT and RAGTRACE_SINKS=phoenix"),
        ("RAGTRACE_LANGFUSE_SECRET_KEY", "is gone: set LANGFUSE_SECRET_KEY"),
        ("RAGTRACE_WEBHOOK_EVERY_S", "is gone: in code write sinks=WebhookSink(url, every_s=...)"),
    ],
)
def test_a_variable_that_is_gone_is_refused_with_what_to_write(
    variable: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "s3cret")
    assert main(["settings"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ragtrace: {variable} ")
    assert words in said
    assert said.count("\n") == 1
    assert "s3cret" not in said
    Settings.resolve({}, {variable: ""})  # as unset


def test_every_argument_that_is_gone_is_refused_and_its_variable_too() -> None:
    assert not (GONE_ARGUMENTS.keys() & TABLE.keys())
    assert not {one.variable for one in TABLE.values()} & GONE_VARIABLES.keys()
    as_variables = {f"RAGTRACE_{name.upper()}" for name in GONE_ARGUMENTS.keys() - {"server"}}
    assert as_variables - GONE_VARIABLES.keys() == {"RAGTRACE_WEBHOOK_URL", "RAGTRACE_WEBHOOK_SECRET"}  # still read
    for name in GONE_ARGUMENTS:
        with pytest.raises(ConfigError, match=f"^{name} is (gone: |called )"):
            Settings.resolve({name: 1}, {})


def test_a_webhooks_address_without_its_sink_is_a_warning() -> None:
    hint = "; it is read with RAGTRACE_SINKS=webhook only"
    assert unknown_variables({"RAGTRACE_WEBHOOK_URL": "x"}) == {"RAGTRACE_WEBHOOK_URL": hint}
    assert not unknown_variables({"RAGTRACE_WEBHOOK_URL": "x", "RAGTRACE_SINKS": "webhook"})


def test_the_first_setting_of_a_group_has_the_groups_name() -> None:
    hints = unknown_variables({"RAGTRACE_JUDGE_NAME": "x", "RAGTRACE_STORE_PATH": "x"})
    assert hints == {
        "RAGTRACE_JUDGE_NAME": "; did you mean 'RAGTRACE_JUDGE'?",
        "RAGTRACE_STORE_PATH": "; did you mean 'RAGTRACE_STORE'?",
    }


def test_a_store_is_no_address_and_a_login_is_never_shown() -> None:
    for given, env in (
        ({"store": "postgres://u:s3cret@h"}, {}),
        ({"store": {"path": "postgres://u:s3cret@h"}}, {}),
        ({}, {"RAGTRACE_STORE": "postgres://u:s3cret@h"}),
    ):
        with pytest.raises(ConfigError) as caught:
            Settings.resolve(given, env)
        assert str(caught.value).endswith("must be a file, not an address: the store is SQLite's")
        assert "s3cret" not in str(caught.value)
    settings = Settings.resolve({"grade_cache": "postgres://u:s3cret@h"}, {})
    settings = settings.model_copy(
        update={"store": settings.store.model_copy(update={"path": "postgres://u:s3cret@h"})}
    )
    assert "s3cret" not in f"{settings!r} {shown(settings)}"
    assert shown(settings)["store"] == "postgres://***@h"


@pytest.mark.parametrize("variable", ["RAGTRACE_REDACT", "RAGTRACE_SHADOW", "RAGTRACE_NO_SUCH_THING"])
def test_a_variable_that_sets_nothing_is_unknown(variable: str) -> None:
    ours = {"RAGTRACE_GOLDEN_DIR": "x", "RAGTRACE_WEBHOOK_URL": "x", "RAGTRACE_SINKS": "webhook", "PATH": ""}
    assert list(unknown_variables({variable: "x", "RAGTRACE_JUDGE": "overlap"} | ours)) == [variable]


def test_names_are_separated_by_commas_wherever_they_come_from() -> None:
    assert names(" faithfulness, mrr,, ") == ("faithfulness", "mrr")
    for text, wanted in (("faithfulness", ("faithfulness",)), ("faithfulness, mrr,", ("faithfulness", "mrr"))):
        assert Settings.resolve({"metrics": text}, {}).metrics == wanted
        assert Settings.resolve({}, {"RAGTRACE_METRICS": text}).metrics == wanted
    assert Settings.resolve({"metric_options_k_values": "3, 5,"}, {}).metric_options.k_values == (3, 5)
    assert Settings.resolve({"metric_rates": {"mrr": 0.5}}, {}).metric_rates == ("mrr=0.5",)


def parts(hint: object) -> set[object]:
    """Return the types of a union; a Literal's values, and functions as one."""
    kinds = get_args(hint) if get_origin(hint) in {types.UnionType, Union} else (hint,)
    return {Callable if get_origin(kind) is Callable else kind for kind in kinds}


# What an argument is, for what the model says; further forms beside them are said in `Arguments` only.
WIDER: dict[object, object] = {SecretStr: str}


def test_configure_is_typed_as_the_model_says() -> None:
    space = {"os": os, "Callable": Callable, "Iterable": Iterable, "Mapping": Mapping, "Sink": Sink}
    given = get_type_hints(Arguments, None, space)
    assert set(given) == set(TABLE) | set(GROUPS)
    for name, one in TABLE.items():
        wanted = {WIDER.get(kind, kind) for kind in parts(one.field.annotation)}
        found = parts(given[name])
        if any(get_origin(kind) is tuple for kind in wanted):
            assert any(get_origin(kind) is Iterable for kind in found), name
        else:
            beside = {os.PathLike[str], Mapping[str, object]}
            assert found - beside == wanted | {type(None)}, name


def test_two_settings_of_one_name_are_refused() -> None:
    class Clash(Options):
        judge: Judge = Judge()
        judge_rpm: int = 1

    with pytest.raises(TypeError, match="two settings are called judge_rpm"):
        table(Clash)


def test_a_variable_is_read_as_what_the_annotation_says() -> None:
    for name, one in TABLE.items():
        (kind, *_) = parts(one.field.annotation) & {bool, int, float} or {None}
        if kind is not None:
            found = one.of(Settings.resolve({}, {one.variable: str(one.field.default or 1)}))
            assert type(found) is kind, name
        elif get_origin(one.field.annotation) is Literal:
            for word in get_args(one.field.annotation):
                env = {"RAGTRACE_CONTENT": "full", one.variable: word}
                assert one.of(Settings.resolve({}, env)) == word


def test_a_path_is_as_good_as_its_text() -> None:
    settings = Settings.resolve({"spool": Path("a") / "b", "grade_cache": Path("c")}, {})
    assert (settings.spool.path, settings.grade_cache) == (str(Path("a") / "b"), "c")


def test_changes_are_checked_and_leave_the_rest() -> None:
    settings = Settings.resolve({"judge": "openai:m", "label_freeze": 3, "sinks": [print]}, {})
    changed = settings.with_changes(judge_repeats=2, label_freeze=None)
    assert (changed.judge.name, changed.judge.repeats, changed.label_freeze) == ("openai:m", 2, None)
    assert changed.sinks == (print,)
    assert changed.has_default_metrics
    assert not settings.with_changes(metrics=settings.metrics).has_default_metrics
    with pytest.raises(ConfigError, match="judge_repeats=0 must lie between 1 and 20"):
        settings.with_changes(judge_repeats=0)


@pytest.mark.parametrize("name", ["judge_api_key", "judge_base_url", "queue", "kafka_config"])
def test_what_may_be_a_secret_is_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.resolve({name: b"http://ada:s3cret@host"}, {})
    assert str(caught.value) == f"{name} is not of type str"


def test_the_key_is_never_shown() -> None:
    settings = Settings.resolve(
        {"judge_api_key": "sk-very-secret", "kafka_config": "sasl.password=sk-very-secret"}, {}
    )
    assert "sk-very-secret" not in f"{settings!r} {settings} {settings.judge!r} {shown(settings)}"


def test_every_setting_is_documented() -> None:
    assert [name for name, one in TABLE.items() if not one.doc] == []


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("http://ada:s3cret@host:8000/v1", "http://***@host:8000/v1"),
        ("https://host/v1?api-key=s3cret", "https://host/v1?***"),
        ("https://ada:s3cr?et@host/v1", "***"),
        ("https://host/v1?key=s3cret@host", "***"),
        ("https://host:8000/v1", "https://host:8000/v1"),
    ],
)
def test_of_an_address_neither_login_nor_query_is_shown(address: str, seen: str) -> None:
    judge = Settings().judge.model_copy(update={"base_url": address})
    settings = Settings().model_copy(update={"judge": judge})
    assert shown(settings)["judge_base_url"] == seen
    assert f"base_url={seen!r}" in repr(settings)
    assert "s3cr" not in repr(settings)


@pytest.mark.parametrize(
    "wrong", ["http://[bad/s3cret", "ada:s3cret@host", "http://host:s3cret/v1", "s3cret", "http://"]
)
@pytest.mark.parametrize("source", ["judge_base_url", "RAGTRACE_JUDGE_BASE_URL", "OPENAI_BASE_URL"])
def test_what_is_no_address_is_refused_and_not_repeated(source: str, wrong: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.resolve(*(({source: wrong}, {}) if source.islower() else ({}, {source: wrong})))
    assert str(caught.value).startswith((f"{source} must begin with http", f"{source} has no valid host and port"))
    assert "s3cret" not in str(caught.value)


def test_the_command_shows_no_secret(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTRACE_JUDGE_BASE_URL", "http://ada:s3cret@host/v1?api-key=s3cret")
    monkeypatch.setenv("RAGTRACE_JUDGE_API_KEY", "s3cret")
    monkeypatch.setenv("RAGTRACE_SINKS", "webhook:http://host/s3cret")
    assert main(["settings"]) == 0
    said = capsys.readouterr().out
    assert "s3cret" not in said
    assert "***" in said


READING = {
    "question": "input.ticket.body",
    "evidence": {"web_search": True, "state.rows": True, "think_tool": False, "fetch_page": "output.pages[*].text"},
    "roots": ["answer_chain", "batch"],
    "follows": False,
}


@pytest.mark.parametrize(
    ("given", "env"),
    [
        ({"reading": READING}, {}),
        ({f"reading_{name}": one for name, one in READING.items()}, {}),
        (
            {},
            {
                "RAGTRACE_READING_QUESTION": " input.ticket.body",
                "RAGTRACE_READING_EVIDENCE": "web_search,state.rows, -think_tool,fetch_page=output.pages[*].text",
                "RAGTRACE_READING_ROOTS": "batch,answer_chain",
                "RAGTRACE_READING_FOLLOWS": "no",
            },
        ),
    ],
    ids=["group", "flat", "variables"],
)
def test_declarations_are_settings(given: dict, env: dict) -> None:
    settings = Settings.resolve(given, env)
    assert settings.reading.declared.said() == READING
    assert settings.with_changes(workflow="support").reading == settings.reading


@pytest.mark.parametrize(
    ("given", "env", "said"),
    [
        ({"reading": {"question": "messages[-1]"}}, {}, "reading_question='messages[-1]' begins with none of"),
        (
            {"reading": {"question": shop}},
            {},
            "is a function: a recorded run is read again from a file; name a place",
        ),
        (
            {"reading": {"evidence": {"fetch_page": "output.pages[*"}}},
            {},
            "evidence: 'fetch_page' = 'output.pages[*': cannot be read from '[*' on; go on with",
        ),
        (
            {},
            {"RAGTRACE_READING_EVIDENCE": "web_search,fetch_page=pages"},
            "='web_search,fetch_page=pages' evidence: 'fetch_page' = 'pages': begins with none of input, output, state; ",
        ),
        ({"reading_roots": 3}, {}, "roots=3 is no list of names"),
    ],
)
def test_a_wrong_declaration_names_its_place(given: dict, env: dict, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        Settings.resolve(given, env)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
