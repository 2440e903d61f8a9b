"""Removes markup, citations, courtesies and source lists from an answer."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.addresses import ADDRESS, is_address, is_phone
from ragtrace.judges.offline.marks import ADDRESSED_MARK, FILE, without_marks
from ragtrace.judges.offline.placed import Placed, composed_in_place, quoted
from ragtrace.judges.offline.words import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ANSWER_KEYS = ("answer", "response", "output", "result", "text", "content", "final_answer", "message")

MOST_CHARS = 32_768  # of an answer that are read, as no more than 200 sentences are
_UNSEEN = re.compile("[\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\ufe0f]++")
_BLANK = re.compile("[\u00a0\u2007\u202f\t]")
_NEW_LINE = re.compile(r"\n")
_BAR = re.compile(r"\|")
_JSON_WORD = re.compile(r'"(?:[^"\\]++|\\.)*+"|-?\d[\d.eE+-]*+|true|false|null|NaN|-?Infinity', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|.)")
_GAP = re.compile(r"[^\S\n]{40,}+")  # of at most 8,192 characters: a window
_EMOJI = re.compile(  # of at most 8,192 characters: a window
    "[\U0001f000-\U0001faff\U0001f1e6-\U0001f1ff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u25a0-\u25ff\u2190-\u21ff]"
)
_FENCE = re.compile(  # of at most 32,768 characters: an answer
    r"^[ ]{0,3}(`{3,}+|~{3,}+)[ ]*+([\w+#.-]*+)[^\n]*+\n(.*?)(?:^[ ]{0,3}\1[`~]*+[ ]*+$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PROSE_LINE = re.compile(r"^[A-Z\"'(\[*#>|-].{15,}[.!?:|]$")
_CODE_SIGN = re.compile(r"[{};=<>$\\]|\w\(|^\s*+(?:#!|//|--)")  # of at most 32,768 characters: an answer
_COMMENT = re.compile(r"^\s*+(?:#|//|--|/\*|\*|<!--)(?:\s|$)")
_PROSE_LANGUAGES = {"text", "txt", "plaintext", "plain", "markdown", "md"}
_OPENING = re.compile(r"\s*+(`{3,}+|~{3,}+)[^\n]*+\n")
_CODE_TAG = re.compile(r"<(pre|code|kbd|samp)\b[^<>]{0,200}+>", re.IGNORECASE)
_ROW_TAG = re.compile(r"<(tr)\b[^<>]{0,200}+>", re.IGNORECASE)
_END_TAG = re.compile(r"</(pre|code|kbd|samp|tr)>", re.IGNORECASE)
_CELL_TAG = re.compile(r"</?t[dh]\b[^<>]{0,200}+>")
_BODY_CELL = re.compile(r"<td\b", re.IGNORECASE)
_ANY_TAG = re.compile(r"</?\w++[^<>\n]{0,200}+>")  # of at most 8,192 characters: a window
_HOLES = (0xE000, 0xF8FF)  # characters of the private use area, one for each part that was set apart
_HOLE = re.compile("[\ue000-\uf8ff]")


def _kept(found: re.Match[str], text: Placed) -> Placed:
    """Return the first group of a match."""
    return text[slice(*found.span(1))]


# Marks of citations and pictures, whose addresses claim nothing.
_CITED = (  # of at most 8,192 characters: a window
    (re.compile(ADDRESSED_MARK), " "),
    (re.compile(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,600}\)"), " "),
    (re.compile(r"\[([^\[\]\n]{1,400})\]\[[^\[\]\n]{0,40}\](?!\[)(?=[ ,;:]?[a-z])"), _kept),
)
_TAGS_AND_EMPHASIS = (  # of at most 8,192 characters: a window
    (
        re.compile(
            r"</?(?:br|p|div|li|tr|ul|ol|h[1-6]|table|tbody|thead|blockquote|pre)\b[^<>]{0,200}/?>",
            re.IGNORECASE,
        ),
        "\n",
    ),
    (
        re.compile(
            r"</?(?:b|i|em|strong|u|s|a|span|code|td|th|sup|sub|small|mark|img|hr|answer)\b[^<>]{0,200}/?>",
            re.IGNORECASE,
        ),
        " ",
    ),
    (re.compile(r"\*\*|__|~~|`+"), ""),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), _kept),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), _kept),
)


_INLINE_CODE = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]{1,300})\1(?!`)")  # of at most 8,192 characters: a window
_TARGET = r"(?:mailto:|tel:)?(?P<link>[^()\s]{0,500}(?:\([^()\s]{0,100}\)[^()\s]{0,100})?)"
# Addresses behind a title. What only points ("read more"), or is in brackets with its address, has no words.
_TITLED = (  # of at most 8,192 characters: a window
    re.compile(rf"\(\s?\[(?P<title>[^\[\]\n]{{1,200}})\]\({_TARGET}(?: \"[^\"\n]{{0,100}}\")?\)\s?\)"),
    re.compile(rf"\[(?P<title>[^\[\]\n]{{1,400}})\]\({_TARGET}(?: \"[^\"\n]{{0,100}}\")?\)"),
    re.compile(rf"\[(?P<title>\[[^\[\]\n]{{1,40}}\])\]\({_TARGET}\)"),
    re.compile(
        rf"<a\s[^<>]{{0,200}}?href=[\"']{_TARGET}[\"'][^<>]{{0,200}}>(?P<title>[^<>\n]{{0,60}})</a>",
        re.IGNORECASE,
    ),
    re.compile(r"<(?P<title>)(?:mailto:)?(?P<link>[^<>\s]{1,500}(?:://|@)[^<>\s]{1,500})>", re.IGNORECASE),
)
_POINTER = re.compile(
    r"\W{0,3}(?:(?:read|learn|see|find out|show)? ?(?:more|here|link|source))?\W{0,3}$", re.IGNORECASE
)

_GAP_BEFORE_STOP = re.compile(r" (?=[.,;:!?](?:\s|$))")
_SPACES = re.compile(r"[ ]{2,}")

_QUOTE = re.compile(r"^\s*+(?:>[ ]?)+")
_LIST_MARK = re.compile(
    r"^\s*+(?:[-*•·\u2013—‣▪◦●○+][ ]+|\(?\d{1,3}[.)][ ]+|\(?[a-zA-Z]\)[ ]+|[a-z]\.[ ]+|\([ivx]{1,4}\)[ ]+|"
    r"[Ss]tep \d{1,2}\s*[:.)\u2013-]\s*)+(?:\[[ xX]\][ ]+)?"
)
_RULE = re.compile(r"^\s*+(?:[-*_=~][ ]*+){3,}+$")
_UNDERLINE = re.compile(r"\s*+(?:={3,}+|-{3,}+)\s*+")
_HEADING = re.compile(r"^\s*+#{1,6}[ ]+")
_BOLD_LINE = re.compile(r"^\s*+(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__):?\s*$")
_TABLE_LINE = re.compile(r"^\s*+\|.*\|\s*$")  # of at most 8,192 characters: a window
_TABLE_RULE = re.compile(r"^\s*+(?:\|\s*+)?:?-{2,}+:?\s*+(?:\|\s*+:?-{2,}+:?\s*+)*+\|?\s*+$")
_INDEX_CELL = re.compile(r"^(?:#|no\.?|nr\.?|\d{1,3}\.?)$", re.IGNORECASE)
_SOURCES_LINE = re.compile(  # of at most 8,192 characters: a window
    r"^\W*(?:sources?|references?|citations?|bibliography|footnotes?|further reading|works cited|see also)"
    r"(?: (?:used|cited))?\W*$",
    re.IGNORECASE,
)
_SOURCE_LINE = re.compile(  # of at most 8,192 characters: a window
    r"^\W*(?:sources?|references?|citations?|cited from|file|document|page)(?: used)?\s*\W?:\W+.{0,200}$",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"^\s*+(?:[-*•]|\[?\^?\d{1,3}[\].):]|\[[^\]]+\]|https?:|.{0,60}$)")
_SIGN_OFF = re.compile(  # of at most 8,192 characters: a window
    r"^\W*(?:(?:best|kind|kindest|warm|many)? ?(?:regards|wishes)|sincerely|yours (?:truly|sincerely|faithfully)|"
    r"cheers|many thanks|thanks|thank you|respectfully)\W*$",
    re.IGNORECASE,
)
_ENDS = (".", "!", "?", ":", ";", ".”", '."')


class Apart(NamedTuple):
    """A link, a phone number or a piece of code of an answer.

    Attributes:
        shown: as it reads.
        exact: the part of it that counts to the letter; "" where it is prose.
        end: the place in the answer behind it, with its brackets.
        is_code: it is a piece of code.
    """

    shown: str
    exact: str
    end: int
    is_code: bool = False


class Said(NamedTuple):
    """The text of an answer, with one character in place of each part that counts to the letter.

    Attributes:
        text: without markup, citations, headings and sources.
        apart: the parts, in the order of their characters.
        is_cut: more than the first 32,768 characters were given.
    """

    text: Placed
    apart: list[Apart]
    is_cut: bool = False

    def filled(self, text: str, *, has_addresses: bool = True) -> str:
        """Return a part of the text with what was set apart from it in its place; addresses may be left out."""

        def shown(found: re.Match[str]) -> str:
            part = self.apart[ord(found[0]) - _HOLES[0]]
            return part.shown if part.is_code or has_addresses else ""

        return _HOLE.sub(shown, text) if self.apart else text

    def parts_in(self, text: str) -> list[Apart]:
        """Return the parts that were set apart from a part of the text."""
        return [self.apart[ord(found) - _HOLES[0]] for found in _HOLE.findall(text)] if self.apart else []

    def span(self, part: Placed, answer: str) -> tuple[int, int]:
        """Return where a part of the text stands in the answer."""
        ends = (place + 1 for place in part.places)
        held = (one.end for one in self.parts_in(part.text))
        return quoted(answer, min(part.places), max(*ends, *held, 0))


def said_in(answer: str, *, has_code: bool = False) -> Said:
    r"""Return what an answer says, without markup, citations, headings and sources.

    Lines stay lines. Where nothing but such parts was written, the words themselves are kept. Links, mailboxes,
    files and phone numbers are set apart, but for those of citation marks, images and lists of sources.

    Args:
        answer: as given.
        has_code: set pieces of code apart too; else code is left out.

    Example:
        >>> said = said_in("## Price\n- It costs **12 euros** [1][2]. See [the list](https://example.com/7).")
        >>> said.filled(said.text.text), [part.exact for part in said.apart]
        ('It costs 12 euros. See the list https://example.com/7.', ['https://example.com/7'])
        >>> said = said_in("Run `nova login`.", has_code=True)
        >>> said.filled(said.text.text), [part.exact for part in said.apart]
        ('Run nova login.', ['nova login'])
    """
    whole = tidied(answer)
    held = whole[:MOST_CHARS].sub(_HOLE, " ")
    apart: list[Apart] = []
    if has_code:
        held = _without_code(held, apart)
    held = _without_addresses(held, apart)
    return Said(_plain(held), apart, len(whole) > MOST_CHARS)


def _plain(text: Placed) -> Placed:
    if "```" in text.text or "~~~" in text.text:
        text = text.sub(_FENCE, lambda found, held: _prose_of(held[slice(*found.span(3))]))
    if "<tr" in text.text or "<TR" in text.text:
        text = _replaced_elements(text, _ROW_TAG, range(4_001), _spelled_row)
    written = [part for line in text.lines() for part in line.windows()]
    lines = list(_lines(written))
    if not any(line.text.strip() for line in lines):
        lines = [_without_list_mark(line.stripped(" #|>`*_=-")) for line in written]
    text = Placed.joined((line for line in lines if line.text.strip()), "\n")
    text = text.in_windows(_unmarked)
    tidy = (line.sub(_SPACES, " ").sub(_GAP_BEFORE_STOP, "").stripped() for line in text.lines())
    return Placed.joined(tidy, "\n")


def _unmarked(text: Placed) -> Placed:
    text = without_marks(text)
    for pattern, instead in _TAGS_AND_EMPHASIS:
        text = text.sub(pattern, instead)
    return text.sub(_EMOJI, " ")


def _set_apart(
    text: Placed, start: int, end: int, exact: str, apart: list[Apart], *, is_code: bool = False
) -> Placed:
    """Return the character that stands for a part of a text; the part itself where there are too many."""
    if len(apart) > _HOLES[1] - _HOLES[0]:
        return text[start:end]
    said = Said(text, apart)
    apart.append(Apart(said.filled(exact), said.filled(exact), text.places[end - 1] + 1, is_code))
    return Placed.at(chr(_HOLES[0] + len(apart) - 1), text.places[start])


def _without_code(text: Placed, apart: list[Apart]) -> Placed:
    """Return a text with one character in place of each piece of code. Lines of a block that are prose stay."""

    def code(part: Placed) -> Placed:
        line = part.stripped()
        if not line.text or _is_prose(line.text):
            return part
        return _set_apart(line, 0, len(line), line.text, apart, is_code=True)

    def block(found: re.Match[str], held: Placed) -> Placed:
        inside = held[slice(*found.span(3))]
        if found[2].lower() in _PROSE_LANGUAGES:
            return inside
        lines = (line for line in inside.lines() if line.text.strip() and not _COMMENT.match(line.text))
        return Placed.joined([*map(code, lines), inside[len(inside) :]], "\n")

    def element(inside: Placed) -> Placed:
        lines = (line for part in inside.windows() for line in part.sub(_ANY_TAG, "").lines())
        return Placed.joined((code(line) for line in lines if line.text.strip()), "\n")

    text = text.sub(_FENCE, block)
    text = _replaced_elements(text, _CODE_TAG, range(1, 20_001), element)
    return text.in_windows(
        lambda part: part.sub(_INLINE_CODE, lambda found, held: code(held[slice(*found.span(2))]))
    )


def _without_addresses(text: Placed, apart: list[Apart]) -> Placed:
    """Return a text with one character in place of each address, behind its title; citation marks go."""

    def titled(found: re.Match[str], held: Placed) -> Placed:
        title, link = held[slice(*found.span("title"))], found["link"]
        is_alone = held.text[found.start()] == "(" or _POINTER.match(title.text)
        if not is_address(link):
            return title[: 0 if is_alone else None]
        hole = _set_apart(held, found.start("link" if title.text else 0), found.end(), link, apart)
        return hole if is_alone else Placed.joined([title, Placed.at(" ", hole.places[0]), hole])

    def bare(found: re.Match[str], held: Placed) -> Placed:
        start, end = found.span()
        is_meant = found.lastgroup != "phone" or is_phone(found[0])
        return _set_apart(held, start, end, found[0], apart) if is_meant else held[start:end]

    def change(part: Placed) -> Placed:
        for pattern, instead in _CITED:
            part = part.sub(pattern, instead)
        for pattern in _TITLED:
            part = part.sub(pattern, titled)
        return part.sub(ADDRESS, bare)

    return text.in_windows(change)


def tidied(answer: str) -> Placed:
    """Return a whole answer composed and without odd blanks; of one JSON object, what it says."""
    text = composed_in_place(answer).sub(_UNSEEN, "").sub(_BLANK, " ")
    text = text.in_windows(lambda part: part.sub(_GAP, "    "))
    inside = _in_one_fence(text)
    if inside.text.lstrip()[:1] not in {"{", "["} or inside.text.rstrip()[-1:] not in {"}", "]"}:
        return text
    try:
        return _from_json(json.loads(inside.text), inside, text)
    except (ValueError, RecursionError):
        return text


def _in_one_fence(text: Placed) -> Placed:
    """Return what stands in a fence that is the whole text, else the text."""
    begin = _OPENING.match(text.text)
    body, line, end = text.text.rstrip().rpartition("\n")
    is_closed = (
        begin and line and begin.end() <= len(body) + 1 and end.strip(" ") == begin[1] and end.find(begin[1]) < 4
    )
    return text[begin.end() : len(body)] if begin and is_closed else text


Leaves = Placed | list["Leaves"] | dict[str, tuple[int, "Leaves"]]  # by key, with its place


def _from_json(given: object, inside: Placed, text: Placed) -> Placed:
    """Return what a JSON object says under a usual key of an answer, else all its facts."""
    written = [inside[slice(*it.span())] for it in _JSON_WORD.finditer(inside.text)]
    if len(written) != _size(given):
        return text  # a key twice
    placed = _placed(given, iter(written))
    if isinstance(given, dict):
        name = next((key for key in _ANSWER_KEYS if key in given), None)
        if name is not None:
            given, placed = given[name], placed[name][1]  # type: ignore[index, call-overload]
    elif not isinstance(given, list) or not any(isinstance(item, str | dict) for item in given):
        return text  # numbers in brackets may be citation marks
    return Placed.joined(_facts_in(placed), "\n") if given is not None else text[:0]


def _size(value: object) -> int:
    """Return how many keys, texts, numbers and truth values a JSON value has."""
    if isinstance(value, dict):
        return len(value) + sum(map(_size, value.values()))
    return sum(map(_size, value)) if isinstance(value, list) else 1


def _placed(value: object, written: Iterator[Placed]) -> Leaves:
    """Return a JSON value with its texts, numbers and truth values as they were written."""
    if isinstance(value, dict):
        return {key: (next(written).places[0], _placed(it, written)) for key, it in value.items()}
    if isinstance(value, list):
        return [_placed(it, written) for it in value]
    leaf = next(written)
    if not isinstance(value, str):
        return leaf
    return leaf[1:-1].sub(_ESCAPE, lambda found, _: json.loads(f'"{found[0]}"'))


def _facts_in(value: Leaves, name: str = "", place: int = 0) -> Iterator[Placed]:
    """Yield a line for each object and each item of a list, as "name value, name value"."""
    if isinstance(value, dict):
        flat = [_named(it, key, at) for key, (at, it) in value.items() if isinstance(it, Placed)]
        if flat:
            yield Placed.joined(flat, ", ")
        for key, (at, it) in value.items():
            if not isinstance(it, Placed):
                yield from _facts_in(it, key, at)
    elif isinstance(value, list):
        for item in value:
            yield from _facts_in(item, name, place)
    else:
        yield _named(value, name, place)


def _named(value: Placed, name: str, place: int) -> Placed:
    return Placed.joined([Placed.at(f"{name.replace('_', ' ')} ", place), value]) if name else value


def _is_prose(line: str) -> bool:
    return bool(_PROSE_LINE.match(line) or _TABLE_LINE.match(line)) and not _CODE_SIGN.search(line)


def _prose_of(block: Placed) -> Placed:
    return Placed.joined([*(line for line in block.lines() if _is_prose(line.text)), block[len(block) :]], "\n")


def _replaced_elements(
    text: Placed, tag: re.Pattern[str], sizes: range, instead: Callable[[Placed], Placed]
) -> Placed:
    """Return a text with something in place of each element, whose inside has one of some sizes."""
    ends: dict[str, list[int]] = {}
    for end in _END_TAG.finditer(text.text):
        ends.setdefault(end[1].lower(), []).append(end.start())
    parts: list[Placed] = []
    at = 0
    for found in tag.finditer(text.text):
        its = ends.get(found[1].lower(), [])
        place = bisect_left(its, found.end() + sizes.start)
        if found.start() >= at and place < len(its) and its[place] - found.end() in sizes:
            parts += [text[at : found.start()], instead(text[found.end() : its[place]])]
            at = its[place] + len(f"</{found[1]}>")
    return Placed.joined([*parts, text[at:]]) if parts else text


def _spelled_row(row: Placed) -> Placed:
    """Return an HTML row as a line of a table; "" for a row of heads."""
    tags = [it.span() for it in _CELL_TAG.finditer(row.text)]
    ends = [*(start for start, _ in tags[1:]), len(row)]
    inside = [row[end:stop] for (_, end), stop in zip(tags, ends, strict=True)][::2]
    is_head = _BODY_CELL.search(row.text) is None
    if is_head or not inside:
        return row[:0]
    cells = [cell.sub(_NEW_LINE, " ").stripped() for cell in inside]
    begin = row.places[0]
    return Placed.joined([Placed.at("\n| ", begin), Placed.joined(cells, " | "), Placed.at(" |\n", row.places[-1])])


def _lines(lines: list[Placed]) -> Iterator[Placed]:
    """Yield the lines that claim something, without their marks."""
    i = 0
    while i < len(lines):
        line = lines[i]
        mark = _QUOTE.match(line.text)
        line = line[mark.end() if mark else 0 :]
        following = lines[i + 1].text if i + 1 < len(lines) else ""
        i += 1
        if _SOURCES_LINE.match(line.text) and i < len(lines):
            i = _after_entries(lines, i)
        elif _SIGN_OFF.match(line.text) and len(lines) - i <= 3:
            return
        elif _is_decoration(line.text, following):
            continue
        elif _TABLE_LINE.match(line.text):
            yield _row(line)
        else:
            item = _without_list_mark(line)
            neighbours = (lines[i - 2].text if i > 1 else "", following)
            is_listed = len(item) < len(line) and _is_word(item.text) and any(map(_is_listed_word, neighbours))
            item = item[: len(item.text.rstrip())] if is_listed else item
            yield Placed.joined([item, Placed.at(".", item.places[-1])]) if is_listed else item


def _without_list_mark(line: Placed) -> Placed:
    mark = _LIST_MARK.match(line.text)
    return line[mark.end() if mark else 0 :]


def _is_listed_word(line: str) -> bool:
    mark = _LIST_MARK.match(line)
    return mark is not None and mark.end() > 0 and _is_word(line[mark.end() :])


def _is_word(item: str) -> bool:
    """Return whether an item of a list is a word or two without a stop ("Oslo"): beside its like no heading."""
    return bool(item.strip()) and len(item.split()) <= 2 and item.rstrip()[-1].isalnum()


def _is_decoration(line: str, following: str) -> bool:
    if _RULE.match(line) or _TABLE_RULE.match(line) or _SOURCE_LINE.match(line):
        return True
    is_sentence = line.rstrip(" *_#").endswith((".", "!", "?")) and len(line.split()) > 4
    if "|" in line and "|" in following and _TABLE_RULE.match(following):
        return True
    is_underlined = bool(following.strip()) and _UNDERLINE.fullmatch(following) is not None
    is_heading = _HEADING.match(line) or _BOLD_LINE.match(line) or (is_underlined and line.strip())
    return bool(is_heading) and not is_sentence


def _after_entries(lines: list[Placed], i: int) -> int:
    """Return the place behind a list of sources."""
    has_entry = False
    while i < len(lines):
        if not lines[i].text.strip():
            if has_entry:
                return i
        elif not _ENTRY.match(lines[i].text):
            return i
        else:
            has_entry = True
        i += 1
    return i


def _row(line: Placed) -> Placed:
    begin = len(line.text) - len(line.text.lstrip(" |\t"))
    edges = [begin - 1, *(it.start() for it in _BAR.finditer(line.text, begin)), len(line)]
    cells = [line[start + 1 : end].stripped() for start, end in pairwise(edges)]
    if len(cells) > 1 and _INDEX_CELL.match(cells[0].text):
        cells = cells[1:]
    parts: list[Placed] = []
    for cell in filter(len, cells):
        if parts:
            is_ended = parts[-1].text.endswith(_ENDS)
            parts.append(Placed.at(" " if is_ended else ", ", parts[-1].places[-1]))
        parts.append(cell)
    return Placed.joined(parts)


def spelled_tables(text: str) -> str:
    r"""Return a context with each table row as "head cell, head cell".

    A cell so keeps its column.

    Example:
        >>> spelled_tables("| Plan | Price |\n|---|---|\n| Basic | 10 euros |")
        'plan Basic, price 10 euros'
    """
    spelled: list[str] = []
    lines = "".join([_GAP.sub("    ", part) for part in windows(text)]).splitlines()
    heads: list[str] = []
    room = 4 * len(text) + 8_192  # for a long head before each of many short cells
    for i, line in enumerate(lines):
        if _TABLE_RULE.match(line) and "-" in line and heads:
            continue
        if "|" not in line:
            heads = []
            spelled.append(line)
        elif i + 1 < len(lines) and "|" in lines[i + 1] and _TABLE_RULE.match(lines[i + 1]):
            heads = _cells(line)
        elif heads and room > 0:
            named = zip(chain(heads, repeat("")), _cells(line), strict=False)
            row = ", ".join([f"{name.lower()} {cell}".strip() for name, cell in named if cell])
            room -= len(row)
            spelled.append(row)
        else:
            spelled.append(line)
    return "\n".join(spelled)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


_SRC_NAME = (
    r"(?:(?:the|this|these|your|our|my|its) )?"
    r"(?:(?:provided|given|retrieved|available|above|following|supplied|relevant|cited|attached|search|first|second|"
    r"third|same|official|company'?s?|internal|user|product) )*"
    r"(?:documents?|docs?|contexts?|passages?|sources?|texts?|articles?|excerpts?|information|materials?|snippets?|"
    r"chunks?|handbook|manual|guide|search results?|results?|knowledge base|references?|pages?|sections?|"
    r"documentation|files?|context information|pages? \d+ of the (?:\w+ ?){1,2}|" + FILE + r")"
    r"(?: (?:provided|given|above|below|available|i (?:have|was given)|you (?:provided|gave|shared)|"
    r"(?:that )?(?:was|were) (?:provided|given|retrieved)))?"
    r"(?:\s*(?:#|no\.? ?|number |id )?\(?(?:[\w-]*\d[\w-]*|[A-Z])\)?"
    r"(?:(?:,| and|, and| &) (?:document |source |passage )?\d+)*)?"
)
_SAID = (
    r"(?:states?|says?|mentions?|explains?|notes?|indicates?|describes?|shows?|reports?|specif(?:y|ies)|suggests?|"
    r"confirms?|reads?|stated?|tells? us)"
)
_AS_IN = (
    r"(?:according to|based (?:up)?on|as (?:stated|mentioned|described|noted|shown|explained|outlined|indicated|"
    r"written|specified|reported|discussed|seen|given|detailed|listed|found) (?:in|by|on)|as per|per|from|judging "
    r"(?:by|from)|going by|in|drawing on|using)"
)


_LEADS = re.compile(  # of at most 2,000 characters: a sentence
    r"^\W{0,40}(?:"
    rf"{_AS_IN}\s*+(?:{_SRC_NAME}\s*+)?[,:]\s*|"
    rf"{_SRC_NAME} (?:also |further |clearly |explicitly )?{_SAID}(?: that|:|,)\s+(?!not\b)|"
    r"(?:yes|no|sure|certainly|of course|absolutely|okay|ok|well|great|indeed|correct|right|exactly)"
    r"\s*[,!.:\u2013—-]+\s*|"
    r"(?:the |my |your )?(?:final |short |quick |direct |brief )?(?:answer|response|result|summary|note|"
    r"conclusion|tl;?dr|key point|explanation|assistant|ai)\s*(?::|\u2013|—| - )\s*|"
    r"(?:the )?answer is that |"
    r"(?:in (?:short|summary|brief|conclusion|general|other words|addition|fact|essence|simpler terms|"
    r"simple terms|total)|to (?:summari[sz]e|sum up|conclude|be clear|answer your question|put it simply)|"
    r"overall|additionally|furthermore|moreover|however|therefore|thus|finally|lastly|also|hence|"
    r"for (?:example|instance)|"
    r"as a result|on the other hand|similarly|specifically|essentially|basically|generally|consequently|"
    r"meanwhile|besides|nevertheless|first|firstly|secondly|then|so),\s*|"
    r"(?:please )?(?:note|remember|keep in mind|be aware)(?: that|:|,)\s*|"
    r"(?:it is|it's) (?:important|worth|also important|also worth) (?:to note|noting|mentioning|to mention) "
    r"that\s*|"
    r"as (?:you can see|an? ai (?:language )?(?:model|assistant)),\s*|(?:i|we) (?:found|can confirm) that\s*"
    r")",
    re.IGNORECASE,
)


_TRAILING_SOURCE = re.compile(  # of at most 2,000 characters: a sentence
    r"(?:[,;]|(?<!\s))\s*+\(?(?:according to|as (?:stated|mentioned|described|noted|shown|explained|outlined|"
    rf"indicated|specified) (?:in|by)|as per|per)\s*+(?:{_SRC_NAME})?\)?\s*+(?=[.!?]?$)",
    re.IGNORECASE,
)


_COURTESY = re.compile(  # of at most 2,000 characters: a sentence
    r"^\W*(?:"
    r"(?:hello|hi|hey|greetings|welcome|good (?:morning|afternoon|evening|day)|dear)(?: [\w-]+){0,3}|"
    r"(?:sure|certainly|of course|absolutely|great|good|excellent|no problem|okay|ok|got it|understood|yes|no|"
    r"happy to help|glad to help|you're welcome)(?: thing| question| point)?|"
    r"(?:i'?(?:d|m| am| would)?(?: be)? )?(?:happy|glad|pleased) to (?:help|assist)\b.{0,60}|"
    r"(?:that'?s? (?:is )?)?(?:an? )?(?:very )?(?:great|good|excellent|interesting) question|"
    r"thank(?:s| you)\b.{0,100}|"
    r"(?:i )?hope (?:this|that|it|these|you)\b.{0,100}|"
    r"(?:please )?(?:let me know|feel free|do(?: not|n'?t) hesitate)\b.{0,160}|"
    r"if you (?:have|need|want|would like|require)\b.{0,100}\b(?:let me know|feel free|hesitate|just ask|"
    r"happy to|reach out|i can)\b.{0,100}|"
    r"(?:please )?(?:enjoy(?: (?:it|your \w+))?|see below|(?:wait|hold on)(?: a \w+)?)|one moment|"
    r"(?:have (?:fun|a safe \w+)|good luck|stay tuned)\b.{0,40}|take care|stay safe|no worries|my pleasure|"
    r"any ?time|here you (?:go|are)|(?:good)?bye|see you\b.{0,20}|"
    r"let'?s (?:see|begin|start|go|get started|dive in|take a look)\b.{0,20}|"
    r"i'?(?:m| am) here to help\b.{0,60}|have a (?:great|nice|good|lovely) (?:day|one|time|weekend)|"
    r"(?:here (?:is|are|'s)|here\u2019s|below (?:is|are)|see below|this is what|i found|these are)\b.{0,140}:|"
    r"(?:let me|i will|i'll) (?:explain|summari[sz]e|check|help|answer|look)\b.{0,80}|"
    r"(?:sources?|references?|citations?)(?: used)?:?.{0,10}|"
    r"(?:best|kind|warm) regards.{0,60}"
    r")\W*$",
    re.IGNORECASE,
)


def claim_in(sentence: Placed) -> Placed:
    """Return a sentence without lead-in and source mention.

    A greeting, a courtesy or a lead-in alone gives "".

    Example:
        >>> said = ("According to document 2, it costs 12 euros.", "I hope this helps!")
        >>> [claim_in(Placed.whole(one)).text for one in said]
        ['it costs 12 euros.', '']
    """
    sentence = Placed(sentence.text.replace("\u2019", "'"), sentence.places)
    for _ in range(4):
        if _COURTESY.match(sentence.text):
            return sentence[:0]
        lead = _LEADS.match(sentence.text)
        if lead is None or not lead.end():
            break
        sentence = sentence[lead.end() :]
    return sentence.sub(_TRAILING_SOURCE, "")
