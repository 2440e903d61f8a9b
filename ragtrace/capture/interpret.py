"""Reading of a run from its events: the question, the answer, the passages, the outcome.

An `Interpreter` takes the events of one run in their order, and reports to the run what they mean. It works in the
pipeline's thread, and asks nothing of the application. What a framework tells of question and answer itself is one
more source of them. The rules are those of question-evidence-answer.md in docs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from ragtrace.capture.attribution import found_in
from ragtrace.capture.content_blocks import content_text, json_of, text_of
from ragtrace.capture.declared import Place
from ragtrace.capture.declared_values import brought_at, text_at
from ragtrace.capture.documents import documents_in, is_documents_only, new_documents
from ragtrace.capture.events import Asked, Began, Ended, Said, Sought
from ragtrace.capture.guard import guarded
from ragtrace.capture.lineage import Lineage
from ragtrace.capture.messages import prompt_text
from ragtrace.capture.model_calls import answer_text
from ragtrace.capture.names import (
    ANSWER_FIELDS,
    ANSWER_NAMES,
    ASKED_NAMES,
    CALLED_FIELDS,
    QUESTION_KEYS,
    STATE_ANSWER_KEYS,
    STATE_QUESTION_KEYS,
)
from ragtrace.capture.reading import longest_place, place_in, step_named
from ragtrace.capture.scopes import Scope, Speech
from ragtrace.capture.turns import (
    Beginning,
    answer_in,
    branch_answers,
    called_in,
    form_in,
    given_texts,
    has_texts,
    history_in,
    last_spoken,
    new_texts,
    of_this_turn,
    question_in,
    question_in_state,
    recalled_in,
    structured_text,
    text_asked,
    texts_held,
    turn_of,
    turns_held,
    turns_in,
)
from ragtrace.capture.types import Generation, PromptNote
from ragtrace.capture.values import LISTS, Doc, Prompt, Redacted, Steer, Turn, fields_of, is_resumption, mapping_of
from ragtrace.model import Found, Message, added_usage
from ragtrace.model.record import EMPTY_RESPONSE
from ragtrace.text import shown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ragtrace.capture.declared_values import Brought
    from ragtrace.capture.events import Asking, Chosen, Event, Gave, Kind, Marked
    from ragtrace.capture.run import Run
    from ragtrace.capture.types import Failure
    from ragtrace.model import How, Outcome, Usage

_ASKED_KEYS = (*QUESTION_KEYS, "messages")  # of an inner chain
_TELLING_CHARS = 3
_MOST_NOTES = 256  # prompts and places of a run
_MOST_VALUES = 3  # of one place
_FEWEST_HELD = 20  # characters of a text
_DECLARED = frozenset({"metadata", "decorator", "handler", "settings"})
_OUTPUT = Place("output")
_EXPLAINED_ROLES = frozenset({"tool", "assistant"})
_CONTEXT_SHARE = 0.9  # of a text that consists of passages
_COMPOSED_SHARE = 0.5  # of the words of a text that a program made of replies
_BEGINNINGS: dict[Kind, Any] = {"chain": Began(), "tool": Began(), "search": Sought(""), "model": Asked()}


class Interpreter:
    """Reads the events of one run, in their order, and reports to the run what they mean.

    Thread-unsafe: the run calls it, one event at a time. An event that cannot be read is counted as a loss, and the
    next is read.

    Args:
        run: takes what is read.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.speech = Speech()
        self.lineage = Lineage(run, self.speech)
        self._is_told = False  # the framework tells the question, and the answer among what a call returned
        self._scopes: dict[str, Scope] = {}
        self._root: Scope | None = None
        self._is_joined = False  # the application opened the run, and its root stands for its block
        self._outcome: Outcome | None = None
        self._has_query = False
        self._first_query = ""  # of the first retriever outside tools
        self._inner_question = ""  # in the input of an inner step, for a root whose input has no text
        self._has_retriever = False  # a retriever was called, or the application marked documents
        self._has_model = False  # a model was called outside retrievers
        self._searched_ns = 0  # start of the last tool that gave documents
        self._spoken_ns = 0  # end of the last model call outside retrievers; its start while it is open
        self._is_retrieval_only = False  # the output is no answer, and no model wrote one
        self._answer: str | None = None  # in the root's output, once the root has ended
        self._chain_answer: str | None = None  # of the last chain in a joined run
        run.findings.told = self.speech.told
        self._offered: dict[object, object] = {}  # what functions or nodes of a graph gave out last, by name
        self._outputs: object = None  # of the root, or of the last chain in a joined run
        self._is_asked_at_start = False  # the application said the question before anything happened
        self._branches: list[str] = []  # answers of branches that ran side by side
        self._spoken_in: dict[tuple[int, int], list[list[str]]] = {}  # replies of nodes, by graph and step
        self._spoken_at: dict[str, int] = {}  # texts of models that a step gave out: its number
        self._direct: dict[str, str] = {}  # results of tools that answer for the agent, by call id
        self._is_interrupted = False
        self._interrupts: list[str] = []  # texts that the run asks a person
        self._is_left = False  # a generator of the run was closed before its end
        self._usage: Usage | None = None
        self._earlier: set[str] = set()  # answers of earlier turns that a state holds, as the framework told them
        self._offers: dict[str, list[Doc]] = {}  # passages that functions gave out, by name
        self._tool_texts: list[str] = []

    def take(self, event: Event) -> None:
        """Read one event."""
        if event.kind == "told":
            self._is_told = self._has_query = self.lineage.are_ids_made = True
        elif event.kind == "ask":
            self._take_asking(event.data)
        elif event.kind == "offer":
            self._take_offer(event.data)
        elif event.kind == "answer":
            self._take_read(event.data)
        elif event.kind == "end":
            for opened in reversed(self._scopes.values()):
                if not opened.is_over:
                    self._end_agent(opened, event)
            self._conclude(event.data, event.error)
        elif event.kind == "mark":
            self._marked(event, event.data)
        elif event.kind == "choice" and event.ended_ns is not None:
            self._chose(event, event.data)
        elif event.ended_ns is None:
            self._begin(event)
        else:
            scope = self._scopes.get(event.id) or self._begin(event)
            scope.is_over = True
            self._end(scope, event, event.ended_ns)

    # -- where a step begins --

    def _begin(self, event: Event) -> Scope:
        """Take a step that begins, or one of which only the end is told."""
        parent = self._scopes.get(event.parent) or self._root
        scope = Scope(parent, event.kind, event.name, event.started_ns, event.id)
        self._scopes[event.id] = scope
        if parent is None:
            self._root = scope
        data = event.data if event.ended_ns is None else _BEGINNINGS[event.kind]
        if event.kind == "search":
            self._begin_search(scope, data)
        elif event.kind == "model":
            self._begin_model(scope, data)
        elif event.kind != "choice":
            self._begin_chain(scope, data)
        return scope

    def _begin_chain(self, scope: Scope, began: Began) -> None:
        scope.inputs = began.value
        if began.is_block:
            self._is_joined = scope.is_block = True
            scope.inputs = self.run.attributes.get("query")
            self._is_asked_at_start = "query" in self.run.attributes
            self._has_query = self._is_told or self._is_asked_at_start
            return
        if (node := began.node) is not None:
            scope.node = node
            scope.task += ((node.step, node.place, node.path),)
            scope.is_sent = scope.is_sent or node.is_sent
        if began.is_graph and is_resumption(began.value):  # a program that asks and goes on within one run
            self._is_interrupted = False
            self._interrupts.clear()
        if scope.kind == "tool":
            scope.is_called, scope.is_direct = True, began.is_direct
            scope.call_id, scope.description = began.call_id, began.description
        scope.agent, scope.is_engine = began.agent, began.is_engine
        scope.calls_tools, scope.is_continued = began.calls_tools, began.is_resumed
        is_step = (scope.kind == "tool" and not self._is_told) or scope.agent is not None
        if scope.within is None and is_step:
            scope.within_key = scope.id
        self._given(scope)
        self.lineage.is_retried = self.lineage.is_retried or began.is_retry
        if scope.within is None and began.texts:
            self._take_texts(scope, began.texts)
        if scope.within is None and began.shows:
            self.lineage.shows(scope, began.shows)

    @guarded
    def _take_asking(self, asking: Asking) -> None:
        """Take what a framework says of the question, and of the turns before it."""
        if asking.question:
            self.run.set_query(asking.question)
            self.run.findings.question = Found(asking.place, "guess" if asking.is_guess else "framework")
        if asking.history is not None:
            self.run.set_history(turn for one in asking.history if (turn := turn_of(one)) is not None)
        self._earlier.update(asking.told)

    @guarded
    def _take_offer(self, offered: dict[str, object]) -> None:
        """Take passages that a function gave out: they count where a prompt shows them."""
        for name, part in offered.items():
            if isinstance(part, list) and part and all(isinstance(one, Doc) for one in part):
                self._offers.setdefault(name, part)
            else:
                self._note_held("state", {name: part})
            self._offered.setdefault(name, part)

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
    def _given(self, scope: Scope) -> None:
        """Take the input of a chain or a tool: the documents in it, and the question of the run."""
        lineage, inputs = self.lineage, scope.inputs
        lineage.begin(scope)
        if scope.parent is None:
            lineage.texts.contexts(scope.name, None, inputs)
        if scope.within is not None:
            return
        if scope.is_top:
            if not self._has_query:
                self._ask(inputs)
            return
        if scope.node is not None:
            self._take_state(scope)
        self._recall(scope)
        if self._has_query or self._inner_question or scope.kind != "chain" or scope.is_in_tool:
            return
        if fields := mapping_of(inputs):
            self._inner_question = question_in({key: fields[key] for key in _ASKED_KEYS if key in fields})

    def _begin_search(self, scope: Scope, sought: Sought) -> None:
        scope.key, scope.query, scope.top_k = scope.id, sought.query, sought.top_k
        scope.fuses, scope.is_all = sought.fuses, sought.is_all
        scope.source = sought.source or scope.name
        self._has_retriever = True
        if not self._has_query and scope.is_top:
            self.run.set_query(scope.query)
            self._has_query = True
        if not (self._first_query or scope.is_in_tool or scope.within is not None):
            self._first_query = scope.query

    @guarded
    def _begin_model(self, scope: Scope, asked: Asked) -> None:
        """Take the rendered prompt of a model call."""
        scope.asked, turns = asked, asked.messages
        if asked.operation == "embeddings":
            return
        scope.messages = turns_in(turns, is_prompt=True)
        for above in scope.enclosing():
            above.has_model = True
        if not self._has_query and scope.is_top:
            self._ask(turns)
        if not scope.is_inner:  # a prompt inside a retriever asks for other queries, not for the answer
            self._has_model = True
            self._spoken_ns = scope.started_ns
            if self._root is not None and self._root.kind != "search":
                # Where a framework tells of each tool, its message in the prompt says nothing new.
                self.lineage.prompt(scope, () if self._is_told else turns, prompt_text(scope.messages))
                self._note_prompt(scope)

    def _note_prompt(self, scope: Scope) -> None:
        """Note where a prompt was rendered, and what of it may be text that nothing explains."""
        run = self.run
        if run.prompts and len(run.findings.prompts) < _MOST_NOTES:
            texts = tuple(one.content for one in scope.messages if one.role not in _EXPLAINED_ROLES)
            run.findings.prompts[run.prompts[-1]] = PromptNote(scope.path, texts, len(self.speech.told))

    def _note_held(self, place: str, value: object) -> None:
        """Note the values of fields that a step gave out, or that the root was given: a prompt may show them."""
        held = self.run.findings.held
        fields = fields_of(value)
        for name, part in {"": value}.items() if fields is None else fields.items():
            first = part[0] if isinstance(part, LISTS) and part else part
            is_read = isinstance(first, Turn | Doc | Prompt) or (isinstance(part, str) and len(part) < _FEWEST_HELD)
            if is_read or not isinstance(part, str | list | tuple | dict) or not isinstance(name, str):
                continue
            values = held.setdefault(f"{place}{step_named(name)}" if name else place, [])
            if len(held) > _MOST_NOTES:
                return
            del values[: -_MOST_VALUES + 1]
            values.append(part)

    # -- the question --

    @guarded
    def _ask(self, inputs: object) -> None:
        """Take a run's question and the turns before it, where a root's input has them.

        Of a `Steer` it is what it writes into the state under a question's name; the reply to an interrupt is none.
        What is declared comes first.
        """
        if self._ask_declared({"input": (inputs,)}):
            return
        given = fields_of(inputs) or inputs
        if type(inputs) is Steer and isinstance(given, dict):
            given = {key: given[key] for key in (*QUESTION_KEYS, "messages") if key in given}
        self._take_question(question_in(given), given)

    def _ask_declared(self, values: Mapping[str, Sequence[object]]) -> bool:
        """Take the question that the request gave, or that stands at the declared place; tell whether one did."""
        declarations = self.run.declarations
        declared = declarations.question()
        if declared is None or self._is_asked_at_start:
            return False
        told, how = declared
        text = told if isinstance(told, str) else text_at(declarations, told, values)
        if not text:
            return False
        self._has_query = True
        self.run.set_query(text)
        self.run.findings.question = Found("" if isinstance(told, str) else str(told), how)
        return True

    def _take_question(self, question: str, given: object) -> None:
        if question:
            self._has_query = True
            self.run.set_query(question)
            history = history_in(given)
            if history:
                self.run.set_history(history)

    def _take_state(self, scope: Scope) -> None:
        """Take the state that a graph's node is given: what a turn begins with, and a resumed one's question."""
        fields, top = fields_of(scope.inputs), scope.top
        # An `entrypoint` is called again with the input of its first run, as step 0: other graphs tell of none.
        is_entrypoint = top.beginning is None and scope.node is not None and scope.node.step == 0
        top.beginning = top.beginning or Beginning()
        if is_entrypoint and not self._has_query:
            self._take_question(question_in(scope.inputs), scope.inputs)
        if not fields:  # a tool's call, which a resumed agent begins with
            return
        top.beginning.note(fields)
        if scope.is_sent:  # written for one task, as a part of a question is
            return
        for key, value in fields.items():
            top.beginning.whole.setdefault(key, value)
        if not self._has_query and (asked := question_in_state(fields)):
            self._take_question(asked, fields)

    def _recall(self, scope: Scope) -> None:
        """Take the turns that a memory keeps, where the root's input has none; later it has the answer too."""
        root = self._root
        if root is None or root.has_model or "history" in self.run.attributes:
            return
        turns = recalled_in(scope.inputs, root.inputs)
        if turns:
            self.run.set_history(turns)

    @guarded
    def _find_question(self, root: Scope, outputs: object = None) -> None:
        """Find the question of a run whose input names it in its own way, or that goes on with a saved state.

        A text of the input or of the state comes first, see `text_asked`; then what a retriever was asked. The
        state that a resumed graph gives out has the question too, where the steps that ran were given a part of it.
        """
        if self._has_query:
            return
        if root.is_resumed and (left := fields_of(outputs)):
            question = question_in_state(left)
            if question:
                self._take_question(question, left)
                return
        queries = [step.query.strip() for step in self.run.retrievals() if step.query]
        began = root.beginning.fields if root.beginning is not None else {}
        is_told = has_texts(root.inputs)
        given = began if root.is_resumed or not is_told else root.inputs
        whole = root.beginning.whole if root.is_resumed and root.beginning is not None else None
        question = text_asked(whole, queries) or text_asked(given, queries)
        if not question and not root.is_resumed:
            question = ("" if is_told else self._inner_question) or self._first_query
        self._take_question(question, given)

    @staticmethod
    def _is_declared(found: Found | None) -> bool:
        return found is not None and found.how in _DECLARED

    def _values(self, root: Scope) -> dict[str, Sequence[object]]:
        """Return what the heads of declared places mean at the end of a run."""
        began = root.beginning.fields if root.beginning is not None else {}
        left = {**self._offered, **(fields_of(self._outputs) or {})}
        states = ({**began, **left}, began) if began or left else ()
        return {"input": (root.inputs,), "output": (self._outputs,), "state": states}

    def _take_declared(self, root: Scope) -> str | None:
        """Take what stands at declared places of the whole run, and return the answer; note what holds nothing."""
        run, declarations, answer = self.run, self.run.declarations, None
        if not declarations:
            return None
        values, missing = self._values(root), run.findings.missing
        if (follows := declarations.follows()) is not None:
            run.findings.may_follow = follows[0]
        asked = declarations.question()
        if asked is not None and not self._is_asked_at_start and not self._is_declared(run.findings.question):
            state = values["state"][::-1]  # the question is in the state that the run began with
            if not self._ask_declared({**values, "state": state}):
                missing.append(("question", str(asked[0])))
        if (answered := declarations.answer()) is not None and "answer" not in run.attributes:
            place, how = answered
            if text := text_at(declarations, place, values):
                answer, self._is_retrieval_only = text, False
                run.findings.answers = (Found(str(place), how),)
            else:
                missing.append(("answer", str(place)))
        if (chosen := declarations.selected()) is not None:
            place, how = chosen
            brought = brought_at(declarations, place, values[place.head], run.prompts)
            if brought:
                found = [*brought.documents, *map(Doc, brought.texts)]
                self.lineage.mark_selected(root, found)
            else:
                missing.append(("selected", str(place)))
        for place, told, how in declarations.evidence_places():
            inner = place if isinstance(told, bool) else told
            brought = brought_at(declarations, inner, values[place.head], run.prompts)
            if told is False:
                run.findings.explained += [*brought.texts, *(one.text for one in brought.documents)]
            elif brought:
                self._take_brought(root, str(place), brought, how)
            else:
                missing.append(("evidence", str(place)))
        return answer

    def _take_brought(self, scope: Scope, name: str, brought: Brought, how: How) -> None:
        """Take evidence of a declared name or place: passages in an order are a search, texts have none."""
        self.run.findings.hows[name] = how
        if brought.documents:
            self._has_retriever = True
            found = Scope(scope, "search", name, scope.started_ns)
            self.lineage.search(found, brought.documents, scope.started_ns)
        for text in brought.texts:
            self.run.add_text(text, source=name, is_declared=True)

    @guarded
    def _note_root(self, root: Scope) -> None:
        """Note what the root was given: what tells whether it follows another run."""
        findings = self.run.findings
        given = root.query if root.kind == "search" else root.inputs
        if root.kind == "model":
            given = root.asked.messages if root.asked is not None else None
        is_plain = not self._is_joined and self.run.reader.source(root.name) == root.name  # no name to be redacted
        findings.root = root.name if is_plain else ""
        findings.given = given_texts(given)
        findings.talk = [turn.content for turn in turns_held(given)]
        if root.kind == "chain" and not root.is_block:
            self._note_held("input", given)

    @guarded
    def _note_question(self, root: Scope) -> None:
        """Note where the question was read: in the input, in the state, or from what a search was asked."""
        query, findings = self.run.attributes.get("query", ""), self.run.findings
        if self._is_asked_at_start or findings.question is not None:
            return
        began = root.beginning.fields if root.beginning is not None else {}
        held = [("input", root.messages if root.kind == "model" else root.inputs), ("state", began)]
        if root.kind == "search":
            held = [("input", root.query)]
        places = [found for head, value in held if (found := place_in(value, query, head, ASKED_NAMES))]
        known = [found for found in places if found.how == "structure"] or places
        searches = [
            step.source or "search" for step in self.run.retrievals() if step.query.strip() == query.strip()
        ]
        findings.asked_at = next((place for head, value in held if (place := longest_place(value, head))), "")
        if not query:
            findings.question = Found(how="guess") if findings.asked_at else None  # a text may be it
        elif not known:
            findings.question = Found(f"the query of {searches[0]}" if searches else "an inner step", "guess")
        elif root.kind == "model":
            findings.question = replace(known[0], how="guess")  # it may be a part of the prompt
        else:
            findings.question = known[0]

    # -- where a step ends --

    def _end(self, scope: Scope, event: Event, ended_ns: int) -> None:
        data = event.data
        is_told_in_block = self._is_told and scope.is_in_block
        searches = len(self.run.retrievals()) if is_told_in_block else 0
        if type(data) is Said:
            self._end_model(scope, data, event.error, ended_ns)
        elif isinstance(data, list):
            for name in (scope.name, scope.source) if data else ():
                self.run.findings.stays(name, "search", self.run.declarations.evidence(name))
            self.lineage.search(scope, data, ended_ns)
            if scope.parent is None:
                self._answer, self._is_retrieval_only = "", True
        elif scope.kind == "search" and (data is None or event.error is not None or data.is_steered):
            self.lineage.failed_search(scope, event.error, ended_ns)
            if data is not None:
                self._failed(scope, data, event.error)
        else:
            self._end_chain(scope, event.data, event.error, ended_ns)
            self._end_agent(scope, event)
        if is_told_in_block and event.error is None and len(self.run.retrievals()) > searches:
            self._chain_answer = None  # it wrote the query

    def _end_agent(self, scope: Scope, event: Event) -> None:
        """Report the agent that a chain ran, behind all that happened inside."""
        if scope.agent is not None:
            self.run.agent_called(
                scope.agent,
                started_ns=scope.started_ns,
                ended_ns=event.ended_ns,
                key=scope.id,
                parent_key=scope.parent_key,
                error=event.error,
            )

    def _end_chain(self, scope: Scope, gave: Gave, failure: Failure | None, ended_ns: int) -> None:
        is_failed = failure is not None or gave.is_steered
        if scope.kind == "tool":
            self._end_tool(scope, gave, failure, ended_ns, is_failed=is_failed)
        self._is_left = self._is_left or gave.is_left
        if is_failed:
            self._failed(scope, gave, failure)
            return
        if scope.is_engine and scope.parent is not None:
            self.lineage.answered(scope, gave.text)
        if self._is_told and scope.kind != "tool":
            if scope.is_in_block and gave.value:
                self._take_chain_answer(scope, str(gave.value), None)
            return
        self._is_interrupted = self._is_interrupted or gave.is_waiting
        outcome: Outcome | None = None
        if scope.is_top:
            if self._is_interrupted:
                outcome = "interrupted"
            elif gave.is_streamed and self._is_broken_off(scope):
                outcome = "partial"
        inputs = gave.streamed_input if gave.is_streamed else scope.inputs
        if gave.is_streamed:
            self._take_streamed(scope, inputs)
        if gave.value is not None:
            self.lineage.step(scope, inputs, gave.value, ended_ns)
            if scope.kind == "chain" and scope.parent is not None and scope.within is None:
                self._take_function(scope, gave.value)
                self._note_held("state" if scope.node is not None else scope.name, gave.value)
                if scope.node is not None and self.run.declarations:
                    self._offered.update(fields_of(gave.value) or {})
        if not self._is_told:
            self._take_output(scope, inputs, gave, outcome)
        if scope.parent is None:
            self._outcome = outcome

    def _take_function(self, scope: Scope, outputs: object) -> None:
        """Take the output of a function that is declared to be evidence, unless it told that itself."""
        declared = self.run.declarations.evidence(scope.name) if self.run.declarations else None
        if declared is None:
            return
        if scope.has_evidence:
            self.run.findings.stays(scope.name, "tool", declared)
            return
        told, how = declared
        if told is False:
            return
        place = _OUTPUT if told is True else told
        given = outputs.update if type(outputs) is Steer else outputs  # it writes what others return
        brought = brought_at(self.run.declarations, place, (given,), self.run.prompts)
        if brought:
            self._take_brought(scope, scope.name, brought, how)

    def _is_broken_off(self, root: Scope) -> bool:
        """Tell whether a stream was abandoned: LangChain then ends its root like one that was read to the end.

        Steps inside are still open then, unless their generators were closed before it.
        """
        return self._is_left or any(
            not scope.is_over and scope.is_in(root) for scope in self._scopes.values() if not scope.is_block
        )

    @guarded
    def _take_streamed(self, scope: Scope, inputs: object) -> None:
        """Take the input of a streamed chain, which comes with its end: documents or a text in their place."""
        texts = self.lineage.texts
        if scope.is_top:
            scope.inputs = inputs
        if texts.given is None and not self.lineage.pool:
            texts.given = documents_in(inputs)
            if scope.parent is None:
                texts.contexts(scope.name, None, inputs)

    @guarded
    def _take_output(self, scope: Scope, inputs: object, gave: Gave, outcome: Outcome | None) -> None:
        """Take what a chain or a tool gave out: the replies of a graph's node, the answer of a root."""
        outputs = gave.value
        if not scope.is_top:
            if scope.node is not None:
                self._take_node(scope, outputs)
            return
        self._outputs = outputs
        if gave.is_streamed and not self._is_joined:
            self._ask(inputs)
        if not self._has_query:
            self._find_question(scope, outputs)
        answer = self._answer_of(scope, outputs, is_streamed=gave.is_streamed)
        places = self._places_of(outputs, answer)
        if scope.parent is None:
            self.run.findings.answers = places
            self._answer, self._branches = answer.text, answer.branches
        else:
            self._take_chain_answer(scope, answer.text, outcome, branches=answer.branches, places=places)

    def _take_node(self, scope: Scope, outputs: object) -> None:
        """Note that a graph's step has ended, and what it said in messages: steps side by side may answer each."""
        beginning = scope.top.beginning
        if beginning is not None:
            beginning.is_past = True
        for text in (fields_of(outputs) or {}).values():
            if isinstance(text, str) and text.strip() in self.speech.said:
                self._spoken_at.setdefault(text, scope.outer_step)
        replies = [
            text
            for part in (outputs if isinstance(outputs, list) else [outputs])
            for message in _listed((fields_of(part) or {}).get("messages"))
            if type(message) is Turn and message.role == "assistant" and not message.calls
            if (text := content_text(message.content).strip())
        ]
        if replies and scope.node is not None:
            self._spoken_in.setdefault((id(scope.parent), scope.node.step), []).append(replies)

    @guarded
    def _end_tool(
        self, tool: Scope, gave: Gave, failure: Failure | None, ended_ns: int, *, is_failed: bool
    ) -> None:
        """Report a tool call that has ended; one that found documents is a search."""
        output, result = gave.value, None
        documents: list[Doc] | None = None
        tool.shown = gave.text
        self._tool_texts.append(gave.text or "")
        if not is_failed:
            documents, result = new_documents(output, tool.inputs, tool.name), _result_of(output, gave.text)
            if type(output) is Turn:
                tool.call_id = tool.call_id or output.call_id
                tool.is_direct = tool.is_direct and not output.is_error
            if tool.is_direct:
                self._direct[tool.call_id or ""] = shown(result)
        if documents is not None:
            self._has_retriever = True
            self._searched_ns = tool.started_ns
        self._report_tool(tool, result, failure, ended_ns)

    def _report_tool(self, tool: Scope, result: object, failure: Failure | None, ended_ns: int) -> None:
        self.run.tool_called(
            tool.name,
            arguments=_arguments_text(tool.inputs),
            result=result,
            call_id=tool.call_id,
            description=tool.description,
            started_ns=tool.started_ns,
            ended_ns=ended_ns,
            key=tool.id,
            parent_key=tool.parent_key,
            error=failure,
        )

    @guarded
    def _end_model(self, scope: Scope, said: Said, failure: Failure | None, ended_ns: int) -> None:
        """Report a model call that has ended, with what it said by then."""
        # Of several candidates the first that says something.
        text = next((one for choice in said.choices if (one := content_text(choice.content))), "") or said.streamed
        outputs = tuple(message for choice in said.choices if (message := turn_of(choice)) is not None)
        if not outputs and text:
            outputs = (Message(role="assistant", content=text),)
        speech, asked = self.speech, scope.asked
        if text.strip():
            speech.replies.append(text)
            speech.says(text)
            speech.is_streamed = said.is_streamed
        for choice in said.choices:
            self.lineage.texts.called(choice)
        if not scope.is_inner and asked is not None and asked.operation != "embeddings":
            self._take_speech(scope, asked, said, text, outputs, failure, ended_ns)
        if scope.parent is None and failure is None:
            self._answer = speech.last_text
            self.run.findings.answers = (Found("output"),)
        self._report_model(scope, said, outputs, failure, ended_ns)
        if said.is_open:
            return
        if scope.is_in_block and failure is None:
            self._take_chain_answer(scope, speech.last_text, None)
        elif failure is not None:
            self._failed(scope, None, failure)

    def _take_speech(
        self,
        scope: Scope,
        asked: Asked,
        said: Said,
        text: str,
        outputs: tuple[Message, ...],
        failure: Failure | None,
        ended_ns: int,
    ) -> None:
        """Take what a model said that was asked for the answer, as far as anybody can tell."""
        speech, first = self.speech, said.choices[0] if said.choices else None
        self._spoken_ns = ended_ns
        answer = answer_text(text, is_json=asked.is_json_asked)
        called = first.calls[0]["args"] if first is not None and first.calls else None
        is_thinking = bool(text) and called is None  # and was cut before it said anything
        # A call that failed and that nothing tried again leaves no words of an earlier one in its place.
        if answer or said.is_refused or is_thinking or failure is not None:
            speech.last_reply, speech.last_text, speech.is_json_asked = text, answer, asked.is_json_asked
        if said.goes_on or (self._is_told and called is not None):
            speech.last_text = ""
        if failure is None:
            speech.said.update(one.strip() for one in (text, answer, *(one.content for one in outputs)))
            speech.said.discard("")
        speech.has_failed = failure is not None
        speech.refused_text = answer if said.is_refused else None
        speech.broken_text = answer or None if failure is not None else None
        speech.called.append(called)
        speech.last_model = asked.model or scope.name
        self._usage = added_usage(self._usage, said.usage)

    def _report_model(
        self, scope: Scope, said: Said, outputs: tuple[Message, ...], failure: Failure | None, ended_ns: int
    ) -> None:
        asked = scope.asked
        if asked is None:
            return
        self.run.generated(
            operation=asked.operation,
            model=asked.model or scope.name,
            provider=asked.provider,
            response_model=said.response_model,
            response_id=said.response_id,
            inputs=scope.messages,
            outputs=outputs,
            usage=said.usage,
            finish_reasons=said.finish_reasons,
            first_chunk_s=(said.first_chunk_ns - scope.started_ns) / 1e9 if said.first_chunk_ns else None,
            chunks=said.chunks if said.chunks or said.is_streamed else None,
            request=asked.request,
            server_address=asked.server_address,
            server_port=asked.server_port,
            is_in_process=asked.is_in_process,
            started_ns=scope.started_ns,
            ended_ns=ended_ns,
            parent_key=scope.within_key,
            error=failure,
        )

    def _failed(self, scope: Scope, gave: Gave | None, failure: Failure | None) -> None:
        """Take a step that stopped: by an error, by an interrupt that waits for a person, or by the framework."""
        asks = gave.asks if gave is not None else None
        if asks is not None:
            self._is_interrupted = True
            if asks and asks not in self._interrupts:  # it passes through the node and each graph around it
                self._interrupts.append(asks)
        if failure is not None and not (gave is not None and gave.is_stopped):
            self.lineage.withdraw(scope)
        if scope.parent is not None:
            if scope.is_in_block:
                self._take_chain_answer(scope, "", None if asks is None else "interrupted")
            return
        if gave is not None and gave.is_streamed:
            self._ask(gave.streamed_input)
        if asks is not None:
            self._outcome = "interrupted"

    # -- what the application says itself --

    @guarded
    def _marked(self, event: Event, marked: Marked) -> None:
        """Take documents that the application says it found or chose."""
        scope = self._scopes.get(event.parent) or self._root
        if scope is None:
            return
        if not marked.is_ranked:
            self._take_marked_texts(scope, marked)
        elif marked.is_choice:
            self.lineage.mark_selected(scope, marked.documents)
        elif self.lineage.mark_retrieved(scope, marked.documents, marked.source, event.started_ns):
            self._has_retriever = True
            self.run.findings.hows[marked.source or scope.name] = "call"

    def _take_marked_texts(self, scope: Scope, marked: Marked) -> None:
        """Take texts that a function gave as evidence; what is around it tells them no second time."""
        if scope.kind == "search" or scope.within is not None:
            return
        scope.mark()
        for document in marked.documents:
            self.run.add_text(document.text, source=marked.source or scope.name, how="decorator")

    @guarded
    def _chose(self, event: Event, chosen: Chosen) -> None:
        """Take what a reranker made of its documents, or that it failed."""
        scope = self._scopes.get(event.id) or self._scopes.get(event.parent) or self._root
        if scope is None or event.ended_ns is None:
            return
        scope.is_over = scope.is_over or scope.kind == "choice"
        times = (event.started_ns, event.ended_ns)
        if event.error is not None:
            self.lineage.failed_choice(scope, chosen.given, chosen.model, chosen.top_n, *times, event.error)
        else:
            self.lineage.choice(scope, chosen.given, chosen.out, chosen.model, chosen.top_n, *times, chosen.source)

    # -- the end --

    @guarded
    def _conclude(self, data: object, failure: Failure | None) -> None:
        """Write the facts that are known at a run's end; a run that was no question is dropped."""
        root, run = self._root, self.run
        if root is None:
            run.discard()
            return
        ended = data if isinstance(data, Ended) else Ended(data)  # type: ignore[arg-type]  # an outcome
        outcome = ended.outcome or self._outcome
        for name, documents in self._offers.items():
            self.lineage.offered(root, name, documents)
        if self._is_told:
            self._outputs = ended.value
            if not self._is_joined:
                self._take_told(ended)
        declared = self._take_declared(root)
        if declared is not None:
            self._answer, self._branches, self._chain_answer = declared, [], declared
        answer = self._answer
        if outcome == "interrupted":
            answer, self._branches = "", []  # what its state holds by then was not told to anybody
            self._interrupts += [ended.asks] if ended.asks is not None else []
        elif answer is None and outcome == "error":
            answer = self.speech.broken_text  # the user has read it
        if not self._is_joined:
            if not self._is_told:
                run.ends_as(outcome)
            self._find_question(root)
        self._note_root(root)
        self._note_question(root)
        text = self._text_of(self._chain_answer if self._is_joined else answer, outcome)
        if self._is_told and self._is_earlier(text):
            text = ""
        self.lineage.settle(root, answer=text)
        if self._usage is not None:  # also of a run that gives no answer, or whose application gives it itself
            run.attributes.setdefault("usage", self._usage)
        if self._interrupts:
            run.interrupted("\n".join(self._interrupts))
        if self._is_joined:
            self._conclude_block()
            return
        if not self._is_question(root, text, outcome):
            run.discard()
            return
        has_refused, model = self._is_refusal(text), self.speech.last_model
        if self._is_told and not self._has_spoken and not (root.calls_tools and ended.answer is not None):
            self._is_retrieval_only = not text or self._is_context(text)
            text = "" if self._is_retrieval_only else text
        if len(self._branches) > 1:
            run.answered_by_branches(self._branches, model=model, usage=self._usage)
        elif (text or has_refused) and (outcome != "error" or answer is not None):
            run.answered(text, model=model, usage=self._usage, is_refused=has_refused)
        elif outcome is None and (self._is_retrieval_only or not self._has_model):
            run.expects_no_answer()
        elif outcome is None:  # a model spoke, and said nothing
            run.answered("", model=model, usage=self._usage)
        if failure is not None and outcome in {"error", None}:
            run.failed(failure)

    def _take_told(self, ended: Ended) -> None:
        """Take the answer as a framework tells it: among what the outermost call returned, or as it was read."""
        findings = self.run.findings
        is_pieces = self.speech.is_streamed and not (ended.answer or "").strip()
        if ended.answer is not None and not is_pieces:
            self._answer, findings.answers = ended.answer, (Found("output", "framework"),)
        elif ended.answer is None and ended.outcome is None and (said := self._answers_among(ended.texts)):
            self._answer, self._branches = "\n\n".join(sorted(said)), said
            findings.answers = tuple(Found("output", "guess") for _ in said)
        elif self._answer is not None or self.speech.is_streamed:
            findings.answers = (Found("the stream"),)
        else:
            findings.answers = (Found("the last reply", "guess"),)
        if self._answer is not None:
            self._answer = answer_text(self._answer, is_json=self.speech.is_json_asked)

    def _take_read(self, text: str) -> None:
        """Take the text so far of an answer that is read piece by piece."""
        self._answer = self._chain_answer = text
        self.run.findings.answers = (Found("output", "framework"),)

    def _answers_among(self, texts: tuple[str, ...]) -> list[str]:
        """Return those of the texts given out that a model of this run said, and that no search was asked.

        Several are the answers of branches; where one was made of another, none is taken.
        """
        told = {*self.speech.said, *self._tool_texts}
        replies, asked = {answer_text(one, is_json=False).strip() for one in told}, self._queries()
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
        return (said in self._earlier or is_known) and not any(
            said in one for one in (*self.speech.said, *self._tool_texts)
        )

    @property
    def _has_spoken(self) -> bool:
        """Whether a model was asked after the last search."""
        return self._spoken_ns > self._last_search_ns()

    def _is_context(self, text: str) -> bool:
        """Tell whether a text consists of the run's passages: a context for a model elsewhere, not an answer."""
        run = self.run
        delivered = run.selection if run.selection is not None else run.candidates()
        found = found_in(text, tuple({passage.id: passage for passage in delivered}.values()))
        return bool(found) and sum(len(passage.text) for passage in found) >= _CONTEXT_SHARE * len(text)

    def _conclude_block(self) -> None:
        """Fill in the answer of an application's own run where the application has given none."""
        run = self.run
        if "answer" in run.attributes:
            run.findings.answers = ()
            run.attributes["is_refused"] |= self._is_refusal(run.attributes["answer"])
            return
        text = self._chain_answer if self._chain_answer is not None else self._text_of(None, None)
        has_refused, model = self._is_refusal(text), self.speech.last_model
        if self._is_told and (run.failure is not None or (self._is_context(text) and not self._has_spoken)):
            text = ""
        if len(self._branches) > 1:
            run.answered_by_branches(self._branches, model=model, usage=self._usage)
        elif text or has_refused or (self._has_spoken and run.failure is None):  # a model that said nothing
            run.answered(text, model=model, usage=self._usage, is_refused=has_refused)
        elif not self._has_spoken:
            run.expects_no_answer(is_of_application=True)

    @guarded
    def _take_chain_answer(
        self,
        scope: Scope,
        answer: str | None,
        outcome: Outcome | None,
        *,
        branches: Sequence[str] = (),
        places: tuple[Found, ...] = (Found("output"),),
    ) -> None:
        """Take the end of a chain in the block of an application's own run: an answer, unless a later one has one.

        A chain that was given the answer before it leaves that as it is.
        """
        text = "" if outcome == "interrupted" else self._text_of(answer, outcome)
        if not self._is_told:
            self.run.ends_as(outcome)
        self._is_retrieval_only = self._is_interrupted = False
        if outcome != "interrupted":
            self._interrupts.clear()
        said = self._chain_answer
        if text and not (said and _is_given(said, scope)):
            self._chain_answer, self._branches = text, list(branches)
            self.run.findings.answers = places

    def _is_refusal(self, answer: str) -> bool:
        """Tell whether an answer is what the last model said when its provider declined, or is blank for that."""
        said = self.speech.refused_text
        return said is not None and answer.strip() in {"", EMPTY_RESPONSE, said.strip()}

    def _text_of(self, answer: str | None, outcome: Outcome | None) -> str:
        is_last = self._has_spoken and outcome != "interrupted"
        spoken = self.speech.last_text if is_last else ""
        text = answer if answer is not None else spoken
        # LangChain hands an abandoned root all pieces but the last one that was read.
        is_begin = spoken.startswith(text) or (type(text) is Redacted and text.is_begin and bool(spoken))
        return spoken if outcome == "partial" and is_begin else text

    def _is_question(self, root: Scope, answer: str, outcome: Outcome | None) -> bool:
        """Tell whether a root that ended was a question, so that its run is kept.

        A run is kept where a model answered or a retriever was called. A model that only calls a tool is no
        question when it stands alone. A run that failed or was stopped before either is kept where a chain was
        asked something.
        """
        run = self.run
        if (roots := run.declarations.roots()) is not None:
            return root.name in roots[0]
        if self._has_retriever or run.selection_source == "explicit":
            return True
        if self._is_told:
            is_asked = bool(run.attributes.get("query")) or root.is_continued
            is_answered = bool(answer) or self._has_spoken or root.is_engine
            return (is_asked and is_answered) or self.lineage.has_met or run.selection is not None
        pool = run.candidates()
        if outcome not in {None, "partial"}:
            return self._has_model or (root.kind == "chain" and self._has_query)
        if not self._has_model:
            is_searched = bool(pool) and bool(_plain_question(root))
            return outcome is None and (is_searched or (bool(answer) and not self._is_retrieval_only))
        if self._is_retrieval_only:
            return bool(pool) and self._spoken_ns < self._last_search_ns()
        if outcome == "partial" or answer.strip() in self._direct.values():
            return True
        # A model that only calls a tool that nobody ran is no answer, unless something was looked up before.
        return bool(answer) or self.lineage.texts.are_looked_up or self.speech.last_called is None

    # -- the answer --

    def _answer_of(self, scope: Scope, outputs: object, *, is_streamed: bool) -> Given:
        """Return the answer in a root's output, less what the run began with.

        These come in turn: the results of tools that answer for the agent, answers of branches side by side, the
        field or the message with the answer, a text that a model said under a name of the application's own. A
        stream whose pieces cannot be added up leaves the root with the last piece only; the model has the whole.
        """
        speech, direct, began = self.speech, self._direct, _began(scope)
        is_draft_kept = scope.is_resumed and not (self._has_model or self._has_retriever)
        new = of_this_turn(outputs, began, speech.said, is_draft_kept=is_draft_kept)
        if told := _given_directly(new, direct):
            return Given(told)
        branches = [answer_text(one, is_json=speech.is_json_asked) for one in self._answers_beside(new)]
        if len(branches) > 1:
            return Given("\n\n".join(branches), branches)
        found = _held_direct(new, direct) or self._said_behind(outputs, new) or answer_in(new)
        found = _called_with(new, found) or found
        answer = None if found is None else answer_text(found, is_json=speech.is_json_asked)
        if self._is_search_alone(scope, outputs, answer):
            self._is_retrieval_only = True
            return Given("")
        if not (answer or "").strip() and (composed := self._composed_in(new, began)):
            return Given(composed, how="guess")
        if found is None or answer is None:
            is_wordless = speech.last_model is not None and not speech.last_text  # it called a tool with its answer
            if is_wordless:
                return Given(structured_text(new) or called_in(new, speech.last_called))
            if branches:
                return Given(branches[0], how="structure" if self._is_only_said(branches[0], new) else "guess")
            if form := next((text for one in reversed(speech.called) if (text := form_in(new, one))), None):
                return Given(form, how="guess")
            is_step = scope.beginning is not None or self._has_retriever
            is_silent = is_step and fields_of(outputs) is not None and not speech.last_text
            return Given("" if is_silent else None)
        whole = speech.last_reply
        is_end = found.is_end if type(found) is Redacted else len(found) < len(whole) and whole.endswith(found)
        is_last_piece = is_streamed and is_end
        return Given(speech.last_text if is_last_piece else answer, found=found)

    def _places_of(self, outputs: object, answer: Given) -> tuple[Found, ...]:
        """Return where the answer was read in an output; each of several answers has its place."""
        self.run.findings.answered_at = longest_place(outputs, "output")
        if not answer.text and answer.text is not None:
            return ()
        sought = (
            answer.branches if len(answer.branches) > 1 else [answer.found or answer.text or self.speech.last_text]
        )
        places = [place_in(outputs, text, "output", ANSWER_NAMES) for text in sought]
        unplaced = (
            Found("the last reply", "guess") if answer.text is None else Found("output", answer.how or "structure")
        )
        how = answer.how or ("guess" if self._is_program_s(answer.text or "") else None)
        return tuple(
            unplaced if place is None else place if how is None else replace(place, how=how) for place in places
        )

    def _queries(self) -> set[str]:
        return {step.query.strip() for step in self.run.retrievals() if step.query}

    def _is_only_said(self, text: str, outputs: object) -> bool:
        """Tell whether a text is the last model's, and no other text in an output is a model's, but for queries."""
        said = {one.strip() for one in texts_held(outputs) if one.strip() in self.speech.said} - self._queries()
        return said <= {text.strip()} and text.strip() == self.speech.last_text.strip()

    def _is_program_s(self, answer: str) -> bool:
        """Tell whether models spoke, and the answer has hardly a word of theirs, as a path or a template's text."""
        speech, text = self.speech, answer.strip()
        if not text or not speech.said or text in speech.said or text in self._direct.values():
            return False
        if any(one in text or text in one for one in speech.said if len(one) > _TELLING_CHARS):
            return False
        return speech.first.share(text) < _COMPOSED_SHARE

    def _said_behind(self, outputs: object, new: object) -> str | None:
        """Return the last model's text in a field of its own, where the last message is one that was handed on.

        An agent hands its reply on as a person's message, and a later step reports.
        """
        last = next(reversed(_messages_in(outputs)), None)
        if type(last) is not Turn or last.role != "user" or not self.speech.last_text:
            return None
        said = self.speech.last_text.strip()
        texts = (fields_of(new) or {}).values()
        return next((one for one in texts if isinstance(one, str) and one.strip() == said), None)

    def _composed_in(self, outputs: object, began: Mapping[object, object]) -> str | None:
        """Return the text that a program made of what several models said, as a report of its sections.

        The last model's text stands for the answer where it is no part of that.
        """
        speech = self.speech
        told = [text for text in new_texts(outputs, began) if text.strip() not in speech.said]
        texts = [text for text in told if speech.first.share(text) >= _COMPOSED_SHARE]
        if len(texts) != 1:
            return None
        is_other = bool(speech.last_text) and not speech.is_json_asked and speech.last_text not in texts[0]
        return None if is_other else texts[0]

    def _answers_beside(self, outputs: object) -> list[str]:
        """Return the answers in an output: several where branches or steps side by side answered, one for each.

        A mapping with an ``answer`` has that one, whatever is beside it.
        """
        fields = fields_of(outputs)
        side = self._side_by_side(outputs if fields is None else fields.get("messages"))
        if len(side) > 1 or (fields is None and not isinstance(outputs, list)):
            return side
        fields = fields or {}
        named = {key: value for key, value in fields.items() if key in ANSWER_FIELDS and not _is_blank(value)}
        if isinstance(named.get("answer"), str):
            return []
        if not named and answer_in(outputs) is not None:  # in its messages
            return []
        prompts = [
            "\n".join(one.content for one in step.inputs) for step in self.run.steps if isinstance(step, Generation)
        ]
        told = named or last_spoken(fields, self._spoken_at) or outputs
        passages = [passage.text for passage in self.run.candidates() if passage.text]
        return branch_answers(told, self.speech.said, prompts, self._queries(), passages)

    def _side_by_side(self, messages: object) -> list[str]:
        """Return the replies of the nodes of one step, where the last of the new messages is one of them."""
        said = [
            content_text(one.content).strip()
            for one in _listed(messages)
            if type(one) is Turn and one.role == "assistant"
        ]
        for replies in self._spoken_in.values() if said else ():
            texts = sorted({reply for node in replies for reply in node if reply in said})
            if len(replies) > 1 and said[-1] in texts:
                return texts
        return []

    def _is_search_alone(self, scope: Scope, outputs: object, answer: str | None) -> bool:
        """Tell whether a root gave out what was retrieved, and no answer.

        A model that wrote the query spoke before the retrieval began, one that graded the documents behind it.
        """
        has_spoken = self._spoken_ns > self._last_search_ns()
        if (answer and answer.strip() in self._direct.values()) or (
            has_spoken and self.speech.has_failed and not answer
        ):
            return False
        if is_documents_only(outputs) and (outputs or self._has_retriever):
            return True
        if answer is None and _is_documents_state(scope, outputs, self.speech.said - self._queries()):
            return True
        if has_spoken:
            return False
        if answer is None or answer == structured_text(outputs):
            return True
        if not self._has_retriever and not self._is_stated(scope, outputs):
            return True
        return self.run.is_mostly_passages(answer)

    def _last_search_ns(self) -> int:
        return max((self._searched_ns, *(step.started_ns for step in self.run.retrievals())))

    def _is_stated(self, scope: Scope, outputs: object) -> bool:
        """Tell whether a function answered: a question and a new answer stand under names that say so.

        A text is an answer where the question came with documents.
        """
        if not _plain_question(scope):
            return False
        given, fields = _began(scope), fields_of(outputs)
        if fields is None:
            return isinstance(outputs, str) and bool(self.run.candidates() or self.lineage.texts.given)
        if scope.is_resumed:  # a person approved what the state held
            given = {}
        is_under_key = any(
            isinstance(said := fields.get(key), str) and said != given.get(key) for key in STATE_ANSWER_KEYS
        )
        return is_under_key or _is_replied(fields.get("messages"), given.get("messages"))


