"""Answers that cite, and passages in notations that LlamaIndex's engines write: found wholly, and scored alike."""

from __future__ import annotations

import asyncio
import json

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import CitationQueryEngine, RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from ragtrace.judges import OverlapJudge
from ragtrace.metrics import EvalContext, evaluate, select

TEXTS = (
    'The "Aurora" lab\nis in Oslo, at Karl Johans gate 12,\nsince the spring of 2026.',
    "It has forty people,\nwho work on the ice of the Arctic Ocean.",
    "Its head is Ada Nilsen.\nVisitors come on Fridays, between nine and eleven.",
)


class Index(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(id_=f"d{n}", text=text), score=0.9 - n / 10) for n, text in enumerate(TEXTS)
        ]


class Says(CustomLLM):
    said: str

    @property
    def metadata(self):
        return LLMMetadata(model_name="model-1", context_window=100_000, num_output=256)

    @llm_completion_callback()
    def complete(self, prompt, **kwargs):
        return CompletionResponse(text=self.said)

    @llm_completion_callback()
    def stream_complete(self, prompt, **kwargs):
        yield CompletionResponse(text=self.said, delta=self.said)


def faithfulness(record):
    (result, *_) = asyncio.run(evaluate(select(["faithfulness"]), EvalContext(record, judge=OverlapJudge())))
    return result.value


ANSWER = "Visitors come on Fridays, between nine and eleven."


@pytest.mark.parametrize("mode", [ResponseMode.SIMPLE_SUMMARIZE, ResponseMode.COMPACT])
@pytest.mark.parametrize("form", [str, json.dumps, repr])
def test_passages_of_several_lines_are_found_wholly(kept, mode, form):
    template = PromptTemplate(
        "Answer from this:\n{context_str}\nQuestion: {query_str}",
        function_mappings={"context_str": lambda context_str, **_: form(context_str)},
    )
    synthesizer = get_response_synthesizer(llm=Says(said=ANSWER), response_mode=mode, text_qa_template=template)
    RetrieverQueryEngine(Index(), response_synthesizer=synthesizer).query("Where is the lab, and who leads it?")
    assert kept.only.prompt_ids == ("d0", "d1", "d2")
    assert [p.text for p in kept.only.record.contexts] == list(TEXTS)
    assert kept.only.record.lossy == {}
    assert faithfulness(kept.only.record) == 1.0


@pytest.mark.parametrize("size", [512, 20], ids=["one chunk a passage", "several chunks a passage"])
def test_a_citation_engine(kept, size):
    engine = CitationQueryEngine.from_args(
        None, llm=Says(said="It is in Oslo [1]. Nobody lives there [99]."), retriever=Index(),
        citation_chunk_size=size, citation_chunk_overlap=0,
    )  # fmt: skip
    engine.query("Where is the lab?")
    assert kept.only.prompt_ids == ("d0", "d1", "d2")
    assert [p.text for p in kept.only.record.contexts] == list(TEXTS)
    assert [(part.text, part.citations) for part in kept.only.record.answer_parts] == [
        ("It is in Oslo.", ("d0",)),
        ("Nobody lives there.", ("99",)),
    ]
