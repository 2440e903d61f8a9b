"""Read which passages an answer cites, from the markers that people and models write.

An answer is cut into parts, each with the ids of the passages that it cites. What a marker means is read from the
labels in the prompt, such as ``[3]`` or ``Source 2:``, from the answer's own list of sources, and from the ids,
file names and titles of the passages. Structured answers name the ids, numbers or quotes of their sources.
"""

from __future__ import annotations

import ast
import json
import re
from bisect import bisect_right
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.capture.attribution import letters, unescaped
from ragtrace.capture.guard import guarded
from ragtrace.capture.names import (
    CITATION_HINTS,
    CITATION_TAGS,
    CITATION_WORDS,
    CITED_ID_KEYS,
    CITED_TEXT_KEYS,
    CITING_KEYS,
    LABEL_FIELDS,
    LABEL_WORDS,
    PASSAGE_NAME_KEYS,
    QUOTE_KEYS,
    SOURCE_HEADINGS,
)
from ragtrace.model import AnswerPart, shared_id
from ragtrace.text import MAX_LITERAL_CHARS, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ragtrace.model import Passage, RagRecord

_MARK = "\ue000"  # stands for a marker in a text; of the private use area

# -- parts of an answer --

_MAX_PARTS = 200  # as many sentences as a judge reads
_LABELS_CHARS = 300_000  # of the last prompts, searched for labels: about 12 ms
_MOST_REPLIES = 4  # the last ones are read as structured output
_MAX_QUOTE_CHARS = 64
_MAX_ROW_CHARS = 300  # of a list of sources; a longer line is text
_MOST_ROWS = 1_000  # of such a list, and labels that one statement cites
_MOST_MARKERS = 4_096  # of a text; what is behind them stays text
_MOST_LABEL_CHARS = 2_048  # of what one marker or row names: a longer text is cut
_LISTS = re.compile(
    rf"^[ \t]*(?:#{{1,6}}[ \t]*)?[*_]*(?:{SOURCE_HEADINGS})[*_]*"
    r"(?:[ \t]*:[*_]*|[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_DEFINITION = re.compile(r"^[ \t]*\[\^?([^\[\]\n]{1,64})\]:[ \t]*(.+)$", re.MULTILINE)
_LISTED = re.compile(r"^[ \t*•-]*(?:[\[【(]\^?(\w[\w.\-]{0,63})[\]】)]|(\d{1,3})[.):])[ \t:*-]*(.*)$")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)
_FROM_ZERO = re.compile(r"[\[【]0[\],】]")


def parts_of_run(
    answer: str,
    contexts: Sequence[Passage],
    others: Sequence[Passage] = (),
    prompts: Sequence[str] = (),
    replies: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
) -> tuple[AnswerPart, ...]:
    """Return the parts of a run's answer; () when it cites nothing. Never raises.

    Args:
        answer: the answer.
        contexts: passages that were shown to the model, in the order of the prompt.
        others: further passages of the run.
        prompts: rendered prompts, in order; labels in front of passages are read from the last ones.
        replies: what models replied; structured output with citations may hold more than the answer.
        labels: ids of passages by the labels that they are known to have in the prompt.
    """
    return _parts_of_run(answer, contexts, others, prompts, replies, labels or {}) or ()


@guarded
def _parts_of_run(
    answer: str,
    contexts: Sequence[Passage],
    others: Sequence[Passage],
    prompts: Sequence[str],
    replies: Iterable[str],
    labels: Mapping[str, str],
) -> tuple[AnswerPart, ...]:
    said = answer.strip()
    holding = [reply for reply in replies if "{" in reply and reply.strip() != said]
    if not said or not (_may_cite(answer) or "{" in answer or holding):
        return ()
    names = _PassageNames(
        contexts, others, list(_last(prompts)), is_from_zero=_FROM_ZERO.search(answer) is not None
    )
    for label, name in labels.items():
        names.list_label(label, names.by_id(name))
    parts = _parts(answer, names)
    for reply in holding[: -_MOST_REPLIES - 1 : -1] if not parts else ():
        parts = _from_structure(_parsed(reply), names, said)
        if parts:
            break
    return tuple(parts[:_MAX_PARTS])


