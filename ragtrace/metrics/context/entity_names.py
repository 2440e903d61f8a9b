"""When two spellings are the same entity, and when a text names one."""

from __future__ import annotations

import re
import unicodedata

# Signs that end a name and belong to it: C#, 40 %, AT&T's ampersand, a handle's @, a paragraph.
_MEANING = frozenset("#%&@\u00a7\u2030")
# Signs around a name that Unicode does not file under punctuation: quotes of code and of keyboards, table lines.
_WRAPPING = frozenset("`\u00b4~^|<>=")
# Scripts that put no space between words, or glue particles to a name, as Korean does.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af]"
)


def folded(text: str) -> str:
    r"""Return text in NFKC without case, each run of white space as one space.

    Example:
        >>> folded("  The OSLO\u00a0\n Lab ")
        'the oslo lab'
    """
    # Folding the case can undo the normal form, so that it is made again.
    cased = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", cased).split())


def normalised(name: str) -> str:
    """Return the form under which names are compared: `folded`, without punctuation at its edges.

    Signs that carry meaning stay (C#, 40 %). A name of punctuation alone gives "".

    Example:
        >>> normalised(" \u201cAcme, Inc.\u201d "), normalised("C#"), normalised("...")
        ('acme, inc', 'c#', '')
    """
    kept = folded(name)
    start, end = 0, len(kept)
    while start < end and _is_edge(kept[start]):
        start += 1
    while end > start and _is_edge(kept[end - 1]):
        end -= 1
    return kept[start:end]


def names_in(names: frozenset[str], text: str) -> frozenset[str]:
    """Return those of the `normalised` names that stand in a `folded` text between word boundaries.

    Scripts without spaces have no such boundary: there a name may stand anywhere.

    Example:
        >>> sorted(names_in(frozenset({"oslo", "rome"}), folded("In Oslo, not in Jerome.")))
        ['oslo']
        >>> sorted(names_in(frozenset({"\u5965\u65af\u9646"}), "\u5b9e\u9a8c\u5ba4\u5728\u5965\u65af\u9646\u5e02"))
        ['\u5965\u65af\u9646']
    """
    return frozenset(name for name in names if _stands_in(name, text))


def _stands_in(name: str, text: str) -> bool:
    place = text.find(name) if name else -1
    while place >= 0:
        end = place + len(name)
        if _is_bounded(text[place - 1 : place], name[0]) and _is_bounded(text[end : end + 1], name[-1]):
            return True
        place = text.find(name, place + 1)
    return False


def _is_bounded(beside: str, edge: str) -> bool:
    """Return whether a name may end with `edge` beside this character, "" at the text's end."""
    if not beside or not _is_word(beside):
        return True
    return not _is_word(edge) or bool(_UNSPACED.match(edge) or _UNSPACED.match(beside))


def _is_word(char: str) -> bool:
    return unicodedata.category(char)[0] in "LMN"


def _is_edge(char: str) -> bool:
    return char.isspace() or char in _WRAPPING or (unicodedata.category(char)[0] == "P" and char not in _MEANING)