class Given(NamedTuple):
    """The answer in a root's output: None for the last model's text, "" where there is none.

    `branches` holds the answers of branches that ran side by side, where there are several; `found` the text in the
    output that holds the answer, as JSON may; `how` is None where the place tells it.
    """

    text: str | None
    branches: list[str] = []  # noqa: RUF012 - never changed
    found: str = ""
    how: How | None = None


def _began(scope: Scope) -> dict[object, object]:
    """Return what a root's state or input held before its first step, by the names of the fields."""
    given = scope.inputs
    fields: Mapping[object, object] = {"messages": given} if isinstance(given, list) else fields_of(given) or {}
    return {**fields, **(scope.beginning.fields if scope.beginning is not None else {})}


def _plain_question(scope: Scope) -> str:
    given = _began(scope)
    return question_in({key: given[key] for key in STATE_QUESTION_KEYS if key in given})


def _is_given(said: str, scope: Scope) -> bool:
    """Tell whether a chain was given an answer and searched nothing: it checks it, or puts it in other words."""
    given = scope.asked.messages if scope.asked is not None else scope.inputs
    return not scope.found and any(said.strip() in text for text in given_texts(given))


def _given_directly(outputs: object, direct: Mapping[str, str]) -> str:
    """Return the results of tools that answer for the agent, where they are the last messages; else ""."""
    last: list[str] = []
    for message in reversed(_messages_in(outputs)) if direct else ():
        if type(message) is not Turn or message.role != "tool" or message.call_id not in direct:
            break
        last.append(content_text(message.content))
    return "\n\n".join(reversed(last))


