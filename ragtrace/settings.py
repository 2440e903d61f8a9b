"""All settings: one nested model, of which arguments, variables, listings, options and pages are made.

Order: argument of `ragtrace.configure` > ``RAGTRACE_*`` variable > ``OPENAI_*`` or ``OTEL_*`` variable > default.
An unknown ``RAGTRACE_*`` variable is a warning with the nearest name; a wrong value, and an argument or a variable
that is gone, is a `ConfigError`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypedDict, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from ragtrace.address import address_fault, shown_address
from ragtrace.capture.declared import Declared, Evidence, Place, evidence_items, evidence_of
from ragtrace.errors import ConfigError, nearest
from ragtrace.modes import AttachMode, Consensus, ContentMode, Dialect, Grading, ScorerMode, StoreTexts

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from ragtrace.sinks.base import Sink

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


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; blanks are none.

    Example:
        >>> names("faithfulness, mrr,")
        ('faithfulness', 'mrr')
    """
    return tuple(filter(None, map(str.strip, text.split(","))))


def _several(value: object) -> object:
    if isinstance(value, str):
        return names(value)
    if isinstance(value, Mapping):
        return tuple(f"{key}={one}" for key, one in value.items())
    if isinstance(value, Iterable):
        return tuple(value)
    raise ValueError("is not a list")


def _whole_numbers(value: object) -> object:
    try:
        return tuple(map(int, names(value))) if isinstance(value, str) else _several(value)
    except ValueError as error:
        raise ValueError("is not a whole number" if isinstance(value, str) else str(error)) from None


def _sinks(value: object) -> object:
    return _several(value) if isinstance(value, str | Iterable) else (value,)


def _web_address(value: str | None) -> str | None:
    if value and (fault := address_fault(value.strip())):
        raise ValueError(fault)
    return value


def _queue_address(value: str | None) -> str | None:
    if value is not None and "://" not in value:
        raise ValueError("must be an address such as kafka://HOST:9092/TOPIC; a file goes into spool")
    return value


def _spool_file(value: str | None) -> str | None:
    if value is not None and "://" in value:
        raise ValueError("must be a file; set queue to this address instead")
    return value


def _store_file(value: str | None) -> str | None:
    if value is not None and "://" in value:
        raise ValueError("must be a file, not an address: the store is SQLite's")
    return value


def _place(value: object) -> object:
    return None if value is None else str(Place.of(value))


def _root_names(value: object) -> object:
    return tuple(sorted(Declared.of(roots=names(value) if isinstance(value, str) else value).roots or ()))


_WEB_ADDRESS, _QUEUE_ADDRESS = AfterValidator(_web_address), AfterValidator(_queue_address)
Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
Items = Annotated[tuple[object, ...], BeforeValidator(_several)]
PlaceText = Annotated[str | None, BeforeValidator(_place)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Seconds = Annotated[float, Field(gt=0.0)]
Positive = Annotated[int, Field(gt=0)]
WholeNumbers = Annotated[tuple[Positive, ...], BeforeValidator(_whole_numbers)]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0.0)]
Port = Annotated[int | None, Field(ge=0, le=65_535)]


class Options(BaseModel):
    """A group of settings: in `ragtrace.configure` a dict, or each by its flat name, as ``budget_usd_per_day``."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        for name, field in type(self).model_fields.items():
            yield name, _shown(getattr(self, name), field)


class Named(Options):
    """A group whose first setting has the group's own name, as ``judge="openai:m"`` and ``RAGTRACE_JUDGE``."""


class Judge(Named):
    """The judge and its server."""

    name: str = "overlap"
    """Who judges: overlap (offline) or openai:MODEL; several, with commas, are a panel."""
    rates: Items = ("0.1",)
    """With first_judge, the share of runs for judge: one rate, or SCORE=RATE by first score, and none=RATE."""
    base_url: Annotated[str | None, _WEB_ADDRESS] = None
    """Base URL of an OpenAI-compatible server; redirects are not followed; else OPENAI_BASE_URL."""
    api_key: SecretStr | None = None
    """Its key; else OPENAI_API_KEY."""
    repeats: Annotated[int, Field(ge=1, le=20)] = 1
    """How often each judge is asked, 1 to 20, with other seeds; 3 tell how far a 1-to-5 grade varies."""
    timeout_s: Seconds = 45.0
    """Seconds for one attempt at the judge."""
    rpm: Count = 500
    """Requests a minute at the judge's server, of all processes that share a spool; 0 = off."""
    tpm: Count = 200_000
    """Tokens a minute there, in the same way; 0 = off."""


