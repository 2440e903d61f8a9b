"""Settings: where they come from, and what a person reads when one is wrong."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from ragtrace.cli.main import main
from ragtrace.errors import ConfigError
from ragtrace.settings import Settings, names, shown, shown_address, unknown_variables, variables


def test_the_order_argument_variable_otel_default() -> None:
    env = {
        "RAGTRACE_CONTENT": "none",
        "RAGTRACE_SAMPLE_RATE": "0.5",
        "RAGTRACE_METRICS": "faithfulness, mrr",
        "RAGTRACE_K_VALUES": "3,5",
        "RAGTRACE_METRICS_PORT": "9464",
        "RAGTRACE_ENABLED": "no",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OTEL_SERVICE_NAME": "shop",
    }
    settings = Settings.resolve({"sample_rate": 1}, env)
    assert (settings.sample_rate, settings.content, settings.service_name) == (1.0, "none", "shop")
    assert (settings.metrics, settings.k_values) == (("faithfulness", "mrr"), (3, 5))
    assert (settings.metrics_port, settings.enabled) == (9464, False)
    assert (
        Settings.resolve({}, {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"}).content == "full"
    )
    assert Settings.resolve({}, {}).sample_rate == 0.05


@pytest.mark.parametrize(
    ("given", "env", "words"),
    [
        ({"sample_rat": 1.0}, {}, "did you mean 'sample_rate'?"),
        ({"content": "ful"}, {}, "did you mean 'full'?"),
        ({"sample_rate": 1.5}, {}, "between 0.0 and 1.0"),
        ({"sample_rate": float("nan")}, {}, "finite"),
        ({"concurrency": 0}, {}, "above 0"),
        ({"concurrency": "8"}, {}, "of type int"),
        ({"k_values": (0,)}, {}, "positive"),
        ({"redact": "x"}, {}, "a function"),
        ({}, {"RAGTRACE_SAMPLE_RATE": "many"}, "RAGTRACE_SAMPLE_RATE='many' is not a number"),
        ({}, {"RAGTRACE_ENABLED": "maybe"}, "not a truth value"),
        ({"metrics_port": 70_000}, {}, "65535"),
        ({"health_port": -1}, {}, "65535"),
        ({"k_values": 5}, {}, "k_values=5 is not a list"),
        ({"k_values": (True,)}, {}, "positive"),
        ({"k_values": "3,x"}, {}, "k_values='3,x' is not a number"),
        ({"metrics": (5,)}, {}, "of type str"),
        ({"metrics": (None,)}, {}, "of type str"),
        ({"spool": 7}, {}, "of type str"),
        ({"sample_rate": True}, {}, "of type float"),
        ({"canary_every_s": "often"}, {}, "of type float"),
        ({"pairs": 7}, {}, "onnx:FOLDER, or a function"),
        ({"shadow": 7}, {}, "a function of query and top_k"),
        ({}, {"RAGTRACE_K_VALUES": "3,x"}, "not a number"),
        ({"store_texts": "al"}, {}, "store_texts='al' is not valid; did you mean 'all'?"),
        ({}, {"RAGTRACE_STORE_TEXTS": "al"}, "store_texts='al' is not valid; did you mean 'all'?"),
        ({"store_texts": True, "content": "full"}, {}, "store_texts=True is not of type str"),
        ({"store_texts": "all"}, {}, "store_texts='all' keeps no texts with content='none': set content to 'full'"),
        ({}, {"RAGTRACE_STORE_TEXTS": "all"}, "set content to 'full' (RAGTRACE_CONTENT=full), or store_texts to"),
        (
            {"store_texts": "all", "content": "none"},
            {"RAGTRACE_CONTENT": "full"},
            "keeps no texts with content='none'",
        ),
    ],
)
def test_a_wrong_setting_is_one_clear_line(given: dict, env: dict, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.resolve(given, env)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_texts_are_kept_where_content_is_full_whoever_says_so() -> None:
    assert Settings.resolve({}, {}).store_texts == "selected"
    assert Settings.resolve({"store_texts": "all", "content": "full"}, {}).store_texts == "all"
    env = {"RAGTRACE_STORE_TEXTS": "all", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only"}
    assert Settings.resolve({}, env).store_texts == "all"
    assert Settings.resolve({"store_texts": "selected"}, env).store_texts == "selected"


def test_an_unknown_variable_is_a_warning_with_the_nearest_name(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "ragtrace"):
        Settings.resolve({}, {"RAGTRACE_SAMPEL_RATE": "1"})
    assert "did you mean 'RAGTRACE_SAMPLE_RATE'?" in caplog.text


@pytest.mark.parametrize("variable", ["RAGTRACE_REDACT", "RAGTRACE_NO_SUCH_THING"])
def test_a_variable_that_sets_nothing_is_unknown(variable: str) -> None:
    ours = "RAGTRACE_GOLDEN_DIR"  # of the project's own tests
    assert list(unknown_variables({variable: "x", ours: "x", "RAGTRACE_JUDGE": "overlap", "PATH": ""})) == [
        variable
    ]


def test_names_are_separated_by_commas_wherever_they_come_from() -> None:
    assert names(" faithfulness, mrr,, ") == ("faithfulness", "mrr")
    for text, wanted in (("faithfulness", ("faithfulness",)), ("faithfulness, mrr,", ("faithfulness", "mrr"))):
        assert Settings.resolve({"metrics": text}, {}).metrics == wanted
        assert Settings.resolve({}, {"RAGTRACE_METRICS": text}).metrics == wanted
    assert Settings.resolve({"k_values": "3, 5,"}, {}).k_values == (3, 5)
    assert Settings.resolve({"metric_rates": {"mrr": 0.5}}, {}).metric_rates == ("mrr=0.5",)


def test_a_variable_is_read_as_what_the_annotation_says() -> None:
    hints = get_type_hints(Settings)
    for name, variable, default, _ in variables():
        (kind, *_) = {bool, int, float} & {hints[name], *get_args(hints[name])} or {str}
        if variable and kind is not str:
            found = Settings.resolve({}, {variable: str(default or 1)})
            value = getattr(found, name)
            assert type(value[0] if isinstance(value, tuple) else value) is kind, name


def test_a_path_is_as_good_as_its_text() -> None:
    assert Settings.resolve({"spool": Path("a") / "b", "grade_cache": Path("c")}, {}).spool == str(Path("a") / "b")


@pytest.mark.parametrize("name", ["judge_api_key", "phoenix_api_key", "judge_base_url", "phoenix_endpoint"])
def test_what_may_be_a_secret_is_not_repeated(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.resolve({name: b"http://ada:s3cret@host"}, {})
    assert str(caught.value).startswith(name)
    assert "s3cret" not in str(caught.value)


def test_the_key_is_never_shown() -> None:
    settings = Settings.resolve({"judge_api_key": "sk-very-secret"}, {})
    assert "sk-very-secret" not in repr(settings)
    assert "sk-very-secret" not in str(settings)


def test_every_setting_is_documented() -> None:
    assert all(doc and name for name, _, _, doc in variables())


@pytest.mark.parametrize("name", ["judge_base_url", "phoenix_endpoint"])
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
def test_of_an_address_neither_login_nor_query_is_shown(name: str, address: str, seen: str) -> None:
    settings = replace(Settings.resolve({}, {}), **{name: address})
    assert shown(settings)[name] == seen
    assert f"{name}={seen!r}" in repr(settings)
    assert "s3cr" not in repr(settings)


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("http://ada:p/s3cret@host:4318", "http://***@host:4318"),
        ("http://ada:p/s3cret@host:4318/v1/traces", "http://***@host:4318/v1/traces"),
        ("http://ada:p?s3cret@host:4318", "***"),
        ("http://ada:p#s3cret@host:4318", "***"),
        ("http://ada:p@s3cret@host/x?key=s3cret", "http://***@host/x?***"),
        ("ada:s3cret@host:4317", "***@host:4317"),
        ("ada:s3cret://s3cret@host:4317", "***@host:4317"),
        ("localhost:4317", "localhost:4317"),
        ("http://[s3cret@host", "http://***@host"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_its_login_however_it_is_written(address: str, seen: str) -> None:
    assert shown_address(address) == seen


@pytest.mark.parametrize(
    "wrong", ["http://[bad/s3cret", "ada:s3cret@host", "http://host:s3cret/v1", "s3cret", "http://"]
)
@pytest.mark.parametrize("name", ["judge_base_url", "phoenix_endpoint"])
def test_what_is_no_address_is_refused_and_not_repeated(name: str, wrong: str) -> None:
    for given, env in (({name: wrong}, {}), ({}, {f"RAGTRACE_{name.upper()}": wrong})):
        with pytest.raises(ConfigError) as caught:
            Settings.resolve(given, env)
        assert str(caught.value).startswith((f"{name} must begin with http", f"{name} has no valid host and port"))
        assert "s3cret" not in str(caught.value)


def test_the_command_shows_no_secret(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTRACE_JUDGE_BASE_URL", "http://ada:s3cret@host/v1?api-key=s3cret")
    monkeypatch.setenv("RAGTRACE_PHOENIX_ENDPOINT", "http://ada:s3cret@host:6006")
    monkeypatch.setenv("RAGTRACE_PHOENIX_API_KEY", "s3cret")
    assert main(["settings"]) == 0
    said = capsys.readouterr().out
    assert "s3cret" not in said
    assert "***" in said
