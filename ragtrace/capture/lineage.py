"""The way of the passages through a run: found, ordered, chosen, rewritten, put into the prompt.

Most frameworks tell of no reranking. What came in and what came out tell: a composite retriever against the
retrievers inside it, a step's list of documents against the documents that it was given or that were found in it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from ragtrace.capture.attribution import (
    PassageFinder,
    answered_prompt,
    found_in,
    letters,
    place_of,
    prompt_set,
)
from ragtrace.capture.documents import (
    documents_in,
    is_documents_only,
    is_nested,
    lists_in,
    new_documents,
    results_met,
)
from ragtrace.capture.guard import guarded, is_equal
from ragtrace.capture.known import (
    KnownDocuments,
    is_reranked,
    own_ids,
    read_documents,
    rerank_score_of,
)
from ragtrace.capture.model_calls import answer_text
from ragtrace.capture.origins import Origin, Origins, by_first_shown
from ragtrace.capture.passages import ReadPassages, are_joined, number_of, ranked
from ragtrace.capture.scopes import Scope
from ragtrace.capture.sources import Sources
from ragtrace.capture.turns import answer_in, question_in
from ragtrace.capture.values import Doc, Turn, fields_of, identity_of, mapping_of
from ragtrace.model import Passage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ragtrace.capture.known import Hit, Hits
    from ragtrace.capture.run import Run
    from ragtrace.capture.scopes import Speech
    from ragtrace.capture.types import Failure


_WIDENED = 2  # times as long as the passage that stands in it: neighbours were added, and no header
_SHORTEST_SENTENCE_CHARS = 12
_SHORTEST_CUT_CHARS = 40  # by such a beginning a passage is known again in a prompt
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+|[\r\n]+")
_SOUGHT_PASSAGES = 64  # in the prompts, to know that one of a list is shown
_TAIL_BYTES = 48  # of a piece's letters, to find the passage that it is a part of
_SHORTEST_PART_CHARS = 16  # a shorter text, as a grader's "no", stands in many an answer


class Delivered(NamedTuple):
    """Documents that a retriever or a choice handed on, and how many prompts had been rendered by then."""

    hits: dict[str, Hit]
    prompts: int
    is_choice: bool
    is_inner: bool = False  # a retriever inside another one


class Choice(NamedTuple):
    """Documents that a step gave out, and the documents that it chose from.

    Attributes:
        before: their scores as they were, by key, where those are kept apart; None: the metadata tell of new ones.
        started_ns: of a reranker that is told of by itself; else it began when the last search or choice ended.
    """

    scope: Scope
    out: dict[str, Hit]
    base: dict[str, Hit]
    ended_ns: int
    source: str = "chain"
    before: Mapping[str, float | None] | None = None
    started_ns: int | None = None
    model: str | None = None
    top_n: int | None = None


class Lineage:
    """Follows the passages of one run, and reports pool, selection, rerankings and prompts to it.

    Searches, steps, choices, marks and prompts are told in the order in which they ended. Not thread-safe.

    Args:
        run: takes what is found out.
        speech: what the models of the run said.

    Attributes:
        pool: the candidates by key, each as it was met first.
        texts: texts that stand in place of passages.
        is_narrowed: a step chose among the documents.
        are_ids_made: every passage has an id, made up where the application gives none. An id that no search found
            then says nothing, and neither does a passage that comes back as it was found.
        is_retried: an engine shows its model the answer that was given up.
    """

    def __init__(self, run: Run, speech: Speech) -> None:
        self.are_ids_made = False
        self.is_retried = False
        self._last: dict[str, Hit] | None = None  # the list delivered or chosen last
        self._parts: dict[str, list[str]] = {}  # texts of passages that a step gave out in several, by key
        self._pieces: dict[str, tuple[Passage, str]] = {}  # passage and text of pieces, by the label of each
        self._stands_for: dict[str, dict[str, Hit]] = {}  # passages behind an engine's answer, by its id
        self.run = run
        self.speech = speech
        self.texts = Sources(run, speech)
        self.pool: dict[str, Hit] = {}
        self.is_narrowed = False
        self._seen: dict[str, Hit] = {}  # each document as first met
        self._told: dict[str, Hit] = {}  # documents as a choice reported them last
        self._known = KnownDocuments()
        self._tasks: dict[str, tuple[tuple[int, int, str], ...]] = {}  # that found the candidates first, by key
        self._tools: dict[str, int] = {}  # starts of the tools that found the candidates first, by key
        self._is_pool_ordered = False  # a step joined or fused results, and `pool` has its order
        self._is_fused = False  # `pool` has the order of ranks that a step computed
        self._selection_source = "chain"
        self._last_chosen: list[str] = []  # keys of the selection reported last
        self._delivered: list[Delivered] = []  # results of retrievers and choices in turn
        self._taken_back: dict[str, Hit] = {}  # results of steps that failed later
        self._waiting: Choice | None = None  # counts as a choice if a prompt follows, else as citations
        self._joins: dict[str, list[Doc]] = {}  # passages by the text that joins them
        self._found_by_call: dict[str, list[str]] = {}  # keys of documents by the id of a tool call
        self._whole: dict[int, str] = {}  # texts that show whole passages, by identity
        self._shown: list[str] = []  # keys of documents in the order of a state or of messages

    @property
    def has_met(self) -> bool:
        """Whether a step had passages."""
        return bool(self._seen)

    # -- what is told --

    @guarded
    def begin(self, scope: Scope) -> None:
        """Take a step that begins: the documents and the rows that it is given."""
        scope.results_before = len(self._delivered)
        scope.replies_before = len(self.speech.replies)
        scope.given = documents_in(scope.inputs)
        if scope.given and self.texts.given is None and not self.pool:
            self.texts.given = self.texts.from_outside(scope.given) or None

    @guarded
    def search(self, scope: Scope, documents: Sequence[Doc], ended_ns: int) -> None:
        """Take what a retriever returned: a leaf's pool, or what a composite made of its inner ones."""
        self._settle_waiting()
        documents = self.run.reader.first(documents)
        origins: dict[int, list[str]] = {}
        if scope.is_all and scope.within is None and self._are_copies(documents):
            scope.holder.is_evaluation = scope.holder.parent is not None
            return
        if scope.sources:
            documents, origins = self._with_origins(scope, documents, {}, has_own=self.are_ids_made)
        else:
            documents = self.texts.from_outside(list(documents))
            self._known.part(documents, self._seen)
        if scope.answers:
            passages, out = self._behind_answers(scope, documents)
        else:
            passages, out = self._met(documents, scope.source, origins)
        if scope.sources:
            self._take_composite(scope, passages, out, ended_ns)
        else:
            self._report_search(scope, passages, ended_ns)
            self._add_to_pool(scope, out)
        self._deliver(scope, out, ended_ns)

    @guarded
    def answered(self, scope: Scope, answer: str | None) -> None:
        """Take the end of an engine: inside a retriever its answer may stand for the passages found in it."""
        if scope.sources and scope.within is not None and answer:
            scope.within.answers.append((answer, dict(scope.found)))

    @guarded
    def failed_search(self, scope: Scope, failure: Failure | None, ended_ns: int) -> None:
        """Report a retriever that failed."""
        self._report_search(scope, ReadPassages(), ended_ns, error=failure)

    @guarded
    def step(self, scope: Scope, inputs: object, outputs: object, ended_ns: int) -> None:
        """Take what a chain or a tool gave out: the documents among it, less what it merely handed on."""
        self._step(scope, inputs, outputs, new_documents(outputs, inputs, scope.name), ended_ns)

    @guarded
    def choice(
        self,
        scope: Scope,
        given: Sequence[Doc],
        out: Sequence[Doc],
        model: str,
        top_n: int | None,
        started_ns: int,
        ended_ns: int,
        source: str = "explicit",
    ) -> None:
        """Take what a reranker made of the documents that it was given; `scope` is the step that it ran in.

        Among them may be answers of engines: the passages behind those are chosen from, and chosen.
        """
        self._settle_waiting()
        if self.are_ids_made:
            self._take_unknown(scope, given, started_ns)
        firsts = self._firsts(given)
        kept, origins = self._with_origins(scope, out, firsts, has_own=self.are_ids_made)
        _, met = self._met(kept, None, origins)
        base, chosen = self._behind(firsts), self._behind(met)
        is_ranked = chosen.keys() <= base.keys()  # merged or rewritten passages have no rank in the pool
        before: dict[str, float | None] | None = None
        if self.are_ids_made or any(one.score is not None for one in out):
            before = {key: number_of(one.score) for key, one in zip(self._known.keys(given), given, strict=True)}
        if self.are_ids_made:
            base = {key: self._told.get(key, hit) for key, hit in base.items()}
            has_answers, is_new = base.keys() != firsts.keys(), _has_new_texts(chosen, base)
            is_rated = not has_answers and _are_rated(chosen, before)
            if list(chosen) == list(base) and not (is_rated or is_new):
                return
            is_ranked = not (has_answers or is_new)
        choice = Choice(scope, chosen, base, ended_ns, source, before, started_ns, model, top_n)
        self._choose(choice, is_ranked=is_ranked)

    @guarded
    def failed_choice(
        self,
        scope: Scope,
        given: Sequence[Doc],
        model: str,
        top_n: int | None,
        started_ns: int,
        ended_ns: int,
        failure: Failure | None,
    ) -> None:
        """Report a reranker that failed."""
        self.run.reranked(
            (),
            candidates=_passages(self._firsts(given)) if given else None,
            model=model,
            top_n=top_n,
            started_ns=started_ns,
            ended_ns=ended_ns,
            parent_key=scope.key or scope.within_key,
            error=failure,
        )

    def mark_retrieved(self, scope: Scope, documents: Sequence[Doc], source: str | None, now_ns: int) -> bool:
        """Take documents that the application says it found; those that the run knows are not counted twice.

        Return whether that was a search.
        """
        keys = self._known.keys(documents)
        new = [document for key, document in zip(keys, documents, strict=True) if key not in self.pool]
        if documents and not new:
            return False
        found = Scope(scope, "search", source or scope.name, now_ns)
        found.source = source or ("" if self.are_ids_made else found.source)
        found.query = self.run.attributes.get("query", "")
        self.search(found, new, now_ns)
        return True

    @guarded
    def mark_selected(self, scope: Scope, documents: Sequence[Doc]) -> None:
        """Take documents that the application itself says it chose; what is inferred later leaves them."""
        scope.mark()
        kept, origins = self._with_origins(scope, documents, {}, has_own=True)
        _, out = self._met(kept, None, origins)
        before: dict[str, float | None] | None = None
        if self.are_ids_made:
            before = {} if _has_new_texts(out, self._seen) else {key: self._seen[key][0].score for key in out}
        self._rate(out, before)
        self.run.add_selected(_passages(out))

    @guarded
    def prompt(self, scope: Scope, turns: Sequence[Turn], text: str) -> None:
        """Take a rendered prompt: what its tool messages hold, where no event told of their tools, and its text."""
        last = turns[-1] if turns else None
        if last is None or last.role != "user" or not isinstance(last.content, str):
            # Else it is a question in plain text: no tool message follows it, and it holds no document.
            for tool, documents in self.texts.in_prompt(scope, turns):
                self._step(tool, None, documents, documents, tool.started_ns)
            parts = [found for turn in turns if (found := self._found_by_call.get(turn.call_id or ""))]
            if len(parts) > 1:
                self._shown = list(dict.fromkeys(key for found in parts for key in found))
        self._settle_waiting()
        if text:
            self.run.add_prompt(text)

    @guarded
    def offered(self, root: Scope, name: str, documents: Sequence[Doc]) -> None:
        """Take passages that a function gave out, where nothing else was found and a prompt shows one of them."""
        sought = [Passage(id="", text=one.text, rank=1) for one in documents[:_SOUGHT_PASSAGES]]
        if not (self._seen or self.run.retrievals()) and self.run.prompt_contains(sought):
            found = Scope(root, "search", name, root.started_ns)
            self.search(found, documents, root.started_ns)

    @guarded
    def withdraw(self, scope: Scope) -> None:
        """Take back what a step delivered before it failed: another attempt stands for it, if the root lives."""
        if scope.parent is None:
            scope.found = scope.found or self._taken_back
        elif scope.found and scope.kind != "search":
            for above in scope.enclosing():
                above.found = {key: hit for key, hit in above.found.items() if hit is not scope.found.get(key)}
                above.chosen = None if above.chosen is scope.chosen else above.chosen
            self._taken_back.update(scope.found)

    @guarded
    def settle(self, root: Scope, *, answer: str | None = None) -> None:
        """Report what is known at the end of a run only: the order of the pool, and the whole selection.

        An agent that searches twice, or an ensemble over compressors, delivers the results of several choices. With
        the answer, the prompt that it replied to tells which attempt counts, and what was shown in parts.
        """
        if not self.pool and self.texts.given:
            self._restore(self.texts.given)
        self.texts.settle(has_found=bool(self.pool))
        if self._shown and not self._is_fused:
            self._order_as_shown(root)
        elif self._tasks and not self._is_pool_ordered:
            self._order_by_tasks()
        if self.is_narrowed and root.kind != "search" and list(root.found) != self._last_chosen:
            found = root.found or (self.pool if self._last_chosen else {})  # none: what was chosen was taken back
            if not self.are_ids_made:
                self.run.selected(_passages(self._kept(found)), selection_source=self._selection_source)
            elif root.found:
                self.run.selected(_passages(found), selection_source=self._selection_source)
        if answer is not None and root.kind != "search":
            self._take_last_attempt(answer)
            if self.are_ids_made:
                self._settle_shown(root, answer)
        if self._is_pool_ordered:
            self.run.set_candidates(_passages(self.pool))
        if self._known.renamed:
            self._rename()

    # -- what a step gave out --

    def _step(
        self, scope: Scope, inputs: object, outputs: object, documents: list[Doc] | None, ended_ns: int
    ) -> None:
        chosen = self._given_out(scope, inputs, outputs, documents)
        if scope.given:
            self._follow_order(scope)
        if chosen is None:
            return
        if not chosen and scope.kind == "tool" and not scope.found:
            self._report_search(scope, ReadPassages(), ended_ns)
            return
        is_beside = scope.has_model and not is_documents_only(outputs)
        if is_beside and self._is_answered(outputs):
            return  # documents beside an answer are what was cited, not what went into the prompt
        given = scope.given or documents_in(inputs) or results_met(inputs, self._seen)
        base = self._firsts(given) if given else {}
        kept, origins = self._with_origins(scope, chosen, base)
        if chosen and not kept:
            return  # the model's own words
        if not (base or scope.found):
            self._known.part(kept, {})
        passages, out = self._met(kept, None if base or scope.found else scope.source, origins)
        if scope.is_called and scope.call_id:
            self._found_by_call[scope.call_id] = list(out)
        is_added = _is_added_to(base, out, self.pool) or _is_found_anew(outputs, base, out)
        if is_added and not scope.found:
            rest = {key: hit for key, hit in out.items() if key not in base}
            self._take_found(scope, inputs, _passages(rest), rest, out, ended_ns)
        elif base or scope.found:
            choice = Choice(scope, out, _candidates(scope, out, base), ended_ns)
            is_last = scope.parent is None and is_documents_only(outputs)
            is_after = is_beside or self._is_answered(inputs)
            if self._is_rest_known(choice, base):
                self._last = out
                return
            if not is_after and self._is_fusion(choice, inputs):
                self._fuse(choice)
            else:
                self._take_choice(choice, is_sure=is_last or not (is_after or self._is_shown_before(choice)))
        elif all(key in self.pool for key in out):
            if not self._is_joined(out) and not _is_given_one(inputs):
                self._take_reordered(Choice(scope, out, self._delivered_with(out), ended_ns))
        else:
            self._take_found(scope, inputs, passages, out, out, ended_ns)

    def _take_reordered(self, choice: Choice) -> None:
        """Take documents of the pool where the input does not show what they were chosen or fused from."""
        if not self.run.prompts and self._is_whole(choice) and not self._is_one_result(choice):
            self._fuse(choice)
        else:
            self._take_choice(choice, is_sure=not self.run.prompts)

    def _given_out(
        self, scope: Scope, inputs: object, outputs: object, chosen: list[Doc] | None
    ) -> list[Doc] | None:
        """Return the documents that a step gave out; note its texts that stand in place of documents."""
        if scope.kind == "tool":
            found = self.texts.of_tool(scope, outputs, chosen)
            if found is None and scope.found and scope.is_called and scope.call_id:
                self._found_by_call[scope.call_id] = list(scope.found)
            if found is None and scope.found and not scope.has_model:
                return self._written_parts(scope, outputs.content if type(outputs) is Turn else outputs)
            return found
        if chosen is None and isinstance(outputs, list):
            texts = [hit[0].text for hit in ({**scope.found} or self.pool).values()]
            chosen = results_met(outputs, self._seen, texts)
        if chosen is None and (scope.given or scope.found) and not scope.has_model:
            before = fields_of(inputs) or {}
            written = (fields_of(outputs) or {}).items() if not isinstance(outputs, str) else [("", outputs)]
            new = (text for key, text in written if isinstance(text, str) and before.get(key) is not text)
            chosen = next((parts for text in new if (parts := self._written_parts(scope, text)) is not None), None)
        if chosen is None and not (self.pool or scope.has_model or scope.within is not None):
            self.texts.contexts(scope.name, inputs, outputs)
        return chosen

    def _written_parts(self, scope: Scope, written: object) -> list[Doc] | None:
        """Return the documents of a step that writes sentences of some into its text; None where it cut none.

        A document of which the text shows the beginning is found in the prompt by that.
        """
        if not isinstance(written, str):
            return None
        given = list(scope.given or (self._document_of(key, hit) for key, hit in scope.found.items()))
        if id(written) in self._whole or all(place_of(one.text, written) >= 0 for one in given):
            self._whole[id(written)] = written  # a text is handed on from step to step
            return None
        passages = [Passage(id=str(place), text=one.text, rank=1) for place, one in enumerate(given)]
        whole = {passage.text for passage in found_in(written, passages)}  # in any notation
        left = {
            one.text for one in given if one.text not in whole and one.text[:_SHORTEST_CUT_CHARS] not in written
        }
        held = Counter(part for one in given for part in {*_SENTENCE_ENDS.split(one.text)})  # that many have
        made: list[Doc] = []
        for document in given:
            sentences = _SENTENCE_ENDS.split(document.text) if document.text in left else ()
            parts = [
                one.strip() for one in sentences if held[one] == 1 and _is_sentence(one) and one.strip() in written
            ]
            made.append(replace(document, text="\n".join(parts)) if parts else document)
        return made if made != given else None

    def _take_found(
        self,
        scope: Scope,
        inputs: object,
        passages: ReadPassages,
        found: dict[str, Hit],
        out: dict[str, Hit],
        ended_ns: int,
    ) -> None:
        """Take what a function found that searches without a retriever: the documents come from nowhere else."""
        self._settle_waiting()
        if not self.are_ids_made:
            scope.query = scope.query or question_in(inputs)
        self._report_search(scope, passages, ended_ns)
        self._add_to_pool(scope, found)
        self._deliver(scope, out, ended_ns)

    # -- documents that are met --

    def _with_origins(
        self, scope: Scope, documents: Sequence[Doc], base: dict[str, Hit], *, has_own: bool = False
    ) -> tuple[list[Doc], dict[int, list[str]]]:
        """Return a step's documents less a model's own words, and the passages that its new texts are made of.

        An extract, a part, a widened or a summarised passage keeps the id and the rank of its passage, also where
        the step left the id and the metadata out. `base` is what the step was given.
        """
        read = list(self._parted(documents))
        near = {**base, **scope.found}
        if self.are_ids_made:
            new = self._unknown_in(read, near)
        else:
            joined = _joined(read, near)
            new = [place for place, one in enumerate(read) if place in joined or not self._known.is_known(one)]
        if not new:
            return read, {}
        hits = near or self.pool
        keys = list(hits)
        finder = Origins([Origin(passage.text, facts) for passage, facts in hits.values()])
        inner = self.speech.replies[scope.replies_before :] if scope.has_model else []
        own: set[int] = set()
        found: dict[int, list[str]] = {}
        for place in new:
            text, facts = read[place].text, read[place].facts
            is_written = self.speech.first.owns(text) or any(text.strip() in said for said in inner)
            is_given = bool(near) and not read[place].is_chunk
            places = finder.of(text, facts, is_written=is_written, is_given=is_given) if hits else []
            if len(places) > 1 and finder.is_join(text, places):
                in_turn = sorted(places, key=lambda at: place_of(hits[keys[at]][0].text, text))
                self._joins[identity_of(text)] = [self._part_in(text, keys[at], hits[keys[at]]) for at in in_turn]
            elif places:
                found[place] = [keys[at] for at in places]
                self._known.take_as(text, hits[keys[places[0]]][0].id, keys[places[0]])
            elif is_written and not has_own:
                own.add(place)
        kept: list[Doc] = []
        origins: dict[int, list[str]] = {}
        for place, document in enumerate(read):
            if place in found:
                origins[len(kept)] = found[place]
            if place not in own:
                kept += self._joins.get(identity_of(document.text), [document]) if self._joins else [document]
        return kept, origins

    def _unknown_in(self, documents: list[Doc], near: dict[str, Hit]) -> list[int]:
        """Return the places of documents with new ids; one with a text of a passage that is `near` takes its id."""
        firsts = {self._known.identity(key, hit[0].text): key for key, hit in reversed(near.items())}
        unknown = [place for place, one in enumerate(documents) if one.id not in self._seen]
        for place in unknown:
            key = firsts.get(identity_of(documents[place].text))
            if key is not None:
                documents[place] = replace(documents[place], id=self._seen[key][0].id)
        return [place for place in unknown if identity_of(documents[place].text) not in firsts]

    def _parted(self, documents: Sequence[Doc]) -> Sequence[Doc]:
        """Return documents, and in place of a text that joins passages these passages."""
        some = self.run.reader.first(documents)
        if not self._joins:
            return some
        return [part for document in some for part in self._joins.get(identity_of(document.text), [document])]

    def _met(
        self, documents: Sequence[Doc], source: str | None, origins: dict[int, list[str]] | None = None
    ) -> tuple[ReadPassages, dict[str, Hit]]:
        """Return documents as passages, and by key as they are now; each is remembered as it was first."""
        documents = self.run.reader.first(documents)
        again = self._met_again(documents) if self._seen and not origins else None
        if again is not None:
            return again
        hits = read_documents(documents, self._known, self.run.reader, source)
        passages, out = hits.passages, hits.by_key()
        if origins:
            out = self._under_origins(hits, origins)
            passages = _passages(out)
        self._seen = {**out, **self._seen} if self._seen else out.copy()
        return passages, out

    def _under_origins(self, hits: Hits, origins: dict[int, list[str]]) -> dict[str, Hit]:
        """Return documents by the keys of the passages that they were made of; parts of one stand together."""
        out: dict[str, Hit] = {}
        for place, (key, passage, facts) in enumerate(zip(hits.keys, hits.passages, hits.facts, strict=True)):
            names = origins.get(place, [key])
            for name in names:
                own = passage if name == key else replace(passage, id=self._seen[name][0].id)
                before = out.get(name)
                if before is None:
                    out[name] = (own, facts)
                elif place in origins and own.text not in before[0].text:
                    out[name] = (replace(before[0], text=f"{before[0].text}\n\n{own.text}"), before[1])
                    self._parts.setdefault(name, [before[0].text]).append(own.text)
        return out

    def _met_again(self, documents: Sequence[Doc]) -> tuple[ReadPassages, dict[str, Hit]] | None:
        """Return documents that were all met before as they are now, as most rerankers hand them on; else None.

        Their passages are known: 8 of them in 8 us, 23 us when they are read.
        """
        ids = own_ids(documents)
        if ids is None or len(set(ids)) != len(ids):
            return None
        found = self._seen
        if not found.keys() >= set(ids):
            return None
        out: dict[str, Hit] = {}
        for key, document in zip(ids, documents, strict=True):
            passage, facts = found[key]
            if not is_equal(document.facts, facts) or document.text != passage.text:  # also another score
                return None
            out[key] = (passage, facts)  # a hit of its own: what `_seen` holds itself was first met in this step
        return _passages(out), out

    def _firsts(self, documents: Sequence[Doc]) -> dict[str, Hit]:
        """Return documents as they were when first met in this run."""
        documents = self._parted(documents)
        keys = self._known.keys(documents)
        if not self._seen.keys() >= set(keys):
            self._met(documents, None)
        return {key: self._seen[key] for key in keys}

    def _part_in(self, text: str, key: str, hit: Hit) -> Doc:
        """Return the document of a passage that a text joins with others; of one that it has in parts, these."""
        document = self._document_of(key, hit)
        if not document.text or place_of(document.text, text) >= 0:
            return document
        has = letters(document.text)
        parts = [one for one in _SENTENCE_ENDS.split(text) if _is_sentence(one) and letters(one) in has]
        if not parts:
            return document
        document = replace(document, text="\n".join(parts), id=hit[0].id if self.are_ids_made else None)
        self._known.take_as(document.text, hit[0].id, key)
        return document

    def _document_of(self, key: str, hit: Hit) -> Doc:
        passage, facts = hit
        return Doc(self._known.as_met(key, passage.text), metadata=dict(facts))

    # -- searches --

    def _report_search(
        self,
        scope: Scope,
        passages: ReadPassages,
        ended_ns: int,
        *,
        is_fused: bool = False,
        error: Failure | None = None,
    ) -> None:
        self.run.retrieved(
            passages,
            source=scope.source or None,
            query=scope.query or None,
            top_k=scope.top_k,
            started_ns=scope.started_ns,
            ended_ns=ended_ns,
            key=scope.key or None,
            parent_key=scope.within_key,
            is_fused=is_fused,
            error=error,
        )

    def _add_to_pool(self, scope: Scope, out: dict[str, Hit]) -> None:
        """Add what a search found to the pool; a passage that another search found before stays as it was."""
        if scope.task:
            for key in out:
                self._tasks.setdefault(key, scope.task)
        if (tool := scope.tool) is not None:
            for key in out:
                self._tools.setdefault(key, tool.started_ns)
        self.pool.update({key: hit for key, hit in out.items() if key not in self.pool} if self.pool else out)

    def _take_composite(self, scope: Scope, passages: ReadPassages, out: dict[str, Hit], ended_ns: int) -> None:
        inner = scope.found
        is_same = list(inner) == list(out)
        is_fusion = scope.fuses == "always"
        if is_fusion or (
            scope.fuses == "several" and (is_same or scope.sources > 1 or not inner.keys() >= out.keys())
        ):
            is_fused = not scope.is_narrowed and (is_fusion or not is_same or scope.sources > 1)
            self._report_search(scope, passages, ended_ns, is_fused=is_fused)
            if is_fused:
                self._order_pool(inner, out)
            elif scope.is_narrowed:
                out.update((key, inner[key]) for key in out if key in inner)
            return
        is_rewritten = is_same and scope.sources == 1 and _is_rewritten(out, inner)
        if not is_rewritten and (is_same or (scope.sources > 1 and self._covers(out, inner))):
            self._report_search(scope, passages, ended_ns, is_fused=not scope.is_narrowed)
            if not is_same and not scope.is_narrowed:
                self._order_pool(inner, out)
            out.update(
                (key, inner[key]) for key in out if key in inner
            )  # with the last scores of the stages inside
            return
        before = {key: hit[0].score for key, hit in inner.items()} if self.are_ids_made else None
        self._report_choice(Choice(scope, out, inner, ended_ns, "retriever", before), is_ranked=not is_rewritten)
        self._report_search(scope, ranked([self._seen[key][0] for key in out]), ended_ns)

    def _deliver(self, scope: Scope, out: dict[str, Hit], ended_ns: int) -> None:
        """Tell the scopes above what a retriever delivered, up to the composite around it."""
        is_inner = scope.within is not None
        self._last = out
        self._delivered.append(Delivered(out, self.run.n_prompts, scope.is_narrowed, is_inner))
        for above in scope.enclosing():
            above.found.update(out)
            above.sources += 1
            above.found_ns = ended_ns
            above.is_narrowed = above.is_narrowed or scope.is_narrowed
            above.chosen = None

    def _restore(self, given: Sequence[Doc]) -> None:
        """Take documents that a step was given for the pool, unless the run made no use of them.

        A conversation's state still holds the documents of the last turn when this one needs none.
        """
        passages = _passages(self._firsts(given))
        if self.is_narrowed or self.run.prompt_contains(passages):
            self.run.set_candidates(passages)

    def _rename(self) -> None:
        """Give the documents that were met without an id of their own the one that came later."""
        named = {key: own for key, own in self._known.renamed.items() if key in self._seen}
        if named:
            firsts = {key: self._seen[key][0] for key in named}
            self.run.rename({(first.id, first.text): named[key] for key, first in firsts.items()})

    # -- passages whose ids are made up --

    def _behind_answers(self, scope: Scope, documents: Sequence[Doc]) -> tuple[ReadPassages, dict[str, Hit]]:
        """Return what a retriever gave out, with the passages behind an engine's answer in place of that."""
        _, met = self._met(documents, scope.source)
        for key, hit in met.items():
            behind = next((known for text, known in scope.answers if text and text in hit[0].text), None)
            if behind is not None:
                self._stands_for[key] = behind
        found = self._behind(met)
        return _passages(found), found

    def _behind(self, hits: dict[str, Hit]) -> dict[str, Hit]:
        """Return passages, with those behind an engine's answer in place of that."""
        if self._stands_for.keys().isdisjoint(hits):
            return hits
        found: dict[str, Hit] = {}
        for key, hit in hits.items():
            found.update(self._stands_for.get(key) or {key: found.get(key, hit)})
        return found

    def _are_copies(self, documents: Sequence[Doc]) -> bool:
        """Tell whether documents are new ones with texts, or parts of texts, that the run has: an evaluator's."""
        if not self._seen or not documents:
            return False
        if any(one.id in self._seen for one in documents):
            return False
        known = [hit[0].text for hit in (*self._seen.values(), *self._told.values())]
        return all(one.text and any(one.text in text for text in known) for one in documents)

    def _take_unknown(self, scope: Scope, given: Sequence[Doc], at_ns: int) -> None:
        """Take passages that no retriever delivered for a search: the application's own found them."""
        if self._seen or scope.within is not None or not given:
            return
        if scope.outermost.is_block and self.run.retrievals():
            return
        self._known.part(given, {})
        passages, out = self._met(given, None)
        self.run.retrieved(passages, started_ns=at_ns, ended_ns=at_ns)
        self._add_to_pool(scope, out)
        self._deliver(scope, out, at_ns)

    @guarded
    def shows(self, scope: Scope, documents: Sequence[Doc]) -> None:
        """Take the passages that a step is given for its prompts: something unseen may have chosen them."""
        holder, at_ns = scope.holder, scope.started_ns
        documents = self.run.reader.first(documents)
        is_labelled = any(one.label for one in documents)
        kept = list(documents)
        origins: dict[int, list[str]] = {}
        if holder.found and not is_labelled:
            kept, origins = self._with_origins(scope, documents, holder.found, has_own=True)
        self._take_unknown(scope, documents, at_ns)
        if is_labelled:
            names = list(dict.fromkeys(self._known.keys(kept)))
            out = {key: self._seen[key] for key in names if key in self._seen}
        else:
            _, out = self._met(kept, None, origins)
            names = list(out)
        self._take_unseen_choice(scope, holder, names, out)
        if is_labelled:
            self._note_pieces(documents, holder.found)
        holder.results_shown = len(self._delivered)

    def _take_unseen_choice(self, scope: Scope, holder: Scope, names: list[str], out: dict[str, Hit]) -> None:
        found = holder.found
        if not found or not found.keys() >= set(names):
            return
        last = holder.chosen if holder.chosen is not None else found if holder.sources == 1 else None
        if last is None and self._is_joined(names):
            self._last = {name: found[name] for name in names}
            return
        if last is not None and names in (list(last), list(found)):
            return
        new = [list(one.hits) for one in self._delivered[holder.results_shown :]]
        base = (
            found
            if last is not None
            else {key: found[key] for part in [*new, names] for key in part if key in found}
        )
        self._rate(out, {name: found[name][0].score for name in names})
        self._choose(Choice(scope, out, base, scope.started_ns, "framework"), is_ranked=False)

    def _note_pieces(self, documents: Sequence[Doc], found: Mapping[str, Hit]) -> None:
        """Note which passage each labelled piece is a part of, and what its label means in the answer."""
        passages = [hit[0] for hit in found.values()]
        wholes = [letters(passage.text) for passage in passages]
        at = 0
        pieces: dict[str, tuple[Passage, str]] = {}
        for one in documents if passages else ():
            if one.label is not None:
                tail = letters(one.text)[-_TAIL_BYTES:]
                at = next(
                    (place for place in range(at, len(wholes)) if tail in wholes[place]), at
                )  # in their order
                pieces[one.label] = (passages[at], one.text)
        if pieces:
            self._pieces.update(pieces)
            self.run.label_passages({label: passage.id for label, (passage, _) in pieces.items()})

    # -- what the prompt of the answer tells --

    def _take_last_attempt(self, answer: str) -> None:
        run, last = self.run, self._last_attempt(answer)
        if last is not None and run.selection is not None:
            run.selected(last, selection_source=self._selection_source)
        elif last is not None and run.used_passages is None and self.are_ids_made:
            run.used(ranked(prompt_set(run.prompts, run.steps, answer, PassageFinder(last))))

    def _settle_shown(self, root: Scope, answer: str) -> None:
        run = self.run
        self._use_pieces()
        self._use_parts(answer)
        if run.selection is None and not root.is_block and not self._order_by_tools():
            self._order_as_answered(answer)

    def _order_by_tools(self) -> bool:
        """Put what tools found side by side into the order in which they were called; tell whether they did.

        They are called in the order in which the model asked for them.
        """
        if len(self._tools) < 2 or self._tools.keys() < self.pool.keys():
            return False
        order = sorted(self.pool, key=lambda key: self._tools[key])
        self._put_pool(order)
        return True

    def _delivered_passages(self) -> tuple[Passage, ...]:
        return self.run.selection if self.run.selection is not None else self.run.candidates()

    def _last_attempt(self, answer: str) -> ReadPassages | None:
        """Return the list delivered last, where the answer was asked for with all of it and nothing else found.

        What was delivered before it was given up: an engine asked again, or another one, or a workflow looped.
        """
        run, delivered = self.run, self._delivered_passages()
        last = None if self._last is None else _passages(self._last)
        if last is None or len(last) >= len(delivered) or not run.prompts:
            return None
        wanted = {passage.id for passage in last}
        asked = answered_prompt(run.prompts, run.steps, answer)
        if {one.id for one in found_in(asked, delivered)} != wanted:
            return None
        if self.is_retried:
            return last
        # What an engine answered with is found where its answer stands in the prompt.
        shown = prompt_set(run.prompts, run.steps, answer, PassageFinder(delivered))
        return last if {one.id for one in shown} == wanted else None

    def _use_pieces(self) -> None:
        """Report the passages whose pieces stand in a prompt as those that the model was shown."""
        run = self.run
        if not self._pieces or run.used_passages is not None:
            return
        pieces = [
            Passage(id=label, text=text, rank=rank)
            for rank, (label, (_, text)) in enumerate(self._pieces.items(), start=1)
        ]
        shown = {piece.id for prompt in run.prompts for piece in found_in(prompt, pieces)}
        used = {passage.id: passage for label, (passage, _) in self._pieces.items() if label in shown}
        if used:
            run.used(ranked(tuple(used.values())))

    def _use_parts(self, answer: str) -> None:
        """Report the passages that a prompt shows in parts: by sentences, or as what a step cut out of them.

        A part that several passages have tells of none.
        """
        run = self.run
        delivered = tuple({passage.id: passage for passage in self._delivered_passages()}.values())
        if run.used_passages is not None or not run.prompts or not delivered:
            return
        if all(any(place_of(one.text, prompt) >= 0 for prompt in run.prompts) for one in delivered):
            return
        whole = {one.id for one in prompt_set(run.prompts, run.steps, answer, PassageFinder(delivered))}
        parts = {
            one.id: self._parts.get(one.id) or [part for part in _SENTENCE_ENDS.split(one.text) if part.strip()]
            for one in delivered
            if one.id not in whole
        }
        pieces = [
            replace(one, text=part)
            for one in delivered
            for part in parts.get(one.id, [one.text])
            if one.id in whole or _is_telling(part, one, delivered)
        ]
        if len({one.id for one in pieces}) == len(whole):
            return
        found: dict[str, list[str]] = {}
        for piece in prompt_set(run.prompts, run.steps, answer, PassageFinder(pieces)):
            found.setdefault(piece.id, []).append(piece.text)
        if found.keys() > whole:
            known = {one.id: one for one in delivered}
            shown = (
                known[name] if name in whole else replace(known[name], text="\n\n".join(texts))
                for name, texts in found.items()
            )
            run.used(ranked(tuple(shown)))

    def _order_as_answered(self, answer: str) -> None:
        """Put the results of several searches into the prompt's order: tools end in any order."""
        run = self.run
        searches = run.retrievals()
        if len(searches) < 2 or any(one.parent_key for one in searches):
            return
        pool = {passage.id: passage for passage in run.candidates()}
        lists = [[passage.id for passage in one.passages] for one in searches]
        finder = PassageFinder(tuple(pool.values()))
        shown = [one.id for one in prompt_set(run.prompts, run.steps, answer, finder, is_told=True)]
        order = by_first_shown(lists, shown)
        if order != list(pool) and len(order) == len(pool) and are_joined(shown, lists):
            run.set_candidates(ranked([pool[name] for name in order]))

    # -- order --

    def _put_pool(self, order: list[str]) -> None:
        """Put the pool into an order that holds all of it."""
        if order != list(self.pool) and set(order) == self.pool.keys():
            self.pool = {key: self.pool[key] for key in order}
            self._is_pool_ordered = True

    def _order_pool(self, base: Iterable[str], out: dict[str, Hit]) -> None:
        """Put what was fused out of `base` into its new order, behind the rest of the pool."""
        fused = {*base, *out}
        self.pool = {**{key: hit for key, hit in self.pool.items() if key not in fused}, **out}

    def _order_as_shown(self, root: Scope) -> None:
        """Put the results of several searches into the order in which a state or the messages hold them."""
        searches = [list(one.hits) for one in self._delivered if not one.is_choice and not one.is_inner]
        order = by_first_shown(searches, self._shown)
        self._put_pool(order)
        places = {key: place for place, key in enumerate(self._shown)}
        if list(root.found) != self._last_chosen and root.found.keys() <= places.keys():
            root.found = dict(sorted(root.found.items(), key=lambda item: places[item[0]]))

    def _order_by_tasks(self) -> None:
        """Put what a graph's tasks found side by side into the order of the tasks, where no prompt shows it all."""
        order = sorted(self.pool, key=lambda key: self._tasks.get(key, ()))
        passages = _passages(self.pool)
        if order == list(self.pool) or any(
            len(found_in(prompt, passages)) == len(passages) for prompt in self.run.prompts
        ):
            return
        self._put_pool(order)

    def _follow_order(self, scope: Scope) -> None:
        """Put the pool into the order in which a step is given it: parallel searches end in any order."""
        if len(self._delivered) < 2 or self._is_fused:
            return
        keys = dict.fromkeys(self._known.keys(self._parted(scope.given or ())))
        if self.is_narrowed:
            is_joined = keys.keys() == scope.outermost.found.keys() and self._is_joined(keys)
            if is_joined and not any(one.is_choice and one.hits.keys() >= keys.keys() for one in self._delivered):
                self._shown = list(keys)
        elif self._is_joined(keys):
            self._put_pool(list(keys))

    def _is_fusion(self, choice: Choice, inputs: object) -> bool:
        """Tell whether a step made one list of all documents of several results, by reciprocal ranks for instance.

        A step that writes a reranker's score is a reranker.
        """
        scope = choice.scope
        if (len(self._delivered) < 2 and not is_nested(inputs)) or not self._is_whole(choice):
            return False
        if choice.base is scope.found:
            return scope.sources > 1 and not (self._is_one_result(choice) or self._is_joined_inside(choice))
        return is_nested(inputs) or self._results_in(inputs) > 1

    def _is_whole(self, choice: Choice) -> bool:
        """Tell whether a step gave out all documents that it had, which none had chosen before, and rated none."""
        out, base = choice.out, choice.base
        if len(out) > len(base) or not all(key in base for key in out) or not self._covers(out, base):
            return False
        if any(delivery.is_choice and delivery.hits.keys() & base.keys() for delivery in self._delivered):
            return False
        return not any(is_reranked(hit[1], self._seen[key][1]) for key, hit in out.items() if key in self._seen)

    def _is_one_result(self, choice: Choice) -> bool:
        """Tell whether one result holds all that a step gave out: several found the same, or one was made."""
        return any(delivery.hits.keys() >= choice.out.keys() for delivery in self._delivered)

    def _results_in(self, inputs: object) -> int:
        """Return how many different results of searches a step was given, each in a list of its own."""
        results = {tuple(delivery.hits) for delivery in self._delivered if not delivery.is_choice}
        return len({keys for part in lists_in(inputs) if (keys := tuple(self._known.keys(part))) in results})

    def _fuse(self, choice: Choice) -> None:
        """Put the pool into the order in which a step fused it."""
        scope, out, base, ended_ns = choice[:4]
        for rank, (key, (passage, facts)) in enumerate(out.items(), start=1):
            first = self._seen[key][0]
            score = first.score if passage.score is None else passage.score
            self._seen[key] = out[key] = (replace(first, rank=rank, score=score), facts)
        self._order_pool(base, out)
        self._is_pool_ordered = self._is_fused = True
        self._delivered.append(Delivered(out, self.run.n_prompts, is_choice=False))
        _replace_found((scope, *scope.enclosing()), out, base, ended_ns)

    def _keep_order(self, choice: Choice) -> None:
        """Leave what parallel steps chose in the order in which their lists were joined: they end in any order."""
        scope, out, base, ended_ns = choice[:4]
        if scope.is_narrowed:
            self._deliver_choice(choice._replace(out={key: base[key] for key in out}))
            return
        before = {key for one in self._delivered[: scope.results_before] for key in one.hits}
        new = {key: hit for key, hit in out.items() if key not in before}
        self._order_pool(new, new)
        self._is_pool_ordered = True
        self._delivered.append(Delivered(out, self.run.n_prompts, is_choice=False, is_inner=True))
        _replace_found((scope,), out, out, ended_ns)
        _replace_found(scope.enclosing(), new, new, ended_ns)

    def _covers(self, out: dict[str, Hit], inner: dict[str, Hit]) -> bool:
        """Tell whether all documents are in `out`, by key or, as retrievers mostly tell them apart, by text."""
        if all(key in out for key in inner):
            return True
        identity = self._known.identity
        texts = {identity(key, hit[0].text) for key, hit in out.items()}
        return all(key in out or identity(key, hit[0].text) in texts for key, hit in inner.items())

    def _is_joined(self, out: Iterable[str]) -> bool:
        """Tell whether documents are those of some deliveries, one behind the other."""
        return are_joined(out, [list(delivery.hits) for delivery in self._delivered])

    def _is_joined_inside(self, choice: Choice) -> bool:
        """Tell whether a step gave out all that was found inside it, one result behind the other."""
        scope, out, base = choice[:3]
        is_all = base is scope.found and scope.sources > 1 and base.keys() == out.keys()
        return is_all and self._is_joined(out) and not self._is_scored_anew(out, base)

    # -- choices --

    def _take_choice(self, choice: Choice, *, is_sure: bool = True) -> None:
        """Report a choice; one that may be a citation waits, and counts if a prompt or another step follows."""
        waiting = self._waiting
        if self._is_handed_on(choice):
            return
        if self._is_joined_inside(choice):
            self._keep_order(choice)
            return
        is_again = waiting is not None and list(waiting.out) == list(choice.out)
        if waiting is not None and not is_again and choice.base.keys() <= waiting.out.keys():
            self._settle_waiting()  # what it kept was chosen from
        if not is_sure:
            self._waiting = waiting if is_again else choice
            return
        self._settle_waiting()
        if not is_again:
            self._make_choice(choice)

    def _settle_waiting(self) -> None:
        """Take the choice that waits for a prompt or a step to follow it, as one does now."""
        choice, self._waiting = self._waiting, None
        if choice is not None:
            self._take_choice(choice)

    def _make_choice(self, choice: Choice) -> None:
        out, base = choice.out, choice.base
        is_only_rewritten = list(base) == list(out) and not self._is_scored_anew(out, base)
        # Merged, expanded or rewritten passages are a selection without ranks.
        self._choose(choice, is_ranked=out.keys() <= base.keys() and not is_only_rewritten)

    def _choose(self, choice: Choice, *, is_ranked: bool) -> None:
        self._report_choice(choice, is_ranked=is_ranked)
        self._deliver_choice(choice)

    def _report_choice(self, choice: Choice, *, is_ranked: bool) -> None:
        """Report what a step chose: a reranking, or a selection where its passages have no ranks in the pool."""
        scope, out, base = choice[:3]
        if is_ranked:
            self._rate(out, choice.before, base)
            is_whole_pool = list(base) == list(self.pool) and not self._is_pool_ordered and not self._known.renamed
            self.run.reranked(
                _passages(out),
                candidates=None if is_whole_pool else _passages(base),
                model=choice.model or scope.name,
                top_n=choice.top_n,
                started_ns=choice.started_ns or max(scope.started_ns, scope.found_ns),
                ended_ns=choice.ended_ns,
                parent_key=scope.key or scope.within_key or None,
                selection_source=choice.source,
            )
        else:
            self.run.selected(_passages(out), selection_source=choice.source)
        self.is_narrowed = scope.is_narrowed = True
        self._selection_source = choice.source
        self._last_chosen = list(out)
        self._told.update(out)

    def _deliver_choice(self, choice: Choice) -> None:
        """Tell the scopes above which documents a choice kept, up to the composite around it."""
        scope, out, base, ended_ns = choice[:4]
        self._last = out
        self._delivered.append(Delivered(out, self.run.n_prompts, is_choice=True))
        scopes = (scope,) if scope.kind == "search" else (scope, *scope.enclosing())
        _replace_found(scopes, out, base, ended_ns)
        for above in scopes:
            above.is_narrowed = True
            above.chosen = out

    def _kept(self, found: dict[str, Hit]) -> dict[str, Hit]:
        """Return what was delivered less what was then discarded, as an attempt that a loop replaced by another.

        A delivery was discarded when no later prompt shows a passage of it, while one shows those of another.
        """
        last = {key: place for place, delivery in enumerate(self._delivered) for key in delivery.hits}
        parts: dict[int, dict[str, Hit]] = {}
        for key, hit in found.items():
            parts.setdefault(last[key], {})[key] = hit
        shown = {
            place
            for place, part in parts.items()
            if self.run.prompt_contains(_passages(part), since=self._delivered[place].prompts)
        }
        return {key: hit for key, hit in found.items() if last[key] in shown} or found

    def _is_rest_known(self, choice: Choice, given: dict[str, Hit]) -> bool:
        """Tell whether a step that searched gave out what was new: it left out what its state holds already."""
        scope, out, base = choice[:3]
        rest = scope.found.keys() - out.keys()
        if not rest or base is not scope.found or not rest <= given.keys():
            return False
        return [key for key in scope.found if key in out] == list(out) or self._is_joined(out)

    def _delivered_with(self, out: dict[str, Hit]) -> dict[str, Hit]:
        """Return what documents of the pool were chosen from, where the step's input does not show it."""
        for delivery in reversed(self._delivered):
            if delivery.hits.keys() >= out.keys():
                return delivery.hits
        parts = [delivery.hits for delivery in self._delivered if delivery.hits.keys() & out.keys()]
        return {key: hit for part in parts for key, hit in part.items()}

    def _is_answered(self, value: object) -> bool:
        """Tell whether what a step was given or gave out holds what the model said last, or a part of it."""
        said = self.speech.last_text.strip()
        if not self.speech.last_text:
            return False
        answer = answer_text(answer_in(_state_of(value)) or "", is_json=self.speech.is_json_asked).strip()
        is_part = min(len(said), len(answer)) >= _SHORTEST_PART_CHARS and (answer in said or said in answer)
        return said == answer or is_part

    def _is_shown_before(self, choice: Choice) -> bool:
        """Tell whether a prompt has shown what a choice drops: it may pick out what an answer cites."""
        base = choice.base
        since = next((one.prompts for one in reversed(self._delivered) if one.hits.keys() & base.keys()), 0)
        if since == self.run.n_prompts:
            return False
        dropped = (hit[0] for key, hit in base.items() if key not in choice.out)
        return bool(self.run.prompt_contains(dropped, since=since))

    def _is_handed_on(self, choice: Choice) -> bool:
        """Tell whether a step left documents as they came: it looked at them, or copied their list."""
        scope, out, base = choice[:3]
        if list(base) == list(out):
            is_scored = base is not scope.chosen and self._is_scored_anew(out, base)
            return not is_scored and not _is_rewritten(out, base)
        last = self._delivered[-1] if self._delivered else None
        if last is None or not last.is_choice or not out or scope.found or list(last.hits) != list(out):
            return False
        return all(is_equal(facts, last.hits[key][1]) for key, (_, facts) in out.items())

    def _rate(
        self, out: dict[str, Hit], before: Mapping[str, float | None] | None, base: dict[str, Hit] | None = None
    ) -> None:
        """Leave passages the scores that a choice gave: all of them, as soon as one is not as before, else none."""
        is_rated = _are_rated(out, before)
        for rank, (key, hit) in enumerate(out.items(), start=1):
            own = hit[0].score if is_rated else None
            score = self._rescored(key, hit, base) if before is None else own
            out[key] = (replace(hit[0], rank=rank, score=score), hit[1])

    def _rescored(self, key: str, hit: Hit, base: dict[str, Hit] | None) -> float | None:
        seen = self._seen.get(key)
        if seen is not None and seen is not hit:
            return rerank_score_of(hit[1], seen[1])
        if base and any(is_equal(hit[1], facts) for _, facts in base.values()):
            return None  # a rewritten passage with the metadata of the one that it was made of
        return rerank_score_of(hit[1], None)

    def _is_scored_anew(self, out: dict[str, Hit], base: dict[str, Hit]) -> bool:
        """Tell whether documents have a score that they had not when they were told of last."""
        return any(
            rerank_score_of(hit[1], self._told.get(key, base[key])[1]) is not None for key, hit in out.items()
        )


