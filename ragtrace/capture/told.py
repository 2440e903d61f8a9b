"""Runs of a framework that tells question and answer itself: what is left to decide of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.capture.attribution import found_in
from ragtrace.capture.events import Began, Ended
from ragtrace.capture.guard import guarded
from ragtrace.capture.interpret import Interpreter
from ragtrace.capture.messages import prompt_text
from ragtrace.capture.model_calls import answer_text
from ragtrace.capture.turns import turn_of, turns_in
from ragtrace.capture.types import Generation
from ragtrace.capture.values import Doc
from ragtrace.model import Found, added_usage

if TYPE_CHECKING:
    from ragtrace.capture.events import Asked, Asking, Event, Gave, Marked, Said
    from ragtrace.capture.run import Run
    from ragtrace.capture.scopes import Scope
    from ragtrace.capture.types import Failure
    from ragtrace.model import Message

_EMPTY = "Empty Response"  # LlamaIndex's text for a model that said nothing
_CONTEXT_SHARE = 0.9  # of a text that consists of passages


class ToldInterpreter(Interpreter):
    """Reads the events of a run whose framework tells the question, and the answer among what a call returned.

    Args:
        run: takes what is read.
    """

    are_ids_made = True
    holds_in_tools = False

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._has_query = True  # none is sought
        self._began = Began()  # of the root
        self._told: set[str] = set()  # answers of earlier turns that a state holds
        self._said: list[str] = []  # by models and tools of this run
        self._read: str | None = None  # the answer that was read piece by piece, or given by a call in a block
        self._offers: dict[str, list[Doc]] = {}  # passages that functions gave out, by name
        self._is_asked = False  # a model was asked after the last search
        self._is_broken = False  # the last model's stream broke
        self._is_streamed = False  # the last model that said something did so piece by piece

    def take(self, event: Event) -> None:
        """Read one event."""
        if event.kind == "told":
            return
        if event.kind == "ask":
            self._take_asking(event.data)
        elif event.kind == "offer":
            self._take_offer(event.data)
        elif event.kind == "answer":
            self._read = event.data
        else:
            super().take(event)

    # -- beginnings --

    @guarded
    def _take_asking(self, asking: Asking) -> None:
        if asking.question:
            self.run.set_query(asking.question)
            self.run.findings.question = Found(asking.place, "guess" if asking.is_guess else "framework")
        if asking.history is not None:
            self.run.set_history(turn for one in asking.history if (turn := turn_of(one)) is not None)
        self._told.update(asking.told)

    @guarded
    def _take_offer(self, offered: dict[str, object]) -> None:
        """Take passages that a function gave out: they count where a prompt shows them."""
        for name, part in offered.items():
            if isinstance(part, list) and part and all(isinstance(one, Doc) for one in part):
                self._offers.setdefault(name, part)
            else:
                self._note_held("state", {name: part})
            self._offered.setdefault(name, part)

    def _begin_chain(self, scope: Scope, began: Began) -> None:
        super()._begin_chain(scope, began)
        self._has_query = True
        if scope.parent is None:
            self._began = began
        self.lineage.is_retried = self.lineage.is_retried or began.is_retry
        if scope.within is None and began.texts:
            self._take_texts(scope, began.texts)
        if scope.within is None and began.shows:
            self.lineage.shows(scope, began.shows)

    def _given(self, scope: Scope) -> None:
        scope.replies_before = len(self.speech.replies)

    @guarded
    def _take_texts(self, scope: Scope, texts: list[str]) -> None:
        """Take the texts that a step is given in place of passages: the pool of one that was called alone.

        Inside another call they count where nothing was found as passages.
        """
        given = [text for text in texts if not self.speech.first.owns(text)]
        if scope.parent is None:
            self.run.set_candidates(given)
            return
        for text in given:
            self.run.add_text(text, source=scope.name, kind="context_text")

    @guarded
    def _begin_model(self, scope: Scope, asked: Asked) -> None:
        scope.asked = asked
        if asked.operation == "embeddings":
            return
        scope.messages = turns_in(asked.messages, is_prompt=True)
        for above in scope.enclosing():
            above.has_model = True
        if not scope.is_inner:
            self._is_asked = True
            if self._root is not None and self._root.kind != "search":
                self.lineage.prompt(scope, (), prompt_text(scope.messages))  # each tool tells of itself
                self._note_prompt(scope)

    # -- ends --

    def _end(self, scope: Scope, event: Event, ended_ns: int) -> None:
        before = len(self.run.retrievals())
        super()._end(scope, event, ended_ns)
        is_search = event.kind == "search" and event.error is None and scope.within is None
        if is_search and len(self.run.retrievals()) > before:
            self._forget_reply(scope)

    def _forget_reply(self, scope: Scope) -> None:
        """Take no reply for the answer that a model gave before a search: it wrote the query."""
        self.speech.last_reply = self.speech.last_text = ""
        self._is_asked = False
        if scope.is_in_block:
            self._read = None

    def _end_chain(self, scope: Scope, gave: Gave, failure: Failure | None, ended_ns: int) -> None:
        if scope.kind == "tool":
            self._end_told_tool(scope, gave, failure, ended_ns)
            return
        if scope.is_engine and scope.parent is not None:
            if failure is not None:
                self.lineage.withdraw(scope)
            else:
                self.lineage.answered(scope, gave.text)
        if scope.is_in_block and gave.value:
            self._read = str(gave.value)

    @guarded
    def _end_told_tool(self, tool: Scope, gave: Gave, failure: Failure | None, ended_ns: int) -> None:
        """Report a tool call; its output counts as passages where nothing was searched in it."""
        run = self.run
        self._said.append(gave.text or "")
        self._report_tool(tool, gave.text or None, failure, ended_ns)
        if failure is not None or gave.value is None or tool.sources or tool.found or tool.is_marked:
            return
        if (declared := run.declarations.evidence(tool.name)) is not None:
            documents = gave.value if _are_documents(gave.value) else None
            value = gave.text if documents else gave.value
            found = self.lineage.texts.declared(tool, declared, value, documents)
            if found:
                self.lineage.step(tool, None, found, ended_ns)
                self._forget_reply(tool)
            return
        if not _are_documents(gave.value):
            texts = gave.value if isinstance(gave.value, list) else [gave.value]
            self.lineage.texts.note(tool, texts, tool.inputs)  # no passages are in them
            return
        before = len(run.retrievals())
        self.lineage.step(tool, None, gave.value, ended_ns)
        if len(run.retrievals()) > before:
            self._forget_reply(tool)

    def _end_model(self, scope: Scope, said: Said, failure: Failure | None, ended_ns: int) -> None:
        super()._end_model(scope, said, failure, ended_ns)
        reply = turn_of(said.choices[0]) if said.choices else None
        if reply is not None and reply.content.strip():
            self._said.append(reply.content)
            self._is_streamed = said.is_streamed
            is_other = not (self._read and self._read in prompt_text(scope.messages))
            if scope.is_in_block and not said.is_streamed and is_other:
                self._read = reply.content

    def _take_speech(
        self,
        scope: Scope,
        asked: Asked,
        said: Said,
        text: str,  # noqa: ARG002 - of the other interpreter
        outputs: tuple[Message, ...],
        failure: Failure | None,
        ended_ns: int,  # noqa: ARG002
    ) -> None:
        speech = self.speech
        reply = outputs[0].shown if outputs else ""
        answer = answer_text(reply, is_json=asked.is_json_asked)
        if reply or said.is_refused:
            speech.last_reply, speech.last_text, speech.is_json_asked = reply, answer, asked.is_json_asked
        if said.goes_on or (outputs and outputs[0].calls):
            speech.last_text = ""
        speech.refused_text = answer if said.is_refused else None
        self._is_broken = failure is not None and bool(reply)
        speech.last_model = asked.model or scope.name
        self._usage = added_usage(self._usage, said.usage)

    def _take_chain_answer(self, *_: object, **__: object) -> None:
        """Take no answer here: the end of a call tells it."""

    def _failed(self, *_: object) -> None:
        """Take nothing back: what follows tells whether a step was tried again."""

    def _marked(self, event: Event, marked: Marked) -> None:
        scope = self._scopes.get(event.parent) or self._root
        if scope is None:
            return
        if not marked.is_choice:
            if scope.within is not None:  # what the retriever returns will tell
                return
            for above in (scope, *scope.enclosing()):
                above.is_marked = True
            self._forget_reply(scope)
        super()._marked(event, marked)

    # -- the end --

    @guarded
    def _conclude(self, data: object, failure: Failure | None) -> None:
        """Write the facts that are known at a run's end; a run that was no question is dropped."""
        root, run = self._root, self.run
        if root is None:
            run.discard()
            return
        ended = data if isinstance(data, Ended) else Ended(data)  # type: ignore[arg-type]  # an outcome
        for name, documents in self._offers.items():
            self.lineage.offered(root, name, documents)
        self._note_root(root)
        self._outputs = ended.value
        declared = self._take_declared(root)
        if declared is not None:
            ended = replace(ended, answer=declared)
        if self._is_joined:
            self._conclude_block()
            return
        outcome, speech, findings = ended.outcome, self.speech, run.findings
        branches = self._answers_among(ended.texts) if ended.answer is None and outcome is None else []
        given = None if self._is_streamed and not (ended.answer or "").strip() else ended.answer
        answer = given if given is not None else "\n\n".join(sorted(branches)) or self._read or None
        text = speech.last_text if answer is None else answer_text(answer, is_json=speech.is_json_asked)
        if outcome == "interrupted" or self._is_earlier(text):
            text = ""
        if given is not None:
            findings.answers = findings.answers if declared is not None else (Found("output", "framework"),)
        elif branches:
            findings.answers = tuple(Found("output", "guess") for _ in branches)
        else:  # read piece by piece, or what the last model said
            is_read = self._read is not None or self._is_streamed
            findings.answers = (Found("the stream") if is_read else Found("the last reply", "guess"),)
        self.lineage.settle(root, answer=text)
        if not self._is_kept(root, text):
            run.discard()
            return
        is_read = answer is not None or self._is_broken  # of a run that failed, by the user
        is_given = self._began.calls_tools and ended.answer is not None  # also by a tool that answers itself
        is_silent = not self._is_asked and not is_given and (not text or self._is_context(text))
        if outcome is None and is_silent:
            run.expects_no_answer()
        elif root.kind != "search" and (outcome is None or (text and (outcome != "error" or is_read))):
            if len(branches) > 1:
                run.answered_by_branches(branches, model=speech.last_model, usage=self._usage)
            else:
                has_refused = self._is_refusal(text)
                run.answered(text, model=speech.last_model, usage=self._usage, is_refused=has_refused)
        if outcome == "interrupted":
            run.interrupted(ended.asks)
        if failure is not None and outcome in {"error", None}:
            run.failed(failure)

    def _conclude_block(self) -> None:
        """Write last facts onto a run of the application's own, whose own words come first."""
        root, run, speech = self._root, self.run, self.speech
        if root is None:
            return
        text = answer_text(self._read, is_json=speech.is_json_asked) if self._read else speech.last_text
        given = run.attributes.get("answer")
        if given is None:
            run.findings.answers = (Found("output" if self._read else "the last reply", "framework"),)
        self.lineage.settle(root, answer=given or text)
        if given is not None:
            run.attributes.setdefault("usage", self._usage)
            run.attributes["is_refused"] |= self._is_refusal(given)
        elif run.failure is None and (self._is_asked or (text and not self._is_context(text))):
            has_refused = self._is_refusal(text)
            run.answered(text, model=speech.last_model, usage=self._usage, is_refused=has_refused)
        elif not self._is_asked:
            run.expects_no_answer(is_of_application=True)

    def _answers_among(self, texts: tuple[str, ...]) -> list[str]:
        """Return those of the texts given out that a model of this run said, and that no search was asked.

        Several are the answers of branches; where one was made of another, none is taken.
        """
        replies = {answer_text(said, is_json=False).strip() for said in self._said}
        asked = self._queries()
        said = [text for text in texts if text in replies and text not in asked]
        if len(said) < 2:
            return said
        made_of = (
            prompt_text(step.inputs)
            for step in self.run.steps
            if isinstance(step, Generation) and any(one.content.strip() in said for one in step.outputs)
        )
        return [] if any(text in prompt for prompt in made_of for text in said) else said

    def _is_earlier(self, text: str) -> bool:
        """Tell whether a text is what an earlier turn answered, and nothing in this run said it."""
        said = text.strip()
        turns = self.run.attributes.get("history", ())
        is_known = any(turn.role == "assistant" and turn.content.strip() == said for turn in turns)
        return (said in self._told or is_known) and not any(said in one for one in self._said)

    def _is_refusal(self, answer: str) -> bool:
        return super()._is_refusal("" if answer.strip() == _EMPTY else answer)

    def _is_kept(self, root: Scope, answer: str) -> bool:
        """Tell whether a run that ends asked something: passages were searched, or a question was answered."""
        run = self.run
        is_asked = bool(run.attributes.get("query")) or self._began.is_resumed
        if is_asked and (answer or self._is_asked or root.is_engine):
            return True
        return self._has_retriever or self.lineage.has_met or run.selection is not None

    def _is_context(self, text: str) -> bool:
        """Tell whether a text consists of the run's passages: a context for a model elsewhere, not an answer."""
        run = self.run
        delivered = run.selection if run.selection is not None else run.candidates()
        found = found_in(text, tuple({passage.id: passage for passage in delivered}.values()))
        return bool(found) and sum(len(passage.text) for passage in found) >= _CONTEXT_SHARE * len(text)


def _are_documents(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, Doc) for one in value)