class Budget(Options):
    """Limits of the judge's cost."""

    usd_per_day: Amount = 10.0
    """US dollars a day (UTC) for the judge; 0 = off."""
    tokens_per_day: Count = 20_000_000
    """Tokens a day, in the same way; 0 = off."""


class Price(Options):
    """Your prices of the judge's tokens."""

    input_usd_per_million: Annotated[float | None, Field(ge=0.0)] = None
    """Your price of a million prompt tokens; none = the list of the extra prices."""
    output_usd_per_million: Annotated[float | None, Field(ge=0.0)] = None
    """And of a million tokens of replies."""


class MetricOptions(Options):
    """How metrics are computed."""

    k_values: WholeNumbers = ()
    """Cut-offs of @K metrics, the first is the main one; empty = number of contexts delivered."""
    grading: Grading = "direct5"
    """Scale of the judge's grades: direct5, umbrela or umbrela_strict."""
    grade_batch: Annotated[int, Field(ge=1, le=10)] = 10
    """Passages graded in one call; 1 costs more; no passage then sways another."""
    length_debias: bool = True
    """The 1-to-5 prompts say that length is no sign of quality."""
    threshold_1to5: Annotated[float, Field(ge=1.0, le=5.0)] = 3.0
    """A 1-to-5 grade below it does not pass; 4 is strict."""
    hallucination_threshold: Share = 0.5
    """A sentence below it counts as hallucinated, 0 to 1."""


class Shadow(Named):
    """A second, deeper retrieval of some traces."""

    retrieve: Annotated[
        Callable[[str, int], object] | None, Field(title="a function of query and top_k that returns passages")
    ] = None
    """Retrieves deeper for some traces, off the request path: shadow(query, top_k)."""
    rate: Share = 0.02
    """Share of the scored traces it is called for, 0 to 1."""
    timeout_s: Seconds = 10.0
    """Seconds for one call of it."""


class Queue(Named):
    """Units that wait to be scored, in memory or on a network."""

    address: Annotated[str | None, _QUEUE_ADDRESS] = None
    """Address of a queue for many hosts, kafka://BROKERS/TOPIC, in the place of a spool."""
    units: Positive = 2_048
    """Most units waiting to be scored."""
    bytes: Positive = 33_554_432
    """Most bytes of text waiting to be scored."""


class Spool(Named):
    """Units that wait to be scored, in a file."""

    path: Annotated[str | None, AfterValidator(_spool_file)] = None
    """File of the SQLite spool; none = units wait in memory only."""
    bytes: Positive = 536_870_912
    """Most bytes of units in the spool."""


class Store(Named):
    """Scores and texts that are kept, in a file."""

    path: Annotated[str | None, AfterValidator(_store_file)] = None
    """File of the SQLite store of scores; may be the spool's; none = no store."""
    bytes: Annotated[int, Field(gt=1_048_575)] = 2_147_483_648
    """Most bytes of the store's file: oldest payloads go first, then scores."""
    scores_days: Seconds = 14.0
    """Days that scores stay in the store."""
    texts: StoreTexts = "selected"
    """Runs whose texts the store keeps, with content=full: selected (low, failed and flagged ones, and 1 % of the
    others) or all that are scored."""
    payload_hours: Seconds = 72.0
    """Hours that texts stay in the store, those of store_texts."""


class Health(Options):
    """The server of health checks."""

    port: Port = None
    """Port of /healthz and /readyz; none = no such server."""
    host: str = "127.0.0.1"
    """Address that server binds to."""


class RecordEvents(Named):
    """Events of each run, in a file for a bug report."""

    path: str | None = None
    """File of JSON lines to which what happened in each run is written, for a bug report; none = no file."""
    masked: bool = True
    """Words in that file are masked; false writes every text as it is."""


class Reading(Options):
    """Declarations: where things stand in what an application hands on, and what counts as evidence."""

    question: PlaceText = None
    """Where the question stands: input.ticket.body, state.messages[-1]; none = capture looks for it."""
    answer: PlaceText = None
    """Where the answer stands: output.report."""
    selected: PlaceText = None
    """Where the chosen passages stand: state.relevant_docs."""
    evidence: Annotated[tuple[str, ...], BeforeValidator(evidence_items)] = ()
    """Tools, retrievers, functions and places that are evidence: web_search,state.rows; with - those that are not:
    -think_tool; with = where in its output it stands: fetch_page=output.pages[*].text. In code a dict as well."""
    roots: Annotated[tuple[str, ...], BeforeValidator(_root_names)] = ()
    """Names of the calls that are runs; others are none; empty = capture decides."""
    follows: bool | None = None
    """False: no run repeats the answer of the one before it; none = capture decides."""

    @property
    def declared(self) -> Declared:
        """Declarations in this group, as capture takes them."""
        return Declared.of(
            question=self.question,
            answer=self.answer,
            selected=self.selected,
            evidence=dict(evidence_of(self.evidence)) or None,
            roots=self.roots or None,
            follows=self.follows,
        )


