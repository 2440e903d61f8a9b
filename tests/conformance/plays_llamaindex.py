"""The play out of LlamaIndex's parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

if TYPE_CHECKING:
    from ragtrace.testing.integration import Play

TEMPLATE = "Use this:\n{context_str}\n\nQuestion: {query_str}"


class Index(BaseRetriever):
    def __init__(self, play: Play):
        super().__init__()
        self.play = play

    def _retrieve(self, query_bundle):
        if self.play.fails == "retriever":
            raise ConnectionError("down")
        return [
            NodeWithScore(node=TextNode(id_=doc.id or "", text=doc.text), score=doc.score)
            for doc in self.play.documents
        ]


class Reranker(BaseNodePostprocessor):
    play: Any

    def _postprocess_nodes(self, nodes, query_bundle=None):
        if self.play.fails == "reranker":
            raise ConnectionError("down")
        return [NodeWithScore(node=nodes[place].node, score=score) for place, score in self.play.chosen]


class Model(CustomLLM):
    play: Any

    @property
    def metadata(self):
        return LLMMetadata(model_name=self.play.model, context_window=4_000_000, num_output=256)

    @llm_completion_callback()
    def complete(self, prompt, *args, **kwargs):
        if self.play.fails == "model":
            raise ConnectionError("down")
        return CompletionResponse(text=self.play.text)

    @llm_completion_callback()
    def stream_complete(self, prompt, *args, **kwargs):
        def pieces():
            text = ""
            for piece in self.play.answer:
                text += piece
                yield CompletionResponse(text=text, delta=piece)

        return pieces()


def engine(play: Play, *, is_streaming: bool = False):
    synthesizer = get_response_synthesizer(
        llm=Model(play=play), text_qa_template=PromptTemplate(TEMPLATE), streaming=is_streaming
    )
    chosen = [Reranker(play=play)] if play.chosen is not None else []
    return RetrieverQueryEngine(Index(play), response_synthesizer=synthesizer, node_postprocessors=chosen)