def _last(prompts: Sequence[str]) -> Iterator[str]:
    room = _LABELS_CHARS
    for prompt in reversed(prompts):
        room -= len(prompt)
        if room < 0:
            return
        yield prompt


def cited_parts(answer: str, contexts: Sequence[Passage]) -> tuple[AnswerPart, ...]:
    """Return the sentences of an answer with the passages they cite; () when it cites nothing.

    A marker that means no passage stays as a citation of its own text. No passage has that id, so the metric counts
    it as wrong.

    Example:
        >>> from ragtrace.model import Passage
        >>> contexts = [Passage(id="faq", text="Oslo.", rank=1), Passage(id="log", text="Moved in 2026.", rank=2)]
        >>> for part in cited_parts("The lab is in Oslo [1]. It moved in 2026 [2][7].", contexts):
        ...     print(part.text, part.citations)
        The lab is in Oslo. ('faq',)
        It moved in 2026. ('log', '7')
    """
    return parts_of_run(answer, contexts)


def with_cited_parts(record: RagRecord) -> RagRecord:
    """Return a record with the parts of its answer read from markers, where it has none and cites something."""
    if record.answer_parts or not record.answer:
        return record
    parts = parts_of_run(record.answer, record.contexts, record.pool("retrieved"))
    return replace(record, answer_parts=parts) if parts else record


def _parts(answer: str, names: _PassageNames) -> list[AnswerPart]:
    answer = answer.replace(_MARK, " ")
    structure = _parsed(answer) if answer.lstrip()[:1] in {"{", "[", "`"} else None
    if structure is not None and (parts := _from_structure(structure, names)):
        return parts
    body, listed = _without_lists(answer, names)
    text, cited = _marked(body, names)
    if cited:
        return list(islice(_sentences(text, cited, names), _MAX_PARTS))
    plain = " ".join(body.split())
    if not listed or not any(map(str.isalnum, plain)):
        return []
    return [AnswerPart(text=plain, citations=_chosen(listed, plain, names))]


def _without_lists(answer: str, names: _PassageNames) -> tuple[str, list[_Target]]:
    """Return an answer without its list of sources, and what the list cites; its labels become names."""
    cited: list[_Target] = []

    left = _MOST_ROWS

    def define(found: re.Match[str]) -> str:
        nonlocal left
        left -= 1
        if left >= 0:
            cited.extend(_listed(found[1], found[2], names))
        return ""

    body = _DEFINITION.sub(define, answer)
    head = next((head for head in reversed([*_LISTS.finditer(body)]) if head.start()), None)
    rows = body[head.end() :].splitlines()[:_MOST_ROWS] if head else []
    if head is None or any(len(row) > _MAX_ROW_CHARS for row in rows):
        return body, cited
    for row in rows:
        cited.extend(_of_row(row.strip(" \t*•-."), names))
    return body[: head.start()], cited


def _of_row(row: str, names: _PassageNames) -> list[_Target]:
    text, found = _marked(row, names)
    if found and (len(found) > 1 or not any(map(str.isalnum, text))):
        return [target for one in found for target in one]
    labelled = _LISTED.match(row)
    if labelled and labelled[3].strip():
        return _listed(labelled[1] or labelled[2], labelled[3], names)
    return _named(row, names)


def _listed(label: str, rest: str, names: _PassageNames) -> list[_Target]:
    """Return what one row of a list of sources cites, and make its label a name of it."""
    found = _named(rest, names)
    if not found:
        return _labels_in(label, names)
    names.list_label(label, found[0])
    return found[:1]