class Canary(Options):
    """Injection canaries."""

    every_s: Annotated[float | None, Field(ge=0.0)] = None
    """Seconds between rounds of injection canaries; 0 = off; none = 6 h, off with overlap."""
    usd_per_day: Amount = 0.5
    """US dollars a day for canaries; 0 = off."""
    tokens_per_day: Count = 500_000
    """Tokens a day for canaries; 0 = off."""


class Anchors(Options):
    """Runs that are scored again."""

    every_s: Annotated[float | None, Field(ge=0.0)] = None
    """Seconds between two scores of the same anchor; 0 = off; none = a day, off with overlap."""
    usd_per_day: Amount = 1.0
    """US dollars a day for anchors; 0 = off."""
    tokens_per_day: Count = 2_000_000
    """Tokens a day for anchors; 0 = off."""


class Settings(Options):
    """All settings, checked. `Settings.resolve` builds one from arguments and the environment.

    Example:
        >>> Settings.resolve({"judge": {"rpm": 60}, "sample_rate": 0.2}, environ={}).judge.rpm
        60
        >>> Settings.resolve({"sampel_rate": 0.2}, environ={})
        Traceback (most recent call last):
        ...
        ragtrace.errors.ConfigError: unknown setting 'sampel_rate'; did you mean 'sample_rate'?
    """

    enabled: bool = True
    """False turns capture and scoring off altogether."""
    judge: Judge = Judge()
    first_judge: str | None = None
    """Offline judge of every sampled run, while judge scores a part of them: overlap; none = judge scores all."""
    consensus: Consensus = "mean"
    """How several judges or repeats become one number: mean or median."""
    budget: Budget = Budget()
    price: Price = Price()
    metrics: Names = DEFAULT_METRICS
    """Metrics to compute, by name, or all; `ragtrace metrics` lists them. By default without those that the judge
    cannot compute."""
    metric_options: MetricOptions = MetricOptions()
    grade_cache: str = "memory"
    """Where grades are kept: memory, off, or a SQLite file, which also gathers the labels of a query."""
    label_freeze: Annotated[int | None, Field(ge=0)] = None
    """Number of the youngest label in that file that counts; none = label sets grow."""
    embedder: str = "overlap"
    """Who embeds: overlap or local[:FOLDER] (offline), or openai:MODEL."""
    pairs: Annotated[
        str | Callable[..., Any] | None, Field(title="onnx:FOLDER, or a function from pairs to floats")
    ] = None
    """Who scores (premise, hypothesis) pairs: onnx:FOLDER, or in code any function; none = nobody."""
    shadow: Shadow = Shadow()
    sample_rate: Share = 0.05
    """Share of traces to score, 0 to 1."""
    metric_rates: Items = ()
    """Rates of metrics of their own, as METRIC=RATE; they may be above sample_rate."""
    sampling_rules: Items = ()
    """Rates of some traces, the first that fits: rate=1 tag=vip, rate=0.2 workflow=support-* outcome=error."""
    head_probability: Share = 1.0
    """Probability with which received traces were kept before they came; 0 = unknown, outside weighted means."""
    content: ContentMode = "none"
    """none: ids, scores and counts on spans; full: texts too."""
    redact: Annotated[Callable[[str], str] | None, Field(title="a function from text to text")] = None
    """Applied to every text before it is kept; if it raises, the text is dropped and counted."""
    id_key: SecretStr | None = None
    """Secret of the ids of passages without one, where their texts do not leave or are redacted; the same in all
    processes. None: a key in the store's file, or one of the process."""
    attach: AttachMode = "child"
    """Where scores go: child span or linked trace."""
    dialect: Dialect = "both"
    """Attribute dialect on spans: genai, openinference or both."""
    span_metadata: Names = ()
    """Names of request metadata to put on the root span, for example tenant,plan; default none."""
    workflow: str = "rag"
    """Name of runs that give none."""
    environment: str | None = None
    """Deployment name written on every record."""
    corpus: str | None = None
    """Name of the index, where runs give none."""
    reading: Reading = Reading()
    record_events: RecordEvents = RecordEvents()
    store: Store = Store()
    spool: Spool = Spool()
    queue: Queue = Queue()
    kafka_config: SecretStr | None = None
    """Options of librdkafka for logins and TLS: KEY=VALUE lines, or a file of them."""
    scorer: ScorerMode = "thread"
    """thread: this process scores; worker: `ragtrace worker` does, over the spool."""
    concurrency: Positive = 8
    """Units scored at once, and most calls of the judge under way at once."""
    window_s: Seconds = 3_600.0
    """Window of the mean gauges, in seconds."""
    metrics_port: Port = None
    """Port of the OpenMetrics endpoint; none = no endpoint; 0 = any free port."""
    metrics_host: str = "127.0.0.1"
    """Address the endpoint binds to."""
    health: Health = Health()
    console: bool = False
    """True prints each scored run and its worst claim to standard error, and what was read of a first run."""
    sinks: Annotated[tuple[object, ...], BeforeValidator(_sinks)] = ()
    """Further sinks where scores are made: objects, or NAME or NAME:TEXT (see ragtrace.sinks.base)."""
    canary: Canary = Canary()
    anchors: Anchors = Anchors()

    @classmethod
    def resolve(cls, given: Mapping[str, object], environ: Mapping[str, str] | None = None) -> Settings:
        """Build settings from arguments and environment; None is not given.

        Raises:
            ConfigError: an unknown name, one that is gone, or a wrong value, in one line.
        """
        env = os.environ if environ is None else environ
        for name in sorted(GONE_VARIABLES.keys() & env.keys()):
            if env[name]:
                raise ConfigError(f"{name} {GONE_VARIABLES[name]}")
        arguments = _flat(given)
        for variable, hint in unknown_variables(env, arguments.get("sinks")).items():
            _log.warning("unknown variable %s%s", variable, hint)
        written = _in_environment(env) | {name: (name, value) for name, value in arguments.items()}
        settings = _checked(
            {name: value for name, (_, value) in written.items()},
            {name: source for name, (source, _) in written.items()},
        )
        _check_together(settings)
        return settings

    @property
    def units_at(self) -> str | None:
        """The queue that processes share: the address of `queue`, or the file of `spool`."""
        return self.queue.address or self.spool.path

    @property
    def has_default_metrics(self) -> bool:
        """Return whether nobody chose the metrics."""
        return "metrics" not in self.model_fields_set

    def with_changes(self, **changes: object) -> Settings:
        """Return a copy with some settings replaced, by their flat names, checked."""
        chosen = {name: one.of(self) for name, one in TABLE.items() if one.is_chosen_in(self)}
        return _checked(chosen | changes)


