"""The soak's application: ``SPOOL RATE SECONDS SHARE SWITCH`` asks a LangChain chain, reports as JSON lines.

It rests twice, after the warm-up and at the end: nothing is asked, nothing waits, and its blocks are counted.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import threading
import time

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

import ragtrace
from benchmarks.overhead.memory import resident_bytes
from ragtrace.capture import internal_errors
from ragtrace.service import current
from ragtrace_langchain import RagtraceHandler

EVERY_S, THREADS = 5.0, 4
WARM_UP = 0.4  # of the time: caches, connections and the window of mean gauges fill
FAULTS = ("index", "model", "abandoned", "huge", "odd", "leaked")
PROMPT = ChatPromptTemplate.from_messages([("system", "Use this:\n{context}"), ("human", "{question}")])


class Down(ConnectionError):
    """A fault of the application's own."""


class Search(BaseRetriever):
    """Finds what the question asks for: ``huge``, ``odd`` or nothing of the kind."""

    def _get_relevant_documents(self, query, *, run_manager):
        if "index" in query:
            raise Down("index")
        if "huge" in query:
            return [Document("x" * 2_000_000, id="huge")]
        if "odd" in query:
            return [Document.model_construct(page_content=None, metadata={"self": object()}, id=7)]
        return [
            Document(f"The lab is in Oslo. {i}".ljust(800, "."), id=f"d{i}", metadata={"score": 1 - i / 50})
            for i in range(20)
        ]


def shown(documents):
    return "\n".join(str(document.page_content)[:1_000] for document in documents)


def model(prompt):
    if "model" in prompt.to_string().rsplit("\n", 1)[-1]:
        raise Down("model")
    return FakeListChatModel(responses=["The lab is in Oslo."])


def chain():
    context = Search() | RunnableLambda(lambda documents: documents[:8], name="rerank") | shown
    given = {"context": context, "question": RunnablePassthrough()}
    return given | PROMPT | RunnableLambda(model) | StrOutputParser()


class JudgeSession:
    """Asks at a rate from several threads."""

    def __init__(self, rate: float, share: float) -> None:
        self.rate, self.share = rate, share
        self.asked = self.failed = 0
        self.leaked: list[object] = []
        self._lock = threading.Lock()
        self._chain, self._config = chain(), {"callbacks": [RagtraceHandler()]}

    def run(self, number: int, ends_at: float) -> None:
        chance = random.Random(number)
        next_at = time.monotonic()
        while next_at < ends_at:
            time.sleep(max(next_at - time.monotonic(), 0))
            next_at += THREADS / self.rate
            kind = int(chance.random() / self.share) if self.share else 99
            self._ask(FAULTS[kind] if kind < len(FAULTS) else "plain")

    def _ask(self, kind: str) -> None:
        with self._lock:
            self.asked += 1
            number = self.asked
        question = f"{number} {kind}?"
        try:
            if kind in {"abandoned", "leaked"}:
                stream = self._chain.stream(question, self._config)
                next(stream)
                if kind == "leaked":
                    self.leaked = [*self.leaked[-20:], stream]
            else:
                self._chain.invoke(question, self._config)
        except Down:
            with self._lock:
                self.failed += 1


def report(asking: JudgeSession, *, at_rest: bool = False) -> None:
    gc.collect()
    service = current()
    counts, pending = service.gauges.accounts() if service else ({}, 0)
    facts = {
        "asked": asking.asked,
        "failed": asking.failed,
        "offered": service.ledger.offered if service else 0,
        "ends": {" ".join(key).strip(): n for key, n in counts.items()},
        "pending": pending,
        "rss": resident_bytes(),
        "blocks": sys.getallocatedblocks(),
        "losses": dict(internal_errors()),
        "at_rest": at_rest,
    }
    print(json.dumps(facts), flush=True)


def main() -> None:
    spool, rate, seconds, share, interval_s = sys.argv[1], *map(float, sys.argv[2:])
    sys.setswitchinterval(interval_s)
    ragtrace.configure(spool=spool, scorer="worker", sample_rate=0.2, content="full")
    asking = JudgeSession(rate, share)
    for number, part in enumerate((WARM_UP, 1.0 - WARM_UP)):
        ends_at = time.monotonic() + seconds * part
        seeds = range(number * THREADS, (number + 1) * THREADS)
        threads = [threading.Thread(target=asking.run, args=(seed, ends_at)) for seed in seeds]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(EVERY_S)
            report(asking)
        asking.leaked.clear()
        ragtrace.flush(60)
        report(asking, at_rest=True)  # with what ragtrace holds open: nothing is ended for it
    ragtrace.recorder().end_all()
    ragtrace.flush(60)
    report(asking)
    ragtrace.shutdown(30)


if __name__ == "__main__":
    main()
