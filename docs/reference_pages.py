"""Pages of docs/reference that the code writes: settings, commands, verdicts and reasons, errors.

`python -m docs.build --reference` writes them, and a test compares them with the committed files.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from docs import api_page
from ragtrace import errors
from ragtrace.model import ERROR_REASONS, SKIP_REASONS
from ragtrace.model.diagnosis import MEANINGS, STAGES
from ragtrace.model.reasons import NA, na_reason
from ragtrace.settings import GROUPS, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MADE = "<!-- made by `python -m docs.build --reference` -->\n"

ERROR = {
    "judge_error": ("The judge failed in another way.", "Read the details of the score and the log."),
    "judge_incomplete": (
        "Verdicts are missing, doubled or unknown.",
        "Choose a better model, or `metric_options_grade_batch=1`.",
    ),
    "judge_timeout": ("The judge gave no reply in time.", "Raise `judge_timeout_s`, or look at the server."),
    "judge_refused": (
        "The model declined to judge, or its server does not take this input.",
        "Look at the record; choose another model if it repeats.",
    ),
    "judge_truncated": ("The reply hit the output limit.", "Choose a model with a larger limit."),
    "judge_filtered": (
        "A content filter stopped the reply.",
        "Look at the record, and at the filter of the server.",
    ),
    "judge_invalid_output": (
        "The reply is not of the form asked for.",
        "Choose a model that keeps to a JSON form.",
    ),
    "judge_unavailable": ("The server cannot be reached, is broken, or said 429.", "Run `ragtrace doctor`."),
    "invalid_grade": ("A label is not a whole number from 1 to 5.", "Mend the labels of the record."),
    "zero_embedding": ("The embedder returned a vector of length 0.", "Look at the text and the embedder."),
    "internal_error": ("The metric raised an exception.", "Read the log, and report it: this is a fault of ours."),
    "budget_exceeded": ("Today's budget is spent.", "Raise `budget_usd_per_day`, or lower `sample_rate`."),
}
SKIPPED = {
    "not_sampled": "The metric has a rate of its own, and the draw left this run out.",
    "budget_exceeded": "The rest of today's budget pays for less than one run in a thousand.",
    "expired": "The unit waited longer than units may wait.",
    "queue_full": "The run found no room, or the full queue left it no probability.",
    "shutdown": "The process ended while the unit waited in its memory.",
    "evicted": "The unit found no place: too large, or a spool that cannot be written.",
}
ADVICE: dict[str, str] = {
    "RagtraceError": "Catch it to catch all of them.",
    "ConfigError": "Change the setting, flag or argument that the line names. Commands end with exit status 2.",
    "InputError": "Mend the line of the file that the message names.",
    "MissingExtra": "Install the extra that the message names.",
    "QueueError": "Look at the spool's disk, or at the Kafka brokers; `ragtrace doctor` tests both.",
    "StoreError": "Give the store a file that can be written, or update ragtrace where a newer one wrote it.",
    "JudgeError": "The score is `error` with this reason. The other metrics of the run go on.",
    "JudgeUnsupported": "Choose a judge that can do the task, or leave the metric out.",
    "JudgeContextsTruncated": "Choose a judge with a larger window, or hand the model fewer contexts.",
}


def pages() -> dict[str, Callable[[], str]]:
    """Return the function that makes each page, by the page's name."""
    return {
        "settings.md": settings,
        "command-line.md": command_line,
        "verdicts.md": verdicts,
        "errors.md": error_tree,
        "api.md": api_page.page,
    }