def _named(text: str, names: _PassageNames) -> list[_Target]:
    """Return what a text in a list of sources cites: wholly a label, or a text with names in it."""
    if found := _labels_in(text, names):
        return found
    words = [word.strip("()[]<>,;:\"'`*") for word in text[:_MOST_LABEL_CHARS].split()]
    return [target for word in words if word and not word.isdecimal() and (target := names.by_name(word))]


def _sentences(text: str, cited: Sequence[Sequence[_Target]], names: _PassageNames) -> Iterator[AnswerPart]:
    at = 0
    held: AnswerPart | None = None
    early: list[_Target] = []
    for sentence in _split_sentences(_HEADING.sub(_if_marked, text)):
        n = sentence.count(_MARK)
        targets = [target for one in cited[at : at + n] for target in one]
        at += n
        *marked, last = sentence.split(_MARK)
        plain = "".join((*(part.rstrip(" \t") for part in marked), last)).strip()
        if not any(map(str.isalnum, plain)):  # markers alone, on a line of their own
            if held is None:
                early.extend(targets)
            elif targets and len(held.citations) < _MOST_ROWS:
                more = _chosen(targets, held.text, names)
                held = replace(held, citations=tuple(dict.fromkeys((*held.citations, *more))))
            continue
        if held is not None:
            yield held
        held = AnswerPart(text=plain, citations=_chosen([*early, *targets], plain, names))
        early = []
    if held is not None:
        yield held


def _if_marked(heading: re.Match[str]) -> str:
    return heading[0] if _MARK in heading[0] else ""


def _chosen(targets: Iterable[_Target], sentence: str, names: _PassageNames) -> tuple[str, ...]:
    each = dict.fromkeys(targets)
    is_open = any(len(target) > 1 for target in each)
    said = frozenset(_WORDS.findall(folded(sentence))) if is_open else frozenset()
    return tuple(dict.fromkeys(names.closest(target, said) for target in each))


def _from_structure(value: Any, names: _PassageNames, answer: str | None = None) -> list[AnswerPart]:
    """Return a part for each text with citations in structured output."""
    parts: list[AnswerPart] = []
    for text, items in _statements(value):
        if len(parts) >= _MAX_PARTS:
            break
        if answer is not None and text.strip() not in answer:
            continue
        body, cited = _marked(text, names)
        if cited:
            parts.extend(islice(_sentences(body, cited, names), _MAX_PARTS))
            continue
        targets = [target for item in items[:_MOST_ROWS] for target in _of_item(item, names)]
        parts.append(AnswerPart(text=text, citations=_chosen(targets, text, names)))
    return parts if any(part.citations for part in parts) else []


def _of_item(item: Any, names: _PassageNames) -> list[_Target]:
    label, quote = _label_and_quote(item)
    found = _labels_in(label, names) if label else []
    if found:
        return found
    quoted = names.by_quote(quote or label)
    return [quoted] if quoted else [((label or quote)[:_MAX_QUOTE_CHARS],)] if label or quote else []


# -- markers and sentences --

