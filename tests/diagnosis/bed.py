"""Runs of which one stage is broken on purpose, captured by hand or through a LangChain chain."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from msgspec.structs import replace

from ragtrace.capture import Recorder
from ragtrace_langchain import RagtraceHandler
from tests.diagnosis import world
from tests.kept import Keeper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragtrace.model import RagRecord, Verdict

Fault = Literal[
    "healthy",
    "retriever drops",
    "reranker demotes",
    "prompt cuts",
    "model ignores",
    "model invents",
    "model contradicts",
    "model refuses",
    "answers from nothing",
    "rightly refuses",
]
Variant = Literal["labels", "grades", "neither"]
Mode = Literal["refuse", "invent", "grounded"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
VARIANTS: tuple[Variant, ...] = get_args(Variant)
SOUND = ("healthy", "rightly refuses")
_MODES: tuple[Mode, ...] = get_args(Mode)
_STAGES: dict[str, Verdict] = {
    "retriever drops": "not_retrieved",
    "reranker demotes": "lost_in_rerank",
    "prompt cuts": "cut_from_prompt",
}
_OF_MODEL: dict[str, Verdict] = {
    "healthy": "ok",
    "model ignores": "sufficient_but_ignored",
    "model invents": "unsupported",
    "model contradicts": "contradicted",
    "model refuses": "wrongly_refused",
    "rightly refuses": "rightly_refused",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run: what each stage returned, and what is broken.

    Attributes:
        required: the statements that the query asks for.
        pool: ids, as the retriever returned them.
        selected: ids that a reranker kept; None without one.
        used: ids in the prompt.
        texts: text by id.
        labels: the grade of each passage of the corpus.
    """

    fault: Fault
    query: str
    required: tuple[str, ...]
    pool: tuple[str, ...]
    selected: tuple[str, ...] | None
    used: tuple[str, ...]
    texts: dict[str, str]
    labels: dict[str, int]
    answer: str

    @property
    def is_refusal(self) -> bool:
        """Whether the model declines."""
        return self.answer in world.REFUSALS

    def expected(self, variant: Variant) -> Verdict:
        """Return the verdict that the evidence of a variant allows.

        Grades of the pool cannot say what the retriever missed. Without labels and grades no stage before the model
        can be told from another. Such a run is then `unknown_retrieval`, or `rightly_refused` where the model
        declined: its contexts do lack the answer.
        """
        if self.fault in _OF_MODEL:
            return _OF_MODEL[self.fault]
        unknown: Verdict = "rightly_refused" if self.is_refusal else "unknown_retrieval"
        if self.fault == "answers from nothing":
            return "insufficient_but_answered" if variant == "labels" else unknown
        is_seen = variant == "labels" or (variant == "grades" and self.fault != "retriever drops")
        return _STAGES[self.fault] if is_seen else unknown


def cases(each: int = 26, seed: int = 15) -> list[Case]:
    """Return so many runs of each fault, the same ones for a seed."""
    rng = random.Random(seed)
    return [_Maker(fault, number, rng).case() for fault in FAULTS for number in range(each)]


