"""What is a choice and what is none: citations, verdicts, discarded attempts, joined lists, documents not used."""

from __future__ import annotations

import copy
import operator
import threading
from itertools import cycle
from typing import Annotated, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

from integrations.langchain.tests.parts import PROMPT, Faq, chat, lcel, shown
from ragtrace.capture import Rerank, Retrieval
from tests.kept import ANSWER, ids, kinds, step

POOL = [f"d{i}" for i in range(6)]


class State(TypedDict, total=False):
    question: str
    documents: list
    best: list
    parts: Annotated[list, operator.add]
    verdict: str
    generation: str
    round: int


def node_documents(state):
    return {"documents": Faq().invoke(state["question"])}


def node_best_two(state):
    return {"documents": state["documents"][::-1][:2]}


def node_answer(state):
    return {"generation": chat().invoke(shown(state["documents"])).content}


def graph(nodes, *, branches=None, checkpointer=None):
    """A graph of nodes in their order; `branches` names for a node the function that says where it goes on."""
    langgraph = pytest.importorskip("langgraph.graph")
    built = langgraph.StateGraph(State)
    for name, node in nodes.items():
        built.add_node(name, node)
    names = [langgraph.START, *nodes]
    for one, next_one in zip(names, [*nodes, langgraph.END], strict=True):
        if one in (branches or {}):
            built.add_conditional_edges(one, branches[one])
        else:
            built.add_edge(one, next_one)
    return built.compile(checkpointer=checkpointer)


def graded(verdicts):
    """A node that asks a model about each document and says beside the kept ones what comes next."""
    grader = chat(*verdicts)

    def grade(state):
        kept = [d for d in state["documents"] if grader.invoke(f"Fits? {d.page_content}").content == "yes"]
        return {"documents": kept, "verdict": "generate" if kept else "search"}

    return grade


