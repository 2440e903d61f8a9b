"""Places of question, answer and evidence of a run, and signs of what is unsure of them.

An interpreter finds them; this says their places, which a person can look up, and declare where they are wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ragtrace.capture.attribution import answered_prompts, unread_texts
from ragtrace.capture.content_blocks import content_text
from ragtrace.capture.declared import is_place
from ragtrace.capture.follows import Before, Root, followed
from ragtrace.capture.own_words import texts_of
from ragtrace.capture.past import MOST_ROOTS
from ragtrace.capture.residue import Explained, Memory, Prompted, held_in, unread
from ragtrace.capture.types import Retrieval, ToolCall
from ragtrace.capture.values import Opaque, Prompt, Turn, fields_of
from ragtrace.model import Found, Message, Reading, Sign, Source
from ragtrace.model.reading import IN_PROMPT, Kind
from ragtrace.text import MAX_NAME_CHARS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from ragtrace.capture.reported import Reported
    from ragtrace.capture.residue import Unread
    from ragtrace.capture.types import Findings, LeftOut
    from ragtrace.model import Passage, Pool

_MOST_PARTS = 5_000  # of a value that are looked at
_DEPTH = 6
_SHOWN_CHARS = 60  # of the words that a sign is about
_MESSAGES = ("messages",)
_MOST_SIGNS = 8  # of one run, which has at most 7 of the names
_UNNAMED = "search"
_OWN_WORDS = "the model said it first, or it says only that something was done"
_STAYS = "what a search found or the code marked always counts"
_OF_KIND: dict[str, Kind] = {"tool_output": "tool", "context_text": "state"}


def place_in(value: object, text: str, head: str, names: frozenset[str]) -> Found | None:
    """Return where a text is in a value; None where it is not.

    A place that the frameworks have a name for comes before another one, which is a guess.

    Args:
        value: an input, an output or a state.
        text: what is sought.
        head: what the value is called: ``input``, ``output`` or ``state``.
        names: of fields that say what is in them.

    Example:
        >>> from ragtrace.capture.names import ASKED_NAMES
        >>> state = {"lang": "en", "messages": [Turn("user", "Where?")]}
        >>> place_in(state, "Where?", "state", ASKED_NAMES)
        Found(place='state.messages[-1]', how='structure')
        >>> place_in({"ticket": {"body": "Where?"}}, "Where?", "input", ASKED_NAMES)
        Found(place='input.ticket.body', how='guess')
    """
    sought, first = text.strip(), None
    for place, path, held in _texts_in(value, head):
        if held == text or held.strip() == sought:
            if names.issuperset(path):
                return Found(place)
            first = first or Found(place, "guess")
    return first


def longest_place(value: object, head: str) -> str:
    """Return the place of the longest text in a value, to be offered in a declaration; "" without texts."""
    places = ((len(held), place) for place, path, held in _texts_in(value, head) if path)
    return max(places, key=lambda one: one[0], default=(0, ""))[1]


def _texts_in(value: object, head: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield the texts in a value: the place of each, the names of the fields around it, and itself.

    Messages are in ``messages``, whatever the name of their list is: their role says what they are.
    """
    waiting: list[tuple[object, str, tuple[str, ...]]] = [(value, head, ())]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part, place, path = waiting.pop()
        if isinstance(part, str):
            yield place, path, part
        elif isinstance(part, Turn | Message):
            yield place, _MESSAGES, content_text(part.content)
        elif type(part) is Opaque:
            yield place, path, part.answer or part.text
        elif len(path) < _DEPTH:
            waiting += reversed(list(_parts_of(part, place, path)))


def _parts_of(value: object, place: str, path: tuple[str, ...]) -> Iterator[tuple[object, str, tuple[str, ...]]]:
    if type(value) is Prompt:
        value = value.turns
    if isinstance(value, list | tuple):
        if isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, str) for one in value):
            yield value[1], place, _MESSAGES  # ("user", "Where?")
            return
        last = len(value) - 1
        for number, part in enumerate(value):
            yield part, f"{place}[{-1 if number == last else number}]", path
        return
    for key, part in (fields_of(value) or {}).items():
        if isinstance(key, str):
            yield part, f"{place}{step_named(key)}", (*path, key)


def step_named(name: str) -> str:
    """Return a name as a step of a place: ``.ticket``, ``["due date"]``.

    Example:
        >>> step_named("ticket"), step_named("due date")
        ('.ticket', '["due date"]')
    """
    short = name[:MAX_NAME_CHARS]
    return f".{short}" if short.isidentifier() else '["' + short.replace('"', "'") + '"]'


