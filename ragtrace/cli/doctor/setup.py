"""Checks settings, files on disk and the judge."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.doctor.check_result import CheckResult
from ragtrace.errors import ConfigError, MissingExtra, QueueError

if TYPE_CHECKING:
    from ragtrace.judges.base import Judge
    from ragtrace.settings import Settings

JUDGE_LIMIT_S = 20.0
KAFKA_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a setting; `most_bytes` is the limit of its size."""

    check: str
    path: Path
    most_bytes: int


def check_settings() -> tuple[list[CheckResult], Settings | None]:
    """Resolve the settings of the environment; None where they are wrong."""
    from ragtrace.service.rates import rates_of
    from ragtrace.settings import TABLE, Settings, unknown_variables
    from ragtrace.sinks.base import sinks_of

    unknown = unknown_variables(os.environ)
    findings = [CheckResult("settings", "warn", f"{name} sets nothing{hint}") for name, hint in unknown.items()]
    try:
        settings = Settings.resolve({}, {name: os.environ[name] for name in os.environ if name not in unknown})
        rates_of(settings)
    except ConfigError as error:
        return [*findings, CheckResult("settings", "fail", str(error))], None
    try:
        sinks_of(settings.sinks)
    except (ConfigError, MissingExtra) as error:
        findings.append(CheckResult("settings", "fail", str(error)))
    if not settings.enabled:
        said, todo = "ragtrace is switched off (RAGTRACE_ENABLED)", "unset it to capture and score"
        findings.append(CheckResult("settings", "warn", said, todo))
    if settings.scorer == "worker" and settings.units_at is None:
        said = "scorer=worker needs a spool or a queue that the worker reads"
        todo = "set RAGTRACE_SPOOL to a file, or RAGTRACE_QUEUE to an address"
        findings.append(CheckResult("settings", "fail", said, todo))
    n = sum(one.variable in os.environ for one in TABLE.values())
    return findings or [CheckResult("settings", "ok", f"{n} from the environment, all resolve")], settings


def check_disk(settings: Settings) -> list[CheckResult]:
    """Check the queue on Kafka, and folder, room and permissions of every written file."""
    from ragtrace.settings import secret

    queue = [_queue(settings.queue.address, secret(settings.kafka_config))] if settings.queue.address else []
    files = _files(settings)
    if not files and not queue:
        return [CheckResult("disk", "ok", "no spool and no store: units wait in memory")]
    return [*queue, *(_file(one) for one in files)]


def check_ids(settings: Settings) -> CheckResult:
    """Say how long passages keep ids that are made of their texts."""
    todo = "set RAGTRACE_ID_KEY, and labels, anchors and comparisons by id hold"
    if settings.id_key is not None:
        kept, todo = "the same one in every process that has this RAGTRACE_ID_KEY", ""
    elif settings.store.path is not None:
        kept = "another one in processes without this store's file"
    else:
        kept = "another one after a restart and in each process"
    if settings.content == "full":
        kept = f"a hash of the text; with redact, {kept}"
    return CheckResult("ids", "ok", f"passages without an id of their own have {kept}", todo)


def _queue(address: str, config: str | None) -> CheckResult:
    """Ask Kafka for the topic; a queue of another kind is not looked at."""
    if not address.startswith("kafka://"):
        return CheckResult("queue", "ok", f"units go to {address.partition('://')[0]}://, which was not asked")
    try:
        from ragtrace.queues.kafka.address import KafkaAddress
        from ragtrace.queues.kafka.topics import count_partitions

        at = KafkaAddress.parse(address, config)
        count = count_partitions(at, KAFKA_LIMIT_S)
    except ModuleNotFoundError:
        return CheckResult("queue", "fail", "Kafka's client is missing", 'install the extra "kafka"')
    except (ConfigError, QueueError) as error:
        return CheckResult("queue", "fail", str(error))
    if not count:
        todo = "make it, or let the first application make it"
        return CheckResult("queue", "warn", f"Kafka answers; topic {at.topic} does not exist", todo)
    said = f"Kafka answers; topic {at.topic} has {count} partition{'' if count == 1 else 's'}"
    return CheckResult("queue", "ok", said)


