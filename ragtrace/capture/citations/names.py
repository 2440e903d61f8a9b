"""The names by which an answer may cite a passage: numbers, ids, file names, titles."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from ragtrace.capture.attribution.notation import letters
from ragtrace.capture.citations.labels import prompt_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ragtrace.model import Passage

_NAME_KEYS = frozenset(
    {
        "id", "doc_id", "document_id", "source_id", "chunk_id", "source", "file", "file_name", "filename",
        "file_path", "path", "title", "name", "url", "uri", "link", "href",
    }
)  # fmt: skip
_MOST_MARKED = 99  # a higher number in brackets is a year or a code, unless a passage has it
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\W_]{3,}")

Target = tuple[
    str, ...
]  # ids of the passages that one marker may mean; one id that no passage has is a wrong marker


class PassageNames:
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
        self._listed: dict[str, Target] = {}
        self._names: dict[str, list[str]] = {}
        for passage in (*contexts, *others):
            for name in {passage.id, *_names_of(passage)}:
                ids = self._names.setdefault(_key(name), [])
                if passage.id not in ids:
                    ids.append(passage.id)
        self._shapes = {_DIGITS.sub("0", name) for name in self._names if _DIGITS.search(name)}
        self._prompts = prompts

    @cached_property
    def _labels(self) -> dict[str, Target]:
        return next(filter(None, (prompt_labels(prompt, self._contexts) for prompt in self._prompts)), {})

    def list_label(self, label: str, target: Target) -> None:
        """Take a label from the answer's own list of sources."""
        self._listed.setdefault(_key(label), target)

    def by_number(self, label: str) -> Target:
        """Return the passage behind a number; () for a number that can be no citation.

        Example:
            >>> from ragtrace.model import Passage
            >>> names = PassageNames([Passage(id="a", text="Oslo.", rank=1)])
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

    def by_name(self, label: str, *, is_bare: bool = False) -> Target:
        """Return the passages behind a name; () for a text that is no name.

        Args:
            label: what may be a name.
            is_bare: names of passages count, labels of the prompt do not.

        Example:
            >>> from ragtrace.model import Passage
            >>> passage = Passage(id="doc-1", text="Oslo.", rank=1, metadata={"source": "docs/faq.md"})
            >>> names = PassageNames([passage])
            >>> names.by_name("faq.md"), names.by_name("doc-7"), names.by_name("see above")
            (('doc-1',), ('doc-7',), ())
        """
        key = _key(label)
        if not key:
            return ()
        known = self._listed.get(key) or tuple(self._names.get(key, ()))
        if not known and not is_bare:
            known = self._labels.get(key, ())
        if known or key.isdecimal():
            return known
        # An id of the same form as the passages' ids, which no passage has, is an invented one.
        return (label.strip(),) if _DIGITS.sub("0", key) in self._shapes and _DIGITS.search(key) else ()

    def by_quote(self, quote: str) -> Target:
        """Return the passages that hold a quoted text."""
        said = letters(quote)
        return tuple(passage.id for passage in self._contexts if said and said in letters(passage.text))

    def closest(self, target: Target, sentence: str) -> str:
        """Return the one of several passages, such as the chunks of one file, that is closest to a sentence."""
        if len(target) == 1:
            return target[0]
        said = set(_WORDS.findall(sentence.lower()))
        near = [passage for passage in self._contexts if passage.id in target]
        if not near:
            return target[0]
        return max(near, key=lambda passage: len(said & set(_WORDS.findall(passage.text.lower())))).id


def _names_of(passage: Passage) -> set[str]:
    found = [str(value) for key, value in passage.metadata.items() if key in _NAME_KEYS and value is not None]
    found.extend([passage.source] if passage.source is not None else [])
    ends = [name.replace("\\", "/").rstrip("/").rpartition("/")[2] for name in found]
    return {*filter(None, found), *(end for end in ends if end and not end.isdecimal())}


def _key(name: str) -> str:
    return " ".join(name.split()).strip("\"'`*").casefold()