class _Maker:
    """Makes one run: a sound one first, of which one stage is then broken."""

    def __init__(self, fault: Fault, number: int, rng: random.Random) -> None:
        self.fault, self.number, self.rng = fault, number, rng
        self.subject = world.SUBJECTS[number % len(world.SUBJECTS)]
        asked = rng.sample(list(world.ATTRIBUTES), 4)
        self.attributes = tuple(asked[: 2 if number % 3 == 0 else 1])
        self.required = tuple(world.statement(self.subject, name) for name in self.attributes)
        related = tuple(world.statement(self.subject, name) for name in asked[2:])
        filler = tuple(rng.sample(list(world.FILLER), 5))
        self.texts = {}
        self.ids: dict[str, str] = {}
        for place, said in enumerate((*self.required, *related, *filler)):
            name = f"doc-{place}"
            self.texts[name] = f"{said} {rng.choice(world.PADDING)}"
            self.ids[said] = name
        self.needed = [self.ids[said] for said in self.required]
        self.related = [self.ids[said] for said in related]
        self.filler = [self.ids[said] for said in filler]
        self.victim = rng.choice(self.needed)
        self.mode = _MODES[number % len(_MODES)]

    def case(self) -> Case:
        """Return the run."""
        if self.fault in {"answers from nothing", "rightly refuses"}:
            for name in self.needed:
                del self.texts[name]
            self.needed = []
        pool = [*self.needed, *self.related, *self.filler]
        self.rng.shuffle(pool)
        pool, selected, used = self._stages(pool)
        grade = 5 if len(self.required) == 1 else 4
        labels = {name: grade if name in self.needed else 3 if name in self.related else 1 for name in self.texts}
        return Case(
            fault=self.fault,
            query=world.question(self.subject, self.attributes),
            required=self.required,
            pool=tuple(pool),
            selected=None if selected is None else tuple(selected),
            used=tuple(used),
            texts=self.texts,
            labels=labels,
            answer=self._answer(used),
        )

    def _stages(self, pool: list[str]) -> tuple[list[str], list[str] | None, list[str]]:
        if self.fault == "retriever drops":
            pool.remove(self.victim)
        if self.fault == "reranker demotes":
            return self._demoted(pool)
        if self.fault == "prompt cuts":
            return self._cut(pool)
        kept = self._sound(pool)
        return (pool, kept, kept) if self.rng.random() < 0.6 else (pool, None, pool)

    def _sound(self, pool: Sequence[str]) -> list[str]:
        """Return what a sound reranker keeps: the needed passages, and some others behind them, filler among them."""
        first = [name for name in pool if name in self.needed]
        first.append(next(name for name in pool if name in self.filler))
        return [*first, *[name for name in pool if name not in first]][: self.rng.randint(4, 5)]

    def _demoted(self, pool: list[str]) -> tuple[list[str], list[str], list[str]]:
        kept = [name for name in self._sound(pool) if name != self.victim]
        if self.number % 2:
            return pool, kept, kept
        pool = [self.victim, *[name for name in pool if name != self.victim]]
        return pool, [*kept, self.victim], kept  # put behind worse ones, where the prompt no longer reaches

    def _cut(self, pool: list[str]) -> tuple[list[str], list[str] | None, list[str]]:
        if self.number % 2:
            pool = [*[name for name in pool if name != self.victim], self.victim]
            return pool, None, pool[: -self.rng.randint(1, 2)] if len(self.needed) == 1 else pool[:-1]
        kept = self._sound(pool)
        return pool, kept, [name for name in kept if name != self.victim]

    def _answer(self, used: Sequence[str]) -> str:
        true = " ".join(self.required)
        said, _ = world.EXTRAS[self.number % len(world.EXTRAS)]
        extra = said.format(s=self.subject, w=self.rng.choice(("winter", "night")))
        wrong = " ".join(
            world.statement(self.subject, name, is_true=place > 0) for place, name in enumerate(self.attributes)
        )
        other = next(name for name in used if name in self.filler)
        off = world.sentences(self.texts[other])[0]
        refusal = self.rng.choice(world.REFUSALS)
        answers: dict[str, str] = {
            "healthy": true,
            "model ignores": self.rng.choice(world.EVASIONS) if self.number % 2 else off,
            "model invents": f"{true} {extra}" if self.number % 2 else extra,
            "model contradicts": wrong,
            "model refuses": refusal,
            "rightly refuses": refusal,
            "answers from nothing": true if self.number % 2 else off,
        }
        lost = {"refuse": refusal, "invent": wrong, "grounded": off}
        return answers.get(self.fault, lost[self.mode])


def captured(case: Case, number: int) -> RagRecord:
    """Return the record of a run, by hand for even numbers and through a chain for odd ones."""
    keeper = Keeper()
    (_through_a_chain if number % 2 else _by_hand)(case, Recorder(keeper))
    return keeper.only.record


def of_variant(record: RagRecord, variant: Variant) -> RagRecord:
    """Return the record as one variant of the bed has it."""
    return record if variant == "labels" else replace(record, labels=None)


def _by_hand(case: Case, recorder: Recorder) -> None:
    def shown(ids: Sequence[str]) -> list[dict[str, Any]]:
        return [{"id": name, "text": case.texts[name]} for name in ids]

    with recorder.start(query=case.query) as run:
        run.retrieved(shown(case.pool), source="handbook")
        if case.selected is not None:
            run.reranked(shown(case.selected), model="small")
        run.used(shown(case.used))
        run.labels(case.labels)
        run.answered(case.answer, model="m")


class _Retriever(BaseRetriever):
    found: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found


def _through_a_chain(case: Case, recorder: Recorder) -> None:
    documents = {name: Document(id=name, page_content=text) for name, text in case.texts.items()}
    steps: Any = _Retriever(found=[documents[name] for name in case.pool])
    if case.selected is not None:
        kept = [documents[name] for name in case.selected]
        steps = steps | RunnableLambda(lambda _: kept)
    shown = "\n\n".join(case.texts[name] for name in case.used)
    joined = steps | RunnableLambda(lambda _: shown)
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{context}\n\nQuestion: {question}")
    model = FakeListChatModel(responses=[case.answer])
    chain = {"context": joined, "question": RunnablePassthrough()} | prompt | model
    config: Any = {"callbacks": [RagtraceHandler(recorder)], "metadata": {"ragtrace.labels": case.labels}}
    chain.invoke(case.query, config=config)