class TestBesideAnAnswer:
    """Documents beside other values, given out by a step that asked a model."""

    def test_a_grader_that_says_what_comes_next_chooses(self, keeper, config):
        verdicts = ["no", "no", "yes", "yes", "no", "no"]
        app = graph({"retrieve": node_documents, "grade": graded(verdicts), "generate": node_answer})
        app.invoke({"question": "Where?"}, config)
        run = keeper.only
        chosen = step(run, Rerank)
        assert (chosen.model, [p.id for p in chosen.candidates]) == ("grade", POOL)
        assert ids(run, "reranked") == list(run.prompt_ids) == ["d2", "d3"]
        assert run.record.selection_source == "chain"

    def test_a_grader_that_keeps_nothing_and_a_search_that_stands_in(self, keeper, config):
        web = Document(id="web", page_content="The web says that the lab is in Bergen.")

        def search(state):
            state["documents"].append(web)
            return {"documents": state["documents"]}

        nodes = {"retrieve": node_documents, "grade": graded(["no"]), "search": search, "generate": node_answer}
        graph(nodes).invoke({"question": "Where?"}, config)
        run = keeper.only
        assert step(run, Rerank).passages == ()
        assert ids(run, "retrieved") == [*POOL, "web"]
        assert ids(run, "reranked") == list(run.prompt_ids) == ["web"]

    def test_a_reranker_that_shows_a_model_all_of_them_chooses(self, keeper, config):
        def ask(state):
            chat("d5 is best").invoke("Which is best?\n" + shown(state["documents"]))
            return {**state, "documents": state["documents"][::-1][:2]}

        found = RunnableParallel(documents=Faq(), question=RunnablePassthrough())
        answer = (lambda x: {"context": shown(x["documents"]), "question": x["question"]}) | PROMPT | chat()
        (found | RunnableLambda(ask) | answer).invoke("Where?", config)
        assert step(keeper.only, Rerank).model == "ask"
        assert ids(keeper.only, "reranked") == ["d5", "d4"]

    def test_a_choice_beside_other_values_comes_before_the_next_one(self, keeper, config):
        nodes = {
            "retrieve": node_documents,
            "grade": graded(["yes"] * 3 + ["no"] * 3),
            "rank": node_best_two,
            "generate": node_answer,
        }
        graph(nodes).invoke({"question": "Where?"}, config)
        first, second = (one for one in keeper.only.steps if isinstance(one, Rerank))
        assert (first.model, [p.id for p in first.passages]) == ("grade", ["d0", "d1", "d2"])
        assert (second.model, [p.id for p in second.candidates]) == ("rank", ["d0", "d1", "d2"])
        assert ids(keeper.only, "reranked") == ["d2", "d1"]

    def test_what_an_answer_cites_is_no_choice_though_the_answer_is_checked_then(self, keeper, config):
        def generate(state):
            answer = chat().invoke(shown(state["documents"])).content
            return {"generation": answer, "best": state["documents"][:1]}

        def check(state):
            verdict = chat("yes").invoke(f"{shown(state['documents'])}\nSupports it? {state['generation']}")
            return {"verdict": verdict.content}

        graph({"retrieve": node_documents, "generate": generate, "check": check}).invoke({"question": "?"}, config)
        assert kinds(keeper.only) == ["retrieval", "chat", "chat"]
        assert ids(keeper.only, "reranked") == []
        assert list(keeper.only.prompt_ids) == POOL

    def test_what_a_parsed_answer_cites_is_no_choice(self, keeper, config):
        def generate(documents):
            chat('{"text": "In Oslo.", "from": [0]}').invoke(shown(documents))
            return {"parsed": {"text": "Oslo"}, "sources": documents[:1]}

        (Faq() | RunnableLambda(generate)).invoke("Where?", config)
        assert ids(keeper.only, "reranked") == []

    def test_sources_put_beside_a_finished_answer_are_no_choice(self, keeper, config):
        kept = []

        def keep(documents):
            kept.extend(documents)
            return shown(documents)

        cited = RunnableLambda(lambda message: {"answer": message.content, "sources": kept[:1]})
        (Faq() | keep | chat() | cited).invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert ids(keeper.only, "reranked") == []

    def test_sources_picked_by_the_answer_are_no_choice(self, keeper, config):
        found = RunnableParallel(documents=Faq(), question=RunnablePassthrough())
        answer = RunnableLambda(lambda x: shown(x["documents"])) | chat() | StrOutputParser()
        cited = RunnableLambda(lambda x: x["documents"][:1])
        chain = found | RunnablePassthrough.assign(answer=answer) | RunnablePassthrough.assign(cited=cited)
        chain.invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert ids(keeper.only, "reranked") == []

    def test_a_verdict_that_stands_in_an_earlier_answer_is_no_answer(self, keeper, config):
        grade = graded(["yes"] + ["no"] * 5)

        def grade_again(state):
            return {**grade(state), "generation": "I do not know."}

        nodes = {"retrieve": node_documents, "grade": grade_again, "generate": node_answer}
        graph(nodes).invoke({"question": "Where?"}, config)
        assert ids(keeper.only, "reranked") == ["d0"]


