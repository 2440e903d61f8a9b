"""The labels that a prompt puts in front of its passages, such as ``[3]`` or ``Source 2:``."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from ragtrace.capture.attribution.notation import letters, unescaped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import Passage

_WORD = (
    "(?:source|document|doc|passage|context|chunk|excerpt|snippet|reference|ref|citation|result|node|"
    "quelle|dokument)"
)
_NAME = r"[^\W_][\w.\-/:]{0,63}?"
_BEGIN = r"^[ \t#*>({\-]*"
# Each finds labels of one kind. A kind counts only where every passage of the prompt has a label of its own.
_KINDS = (
    re.compile(rf"{_BEGIN}[\[【]\^?(?:{_WORD}[ :#_-]*)?({_NAME})[\]】]", re.MULTILINE | re.IGNORECASE),
    re.compile(
        rf"{_BEGIN}[\[<]?{_WORD}[ \t_]*(?:id|index|number|no\.?)?[ \t]*[:=#]*[ \t]*[\"']?#?(\d{{1,4}})\b",
        re.MULTILINE | re.IGNORECASE,
    ),
    re.compile(rf"[=:] *[\"']?({_NAME})(?=[\"'\s,;>}}\])]|$)", re.MULTILINE),
    re.compile(r"^[ \t]*\(?(\d{1,3})[.):][ \t]", re.MULTILINE),
)
_FIELD = _KINDS[2]  # of XML or JSON; looked for behind its = or :, since names of fields begin at any letter
_FIELD_NAMES = ("id", "index", "number", "ref", "citation")
_HEAD_CHARS, _HEAD_BYTES, _SAMPLE_BYTES = 160, 32, 24
_MOST_LABELS = 2_000


def prompt_labels(prompt: str, passages: Sequence[Passage]) -> dict[str, tuple[str, ...]]:
    """Return the ids of passages by the labels in front of them; empty where not every passage has one.

    A label in front of a part of a passage, as in a citation engine's prompt, is a label of that passage.

    Example:
        >>> from ragtrace.model import Passage
        >>> prompt_labels("[3] The lab is in Oslo.", [Passage(id="a", text="The lab is in Oslo.", rank=1)])
        {'3': ('a',)}
    """
    text = unescaped(prompt)
    kinds = (_labelled(text, kind, passages) for kind in _KINDS)
    found = next(filter(None, kinds), {})
    return {label: (name,) for label, name in found.items()}


def _labelled(prompt: str, kind: re.Pattern[str], passages: Sequence[Passage]) -> dict[str, str]:
    marks = [mark for mark in kind.finditer(prompt) if kind is not _FIELD or _is_id(prompt, mark)][:_MOST_LABELS]
    if not marks or not passages:
        return {}
    ends = [*(mark.start() for mark in marks[1:]), len(prompt)]
    pieces = [letters(prompt[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    owners = _owners(pieces, passages)
    if owners is None:
        return {}
    found = {_key(marks[piece][1]): name for piece, name in owners.items()}
    if len(found) < len(owners):  # one label for several passages labels none
        return {}
    for mark, piece in zip(marks, pieces, strict=True):
        part = _part_of(piece, passages) if _key(mark[1]) not in found else None
        if part is not None:
            found[_key(mark[1])] = part
    return found


def _is_id(prompt: str, mark: re.Match[str]) -> bool:
    return prompt[max(0, mark.start() - 16) : mark.start()].rstrip(" \"'").lower().endswith(_FIELD_NAMES)


def _owners(pieces: Sequence[bytes], passages: Sequence[Passage]) -> dict[int, str] | None:
    """Return the passage that begins in each piece; None where one has no piece, or shares it with another."""
    joined = b"\0".join(pieces)
    starts = [0, *accumulate(len(piece) + 1 for piece in pieces)]
    owners: dict[int, str] = {}
    for passage in passages:
        head = letters(passage.text[:_HEAD_CHARS])[:_HEAD_BYTES]
        at = joined.rfind(head) if head else -1
        place = bisect_right(starts, at) - 1
        if at < 0 or place in owners:
            return None
        owners[place] = passage.id
    return owners


def _part_of(piece: bytes, passages: Sequence[Passage]) -> str | None:
    """Return the passage of which a piece of a prompt shows a later part."""
    sample = piece[:_SAMPLE_BYTES]
    if len(sample) < _SAMPLE_BYTES:
        return None
    return next((passage.id for passage in passages if sample in letters(passage.text)), None)


def _key(label: str) -> str:
    return label.lstrip("0").casefold() or "0"
