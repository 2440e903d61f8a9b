"""Cut an answer into parts, each with the ids of the passages that it cites."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ragtrace.capture.citations.markers import MARK, labels_in, marked, may_cite, sentences
from ragtrace.capture.citations.names import PassageNames
from ragtrace.capture.citations.structured import label_and_quote, parsed, statements
from ragtrace.capture.guard import guarded
from ragtrace.model import AnswerPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ragtrace.capture.citations.names import Target
    from ragtrace.model import Passage, RagRecord

MAX_PARTS = 200  # as many sentences as a judge reads
_LABELS_CHARS = 300_000  # of the last prompts, searched for labels: about 12 ms
_MOST_REPLIES = 4  # the last ones are read as structured output
_MAX_QUOTE_CHARS = 64
_MAX_ROW_CHARS = 300  # of a list of sources; a longer line is text
_LISTS = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]*)?[*_]*(?:sources?|references?|citations?|footnotes|bibliography|quellen)[*_]*"
    r"(?:[ \t]*:[*_]*|[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_DEFINITION = re.compile(r"^[ \t]*\[\^?([^\[\]\n]{1,64})\]:[ \t]*(.+)$", re.MULTILINE)
_LISTED = re.compile(r"^[ \t*•-]*(?:[\[【(]\^?(\w[\w.\-]{0,63})[\]】)]|(\d{1,3})[.):])[ \t:*-]*(.*)$")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)
_BEFORE_MARK = re.compile(rf"[ \t]*{MARK}")
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
    if not said or not (may_cite(answer) or "{" in answer or holding):
        return ()
    names = PassageNames(contexts, others, list(_last(prompts)), is_from_zero=_FROM_ZERO.search(answer) is not None)
    for label, name in labels.items():
        names.list_label(label, (name,))
    parts = _parts(answer, names)
    for reply in holding[: -_MOST_REPLIES - 1 : -1] if not parts else ():
        parts = _from_structure(parsed(reply), names, said)
        if parts:
            break
    return tuple(parts[:MAX_PARTS])


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


def _parts(answer: str, names: PassageNames) -> list[AnswerPart]:
    answer = answer.replace(MARK, " ")
    structure = parsed(answer) if answer.lstrip()[:1] in {"{", "[", "`"} else None
    if structure is not None and (parts := _from_structure(structure, names)):
        return parts
    body, listed = _without_lists(answer, names)
    text, cited = marked(body, names)
    if cited:
        return list(_sentences(text, cited, names))
    plain = " ".join(body.split())
    if not listed or not any(map(str.isalnum, plain)):
        return []
    return [AnswerPart(text=plain, citations=_chosen(listed, plain, names))]


def _without_lists(answer: str, names: PassageNames) -> tuple[str, list[Target]]:
    """Return an answer without its list of sources, and what the list cites; its labels become names."""
    cited: list[Target] = []

    def define(found: re.Match[str]) -> str:
        cited.extend(_listed(found[1], found[2], names))
        return ""

    body = _DEFINITION.sub(define, answer)
    head = next((head for head in reversed([*_LISTS.finditer(body)]) if head.start()), None)
    rows = body[head.end() :].splitlines() if head else []
    if head is None or any(len(row) > _MAX_ROW_CHARS for row in rows):
        return body, cited
    for row in rows:
        cited.extend(_of_row(row.strip(" \t*•-."), names))
    return body[: head.start()], cited


def _of_row(row: str, names: PassageNames) -> list[Target]:
    text, found = marked(row, names)
    if found and (len(found) > 1 or not any(map(str.isalnum, text))):
        return [target for one in found for target in one]
    labelled = _LISTED.match(row)
    if labelled and labelled[3].strip():
        return _listed(labelled[1] or labelled[2], labelled[3], names)
    return _named(row, names)


def _listed(label: str, rest: str, names: PassageNames) -> list[Target]:
    """Return what one row of a list of sources cites, and make its label a name of it."""
    found = _named(rest, names)
    if not found:
        return labels_in(label, names)
    names.list_label(label, found[0])
    return found[:1]


def _named(text: str, names: PassageNames) -> list[Target]:
    """Return what a text in a list of sources cites: wholly a label, or a text with names in it."""
    if found := labels_in(text, names):
        return found
    words = [word.strip("()[]<>,;:\"'`*") for word in text.split()]
    return [target for word in words if word and not word.isdecimal() and (target := names.by_name(word))]


def _sentences(text: str, cited: Sequence[Sequence[Target]], names: PassageNames) -> Iterator[AnswerPart]:
    at = 0
    held: AnswerPart | None = None
    early: list[Target] = []
    for sentence in sentences(_HEADING.sub(_if_marked, text)):
        n = sentence.count(MARK)
        targets = [target for one in cited[at : at + n] for target in one]
        at += n
        plain = _BEFORE_MARK.sub("", sentence).strip()
        if not any(map(str.isalnum, plain)):  # markers alone, on a line of their own
            if held is None:
                early.extend(targets)
            else:
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
    return heading[0] if MARK in heading[0] else ""


def _chosen(targets: Iterable[Target], sentence: str, names: PassageNames) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names.closest(target, sentence) for target in targets))


def _from_structure(value: Any, names: PassageNames, answer: str | None = None) -> list[AnswerPart]:
    """Return a part for each text with citations in structured output."""
    parts: list[AnswerPart] = []
    for text, items in statements(value):
        if answer is not None and text.strip() not in answer:
            continue
        body, cited = marked(text, names)
        if cited:
            parts.extend(_sentences(body, cited, names))
            continue
        targets = [target for item in items for target in _of_item(item, names)]
        parts.append(AnswerPart(text=text, citations=_chosen(targets, text, names)))
    return parts if any(part.citations for part in parts) else []


def _of_item(item: Any, names: PassageNames) -> list[Target]:
    label, quote = label_and_quote(item)
    found = labels_in(label, names) if label else []
    if found:
        return found
    quoted = names.by_quote(quote or label)
    return [quoted] if quoted else [((label or quote)[:_MAX_QUOTE_CHARS],)] if label or quote else []