def reading_of(
    run: Reported, pools: Sequence[Pool], texts: Sequence[Passage], shown: Collection[str] | None
) -> Reading:
    """Return what was read of a run that ended, and where.

    Args:
        run: as it was reported.
        pools: of its record.
        texts: texts of tools that count.
        shown: ids of what stands in the prompts that the answer goes back to; None where no prompt was seen.
    """
    found, facts = run.findings, run.attributes
    question = found.question or (Found(how="call") if facts.get("query") else None)
    answers = (found.answers or (Found(how="call"),)) if facts.get("answer") else ()
    sources = tuple(_sources(run, pools, texts, shown))
    with run.past.lock:
        left = _unread_in(run, pools, texts)
        follows = _followed(run, pools, texts)
        roots = _roots(run)
    missing = (Sign("declared_missing", f"{name}: {place}") for name, place in found.missing)
    signs = [*missing, *_of_places(found, question, answers), *_of_evidence(run, pools, texts, sources, left)]
    if follows is not None:  # that run's question is the question
        signs = [sign for sign in signs if sign.name != "question_guessed"]
        signs.append(Sign("follows_answer", follows, declare="follows=False"))
    return Reading(question if facts.get("query") else None, answers, sources, tuple(_first_of(signs)), roots)


def _first_of(signs: Sequence[Sign]) -> list[Sign]:
    """Return as many signs as a run keeps, in their order; one of each name stays, since names change scores."""
    named = {sign.name: at for at, sign in reversed(list(enumerate(signs)))}
    kept = sorted(range(len(signs)), key=lambda at: (named[signs[at].name] != at, at))[:_MOST_SIGNS]
    return [signs[at] for at in sorted(kept)]


def _unread_in(run: Reported, pools: Sequence[Pool], texts: Sequence[Passage]) -> list[Unread]:
    """Return text of the prompts that the answer goes back to, which nothing explains."""
    facts, notes = run.attributes, run.findings.prompts
    if not notes or not facts.get("answer"):
        return []
    passages = list({one.id: one for pool in pools for one in pool.passages}.values())
    known = [*passages, *run.texts.values()]
    explained = Explained(
        text
        for text in (
            facts.get("query", ""),
            *(turn.content for turn in facts.get("history", ())),
            *run.findings.talk,
            *run.findings.explained,
            *(text for one in known for text in (one.text, one.id, one.source or "", *_values_of(one.metadata))),
            *(one.text for step in run.steps if isinstance(step, Retrieval) for one in step.passages),
            *(text for step in run.steps if isinstance(step, ToolCall) for text in _of_call(step)),
        )
        if text
    )
    for said in run.findings.told:
        explained.add_reply(*([said] if isinstance(said, str) else [*texts_of(said), _written(said)]))
    is_found = bool(passages or texts)
    prompts = [
        Prompted(f"{facts.get('workflow')}/{note.step}", note.texts, note.told, reply if is_found else "")
        for prompt, reply in answered_prompts(run.prompts, run.steps, facts["answer"], passages)
        if (note := notes.get(prompt)) is not None
    ]
    held = (one for place, values in run.findings.held.items() for value in values for one in held_in(value, place))
    run.past.prompts = run.past.prompts or Memory()
    return unread(prompts, explained, held, run.past.prompts)


def _written(arguments: object) -> str:
    return json.dumps(arguments, default=str, ensure_ascii=False)


def _of_call(step: ToolCall) -> list[str]:
    return [*texts_of(step.arguments), step.result]


def _values_of(metadata: Mapping[str, object]) -> Iterator[str]:
    return (str(value) for value in metadata.values() if isinstance(value, str | int | float))


def _followed(run: Reported, pools: Sequence[Pool], texts: Sequence[Passage]) -> str | None:
    """Return the trace id of the run that this one follows; remember this one."""
    facts, found = run.attributes, run.findings
    passages = [one.text for pool in pools for one in pool.passages]
    called = any(isinstance(step, Retrieval | ToolCall) for step in run.steps)
    root = Root(
        trace_id=run.trace_id,
        question=facts.get("query", ""),
        answer=facts.get("answer", ""),
        given=found.given,
        is_alone=not (called or passages or any(one.metadata.get("kind") == "tool_output" for one in texts)),
    )
    before = run.past.answers = run.past.answers or Before()
    follows = followed(root, before) if found.may_follow else None
    before.add(root, follows)
    return follows


def _roots(run: Reported) -> tuple[str, ...]:
    """Return the name of a run's root and those of the other roots that were met; () without others."""
    name, known = run.findings.root, run.past.roots
    if name and len(known) <= MOST_ROOTS:
        known.add(name)
    is_told = run.declarations.roots() is not None
    if not name or is_told or not 1 < len(known) <= MOST_ROOTS:
        return ()
    return (name, *sorted(known - {name}))