class TestAfterTheAnswer:
    """Documents picked out once the model has answered: citations, sources for a page."""

    @staticmethod
    def picked(answered):
        pick = RunnableLambda(lambda state: {"said": state["said"], "sources": state["documents"][:1]})
        found = RunnableParallel(documents=Faq(size=4), question=RunnablePassthrough())
        return found.assign(said=(lambda x: {"context": shown(x["documents"]), **x}) | PROMPT | answered) | pick

    @pytest.mark.parametrize(
        "answered",
        [
            pytest.param(chat() | StrOutputParser(), id="a text under a key of its own"),
            pytest.param(chat(f'{{"answer": "{ANSWER}"}}') | JsonOutputParser(), id="parsed"),
            pytest.param(
                GenericFakeChatModel(
                    messages=cycle(
                        [AIMessage("", tool_calls=[{"name": "Answer", "args": {"text": ANSWER}, "id": "1"}])]
                    )
                )
                | (lambda message: message.tool_calls[0]["args"]),
                id="a tool call",
            ),
        ],
    )
    def test_what_was_in_the_prompt_stays(self, keeper, config, answered):
        self.picked(answered).invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert (ids(keeper.only, "reranked"), keeper.only.prompt_ids) == ([], ("d0", "d1", "d2", "d3"))

    def test_a_reranker_that_ends_the_run_chose(self, keeper, config):
        def ask(documents):
            chat("the last").invoke(shown(documents))
            return documents[::-1][:2]

        (Faq(size=4) | RunnableLambda(ask)).invoke("Where?", config)
        assert ids(keeper.only, "reranked") == ["d3", "d2"]
        assert step(keeper.only, Rerank).model == "ask"

    def test_a_graph_s_grader_that_ends_the_run_chose(self, keeper, config):
        def grade(state):
            return {
                "documents": [d for d in state["documents"] if chat("no").invoke(d.page_content).content == "no"][
                    :2
                ]
            }

        def rank(state):
            return {"documents": state["documents"][::-1]}

        chain = RunnableParallel(documents=Faq(size=4)) | RunnableLambda(grade) | RunnableLambda(rank)
        chain.invoke("Where?", config)
        assert [[p.id for p in one.passages] for one in keeper.only.steps if isinstance(one, Rerank)] == [
            ["d0", "d1"], ["d1", "d0"],
        ]  # fmt: skip
        assert ids(keeper.only, "reranked") == ["d1", "d0"]


class TestAdded:
    def test_a_search_that_adds_to_what_a_grader_kept_is_a_retrieval(self, keeper, config):
        web = Document(id="web", page_content="The web says that the lab is in Bergen.")
        nodes = {
            "retrieve": node_documents,
            "grade": graded(["yes"] + ["no"] * 5),
            "search": lambda state: {"documents": [*state["documents"], web]},
            "generate": node_answer,
        }
        graph(nodes).invoke({"question": "Where?"}, config)
        run = keeper.only
        assert [one.source for one in run.steps if isinstance(one, Retrieval)] == ["Faq", "search"]
        assert ids(run, "retrieved") == [*POOL, "web"]
        assert ids(run, "reranked") == list(run.prompt_ids) == ["d0", "web"]


class TestUnreadInput:
    """Steps whose input shows no documents: what they give out is held against the pool."""

    class Box:
        def __init__(self, documents):
            self.documents = documents

    def test_fewer_in_a_new_order_are_a_choice(self, keeper, config):
        chain = Faq() | self.Box | RunnableLambda(lambda box: box.documents[::-1][:2], name="best") | shown | chat()
        chain.invoke("Where?", config)
        chosen = step(keeper.only, Rerank)
        assert (chosen.model, [p.id for p in chosen.candidates]) == ("best", POOL)
        assert ids(keeper.only, "reranked") == ["d5", "d4"]

    def test_of_two_retrievers(self, keeper, config):
        both = RunnableParallel(a=Faq(size=2), b=Faq(size=2, prefix="w"))
        pick = RunnableLambda(lambda box: [box.documents["b"][1], box.documents["a"][0]])
        (both | self.Box | pick | shown | chat()).invoke("Where?", config)
        assert len(step(keeper.only, Rerank).candidates) == 4
        assert ids(keeper.only, "reranked") == ["w1", "d0"]

    def test_a_list_that_is_handed_on_is_none(self, keeper, config):
        both = RunnableParallel(a=Faq(size=2), b=Faq(size=2, prefix="w"))
        join = RunnableLambda(lambda box: [*box.documents["b"], *box.documents["a"]])
        (both | self.Box | join | shown | chat()).invoke("Where?", config)
        assert kinds(keeper.only) == ["retrieval", "retrieval", "chat"]

    def test_a_step_that_is_given_one_document_decides_on_that_one(self, keeper, config):
        types = pytest.importorskip("langgraph.types")

        class One(TypedDict):
            one: Document

        def grade(state: One):
            return {"parts": [state["one"]] if state["one"].id in {"d0", "d2"} else []}

        def generate(state):
            return {"generation": chat().invoke(shown(state["parts"])).content}

        app = graph(
            {"retrieve": node_documents, "grade": grade, "generate": generate},
            branches={"retrieve": lambda s: [types.Send("grade", {"one": d}) for d in s["documents"]]},
        )
        app.invoke({"question": "Where?"}, config)
        assert kinds(keeper.only) == ["retrieval", "chat"]
        assert list(keeper.only.prompt_ids) == ["d0", "d2"]


