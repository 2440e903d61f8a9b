"""One table of all settings, with their sources and rules.

Order: argument of `ragtrace.configure` > ``RAGTRACE_*`` variable > ``OTEL_*`` variable > default.
An unknown ``RAGTRACE_*`` variable is a warning with the nearest name; a wrong value is a `ConfigError`.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from ragtrace.errors import ConfigError, nearest

ContentMode = Literal["none", "full"]
AttachMode = Literal["child", "link"]
Dialect = Literal["genai", "openinference", "both"]
PromptContent = Literal["full", "reference"]
Grading = Literal["direct5", "umbrela", "umbrela_strict"]
Consensus = Literal["mean", "median"]
StoreTexts = Literal["selected", "all"]
ScorerMode = Literal["thread", "worker"]
WebhookForm = Literal["json", "slack"]

# Kept as one object: settings that hold it are those for which nobody chose metrics.
DEFAULT_METRICS: Final = (
    "faithfulness",
    "invented_specifics",
    "answer_relevancy",
    "answer_similarity",
    "no_answer",
    "citations",
    "context_sufficiency",
    "diagnosis",
)
_log = logging.getLogger("ragtrace")
_PREFIX = "RAGTRACE_"
_OTEL_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_OTEL_CONTENT_MODES = {
    "NO_CONTENT": "none",
    "SPAN_ONLY": "full",
    "EVENT_ONLY": "full",
    "SPAN_AND_EVENT": "full",
}

_PORT = {"kind": int, "low": 0, "high": 65_535, "must": "between 0 (any free port) and 65535"}


def _setting(default: Any, doc: str, *, kind: object = None, **rules: object) -> Any:
    """Declare a setting.

    Args:
        default: a tuple is a setting of several values.
        doc: for a person.
        kind: type of the value, or of each of several, where the default does not tell it; of a setting that is
            only an argument it is ``Callable``.
        rules: ``one_of``, ``above``, ``least``, or ``low`` and ``high`` bound it; ``must`` is what is said in their
            place; ``address`` and ``secret`` are shown in part or not at all.
    """
    if kind is None and (default is None or isinstance(default, tuple)):
        raise TypeError(f"a setting without its kind: {doc}")
    return field(default=default, metadata={"doc": doc, "kind": kind or type(default), **rules})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, checked. `Settings.resolve` builds one from arguments and the environment.

    Example:
        >>> Settings.resolve({"sample_rate": 0.2}, environ={}).sample_rate
        0.2
        >>> Settings.resolve({"sampel_rate": 0.2}, environ={})
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: unknown setting 'sampel_rate'; did you mean 'sample_rate'?
    """

    enabled: bool = _setting(True, "False turns capture and scoring off altogether.")
    judge: str = _setting(
        "overlap", "Who judges: overlap (offline) or openai:MODEL; several, with commas, are a panel."
    )
    first_judge: str | None = _setting(
        None,
        "Offline judge of every sampled run, while judge scores a part of them: overlap; none = judge scores all.",
        kind=str,
    )
    judge_rates: tuple[object, ...] = _setting(
        ("0.1",),
        "With first_judge, the share of runs for judge: one rate, or SCORE=RATE by first score, and none=RATE.",
        kind=object,
    )
    judge_base_url: str | None = _setting(
        None, "Base URL of an OpenAI-compatible server; redirects are not followed.", kind=str, address=True
    )
    judge_api_key: str | None = _setting(None, "Its key; default OPENAI_API_KEY.", kind=str, secret=True)
    judge_repeats: int = _setting(
        1, "How often each judge is asked, 1 to 20; 3 tell how far a 1-to-5 grade varies.", low=1, high=20
    )
    consensus: Consensus = _setting(
        "mean", "How the judges of a panel become one number: mean or median.", one_of=get_args(Consensus)
    )
    judge_timeout_s: float = _setting(45.0, "Seconds for one attempt at the judge.", above=0.0)
    judge_rpm: int = _setting(
        500, "Requests a minute at the judge's server, of all processes that share a spool; 0 = off.", least=0
    )
    judge_tpm: int = _setting(200_000, "Tokens a minute there, in the same way; 0 = off.", least=0)
    judge_calls: int = _setting(8, "Most calls of the judge under way at once.", above=0)
    budget_usd_per_day: float = _setting(10.0, "US dollars a day (UTC) for the judge; 0 = off.", least=0.0)
    budget_tokens_per_day: int = _setting(20_000_000, "Tokens a day, in the same way; 0 = off.", least=0)
    budget_share: float = _setting(
        1.0, "This process's share of budgets and rates of the judge; 1/N for N workers on N hosts.", above=0.0
    )
    price_input_usd_per_million: float | None = _setting(
        None, "Your price of a million prompt tokens; none = the list of the extra prices.", kind=float, least=0.0
    )
    price_output_usd_per_million: float | None = _setting(
        None, "And of a million tokens of replies.", kind=float, least=0.0
    )
    grade_batch: int = _setting(
        10, "Passages graded in one call; 1 where `ragtrace calibrate` says so.", low=1, high=10
    )
    grading: Grading = _setting(
        "direct5", "Scale of the judge's grades: direct5, umbrela or umbrela_strict.", one_of=get_args(Grading)
    )
    batch_metrics: bool = _setting(
        True, "False asks a judge call by call (claims, then verdicts; one context, one passage a call); dearer."
    )
    grade_cache: str = _setting(
        "memory", "Where grades are kept: memory, off, or a SQLite file, which also gathers the labels of a query."
    )
    grade_cache_bytes: int = _setting(268_435_456, "Most bytes of that file's rows.", above=65_535)
    label_freeze: int | None = _setting(
        None, "Number of the youngest label in that file that counts; none = label sets grow.", kind=int, least=0
    )
    shadow: Callable[[str, int], object] | None = _setting(
        None,
        "Retrieves deeper for some traces, off the request path: shadow(query, top_k).",
        kind=Callable,
        must="a function of query and top_k that returns passages",
    )
    shadow_rate: float = _setting(0.02, "Share of the scored traces it is called for, 0 to 1.", low=0.0, high=1.0)
    shadow_timeout_s: float = _setting(10.0, "Seconds for one call of it.", above=0.0)
    embedder: str = _setting("overlap", "Who embeds: overlap or local[:FOLDER] (offline), or openai:MODEL.")
    pairs: str | Callable[..., Any] | None = _setting(
        None,
        "Who scores (premise, hypothesis) pairs: onnx:FOLDER, or in code any function; none = nobody.",
        kind=str | Callable,
        must="onnx:FOLDER, or a function from pairs to floats",
    )
    length_debias: bool = _setting(True, "The 1-to-5 prompts say that length is no sign of quality.")
    threshold_1to5: float = _setting(3.0, "A 1-to-5 grade below it does not pass; 4 is strict.", low=1.0, high=5.0)
    hallucination_threshold: float = _setting(
        0.5, "A sentence below it counts as hallucinated, 0 to 1.", low=0.0, high=1.0
    )
    metrics: tuple[str, ...] = _setting(
        DEFAULT_METRICS,
        "Metrics to compute, by name; by default without those that the judge cannot compute.",
        kind=str,
    )
    k_values: tuple[int, ...] = _setting(
        (),
        "Cut-offs of @K metrics; empty = number of contexts delivered.",
        kind=int,
        above=0,
        must="positive whole numbers",
    )
    sample_rate: float = _setting(0.05, "Share of traces to score, 0 to 1.", low=0.0, high=1.0)
    metric_rates: tuple[object, ...] = _setting(
        (), "Rates of metrics of their own, as METRIC=RATE; they may be above sample_rate.", kind=object
    )
    sampling_rules: tuple[object, ...] = _setting(
        (),
        "Rates of some traces, the first that fits: rate=1 tag=vip, rate=0.2 workflow=support-* outcome=error.",
        kind=object,
    )
    head_probability: float = _setting(
        1.0,
        "Probability with which received traces were kept before they came; 0 = unknown, outside weighted means.",
        low=0.0,
        high=1.0,
    )
    content: ContentMode = _setting(
        "none", "none: ids, scores and counts on spans; full: texts too.", one_of=get_args(ContentMode)
    )
    prompt_content: PromptContent = _setting(
        "full",
        "content=full: prompts with their passages, or with a short reference in place of each passage.",
        one_of=get_args(PromptContent),
    )
    attach: AttachMode = _setting(
        "child", "Where scores go: child span or linked trace.", one_of=get_args(AttachMode)
    )
    dialect: Dialect = _setting("both", "Attribute dialect on spans.", one_of=get_args(Dialect))
    span_metadata: tuple[str, ...] = _setting(
        (), "Names of request metadata to put on the root span, for example tenant,plan; default none.", kind=str
    )
    max_span_bytes: int = _setting(262_144, "Byte budget of one span.", above=4_095)
    workflow: str = _setting("rag", "Name of runs that give none.")
    environment: str | None = _setting(None, "Deployment name written on every record.", kind=str)
    corpus: str | None = _setting(None, "Name of the index, where runs give none.", kind=str)
    queue_units: int = _setting(2_048, "Most units waiting to be scored.", above=0)
    queue_bytes: int = _setting(33_554_432, "Most bytes of text waiting to be scored.", above=0)
    spool: str | None = _setting(None, "File of the SQLite spool; none = units wait in memory alone.", kind=str)
    queue: str | None = _setting(
        None,
        "Address of a queue for many hosts, kafka://BROKERS/TOPIC, in the place of a spool.",
        kind=str,
        place=True,
    )
    kafka_config: str | None = _setting(
        None, "Options of librdkafka for logins and TLS: KEY=VALUE lines, or a file of them.", kind=str, secret=True
    )
    spool_bytes: int = _setting(536_870_912, "Most bytes of units in the spool.", above=0)
    store: str | None = _setting(
        None, "File of the SQLite store of scores; may be the spool's; none = no store.", kind=str
    )
    store_bytes: int = _setting(
        2_147_483_648, "Most bytes of the store's file: oldest payloads go first, then scores.", above=1_048_575
    )
    store_scores_days: float = _setting(14.0, "Days that scores stay in the store.", above=0.0)
    store_texts: StoreTexts = _setting(
        "selected",
        "Runs whose texts the store keeps, with content=full: selected (low, failed and flagged ones, and 1 % of"
        " the others) or all that are scored.",
        one_of=get_args(StoreTexts),
    )
    store_payload_hours: float = _setting(
        72.0, "Hours that texts stay in the store, those of store_texts.", above=0.0
    )
    scorer: ScorerMode = _setting(
        "thread",
        "thread: this process scores; worker: `ragtrace worker` does, over the spool.",
        one_of=get_args(ScorerMode),
    )
    concurrency: int = _setting(8, "Units scored at once.", above=0)
    window_s: float = _setting(3_600.0, "Window of the mean gauges, in seconds.", above=0.0)
    metrics_port: int | None = _setting(None, "Port of the OpenMetrics endpoint; none = no endpoint.", **_PORT)
    metrics_host: str = _setting("127.0.0.1", "Address the endpoint binds to.")
    health_port: int | None = _setting(None, "Port of /healthz and /readyz; none = no such server.", **_PORT)
    health_host: str = _setting("127.0.0.1", "Address that server binds to.")
    console: bool = _setting(False, "True prints each scored run to standard error, with its worst claim.")
    sinks: tuple[object, ...] = _setting(
        (),
        "Further sinks where scores are made, as NAME or NAME:TEXT (see ragtrace.sinks.base).",
        kind=object,
        named=True,
    )
    canary_every_s: float | None = _setting(
        None,
        "Seconds between rounds of injection canaries; 0 = off; none = 6 h, off with overlap.",
        kind=float,
        least=0.0,
    )
    canary_usd_per_day: float = _setting(0.5, "US dollars a day for canaries; 0 = off.", least=0.0)
    canary_tokens_per_day: int = _setting(500_000, "Tokens a day for canaries; 0 = off.", least=0)
    anchors_every_s: float | None = _setting(
        None,
        "Seconds between two scores of the same anchor; 0 = off; none = a day, off with overlap.",
        kind=float,
        least=0.0,
    )
    anchors_usd_per_day: float = _setting(1.0, "US dollars a day for anchors; 0 = off.", least=0.0)
    anchors_tokens_per_day: int = _setting(2_000_000, "Tokens a day for anchors; 0 = off.", least=0)
    phoenix_endpoint: str | None = _setting(
        None, "Address of an Arize Phoenix server to send scores to.", kind=str, address=True
    )
    phoenix_api_key: str | None = _setting(None, "Its key; default PHOENIX_API_KEY.", kind=str, secret=True)
    langfuse_endpoint: str | None = _setting(
        None, "Address of a Langfuse server to send scores to.", kind=str, address=True
    )
    langfuse_public_key: str | None = _setting(
        None, "Public key of its project; default LANGFUSE_PUBLIC_KEY.", kind=str, secret=True
    )
    langfuse_secret_key: str | None = _setting(
        None, "Secret key of its project; default LANGFUSE_SECRET_KEY.", kind=str, secret=True
    )
    mlflow_endpoint: str | None = _setting(
        None, "Address of an MLflow tracking server to send scores to.", kind=str, address=True
    )
    mlflow_username: str | None = _setting(None, "User there; default MLFLOW_TRACKING_USERNAME.", kind=str)
    mlflow_password: str | None = _setting(
        None, "Password of that user; default MLFLOW_TRACKING_PASSWORD.", kind=str, secret=True
    )
    mlflow_token: str | None = _setting(
        None, "Bearer token in their place; default MLFLOW_TRACKING_TOKEN.", kind=str, secret=True
    )
    webhook_url: str | None = _setting(None, "Webhook that is told of failed runs.", kind=str, secret=True)
    webhook_form: WebhookForm = _setting("json", "Its messages: json or slack.", one_of=get_args(WebhookForm))
    webhook_secret: str | None = _setting(None, "Secret that signs its messages.", kind=str, secret=True)
    webhook_trace_url: str | None = _setting(
        None, "Link to a trace in its messages, with {trace_id} and {span_id}.", kind=str
    )
    webhook_every_s: float = _setting(3_600.0, "Least seconds between two of its messages.", least=0.0)
    drift_baseline: int = _setting(
        500, "Scores the drift detectors learn their baseline from, over 24 hours or more.", above=1
    )
    drift_tolerance: float = _setting(
        0.02, "A drop that is not worth an alarm of the e-detector, in score units.", above=0.0
    )
    service_name: str | None = _setting(None, "service.name; default OTEL_SERVICE_NAME.", kind=str)
    redact: Callable[[str], str] | None = _setting(
        None, "Applied to every text before it is kept.", kind=Callable, must="a function from text to text"
    )

    @classmethod
    def resolve(cls, given: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Settings:
        """Build settings from arguments and environment; None is not given.

        Raises:
            ConfigError: an unknown name or a wrong value, in one line.
        """
        env = os.environ if environ is None else environ
        known = {item.name: item for item in fields(cls)}
        for name in given:
            if name not in known:
                raise ConfigError(f"unknown setting {name!r}{nearest(name, known)}")
        for variable, hint in unknown_variables(env).items():
            _log.warning("unknown variable %s%s", variable, hint)
        values: dict[str, Any] = {**_from_otel(env)}
        for name, item in known.items():
            text = env.get(variable := _variable(item), "")
            if text:
                values[name] = _read(variable, text, item)
            if given.get(name) is not None:
                values[name] = _taken(name, given[name], item)
        for name, value in values.items():
            _check(name, value, known[name])
        settings = cls(**values)
        _check_files(settings)
        _check_queue(settings)
        _check_texts(settings)
        return settings

    @property
    def units_at(self) -> str | None:
        """The queue that processes share: the address of `queue`, or the file of `spool`."""
        return self.queue or self.spool

    @property
    def has_default_metrics(self) -> bool:
        """Return whether nobody chose the metrics."""
        return self.metrics is DEFAULT_METRICS

    def with_changes(self, **changes: Any) -> Settings:
        """Return a copy with some settings replaced, checked."""
        known = {item.name: item for item in fields(self)}
        for name, value in changes.items():
            _check(name, value, known[name])
        return replace(self, **changes)

    def __repr__(self) -> str:
        shown = (f"{item.name}={_shown(self, item)!r}" for item in fields(self))
        return f"Settings({', '.join(shown)})"


def shown(settings: Settings) -> dict[str, object]:
    """Return every setting by name, without keys, logins and queries.

    Example:
        >>> now = shown(Settings.resolve({"judge_api_key": "sk-1", "judge_base_url": "http://ada:pw@host/v1"}, {}))
        >>> now["judge_api_key"], now["judge_base_url"], now["judge"]
        ('***', 'http://***@host/v1', 'overlap')
    """
    return {item.name: _shown(settings, item) for item in fields(settings)}


def _shown(settings: Settings, item: Field[object]) -> object:
    value = getattr(settings, item.name)
    if value and item.metadata.get("secret"):
        return "***"
    if item.metadata.get("named"):
        return tuple(one.partition(":")[0] if isinstance(one, str) else type(one).__name__ for one in value)
    is_place = item.metadata.get("address") or item.metadata.get("place")
    return shown_address(str(value)) if value and is_place else value


def shown_address(address: str) -> str:
    """Return an address without login and query.

    Example:
        >>> shown_address("http://ada:p/w@host:4318"), shown_address("localhost:4317")
        ('http://***@host:4318', 'localhost:4317')
    """
    found = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://", address)
    scheme = found[0] if found else ""
    place, *query = re.split("[?#]", address.removeprefix(scheme), maxsplit=1)
    _, login, host = place.rpartition("@")
    if "@" in "".join(query):  # a password with a ? in it: nobody can say where it ends
        return "***"
    return f"{scheme}{'***@' if login else ''}{host}{'?***' if query else ''}"


def check_address(name: str, address: str) -> None:
    """Refuse an address that takes no request, without repeating it.

    Raises:
        ConfigError: it has no scheme, host or port of the web.
    """
    for wrong in _no_address(address.strip()):
        raise ConfigError(f"{name} {wrong}")


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; blanks are none.

    Example:
        >>> names("faithfulness, mrr,")
        ('faithfulness', 'mrr')
    """
    return tuple(filter(None, map(str.strip, text.split(","))))


def variables() -> list[tuple[str, str, object, str]]:
    """Return (setting, variable, default, description) of every setting."""
    return [(item.name, _variable(item), item.default, item.metadata["doc"]) for item in fields(Settings)]


def unknown_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return variables that set nothing, each with the nearest name.

    Example:
        >>> unknown_variables({"RAGTRACE_SAMPEL_RATE": "1", "RAGTRACE_JUDGE": "overlap"})
        {'RAGTRACE_SAMPEL_RATE': "; did you mean 'RAGTRACE_SAMPLE_RATE'?"}
        >>> unknown_variables({"RAGTRACE_NOSUCH": "1"})
        {'RAGTRACE_NOSUCH': '; see `ragtrace settings`'}
    """
    valid = {variable.removeprefix(_PREFIX): variable for _, variable, _, _ in variables() if variable}
    # RAGTRACE_GOLDEN_DIR belongs to the project's own tests.
    ours = {*valid.values(), "RAGTRACE_GOLDEN_DIR"}
    found = sorted(name for name in env if name.startswith(_PREFIX) and name not in ours)
    # Compared without what all begin with: by it alone any two names would be near.
    near = {name: get_close_matches(name.removeprefix(_PREFIX), valid, n=1) for name in found}
    return {
        name: f"; did you mean {valid[close[0]]!r}?" if close else "; see `ragtrace settings`"
        for name, close in near.items()
    }


def _variable(item: Field[object]) -> str:
    """Return the variable of a setting, "" for an argument alone."""
    return "" if item.metadata["kind"] is Callable else _PREFIX + item.name.upper()


_OTHER_VARIABLES = {
    "judge_api_key": "OPENAI_API_KEY",
    "judge_base_url": "OPENAI_BASE_URL",
    "phoenix_api_key": "PHOENIX_API_KEY",
    "langfuse_public_key": "LANGFUSE_PUBLIC_KEY",
    "langfuse_secret_key": "LANGFUSE_SECRET_KEY",
    "mlflow_username": "MLFLOW_TRACKING_USERNAME",
    "mlflow_password": "MLFLOW_TRACKING_PASSWORD",
    "mlflow_token": "MLFLOW_TRACKING_TOKEN",
    "service_name": "OTEL_SERVICE_NAME",
}


def _from_otel(env: Mapping[str, str]) -> dict[str, str]:
    values = {}
    mode = env.get(_OTEL_CONTENT, "").strip().upper()
    if mode:
        if mode in _OTEL_CONTENT_MODES:
            values["content"] = _OTEL_CONTENT_MODES[mode]
        else:
            _log.warning("%s=%s is not known%s", _OTEL_CONTENT, mode, nearest(mode, _OTEL_CONTENT_MODES))
    values.update({name: env[variable] for name, variable in _OTHER_VARIABLES.items() if env.get(variable)})
    return values


_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_READERS: Mapping[object, Callable[[str], object]] = {
    bool: lambda text: _WORDS[text.lower()],
    int: int,
    float: float,
}


def _read(source: str, text: str, item: Field[object]) -> object:
    kind = item.metadata["kind"]
    read = _READERS.get(kind, str)
    try:
        return tuple(map(read, names(text))) if _is_several(item) else read(text.strip())
    except (KeyError, ValueError):
        what = "a truth value" if kind is bool else "a number"
        raise ConfigError(f"{source}={text.strip()!r} is not {what}; correct or unset it") from None


def _taken(name: str, value: object, item: Field[object]) -> object:
    kind = item.metadata["kind"]
    if not _is_several(item):
        if kind is float and type(value) is int:
            return float(value)
        return os.fspath(value) if kind is str and isinstance(value, os.PathLike) else value
    if isinstance(value, str):
        return _read(name, value, item)
    if isinstance(value, dict):
        return tuple(f"{key}={one}" for key, one in value.items())
    if not isinstance(value, Iterable):
        if item.metadata.get("named"):
            return (value,)
        raise ConfigError(f"{name}={value!r} is not a list")
    return tuple(value)


def _is_several(item: Field[object]) -> bool:
    return isinstance(item.default, tuple)


def _check(name: str, value: object, item: Field[object]) -> None:
    """Refuse a wrong value, without repeating functions and secrets."""
    rules = item.metadata
    values = value if _is_several(item) and isinstance(value, Iterable) else () if value is None else (value,)
    wrong = next((words for one in values for words in _complaints(one, rules)), None)
    if wrong is not None:
        is_named_alone = "address" in rules or "secret" in rules or rules["kind"] is Callable
        shown = name if is_named_alone else f"{name}={value!r}"
        raise ConfigError(f"{shown} must be {rules['must']}" if "must" in rules else f"{shown} {wrong}")


def _check_files(settings: Settings) -> None:
    """Refuse one file for grades and for the store or the spool."""
    others = {os.path.realpath(path) for path in (settings.store, settings.spool) if path}
    if settings.grade_cache not in {"memory", "off"} and os.path.realpath(settings.grade_cache) in others:
        raise ConfigError(f"grade_cache={settings.grade_cache!r} needs a file of its own, not store's or spool's")


def _check_queue(settings: Settings) -> None:
    """Refuse a queue that is no address, a spool that is one, and both at once."""
    if settings.queue is not None and settings.spool is not None:
        raise ConfigError("queue and spool are both set; unset one (RAGTRACE_QUEUE, RAGTRACE_SPOOL)")
    if settings.queue is not None and "://" not in settings.queue:
        raise ConfigError("queue must be an address such as kafka://HOST:9092/TOPIC; a file goes into spool")
    if settings.spool is not None and "://" in settings.spool:
        raise ConfigError("spool must be a file; set queue to this address instead")
    if settings.budget_share > 1.0:
        raise ConfigError(f"budget_share={settings.budget_share} must be above 0 and at most 1")


def _check_texts(settings: Settings) -> None:
    """Refuse to keep all texts where no text is kept."""
    if settings.store_texts == "all" and settings.content != "full":
        raise ConfigError(
            f"store_texts='all' keeps no texts with content={settings.content!r}: set content to 'full'"
            " (RAGTRACE_CONTENT=full), or store_texts to 'selected'"
        )


def _complaints(value: Any, rules: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of a value, the decisive one first."""
    kind = rules["kind"]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield f"is not of type {getattr(kind, '__name__', kind)}"
    if isinstance(value, float) and not math.isfinite(value):
        yield "is not a finite number"
    if "one_of" in rules and value not in rules["one_of"]:
        yield f"is not valid{nearest(value, rules['one_of'])}"
    if "above" in rules and not value > rules["above"]:
        yield f"must be above {rules['above']}"
    if "least" in rules and not value >= rules["least"]:
        yield f"must be at least {rules['least']}"
    if "low" in rules and not rules["low"] <= value <= rules["high"]:
        yield f"must lie between {rules['low']} and {rules['high']}"
    if "address" in rules and value:
        yield from _no_address(value.strip())


def _no_address(text: str) -> Iterator[str]:
    if not text.startswith(("http://", "https://")):
        yield "must begin with http:// or https://, for example http://127.0.0.1:8000"
    try:
        parts = urlsplit(text)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        yield "has no valid host and port"
