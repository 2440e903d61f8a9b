r"""Find the passages that stand in the prompts of a run, and the prompts behind its answer.

A formatter may show a passage as JSON, `repr`, HTML, a quotation or a table cell. All of these keep its letters
and digits in their order. They change white space, punctuation, escapes, case and the form of Unicode. The same
reduction is applied to the passage and to the prompt, so a text that holds ``\n`` or ``&amp;`` itself still
compares equal.

A run calls its model for other things too: to grade passages, to condense a question, to check an answer. The
answer leads back to the call with the same reply, and each prompt leads to the calls with replies in it: a summary,
a section's draft, the answer to a sub-question. A grader's "yes" leads nowhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from functools import cached_property
from html import unescape
from itertools import groupby, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, AnyStr, Literal, NamedTuple

from msgspec.structs import replace

from ragtrace.capture.model_calls import answer_field, without_thoughts
from ragtrace.capture.names import REACT_ANSWER, REACT_THOUGHT
from ragtrace.capture.pictures import PICTURE, picture_of
from ragtrace.capture.types import Generation
from ragtrace.text import composed, folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ragtrace.capture.reported import Reported
    from ragtrace.capture.types import Step
    from ragtrace.model import Message, Passage

# -- texts by their letters --

# Any number of backslashes: JSON inside JSON doubles them. The first condition keeps a long run of them linear.
_BLANK_ESCAPE = re.compile(r"(?<!\\)\\++[abefnrtv0NLP]")  # by itself, since a text of them has 131,072
_ESCAPE = re.compile(r"(?<!\\)\\++(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n[ \t]*")  # a long line of YAML, which ends with an odd backslash
_ENTITY = re.compile(r"&(?:amp;)*(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});")
_LINE_TAG = re.compile(r"</?(?:br|p|li|div|span) ?/?>", re.IGNORECASE)
_SURROGATES = re.compile("[\ud800-\udfff]")
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())
_LOWER = bytes(range(256)).lower()
# U+0080 to U+00BF, U+2000 to U+203F and U+3000 to U+303F: blanks, dashes, quotation marks. Those that stand for
# letters or digits, such as U+00B2, stay until they are folded.
_WIDE_MARKS = re.compile(rb"\xc2[\x80-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf]|\xe2\x80[\x80-\xbf]|\xe3\x80[\x80-\xbf]")
_FOLDED_MARKS = re.compile(rb"\xc2[\x80-\xbf]|\xe2[\x80\x81][\x80-\xbf]|\xe3\x80[\x80-\xbf]")


def unescaped(text: str) -> str:
    r"""Return a text with escapes of JSON, Python, YAML and HTML replaced; a line break may become a blank.

    Example:
        >>> unescaped(r"Caf\u00e9\\nOslo &amp; Bergen")
        'Café Oslo & Bergen'
    """
    if "\\" in text:
        text = _CONTINUED.sub(r"\1", text) if "\\\n" in text else text
        text = _ESCAPE.sub(_escaped, _BLANK_ESCAPE.sub(" ", text))
        if _SURROGATES.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "&" in text:
        text = _ENTITY.sub(_named, text)
    return _LINE_TAG.sub(" ", text) if "<" in text else text


def letters(text: str) -> bytes:
    r"""Return the letters and digits of a text as UTF-8, folded, without escapes, blanks and punctuation.

    Bytes are 30 times faster to reduce than text: 60 us for 40,000 characters. Text is folded only where letters
    beyond ASCII are left.

    Example:
        >>> letters("In Oslo,\n since 2026.") == letters(r'"in oslo,\n since 2026."')
        True
    """
    kept = unescaped(text).encode("utf-8", "replace").translate(_LOWER, _NO_LETTERS)
    if kept.isascii():
        return kept
    kept = _WIDE_MARKS.sub(b"", kept)
    if kept.isascii():
        return kept
    kept = folded(kept.decode()).encode().translate(_LOWER, _NO_LETTERS)
    return kept if kept.isascii() else _FOLDED_MARKS.sub(b"", kept)


def _escaped(found: re.Match[str]) -> str:
    number = int(found[1] or found[2] or found[3], 16)
    return chr(number) if number <= 0x10FFFF else " "


def _named(found: re.Match[str]) -> str:
    return unescape(f"&{found[1]};")


# -- passages in a prompt --

_SHORTEST_CUT_CHARS = 40  # a shorter common beginning ("The ", a title) says nothing of a passage
_MOST_BEGINNINGS = 16
_CHANCE_CHARS = 16
_HEAD_CHARS = 120  # of a passage, to tell quickly that a prompt does not show it
_SHORTEST_HEAD_BYTES = 24  # a passage with fewer letters is a short one
_PART_BYTES = 32
_SHORTEST_WORDS_CHARS = 8  # of a short passage's words, to be known without its punctuation
_FEWEST_CASELESS_WORDS = 3
_MOST_PARTS = 64
_FAR_BYTES = 256  # between the parts of a passage
_SEARCHED_BYTES = 100_000_000  # of prompts reduced to letters, in one run: about 50 ms
_WORD = re.compile(r"[^\W_]+")
_BETWEEN_WORDS = re.compile(r"[\W_]{0,64}")
# A formatter that removes line breaks makes an escape of this one: a backslash, "x1", a line break, "42".
_SPLIT_ESCAPE = re.compile(r"\\(?:[xuU][0-9a-fA-F]*)?\r?\n")
_VALUE_ENDS = re.compile(r"""[\n\r\t"'<>|\[\]{}]+|: """)