class Setting(NamedTuple):
    """One setting of the model: its flat name, its place in the model, and its field there."""

    name: str
    path: tuple[str, ...]
    field: FieldInfo

    @property
    def variable(self) -> str:
        """Its variable, "" for an argument only."""
        return _PREFIX + self.name.upper() if _kinds(self.field) != {Callable} else ""

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return SecretStr in _kinds(self.field)

    @property
    def doc(self) -> str:
        """Its meaning, for a person."""
        return " ".join((self.field.description or "").split())

    def of(self, settings: Settings) -> Any:
        """Return its value."""
        value: Any = settings
        for name in self.path:
            value = getattr(value, name)
        return value

    def is_chosen_in(self, settings: Settings) -> bool:
        """Return whether somebody gave it a value."""
        model: Any = settings
        for name in self.path:
            if name not in model.model_fields_set:
                return False
            model = getattr(model, name)
        return True


def table(model: type[BaseModel]) -> dict[str, Setting]:
    """Return every setting of a model by its flat name.

    Raises:
        TypeError: two settings have one name.
    """
    found: dict[str, Setting] = {}
    for name, field in model.model_fields.items():
        group = field.annotation
        if isinstance(group, type) and issubclass(group, Options):
            own = next(iter(group.model_fields)) if issubclass(group, Named) else ""
            settings = [
                Setting(name if inner == own else f"{name}_{inner}", (name, inner), one)
                for inner, one in group.model_fields.items()
            ]
        else:
            settings = [Setting(name, (name,), field)]
        for setting in settings:
            if setting.name in found:
                raise TypeError(f"two settings are called {setting.name}")
            found[setting.name] = setting
    return found


