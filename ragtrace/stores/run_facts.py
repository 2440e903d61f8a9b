"""Facts of a run by which scores are sliced."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.errors import InputError
from ragtrace.judges.offline.words import is_english
from ragtrace.model import RagRecord
from ragtrace.model.cluster import cluster_of
from ragtrace.model.codec import json_bytes, json_value, record_from_json, record_to_line
from ragtrace.model.diagnosis import DIAGNOSIS
from ragtrace.text import MAX_LABEL_CHARS, clean, cut

if TYPE_CHECKING:
    from ragtrace.model.reading import Reading
    from ragtrace.stores.tables import Row

FACTS = ("prompt", "tags", "sources", "k", "language", "query_chars", "answer_chars", "cluster", "kind")
"""Columns of a run that say of which slices it is."""
READ = ("signs", "signed", "reading")
"""Columns of a run that say what capture read of it: names of signs, whether it is signed, and the rest as JSON."""
ENDED = "coalesce(ended, at)"
"""Unix seconds at which a run ended; of older stores and of labels those at which it came into the store."""
SCORES_WITH_FACTS = (
    f"SELECT {ENDED} AS at, r.id, r.trace_id, r.workflow, r.session, r.environment, r.corpus, r.model,"  # noqa: S608 - our names
    f" {', '.join(f'r.{name}' for name in FACTS)}, s.value, s.weight, a.judge, a.version, a.label_scale,"
    " a.universe, s.series, s.k AS cutoff,"
    " (SELECT d.details FROM scores d JOIN series v ON v.id = d.series WHERE d.run = r.id"
    f" AND v.name = '{DIAGNOSIS}' AND v.source != 'human' ORDER BY d.scored_at DESC LIMIT 1) AS diagnosis"
    " FROM runs r JOIN scores s ON s.run = r.id JOIN series a ON a.id = s.series"
    f" WHERE {ENDED} <= :at AND ({ENDED}, r.id, s.series) < (:at, :id, :series) AND {ENDED} >= :since"
    " AND a.name = :metric"
    " AND a.source != 'human' AND s.stratum = 'random' AND s.value IS NOT NULL AND s.weight > 0"
    " AND (:workflow IS NULL OR r.workflow = :workflow)"
    " ORDER BY 1 DESC, r.id DESC, s.series DESC LIMIT :page"
)
"""Scores of a metric with the facts of their runs, the newest before a row first."""
_MOST_TAGS = 32
_MOST_SOURCES = 16
_MOST_READING_BYTES = 8_192
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


def read_of(record: RagRecord) -> Row:
    """Return the columns `READ` of a record; each is None where it was not captured.

    They are kept of every run, and so hold no words: those that a sign is about stay in the record alone. A reading
    of more than 8,192 bytes is not kept, but the names of its signs.

    Example:
        >>> from ragtrace.model import RagRecord
        >>> from ragtrace.model.reading import Reading, Sign
        >>> sign = Sign("question_guessed", "input.body", text="My account was closed")
        >>> found = read_of(RagRecord(id="1", reading=Reading(signs=(sign,))))
        >>> found["signs"], found["signed"], "account" in found["reading"]
        ('["question_guessed"]', 1, False)
    """
    reading = record.reading
    if reading is None:
        return dict.fromkeys(READ)
    bare = replace(reading, signs=tuple([replace(sign, text="") for sign in reading.signs]))
    line = json_bytes(record_to_line(RagRecord(id="", reading=bare)).reading)
    return {
        "signs": sign_names(reading),
        "signed": int(reading.is_signed),
        "reading": clean(line.decode()) if len(line) <= _MOST_READING_BYTES else None,
    }


def sign_names(reading: Reading) -> str | None:
    """Return the names of a reading's signs as a list in JSON; None without one."""
    return _listed(tuple(dict.fromkeys(sign.name for sign in reading.signs)), _MOST_TAGS)


def reading_from(text: str) -> Reading | None:
    """Return the reading of a column; None where a newer ragtrace wrote what cannot be read.

    Example:
        >>> reading_from('{"question": {"place": "input.question"}}').question.place
        'input.question'
    """
    with suppress(ValueError, InputError):
        return record_from_json({"reading": json_value(text.encode())}, fallback_id="").reading
    return None


def _listed(names: tuple[str, ...], most: int) -> str | None:
    if not names:
        return None
    return json.dumps([cut(name, MAX_LABEL_CHARS)[0] for name in names[:most]], ensure_ascii=False)