_WORD = f"(?:{CITATION_WORDS})"
# Blanks are taken whole (`*+`): two runs of them that stand side by side could be divided in as many ways.
_LIST = rf"\d{{1,4}}(?:\s*+(?:,?\s*+\band\b|[,;/&+–—-]|\bto\b)\s*+(?:{_WORD}\s*+)?\#?\d{{1,4}})*"
_NUMBERS = re.compile(_LIST, re.IGNORECASE)  # of at most 2,048 characters
_MARKER = re.compile(
    rf"""(?=[`【¹²³scdper]|<[scrd]|\[\[?[^\[\]\n]|\([^()\n])(?:(?=`)(?P<code>```.*?(?:```|\Z)|`[^`\n]+`)
    |<sup>\s*+\[?(?P<sup>{_LIST})\]?\s*+</sup>
    |<(?P<tag>{CITATION_TAGS})\b(?P<facts>[^<>\n]{{0,160}})>(?:(?P<inner>[^<>]*)</(?P=tag)>)?
    |\[\[?\^?(?P<square>[^\[\]\n]{{1,200}})\]?\](?:\((?P<target>[^()\s]{{1,500}})\))?
    |【(?P<wide>[^【】\n]{{1,200}})】
    |\((?P<round>[^()\n]{{1,200}})\)
    |(?=[scdper])(?<![^\W_])(?P<bare>{_WORD}\s{{1,2}}(?:no\.?\s?|number\s|\#)?(?P<numbers>{_LIST}))(?![^\W_]|[.:]\d)
    |(?=[¹²³])(?:(?<=[.,;:!?)\]"”’])|(?<=[^\W\d_]{{3}}))(?P<raised>[¹²³][¹²³⁰⁴-⁹]*))""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_HINTS = ("[", "【", "(", "<", "¹", "²", "³", *CITATION_HINTS)
_KEYWORD = re.compile(  # of at most 2,048 characters
    rf"^(?:(?:see|cf\.?)\s+)?(?:{_WORD}|cite|id|number|no\.?)[\s:#_=-]+"
    r"|^[#@^]\s*",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""=\s*["']?([^"'<>\s/]+)|^\s+\[?(\d{1,3})\]?\s*/?$""")