def _of_places(found: Findings, question: Found | None, answers: tuple[Found, ...]) -> Iterator[Sign]:
    """Yield what is unsure of the question and the answers, each with the declaration that settles it."""
    if question is not None and question.how == "guess":
        yield Sign(
            "question_guessed", question.place, declare=_declared("question", question.place, found.asked_at)
        )
    if len(answers) > 1:
        places = " and ".join(one.place for one in answers)
        yield Sign("several_answers", places, declare=_declared("answer", answers[0].place, found.answered_at))
    elif answers and answers[0].how == "guess":
        place = answers[0].place
        yield Sign("answer_guessed", place, declare=_declared("answer", place, found.answered_at))


def _declared(name: str, place: str, offered: str) -> str:
    """Return the argument that declares a place: the one that was read, else another one to be looked at."""
    named = place if is_place(place) else offered
    return f"{name}={json.dumps(named, ensure_ascii=False)}" if named else ""


def _of_evidence(
    run: Reported,
    pools: Sequence[Pool],
    texts: Sequence[Passage],
    sources: Sequence[Source],
    unread: Sequence[Unread],
) -> Iterator[Sign]:
    found = run.findings
    for one in unread:
        yield Sign("evidence_unread", one.place or IN_PROMPT, _cut(one.text), _counted_at(one.place))
    if not (pools or texts):
        for name, text in unread_texts(run):
            yield Sign("evidence_unread", f"tool {name}", _cut(text), _counts(name))
    elif found.unmatched and not any(not one.place for one in unread):
        yield Sign("evidence_unread", IN_PROMPT)
    for left in found.left_out:
        if left.is_part:
            yield Sign("own_words_left_out", f"tool {left.name}", _cut(left.text), _counts(left.name))
    for name in dict.fromkeys(found.unused):
        yield Sign("tool_unused", f"tool {name}", declare=_counts(name, is_evidence=False))
    for source in sources:
        if source.kind == "tool" and source.how == "guess" and source.passages:
            yield Sign("tool_text_guessed", f"tool {source.name}", declare=_counts(source.name))


def _counted_at(place: str) -> str:
    """Return the declaration that makes a value evidence: its place, or a function and the place in its output."""
    if not place or is_place(place):
        return _counts(place) if place else ""
    head = place.partition(".")[0].partition("[")[0]
    rest = place[len(head) :]
    name, inner = (json.dumps(one, ensure_ascii=False) for one in (head, "output" + rest))
    return f"evidence={{{name}: {inner}}}"


def _why(left: LeftOut) -> str:
    if left.is_declared:
        return "declared to be no evidence"
    return "nothing that was said later has a word of it" if left.is_unused else _OWN_WORDS


def _counts(name: str, *, is_evidence: bool = True) -> str:
    return f"evidence={{{json.dumps(name, ensure_ascii=False)}: {is_evidence}}}"


def _cut(text: str) -> str:
    line = " ".join(text[: 4 * _SHOWN_CHARS].split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}..."


def _sources(
    run: Reported, pools: Sequence[Pool], texts: Sequence[Passage], shown: Collection[str] | None
) -> Iterator[Source]:
    """Yield what brought evidence, each with its numbers, and what of it is no evidence."""
    found = run.findings
    stages = {pool.stage: pool.passages for pool in pools}
    chosen = {one.id for one in stages["reranked"]} if "reranked" in stages else None
    every = {one.id: one for passages in stages.values() for one in passages}
    kinds = {text.id: _OF_KIND[str(text.metadata.get("kind"))] for text in texts if text.id not in every}
    every.update((text.id, text) for text in texts if text.id in kinds)
    counts: dict[tuple[Kind, str], list[str]] = {
        ("search", step.source or _UNNAMED): []
        for step in run.steps
        if isinstance(step, Retrieval) and step.failure is None and not step.passages
    }
    names = {one.id: step.source for step in run.steps if isinstance(step, Retrieval) for one in step.passages}
    for one in every.values():
        kind: Kind = kinds.get(one.id, "search")
        counts.setdefault((kind, one.source or names.get(one.id) or _UNNAMED), []).append(one.id)
    left: dict[str, int] = {}
    whys = {one.name: _why(one) for one in found.left_out if not one.is_part}
    for text in found.left_out:
        if not text.is_part:
            left[text.name] = left.get(text.name, 0) + 1
            counts.setdefault(("tool", text.name), [])
    for name, of in found.unheeded.items():
        counts.setdefault((of, name), [])
        whys.setdefault(name, _STAYS)
    for (kind, name), ids in counts.items():
        yield Source(
            name=name,
            kind="marked" if found.hows.get(name) == "call" and kind == "search" else kind,
            passages=len(ids),
            chosen=len(ids) if chosen is None or kind != "search" else sum(one in chosen for one in ids),
            shown=None if shown is None else sum(one in shown for one in ids),
            left_out=left.get(name, 0) if kind == "tool" else 0,
            why=whys[name] if (kind == "tool" and left.get(name)) or found.unheeded.get(name) == kind else "",
            how=found.hows.get(name) or ("guess" if kind == "tool" else "structure"),
        )
