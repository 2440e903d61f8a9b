"""A run with each of its texts filled with 262,144 characters of one kind: little CPU, and no stall of other threads.

Each run goes by hand, through LangChain's handler or through LlamaIndex's instrumentation, without a judge.
`python tests/unit/capture/test_pumped_texts.py [WORD ...]` prints a table: the CPU beyond that of a short text, and
how much longer than asked another thread slept meanwhile.
"""

from __future__ import annotations

import faulthandler
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

MOST_CHARS = 262_144
MOST_SECONDS = 1.0
MOST_STALL = 0.03
RUNS = {
    "blanks": ("", " "), "tabs": ("", "\t"), "newlines": ("", "\n"), "backslashes": ("", "\\"), "quotes": ("", '"'),
    "single quotes": ("", "'"), "digits": ("", "1"), "word": ("", "a"), "squares": ("", "["), "rounds": ("", "("),
    "angles": ("", "<"), "braces": ("", "{"), "stars": ("", "*"), "underscores": ("", "_"), "bars": ("", "|"),
    "hashes": ("", "#"), "dashes": ("", "-"), "dots": ("", "."), "commas": ("", ","), "words": ("", "a "),
    "sentences": ("", "a. "), "Sentences": ("", "The lab is in Oslo. "), "markers": ("", "[1] "),
    "marked": ("", "In Oslo [1]. "), "items": ("", "\n- "), "rows": ("", "\n[1]: a"), "entities": ("", "&amp;"),
    "escapes": ("", "\\u0061"), "links": ("", "http://"), "numbers": ("", "1,"), "list": ("[", "1,"),
    "nested": ("", "[["), "json": ('{"answer": "', '\\"'), "keys": ('{"a":', '{"a":'), "CJK": ("", "語"),
    "marks": ("", "é".encode().decode() + "\u0301"), "footnote": ("In Oslo [1].\n[1]: a", " "),
    "source": ("source 1", " "), "think": ("", "a <think> "), "lines": ("", "a\nb\n"), "code": ("", "`a"),
}  # fmt: skip
FIELDS = (
    "question", "answer", "context", "tool", "prompt", "metadata", "tag", "id", "citation",
)  # fmt: skip


