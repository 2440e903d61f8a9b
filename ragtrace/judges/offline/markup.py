"""Removes markup, citations, courtesies and source lists from an answer."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = (
    r"(?:sources?|docs?|documents?|passages?|contexts?|refs?|references?|chunks?|citations?|cites?|sections?|pages?|"
    r"files?|nodes?|articles?|excerpts?|snippets?|p\.|pp\.)"
)
_FILE = r"[\w./%-]{1,120}\.(?:pdf|md|txt|docx?|html?|csv|json|xlsx?|pptx?|ya?ml)"
_ANSWER_KEYS = ("answer", "response", "output", "result", "text", "content", "final_answer", "message")

_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad\ufe0f\u200d]")
_SPACE = re.compile("[\u00a0\u2007\u202f\t]")
_GAP = re.compile(r"[^\S\n]{40,}")  # long runs of blanks would cost their square
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\U0001f1e6-\U0001f1ff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u25a0-\u25ff\u2190-\u21ff]"
)
_FENCE = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[ ]*([\w+#.-]*)[^\n]*\n(.*?)(?:^[ ]{0,3}\1[`~]*[ ]*$|\Z)", re.MULTILINE | re.DOTALL
)
_PROSE_LINE = re.compile(r"^[A-Z\"'(\[*#>|-].{15,}[.!?:|]$")
_CODE_SIGN = re.compile(r"[{};=<>$\\]|\w\(|^\s*(?:#!|//|--)")


@cache  # here and below: 20 ms of compiling are not for the import
def _inline_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return (
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
        (re.compile(r"<(?:https?://|www\.|mailto:)[^>\s]*>"), " "),
        (re.compile(r"\(?\b(?:https?://|www\.)[^\s<>()\"']*[^\s<>()\"'.,;:!?]\)?"), " "),
        (re.compile(r"<(sup|cite|ref|citation|source)\b[^>]*>[^<\n]{0,80}</\1>", re.IGNORECASE), " "),
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
        (re.compile(r"【[^】\n]{0,80}】"), " "),
        (re.compile(r"\[\^[^\]\n]{1,40}\](?::[^\n]*)?"), " "),
        (
            re.compile(
                r"\[\d{1,4}(?:\s*[,;&\u2013-]\s*\d{1,4})*(?:\s*[,:]\s*(?:pp?\.|page)?\s*\d+(?:[\u2013-]\d+)?)?\]"
            ),
            " ",
        ),
        (re.compile(rf"\[(?:see )?{_SOURCE}\b[^\]\n]{{0,80}}\]", re.IGNORECASE), " "),
        (re.compile(rf"\[{_FILE}[^\]\n]{{0,60}}\]", re.IGNORECASE), " "),
        (re.compile(r"\[(?=[^\]\s]{0,64}\d)[\w:./#-]{1,64}\]"), " "),
        (re.compile(r"\{\d{1,3}(?:, ?\d{1,3})*\}"), " "),
        (
            re.compile(
                rf"\((?:see |cf\. |from |per )?(?:the )?(?:{_SOURCE}(?:\s*:[^()\n]{{1,100}}|"
                rf"[\s#.]*(?:no\. ?)?[\w-]*\d[^()\n]{{0,40}})?|{_FILE}[^()\n]{{0,60}})\)",
                re.IGNORECASE,
            ),
            " ",
        ),
        (re.compile(r"\([A-Z][\w'-]+ et al\.?,? \d{4}[a-z]?\)"), " "),
        (re.compile(r"(?:\(\d{1,2}\))+(?=[ ]*(?:[.,;:!?]|$))", re.MULTILINE), " "),
        (re.compile("(?:(?<=[a-z]{4})|(?<=[.,;:!?]))[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]+"), ""),
        (re.compile(r"\*\*|__|~~|`+"), ""),
        (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
        (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), r"\1"),
    )


_GAP_BEFORE_STOP = re.compile(r" (?=[.,;:!?](?:\s|$))")
_SPACES = re.compile(r"[ ]{2,}")

_QUOTE = re.compile(r"^\s*(?:>[ ]?)+")
_LIST_MARK = re.compile(
    r"^\s*(?:[-*•·\u2013—‣▪◦●○+][ ]+|\(?\d{1,3}[.)][ ]+|\(?[a-zA-Z]\)[ ]+|[a-z]\.[ ]+|\([ivx]{1,4}\)[ ]+|"
    r"[Ss]tep \d{1,2}\s*[:.)\u2013-]\s*)+(?:\[[ xX]\][ ]+)?"
)
_RULE = re.compile(r"^\s*(?:[-*_=~][ ]*){3,}$")
_HEADING = re.compile(r"^\s*#{1,6}[ ]+")
_BOLD_LINE = re.compile(r"^\s*(?:\*\*|__)[^*_\n]{1,80}(?:\*\*|__):?\s*$")
_TABLE_LINE = re.compile(r"^\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_INDEX_CELL = re.compile(r"^(?:#|no\.?|nr\.?|\d{1,3}\.?)$", re.IGNORECASE)
_SOURCES_LINE = re.compile(
    r"^\W*(?:sources?|references?|citations?|bibliography|footnotes?|further reading|works cited|see also)"
    r"(?: (?:used|cited))?\W*$",
    re.IGNORECASE,
)
_SOURCE_LINE = re.compile(
    r"^\W*(?:sources?|references?|citations?|cited from|file|document|page)(?: used)?\s*\W?:\W+.{0,200}$",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"^\s*(?:[-*•]|\[?\^?\d{1,3}[\].):]|\[[^\]]+\]|https?:|.{0,60}$)")
_SIGN_OFF = re.compile(
    r"^\W*(?:(?:best|kind|kindest|warm|many)? ?(?:regards|wishes)|sincerely|yours (?:truly|sincerely|faithfully)|"
    r"cheers|many thanks|thanks|thank you|respectfully)\W*$",
    re.IGNORECASE,
)
_ENDS = (".", "!", "?", ":", ";", ".”", '."')


def plain(text: str) -> str:
    r"""Return an answer without markup, citations, headings, sources and code.

    Lines stay lines. Where nothing but such parts was written, the words themselves are kept.

    Example:
        >>> plain("## Price\n- It costs **12 euros** [1][2]. See [the list](https://example.com/7).")
        'It costs 12 euros. See the list.'
    """
    text = _GAP.sub("    ", _SPACE.sub(" ", _INVISIBLE.sub("", text)))
    if text.lstrip().startswith("{") and text.rstrip().endswith("}"):
        text = _from_json(text)
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(lambda found: _prose_of(found[3]), text)
    lines = list(_lines(text.splitlines()))
    if not any(line.strip() for line in lines):
        lines = [_LIST_MARK.sub("", line.strip(" #|>`*_=-")) for line in text.splitlines()]
    text = "\n".join(line for line in lines if line.strip())
    for pattern, instead in _inline_patterns():
        text = pattern.sub(instead, text)
    text = _EMOJI.sub(" ", text)
    return "\n".join(_GAP_BEFORE_STOP.sub("", _SPACES.sub(" ", line)).strip() for line in text.splitlines())


def _from_json(text: str) -> str:
    """Return the strings of an answer that is one JSON object. The usual keys come first."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return text
    chosen = [given[key] for key in _ANSWER_KEYS if isinstance(given.get(key), str)]
    strings = chosen[:1] or [value for value in given.values() if isinstance(value, str)]
    return "\n".join(strings) or text


