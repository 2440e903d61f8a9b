import ragtrace
import ragtrace_llamaindex
from llama_index.core import MockEmbedding, PromptTemplate, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import TextNode
from llama_index.core.settings import Settings

Settings.llm, Settings.embed_model = MockLLM(), MockEmbedding(8)
index = VectorStoreIndex([TextNode(text="You can cancel in Settings, under Billing.", id_="cancel")])
retriever, llm, engine = index.as_retriever(), Settings.llm, index.as_query_engine()
reranker, synthesizer = SimilarityPostprocessor(similarity_cutoff=0.1), get_response_synthesizer()


def prompt(nodes):
    return "Answer from this: " + " ".join(node.text for node in nodes)