def _is_telling(part: str, passage: Passage, passages: Sequence[Passage]) -> bool:
    return len(part) >= _SHORTEST_PART_CHARS and not any(
        part in other.text for other in passages if other.id != passage.id
    )


def _is_sentence(part: str) -> bool:
    return len(part.strip()) >= _SHORTEST_SENTENCE_CHARS and len(part.split(None, 2)) > 2


def _joined(documents: Sequence[Doc], near: Mapping[str, Hit]) -> set[int]:
    """Return the places of documents to which neighbours were joined: a new text that holds those of two passages.

    A document with a new id of its own is another passage.
    """
    ids, texts = ({getattr(hit[0], name) for hit in near.values()} for name in ("id", "text"))
    told = [text for text in texts if len(text) >= _SHORTEST_CUT_CHARS]
    return {
        place
        for place, one in enumerate(documents)
        if one.text not in texts and (not one.id or one.id in ids)
        if sum(text in one.text for text in told) > 1
    }


def _passages(hits: Mapping[str, Hit]) -> ReadPassages:
    return ranked([passage for passage, _ in hits.values()])


def _replace_found(scopes: Iterable[Scope], out: dict[str, Hit], base: Mapping[str, Hit], ended_ns: int) -> None:
    """Put documents in the place of those that a step made them of, in what was found in some scopes."""
    for above in scopes:
        is_all = above.found.keys() <= base.keys()  # mostly, and seen in a quarter of the time
        rest = {} if is_all else {key: hit for key, hit in above.found.items() if key not in base}
        above.found = {**rest, **out}
        above.found_ns = ended_ns