def settings() -> str:
    """Return the table of all settings."""
    head = (
        "# Settings\n\nEvery setting with its variable, its default and its meaning. An argument of "
        "`ragtrace.configure` comes first,\nthen the variable, then `OPENAI_*` or `OTEL_*`, then the default. "
        "`ragtrace settings` prints the values in force.\n"
        f"A group, such as {', '.join(f'`{name}`' for name in GROUPS)}, is a dict too: "
        '`judge={"name": "openai:MODEL", "rpm": 60}` is `judge="openai:MODEL", judge_rpm=60`.\n\n'
    )
    rows = (
        f"| `{name}` | {f'`{one.variable}`' if one.variable else 'argument only'} | {_default(one.field.default)} "
        f"| {_cell(one.doc)} |\n"
        for name, one in TABLE.items()
    )
    return f"{head}{MADE}\n| setting | variable | default | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def command_line() -> str:
    """Return the reference of the commands, as typer writes it from their options."""
    import typer
    from typer.cli import get_docs_for_click

    from ragtrace.cli.main import build_app

    app: Any = build_app(None)
    text = get_docs_for_click(obj=app, ctx=typer.Context(app), name="ragtrace", title="Command line")
    text = re.sub(r"\*\*Usage\*\*:\n\n```console\n\$ (.+)\n```", r"**Usage**: `\1`", text)
    for name, command in app.commands.items():  # typer cuts them after six words
        text = re.sub(
            rf"^\* `{name}`: .*$", f"* `{name}`: {command.get_short_help_str(200)}", text, flags=re.MULTILINE
        )
    intro = "Every command with its arguments and options, as `ragtrace COMMAND --help` prints them.\n\n"
    return text.replace("# Command line\n\n", f"# Command line\n\n{intro}{MADE}\n", 1).strip() + "\n"


def verdicts() -> str:
    """Return the tables of verdicts, and of reasons for a score without a number."""
    _same(ERROR, ERROR_REASONS)
    _same(SKIPPED, SKIP_REASONS)
    return f"""# Verdicts and reasons

The closed lists behind a diagnosis and behind a score that is no number. Each value stands in spans, events, files
and metrics as it is written here, and its meaning does not change within a major version.

{MADE}
## Verdicts of the metric `diagnosis`

One run has one verdict, the earliest stage that failed. [Diagnosis](../concepts/diagnosis.md) says how it is
decided.

| verdict | stage | meaning |
|---|---|---|
{_rows((name, STAGES[name], _sentence(meaning)) for name, meaning in MEANINGS.items())}
## `na`: the metric does not apply

| reason | meaning | what to do |
|---|---|---|
{_rows((name, *map(_sentence, na_reason(name))) for name in ("missing_input:NAME", *sorted(NA)))}
## `error`: the computation failed

| reason | meaning | what to do |
|---|---|---|
{_rows((name, *both) for name, both in sorted(ERROR.items()))}
## `skipped`: left out on purpose

| reason | meaning |
|---|---|
{_rows(sorted(SKIPPED.items()))}"""


def error_tree() -> str:
    """Return the page of exceptions: the tree, and a table with the reason of each and what to do."""
    tree = inspect.cleandoc(errors.__doc__ or "").partition("::\n\n")[2].partition("\n\nNone of them")[0]
    rows = [
        (
            kind.__name__,
            f"`{reason}`" if (reason := getattr(kind, "reason", None)) else "",
            _meaning(kind),
            _advice(kind),
        )
        for kind in _kinds()
    ]
    return f"""# Errors

Every exception that ragtrace raises on purpose, its cause, and the next step. No capture call raises one of them
into the application. An error there is counted in `ragtrace.internal.losses`.

{MADE}
```text
{inspect.cleandoc(tree)}
```

| exception | reason of the score | cause | what to do |
|---|---|---|---|
{_rows(rows)}
A message is one line. It names the place, the fault and the next step. A name that is nearly right gets a hint
(`did you mean 'faithfulness'?`). [Verdicts and reasons](verdicts.md) explains the reasons of scores.
"""


def _kinds() -> Iterator[type[Exception]]:
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, errors.RagtraceError):
            yield kind


def _meaning(kind: type[Exception]) -> str:
    return _cell((inspect.getdoc(kind) or "").splitlines()[0])


def _advice(kind: type[Exception]) -> str:
    reason = getattr(kind, "reason", "")
    return ADVICE.get(kind.__name__) or ERROR[reason][1]


def _default(default: object) -> str:
    if default is None or default == ():
        return "none"
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f"`{shown}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("``", "`")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _rows(rows: Any) -> str:
    return "".join(f"| `{name}` | {' | '.join(cells)} |\n" for name, *cells in rows)


def _same(told: Mapping[str, object], closed: frozenset[str]) -> None:
    if told.keys() != closed:
        raise ValueError(f"docs/reference_pages.py must tell these reasons: {sorted(told.keys() ^ closed)}")
