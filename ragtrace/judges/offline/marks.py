"""The citation marks that people and models write, which claim nothing.

A number is a mark in square, curly or pointed brackets, and a small one in round brackets at the end of a clause.
What round brackets say otherwise ("(3.4 kg)", "(2019)") stays.
"""

from __future__ import annotations

import re

from ragtrace.judges.offline.placed import Placed

FILE = r"[\w./%-]{1,120}\.(?:pdf|md|txt|docx?|html?|csv|json|xlsx?|pptx?|ya?ml)"
_SOURCE = (
    r"(?:sources?|docs?|documents?|passages?|contexts?|refs?|references?|chunks?|citations?|cites?|sections?|pages?|"
    r"files?|nodes?|articles?|excerpts?|snippets?|footnotes?|ids?|(?:pp?|refs?|sec)\.)"
)
_CITING = r"(?:sources?|refs?|references?|citations?|cites?|footnotes?)"  # alone they name no page to read
_SEE = r"(?:(?:see|see also|cf\.?|from|per|via|in|according to|as (?:stated|described|mentioned) in) )?(?:the )?"
_AND = r"\s*(?:[,;&|/\u2013-]|\band\b|\bto\b)\s*"
_NUMBERS = rf"\d{{1,4}}(?:{_AND}\d{{1,4}})*"
_PLACE = (
    r"(?:section|sec\.|page|pp?\.|chapter|ch\.|lines?|paragraph|para\.|slide|appendix|\u00a7)\s*[\w.\u2013-]{1,12}"
)
_LABEL = r"(?:@[\w:-]{1,64}|(?=[^\s,;\[\]]{0,64}\d)[\w:./#@\u2020^*~+=-]{1,64})"  # one word with a digit
_ITEM = rf"(?:{_SOURCE}[\s.#:]*)?#?[\w.-]{{0,32}}\d[\w.-]{{0,32}}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\b"
_NAMES = r"[A-Z][\w'\u2019-]{1,40}(?:,? (?:and|&) [A-Z][\w'\u2019-]{1,40})?"
_AUTHOR = rf"(?!{_MONTH}){_NAMES}(?:,? et al\.?)?"
_YEAR = r"(?:19|20)\d\d[a-z]?(?:, pp?\. ?\d+(?:[\u2013-]\d+)?)?"
_AUTHORS = rf"{_AUTHOR}, ?{_YEAR}|{_NAMES} et al\.? {_YEAR}|{_NAMES},? (?:and|&) {_NAMES} {_YEAR}"
_RANKED = (  # before a number that ranks or names something ("ranked #1", "Platform #9")
    r"\b(?:[A-Z]\w*|rank|ranked|ranking|rated|number|the|a|an|is|are|was|were|be|as|at|in|on|to|of|and|or|for|from|by|with|than|"
    r"our|your|its|their|my|issue|ticket|room|case|bug|order|lane|track|version|request|pr|no|not)[ ]+"
)


# Marks with an address, and files in brackets.
ADDRESSED_MARK = (
    rf"\(\[(?i:{_SOURCE})\]\([^()\s]{{0,500}}\)\)|"
    rf"\[\[?\W{{0,2}}(?:{_NUMBERS}|[\u00b9\u00b2\u00b3\u2070-\u2079]{{1,4}}|(?i:{_SOURCE}\s?#?\d{{1,4}}|{_CITING}))\W{{0,2}}\]?\]"
    r"\([^()\s]{0,500}\)|"
    r"(?i:<a\b[^<>\n]{0,200}>\W{0,3}\d{1,4}\W{0,3}</a>)|"
    rf"(?i:\[{FILE}[^\]\n]{{0,60}}\](?!\()|\({_SEE}{FILE}[^()\n]{{0,60}}\))"
)


