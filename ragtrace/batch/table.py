"""Scores a table of records, for any engine."""

from __future__ import annotations

import importlib
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

from ragtrace.batch.fields import ERROR, SCORES, names_of
from ragtrace.batch.readers import reader_of
from ragtrace.batch.rows import json_text, score_rows
from ragtrace.errors import ConfigError, InputError, MissingExtra
from ragtrace.settings import TABLE, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from ragtrace.batch.rows import RowScores
    from ragtrace.model.codec import ScoreJson

_log = logging.getLogger("ragtrace")

# The names of `ragtrace export`. `details` is a JSON text, since each metric has its own.
SCORE_COLUMNS: dict[str, str] = {
    "metric": "string", "value": "double", "state": "string", "reason": "string", "passed": "bool", "k": "int64",
    "universe": "string", "judge": "string", "version": "string", "label_scale": "string", "details": "string",
}  # fmt: skip
_MOST_SHOWN = 30
_OF_SCORER = (
    "judge", "judge_base_url", "judge_timeout_s", "judge_repeats", "consensus", "grade_cache", "label_freeze",
    "embedder", "pairs", "metrics", *(name for name in TABLE if name.startswith("metric_options_")),
)  # fmt: skip

_OF_LIMITS = (
    "budget_usd_per_day", "budget_tokens_per_day", "price_input_usd_per_million",
    "price_output_usd_per_million",
)  # fmt: skip


def score(
    table: pa.Table,
    metrics: str | Sequence[str] | None = None,
    judge: str | None = None,
    *,
    jobs: int = 8,
    **settings: Any,
) -> pa.Table:
    """Return a table with the scores of its rows, in the order of the rows.

    A row's scores depend on its own fields alone, so that a table gives the same however it is split.
    The cache of grades is off for this reason; ``grade_cache`` turns it on.

    Args:
        table: its columns are the fields of a record (`ragtrace schema`) or their names in ragas and DeepEval.
            Contexts are lists of texts or of structs, or texts that hold a list. Other columns are left alone, and
            named in a warning of the logger ``ragtrace``. No rows give no rows.
        metrics: names, as a list or with commas. Default: RAGTRACE_METRICS, else the default metrics.
        judge: ``overlap`` (offline, the default) or ``openai:MODEL``.
        jobs: rows that are scored at once, so at most this many calls of the judge.
        settings: further arguments of `ragtrace.configure` that a scorer has, for example ``judge_base_url``.

    Returns:
        The table with two more columns. ``scores`` is a list of structs (`SCORE_COLUMNS`), one a number; a score
        without a value has ``state`` na or error and a ``reason``. ``score_error`` says why a broken row has no
        scores; it is null elsewhere. Columns of these names are replaced. Where every row is broken, a
        warning names the first cause.

    Raises:
        ConfigError: an unknown metric, judge or setting, two columns of one name, or no column is a field of a
            record. A broken row or a failing judge raises nothing.
        TypeError: `table` is not a pyarrow.Table.
        MissingExtra: pyarrow is not installed.

    Example:
        >>> import pyarrow as pa
        >>> rows = [{"query": "Where?", "answer": "In Oslo.", "contexts": ["The lab is in Oslo."]}]
        >>> scored = score(pa.Table.from_pylist(rows), metrics="faithfulness")
        >>> [one["value"] for one in scored["scores"][0].as_py()]
        [1.0]
    """
    if jobs < 1:
        raise ConfigError(f"jobs={jobs}: write a whole number of at least 1")
    if not isinstance(table, arrow().Table):
        raise TypeError(
            f"score takes a pyarrow.Table, got {type(table).__name__}; convert a dataframe with "
            "pa.Table.from_pandas(df), a list of records with pa.Table.from_pylist(rows)"
        )
    resolved = Settings.resolve(arguments(metrics=metrics, judge=judge, **settings))
    try:
        names = names_of(table.column_names)
    except InputError as error:
        raise ConfigError(f"the table: {error}") from None
    if table.num_rows and not reader_of("records").reads(names):
        shown = ", ".join(table.column_names[:_MOST_SHOWN]) or "(none)"
        raise ConfigError(
            f"the table has the columns {shown}, and none is a field of a record; rename them to query, answer and "
            "contexts (see `ragtrace schema`): table.rename_columns([...])"
        )
    scored = score_rows(rows_of(table), resolved, jobs=jobs)
    if scored and all(row.error for row in scored):
        _log.warning(
            "ragtrace: every row of the table is broken, %d in all; the first: %s", len(scored), scored[0].error
        )
    warn_of_unread(name for row in scored for name in row.unread)
    return with_scores(table, scored)


