"""Facts of a run by which scores are sliced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ragtrace.judges.offline.words import is_english
from ragtrace.model.cluster import cluster_of
from ragtrace.model.diagnosis import DIAGNOSIS
from ragtrace.text import MAX_LABEL_CHARS, cut

if TYPE_CHECKING:
    from ragtrace.model import RagRecord
    from ragtrace.stores.tables import Row

FACTS = ("prompt", "tags", "sources", "k", "language", "query_chars", "answer_chars", "cluster", "kind")
"""Columns of a run that say of which slices it is."""
SCORES_WITH_FACTS = (
    f"SELECT r.id, r.at, r.trace_id, r.workflow, r.session, r.environment, r.corpus, r.model,"  # noqa: S608 - our names
    f" {', '.join(f'r.{name}' for name in FACTS)}, s.value, s.weight, a.judge, a.version, a.label_scale,"
    " a.universe, s.series, s.k AS cutoff,"
    " (SELECT d.details FROM scores d JOIN series v ON v.id = d.series WHERE d.run = r.id"
    f" AND v.name = '{DIAGNOSIS}' AND v.source != 'human' ORDER BY d.scored_at DESC LIMIT 1) AS diagnosis"
    " FROM runs r JOIN scores s ON s.run = r.id JOIN series a ON a.id = s.series"
    " WHERE r.at <= :at AND (r.at, r.id, s.series) < (:at, :id, :series) AND r.at >= :since AND a.name = :metric"
    " AND a.source != 'human' AND s.stratum = 'random' AND s.value IS NOT NULL AND s.weight > 0"
    " AND (:workflow IS NULL OR r.workflow = :workflow) ORDER BY r.at DESC, r.id DESC, s.series DESC LIMIT :page"
)
"""Scores of a metric with the facts of their runs, the newest before a row first."""
_MOST_TAGS = 32
_MOST_SOURCES = 16
_LANGUAGES = {True: "en", False: "other", None: None}


def facts_of(record: RagRecord, kind: str | None = None) -> Row:
    """Return the columns `FACTS` of a record.

    None of them is a text of the question, the answer or a passage. The cluster is that of `cluster_of`. The
    language is a guess from small words, ``en`` or ``other``, and None where too little tells. The kind is that of
    the question, where the workflow has a codebook of kinds.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> found = facts_of(RagRecord(id="1", query="Where is the lab?", answer="In Oslo.", tags=("beta",)))
        >>> found["tags"], found["language"], found["query_chars"]
        ('["beta"]', 'en', 17)
    """
    sources = dict.fromkeys(passage.source for passage in record.contexts if passage.source)
    return {
        "prompt": None if record.prompt is None else cut(record.prompt, MAX_LABEL_CHARS)[0],
        "tags": _listed(record.tags, _MOST_TAGS),
        "sources": _listed(tuple(sources), _MOST_SOURCES),
        "k": record.k if record.k is not None else len(record.ranked_contexts) or None,
        "language": _LANGUAGES[is_english(record.query)],
        "query_chars": len(record.query),
        "answer_chars": len(record.answer),
        "cluster": cluster_of(record),
        "kind": kind,
    }


def _listed(names: tuple[str, ...], most: int) -> str | None:
    if not names:
        return None
    return json.dumps([cut(name, MAX_LABEL_CHARS)[0] for name in names[:most]], ensure_ascii=False)