TABLE: Final = table(Settings)
# By the whole path too, as somebody may write judge_name for judge.
_BY_PATH = TABLE | {"_".join(one.path): one for one in TABLE.values()}
GROUPS: Final = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Options)
}
# What became of a name that is gone, behind that name: as an argument, and as a variable.
_MOVED = {name: f"metric_options_{name}" for name in MetricOptions.model_fields} | {"judge_calls": "concurrency"}
GONE_ARGUMENTS: Final = {name: f"is called {new} now" for name, new in _MOVED.items()} | {
    "batch_metrics": "is gone: metric_options_grade_batch=1 grades one passage a call",
    "prompt_content": "is gone: with content='full' prompts are written whole",
    "max_span_bytes": "is gone: a span holds 262,144 bytes",
    "budget_share": "is gone: write the part of budget_usd_per_day, budget_tokens_per_day, judge_rpm and judge_tpm",
    "service_name": "is gone: set the variable OTEL_SERVICE_NAME",
    "grade_cache_bytes": "is gone: the file of grades holds 268,435,456 bytes",
    "server": "is gone: write metrics_port, metrics_host, health_port and health_host",
    **dict.fromkeys(
        ("phoenix_endpoint", "phoenix_api_key"), "is gone: write sinks=PhoenixSink(endpoint, api_key=...)"
    ),
    **dict.fromkeys(
        ("langfuse_endpoint", "langfuse_public_key", "langfuse_secret_key"),
        "is gone: write sinks=LangfuseSink(endpoint, public_key=..., secret_key=...)",
    ),
    **dict.fromkeys(
        ("mlflow_endpoint", "mlflow_username", "mlflow_password"),
        "is gone: write sinks=MlflowSink(endpoint, username=..., password=...)",
    ),
    "mlflow_token": "is gone: write sinks=MlflowSink(endpoint, token=...)",
    "webhook_url": "is gone: write sinks=WebhookSink(url)",
    **{
        f"webhook_{name}": f"is gone: write sinks=WebhookSink(url, {name}=...)"
        for name in ("secret", "form", "trace_url", "every_s")
    },
}
GONE_VARIABLES: Final = {
    f"{_PREFIX}{name.upper()}": f"is called {_PREFIX}{new.upper()} now" for name, new in _MOVED.items()
} | {
    "RAGTRACE_BATCH_METRICS": "is gone: RAGTRACE_METRIC_OPTIONS_GRADE_BATCH=1 grades one passage a call",
    "RAGTRACE_PROMPT_CONTENT": "is gone: with RAGTRACE_CONTENT=full prompts are written whole; unset it",
    "RAGTRACE_MAX_SPAN_BYTES": "is gone: a span holds 262,144 bytes; unset it",
    "RAGTRACE_BUDGET_SHARE": "is gone: set RAGTRACE_BUDGET_USD_PER_DAY, RAGTRACE_BUDGET_TOKENS_PER_DAY,"
    " RAGTRACE_JUDGE_RPM and RAGTRACE_JUDGE_TPM to the part of this process",
    "RAGTRACE_SERVICE_NAME": "is gone: set OTEL_SERVICE_NAME",
    "RAGTRACE_GRADE_CACHE_BYTES": "is gone: the file of grades holds 268,435,456 bytes; unset it",
    "RAGTRACE_PHOENIX_ENDPOINT": "is gone: set PHOENIX_COLLECTOR_ENDPOINT and RAGTRACE_SINKS=phoenix",
    "RAGTRACE_PHOENIX_API_KEY": "is gone: set PHOENIX_API_KEY",
    "RAGTRACE_LANGFUSE_ENDPOINT": "is gone: set LANGFUSE_BASE_URL and RAGTRACE_SINKS=langfuse",
    "RAGTRACE_LANGFUSE_PUBLIC_KEY": "is gone: set LANGFUSE_PUBLIC_KEY",
    "RAGTRACE_LANGFUSE_SECRET_KEY": "is gone: set LANGFUSE_SECRET_KEY",
    "RAGTRACE_MLFLOW_ENDPOINT": "is gone: set MLFLOW_TRACKING_URI and RAGTRACE_SINKS=mlflow",
    "RAGTRACE_MLFLOW_USERNAME": "is gone: set MLFLOW_TRACKING_USERNAME",
    "RAGTRACE_MLFLOW_PASSWORD": "is gone: set MLFLOW_TRACKING_PASSWORD",
    "RAGTRACE_MLFLOW_TOKEN": "is gone: set MLFLOW_TRACKING_TOKEN",
    "RAGTRACE_WEBHOOK_FORM": "is gone: a webhook at hooks.slack.com gets Slack's form; unset it",
    **{
        f"RAGTRACE_WEBHOOK_{name.upper()}": f"is gone: in code write sinks=WebhookSink(url, {name}=...); unset it"
        for name in ("trace_url", "every_s")
    },
}


