"""Find citation markers in an answer, and cut the answer into sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragtrace.capture.citations.names import PassageNames, Target

MARK = "\ue000"  # stands for a marker in a text; of the private use area
_WORD = (
    r"(?:sources?|documents?|docs?|passages?|contexts?|chunks?|excerpts?|snippets?|references?|refs?|citations?|"
    r"quellen?|dokumente?)"
)
_LIST = rf"\d{{1,4}}(?:\s*(?:,?\s*\band\b|,?\s*\bund\b|[,;/&+–—-]|\bto\b)\s*(?:{_WORD}\s*)?\#?\d{{1,4}})*"
_MARKER = re.compile(
    rf"""(?P<code>```.*?(?:```|\Z)|`[^`\n]+`)
    |<sup>\s*\[?(?P<sup>{_LIST})\]?\s*</sup>
    |<(?P<tag>cite|ref|source|citation|doc|document)\b(?P<facts>[^<>\n]{{0,160}})>(?:(?P<inner>[^<>]*)</(?P=tag)>)?
    |\[\[?\^?(?P<square>[^\[\]\n]{{1,200}})\]?\](?:\((?P<target>[^()\s]{{1,500}})\))?
    |【(?P<wide>[^【】\n]{{1,200}})】
    |\((?P<round>[^()\n]{{1,200}})\)
    |(?<![^\W_])(?P<bare>{_WORD}\s{{1,2}}(?:no\.?\s?|number\s|\#)?(?P<numbers>{_LIST}))(?![^\W_]|[.:]\d)
    |(?:(?<=[.,;:!?)\]"”’])|(?<=[^\W\d_]{{3}}))(?P<raised>[¹²³][¹²³⁰⁴-⁹]*)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_HINTS = (
    "[", "【", "(", "<", "¹", "²", "³", "ource", "OURCE", "ocument", "oc ", "ocs ", "assage", "ontext", "hunk",
    "xcerpt", "nippet", "eference", "ef ", "efs ", "itation", "uelle", "okument",
)  # fmt: skip
_KEYWORD = re.compile(
    rf"^(?:(?:see|cf\.?|from|per|according to|siehe|vgl\.)\s+)?(?:{_WORD}|cite|id|number|no\.?|nr\.?)[\s:#_=-]+"
    r"|^[#@^]\s*",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""=\s*["']?([^"'<>\s/]+)|^\s+\[?(\d{1,3})\]?\s*/?$""")
_RANGE = re.compile(r"(\d{1,4})(?:\s*(?:[–—-]|\bto\b)\s*#?(\d{1,4}))?")
_PIECES = re.compile(r"\s*[,;|]\s*|\s+(?:and|und|&)\s+")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_MOST_OF_RANGE = 50
_LIST_MARK = re.compile(r"^\s*(?:[-*•>]+|\d{1,3}[.)])\s+")
_END = re.compile(
    rf"(?<![\s(]e\.g)(?<![\s(]i\.e)(?<![\s(]z\.B)(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bNo)(?<!\bNr)(?<!\bvs)"
    rf"(?<!\betc)(?<!\bca)(?<!\bapprox)"
    rf"(?:[.!?…][\"')\]”’»*_]*(?:[ \t]*{MARK}(?![ \t]+[a-z]))*(?=\s+[^\sa-z])"
    rf"|[.!?…][\"')\]”’»*_]*{MARK}+(?=[^\s{MARK}])|[。！？][」』”’）]*(?:[ \t]*{MARK})*)"
)


def may_cite(answer: str) -> bool:
    """Tell whether a text holds anything that may be a citation marker.

    Example:
        >>> may_cite("In Oslo [1]."), may_cite("In Oslo.")
        (True, False)
    """
    return any(map(answer.__contains__, _HINTS))  # 30 times faster than one pattern


def marked(text: str, names: PassageNames) -> tuple[str, list[list[Target]]]:
    """Return a text with `MARK` in place of each marker, and what each of them cites, in order.

    A mention in words (``Source 2``) stays in the text, with `MARK` behind it.

    Example:
        >>> from ragtrace.capture.citations.names import PassageNames
        >>> from ragtrace.model import Passage
        >>> text, cited = marked("In Oslo [1].", PassageNames([Passage(id="a", text="Oslo.", rank=1)]))
        >>> text.replace(MARK, "*"), cited
        ('In Oslo *.', [[('a',)]])
    """
    cited: list[list[Target]] = []

    def replaced(found: re.Match[str]) -> str:
        targets = _targets(found, names)
        if not targets:
            return found[0]
        cited.append(targets)
        words = found["bare"] or (found["inner"] if found["tag"] and _ATTRIBUTE.search(found["facts"]) else "")
        return f"{words or ''}{MARK}"

    return _MARKER.sub(replaced, text.replace(MARK, " ")), cited


def _targets(found: re.Match[str], names: PassageNames) -> list[Target]:
    if found["code"]:
        return []
    if found["raised"]:
        return _numbered(found["raised"].translate(_RAISED), names)
    if found["sup"] or found["numbers"]:
        return _numbered(found["sup"] or found["numbers"], names)
    if found["tag"]:
        fact = _ATTRIBUTE.search(found["facts"])
        return labels_in((fact[1] or fact[2]) if fact else found["inner"] or "", names)
    if found["round"]:
        return labels_in(found["round"], names, is_bare=True)
    linked = names.by_name(found["target"]) if found["target"] else ()
    return [linked] if linked else labels_in(found["square"] or found["wide"], names)


def labels_in(text: str, names: PassageNames, *, is_bare: bool = False) -> list[Target]:
    """Return what the inside of a marker cites: numbers, ranges of numbers, names; [] for any other text.

    Args:
        text: the inside of a marker.
        names: what the labels mean.
        is_bare: numbers need a word in front, as in ``(source 2)``; ``(2)`` is none.

    Example:
        >>> from ragtrace.capture.citations.names import PassageNames
        >>> from ragtrace.model import Passage
        >>> names = PassageNames([Passage(id=name, text=name, rank=1) for name in "abc"])
        >>> labels_in("1-2, 3", names), labels_in("see below", names)
        ([('a',), ('b',), ('c',)], [])
    """
    text = text.strip().strip("\"'*_")
    place, dagger, source = text.partition("†")
    if dagger:
        return _of_file_search(place, source, names)
    if not text.isdecimal() and (named := names.by_name(text, is_bare=is_bare)):
        return [named]
    bare = _KEYWORD.sub("", text).strip().strip("\"'")
    if re.fullmatch(_LIST, bare, re.IGNORECASE):
        return _numbered(bare, names) if bare != text or not is_bare else []
    known = names.by_name(bare, is_bare=is_bare) if bare != text else ()
    if known:
        return [known]
    pieces = [_KEYWORD.sub("", piece).strip("\"' ") for piece in _PIECES.split(bare)]
    if len(pieces) < 2:
        return []
    found = [_one(piece, names, is_bare=is_bare) for piece in pieces]
    return found if all(found) else []


def _of_file_search(place: str, source: str, names: PassageNames) -> list[Target]:
    """Read a marker of OpenAI's file search: message and place from 0, then the file's name."""
    known = names.by_name(source)
    if known:
        return [known]
    message, _, number = place.rpartition(":")
    is_from_zero = bool(message) and number.strip().isdecimal()
    return labels_in(str(int(number) + 1) if is_from_zero else place, names)


def _one(piece: str, names: PassageNames, *, is_bare: bool) -> Target:
    if piece.isdecimal() and len(piece) <= 4:
        return () if is_bare else names.by_number(piece)
    return names.by_name(piece, is_bare=is_bare)


def _numbered(text: str, names: PassageNames) -> list[Target]:
    found: list[Target] = []
    for first, last in _RANGE.findall(text):
        numbers = range(int(first), int(last or first) + 1)
        if not numbers or len(numbers) > _MOST_OF_RANGE:
            numbers = range(int(first), int(first) + 1)
        found.extend(names.by_number(str(number)) for number in numbers)
    return found if all(found) else []


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text; markers behind a full stop belong to the sentence before.

    Example:
        >>> [one.replace(MARK, "*") for one in sentences(f"It is in Oslo. {MARK} Ask there, e.g. on Fridays.")]
        ['It is in Oslo. *', 'Ask there, e.g. on Fridays.']
    """
    for line in text.splitlines():
        rest = _LIST_MARK.sub("", line).strip()
        at = 0
        for end in _END.finditer(rest):
            yield rest[at : end.end()].strip()
            at = end.end()
        yield rest[at:].strip()
