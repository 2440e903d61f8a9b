"""Removes markup, citations, courtesies and source lists from an answer."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

from ragtrace.judges.offline.code import LINK, PATH
from ragtrace.judges.offline.marks import FILE, LINKED_MARK, without_marks
from ragtrace.judges.offline.words import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ANSWER_KEYS = ("answer", "response", "output", "result", "text", "content", "final_answer", "message")

MOST_CHARS = 32_768  # of an answer that are read, as no more than 200 sentences are
_BLANKS = str.maketrans(
    dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\ufe0f", "")
    | dict.fromkeys("\u00a0\u2007\u202f\t", " ")
)
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


_LINKS = (  # of at most 8,192 characters: a window
    (re.compile(LINKED_MARK), " "),
    (re.compile(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,600}\)"), " "),
    (re.compile(r"\(\s*\[[^\]\n]{1,200}\]\([^)\s]{0,500}\)\s*\)"), " "),
    (
        re.compile(
            r"\[(?:read|learn|see|find out|show)? ?(?:more|here|link|source)\]\([^)\s]{1,500}\)\.?",
            re.IGNORECASE,
        ),
        " ",
    ),
    (re.compile(r"\[\[([^\[\]\n]{1,40})\]\]\([^)\s]{0,500}\)"), " "),
    (re.compile(r"\[([^\[\]\n]{1,400})\]\((?:[^()\s]|\([^()\s]*\)){0,500}(?: \"[^\"\n]*\")?\)"), r"\1"),
    (re.compile(r"\[([^\[\]\n]{1,400})\]\[[^\[\]\n]{0,40}\](?!\[)(?=[ ,;:]?[a-z])"), r"\1"),
    (re.compile(r"<(?:https?://|www\.|mailto:)[^<>\s]*+>"), " "),
    (re.compile(r"\(?\b(?:https?://|www\.)[^\s<>()\"']*[^\s<>()\"'.,;:!?]\)?"), " "),
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
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), r"\1"),
)


_TARGET = r"(?:mailto:)?(?P<link>[^()\s]{1,500})"
# Inline code, links with a title of a few words that is no number, bare links and paths.
_APART = (  # of at most 8,192 characters: a window
    re.compile(r"(?<!`)(`{1,2})(?!`)(?P<title>[^`\n]{1,300})(?P<link>)\1(?!`)"),
    re.compile(
        r"!?\[(?P<title>(?![^\w\[\]]*+(?:\d++[^\w\[\]]*+)?\])"
        rf"[^\s\[\]]{{1,40}}(?: [^\s\[\]]{{1,40}}){{0,4}})\]\({_TARGET}\)"
    ),
    re.compile(
        rf"<a\s[^<>]{{0,200}}?href=[\"']{_TARGET}[\"'][^<>]{{0,200}}>(?P<title>[^<>\n]{{0,60}})</a>",
        re.IGNORECASE,
    ),
    re.compile(r"<(?P<title>)(?:mailto:)?(?P<link>[^<>\s]{1,500}(?:://|@)[^<>\s]{1,500})>", re.IGNORECASE),
    re.compile(rf"(?P<title>)(?<!\]\()(?P<link>{LINK}|{PATH})", re.IGNORECASE),
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
    """A link or a piece of code of an answer.

    Attributes:
        shown: as it reads, a link behind its title.
        exact: the part of it that counts to the letter; "" where it is prose.
    """

    shown: str
    exact: str


def plain(text: str) -> str:
    r"""Return an answer without markup, citations, headings, sources and code.

    Lines stay lines. Where nothing but such parts was written, the words themselves are kept.

    Example:
        >>> plain("## Price\n- It costs **12 euros** [1][2]. See [the list](https://example.com/7).")
        'It costs 12 euros. See the list.'
    """
    text = tidied(text)[:MOST_CHARS]
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda found: _prose_of(found[3]), text)
    if "<tr" in text or "<TR" in text:
        text = _replaced_elements(text, _ROW_TAG, range(4_001), _spelled_row)
    written = [part for line in text.splitlines() for part in windows(line)]
    lines = list(_lines(written))
    if not any(line.strip() for line in lines):
        lines = [_LIST_MARK.sub("", line.strip(" #|>`*_=-")) for line in written]
    text = "\n".join(line for line in lines if line.strip())
    text = "".join(map(_unmarked, windows(text)))
    return "\n".join(_GAP_BEFORE_STOP.sub("", _SPACES.sub(" ", line)).strip() for line in text.splitlines())


def _unmarked(text: str) -> str:
    for pattern, instead in _LINKS:
        text = pattern.sub(instead, text)
    text = without_marks(text)
    for pattern, instead in _TAGS_AND_EMPHASIS:
        text = pattern.sub(instead, text)
    return _EMOJI.sub(" ", text)


def set_apart(text: str) -> tuple[str, list[Apart]]:
    """Return an answer with one character in place of each link and piece of code, and what these are.

    `filled` puts them back. Lines of a block that are prose stay, comments are left out.

    Example:
        >>> held, parts = set_apart("Run `nova login`, see https://nova.dev/start.")
        >>> filled(held, parts), [part.exact for part in parts]
        ('Run nova login, see https://nova.dev/start.', ['nova login', 'https://nova.dev/start'])
    """
    parts: list[Apart] = []

    def hole(shown: str, exact: str) -> str:
        if len(parts) > _HOLES[1] - _HOLES[0]:
            return shown
        parts.append(Apart(filled(shown, parts), filled(exact, parts)))
        return chr(_HOLES[0] + len(parts) - 1)

    def code(line: str) -> str:
        return line if _is_prose(line) else hole(line.strip(), line.strip())

    text = _FENCE.sub(
        lambda found: _lines_apart(found[2], found[3], code), _HOLE.sub(" ", tidied(text)[:MOST_CHARS])
    )
    text = _replaced_elements(
        text, _CODE_TAG, range(1, 20_001), lambda inside: "\n".join(map(code, _lines_of_tag(inside)))
    )
    for pattern in _APART:
        held = [
            pattern.sub(
                lambda found: (
                    hole(f"{found['title']} {found['link']}".strip(), found["link"])
                    if found["link"]
                    else code(found["title"])
                ),
                part,
            )
            for part in windows(text)
        ]
        text = "".join(held)
    return text, parts


def filled(text: str, parts: list[Apart]) -> str:
    """Return a text with the parts that were set apart in their places."""
    return _HOLE.sub(lambda found: parts[ord(found[0]) - _HOLES[0]].shown, text) if parts else text


def holes_in(text: str, parts: list[Apart]) -> list[Apart]:
    """Return the parts that were set apart from a text."""
    return [parts[ord(found) - _HOLES[0]] for found in _HOLE.findall(text)] if parts else []


def _lines_apart(language: str, block: str, code: Callable[[str], str]) -> str:
    if language.lower() in _PROSE_LANGUAGES:
        return block
    lines = (line for line in block.splitlines() if line.strip() and not _COMMENT.match(line))
    return "".join(f"{code(line)}\n" for line in lines)


def _lines_of_tag(inside: str) -> list[str]:
    return [line for part in windows(inside) for line in _ANY_TAG.sub("", part).splitlines() if line.strip()]


def tidied(text: str) -> str:
    """Return a whole answer without odd blanks; of one JSON object, what it says."""
    text = _without_gaps(text.translate(_BLANKS))
    inside = _in_one_fence(text)
    if inside.lstrip()[:1] not in {"{", "["} or inside.rstrip()[-1:] not in {"}", "]"}:
        return text
    try:
        given = json.loads(inside)
    except (ValueError, RecursionError):
        return text
    return _from_json(given, text)


def _without_gaps(text: str) -> str:
    """Return a text with four blanks for a long run, as such would cost their square."""
    return "".join([_GAP.sub("    ", part) for part in windows(text)])


def _in_one_fence(text: str) -> str:
    """Return what stands in a fence that is the whole text, else the text."""
    begin = _OPENING.match(text)
    body, line, end = text.rstrip().rpartition("\n")
    is_closed = (
        begin and line and begin.end() <= len(body) + 1 and end.strip(" ") == begin[1] and end.find(begin[1]) < 4
    )
    return body[begin.end() :] if begin and is_closed else text


def _from_json(given: object, text: str) -> str:
    """Return what a JSON object says under a usual key of an answer, else all its facts."""
    if isinstance(given, dict):
        given = next((given[key] for key in _ANSWER_KEYS if key in given), given)
    elif not isinstance(given, list) or not any(isinstance(item, str | dict) for item in given):
        return text  # numbers in brackets may be citation marks
    return "\n".join(_facts_in(given)) if given is not None else ""


def _facts_in(value: object, name: str = "") -> Iterator[str]:
    """Yield a line for each object and each item of a list, as "name value, name value"."""
    if isinstance(value, dict):
        flat = {key: it for key, it in value.items() if not isinstance(it, dict | list)}
        if flat:
            yield ", ".join(f"{key.replace('_', ' ')} {_spelled(it)}" for key, it in flat.items())
        for key, it in value.items():
            if key not in flat:
                yield from _facts_in(it, key.replace("_", " "))
    elif isinstance(value, list):
        for item in value:
            yield from _facts_in(item, name)
    else:
        yield f"{name} {_spelled(value)}".strip()


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_prose(line: str) -> bool:
    return bool(_PROSE_LINE.match(line) or _TABLE_LINE.match(line)) and not _CODE_SIGN.search(line)


def _prose_of(block: str) -> str:
    return "\n".join(filter(_is_prose, block.splitlines())) + "\n"


def _replaced_elements(text: str, tag: re.Pattern[str], sizes: range, instead: Callable[[str], str]) -> str:
    """Return a text with something in place of each element, whose inside has one of some sizes."""
    ends: dict[str, list[int]] = {}
    for end in _END_TAG.finditer(text):
        ends.setdefault(end[1].lower(), []).append(end.start())
    parts: list[str] = []
    at = 0
    for found in tag.finditer(text):
        its = ends.get(found[1].lower(), [])
        place = bisect_left(its, found.end() + sizes.start)
        if found.start() >= at and place < len(its) and its[place] - found.end() in sizes:
            parts += [text[at : found.start()], instead(text[found.end() : its[place]])]
            at = its[place] + len(f"</{found[1]}>")
    return "".join([*parts, text[at:]])


def _spelled_row(row: str) -> str:
    """Return an HTML row as a line of a table; "" for a row of heads."""
    cells = _CELL_TAG.split(row.replace("\n", " "))[1::2]
    is_head = _BODY_CELL.search(row) is None
    return "" if is_head or not cells else f"\n| {' | '.join(cell.strip() for cell in cells)} |\n"


def _lines(lines: list[str]) -> Iterator[str]:
    """Yield the lines that claim something, without their marks."""
    i = 0
    while i < len(lines):
        line = _QUOTE.sub("", lines[i])
        following = lines[i + 1] if i + 1 < len(lines) else ""
        i += 1
        if _SOURCES_LINE.match(line) and i < len(lines):
            i = _after_entries(lines, i)
        elif _SIGN_OFF.match(line) and len(lines) - i <= 3:
            return
        elif _is_decoration(line, following):
            continue
        elif _TABLE_LINE.match(line):
            yield _row(line)
        else:
            item = _LIST_MARK.sub("", line)
            neighbours = (lines[i - 2] if i > 1 else "", following)
            is_listed = item != line and _is_word(item) and any(map(_is_listed_word, neighbours))
            yield f"{item.rstrip()}." if is_listed else item


def _is_listed_word(line: str) -> bool:
    item = _LIST_MARK.sub("", line)
    return item != line and _is_word(item)


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


def _after_entries(lines: list[str], i: int) -> int:
    """Return the place behind a list of sources."""
    has_entry = False
    while i < len(lines):
        if not lines[i].strip():
            if has_entry:
                return i
        elif not _ENTRY.match(lines[i]):
            return i
        else:
            has_entry = True
        i += 1
    return i


def _row(line: str) -> str:
    cells = _cells(line)
    if len(cells) > 1 and _INDEX_CELL.match(cells[0]):
        cells = cells[1:]
    return " ".join(cell if cell.endswith(_ENDS) else f"{cell}," for cell in cells if cell).rstrip(",")


def spelled_tables(text: str) -> str:
    r"""Return a context with each table row as "head cell, head cell".

    A cell so keeps its column.

    Example:
        >>> spelled_tables("| Plan | Price |\n|---|---|\n| Basic | 10 euros |")
        'plan Basic, price 10 euros'
    """
    spelled: list[str] = []
    lines = _without_gaps(text).splitlines()
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


def claim_in(sentence: str) -> str:
    """Return a sentence without lead-in and source mention.

    A greeting, a courtesy or a lead-in alone gives "".

    Example:
        >>> claim_in("According to document 2, it costs 12 euros."), claim_in("I hope this helps!")
        ('it costs 12 euros.', '')
    """
    sentence = sentence.replace("\u2019", "'")
    for _ in range(4):
        if _COURTESY.match(sentence):
            return ""
        shorter = _LEADS.sub("", sentence, count=1)
        if shorter == sentence:
            break
        sentence = shorter
    return _TRAILING_SOURCE.sub("", sentence)