_RANGE = re.compile(r"(\d{1,4})(?:\s*+(?:[–—-]|\bto\b)\s*+#?(\d{1,4}))?")  # of at most 2,048 characters
_PIECES = re.compile(  # of at most 2,048 characters
    r"(?:(?<!\s)\s++)?[,;|]\s*+|(?<!\s)\s++(?:and|&)\s++"
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_MOST_OF_RANGE = 50
_LIST_MARK = re.compile(r"^\s*(?:[-*•>]+|\d{1,3}[.)])\s+")
_BEHIND = (  # what ends a sentence
    rf"(?:[.!?…][\"')\]”’»*_]*(?:[ \t]*{_MARK}(?![ \t]+[a-z]))*(?=\s+[^\sa-z])"
    rf"|[.!?…][\"')\]”’»*_]*{_MARK}+(?=[^\s{_MARK}])|[。！？][」』”’）]*(?:[ \t]*{_MARK})*)"
)
# No sentence ends behind a letter, a stop and a letter ("e.g"), or a word of two letters with a capital ("Dr").
# It is looked for first: what stands before a full stop takes the longer time.
_END = re.compile(  # of at most 65,536 characters
    rf"(?=[.!?…。！？])(?={_BEHIND})(?<!\b[^\W\d_]\.[^\W\d_])(?<!\b[A-Z][a-z]){_BEHIND}"
)


def _may_cite(answer: str) -> bool:
    """Tell whether a text holds anything that may be a citation marker.

    Example:
        >>> _may_cite("In Oslo [1]."), _may_cite("In Oslo.")
        (True, False)
    """
    return any(map(answer.__contains__, _HINTS))  # 30 times faster than one pattern


def _marked(text: str, names: _PassageNames) -> tuple[str, list[list[_Target]]]:
    """Return a text with `_MARK` in place of each marker, and what each of them cites, in order.

    A mention in words (``Source 2``) stays in the text, with `_MARK` behind it.

    Example:
        >>> from ragtrace.model import Passage
        >>> text, cited = _marked("In Oslo [1].", _PassageNames([Passage(id="a", text="Oslo.", rank=1)]))
        >>> text.replace(_MARK, "*"), cited
        ('In Oslo *.', [[('a',)]])
    """
    cited: list[list[_Target]] = []
    left = _MOST_MARKERS

    def replaced(found: re.Match[str]) -> str:
        nonlocal left
        left -= 1
        targets = _targets(found, names) if left >= 0 else ()
        if not targets:
            return found[0]
        cited.append(targets)
        words = found["bare"] or (found["inner"] if found["tag"] and _ATTRIBUTE.search(found["facts"]) else "")
        return f"{words or ''}{_MARK}"

    return _MARKER.sub(replaced, text.replace(_MARK, " ")), cited


def _targets(found: re.Match[str], names: _PassageNames) -> list[_Target]:
    if found["code"]:
        return []
    if found["raised"]:
        return _numbered(found["raised"].translate(_RAISED), names)
    if found["sup"] or found["numbers"]:
        return _numbered(found["sup"] or found["numbers"], names)
    if found["tag"]:
        fact = _ATTRIBUTE.search(found["facts"])
        return _labels_in((fact[1] or fact[2]) if fact else found["inner"] or "", names)
    if found["round"]:
        return _labels_in(found["round"], names, is_bare=True)
    linked = names.by_name(found["target"]) if found["target"] else ()
    return [linked] if linked else _labels_in(found["square"] or found["wide"], names)


def _labels_in(text: str, names: _PassageNames, *, is_bare: bool = False) -> list[_Target]:
    """Return what the inside of a marker cites: numbers, ranges of numbers, names; [] for any other text.

    Args:
        text: the inside of a marker.
        names: what the labels mean.
        is_bare: numbers need a word in front, as in ``(source 2)``; ``(2)`` is none.

    Example:
        >>> from ragtrace.model import Passage
        >>> names = _PassageNames([Passage(id=name, text=name, rank=1) for name in "abc"])
        >>> _labels_in("1-2, 3", names), _labels_in("see below", names)
        ([('a',), ('b',), ('c',)], [])
    """
    text = text[:_MOST_LABEL_CHARS].strip().strip("\"'*_")
    place, dagger, source = text.partition("†")
    if dagger:
        return _of_file_search(place, source, names)
    if not text.isdecimal() and (named := names.by_name(text, is_bare=is_bare)):
        return [named]
    bare = _KEYWORD.sub("", text).strip().strip("\"'")
    if _NUMBERS.fullmatch(bare):
        return _numbered(bare, names) if bare != text or not is_bare else []
    known = names.by_name(bare, is_bare=is_bare) if bare != text else ()
    if known:
        return [known]
    pieces = [_KEYWORD.sub("", piece).strip("\"' ") for piece in _PIECES.split(bare)]
    if len(pieces) < 2:
        return []
    found = [_one(piece, names, is_bare=is_bare) for piece in pieces]
    return found if all(found) else []


def _of_file_search(place: str, source: str, names: _PassageNames) -> list[_Target]:
    """Read a marker of OpenAI's file search: message and place from 0, then the file's name."""
    known = names.by_name(source)
    if known:
        return [known]
    message, _, number = place.rpartition(":")
    is_from_zero = bool(message) and number.strip().isdecimal()
    return _labels_in(str(int(number) + 1) if is_from_zero else place, names)


def _one(piece: str, names: _PassageNames, *, is_bare: bool) -> _Target:
    if piece.isdecimal() and len(piece) <= 4:
        return () if is_bare else names.by_number(piece)
    return names.by_name(piece, is_bare=is_bare)


def _numbered(text: str, names: _PassageNames) -> list[_Target]:
    found: list[_Target] = []
    for first, last in _RANGE.findall(text[:_MOST_LABEL_CHARS]):
        numbers = range(int(first), int(last or first) + 1)
        if not numbers or len(numbers) > _MOST_OF_RANGE:
            numbers = range(int(first), int(first) + 1)
        found.extend(names.by_number(str(number)) for number in numbers)
    return found if all(found) else []


def _split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text; markers behind a full stop belong to the sentence before.

    Example:
        >>> text = f"It is in Oslo. {_MARK} Ask there, e.g. on Fridays."
        >>> [one.replace(_MARK, "*") for one in _split_sentences(text)]
        ['It is in Oslo. *', 'Ask there, e.g. on Fridays.']
    """
    for line in filter(str.strip, text.splitlines()):
        rest = _LIST_MARK.sub("", line).strip()
        at = 0
        for end in _END.finditer(rest, 0, _MOST_CHARS):
            yield rest[at : end.end()].strip()
            at = end.end()
        yield rest[at:].strip()


# -- structured answers --

_MOST_CHARS = 65_536
_DEPTH = 3


def _parsed(text: str) -> Any:
    """Return the object that a text holds as JSON or as a Python literal, None where it holds none.

    Example:
        >>> _parsed('Answer({"answer": "Oslo", "citations": [1]})')
        {'answer': 'Oslo', 'citations': [1]}
    """
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    end = max(text.rfind("}"), text.rfind("]"))
    if start < 0 or end <= start or len(text) > _MOST_CHARS:
        return None
    inside = text[start : end + 1]
    with suppress(ValueError, RecursionError):
        return json.loads(inside)
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(inside) if len(inside) <= MAX_LITERAL_CHARS else None
    return None


def _statements(value: Any, depth: int = 0) -> list[tuple[str, list[Any]]]:
    """Return texts with what each of them cites, from an object with such fields.

    Example:
        >>> _statements({"answer": "Oslo", "citations": [{"source_id": 2, "quote": "in Oslo"}]})
        [('Oslo', [{'source_id': 2, 'quote': 'in Oslo'}])]
    """
    if depth > _DEPTH:
        return []
    if isinstance(value, list):
        return [one for item in value if isinstance(item, dict) for one in _statements(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    text = next((value[key] for key in CITED_TEXT_KEYS if isinstance(value.get(key), str)), None)
    cited = next((value[key] for key in CITING_KEYS if key in value and value[key] is not None), None)
    if text is not None and cited is not None:
        return [(text, cited if isinstance(cited, list) else [cited])]
    return [one for item in value.values() if isinstance(item, list | dict) for one in _statements(item, depth + 1)]


def _label_and_quote(item: Any) -> tuple[str, str]:
    """Return the label and the quote of one citation, "" for what it has not.

    Example:
        >>> _label_and_quote({"source_id": 2, "quote": "in Oslo"}), _label_and_quote("faq.md")
        (('2', 'in Oslo'), ('faq.md', ''))
    """
    if isinstance(item, str | int):
        return str(item), ""
    if not isinstance(item, dict):
        return "", ""
    label = next((item[key] for key in CITED_ID_KEYS if isinstance(item.get(key), str | int)), "")
    quote = next((item[key] for key in QUOTE_KEYS if isinstance(item.get(key), str)), "")
    return str(label), quote


# -- names of passages --

_MOST_MARKED = 99  # a higher number in brackets is a year or a code, unless a passage has it
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\W_]{3,}")

# Ids of the passages that one marker may mean; one id that no passage has is a wrong marker.
_Target = tuple[str, ...]


class _PassageNames:
    """Finds the passages behind the numbers and names in an answer's markers.

    A number means the passage that the prompt, or the answer's own list of sources, labels with it. Without such
    labels it means the position in the prompt, from 1, or from 0 where the answer cites 0.

    Args:
        contexts: passages that were shown to the model, in the order of the prompt.
        others: further passages of the run; a citation of one is a citation of a passage that was not shown.
        prompts: rendered prompts, the last one first.
        is_from_zero: unlabelled numbers count from 0.
    """

    def __init__(
        self,
        contexts: Sequence[Passage],
        others: Iterable[Passage] = (),
        prompts: Iterable[str] = (),
        *,
        is_from_zero: bool = False,
    ) -> None:
        self._contexts = contexts
        self._first = 0 if is_from_zero else 1
        self._listed: dict[str, _Target] = {}
        self._names: dict[str, list[str]] = {}
        self._ids: set[str] = set()
        for passage in (*contexts, *others):
            self._ids.add(passage.id)
            for name in {passage.id, shared_id(passage.id), *_names_of(passage)}:
                ids = self._names.setdefault(_name_key(name), [])
                if passage.id not in ids:
                    ids.append(passage.id)
        self._shapes = {_DIGITS.sub("0", name) for name in self._names if _DIGITS.search(name)}
        self._prompts = prompts
        self._words: dict[int, frozenset[str]] = {}  # of contexts, by their place

    @cached_property
    def _letters(self) -> list[bytes]:
        return [letters(passage.text) for passage in self._contexts]

    @cached_property
    def _labels(self) -> dict[str, _Target]:
        return next(filter(None, (_prompt_labels(prompt, self._contexts) for prompt in self._prompts)), {})

    def list_label(self, label: str, target: _Target) -> None:
        """Take a label from the answer's own list of sources."""
        self._listed.setdefault(_name_key(label), target)

    def by_id(self, name: str) -> _Target:
        """Return the passages of an id: itself, or the chunks that share it."""
        return (name,) if name in self._ids else tuple(self._names.get(_name_key(name), ())) or (name,)

    def by_number(self, label: str) -> _Target:
        """Return the passage behind a number; () for a number that can be no citation.

        Example:
            >>> from ragtrace.model import Passage
            >>> names = _PassageNames([Passage(id="a", text="Oslo.", rank=1)])
            >>> names.by_number("1"), names.by_number("2"), names.by_number("2026")
            (('a',), ('2',), ())
        """
        label = label.lstrip("0") or "0"
        known = self._listed.get(label) or self._labels.get(label)
        if known:
            return known
        place = int(label) - self._first
        if not self._labels and 0 <= place < len(self._contexts):
            return (self._contexts[place].id,)
        if label in self._names:
            return tuple(self._names[label])
        return (label,) if int(label) <= _MOST_MARKED else ()

    def by_name(self, label: str, *, is_bare: bool = False) -> _Target:
        """Return the passages behind a name; () for a text that is no name.

        Args:
            label: what may be a name.
            is_bare: names of passages count, labels of the prompt do not.

        Example:
            >>> from ragtrace.model import Passage
            >>> passage = Passage(id="doc-1", text="Oslo.", rank=1, metadata={"source": "docs/faq.md"})
            >>> names = _PassageNames([passage])
            >>> names.by_name("faq.md"), names.by_name("doc-7"), names.by_name("see above")
            (('doc-1',), ('doc-7',), ())
        """
        key = _name_key(label)
        if not key:
            return ()
        known = self._listed.get(key) or tuple(self._names.get(key, ()))
        if not known and not is_bare:
            known = self._labels.get(key, ())
        if known or key.isdecimal():
            return known
        # An id of the same form as the passages' ids, which no passage has, is an invented one.
        return (label.strip(),) if _DIGITS.sub("0", key) in self._shapes and _DIGITS.search(key) else ()

    def by_quote(self, quote: str) -> _Target:
        """Return the passages that hold a quoted text."""
        said = letters(quote)
        return tuple(
            one.id for one, text in zip(self._contexts, self._letters, strict=True) if said and said in text
        )

    def closest(self, target: _Target, said: frozenset[str]) -> str:
        """Return the one of several passages, such as chunks of one file, that is closest to a sentence's words."""
        if len(target) == 1:
            return target[0]
        near = [place for place, passage in enumerate(self._contexts) if passage.id in target]
        if not near:
            return target[0]
        for place in near:
            if place not in self._words:
                self._words[place] = frozenset(_WORDS.findall(folded(self._contexts[place].text)))
        return self._contexts[max(near, key=lambda place: len(said & self._words[place]))].id


def _names_of(passage: Passage) -> set[str]:
    found = [
        str(value) for key, value in passage.metadata.items() if key in PASSAGE_NAME_KEYS and value is not None
    ]
    found.extend([passage.source] if passage.source is not None else [])
    ends = [name.replace("\\", "/").rstrip("/").rpartition("/")[2] for name in found]
    return {*filter(None, found), *(end for end in ends if end and not end.isdecimal())}


def _name_key(name: str) -> str:
    return folded(" ".join(name.split()).strip("\"'`*"))


# -- labels in a prompt --

_LABEL_WORD = f"(?:{LABEL_WORDS})"
_NAME = r"[^\W_][\w.\-/:]{0,63}?"
_BEGIN = r"^[ \t#*>({\-]*+"
# Each finds labels of one kind. A kind counts only where every passage of the prompt has a label of its own.
_KINDS = (
    re.compile(rf"{_BEGIN}[\[【]\^?(?:{_LABEL_WORD}[ :#_-]*+)?({_NAME})[\]】]", re.MULTILINE | re.IGNORECASE),
    re.compile(
        rf"{_BEGIN}(?=[\[<scdpern])[\[<]?(?=[scdpern]){_LABEL_WORD}"
        rf"[ \t_]*+(?:id|index|number|no\.?)?[ \t]*+[:=#]*+[ \t]*+[\"']?#?(\d{{1,4}})\b",
        re.MULTILINE | re.IGNORECASE,
    ),
    re.compile(rf"[=:] *+[\"']?({_NAME})(?=[\"'\s,;>}}\])]|$)", re.MULTILINE),
    re.compile(r"^[ \t]*+\(?(\d{1,3})[.):][ \t]", re.MULTILINE),
)
_FIELD = _KINDS[2]  # of XML or JSON; looked for behind its = or :, since names of fields begin at any letter
_HEAD_CHARS, _HEAD_BYTES, _SAMPLE_BYTES = 160, 32, 24
_MOST_LABELS = 2_000


def _prompt_labels(prompt: str, passages: Sequence[Passage]) -> dict[str, tuple[str, ...]]:
    """Return the ids of passages by the labels in front of them; empty where not every passage has one.

    A label in front of a part of a passage, as in a citation engine's prompt, is a label of that passage.

    Example:
        >>> from ragtrace.model import Passage
        >>> _prompt_labels("[3] The lab is in Oslo.", [Passage(id="a", text="The lab is in Oslo.", rank=1)])
        {'3': ('a',)}
    """
    text = unescaped(prompt)
    kinds = (_labelled(text, kind, passages) for kind in _KINDS)
    found = next(filter(None, kinds), {})
    return {label: (name,) for label, name in found.items()}


def _labelled(prompt: str, kind: re.Pattern[str], passages: Sequence[Passage]) -> dict[str, str]:
    found_marks = (mark for mark in kind.finditer(prompt) if kind is not _FIELD or _is_id(prompt, mark))
    marks = list(islice(found_marks, _MOST_LABELS))
    if not marks or not passages:
        return {}
    ends = [*(mark.start() for mark in marks[1:]), len(prompt)]
    pieces = [letters(prompt[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    owners = _owners(pieces, passages)
    if owners is None:
        return {}
    found = {_label_key(marks[piece][1]): name for piece, name in owners.items()}
    if len(found) < len(owners):  # one label for several passages labels none
        return {}
    texts = {passage.id: letters(passage.text) for passage in passages} if len(marks) > len(owners) else {}
    for mark, piece in zip(marks, pieces, strict=True):
        part = _part_of(piece, texts) if _label_key(mark[1]) not in found else None
        if part is not None:
            found[_label_key(mark[1])] = part
    return found


def _is_id(prompt: str, mark: re.Match[str]) -> bool:
    return prompt[max(0, mark.start() - 16) : mark.start()].rstrip(" \"'").lower().endswith(LABEL_FIELDS)


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


def _part_of(piece: bytes, texts: Mapping[str, bytes]) -> str | None:
    """Return the passage, of some by their letters, of which a piece of a prompt shows a later part."""
    sample = piece[:_SAMPLE_BYTES]
    if len(sample) < _SAMPLE_BYTES:
        return None
    return next((name for name, text in texts.items() if sample in text), None)


def _label_key(label: str) -> str:
    return folded(label.lstrip("0")) or "0"
