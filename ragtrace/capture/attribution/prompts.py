"""Find the prompts behind an answer, and the passages that these show.

A run calls its model for other things too: to grade passages, to condense a question, to check an answer. The
answer leads back to the call with the same reply, and each prompt leads to the calls with replies in it: a summary,
a section's draft, the answer to a sub-question. A grader's "yes" leads nowhere.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

from ragtrace.capture.attribution.passage_search import PassageFinder, found_in
from ragtrace.capture.model_calls import without_thoughts
from ragtrace.capture.types import Generation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ragtrace.capture.types import EndedRun, Step
    from ragtrace.model import Message, Passage

# A shorter text stands in many another by chance, unless it is a whole line or value there.
SHORTEST_PART_CHARS = 16
TAIL_CHARS = 40  # a cut passage whose end stands in another prompt was shown whole, in two parts
_BREAKS = re.compile(r'\\[nrt"]|["\n\r\t]')  # a text is not in one piece where it was quoted, escaped or set anew
_LOOKED_AT_CHARS = 2_048  # of a reply, to know it again
_SEARCHED_CHARS = 8_000_000  # of all prompts together: about 2 ms
_MOST_PLACES = 16
TextKind = Literal["tool_output", "context_text"]
_SHORTEST_CONTEXT_CHARS = 80  # behind a heading; less is mostly the question of a prompt without contexts
_HEADING = re.compile(
    r"\b(?:contexts?|documents?|passages?|sources?|excerpts?|snippets?|search results|knowledge base)\b"
    r"[^\n:>]{0,60}[:>]\s*\S",
    re.IGNORECASE,
)


class _Call(NamedTuple):
    """A model call of the application's: its prompt, and what it replied."""

    prompt: str
    reply: str


def prompt_set(
    prompts: Sequence[str], steps: Sequence[Step], answer: str, finder: PassageFinder
) -> tuple[Passage, ...]:
    """Return the delivered passages that the model had before it when it made the answer.

    They stand in the order of the prompt that shows them. Where no prompt shows all of them, they stand in the
    order of delivery. Where no reply leads to the answer, or no reply was reported, the prompts alone tell.

    Example:
        >>> from ragtrace.model import Passage
        >>> pool = [Passage(id="a", text="Oslo.", rank=1), Passage(id="b", text="Bergen.", rank=2)]
        >>> [p.id for p in prompt_set(["Context: Bergen."], (), "In Bergen.", PassageFinder(pool))]
        ['b']
    """
    calls = list(_calls(prompts, steps)) if len(prompts) > 1 else []
    last = _answering(calls, answer.strip())
    return _shown_behind(calls, last, finder) if last else _shown(prompts, finder)


def answered_prompt(prompts: Sequence[str], steps: Sequence[Step], answer: str) -> str:
    """Return the prompt that the answer replied to; the last one where no reply leads to it.

    Example:
        >>> answered_prompt(["Where is the lab?", "Make a title."], (), "In Oslo.")
        'Make a title.'
    """
    calls = list(_calls(prompts, steps))
    last = _answering(calls, answer.strip())
    return calls[last[-1]].prompt if last else prompts[-1]


def _calls(prompts: Sequence[str], steps: Sequence[Step]) -> Iterator[_Call]:
    """Yield the calls that were asked with one of the prompts; a prompt inside a retriever is none of them."""
    left = list(prompts)
    for step in steps:
        if isinstance(step, Generation) and step.inputs:
            place = _place_of(step.inputs, left)
            if place is not None:
                reply = "\n".join(without_thoughts(said.content) for said in step.outputs[:1])
                yield _Call(left.pop(place), reply.strip())


def _place_of(inputs: Sequence[Message], prompts: Sequence[str]) -> int | None:
    """Return which of the prompts a call was asked with: its messages, one behind the other."""
    asked = [message.content for message in inputs]
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
    same = [place for place, reply in enumerate(replies) if reply == answer]
    if same:
        return same[-1:]
    said = _piece(answer)
    holding = [place for place, reply in enumerate(replies) if _stands(said, reply) and _holds(reply, answer)]
    if holding:
        return holding[-1:]
    pieces = map(_piece, replies)
    return [place for place, part in enumerate(pieces) if len(part) >= SHORTEST_PART_CHARS and part in answer]


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
        if passage is not whole and any(whole.text[-TAIL_CHARS:] in prompt for prompt in taken):
            best[place] = whole
    return tuple(best.values())