def check_judge(settings: Settings, *, is_called: bool) -> CheckResult:
    """Build the judge and the metrics, and ask the judge one small question."""
    from ragtrace.judges.registry import costs
    from ragtrace.service.judges import build_scorer, is_limited, with_first_judge
    from ragtrace.service.limits import build_asking_limiter

    once = {"judge_repeats": 1, "consensus": "mean", "grade_cache": "off", "label_freeze": None, "pairs": None}
    try:
        with_first_judge(build_scorer(_unmade(settings)), settings)
        limiter = build_asking_limiter(settings) if is_limited(settings) else None
        judge = build_scorer(settings.with_changes(**once), limiter).judge
    except (ConfigError, MissingExtra) as error:
        return CheckResult("judge", "fail", str(error))
    if judge is None or not costs(settings.judge.name):
        return CheckResult("judge", "ok", f"{settings.judge.name.strip()}, offline: it needs no server")
    if not is_called:
        return CheckResult("judge", "ok", f"{settings.judge.name} was not asked (--no-judge)")
    return asyncio.run(_asked(judge, limiter.host if limiter is not None else judge.name))


def _unmade(settings: Settings) -> Settings:
    """Return the settings without a missing grade cache, which opening would make."""
    named = settings.grade_cache
    is_new = named not in {"memory", "off"} and not Path(named).exists()
    return settings.with_changes(grade_cache="off", label_freeze=None) if is_new else settings


def _files(settings: Settings) -> list[_File]:
    from ragtrace.judges.cache.grade_file import MOST_BYTES

    spool, store, grades = settings.spool.path, settings.store.path, settings.grade_cache
    files = []
    if spool:
        files.append(_File("spool", Path(spool), settings.spool.bytes))
    if store and store != spool:
        files.append(_File("store", Path(store), settings.store.bytes))
    if grades not in {"memory", "off"}:
        files.append(_File("grade cache", Path(grades), MOST_BYTES))
    return files


def _file(one: _File) -> CheckResult:
    try:
        return _seen(one)
    except OSError as error:
        said = f"{one.path.name!r}: {error.strerror or error}"
        return CheckResult(one.check, "fail", said, "choose another file")


def _seen(one: _File) -> CheckResult:
    from ragtrace.host import unwritable
    from ragtrace.sqlite_file import is_sqlite

    reason = unwritable(one.path)
    if reason is not None:
        todo = "make the folder, or choose another file" if "is not there" in reason else "mend that or move it"
        return CheckResult(one.check, "fail", reason, todo)
    there = one.path.stat() if one.path.exists() else None
    if there is not None and not is_sqlite(one.path):
        said, todo = (
            f"{one.path.name!r} is not an SQLite file",
            "check the path; an application may put the file aside",
        )
        return CheckResult(one.check, "fail", said, todo)
    if there is not None and stat.S_IMODE(there.st_mode) & 0o077:
        said = f"{one.path.name!r} holds texts and others may read it (mode {stat.S_IMODE(there.st_mode):o})"
        return CheckResult(one.check, "warn", said, f"chmod 600 {one.path}")
    free = shutil.disk_usage(one.path.parent).free
    grows = max(one.most_bytes - (there.st_size if there else 0), 0)
    if free < grows:
        said = f"{_mib(free)} free, and {one.path.name!r} may grow by {_mib(grows)}"
        return CheckResult(one.check, "warn", said, "free some space, or lower its limit")
    return CheckResult(one.check, "ok", f"{one.path.name!r} can be written, {_mib(free)} free")


def _mib(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


async def _asked(judge: Judge, host: str) -> CheckResult:
    """Ask for the audit of a sentence that is copied from its context."""
    from ragtrace.metrics.eval_context import EvalContext, MetricOptions
    from ragtrace.metrics.evaluate import evaluate
    from ragtrace.metrics.registry import select
    from ragtrace.model import Passage, Pool, RagRecord

    text = "The lab is in Oslo."
    pools = (Pool(stage="used", passages=(Passage(id="a", text=text, rank=1),)),)
    record = RagRecord(id="doctor", query="Where is the lab?", answer=text, pools=pools)
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(JUDGE_LIMIT_S):
            context = EvalContext(record, judge=judge, options=MetricOptions())
            (result,) = await evaluate(select(["faithfulness"]), context)
    except TimeoutError:
        said = f"{host} has not answered for {JUDGE_LIMIT_S:.0f} s"
        return CheckResult("judge", "fail", said, "look at its server and RAGTRACE_JUDGE_BASE_URL")
    finally:
        await judge.aclose()
    took_s = time.monotonic() - began_s
    if result.value is None:
        message = str(result.details.get("message") or result.reason)
        return CheckResult("judge", "fail", message, "correct it, or RAGTRACE_JUDGE=overlap")
    if result.value < 1.0:
        said = f"{judge.name} replies, and finds a copied sentence unsupported"
        return CheckResult("judge", "warn", said, "measure it with `ragtrace calibrate`")
    tokens = result.input_tokens + result.output_tokens
    said = f"{judge.name} replied in {took_s:.1f} s ({result.llm_calls} calls, {tokens} tokens)"
    return CheckResult("judge", "ok", said)