def _candidates(scope: Scope, out: dict[str, Hit], given: dict[str, Hit]) -> dict[str, Hit]:
    """Return what a step chose from: the choice made inside it, what was found inside, or its input."""
    for base in (scope.chosen, scope.found, given):
        if base and all(key in base for key in out):
            return base
    return {**given, **scope.found}


def _state_of(value: object) -> object:
    """Return the fields of a state as a mapping."""
    fields = fields_of(value)
    return None if fields is None else dict(fields)


def _is_added_to(base: dict[str, Hit], out: dict[str, Hit], pool: dict[str, Hit]) -> bool:
    """Tell whether a step handed on all that it was given of the pool, and documents that are new beside it."""
    is_kept = bool(base) and len(out) > len(base) and out.keys() >= base.keys()
    if not is_kept or any(hit[0].text != out[key][0].text for key, hit in base.items()):
        return False
    return base.keys() <= pool.keys() and not any(key in pool for key in out if key not in base)


def _is_found_anew(outputs: object, base: dict[str, Hit], out: dict[str, Hit]) -> bool:
    """Tell whether a graph's step searched though its state has documents, as for the web after a poor retrieval.

    Its documents have nothing of the given ones. Those that a model wrote in it were left out before.
    """
    if not base or not out or fields_of(outputs) is None or not base.keys().isdisjoint(out):
        return False
    given = base.values()
    return not any(_is_made_of(hit, other) for hit in out.values() for other in given)