def place_of(text: str, prompt: str, near: int = 0) -> int:
    """Return where a text stands in a prompt: first behind `near`, else anywhere; -1 where it does not.

    Prompts hold passages mostly in their order, so that the next one is near the end of the last. By the text's
    beginning: `str.find` of 800 characters prepares itself for 2 us. Where the beginning is found again and again
    without the rest (one header on all passages), `str.find` bounds the time.

    Example:
        >>> place_of("Oslo.", "Context: Oslo."), place_of("Oslo.", "Oslo. Rome.", 5)
        (9, 0)
    """
    at = _found(text, prompt, near)
    return at if at >= 0 or not near else _found(text, prompt, 0)


def _found(text: str, prompt: str, start: int) -> int:
    beginning = text[:_SHORTEST_CUT_CHARS]
    at = prompt.find(beginning, start)
    for _ in range(_MOST_BEGINNINGS):
        if at < 0 or prompt.startswith(text, at):
            return at
        at = prompt.find(beginning, at + 1)
    return prompt.find(text, at) if at >= 0 else -1


def found_in(prompt: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return the passages whose text stands in the prompt, in the prompt's order.

    A passage that a formatter cut comes back with the beginning that is there as its text, and its full
    length in `truncated`. White space, punctuation and escapes may differ. A picture is found by its data, and any
    other blank passage is never found.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
        >>> [p.id for p in found_in("Context: Bergen. Oslo. Question: where?", pool)]
        ['b', 'a']
    """
    return tuple([passage for _, passage in PassageFinder(passages).places_in(prompt)])


class PassageFinder:
    """Finds some passages in the prompts of one run.

    An exact search comes first. Only passages that it misses are compared by their letters and digits, which are
    computed once for all prompts. That search ends for good after 100 MB, so that a run of many long prompts and
    many passages takes bounded time.

    Args:
        passages: the passages to find.

    Attributes:
        is_spent: the search by letters has ended, so that a passage may stand in a prompt and not be found.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = passages
        self.is_spent = False
        self._heads: dict[int, bytes] = {}
        self._room = _SEARCHED_BYTES

    def places_in(self, prompt: str) -> list[tuple[int, Passage]]:
        """Return the passages that stand in a prompt, in its order, each with its number among all passages.

        Example:
            >>> from ragtrace.model import Passage
            >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
            >>> [number for number, _ in PassageFinder(pool).places_in("Context: Bergen.")]
            [1]
        """
        found: list[tuple[int, Passage]] = []
        ats: list[int] = []
        missing: list[int] = []
        near = 0
        is_ordered = True
        has_pictures: bool | None = None
        for number, passage in enumerate(self.passages):
            text = passage.text
            is_blank = not text or text.isspace()
            at = -1 if is_blank else place_of(text, prompt, near)
            if at < 0:
                if has_pictures is None:
                    has_pictures = f"{PICTURE}:" in prompt
                if has_pictures and (picture := picture_of(passage)):
                    text = picture
                    at = prompt.find(text)
            if at < 0:
                if not is_blank:
                    missing.append(number)
                continue
            if at < near:
                is_ordered = False
            near = at + len(text)
            found.append((number, passage))
            ats.append(at)
        if not missing and is_ordered:
            return found
        if not is_ordered:
            ats = _first_places(ats, found, prompt)
        exact = [_Found(at, *one) for at, one in zip(ats, found, strict=True)]
        loose = self._loose(prompt, missing, exact) if missing else []
        if loose:
            exact = [*_in_letters(exact, prompt), *loose]
        return [(one.number, one.passage) for one in sorted(exact, key=_AT)]

    def _loose(self, prompt: str, missing: Sequence[int], exact: Sequence[_Found]) -> list[_Found]:
        """Return those of the missing that stand in a prompt in another notation, or cut."""
        if self._room < 0:
            self.is_spent = True
            return []
        shown = _PromptText(prompt)
        self._room -= len(shown.letters) * len(missing)
        whole: list[_Found] = []
        cuts: list[_Cut] = []
        for number in missing:
            found = self._found_or_cut(number, shown)
            if not isinstance(found, _Found):
                found = self._found_joined(number, shown) or found
            if isinstance(found, _Cut):
                cuts.append(found)
            elif found is not None:
                whole.append(found)
        if cuts:
            whole.extend(_own_cuts(cuts, shown, [one.passage for one in (*exact, *whole)]))
        return whole

    def _found_or_cut(self, number: int, shown: _PromptText) -> _Found | _Cut | None:
        passage, head = self.passages[number], self._head(number)
        if len(head) < _SHORTEST_HEAD_BYTES:
            at = shown.place_of_short(passage.text)
            return _Found(at, number, passage) if at >= 0 else None
        at = shown.letters.find(head)
        if at < 0:
            return None
        text = letters(passage.text)
        kept = _kept(text, shown.letters, len(head))
        at = shown.letters.find(text[:kept], at)
        return _Found(at, number, passage) if kept == len(text) else _Cut(at, number, passage, text, kept)

    def _found_joined(self, number: int, shown: _PromptText) -> _Found | None:
        """Return a passage that stands in a prompt without its line breaks, one of which splits an escape."""
        passage = self.passages[number]
        if not _SPLIT_ESCAPE.search(passage.text):
            return None
        text = letters(passage.text.replace("\n", ""))
        at = shown.letters.find(text) if len(text) >= _SHORTEST_HEAD_BYTES else -1
        return _Found(at, number, passage) if at >= 0 else None

    def _head(self, number: int) -> bytes:
        """Return the letters of a passage's first 40 characters, and of more where these are mostly punctuation."""
        head = self._heads.get(number)
        if head is None:
            text = self.passages[number].text
            head = letters(text[:_HEAD_CHARS])
            if len(head) < _SHORTEST_HEAD_BYTES and len(text) > _HEAD_CHARS:
                head = letters(text)
            size = max(len(letters(text[:_SHORTEST_CUT_CHARS])), _SHORTEST_HEAD_BYTES)
            head = self._heads[number] = head[:size]
        return head


def _first_places(ats: Sequence[int], found: Sequence[tuple[int, Passage]], prompt: str) -> list[int]:
    """Return where passages stand first, each by itself and not as a part of another one."""
    ends = [(at, at + len(passage.text)) for at, (_, passage) in zip(ats, found, strict=True)]
    first: list[int] = []
    for at, (_, passage) in zip(ats, found, strict=True):
        place = place_of(passage.text, prompt)
        is_part = any(begin <= place < end for begin, end in ends if begin != place)
        first.append(at if place < 0 or is_part else place)
    return first


class _Found(NamedTuple):
    """A passage and its place, in characters of the prompt or in bytes of its letters."""

    at: int
    number: int
    passage: Passage


class _Cut(NamedTuple):
    """A passage of which a prompt shows the beginning: `kept` of the bytes of its letters."""

    at: int
    number: int
    passage: Passage
    letters: bytes
    kept: int


_AT, _KEPT = attrgetter("at"), attrgetter("kept")


class _PromptText:
    """A prompt, reduced step by step as far as passages need it."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        self.letters = letters(prompt)

    @cached_property
    def plain(self) -> str:
        return composed(unescaped(self.prompt))

    @cached_property
    def folded(self) -> str:
        return folded(self.plain)

    @cached_property
    def values(self) -> dict[str, int]:
        """Whole lines, quoted values, cells and items, each with its first place."""
        found: dict[str, int] = {}
        at = 0
        for value in _VALUE_ENDS.split(self.plain):
            found.setdefault(" ".join(value.split()).lstrip("-*>#• "), at)
            at += len(value) + 1
        return found

    def place_of_short(self, text: str) -> int:
        """Return where a short passage stands: several words in their order, or one as a whole value.

        Two words in another case say something else: "No, thanks" is not in "say no thanks".
        """
        shown, said = self.plain, composed(unescaped(text))
        words = _WORD.findall(said)
        if len(words) > 1 and sum(map(len, words)) >= _SHORTEST_WORDS_CHARS:
            if letters(text) not in self.letters:
                return -1
            if len(words) >= _FEWEST_CASELESS_WORDS:
                shown, words = self.folded, _WORD.findall(folded(said))
            at = _place_of_words(words, shown)
        else:
            at = self.values.get(" ".join(said.split()), -1)
        return at if at < 0 else len(letters(shown[:at]))


def _place_of_words(words: Sequence[str], text: str) -> int:
    """Return where words stand in a text in their order, at most 64 marks between two; -1 where they do not."""
    at = text.find(words[0])
    while at >= 0:
        end = at + len(words[0]) if not text[at - 1 : at].isalnum() else -1
        for word in words[1:] if end >= 0 else ():
            start = _BETWEEN_WORDS.match(text, end).end()  # type: ignore[union-attr]  # it matches nothing too
            if not text.startswith(word, start):
                end = -1
                break
            end = start + len(word)
        if end >= 0 and not text[end : end + 1].isalnum():
            return at
        at = text.find(words[0], at + 1)
    return -1


def _in_letters(found: Sequence[_Found], prompt: str) -> Iterator[_Found]:
    """Yield what was found exactly, with its place in the prompt's letters."""
    ordered = sorted(found, key=_AT)
    ends = [0, *(one.at for one in ordered)]
    at = 0
    for one, (start, end) in zip(ordered, pairwise(ends), strict=True):
        at += len(letters(prompt[start:end]))
        yield one._replace(at=at)


def _own_cuts(cuts: Sequence[_Cut], shown: _PromptText, whole: Sequence[Passage]) -> Iterator[_Found]:
    """Yield the cut passages whose beginning is there for themselves.

    A header that all passages have, or the end of the passage before, which overlaps with this one's beginning,
    stands in the prompt with any of them; the longest beginning is looked at first. A few characters behind it
    agree by chance.
    """
    others = b"\0".join(letters(passage.text) for passage in whole)
    longer = [_with_parts(cut, shown.letters, others) for cut in cuts]
    for _, group in groupby(sorted(longer, key=_KEPT, reverse=True), key=_KEPT):
        own = [cut for cut in group if cut.letters[: cut.kept][:-_CHANCE_CHARS] not in others]
        for cut in own:
            yield _Found(cut.at, cut.number, _cut_passage(cut, shown.prompt))
        others = b"\0".join((others, *(cut.letters[: cut.kept] for cut in own)))


def _with_parts(cut: _Cut, prompt: bytes, others: bytes) -> _Cut:
    """Return a cut passage with what stands elsewhere in the prompt of its rest: it was split into chunks.

    A part that stands in another passage was shown for that one.
    """
    text, kept = cut.letters, cut.kept
    end = cut.at + kept
    for _ in range(_MOST_PARTS):
        rest = text[kept:]
        head = rest[:_PART_BYTES]
        at = prompt.find(head, end)
        if len(rest) > len(head):
            part = rest[: _kept(rest, prompt, len(head))] if at >= 0 else b""
        else:
            part = rest if 0 <= at <= end + _FAR_BYTES else b""
        if not part or (len(part) > _CHANCE_CHARS and part[:-_CHANCE_CHARS] in others):
            break
        kept += len(part)
        end = at + len(part)
    return cut._replace(kept=kept)


def _cut_passage(cut: _Cut, prompt: str) -> Passage:
    """Return a cut passage with the beginning that is there as its text; the passage itself where all of it is."""
    passage, text = cut.passage, cut.passage.text
    if cut.kept == len(cut.letters):
        return passage
    if text[:_SHORTEST_CUT_CHARS] in prompt:
        exact = _kept(text, prompt, _SHORTEST_CUT_CHARS)
        # Letters behind the cut agree by chance; text in another notation behind it does not.
        if len(letters(text[:exact])) + _CHANCE_CHARS >= cut.kept:
            return replace(passage, text=text[:exact], truncated=len(text))
    end = bisect_left(range(len(text)), cut.kept, key=lambda size: len(letters(text[:size])))
    return replace(passage, text=text[:end], truncated=len(text))


def _kept(text: AnyStr, prompt: AnyStr, low: int) -> int:
    """Return how much of a text's beginning stands in the prompt, where its first `low` units do."""
    if len(text) <= low or text in prompt:
        return len(text)
    high = len(text)
    while low + 1 < high:
        middle = (low + high) // 2
        if text[:middle] in prompt:
            low = middle
        else:
            high = middle
    return low


# -- the prompts behind an answer --

# A shorter text stands in many another by chance, unless it is a whole line or value there.
_SHORTEST_PART_CHARS = 16
_TAIL_CHARS = 40  # a cut passage whose end stands in another prompt was shown whole, in two parts
# A text is not in one piece where it was quoted, escaped, set anew, or cut at a tag of LlamaIndex's FLARE.
_BREAKS = re.compile(r'\\[nrt"]|["\n\r\t]|\[Search\(')
_MARKS = re.compile(r"\[\^?\d+(?: *, *\^?\d+)*\]|\u3010\d[^\u3011]{0,20}\u3011")  # of sources
_REASONED = re.compile(rf"\s*{REACT_THOUGHT}.*^{REACT_ANSWER}\s*", re.DOTALL | re.MULTILINE)  # of ReAct
_SENTENCE_ENDS = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s*")  # of at most 2,048 characters
_LOOKED_AT_CHARS = 2_048  # of a reply, to know it again
_MOST_BREAKS = 1_000  # of an answer that is looked for by its pieces
_SEARCHED_CHARS = 8_000_000  # of all prompts together: about 2 ms
_WORD_MARKS = ".,;:!?*`'\"()\u3001\u3002\uff01\uff0c\uff1f"
_VALUE_BEGINS = frozenset("\n\"'*`|\uff1a")
_ITEM_BEGINS = frozenset((": ", "= ", "> ", "\N{BULLET} ", "* ", "- ", "| "))
_VALUE_END = re.compile(r"""[\n"'*`<\u3001\u3002\uff01\uff0c\uff1f]|[.,;!?](?:\W|\Z)| *+\|""")
TextKind = Literal["tool_output", "context_text"]


class _Call(NamedTuple):
    """A model call of the application's: its prompt, and what it replied."""

    prompt: str
    reply: str


def prompt_set(
    prompts: Sequence[str], steps: Sequence[Step], answer: str, finder: PassageFinder, *, is_told: bool = False
) -> tuple[Passage, ...]:
    """Return the delivered passages that the model had before it when it made the answer.

    They stand in the order of the prompt that shows them. Where no prompt shows all of them, they stand in the
    order of delivery. Where no reply leads to the answer, or no reply was reported, the prompts alone tell.

    Args:
        prompts: of the run, the oldest first.
        steps: of the run; its model calls count.
        answer: of the run.
        finder: finds the delivered passages.
        is_told: passages that the answer's prompt does not show stand as it has what models replied to them, since
            calls side by side end in any order. Where one of them is not known by such a reply, the order is left.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
        >>> [p.id for p in prompt_set(["Context: Bergen."], (), "In Bergen.", PassageFinder(pool))]
        ['b']
        >>> from ragtrace.capture.types import Generation
        >>> from ragtrace.model import Message
        >>> calls = ("Read: Bergen.", "By the sea."), ("Read: Oslo.", "Inland."), ("Inland. By the sea.", "Two.")
        >>> steps = [
        ...     Generation(
        ...         started_ns=0,
        ...         ended_ns=0,
        ...         inputs=(Message(role="user", content=prompt),),
        ...         outputs=(Message(role="assistant", content=reply),),
        ...     )
        ...     for prompt, reply in calls
        ... ]
        >>> finder = PassageFinder(pool[::-1])
        >>> [one.id for one in prompt_set([prompt for prompt, _ in calls], steps, "Two.", finder, is_told=True)]
        ['a', 'b']
    """
    calls = list(_calls(prompts, steps)) if len(prompts) > 1 else []
    last = _answering(calls, answer.strip())
    shown = _shown_behind(calls, last, finder) if last else _shown(prompts, finder)
    if not is_told or len(shown) < 2 or len(prompts) < 2:
        return shown
    return _as_told(shown, calls, calls[last[-1]].prompt if last else prompts[-1])


def answered_prompt(prompts: Sequence[str], steps: Sequence[Step], answer: str) -> str:
    """Return the prompt that the answer replied to; the last one where no reply leads to it.

    Example:
        >>> answered_prompt(["Where is the lab?", "Make a title."], (), "In Oslo.")
        'Make a title.'
    """
    calls = list(_calls(prompts, steps))
    last = _answering(calls, answer.strip())
    return calls[last[-1]].prompt if last else prompts[-1]


def answered_prompts(
    prompts: Sequence[str], steps: Sequence[Step], answer: str, delivered: Sequence[Passage]
) -> list[tuple[str, str]]:
    """Return the prompts that the answer goes back to, each with its reply; the last where no reply leads to it.

    Example:
        >>> answered_prompts(["Where is the lab?"], (), "In Oslo.", ())
        [('Where is the lab?', '')]
    """
    calls = list(_calls(prompts, steps))
    last = _answering(calls, answer.strip())
    if last:
        return [(call.prompt, call.reply) for call in _going_back(calls, last, delivered)]
    return [(prompts[-1], calls[-1].reply if calls else "")] if prompts else []


def _calls(prompts: Sequence[str], steps: Sequence[Step]) -> Iterator[_Call]:
    """Yield the calls that were asked with one of the prompts; a prompt inside a retriever is none of them."""
    left = list(prompts)
    for step in steps:
        if isinstance(step, Generation) and step.inputs:
            place = _place_of(step.inputs, left)
            if place is not None:
                reply = "\n".join(map(_told_in, step.outputs[:1]))
                yield _Call(left.pop(place), reply.strip())


def _told_in(reply: Message) -> str:
    """Return what a reply says; of one that fills in a form for its answer, that."""
    is_form = len(reply.calls) == 1 and not reply.content.strip()
    said = (answer_field(reply.calls[0].arguments) if is_form else None) or without_thoughts(reply.shown)
    reasoned = _REASONED.match(said)
    return said if reasoned is None else said[reasoned.end() :]


def _place_of(inputs: Sequence[Message], prompts: Sequence[str]) -> int | None:
    """Return which of the prompts a call was asked with: its messages, one behind the other."""
    asked = [message.shown for message in inputs]
    size = sum(map(len, asked)) + len(asked) - 1
    found = (n for n, prompt in enumerate(prompts) if len(prompt) == size and _begins(prompt, asked))
    place = next(found, None)
    if place is not None:
        return place
    # A step keeps less of a long message than there is of the prompt.
    asked = asked[: asked.index(max(asked, key=len)) + 1]
    return next((n for n, prompt in enumerate(prompts) if len(prompt) > size and _begins(prompt, asked)), None)


def _begins(prompt: str, asked: Sequence[str]) -> bool:
    at = 0
    for content in asked:
        if not prompt.startswith(content, at):
            return False
        at += len(content) + 1
    return True


def _answering(calls: Sequence[_Call], answer: str) -> list[int]:
    """Return the places of the calls that made the answer: whose reply it is, holds it, or stands in it."""
    if not answer:
        return []
    replies = [call.reply for call in calls]
    return _made_of(replies, answer) or _made_of(list(map(folded, replies)), folded(answer))


def _made_of(replies: Sequence[str], answer: str) -> list[int]:
    same = [place for place, reply in enumerate(replies) if reply == answer]
    if same:
        return same[-1:]
    said = _piece(answer)
    holding = [
        place for place, reply in enumerate(replies) if _Said(said).stands_in(reply) and _holds(reply, answer)
    ]
    if holding:
        return holding[-1:]
    pieces = [_piece(reply) for reply in replies]
    parts = [place for place, part in enumerate(pieces) if len(part) >= _SHORTEST_PART_CHARS and part in answer]
    if parts:
        return sorted({*parts, *_saying_the_rest(replies, answer, [pieces[place] for place in parts])})
    return [place for place, reply in enumerate(replies) if _is_cited_anew(reply, answer)][-1:]


def _saying_the_rest(replies: Sequence[str], answer: str, known: Sequence[str]) -> list[int]:
    """Return the places of the replies of which a sentence stands in what is left of an answer.

    A program that joins replies may cut a word off each, such as the mark that a model ends with.
    """
    for piece in known:
        answer = answer.replace(piece, "\n")
    if len(answer.strip()) < _SHORTEST_PART_CHARS:
        return []
    sentences = (max(map(str.strip, _SENTENCE_ENDS.split(reply[:_LOOKED_AT_CHARS])), key=len) for reply in replies)
    return [place for place, one in enumerate(sentences) if len(one) >= _SHORTEST_PART_CHARS and one in answer]


def _shown_behind(calls: Sequence[_Call], last: Sequence[int], finder: PassageFinder) -> tuple[Passage, ...]:
    """Return the passages of the prompts of the last calls, and of those that these go back to."""
    taken: list[str] = []
    best: dict[int, Passage] = {}
    delivered = finder.passages
    for call in _going_back(calls, last, delivered):
        taken.append(call.prompt)
        found = dict(finder.places_in(call.prompt))
        if found.keys() > best.keys():  # one prompt that shows all gives the order
            best, found = found, best
        elif found.keys() - best.keys():
            best = {place: best.get(place) or found[place] for place in sorted({*best, *found})}
        for place, passage in found.items():
            if len(passage.text) > len(best[place].text):
                best[place] = passage
        if len(best) == len(delivered) and all(passage is delivered[place] for place, passage in best.items()):
            break
    for place, passage in best.items():
        whole = delivered[place]
        if passage is not whole and any(whole.text[-_TAIL_CHARS:] in prompt for prompt in taken):
            best[place] = whole
    return tuple(best.values())


def _going_back(calls: Sequence[_Call], last: Sequence[int], delivered: Sequence[Passage]) -> Iterator[_Call]:
    """Yield the last calls, and before each those whose replies stand in its prompt; they ended in this order."""
    room = _SEARCHED_CHARS
    taken: list[_Prompt] = []
    all_replies = Counter(call.reply for call in calls)
    used_replies: Counter[str] = Counter()
    for place in range(last[-1], -1, -1):
        call = calls[place]
        if place not in last:
            said = _Said(_piece(call.reply))
            room -= sum(len(prompt.text) for prompt in taken)
            places = max((said.count_in(prompt, delivered) for prompt in taken), default=0) if room >= 0 else 0
            alike = all_replies[call.reply], used_replies[call.reply]
            if not places or not _is_telling(said, call, alike, places, delivered):
                continue
        taken.append(_Prompt(call.prompt))
        used_replies[call.reply] += 1
        yield call


def _is_telling(
    said: _Said, call: _Call, alike: tuple[int, int], places: int, delivered: Sequence[Passage]
) -> bool:
    """Tell whether a reply says where it came from: not a grade or a refusal in words that its prompt gave it.

    What is taken out of a passage stands in its prompt as well, as does an answer that a refinement left as it was.
    A single word that several calls reply is a grade, unless the answer goes back to all the others that say it: an
    agent repeats what its tool said, and a prompt may show the same answer of two sub-questions. `alike` counts the
    calls with this reply, and those that are taken already; `places` are those of the reply in a later prompt.
    """
    count, used = alike
    if not said.is_short:
        is_given = said.text in call.prompt
        return not is_given or count > 1 or any(said.text in passage.text for passage in delivered)
    prompt = _Prompt(call.prompt)
    if said.words_in(prompt.folded) > said.words_in_passages(prompt, delivered):
        return False
    return count - used <= places or not said.is_word


class _Prompt:
    """A prompt, folded where a reply is not in it as it was said."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def folded(self) -> str:
        return folded(self.text)

    @cached_property
    def letters(self) -> bytes:
        return letters(self.text)


class _Said:
    """The piece of a reply by which it is known again in a later prompt.

    Attributes:
        text: the piece.
        is_short: it stands in many another text by chance, unless it is a whole line or value there.
        is_word: it is a single word.
    """

    def __init__(self, text: str) -> None:
        self.is_short = len(text) < _SHORTEST_PART_CHARS
        self.is_word = self.is_short and " " not in text
        self.text = (text.strip(_WORD_MARKS) or text) if self.is_word else text

    @cached_property
    def _letters(self) -> bytes:
        return letters(self.text)

    @cached_property
    def _bare(self) -> str:
        return folded(self.text).strip(_WORD_MARKS)

    def words_in(self, text: str) -> int:
        """Return how often a folded text says the piece, as whole words."""
        return _count_whole(text, self._bare, _is_apart) if self._bare else 0

    def words_in_passages(self, prompt: _Prompt, delivered: Sequence[Passage]) -> int:
        """Return how often the passages that a prompt shows say the piece."""
        saying = [passage for passage in delivered if self.words_in(folded(passage.text))]
        return sum(self.words_in(folded(passage.text)) for passage in found_in(prompt.text, saying))

    def stands_in(self, text: str) -> bool:
        """Tell whether the piece is in a text; a short one as whole words, and one word as all that a line says."""
        return self.text in text and (not self.is_short or bool(self._places_in(text, self.text)))

    def count_in(self, prompt: _Prompt, delivered: Sequence[Passage]) -> int:
        """Return how often a prompt shows the piece, as `stands_in`; not in a passage, where it is a short one."""
        text, piece = prompt.text, self.text
        if not piece:
            return 0
        if not self.is_short and piece in text:
            return 1
        if not self.is_short and len(self._letters) >= _SHORTEST_PART_CHARS:
            return int(self._letters in prompt.letters)  # folded, or a list was made of it
        if piece not in text:
            text, piece = prompt.folded, folded(piece)
        if piece not in text or not self.is_short:
            return int(piece in text)
        places = self._places_in(text, piece)
        if not places:
            return 0
        saying = [passage for passage in delivered if self.words_in(folded(passage.text))]
        shown = found_in(prompt.text, saying)
        return places - sum(self._places_in(folded(passage.text), folded(piece)) for passage in shown)

    def _places_in(self, text: str, piece: str) -> int:
        return _count_whole(text, piece, _is_value if self.is_word else _are_words) if piece else 1


def _count_whole(text: str, piece: str, is_whole: Callable[[str, int, int], bool]) -> int:
    """Return how often a piece stands in a text by itself, as is asked with its begin and its end."""
    count, at = 0, text.find(piece)
    while at >= 0:
        end = at + len(piece)
        is_counted = is_whole(text, at, end)
        count += is_counted
        at = text.find(piece, end if is_counted else at + 1)
    return count


def _is_apart(text: str, at: int, end: int) -> bool:
    around = (text[at - 1 : at], text[end : end + 1])
    return not any(one.isalnum() or one == "_" for one in around)


def _are_words(text: str, at: int, end: int) -> bool:
    return not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())


def _is_value(text: str, at: int, end: int) -> bool:
    """Tell whether it is a line, a value that is quoted or set off, an item, or what stands behind a colon."""
    is_begin = not at or text[at - 1] in _VALUE_BEGINS or text[max(at - 2, 0) : at] in _ITEM_BEGINS
    return is_begin and (end == len(text) or _VALUE_END.match(text, end) is not None)


def _piece(text: str) -> str:
    """Return the longest piece of a text, by which it is known again where it was set in another one."""
    return max(map(str.strip, _BREAKS.split(text[:_LOOKED_AT_CHARS])), key=len)


def _holds(reply: str, answer: str) -> bool:
    """Tell whether a reply holds an answer, as a field of structured output or behind a model's reasoning."""
    if answer in reply:
        return True
    pieces = {piece.strip() for piece in _BREAKS.split(answer)}
    return len(pieces) <= _MOST_BREAKS and all(piece in reply for piece in pieces)


def _is_cited_anew(reply: str, answer: str) -> bool:
    """Tell whether an answer is a reply in which other marks of sources were set, as links for numbers."""
    pieces = [piece.strip() for piece in _MARKS.split(reply)]
    if len(pieces) < 2 or max(map(len, pieces)) < _SHORTEST_PART_CHARS:
        return False
    at = 0
    for piece in pieces:
        at = answer.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _shown(prompts: Sequence[str], finder: PassageFinder) -> tuple[Passage, ...]:
    """Return the passages of the last prompt that shows them all, else of the last that shows several.

    The last prompt of a run may be a check of the answer, or make a title for it. Where each prompt shows one
    passage (map and reduce, refine), they were shown together by all of them.
    """
    singles: dict[int, Passage] = {}
    several: tuple[Passage, ...] = ()
    for prompt in reversed(prompts):
        found = finder.places_in(prompt)
        if len(found) == len(finder.passages):
            return tuple(passage for _, passage in found)
        if len(found) > 1:
            several = several or tuple(passage for _, passage in found)
        for place, passage in found:
            singles.setdefault(place, passage)
    return several or tuple(singles[place] for place in sorted(singles))


def shown_texts(run: Reported, pool: Sequence[Passage], *, is_searched: bool) -> tuple[Passage, ...]:
    """Return the texts that the answer was made of, in the order in which they were reported.

    A text that shows a passage of the pool is the output of a tool that searched, and its passages count instead.
    In a run that searched, a joined context is made of its passages.
    """
    if not run.texts or not run.prompts:
        return ()
    texts = (
        text for text in run.texts.values() if not (is_searched and text.metadata.get("kind") == "context_text")
    )
    own = tuple(text for text in texts if not (pool and found_in(text.text, pool)))
    if not own:
        return ()
    answer = run.attributes.get("answer", "")
    return prompt_set(run.prompts, run.steps, answer, PassageFinder(own), is_told=True)


def _as_told(shown: tuple[Passage, ...], calls: Sequence[_Call], prompt: str) -> tuple[Passage, ...]:
    """Return passages in the order in which a prompt has what models replied to them."""
    finder = PassageFinder(shown)
    if finder.places_in(prompt):
        return shown
    places: dict[int, tuple[bool, int]] = {}  # by passage: whether a short reply told it, and where that stands
    for call in calls:
        at = prompt.find(call.reply) if call.reply else -1
        for number, _ in finder.places_in(call.prompt) if at >= 0 else ():
            place = len(call.reply) < _SHORTEST_PART_CHARS, at
            places[number] = min(place, places.get(number, place))
    if len(places) < len(shown):
        return shown
    return tuple(shown[number] for number in sorted(places, key=lambda number: (places[number][1], number)))


def unread_texts(run: Reported) -> list[tuple[str, str]]:
    """Return tool outputs that stand in no prompt as they were returned, of a run in which no passage was found.

    Each with the name of its tool.
    """
    if not run.attributes.get("answer"):
        return []
    return [
        (text.source or "", text.text) for text in run.texts.values() if text.metadata.get("kind") == "tool_output"
    ]
