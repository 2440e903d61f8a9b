"""Typed arguments of `ragtrace.configure`.

`ragtrace.settings.Settings` is the one table. Each option names its setting there, and gives type and default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypedDict

from ragtrace.errors import ConfigError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from ragtrace.settings import Consensus, Grading, PromptContent, ScorerMode, StoreTexts, WebhookForm


def _of(setting: str) -> Any:
    return field(default=None, metadata={"setting": setting})


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """The judge, its server and its grades.

    Attributes:
        name: overlap (offline) or openai:MODEL; several, with commas, are a panel.
        first: offline judge of every sampled run, while the judge scores a part of them; None = the judge scores
            all.
        rates: with a first judge, the share of runs for the judge: one rate, or SCORE=RATE by the first score, as
            `ragtrace plan` prints them.
        base_url: base URL of an OpenAI-compatible server; redirects are not followed.
        api_key: the server's key; default OPENAI_API_KEY.
        repeats: how often each judge is asked, 1 to 20; 3 tell how far a 1-to-5 grade varies.
        consensus: how the judges of a panel become one number: mean or median.
        timeout_s: seconds for one attempt at the judge.
        rpm: requests a minute at the judge's server, of all processes that share a spool; 0 = off.
        tpm: tokens a minute there, likewise; 0 = off.
        calls: most calls of the judge under way at once.
        grading: scale of the judge's grades: direct5, umbrela or umbrela_strict.
        grade_batch: passages graded in one call; 1 where `ragtrace calibrate` says so.
        batch_metrics: False asks a judge call by call (claims, then verdicts; one context, one passage a call);
            dearer.
        grade_cache: where grades are kept: memory, off, or a SQLite file, which also gathers the labels of a
            query.
        grade_cache_bytes: most bytes of that file's rows.
        label_freeze: number of the youngest label in that file that counts; None = label sets grow.
        length_debias: True tells the judge, in 1-to-5 prompts, that length is no sign of quality.
    """

    name: str | None = _of("judge")
    first: str | None = _of("first_judge")
    rates: tuple[object, ...] | None = _of("judge_rates")
    base_url: str | None = _of("judge_base_url")
    api_key: str | None = _of("judge_api_key")
    repeats: int | None = _of("judge_repeats")
    consensus: Consensus | None = _of("consensus")
    timeout_s: float | None = _of("judge_timeout_s")
    rpm: int | None = _of("judge_rpm")
    tpm: int | None = _of("judge_tpm")
    calls: int | None = _of("judge_calls")
    grading: Grading | None = _of("grading")
    grade_batch: int | None = _of("grade_batch")
    batch_metrics: bool | None = _of("batch_metrics")
    grade_cache: str | None = _of("grade_cache")
    grade_cache_bytes: int | None = _of("grade_cache_bytes")
    label_freeze: int | None = _of("label_freeze")
    length_debias: bool | None = _of("length_debias")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOptions:
    """Limits of the judge's cost, and its prices.

    Attributes:
        usd_per_day: US dollars a day (UTC) for the judge; 0 = off.
        tokens_per_day: tokens a day, likewise; 0 = off.
        share: this process's share of budgets and rates of the judge; 1/N for N workers on N hosts.
        price_input_usd_per_million: your price of a million prompt tokens; None = the list of the extra prices.
        price_output_usd_per_million: your price of a million completion tokens.
        canary_usd_per_day: US dollars a day for canaries; 0 = off.
        canary_tokens_per_day: tokens a day for canaries; 0 = off.
        anchors_usd_per_day: US dollars a day for anchors; 0 = off.
        anchors_tokens_per_day: tokens a day for anchors; 0 = off.
    """

    usd_per_day: float | None = _of("budget_usd_per_day")
    tokens_per_day: int | None = _of("budget_tokens_per_day")
    share: float | None = _of("budget_share")
    price_input_usd_per_million: float | None = _of("price_input_usd_per_million")
    price_output_usd_per_million: float | None = _of("price_output_usd_per_million")
    canary_usd_per_day: float | None = _of("canary_usd_per_day")
    canary_tokens_per_day: int | None = _of("canary_tokens_per_day")
    anchors_usd_per_day: float | None = _of("anchors_usd_per_day")
    anchors_tokens_per_day: int | None = _of("anchors_tokens_per_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """Files of scores and of units that wait to be scored.

    Attributes:
        path: file of the SQLite store of scores; may be the spool's; None = no store.
        bytes: most bytes of the store's file: oldest payloads go first, then scores.
        scores_days: days that scores stay in the store.
        texts: runs whose texts the store keeps, with content=full: selected (low, failed and flagged ones, and 1 %
            of the others) or all that are scored.
        payload_hours: hours that those texts stay in the store.
        spool: file of the SQLite spool; None = units wait in memory alone.
        queue: address of a queue for many hosts, kafka://BROKERS/TOPIC, in the place of a spool.
        kafka_config: options of librdkafka for logins and TLS: KEY=VALUE lines, or a file of them.
        spool_bytes: most bytes of units in the spool.
    """

    path: str | None = _of("store")
    bytes: int | None = _of("store_bytes")
    scores_days: float | None = _of("store_scores_days")
    texts: StoreTexts | None = _of("store_texts")
    payload_hours: float | None = _of("store_payload_hours")
    spool: str | None = _of("spool")
    queue: str | None = _of("queue")
    kafka_config: str | None = _of("kafka_config")
    spool_bytes: int | None = _of("spool_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftOptions:
    """Options of the drift detectors and of the gauges' window.

    Attributes:
        baseline: scores the drift detectors learn their baseline from.
        tolerance: a drop that is not worth an alarm of the e-detector, in score units.
        window_s: window of the mean gauges, in seconds.
    """

    baseline: int | None = _of("drift_baseline")
    tolerance: float | None = _of("drift_tolerance")
    window_s: float | None = _of("window_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Endpoints that this process serves.

    Attributes:
        metrics_port: port of the OpenMetrics endpoint; None = no endpoint.
        metrics_host: address the endpoint binds to.
        health_port: port of /healthz and /readyz; None = no such server.
        health_host: address that server binds to.
    """

    metrics_port: int | None = _of("metrics_port")
    metrics_host: str | None = _of("metrics_host")
    health_port: int | None = _of("health_port")
    health_host: str | None = _of("health_host")