def text_of(kind: str) -> str:
    begin, part = RUNS[kind]
    return (begin + part * (MOST_CHARS // len(part)))[: MOST_CHARS - 1] + "b"


def _fields(field: str, text: str) -> dict[str, str]:
    short = {
        "question": "Where is the lab?", "answer": "In Oslo [1].", "context": "The lab is in Oslo.",
        "tool": "12 rooms are free at the harbour.", "prompt": "Answer from the context.", "metadata": "docs/faq.md", "tag": "a",
        "id": "a", "citation": "faq",
    }  # fmt: skip
    return {**short, field: text}


def by_hand(texts: dict[str, str], *, is_traced: bool) -> None:
    import ragtrace

    if not is_traced:
        return

    with ragtrace.query(texts["question"], tags=[texts["tag"]]) as run:
        passage = {"id": texts["id"], "text": texts["context"], "metadata": {"source": texts["metadata"]}}
        run.retrieved([passage, {"id": "b", "text": "Rome has seven hills."}])
        run.tool_called("rooms", arguments={"q": "Oslo"}, result=texts["tool"])
        run.add_prompt(f"{texts['prompt']}\n[1] {texts['context']}\n[2] Rome has seven hills.\n{texts['question']}")
        run.answered(f"{texts['answer']} [{texts['citation']}]" if texts["citation"] != "faq" else texts["answer"])


def langchain(texts: dict[str, str], *, is_traced: bool) -> None:
    from langchain_core.documents import Document
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import StructuredTool

    from ragtrace_langchain import RagtraceHandler

    class Found(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
            facts = {"source": texts["metadata"]}
            return [
                Document(texts["context"], id=texts["id"], metadata=facts),
                Document("Rome has seven hills.", id="b"),
            ]

    tool = StructuredTool.from_function(lambda place: texts["tool"], name="rooms", description="Free rooms.")
    prompt = ChatPromptTemplate.from_messages(
        [("system", "{prompt}"), ("user", "[1] {context}\n{rooms}\nQuestion: {question}")]
    )
    cited = "" if texts["citation"] == "faq" else f" [{texts['citation']}]"
    model = FakeListChatModel(responses=[f"{texts['answer']}{cited}"])
    retriever = Found()

    def fill(question: str, config: object) -> dict[str, str]:
        found = retriever.invoke(question, config)
        context = "\n".join(one.page_content for one in found)
        rooms = tool.invoke({"place": "Oslo"}, config)
        return {"context": context, "rooms": rooms, "question": question, "prompt": texts["prompt"]}

    chain = RunnableLambda(fill) | prompt | model
    chain.invoke(texts["question"], {"callbacks": [RagtraceHandler()] if is_traced else [], "tags": [texts["tag"]]})


def llamaindex(texts: dict[str, str], *, is_traced: bool) -> None:
    from llama_index.core import PromptTemplate
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import get_response_synthesizer
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

    from ragtrace_llamaindex import instrument, uninstrument

    instrument() if is_traced else uninstrument()
    cited = "" if texts["citation"] == "faq" else f" [{texts['citation']}]"
    said = f"{texts['answer']}{cited}"

    class Model(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(context_window=10_000_000, num_output=100)

        def complete(self, prompt: str, formatted=False, **kwargs: object) -> CompletionResponse:  # type: ignore[no-untyped-def]  # noqa: FBT002
            return CompletionResponse(text=said)

        def stream_complete(self, prompt: str, formatted=False, **kwargs: object) -> object:  # type: ignore[no-untyped-def]  # noqa: FBT002
            raise NotImplementedError

    class Found(BaseRetriever):
        def _retrieve(self, query: QueryBundle) -> list[NodeWithScore]:
            first = TextNode(text=texts["context"], id_=texts["id"], metadata={"source": texts["metadata"]})
            return [
                NodeWithScore(node=first, score=0.9),
                NodeWithScore(node=TextNode(text="Rome has seven hills.", id_="b"), score=0.5),
            ]

    framed = texts["prompt"].replace("{", "{{").replace("}", "}}")
    template = PromptTemplate(f"{framed}\n{{context_str}}\nQuestion: {{query_str}}\nAnswer: ")
    synthesizer = get_response_synthesizer(llm=Model(), response_mode="simple_summarize", text_qa_template=template)
    RetrieverQueryEngine(Found(), response_synthesizer=synthesizer).query(texts["question"])


WAYS: dict[str, Callable[..., None]] = {
    "by hand": by_hand, "langchain": langchain, "llamaindex": llamaindex,
}  # fmt: skip


class Sleeper(threading.Thread):
    """Sleeps for 5 ms again and again, and notes the most CPU that the process took meanwhile.

    A busy machine halts it for longer; what holds the interpreter's lock takes CPU.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ends = threading.Event()
        self.longest = 0.0

    def run(self) -> None:
        while not self.ends.is_set():
            began, used = time.perf_counter(), time.process_time()
            time.sleep(0.005)
            longer = min(time.perf_counter() - began, time.process_time() - used) - 0.005
            self.longest = max(self.longest, longer)


def measured(way: Callable[..., None], texts: dict[str, str], *, is_traced: bool = True) -> tuple[float, float]:
    """Return the CPU from the call to the end of `flush`, and the longest stall of another thread."""
    import ragtrace

    sleeper = Sleeper()
    sleeper.start()
    began = time.process_time()
    way(texts, is_traced=is_traced)
    ragtrace.flush(120)
    taken = time.process_time() - began
    sleeper.ends.set()
    sleeper.join()
    return taken, sleeper.longest


def main(words: list[str]) -> int:
    """Print what each field takes with each text; words choose lines.

    `record` writes files of events too. `beside` tries each third line, and allows four times as much: other tests
    run at the same time.
    """
    os.environ.update(OTEL_TRACES_EXPORTER="none", OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none")
    import tempfile

    import ragtrace

    recorded = {"record_events": tempfile.mkdtemp()} if "record" in words else {}
    part, slack = (3, 4.0) if "beside" in words else (1, 1.0)
    most_seconds, most_stall, number = slack * MOST_SECONDS, slack * MOST_STALL, 0
    words = [word for word in words if word not in {"record", "beside"}]
    ragtrace.configure(sample_rate=0.0, **recorded)  # type: ignore[arg-type]
    faults = 0
    for name, way in WAYS.items():
        if all(f"{name}:" not in word for word in words) and any(":" in word for word in words):
            continue
        measured(way, _fields("", ""))
        least = [measured(way, _fields("", "")) for _ in range(3)]
        cpu = min(one for one, _ in least)
        for field in FIELDS:
            for kind in RUNS:
                line = f"{name}: {field}: {kind}"
                if words and not any(word in line for word in words):
                    continue
                number += 1
                if number % part:
                    continue
                if os.environ.get("STACKS"):
                    faulthandler.dump_traceback_later(float(os.environ["STACKS"]))
                texts = _fields(field, text_of(kind))
                alone, stall = measured(way, texts, is_traced=False)
                taken, stalled = measured(way, texts)
                if taken - alone > most_seconds or stalled - stall > most_stall:  # once more: a machine may be busy
                    taken, stalled = min((taken, stalled), measured(way, texts))
                taken -= alone
                faulthandler.cancel_dump_traceback_later()
                is_slow = taken - cpu > most_seconds or stalled - stall > most_stall
                faults += is_slow
                if is_slow or "-v" in sys.argv or taken - cpu > most_seconds / 4:
                    print(  # noqa: T201
                        f"{'!!' if is_slow else '  '} {line}: {taken - cpu:.2f} s of CPU,"
                        f" a stall of {(stalled - stall) * 1e3:,.0f} ms",
                        flush=True,
                    )
    return 1 if faults else 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", WAYS)
def test_a_text_of_one_kind_takes_little_cpu_and_stalls_no_thread(way: str) -> None:
    done = subprocess.run(
        [sys.executable, __file__, f"{way}:", "beside"], capture_output=True, text=True, check=False, timeout=900
    )

    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
