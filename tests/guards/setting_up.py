"""Every setting that the guards give, and nothing else; only this file may change while a part is rebuilt."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragtrace.testing.evaluating import Evaluator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace import RagRecord

# An application that keeps its runs, and a worker that scores them.
_KEEPING = {
    "RAGTRACE_CONTENT": "full",
    "RAGTRACE_SAMPLE_RATE": "1",
    "RAGTRACE_SCORER": "worker",
    "RAGTRACE_SPOOL": "runs.sqlite",
    "RAGTRACE_STORE": "runs.sqlite",
    "RAGTRACE_STORE_TEXTS": "all",
}
_RECEIVING = {name: value for name, value in _KEEPING.items() if name not in {"RAGTRACE_SCORER", "RAGTRACE_SPOOL"}}
_OF_TRANSCRIPTS = {
    "anchors": _KEEPING,
    "baseline": _KEEPING,
    "store": _KEEPING,
    "refused_lines": _KEEPING,
    "refused_settings": _KEEPING,
    "serve": _RECEIVING,
}


def offline(**more: Any) -> dict[str, Any]:
    """Arguments of `ragtrace.configure` for the offline judge, every run scored, contents kept."""
    return {"judge": "overlap", "sample_rate": 1.0, "content": "full"} | more


def scores_of(records: Sequence[RagRecord]) -> list[dict[str, Any]]:
    """Return the scores of each record by the offline judge, in the words of a scored file."""
    return [answer.scores for answer in Evaluator()(records, judge="overlap").answers] if records else []


def judged(url: str, **more: Any) -> dict[str, Any]:
    """Arguments for an LLM judge at an address, every run scored for faithfulness, without limits of its calls."""
    limits = {"judge_rpm": 0, "judge_tpm": 0, "budget_usd_per_day": 0.0, "budget_tokens_per_day": 0}
    judge = {"judge": "openai:m", "judge_base_url": url, "judge_api_key": "k", "canary_every_s": 0}
    return judge | limits | {"sample_rate": 1.0, "metrics": "faithfulness"} | more


def waiting_in(place: str, folder: Any) -> dict[str, Any]:
    """Arguments for runs that wait in ``memory``, ``spool``, or ``spool and store`` of a folder."""
    file = str(folder / FILE)
    return {"memory": {}, "spool": {"spool": file}, "spool and store": {"spool": file, "store": file}}[place]


FILE = "spool.sqlite"
HANDED_OVER = {"scorer": "worker"}
THREE_METRICS = {"metrics": "faithfulness,no_answer,context_use"}


def at_once(runs: int) -> dict[str, Any]:
    """Arguments for a scorer of so many runs at once."""
    return {"concurrency": runs}


def variables(settings: dict[str, Any]) -> dict[str, str]:
    """Return settings as the variables that commands read; a sink's are variables already."""
    return {name if name.isupper() else f"RAGTRACE_{name.upper()}": str(value) for name, value in settings.items()}


def weighed(store: Any, **more: Any) -> dict[str, Any]:
    """Arguments for a metric of the guard's own, whose scores and weights are kept in a store."""
    return {"metrics": "is_right", "sample_rate": 1.0, "store": str(store)} | more


SMALL_MEMORY = {"units": {"queue_units": 300}, "bytes": {"queue_bytes": 300_000}}


def small_spool(folder: Any) -> dict[str, Any]:
    """Arguments for a spool with room for about 300 runs of a sentence."""
    return {"spool": str(folder / FILE), "spool_bytes": 200_000}


def watched(folder: Any, metadata: str, **more: Any) -> dict[str, Any]:
    """Arguments for the walk over secrets: a file of a folder, the metadata on spans, all texts that may be kept."""
    file = str(folder / FILE)
    kept = {"store_texts": "all"} if more["content"] == "full" else {}
    return (
        {"judge": "overlap", "sample_rate": 1.0, "span_metadata": metadata, "spool": file, "store": file}
        | kept
        | more
    )


def with_keys(url: str, key: Any, *, is_login: bool) -> dict[str, Any]:
    """Arguments and variables with every key there is, each made by `key`, for a judge and sinks at one address."""
    root, login = url.removesuffix("/v1"), f"ada:{key('judge', 'ada')}@" if is_login else ""
    judge = f"{url}?api-key={key('judge-token')}&api-version=1".replace("http://", f"http://{login}")
    return judged(judge) | {
        "judge_api_key": key("judge-key"),
        "sinks": "webhook,langfuse,phoenix,mlflow",
        "RAGTRACE_WEBHOOK_URL": f"{root}/{key('webhook-path')}?key={key('webhook-query')}",
        "RAGTRACE_WEBHOOK_SECRET": key("webhook"),
        "LANGFUSE_BASE_URL": root,
        "LANGFUSE_PUBLIC_KEY": "pk-public",
        "LANGFUSE_SECRET_KEY": key("langfuse", "pk-public"),
        "PHOENIX_COLLECTOR_ENDPOINT": root,
        "PHOENIX_API_KEY": key("phoenix"),
        "MLFLOW_TRACKING_URI": root,
        "MLFLOW_TRACKING_USERNAME": "ada",
        "MLFLOW_TRACKING_PASSWORD": key("mlflow", "ada"),
    }


def judged_by(url: str, *models: str, repeats: int = 1) -> list[str]:
    """Options of `ragtrace score` for models of an OpenAI-compatible server; several are a panel."""
    named = ",".join(f"openai:{model}" for model in models or ("m",))
    many = ["--judge-repeats", str(repeats)] if repeats > 1 else []
    return ["--judge", named, "--base-url", url, "--embedder", "openai:e", *many]


def judge_variables(key: str = "k", timeout_s: float = 45.0, threshold_1to5: float = 3.0) -> dict[str, str]:
    """Variables of a process that asks such a server."""
    return {
        "RAGTRACE_JUDGE_API_KEY": key,
        "RAGTRACE_JUDGE_TIMEOUT_S": str(timeout_s),
        "RAGTRACE_METRIC_OPTIONS_THRESHOLD_1TO5": str(threshold_1to5),
    }


def environment(transcript: str = "") -> dict[str, str]:
    """Return the environment of commands: the offline judge, no exporter, and the settings of a transcript."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("RAGTRACE_", "OTEL_", "OPENAI_", "PYTHON"))}
    return given | {
        "COLUMNS": "120",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_TRACES_EXPORTER": "none",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RAGTRACE_JUDGE": "overlap",
        "TZ": "UTC",
        **_OF_TRANSCRIPTS.get(transcript, {}),
    }