def warn_of_unread(names: Iterable[str]) -> None:
    """Name what was not read of some rows in one warning; nothing without names."""
    if counts := Counter(names):
        shown = ", ".join(f"{name} ({count})" for name, count in counts.most_common(_MOST_SHOWN))
        _log.warning("ragtrace: ignored, since they are not part of a record (see `ragtrace schema`): %s", shown)


def arguments(**given: Any) -> dict[str, Any]:
    """Return the settings of a batch without those that are None, and with no cache of grades unless asked.

    Example:
        >>> arguments(metrics="mrr", judge=None)
        {'grade_cache': 'off', 'metrics': 'mrr'}
    """
    return {"grade_cache": "off"} | {name: value for name, value in given.items() if value is not None}


def scorer_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that change scores and differ from their defaults; without secrets.

    Example:
        >>> scorer_settings(Settings.resolve({"metric_options_k_values": (3,), "grade_cache": "off"}, environ={}))
        {'grade_cache': 'off', 'metric_options_k_values': (3,)}
    """
    return _changed(settings, _OF_SCORER)


def limit_settings(settings: Settings) -> dict[str, Any]:
    """Return the budgets and prices that differ from their defaults; they change no score.

    Example:
        >>> limit_settings(Settings.resolve({"budget_usd_per_day": 2.0}, environ={}))
        {'budget_usd_per_day': 2.0}
    """
    return _changed(settings, _OF_LIMITS)


def _changed(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    found = {name: TABLE[name].of(settings) for name in names}
    return {name: value for name, value in found.items() if value != TABLE[name].field.default}


def output_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a scored table, for engines that ask for it beforehand.

    Example:
        >>> import pyarrow as pa
        >>> output_schema(pa.schema([("query", pa.string())])).names
        ['query', 'scores', 'score_error']
    """
    pa = arrow()
    for name in (SCORES, ERROR):
        while (place := schema.get_field_index(name)) >= 0:
            schema = schema.remove(place)
    return schema.append(pa.field(SCORES, _scores_type())).append(pa.field(ERROR, pa.string()))


def with_scores(table: pa.Table, scored: Sequence[RowScores]) -> pa.Table:
    """Return a table with the columns of its scores.

    Example:
        >>> import pyarrow as pa
        >>> from ragtrace.batch.rows import RowScores
        >>> with_scores(pa.table({"query": ["Where?"]}), [RowScores({}, "broken")])["score_error"].to_pylist()
        ['broken']
    """
    pa = arrow()
    given = table.drop_columns([name for name in (SCORES, ERROR) if name in table.column_names])
    scores = [None if row.error else score_list(row.scores) for row in scored]
    given = given.append_column(pa.field(SCORES, _scores_type()), pa.array(scores, _scores_type()))
    errors = pa.array([row.error for row in scored], pa.string())
    return given.append_column(pa.field(ERROR, pa.string()), errors)


def score_list(scores: dict[str, ScoreJson]) -> list[dict[str, Any]]:
    """Return scores by name as the list that a table holds.

    Example:
        >>> score_list({"mrr": {"state": "ok", "value": 0.5, "details": {}}})[0]["metric"]
        'mrr'
    """
    return [{"metric": name, **one, "details": json_text(one.get("details", {}))} for name, one in scores.items()]


def arrow(name: str = "pyarrow") -> Any:
    """Return a module of pyarrow.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("pyarrow", "lake") from error


def _scores_type() -> Any:
    pa = arrow()
    return pa.list_(pa.struct([(name, pa.type_for_alias(kind)) for name, kind in SCORE_COLUMNS.items()]))


def rows_of(table: pa.Table) -> list[dict[str, Any] | InputError]:
    """Return the rows of a table as Python values, or why one has none; maps are dictionaries.

    Example:
        >>> import pyarrow as pa
        >>> rows_of(pa.table({"query": ["Where?"]}))
        [{'query': 'Where?'}]
    """
    try:
        return list(table.to_pylist(maps_as_pydicts="strict"))
    except (KeyError, ValueError) as error:  # of a map with a key twice, or of a struct with a field twice
        if table.num_rows == 1:
            return [InputError(f"two keys or fields of one name ({' '.join(str(error).split())}); rename one")]
        return [row for place in range(table.num_rows) for row in rows_of(table.slice(place, 1))]
