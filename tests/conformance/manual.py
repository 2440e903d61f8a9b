"""The conformance suite's application by hand: what a program without a framework writes."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from ragtrace.testing.conformance import IntegrationConformance


class ManualApplication(IntegrationConformance):
    """Functions of the application's own, and a call of `Run` at each step."""

    lacks: ClassVar = {"block": "the application opens its own run"}

    selection_source = "explicit"

    def ask(self, plan, recorder):
        with begun(plan, recorder) as run:
            run.add_prompt(prompt_of(plan, run))
            with reported(lambda error: run.generated(model=plan.model, error=error)):
                answer = plan.said()
            run.generated(model=plan.model, usage=plan.usage)
            run.answered(answer, model=plan.model, usage=plan.usage)
        return answer

    async def aask(self, plan, recorder):
        async with begun(plan, recorder) as run:
            run.add_prompt(prompt_of(plan, run))
            with reported(lambda error: run.generated(model=plan.model, error=error)):
                answer = await plan.asaid()
            run.generated(model=plan.model, usage=plan.usage)
            run.answered(answer, model=plan.model, usage=plan.usage)
        return answer

    def stream(self, plan, recorder):
        with begun(plan, recorder) as run:
            run.add_prompt(prompt_of(plan, run))
            text = ""
            for piece in plan.pieces():
                text += piece
                run.answered(text, model=plan.model, usage=plan.usage)
                yield piece
            run.generated(model=plan.model, usage=plan.usage, first_chunk_s=0.001)

    def batch(self, plans, recorder):
        with ThreadPoolExecutor(len(plans)) as pool:
            return list(pool.map(lambda plan: self.ask(plan, recorder), plans))


def begun(plan, recorder):
    request = plan.request
    run = recorder.start(
        query=plan.question,
        workflow=request.workflow,
        session=request.session,
        user=request.user,
        corpus=request.corpus,
        corpus_version=request.corpus_version,
        tags=request.tags,
        k=request.k,
    )
    if request.reference is not None:
        run.reference(request.reference)
    if request.labels is not None:
        labels = request.labels
        run.labels(labels.grades, label_scope=labels.label_scope, scale=labels.scale, version=labels.version)
    if plan.history:
        run.set_history(plan.history)
    return run


def prompt_of(plan, run):
    """Search, choose, and put the passages into a prompt."""
    documents = searched(plan, run)
    if plan.choice is not None:
        documents = reranked(plan, run, documents)
    shown = "\n".join(plan.shown(document.text) for document in documents)
    return f"Answer from this:\n{shown}\nQuestion: {plan.question}"


def searched(plan, run):
    with reported(lambda error: run.retrieved((), source=plan.source, error=error)):
        documents = plan.found()
    run.retrieved([passage(one, one.score) for one in documents], source=plan.source)
    return documents


def reranked(plan, run, documents):
    with reported(lambda error: run.reranked((), error=error)):
        chosen = [(documents[place], score) for place, score in plan.chosen()]
    run.reranked([passage(one, score) for one, score in chosen])
    return [one for one, _ in chosen]


@contextlib.contextmanager
def reported(report):
    try:
        yield
    except Exception as error:
        report(error)
        raise


def passage(document, score):
    return {"id": document.id, "text": document.text, "score": score, "metadata": {"page": document.page}}