def shown(settings: Settings) -> dict[str, object]:
    """Return every setting by name, without keys, logins and queries.

    Example:
        >>> now = shown(Settings.resolve({"judge_api_key": "sk-1", "judge_base_url": "http://ada:pw@host/v1"}, {}))
        >>> now["judge_api_key"], now["judge_base_url"], now["judge"]
        ('***', 'http://***@host/v1', 'overlap')
    """
    return {name: _shown(one.of(settings), one.field) for name, one in TABLE.items()}


def _shown(value: object, field: FieldInfo) -> object:
    if value and SecretStr in _kinds(field):
        return "***"
    if isinstance(value, tuple) and field is Settings.model_fields["sinks"]:
        return tuple(one.partition(":")[0] if isinstance(one, str) else type(one).__name__ for one in value)
    return shown_address(value) if isinstance(value, str) and "://" in value else value


def unknown_variables(env: Mapping[str, str], sinks: object = None) -> dict[str, str]:
    """Return variables that set nothing, each with the nearest name; those that are gone are not among them.

    Args:
        env: variables.
        sinks: those that code gives; a webhook may be among them.

    Example:
        >>> unknown_variables({"RAGTRACE_SAMPEL_RATE": "1", "RAGTRACE_JUDGE": "overlap"})
        {'RAGTRACE_SAMPEL_RATE': "; did you mean 'RAGTRACE_SAMPLE_RATE'?"}
        >>> unknown_variables({"RAGTRACE_NOSUCH": "1"})
        {'RAGTRACE_NOSUCH': '; see `ragtrace settings`'}
    """
    # RAGTRACE_GOLDEN_DIR belongs to the project's own tests.
    ours = {one.variable for one in TABLE.values()} | {"RAGTRACE_WEBHOOK_SECRET", "RAGTRACE_GOLDEN_DIR"}
    valid = {_PREFIX + name.upper(): one.variable for name, one in _BY_PATH.items() if one.variable}
    hints = {}
    for variable in sorted(name for name in env if name.startswith(_PREFIX)):
        if variable == "RAGTRACE_WEBHOOK_URL":
            if not sinks and "webhook" not in names(env.get("RAGTRACE_SINKS", "")):
                hints[variable] = "; it is read with RAGTRACE_SINKS=webhook only"
        elif variable not in ours and variable not in GONE_VARIABLES:
            hints[variable] = _near(variable, valid)
    return hints


def _near(name: str, valid: Mapping[str, str]) -> str:
    """Return a hint with what is to be written for the nearest of the valid names."""
    # Compared without what all begin with: by it alone any two names would be near.
    bare = {one.removeprefix(_PREFIX): new for one, new in valid.items()}
    close = get_close_matches(name.removeprefix(_PREFIX), bare, n=1)
    return f"; did you mean {bare[close[0]]!r}?" if close else "; see `ragtrace settings`"


_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT_MODES = {"NO_CONTENT": "none", "SPAN_ONLY": "full", "EVENT_ONLY": "full", "SPAN_AND_EVENT": "full"}
_OTHER_VARIABLES = {"judge_api_key": "OPENAI_API_KEY", "judge_base_url": "OPENAI_BASE_URL"}


def _in_environment(env: Mapping[str, str]) -> dict[str, tuple[str, object]]:
    """Return variable and value of each setting that the environment has."""
    found: dict[str, tuple[str, object]] = {}
    if mode := env.get(_CONTENT_VARIABLE, "").strip().upper():
        if mode in _CONTENT_MODES:
            found["content"] = (_CONTENT_VARIABLE, _CONTENT_MODES[mode])
        else:
            _log.warning("%s=%s is not known%s", _CONTENT_VARIABLE, mode, nearest(mode, _CONTENT_MODES))
    for name, one in TABLE.items():
        for variable in (one.variable, _OTHER_VARIABLES.get(name, "")):
            if text := env.get(variable, "") if variable else "":
                found[name] = (variable, _read(variable, text, one.field))
                break
    return found


def _read(variable: str, text: str, field: FieldInfo) -> object:
    kinds, text = _kinds(field), text.strip()
    try:
        if bool in kinds:
            return _WORDS[text.lower()]
        return int(text) if int in kinds else float(text) if float in kinds else text
    except (KeyError, ValueError):
        what = "a truth value" if bool in kinds else "a whole number" if int in kinds else "a number"
        raise ConfigError(f"{variable}={text!r} is not {what}; correct or unset it") from None