def _going_back(calls: Sequence[_Call], last: Sequence[int], delivered: Sequence[Passage]) -> Iterator[_Call]:
    """Yield the last calls, and before each those whose replies stand in its prompt; they ended in this order."""
    room = _SEARCHED_CHARS
    taken: list[str] = []
    all_replies = Counter(call.reply for call in calls)
    used_replies: Counter[str] = Counter()
    for place in range(last[-1], -1, -1):
        call = calls[place]
        if place not in last:
            said = _piece(call.reply)
            room -= sum(map(len, taken))
            is_found = room >= 0 and any(_stands(said, prompt) for prompt in taken)
            alike = all_replies[call.reply], used_replies[call.reply]
            if not is_found or not _is_telling(said, call, alike, delivered):
                continue
        taken.append(call.prompt)
        used_replies[call.reply] += 1
        yield call


def _is_telling(said: str, call: _Call, alike: tuple[int, int], delivered: Sequence[Passage]) -> bool:
    """Tell whether a reply says where it came from: not a grade or a refusal in words that its prompt gave it.

    What is taken out of a passage stands in its prompt as well, as does an answer that a refinement left as it was.
    A single word that several calls reply is a grade, unless the answer goes back to all the others that say it: an
    agent repeats what its tool said. `alike` counts the calls with this reply, and those that are taken already.
    """
    is_given = said in call.prompt
    count, used = alike
    if len(said) < SHORTEST_PART_CHARS:
        return not is_given and (count - used == 1 or " " in said)
    return not is_given or count > 1 or any(said in passage.text for passage in delivered)


def _piece(text: str) -> str:
    """Return the longest piece of a text, by which it is known again where it was set in another one."""
    return max(map(str.strip, _BREAKS.split(text[:_LOOKED_AT_CHARS])), key=len)


def _holds(reply: str, answer: str) -> bool:
    """Tell whether a reply holds an answer, as a field of structured output or behind a model's reasoning."""
    return answer in reply or all(piece.strip() in reply for piece in _BREAKS.split(answer))


def _stands(piece: str, text: str) -> bool:
    """Tell whether a piece stands in a text; a short one as whole words, and one word as all that a line says."""
    if len(piece) >= SHORTEST_PART_CHARS or not piece:
        return bool(piece) and piece in text
    at = text.find(piece)
    for _ in range(_MOST_PLACES):
        if at < 0 or _is_whole(text, at, at + len(piece)):
            return at >= 0
        at = text.find(piece, at + 1)
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    before, behind = text[max(start - 2, 0) : start], text[end : end + 1]
    if " " in text[start:end]:
        return not before[-1:].isalnum() and not behind.isalnum()
    return (before == ": " or before[-1:] in {"", "\n", '"'}) and behind in {"", "\n", '"'}


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


def shown_texts(run: EndedRun, pool: Sequence[Passage], *, is_searched: bool) -> tuple[Passage, ...]:
    """Return the texts that the answer was made of, in the order in which they were reported.

    A text that shows a passage of the pool is the output of a tool that searched, and its passages count instead.
    In a run that searched, a joined context is made of its passages.
    """
    if not run.texts or not run.prompts:
        return ()
    texts = (text for text in run.texts if not (is_searched and _kind(text) == "context_text"))
    own = tuple(text for text in texts if not (pool and found_in(text.text, pool)))
    return prompt_set(run.prompts, run.steps, run.attributes.get("answer", ""), PassageFinder(own)) if own else ()


def count_unread(run: EndedRun) -> int:
    """Return how many contexts stood before the model of an answer, in a run in which no passage was found.

    They are tool outputs that stand in no prompt as they were returned, and a prompt that announces a context.
    """
    answer = run.attributes.get("answer")
    if not answer:
        return 0
    prompt = answered_prompt(run.prompts, run.steps, answer) if run.prompts else ""
    heading = _HEADING.search(prompt)
    is_announced = heading is not None and len(prompt) - heading.end() >= _SHORTEST_CONTEXT_CHARS
    return sum(_kind(text) == "tool_output" for text in run.texts) + is_announced


def _kind(text: Passage) -> object:
    return text.metadata.get("kind")