def _is_made_of(hit: Hit, other: Hit) -> bool:
    """Tell whether a passage is a part of another one, holds it, or has its metadata."""
    (passage, facts), (before, facts_before) = hit, other
    is_part = passage.text in before.text or before.text in passage.text
    return is_part or bool(facts and is_equal(facts, facts_before))


def _is_given_one(inputs: object) -> bool:
    """Tell whether a step was given a single document: it decides on that one, and not on the pool."""
    fields = mapping_of(inputs)
    parts = (inputs,) if fields is None else fields.values()
    return any(type(part) is Doc for part in parts)


def _are_rated(out: Mapping[str, Hit], before: Mapping[str, float | None] | None) -> bool:
    """Tell whether a passage has another score than before."""
    return before is not None and any(hit[0].score != before.get(key) for key, hit in out.items())


def _has_new_texts(out: Mapping[str, Hit], base: Mapping[str, Hit]) -> bool:
    """Tell whether a passage is none of `base`, or has another text than there."""
    return any(key not in base or hit[0].text != base[key][0].text for key, hit in out.items())


def _is_rewritten(out: dict[str, Hit], base: dict[str, Hit]) -> bool:
    """Tell whether a text was replaced or widened: a translation, an extract, or its neighbours beside it.

    A header that is added to a passage rewrites nothing.
    """
    texts = ((base[key][0].text, hit[0].text) for key, hit in out.items())
    return any(before not in after or len(after) >= _WIDENED * len(before) for before, after in texts)
