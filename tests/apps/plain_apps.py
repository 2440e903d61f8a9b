"""Applications of plain functions, which ``with ragtrace.query(...)`` makes a run."""

from __future__ import annotations

from contextlib import contextmanager

from ragtrace.capture import Recorder
from ragtrace_langchain import instrument, uninstrument
from tests.apps.application import Application, Expected
from tests.apps.langchain_parts import Replies, joined, store
from tests.apps.shop import TEXTS


@contextmanager
def _nowhere(_recorder):
    yield Recorder()


@contextmanager
def _query(recorder):
    yield recorder


@contextmanager
def _query_and_instrument(recorder):
    instrument(recorder)
    try:
        yield recorder
    finally:
        uninstrument()


def search(question):
    """Return rows as a database's driver does."""
    return [{"id": name, "text": TEXTS[name], "score": 0.9 - place / 10} for place, name in enumerate(TEXTS)][:4]


def best(rows):
    """Return the shortest two, with a score for it."""
    return [{**row, "score": 1 / len(row["text"])} for row in sorted(rows, key=lambda row: len(row["text"]))[:2]]


class PlainFunctions(Application):
    """A search, a reranker and a model that are functions, reported by hand."""

    captures = {"none": _nowhere, "query": _query}
    expected = (
        Expected(
            question="How do I send it back?",
            pool=("refunds", "returns", "shipping", "customs"),
            selection=("returns", "refunds"),
            ranks=(2, 1),
            prompt=("returns", "refunds"),
            answer="Pack it.",
        ),
    )

    def ask(self, recorder):
        (expected,) = self.expected
        with recorder.start(query=expected.question) as run:  # as `ragtrace.query`, of the process's recorder
            rows = search(expected.question)
            run.retrieved(rows, source="handbook")
            chosen = best(rows)
            run.reranked(chosen, model="shortest")
            run.add_prompt("Answer from:\n" + "\n".join(row["text"] for row in chosen))
            answer = "Pack it."
            run.answered(answer, model="none")
            return answer

    async def aask(self, recorder):
        return self.ask(recorder)


class HandWritten(Application):
    """A block around a retriever and a model of LangChain's, called one by one: all of it is one run."""

    captures = {"none": _nowhere, "instrument": _query_and_instrument}
    expected = (
        Expected(
            question="How long is the warranty?",
            pool=("warranty", "invoices"),
            prompt=("warranty", "invoices"),
            answer="Two years.",
        ),
    )

    def _parts(self):
        found = store({self.expected[0].question: 128}).as_retriever(search_kwargs={"k": 2})
        return self.expected[0].question, found, Replies(rules=[("", "Two years.")])

    def ask(self, recorder):
        question, found, model = self._parts()
        with recorder.start(query=question) as run:
            answer = model.invoke(f"Answer from:\n{joined(found.invoke(question))}").text
            run.answered(answer)
            return answer

    async def aask(self, recorder):
        question, found, model = self._parts()
        async with recorder.start(query=question) as run:
            documents = await found.ainvoke(question)
            answer = (await model.ainvoke(f"Answer from:\n{joined(documents)}")).text
            run.answered(answer)
            return answer

    def stream(self, recorder):
        question, found, model = self._parts()
        with recorder.start(query=question) as run:
            said = []
            for piece in model.stream(f"Answer from:\n{joined(found.invoke(question))}"):
                said.append(piece.text)
                yield piece.text
            run.answered("".join(said))
