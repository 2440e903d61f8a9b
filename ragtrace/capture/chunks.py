"""Give different passages of a run that stand under one id an id each.

Chunks may carry the id of the document or parent that they are cut from. A search that returns different texts
under one id found different passages. Each gets the id with a hash of its text behind it, whichever was found
first, so that it has the same id in every run that tells them apart. Labels may name it by either id: see
`label_id`.

A step may rewrite a passage: it adds a header, takes out a part, or translates. What it made keeps the id of the
passage.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.capture.attribution import letters
from ragtrace.capture.passages import ReadPassages
from ragtrace.capture.types import Rerank, Retrieval
from ragtrace.model import chunk_id
from ragtrace.text import folded

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from ragtrace.capture.reported import Reported
    from ragtrace.model import AnswerPart, Passage
    from ragtrace.model.passage import IdKey

_PIECE_BYTES = 16  # of letters, by which a text is known again in another one
_FEWEST_PIECES = 5  # a shorter text is compared by its words
_MOST_PIECES = 1_024  # each is looked for in all of the other text
_LEAST_LIKENESS = 0.6  # of two forms of a passage; chunks that overlap are less like each other
_WORDS = re.compile(r"[^\W_]{3,}")


def tell_apart(run: Reported) -> None:
    """Give different passages of a run different ids, where they have not."""
    shared = {}
    if _has_shared_ids(run):
        shared = {name: texts for name, texts in _chunks(run).items() if len(texts) > 1}
    if run.id_key is not None:
        _name_labels(run, run.id_key, shared)
    if not shared:
        return
    names = _Names(shared, run.id_key)
    run.change_passages(names.of)
    if parts := run.attributes.get("answer_parts"):
        run.attributes["answer_parts"] = tuple(map(names.of_part, parts))


def is_form_of(text: str, other: str) -> bool:
    r"""Tell whether two texts are forms of one passage: most of the shorter one is in the longer one.

    Example:
        >>> is_form_of("Books may be kept for 28 days.", "Loans\nBooks may be kept for 28 days. <b>Ask us.</b>")
        True
        >>> is_form_of("Books may be kept for 28 days.", "Rooms are booked online.")
        False
    """
    return _likeness(text, other) >= _LEAST_LIKENESS


def _likeness(text: str, other: str) -> float:
    """Return the share of the shorter text that is in the longer one: of its pieces, or of a short one's words."""
    part, whole = sorted((letters(text), letters(other)), key=len)
    if part in whole:
        return 1.0 if part else 0.0
    if len(part) < _FEWEST_PIECES * _PIECE_BYTES:
        words, others = set(folded(text).split()), set(folded(other).split())
        return len(words & others) / (min(len(words), len(others)) or 1)
    step = max(_PIECE_BYTES, len(part) // _MOST_PIECES)
    pieces = [part[at : at + _PIECE_BYTES] for at in range(0, len(part) - _PIECE_BYTES + 1, step)]
    return sum(piece in whole for piece in pieces) / len(pieces)


def chunks_of(texts: Sequence[str], chunks: Sequence[str]) -> list[str | None]:
    """Return the chunk that each text of one list is or was made of, None where that cannot be told.

    All of them stand under one id. What has no words of a chunk, such as a translation, is told by its place, where
    nothing else was added or left out.

    Example:
        >>> chunks_of(["Oslo: In Oslo.", "Ask us."], ["Ask us.", "In Oslo."])
        ['In Oslo.', 'Ask us.']
        >>> chunks_of(["I Oslo.", "Ask us."], ["In Oslo.", "Ask us."])
        ['In Oslo.', 'Ask us.']
        >>> chunks_of(["In Oslo. Ask us."], ["In Oslo.", "Ask us."])
        [None]
    """
    found = {text: [text] if text in chunks else _closest(text, chunks) for text in texts}
    unknown = list(dict.fromkeys(text for text in texts if not found[text]))
    known = {some[0] for some in found.values() if len(some) == 1}
    left = [one for one in chunks if one not in known]
    if len(left) == len(unknown):
        found.update((text, [one]) for text, one in zip(unknown, left, strict=True))
    return [found[text][0] if len(found[text]) == 1 else None for text in texts]


def _closest(text: str, chunks: Sequence[str]) -> list[str]:
    """Return the chunks that a text is most like: several where it holds them all, none where it is like none."""
    likeness = {one: _likeness(text, one) for one in chunks}
    most = max(likeness.values())
    return [one for one, share in likeness.items() if share == most >= _LEAST_LIKENESS]


def _lists(run: Reported) -> Iterator[Sequence[Passage]]:
    for step in run.steps:
        if isinstance(step, Rerank):
            yield step.candidates
        if isinstance(step, Retrieval | Rerank):
            yield step.passages
    yield from (some for some in (run.pool_order, run.selection, run.used_passages) if some is not None)


def _has_shared_ids(run: Reported) -> bool:
    texts: dict[str, str] = {}
    for one in chain.from_iterable(_lists(run)):
        known = texts.setdefault(one.id, one.text)
        if known is not one.text and known != one.text:
            return True
    return False


def _name_labels(run: Reported, id_key: IdKey, shared: Container[str]) -> None:
    """Have labels name a passage that stands alone under its id by that id.

    Whoever reads labels has no key, and cannot tell that the id of a chunk is this passage's, see `label_id`.
    """
    labels = run.attributes.get("labels")
    if labels is None or not any("#" in name for name in labels.grades):
        return
    grades = dict(labels.grades)
    for one in chain.from_iterable(_lists(run)):
        if one.id not in grades and one.id not in shared:
            name = chunk_id(one.id, one.text, id_key)
            if name in grades:
                grades[one.id] = grades.pop(name)
    run.attributes["labels"] = replace(labels, grades=grades)


def _chunks(run: Reported) -> dict[str, list[str]]:
    """Return the texts of different passages by their id, as searches found them.

    Two searches may show one passage in two forms. A run that searched nothing has its first list in place of that.
    """
    searches = [step for step in run.steps if isinstance(step, Retrieval)]
    outer = {step.parent_key for step in searches}
    found: list[Sequence[Passage]] = [
        step.passages for step in searches if step.key is None or step.key not in outer
    ]
    chunks: dict[str, list[str]] = {}
    for passages in found or list(_lists(run))[:1]:
        before = {name: list(texts) for name, texts in chunks.items()}
        for passage in passages:
            texts = chunks.setdefault(passage.id, [])
            if not passage.text or passage.text in texts:
                continue
            others = before.get(passage.id, ())
            is_known = any(is_form_of(passage.text, other) for other in others)
            if not is_known and not any(letters(passage.text) == letters(other) for other in texts):
                texts.append(passage.text)
    return chunks


class _Names:
    """The ids of chunks.

    Args:
        shared: texts of chunks by the id that they share.
        id_key: of the hashes in their ids.
    """

    def __init__(self, shared: Mapping[str, Sequence[str]], id_key: IdKey | None) -> None:
        self._shared = shared
        self._id_key = id_key
        self._last = {name: list(texts) for name, texts in shared.items()}  # as the list before had them

    def of(self, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """Return passages with the ids of their chunks."""
        if self._shared.keys().isdisjoint([passage.id for passage in passages]):
            return passages
        found: dict[tuple[str, str], str] = {}
        for name in self._shared.keys() & {passage.id for passage in passages}:
            texts = [passage.text for passage in passages if passage.id == name]
            known = self._behind(name, texts)
            found.update(((name, text), one) for text, one in zip(texts, known, strict=True) if one is not None)
            self._last[name] = list(dict.fromkeys(filter(None, known))) or self._last[name]
        return ReadPassages(
            p if (one := found.get((p.id, p.text))) is None else replace(p, id=chunk_id(p.id, one, self._id_key))
            for p in passages
        )

    def _behind(self, name: str, texts: Sequence[str]) -> list[str | None]:
        """Return the chunks behind texts: themselves, those of the list before where they tell, else of all."""
        if all(text in self._shared[name] for text in texts):
            return list(texts)
        last = chunks_of(texts, self._last[name])
        return last if None not in last else chunks_of(texts, self._shared[name])

    def of_part(self, part: AnswerPart) -> AnswerPart:
        """Return a part of an answer that cites the chunk that is closest to it, in place of all under one id."""
        if self._shared.keys().isdisjoint(part.citations):
            return part
        said = set(_words(part.text))
        cites: Iterable[str] = (
            chunk_id(
                name, max(self._shared[name], key=lambda text: len(said.intersection(_words(text)))), self._id_key
            )
            if name in self._shared
            else name
            for name in part.citations
        )
        return replace(part, citations=tuple(cites))


def _words(text: str) -> list[str]:
    return _WORDS.findall(folded(text))