class TestDocumentsNotUsed:
    def test_a_turn_without_retrieval_has_not_the_pool_of_the_last(self, keeper, config):
        memory = pytest.importorskip("langgraph.checkpoint.memory")
        nodes = {
            "route": lambda state: {"round": state.get("round", 0) + 1},
            "retrieve": node_documents,
            "generate": node_answer,
            "talk": lambda state: {"generation": chat("Welcome.").invoke(state["question"]).content},
        }
        app = graph(
            nodes,
            branches={
                "route": lambda state: "retrieve" if state["round"] == 1 else "talk",
                "generate": lambda state: "__end__",
            },
            checkpointer=memory.InMemorySaver(),
        )
        config["configurable"] = {"thread_id": "t1"}
        app.invoke({"question": "Where?"}, config)
        app.invoke({"question": "Thanks!"}, config)
        first, second = keeper.runs
        assert (ids(first, "retrieved"), first.record.answer) == (POOL, ANSWER)
        assert (second.record.pools, second.record.answer, second.record.selection_source) == ((), "Welcome.", None)
        assert second.record.lossy == {}

    def test_files_that_the_caller_hands_over_and_no_prompt_shows(self, keeper, config):
        chain = RunnableLambda(lambda x: x["question"]) | chat()
        chain.invoke({"question": "Hi", "files": Faq()._get_relevant_documents("", run_manager=None)}, config)
        assert keeper.only.record.pools == ()

    def test_documents_that_the_caller_hands_over_are_the_pool_where_a_prompt_shows_one(self, keeper, config):
        chain = RunnableLambda(lambda x: shown(x["files"][:1])) | chat()
        chain.invoke({"question": "Hi", "files": Faq()._get_relevant_documents("", run_manager=None)}, config)
        assert (ids(keeper.only, "retrieved"), keeper.only.prompt_ids) == (POOL, ("d0",))

    def test_documents_that_the_caller_hands_over_are_the_pool_where_a_step_chose(self, keeper, config):
        chain = RunnableLambda(lambda x: x["files"][:2], name="cut") | RunnableLambda(lambda docs: "In Oslo.")
        chain.invoke({"question": "Hi", "files": Faq()._get_relevant_documents("", run_manager=None)}, config)
        assert (ids(keeper.only, "retrieved"), ids(keeper.only, "reranked")) == (POOL, ["d0", "d1"])