_END = r"(?=[ ]*(?:[.,;:!?)]|$))"
_NUMBERED = (  # "document 1, 2", "page 3: the fees"
    rf"{_SOURCE}[\s#.]*(?:no\. ?)?[\w-]{{0,40}}\d[\w.-]{{0,40}}(?:{_AND}{_ITEM}){{0,9}}"
    r"(?:\s*[,:;][^()\n]{0,60})?"
)
_SMALL = r"(?:[12]?\d|30)"
_RAISED = "[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]"
_PATTERNS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (  # of at most 8,192 characters: a window
        # Tags
        r"(?i)<(sup|cite|ref|citation|source|doc|document|footnote|fn)\b[^<>\n]{0,160}(?:/>|>[^<\n]{0,80}</\1>)",
        r"</?(?![hH][1-6]\b)[A-Za-z_-]{0,12}\d{1,4}(?:, ?\d{1,4}){0,9}[ ]?/?>",
        r"\\(?:[a-z]{0,10}cite[a-z]{0,10}|footnote(?:mark)?|ref)\*?(?:\[[^\[\]\n]{0,40}\]){0,2}\{[^{}\n]{1,80}\}",
        r"(?<!\w):?(?:cite|ref|source)\[[^\[\]\n]{1,80}\]",
        r"\{\{[^{}\n\"]{0,40}\d[^{}\n\"]{0,20}\}\}",
        r"\{\{?(?i:cite|ref|source|citation|doc)s?:[^{}\n]{1,60}\}\}?|\{\.\w{1,20}\}",
        r"\{\d{1,3}(?:, ?\d{1,3}){0,9}\}",
        # Square and wide brackets
        r"\u3010[^\u3011\n]{0,80}\u3011|\uff3b[^\uff3d\n]{0,80}\uff3d|\uff08\d{1,3}\uff09|\u3014[^\u3015\n]{0,80}\u3015",
        r"\[\^[^\]\n]{1,40}\](?::[^\n]*)?",
        rf"\[{_NUMBERS}(?:\s*[,:]\s*(?:pp?\.|page)?\s*\d+(?:[\u2013-]\d+)?)?\](?:,\s?(?=\[))?",
        rf"(?i)\[(?:see )?(?:{_SOURCE}(?!\w)|(?:results?|hits?|notes?)\s?#?\d)[^\]\n]{{0,80}}\]",
        rf"\[{_LABEL}(?:\s*(?:[,;|&]|\band\b)\s*{_LABEL}){{0,9}}\]",
        r"\[(?:[A-Za-z](?:, ?[A-Za-z]){0,9}|[ivx]{2,4}|cite_(?:start|end))\]",
        rf"(?i)\[(?:[^\[\]\n]{{1,60}}?[,;:]?\s)?{_PLACE}\]|\[\W{{0,4}}\]",
        rf"\[(?:see |cf\. )?{_AUTHOR},? ?{_YEAR}\]",
        # Round brackets
        rf"(?i)\({_SEE}(?:{_SOURCE}\s*:[^()\n]{{1,100}}|{_NUMBERED}|{_SOURCE})\)",
        rf"(?i)\({_SEE}[^()\n\d]{{1,60}}?, ?{_PLACE}\)",
        rf"\((?:see |cf\. |e\.g\.,? )?(?:{_AUTHORS})(?:; (?:{_AUTHORS})){{0,5}}\)",
        rf"\((?:see |cf\. )?#\d{{1,4}}(?:{_AND}#?\d{{1,4}}){{0,9}}\)",
        rf"(?:\({_SMALL}(?:\s*(?:[,;&\u2013]|\band\b)\s*{_SMALL}){{0,9}}\)){{1,40}}+{_END}",
        rf"(?<=[.!?])[ ]?(?:\({_SMALL}(?:\s*(?:[,;&\u2013]|\band\b)\s*{_SMALL}){{0,9}}\)){{1,40}}+(?=\s)",
        r"(?i)\((?:\s|[,;.&]|\b(?:see|cf|from|per|and|sources?|refs?)\b){0,12}\)",  # what is left of "(see [1])"
        # Marks without brackets
        r"(?:(?<=[\s.,;:!?])|(?<=[a-z]{4}))\^\d{1,3}(?:, ?\d{1,3}){0,9}(?![\w^])",
        rf"(?P<ranked>{_RANKED})?(?<![\w#&/])#\d{{1,3}}(?:, ?#\d{{1,3}}){{0,9}}(?!\w){_END}",
        r"(?<=[.!?])[ ]?#\d{1,3}(?:, ?#\d{1,3}){0,9}(?=\s)",
        rf"(?:(?<=[a-z]{{4}})|(?<=[\s.,;:!?])){_RAISED}+(?:,{_RAISED}+){{0,9}}",
    )
)


_SIGN = re.compile(rf"[\[({{<\\#^\u3010\uff3b\uff08\u3014]|{_RAISED}")  # one of them is in each mark


def without_marks(text: Placed) -> Placed:
    """Return a text with a blank in place of each citation mark.

    Example:
        >>> said = "It weighs 3.4 kg [1] (#2), is ranked #1 (see [3]) and new (2019)."
        >>> " ".join(without_marks(Placed.whole(said)).text.split())
        'It weighs 3.4 kg , is ranked #1 and new (2019).'
    """
    for pattern in _PATTERNS if _SIGN.search(text.text) else ():
        text = text.sub(
            pattern,
            lambda found, held: held[slice(*found.span())] if found.groupdict().get("ranked") else " ",
        )
    return text