def _prose_of(block: str) -> str:
    lines = [line for line in block.splitlines() if _PROSE_LINE.match(line) and not _CODE_SIGN.search(line)]
    return "\n".join(lines) + "\n"


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
            yield _LIST_MARK.sub("", line)


def _is_decoration(line: str, following: str) -> bool:
    if _RULE.match(line) or _TABLE_RULE.match(line) or _SOURCE_LINE.match(line):
        return True
    is_sentence = line.rstrip(" *_#").endswith((".", "!", "?")) and len(line.split()) > 4
    if _TABLE_LINE.match(line) and _TABLE_RULE.match(following):
        return True
    is_underlined = bool(following.strip()) and re.fullmatch(r"\s*(?:={3,}|-{3,})\s*", following) is not None
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
    lines = _GAP.sub("    ", text).splitlines()
    heads: list[str] = []
    for i, line in enumerate(lines):
        if _TABLE_RULE.match(line) and "-" in line and heads:
            continue
        if "|" not in line:
            heads = []
            spelled.append(line)
        elif i + 1 < len(lines) and "|" in lines[i + 1] and _TABLE_RULE.match(lines[i + 1]):
            heads = _cells(line)
        elif heads:
            cells = _cells(line)
            names = [*heads, *[""] * len(cells)]
            spelled.append(
                ", ".join(
                    f"{name.lower()} {cell}".strip() for name, cell in zip(names, cells, strict=False) if cell
                )
            )
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
    r"documentation|files?|context information|pages? \d+ of the (?:\w+ ?){1,2}|" + _FILE + r")"
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


@cache
def _leads() -> re.Pattern[str]:
    return re.compile(
        r"^\W{0,40}(?:"
        rf"{_AS_IN}\s*(?:{_SRC_NAME})?\s*[,:]\s*|"
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


@cache
def _trailing_source() -> re.Pattern[str]:
    return re.compile(
        rf"[,;]?\s*\(?(?:according to|as (?:stated|mentioned|described|noted|shown|explained|outlined|indicated|"
        rf"specified) (?:in|by)|as per|per)\s*(?:{_SRC_NAME})?\)?\s*(?=[.!?]?$)",
        re.IGNORECASE,
    )


@cache
def _courtesy() -> re.Pattern[str]:
    return re.compile(
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
        if _courtesy().match(sentence):
            return ""
        shorter = _leads().sub("", sentence, count=1)
        if shorter == sentence:
            break
        sentence = shorter
    return _trailing_source().sub("", sentence)