class TestAttempts:
    """Searches that are repeated, replaced or fail."""

    @staticmethod
    def loop(prefixes):
        nodes = {
            "retrieve": lambda state: {
                "documents": Faq(prefix=prefixes[state.get("round", 0)]).invoke(state["question"]),
                "round": state.get("round", 0) + 1,
            },
            "rank": node_best_two,
            "rewrite": lambda state: {"question": chat("Where is it?").invoke(state["question"]).content},
            "generate": node_answer,
        }
        return graph(
            nodes,
            branches={
                "rank": lambda state: "rewrite" if state["round"] < len(prefixes) else "generate",
                "rewrite": lambda state: "retrieve",
            },
        )

    def test_the_same_choice_made_again_is_a_choice(self, keeper, config):
        self.loop("dd").invoke({"question": "Where?"}, config)
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat", "retrieval", "rerank", "chat"]
        assert ids(keeper.only, "reranked") == ["d5", "d4"]

    def test_what_a_loop_replaced_is_not_selected(self, keeper, config):
        self.loop("ab").invoke({"question": "Where?"}, config)
        run = keeper.only
        assert ids(run, "reranked") == list(run.prompt_ids) == ["b5", "b4"]
        assert len(ids(run, "retrieved")) == 12

    def test_what_was_found_twice_and_is_shown_is_selected_from_both(self, keeper, config):
        part = Faq() | RunnableLambda(lambda docs: docs[:1])
        other = Faq(prefix="w") | RunnableLambda(lambda docs: docs[:1])
        chain = RunnableLambda(lambda q: shown(part.invoke(q)) + shown(other.invoke(q))) | chat()
        chain.invoke("Where?", config)
        assert ids(keeper.only, "reranked") == ["d0", "w0"]

    def test_what_is_handed_on_after_a_choice_is_no_second_one(self, keeper, config):
        nodes = {
            "retrieve": node_documents,
            "rank": lambda state: {"best": state["documents"][::-1][:2]},
            "prepare": lambda state: {"documents": list(state["best"])},
            "generate": node_answer,
        }
        graph(nodes).invoke({"question": "Where?"}, config)
        assert kinds(keeper.only) == ["retrieval", "rerank", "chat"]

    def test_a_chain_that_failed_selected_nothing(self, keeper, config):
        def fail(_):
            raise ValueError("down")

        best = RunnableLambda(lambda docs: docs[:2], name="first")
        failing = Faq(prefix="x") | best | shown | chat() | fail
        fallback = Faq(size=3) | RunnableLambda(shown) | chat()
        failing.with_fallbacks([fallback]).invoke("Where?", config)
        run = keeper.only
        assert ids(run, "reranked") == list(run.prompt_ids) == ["d0", "d1", "d2"]

    def test_a_fallback_that_hands_its_documents_on_chose_nothing(self, keeper, config):
        failing = Faq(prefix="x") | RunnableLambda(lambda docs: docs[len(docs)])
        (failing.with_fallbacks([Faq(size=3)]) | shown | chat()).invoke("Where?", config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "retrieval", "chat"]
        assert list(run.prompt_ids) == ["d0", "d1", "d2"]

    def test_a_reranker_that_failed_leaves_what_it_was_given(self, keeper, config):
        def fail(_):
            raise ValueError("down")

        failing = RunnableLambda(lambda docs: docs[::-1][:2]) | fail
        (Faq(size=3) | failing.with_fallbacks([RunnableLambda(list)]) | shown | chat()).invoke("Where?", config)
        assert ids(keeper.only, "reranked") == list(keeper.only.prompt_ids) == ["d0", "d1", "d2"]

    def test_an_attempt_that_is_made_again_selects_as_ever(self, keeper, config):
        failures = [ValueError("busy")]

        def flaky(documents):
            if failures:
                raise failures.pop()
            return documents

        chain = Faq() | RunnableLambda(lambda docs: docs[::-1][:2]) | flaky | shown | chat()
        chain.with_retry(wait_exponential_jitter=False).invoke("Where?", config)
        assert ids(keeper.only, "reranked") == ["d5", "d4"]

    def test_a_run_that_fails_keeps_what_it_had_selected(self, keeper, config):
        def fail(_):
            raise ValueError("down")

        inner = Faq() | RunnableLambda(lambda docs: docs[::-1][:2]) | fail
        with pytest.raises(ValueError, match="down"):
            (RunnablePassthrough() | RunnableParallel(answer=inner)).invoke("Where?", config)
        run = keeper.only
        assert (run.record.outcome, ids(run, "reranked")) == ("error", ["d5", "d4"])

    def test_an_interrupted_subgraph_keeps_what_it_had_selected(self, keeper, config):
        types = pytest.importorskip("langgraph.types")
        memory = pytest.importorskip("langgraph.checkpoint.memory")
        nodes = {
            "retrieve": node_documents,
            "rank": node_best_two,
            "ask": lambda state: {"verdict": types.interrupt("May I?")},
        }
        app = graph({"search": graph(nodes), "generate": node_answer}, checkpointer=memory.InMemorySaver())
        config["configurable"] = {"thread_id": "t1"}
        app.invoke({"question": "Where?"}, config)
        assert (keeper.only.record.outcome, ids(keeper.only, "reranked")) == ("interrupted", ["d5", "d4"])