def _called_with(outputs: object, found: str | None) -> str:
    """Return the answer among the arguments of a call that the last message makes, as of a form; else "".

    It comes before what that message says beside the call, and before no other text that was found.
    """
    last = next(reversed(_messages_in(outputs)), None)
    if type(last) is not Turn or ((found or "").strip() and found != content_text(last.content)):
        return ""
    arguments = [call["args"] for call in last.calls if isinstance(call["args"], dict)]
    given = (one.get(name) for one in arguments for name in CALLED_FIELDS)
    return next((one for one in given if isinstance(one, str) and one.strip()), "")


def _held_direct(outputs: object, direct: Mapping[str, str]) -> str:
    """Return the result of a direct tool that stands under a name of the application's own, else ""."""
    texts = (text for text in (fields_of(outputs) or {}).values() if direct and isinstance(text, str))
    return next((text for text in texts if text.strip() and text in direct.values()), "")


def _is_documents_state(scope: Scope, outputs: object, said: Collection[str]) -> bool:
    """Tell whether a state holds documents, no text of a model's, and beside them nothing new but numbers."""
    fields = fields_of(outputs)
    if not fields or documents_in(outputs) is None:
        return False
    given = _began(scope)
    if any(text.strip() in said for text in texts_held(outputs)):
        return False
    others = (value for key, value in fields.items() if key not in QUESTION_KEYS and value != given.get(key))
    return all(_is_silent(value) for value in others)


def _is_silent(value: object) -> bool:
    return (
        value is None
        or isinstance(value, bool | int | float)
        or documents_in(value) is not None
        or value in ([], {})
    )


def _is_replied(messages: object, given: object) -> bool:
    last = messages[-1] if isinstance(messages, list) and messages else None
    is_reply = type(last) is Turn and last.role == "assistant"
    return is_reply and not (isinstance(given, LISTS) and last in given)


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


def _messages_in(outputs: object) -> list[Any]:
    return _listed(outputs.get("messages") if isinstance(outputs, dict) else outputs)


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _arguments_text(given: object) -> object:
    """Return a tool's arguments as JSON; a text as it is."""
    return json_of(given) if isinstance(given, dict | list) else given


def _result_of(output: object, text: str | None) -> object:
    """Return what a tool gave out, as the model is shown it."""
    if type(output) is Turn:
        return content_text(output.content, is_prompt=True)
    documents = documents_in(output) if text is None else None
    if documents is not None:
        return "\n\n".join(document.text for document in documents)
    return text_of(output) if text is None and output is not None else text