class FlatSettings(TypedDict, total=False):
    """Settings that `ragtrace.configure` takes by name alone; `ragtrace settings` describes each."""

    enabled: bool | None
    first_judge: str | None
    judge_rates: Mapping[object, float] | Iterable[str] | str | None
    judge_base_url: str | None
    judge_api_key: str | None
    judge_repeats: int | None
    consensus: Consensus | None
    judge_timeout_s: float | None
    judge_rpm: int | None
    judge_tpm: int | None
    judge_calls: int | None
    budget_usd_per_day: float | None
    budget_tokens_per_day: int | None
    budget_share: float | None
    price_input_usd_per_million: float | None
    price_output_usd_per_million: float | None
    grade_batch: int | None
    grading: Grading | None
    batch_metrics: bool | None
    grade_cache: str | os.PathLike[str] | None
    grade_cache_bytes: int | None
    label_freeze: int | None
    shadow: Callable[[str, int], object] | None
    shadow_rate: float | None
    shadow_timeout_s: float | None
    embedder: str | None
    pairs: str | Callable[..., Any] | None
    length_debias: bool | None
    threshold_1to5: float | None
    hallucination_threshold: float | None
    k_values: Iterable[int] | str | None
    metric_rates: Mapping[str, float] | Iterable[str] | str | None
    sampling_rules: Iterable[object] | str | None
    head_probability: float | None
    prompt_content: PromptContent | None
    span_metadata: Iterable[str] | str | None
    max_span_bytes: int | None
    workflow: str | None
    environment: str | None
    corpus: str | None
    queue_units: int | None
    queue_bytes: int | None
    spool: str | os.PathLike[str] | None
    queue: str | None
    kafka_config: str | None
    spool_bytes: int | None
    store_bytes: int | None
    store_scores_days: float | None
    store_texts: StoreTexts | None
    store_payload_hours: float | None
    scorer: ScorerMode | None
    concurrency: int | None
    window_s: float | None
    metrics_port: int | None
    metrics_host: str | None
    health_port: int | None
    health_host: str | None
    canary_every_s: float | None
    canary_usd_per_day: float | None
    canary_tokens_per_day: int | None
    anchors_every_s: float | None
    anchors_usd_per_day: float | None
    anchors_tokens_per_day: int | None
    phoenix_endpoint: str | None
    phoenix_api_key: str | None
    langfuse_endpoint: str | None
    langfuse_public_key: str | None
    langfuse_secret_key: str | None
    mlflow_endpoint: str | None
    mlflow_username: str | None
    mlflow_password: str | None
    mlflow_token: str | None
    webhook_url: str | None
    webhook_form: WebhookForm | None
    webhook_secret: str | None
    webhook_trace_url: str | None
    webhook_every_s: float | None
    drift_baseline: int | None
    drift_tolerance: float | None
    service_name: str | None


Options = JudgeOptions | BudgetOptions | StoreOptions | DriftOptions | ServerOptions
GROUPS = {
    "judge": JudgeOptions,
    "budget": BudgetOptions,
    "store": StoreOptions,
    "drift": DriftOptions,
    "server": ServerOptions,
}

_GROUPS_ALONE = {"budget", "drift", "server"}  # judge and store are settings too


def flat(given: Mapping[str, object]) -> dict[str, object]:
    """Return arguments with groups of options as single settings.

    An option of None is not given. A value that is no group stays: ``judge`` and ``store`` are settings too.

    Raises:
        ConfigError: a group of another argument, or a setting that is given twice.

    Example:
        >>> flat({"judge": JudgeOptions(name="overlap", rpm=100), "console": True})
        {'console': True, 'judge': 'overlap', 'judge_rpm': 100}
    """
    groups = {name: value for name, value in given.items() if isinstance(value, Options) or name in _GROUPS_ALONE}
    settings = {name: value for name, value in given.items() if name not in groups}
    for name, group in groups.items():
        if group is None:
            continue
        if not isinstance(group, Options) or type(group) is not GROUPS.get(name):
            raise ConfigError(f"{name} takes {GROUPS[name].__name__ if name in GROUPS else 'no options'}")
        for option in fields(group):
            setting, value = option.metadata["setting"], getattr(group, option.name)
            if value is None:
                continue
            if settings.get(setting) is not None:
                raise ConfigError(f"{setting} is given twice: alone and as {name}.{option.name}")
            settings[setting] = value
    return settings