def _flat(given: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that are given by their flat names, those of groups too.

    Raises:
        ConfigError: an unknown name, or a setting that is given twice.
    """
    found: dict[str, object] = {}
    for name, value in given.items():
        group = GROUPS.get(name)
        if group is not None and isinstance(value, Mapping):
            inside = {one.path[1]: one.name for one in TABLE.values() if one.path[0] == name}
            for inner in value:
                if inner not in inside:
                    raise ConfigError(_stranger(name, str(inner), inside))
            items = {inside[inner]: one for inner, one in value.items()}
        elif group is not None and not issubclass(group, Named):
            if value is not None:
                raise ConfigError(f"{name} takes a dict with {', '.join(group.model_fields)}")
            continue
        elif name not in TABLE:
            if name in GONE_ARGUMENTS:
                raise ConfigError(f"{name} {GONE_ARGUMENTS[name]}")
            valid = {path: one.name for path, one in _BY_PATH.items()} | {group: group for group in GROUPS}
            raise ConfigError(f"unknown setting {name!r}{_near(name, valid)}")
        else:
            items = {name: value}
        for flat, one in items.items():
            if one is None:
                continue
            if flat in found:
                raise ConfigError(f"{flat} is given twice: by itself and in {TABLE[flat].path[0]}")
            found[flat] = os.fspath(one) if isinstance(one, os.PathLike) else one
    return found


def _stranger(group: str, inner: str, inside: Mapping[str, str]) -> str:
    """Return what is wrong with a name that a group does not have."""
    for flat in (f"{group}_{inner}", inner):
        if flat in GONE_ARGUMENTS:
            return f"{flat} {GONE_ARGUMENTS[flat]}"
    found = _BY_PATH.get(inner)
    if found is not None and found.path[0] == group:
        hint = f"; did you mean {found.path[1]!r}?"
    elif found is not None or inner in GROUPS:
        hint = f"; it is a setting of its own: {inner}=..."
    else:
        hint = nearest(inner, inside)
    return f"{group} has no setting {inner!r}{hint}"


def _checked(values: Mapping[str, object], written: Mapping[str, str] | None = None) -> Settings:
    """Build settings from flat names.

    Args:
        values: of settings.
        written: how a person wrote their names.

    Raises:
        ConfigError: a value is wrong; secrets, addresses and functions are not repeated.
    """
    nested: dict[str, Any] = {}
    for name, value in values.items():
        *groups, last = TABLE[name].path
        place = nested
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        first: Mapping[str, Any] = error.errors(include_url=False, include_input=False)[0]
        one = next(one for one in TABLE.values() if first["loc"][: len(one.path)] == one.path)
        name = (written or {}).get(one.name, one.name)
        value = values[one.name]
        is_quiet = one.is_secret or not one.variable or _is_address(one.field) or "://" in str(value)
        shown = name if is_quiet else f"{name}={value!r}"
        raise ConfigError(f"{shown} {_fault(first, one.field, value)}") from None


def _fault(error: Mapping[str, Any], field: FieldInfo, value: object) -> str:
    """Return what is wrong with a value, in our words."""
    if field.title:  # what a function or a pair scorer is
        return f"must be {field.title}"
    facts = error.get("ctx", {})
    match error["type"]:
        case "value_error":
            return str(facts["error"])
        case "finite_number":
            return "is not a finite number"
        case "literal_error":
            return f"is not valid{nearest(str(value), get_args(field.annotation))}"
        case "greater_than":
            return f"must be above {facts['gt']}"
        case "greater_than_equal" | "less_than_equal":
            low, high = bounds(field)
            return f"must be at least {low}" if high is None else f"must lie between {low} and {high}"
        case kind:
            return f"is not of type {kind.removesuffix('_type').replace('string', 'str')}"


def _check_together(settings: Settings) -> None:
    """Refuse settings that do not go together."""
    spool, store, queue, grades = (
        settings.spool.path,
        settings.store.path,
        settings.queue.address,
        settings.grade_cache,
    )
    others = {os.path.realpath(path) for path in (store, spool) if path}
    if grades not in {"memory", "off"} and os.path.realpath(grades) in others:
        raise ConfigError(f"grade_cache={grades!r} needs a file of its own, not store's or spool's")
    if queue is not None and spool is not None:
        raise ConfigError("queue and spool are both set; unset one (RAGTRACE_QUEUE, RAGTRACE_SPOOL)")
    if settings.store.texts == "all" and settings.content != "full":
        raise ConfigError(
            f"store_texts='all' keeps no texts with content={settings.content!r}: set content to 'full'"
            " (RAGTRACE_CONTENT=full), or store_texts to 'selected'"
        )


def _kinds(field: FieldInfo) -> set[object]:
    """Return the types that a setting takes, without None."""
    annotation = field.annotation
    kinds = get_args(annotation) if get_origin(annotation) in {UnionType, Union} else (annotation,)
    return {Callable if get_origin(kind) is Callable else kind for kind in kinds} - {type(None)}


def bounds(field: FieldInfo) -> tuple[Any, Any]:
    """Return the least and the most of a number, None without one."""
    low, high = (
        next((getattr(it, name) for it in field.metadata if hasattr(it, name)), None) for name in ("ge", "le")
    )
    return low, high


def _is_address(field: FieldInfo) -> bool:
    return _WEB_ADDRESS in field.metadata or _QUEUE_ADDRESS in field.metadata


def secret(value: SecretStr | None) -> str | None:
    """Return the text of a secret setting, for who sends it."""
    return value.get_secret_value() if value is not None else None


class Arguments(TypedDict, total=False):
    """The settings as `ragtrace.configure` takes them, for editors and type checkers; a test compares both."""

    enabled: bool | None
    judge: str | Mapping[str, object] | None
    judge_rates: Mapping[object, float] | Iterable[str] | str | None
    judge_base_url: str | None
    judge_api_key: str | None
    judge_repeats: int | None
    judge_timeout_s: float | None
    judge_rpm: int | None
    judge_tpm: int | None
    first_judge: str | None
    consensus: Consensus | None
    budget: Mapping[str, float] | None
    budget_usd_per_day: float | None
    budget_tokens_per_day: int | None
    price: Mapping[str, float] | None
    price_input_usd_per_million: float | None
    price_output_usd_per_million: float | None
    metrics: Iterable[str] | str | None
    metric_options: Mapping[str, object] | None
    metric_options_k_values: Iterable[int] | str | None
    metric_options_grading: Grading | None
    metric_options_grade_batch: int | None
    metric_options_length_debias: bool | None
    metric_options_threshold_1to5: float | None
    metric_options_hallucination_threshold: float | None
    grade_cache: str | os.PathLike[str] | None
    label_freeze: int | None
    embedder: str | None
    pairs: str | Callable[..., Any] | None
    shadow: Callable[[str, int], object] | Mapping[str, object] | None
    shadow_rate: float | None
    shadow_timeout_s: float | None
    sample_rate: float | None
    metric_rates: Mapping[str, float] | Iterable[str] | str | None
    sampling_rules: Iterable[object] | str | None
    head_probability: float | None
    content: ContentMode | None
    redact: Callable[[str], str] | None
    id_key: str | None
    attach: AttachMode | None
    dialect: Dialect | None
    span_metadata: Iterable[str] | str | None
    workflow: str | None
    environment: str | None
    corpus: str | None
    reading: Mapping[str, object] | None
    reading_question: str | None
    reading_answer: str | None
    reading_selected: str | None
    reading_evidence: Evidence | None
    reading_roots: Iterable[str] | str | None
    reading_follows: bool | None
    record_events: str | os.PathLike[str] | Mapping[str, object] | None
    record_events_masked: bool | None
    store: str | os.PathLike[str] | Mapping[str, object] | None
    store_bytes: int | None
    store_scores_days: float | None
    store_texts: StoreTexts | None
    store_payload_hours: float | None
    spool: str | os.PathLike[str] | Mapping[str, object] | None
    spool_bytes: int | None
    queue: str | Mapping[str, object] | None
    queue_units: int | None
    queue_bytes: int | None
    kafka_config: str | os.PathLike[str] | None
    scorer: ScorerMode | None
    concurrency: int | None
    window_s: float | None
    metrics_port: int | None
    metrics_host: str | None
    health: Mapping[str, object] | None
    health_port: int | None
    health_host: str | None
    console: bool | None
    sinks: Iterable[Sink | str] | Sink | str | None
    canary: Mapping[str, float] | None
    canary_every_s: float | None
    canary_usd_per_day: float | None
    canary_tokens_per_day: int | None
    anchors: Mapping[str, float] | None
    anchors_every_s: float | None
    anchors_usd_per_day: float | None
    anchors_tokens_per_day: int | None