class TestInParallel:
    """Retrievers side by side, of which the first ends last."""

    @staticmethod
    def late(first, second):
        ended = threading.Event()

        class Late(Faq):
            def _get_relevant_documents(self, query, *, run_manager):
                assert ended.wait(30)
                return super()._get_relevant_documents(query, run_manager=run_manager)

        def end(documents):
            ended.set()
            return documents

        return RunnableParallel(a=first(Late(size=2)), b=second(Faq(size=2, prefix="w")) | RunnableLambda(end))

    @staticmethod
    def answering(both):
        return both | (lambda x: shown([*x["a"], *x["b"]])) | chat()

    def test_nobody_reranked(self, keeper, config):
        def itself(retriever):
            return retriever

        self.answering(self.late(itself, itself)).invoke("?", config)
        run = keeper.only
        assert kinds(run) == ["retrieval", "retrieval", "chat"]
        assert ids(run, "retrieved") == ["d0", "d1", "w0", "w1"]  # as joined, and not as they ended
        assert list(run.prompt_ids) == ["d0", "d1", "w0", "w1"]

    def test_each_reranked_for_itself(self, keeper, config):
        def reversing(retriever):
            return retriever | RunnableLambda(lambda docs: docs[::-1], name="back")

        self.answering(self.late(reversing, reversing)).invoke("?", config)
        run = keeper.only
        assert [one.model for one in run.steps if isinstance(one, Rerank)] == ["back", "back"]
        assert ids(run, "reranked") == list(run.prompt_ids) == ["d1", "d0", "w1", "w0"]

    def test_one_function_that_mixes_what_it_found_orders_the_pool(self, keeper, config):
        def find(question):
            ours, others = Faq(size=2).invoke(question), Faq(size=2, prefix="w").invoke(question)
            return [ours[0], others[0], ours[1], others[1]]

        (RunnableLambda(find) | shown | chat()).invoke("?", config)
        assert kinds(keeper.only) == ["retrieval", "retrieval", "chat"]
        assert ids(keeper.only, "retrieved") == ["d0", "w0", "d1", "w1"]


class TestIncomparableMetadata:
    """Vectors among the metadata: a copied array has no truth value when it is compared."""

    @pytest.fixture
    def index(self):
        numpy = pytest.importorskip("numpy")

        class Vectors(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                return [
                    Document(id=f"n{i}", page_content=f"Text number {i} of that index.", metadata={"vector": row})
                    for i, row in enumerate(numpy.eye(4))
                ]

        return Vectors()

    def test_copied_documents(self, keeper, config, index):
        lcel(index, lambda docs: [copy.deepcopy(d) for d in docs[::-1][:2]]).invoke("?", config)
        assert ids(keeper.only, "reranked") == ["n3", "n2"]

    def test_two_rerankers_that_copy(self, keeper, config, index):
        def copied(documents):
            return [copy.deepcopy(d) for d in documents]

        first = RunnableLambda(lambda docs: copied(docs[::-1][:3]), name="first")
        second = RunnableLambda(lambda docs: copied(docs[:2]), name="second")
        (index | first | second | RunnableLambda(copied) | shown | chat()).invoke("?", config)
        assert [one.model for one in keeper.only.steps if isinstance(one, Rerank)] == ["first", "second"]
        assert ids(keeper.only, "reranked") == ["n3", "n2"]
        assert step(keeper.only, Retrieval).source == "Vectors"
