"""Names that frameworks, providers' APIs and vector stores write themselves: of fields, roles, blocks and marks.

Capture knows them and no word of a language. A name that only one framework's package has stands in the module of
its integration that says so.
"""

from __future__ import annotations

# -- questions, answers and turns --

QUESTION_KEYS = (
    "question",
    "query",
    "input",
)  # inputs of LangChain's chains and templates
HISTORY_KEYS = ("chat_history", "history", "messages")  # LangChain's memories, LlamaIndex's chat engines, LangGraph
EARLIER_KEYS = frozenset({"chat_history", "history"})  # the same, where nothing but earlier turns stands in them
STATE_QUESTION_KEYS = ("question", "query", "messages")  # states of LangGraph's and LangChain's own graphs
STATE_ANSWER_KEYS = ("answer", "final_answer", "generation", "response")  # the same, of what was answered
# Names under which chains and agents of LangChain and LlamaIndex themselves take a question and give an answer.
ASKED_NAMES = frozenset({"question", "query", "input", "messages", "query_str", "user_msg", "message"})
ANSWER_NAMES = frozenset({"answer", "output", "result", "text", "output_text", "response", "messages"})
# Structured output, LangChain's chains and agents, LlamaIndex's responses; the first that is there counts.
CALLED_FIELDS = ("answer", "final_answer")  # also of a call that no tool answers
ANSWER_FIELDS = (
    *CALLED_FIELDS, "output", "result", "response", "generation", "output_text", "completion", "text",
    "structured_response", "parsed",
)  # fmt: skip

# -- messages --

ROLES = frozenset({"user", "assistant", "system", "tool", "human", "ai", "function", "developer"})
"""Names that APIs and frameworks give the speaker of a message."""
API_ROLES = frozenset({"user", "assistant", "system", "tool"})  # of OpenAI's, which capture keeps
API_ROLE_OF = {  # LangChain's types of messages
    "human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "HumanMessageChunk": "user",
}  # fmt: skip
ASKING_ROLES = frozenset({"user", "human"})  # OpenAI's and LangChain's, of who asks
OTHER_ROLES = ASKING_ROLES | {"system", "developer", "tool", "function"}  # the same, of who is no model
MESSAGE_TYPES = frozenset({"human", "ai", "AIMessageChunk", "system", "tool", "function"})  # LangChain's
CHUNK_TYPES = frozenset({"AIMessageChunk", "HumanMessageChunk"})  # LangChain's, of streamed messages
CALL_ID_KEYS = frozenset({"call_id", "tool_call_id", "tool_use_id"})  # OpenAI's, LangChain's, Anthropic's

# -- blocks of messages --

TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})  # every provider; OpenAI's Responses API
# Reasoning and calls of tools: Anthropic, OpenAI, Gemini, LangChain; Bedrock's marks of its cache.
SILENT_BLOCKS = frozenset(
    {
        "thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought", "tool_use", "tool_call",
        "tool_call_chunk", "executable_code", "code_execution_result", "cachePoint", "cache_point",
    }
)  # fmt: skip
SERVER_TOOL_BLOCKS = frozenset(  # Anthropic's and LangChain's, of tools that the provider runs
    {"server_tool_use", "server_tool_call", "server_tool_call_chunk", "server_tool_result", "non_standard"}
)
DOCUMENT_BLOCKS = frozenset(  # Anthropic, LangChain, OpenAI
    {"document", "search_result", "text-plain", "file", "input_file", "file_search_call"}
)
PICTURE_BLOCKS = frozenset({"image_url", "input_image", "image", "media"})  # OpenAI, Anthropic, LangChain, Gemini
RESULT_BLOCKS = frozenset({"tool_result", "custom_tool_call_output", "json"})  # Anthropic, OpenAI, Bedrock
# What a provider's own tools were called with and gave: OpenAI's Responses API and Anthropic.
PROVIDER_BLOCKS = frozenset(
    {
        "web_search_call", "code_interpreter_call", "computer_call", "image_generation_call", "mcp_call",
        "local_shell_call", "function_call", "custom_tool_call", "web_search_tool_result",
        "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result", "mcp_tool_result",
    }
)  # fmt: skip
BLOCK_TYPES = frozenset(
    {
        "refusal",
        *TEXT_BLOCKS,
        *SILENT_BLOCKS,
        *SERVER_TOOL_BLOCKS,
        *DOCUMENT_BLOCKS,
        *PICTURE_BLOCKS,
        *RESULT_BLOCKS,
        *PROVIDER_BLOCKS,
    }
)
"""Words by which frameworks and providers tell the blocks of a message apart."""
SOURCE_TYPES = frozenset({"base64", "url"})  # Anthropic's and LangChain's, of a block's data
MEDIA_TYPES = frozenset({"text/plain", "text/markdown", "text/html", "text/csv", "application/pdf"})
"""Words by which a block's file is told to be a text, or none."""
TEXT_FORMATS = frozenset({"txt", "md", "csv", "html"})  # Bedrock's, of documents that are texts
TITLE_KEYS = ("title", "filename", "name")  # Anthropic's, OpenAI's and Bedrock's, of a document
HELD_TEXT_KEYS = ("text", "data", "content")  # Bedrock's, Anthropic's and LangChain's, of a document's source
RESULT_KEYS = ("content", "output", "json")  # Anthropic's, OpenAI's and Bedrock's, of a tool's result
# Data of a picture: OpenAI, LangChain and Anthropic, Bedrock, Gemini.
PICTURE_DATA_KEYS = ("url", "data", "base64", "bytes", "file_uri", "image_url", "uri")
PICTURE_FIELDS = ("image", "image_url", "image_path", "data", "url", "path")  # LlamaIndex's blocks and nodes
# Metadata of passages with a picture, as in LangChain's and LlamaIndex's documentation of multi-modal search.
PICTURE_KEYS = frozenset(
    {"image", "image_base64", "image_b64", "img_base64", "image_data", "image_url", "base64_image", "b64_image"}
)

# -- passages --

# Parts of a passage: LangChain, LlamaIndex, vector stores and search tools; they are tried in this order.
# A distance is never a score: lower is better there.
TEXT_KEYS = (
    "text", "page_content", "content", "chunk", "chunk_text", "passage", "passage_text", "snippet", "excerpt",
    "body", "raw_content", "page_text",
)  # fmt: skip
ID_KEYS = ("id", "_id", "chunk_id", "node_id", "id_", "doc_id", "uuid", "pk")
SCORE_KEYS = (
    "score", "relevance_score", "similarity_score", "similarity", "_score", "@search.score", "search_score",
    "retrieval_score", "hybrid_score", "rrf_score", "vector_score", "bm25_score", "certainty", "_relevance_score",
    "_rankingScore", "$similarity",
    "@search.reranker_score",  # of a search that ranks anew itself, where it gives no other
    "@search.rerankerScore",
)  # fmt: skip
RERANK_SCORE_KEYS = (  # Cohere's and LangChain's rerankers, Azure's search
    "relevance_score", "rerank_score", "reranker_score", "reranked_score", "rerank_relevance_score",
    "cross_encoder_score", "query_similarity_score", "@search.reranker_score", "@search.rerankerScore",
    *SCORE_KEYS,
)  # fmt: skip
# Mappings inside a search result: Qdrant, Elasticsearch, Milvus, Weaviate, LlamaIndex, LangChain's JSON.
INNER_KEYS = (
    "metadata", "payload", "_source", "fields", "properties", "node", "document", "entity", "kwargs",
    "text_resource",
)  # fmt: skip
# Lists in results of chains, engines and stores (Pinecone, Qdrant, Elasticsearch); tried in this order.
POOL_KEYS = (
    "documents", "source_nodes", "source_documents", "context", "nodes", "matches", "points", "hits", "results",
)  # fmt: skip
PASSAGE_LISTS = frozenset({"context", "documents"})  # fields of texts, in chains of LangChain's and LangGraph's own
SIGNS_OF_RESULTS = frozenset(  # what search tools and stores give beside a text
    {
        *ID_KEYS, *RERANK_SCORE_KEYS, "metadata", "payload", "_source", "url", "link", "source", "title", "file",
        "page",
    }
)  # fmt: skip
# Metadata that loaders of LangChain and readers of LlamaIndex write: by these an answer may name a passage.
PASSAGE_NAME_KEYS = frozenset(
    {
        "id", "doc_id", "document_id", "source_id", "chunk_id", "source", "file", "file_name", "filename",
        "file_path", "path", "title", "name", "url", "uri", "link", "href",
    }
)  # fmt: skip
ROW_CLASSES = frozenset({"Row", "RowMapping", "Record"})  # of drivers of databases
DRIVERS = frozenset({"sqlite3", "sqlalchemy", "asyncpg", "pyodbc"})  # the packages that have them

# -- citations --

# Forms of structured answers with citations: LangChain's and Instructor's documentation, Cohere, Anthropic.
CITED_TEXT_KEYS = (
    "answer", "response", "text", "sentence", "statement", "claim", "content", "output", "result", "summary",
)  # fmt: skip
CITING_KEYS = (
    "citations", "citation", "cited_ids", "citation_ids", "cited_sources", "sources", "source_ids", "source_id",
    "source", "references", "refs", "reference_ids", "document_ids", "doc_ids", "documents", "chunk_ids",
    "context_ids", "passage_ids", "passages", "evidence", "quotes", "used_documents", "used_ids", "ids",
)  # fmt: skip
CITED_ID_KEYS = (
    "source_id", "doc_id", "document_id", "chunk_id", "passage_id", "citation_id", "id", "index", "number", "ref",
    "citation", "source", "document", "file", "name", "title", "url",
)  # fmt: skip
QUOTE_KEYS = ("quote", "quotes", "excerpt", "evidence")
# Words before the number of a source, as templates of LlamaIndex, LangChain, Cohere and Anthropic write them.
CITATION_WORDS = (
    "sources?|documents?|docs?|passages?|contexts?|chunks?|excerpts?|snippets?|references?|refs?|citations?"
)
CITATION_HINTS = (  # what is in each of them, written small or with a capital
    "ource", "OURCE", "ocument", "oc ", "ocs ", "assage", "ontext", "hunk", "xcerpt", "nippet", "eference", "ef ",
    "efs ", "itation",
)  # fmt: skip
CITATION_TAGS = "cite|ref|source|citation|doc|document"  # Wikipedia's, and of templates for Claude
# The same words before a label, and LlamaIndex's.
LABEL_WORDS = "source|document|doc|passage|context|chunk|excerpt|snippet|reference|ref|citation|result|node"
LABEL_FIELDS = ("id", "index", "number", "ref", "citation")  # of a passage in a prompt as XML or JSON
# The heading of a list of sources: LangChain's chains with sources, reports of GPT Researcher, Markdown.
SOURCE_HEADINGS = "sources?|references?|citations?|footnotes|bibliography"

# -- requests --

REQUEST_NUMBERS = {  # LangChain and LlamaIndex, Bedrock and Gemini, LangSmith (ls_)
    "temperature": ("temperature", "ls_temperature"),
    "top_p": ("top_p", "topP"),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "presence_penalty": ("presence_penalty", "presencePenalty"),
}
REQUEST_COUNTS = {  # the same, Ollama (num_predict), Hugging Face (max_new_tokens), Mistral (random_seed)
    "top_k": ("top_k", "topK"),
    "max_tokens": (
        "max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens", "num_predict",
        "max_new_tokens", "max_tokens_to_sample", "ls_max_tokens",
    ),
    "seed": ("seed", "random_seed"),
    "choice_count": ("n", "candidate_count", "candidateCount", "choice_count"),
}  # fmt: skip
STOP_NAMES = ("stop_sequences", "stop", "stopSequences", "ls_stop")  # Anthropic, OpenAI, Bedrock, LangSmith
STREAM_NAMES = ("stream", "streaming")  # OpenAI, LangChain
# What holds further parameters: Ollama, LlamaIndex, LangChain, Gemini, Bedrock.
REQUEST_GROUPS = ("options", "additional_kwargs", "model_kwargs", "generation_config", "inferenceConfig")
REQUEST_NAMES = tuple(
    {
        name: None
        for names in (
            *REQUEST_NUMBERS.values(),
            *REQUEST_COUNTS.values(),
            STOP_NAMES,
            STREAM_NAMES,
            REQUEST_GROUPS,
        )
        for name in names
    }
)
"""Every name under which a model or a call may have a parameter."""
SERVER_NAMES = (  # classes of models of LangChain and LlamaIndex
    "base_url", "api_base", "openai_api_base", "azure_endpoint", "anthropic_api_url", "endpoint_url", "endpoint",
    "server_url", "inference_server_url", "api_url", "host",
)  # fmt: skip
"""Every name under which a model may have its server's address."""
URL_CLASSES = frozenset({"URL", "Url", "AnyUrl", "HttpUrl", "AnyHttpUrl"})  # yarl, httpx and pydantic
# The form of a reply: OpenAI, Ollama, vLLM, Gemini, LangSmith; and what holds further parameters.
FORMAT_NAMES = (
    "response_format", "format", "json_mode", "guided_json", "json_schema", "response_mime_type",
    "responseMimeType", "response_schema", "response_json_schema", "ls_structured_output_format",
)  # fmt: skip
FORMAT_GROUPS = (
    "text", "extra_body", "generation_config", "generationConfig", "model_kwargs", "additional_kwargs",
)  # fmt: skip
MODEL_NAMES = ("model", "model_name", "model_id", "deployment_name", "azure_deployment", "repo_id")  # LangChain's
SESSION_KEYS = ("session_id", "conversation_id", "thread_id")  # LangChain's history, LangSmith, LangGraph
USER_KEYS = ("user_id",)  # LangGraph's and LangSmith's documentation

# -- replies --

# Tokens. Anthropic and Bedrock count cached ones apart from the input; every other name includes them.
INPUT_TOKENS_WITHOUT_CACHE = ("input_tokens", "inputTokens")
INPUT_TOKENS = (*INPUT_TOKENS_WITHOUT_CACHE, "prompt_tokens", "prompt_token_count", "prompt_eval_count")
OUTPUT_TOKENS = (
    "output_tokens", "outputTokens", "completion_tokens", "candidates_token_count", "eval_count",
)  # fmt: skip
CACHE_READ_TOKENS = ("cache_read_input_tokens", "cacheReadInputTokens")  # Anthropic, Bedrock
CACHE_WRITE_TOKENS = ("cache_creation_input_tokens", "cacheWriteInputTokens")  # the same
INPUT_DETAILS = ("input_token_details", "input_tokens_details", "prompt_tokens_details")  # LangChain, OpenAI
OUTPUT_DETAILS = ("output_token_details", "output_tokens_details", "completion_tokens_details")  # the same
EPHEMERAL_TOKENS = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")  # LangChain's, of Anthropic
THOUGHT_TOKENS = "thoughts_token_count"  # Gemini's
CACHED_TOKENS = "cached_content_token_count"  # Gemini's
REASONING_DETAILS = ("reasoning", "reasoning_tokens")  # LangChain's and OpenAI's
CACHED_DETAILS = ("cache_read", "cached_tokens")  # LangChain's and OpenAI's
PROVIDER_OF = {  # what LangChain's and LlamaIndex's packages call otherwise than the GenAI conventions
    "amazon_bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "azure_openai": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "bedrock_converse": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "ibm": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "mistralai": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "xai": "x_ai",
}
PROVIDER_IN = {  # a part of the name of a class or module, the more particular first
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "vertex": "gcp.vertex_ai",
    "gemini": "gcp.gemini",
    "google": "gcp.gen_ai",
    "watsonx": "ibm.watsonx.ai",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "anthropic": "anthropic",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "groq": "groq",
    "perplexity": "perplexity",
    "openai": "openai",
    "ollama": "ollama",
    "huggingface": "huggingface",
}
# A reply, or the part of one that holds the text: OpenAI, Gemini, LangChain; they are tried in this order.
CHOICE_KEYS = ("choices", "candidates", "generations")
REPLY_KEYS = (*CALLED_FIELDS, "message", "content", "text", "response", "response_txt", *ANSWER_FIELDS[2:])
PARSED_KEYS = ("parsed", "output_parsed", "parsed_output")  # structured output: OpenAI, LangChain, Anthropic
STREAM_KEYS = ("response_gen", "chat_stream", "achat_stream")  # LlamaIndex's replies that are read later
REPLY_FINISH_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")  # LangChain's metadata of a reply
FINISH_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason")  # OpenAI, Gemini, Anthropic, Bedrock
FEEDBACK_KEYS = ("prompt_feedback", "promptFeedback")  # Gemini's
REPLY_BLOCK_KEYS = ("content", "output")  # Anthropic's and LangChain's; OpenAI's Responses API
REPLY_NOTE_KEYS = (  # LangChain's, LlamaIndex's and providers', which may hold a refusal
    "response_metadata", "generation_info", "additional_kwargs", "raw", "message", "value", *CHOICE_KEYS,
)  # fmt: skip
REFUSAL_KEYS = frozenset(
    {
        "refusal", "incomplete_details", *FINISH_KEYS, *FEEDBACK_KEYS, *REPLY_BLOCK_KEYS, *REPLY_NOTE_KEYS,
    }
)  # fmt: skip
REFUSALS = frozenset(  # OpenAI, Azure, Anthropic, Bedrock, Gemini, Cohere
    {
        "refusal", "content_filter", "content_filtered", "guardrail_intervened", "safety", "recitation",
        "blocklist", "prohibited_content", "spii", "image_safety", "model_armor", "error_toxic",
    }
)  # fmt: skip
# Tags around thoughts, and other marks, of models that Ollama, vLLM or llama.cpp serve without a reasoning parser:
# DeepSeek, Qwen, GLM, Seed-OSS, MiniMax, Claude; Magistral, Kimi, MedGemma, Gemma, OpenThinker, Command R, Apertus.
THOUGHT_TAGS = r"(?:seed:|mm:|ant|antml:)?think(?:ing)?|thoughts?|reasoning"
THOUGHTS_BEGIN = (
    r"\[THINK(?:ING)?\]|◁think▷|<unused94>|<\|channel>\s*thought"
    r"|<\|(?:begin_of_thought|start_thinking|inner_prefix)\|>"
)
THOUGHTS_END = (
    r"\[/THINK(?:ING)?\]|◁/think▷|<unused95>|<channel\|>|<\|(?:end_of_thought|end_thinking|inner_suffix)\|>"
)
CUT_THOUGHTS_BEGIN = (  # the same, as a stream may have begun with them when it was cut
    "<thinking>", "<think>", "<thoughts>", "<thought>", "<reasoning>", "<seed:think>", "<mm:think>", "[think]",
    "◁think▷", "<|begin_of_thought|>", "<|start_thinking|>", "<|inner_prefix|>", "<|channel>thought", "<unused94>",
    "<|channel|>analysis<|message|>", "<|start|>assistant<|channel|>",
)  # fmt: skip
CUT_THOUGHTS_END = (
    "</thinking>", "</thoughts>", "</think>", "</thought>", "</reasoning>", "</seed:think>", "</mm:think>",
    "[/think]", "◁/think▷", "<|end_of_thought|>", "<|end_thinking|>", "<|inner_suffix|>",
)  # fmt: skip
CHANNEL_ENDS = "end|return|call|start|channel"  # marks of gpt-oss behind what is said in a channel
ANSWER_TAGS = "answer|response|solution"  # DeepSeek's R1 and models taught like it
ANSWER_BEGINS, ANSWER_ENDS = (
    "start_response|begin_of_solution",
    "end_response|end_of_solution",
)  # Command R, OpenThinker
REACT_THOUGHT, REACT_ANSWER = "Thought:", "(?:Final )?Answer:"  # agents of LangChain and LlamaIndex

# -- names in a file of events --

# Fields of messages, blocks and steps that stand beside those above: OpenAI, LangChain, LangGraph, Weaviate.
_OTHERS = frozenset(
    {
        "_additional", "args", "artifact", "bytes", "calls", "file_data", "file_id", "format", "goto", "grades",
        "image", "media_type", "mime_type", "picture", "role", "tool_calls", "turns", "type", "update", "value",
    }
)  # fmt: skip
KEPT = frozenset(
    {
        *QUESTION_KEYS,
        *HISTORY_KEYS,
        *STATE_QUESTION_KEYS,
        *STATE_ANSWER_KEYS,
        *ASKED_NAMES,
        *ANSWER_NAMES,
        *ANSWER_FIELDS,
        *ROLES,
        *MESSAGE_TYPES,
        *CHUNK_TYPES,
        *CALL_ID_KEYS,
        *BLOCK_TYPES,
        *SOURCE_TYPES,
        *MEDIA_TYPES,
        *TEXT_FORMATS,
        *TITLE_KEYS,
        *HELD_TEXT_KEYS,
        *RESULT_KEYS,
        *PICTURE_DATA_KEYS,
        *PICTURE_FIELDS,
        *PICTURE_KEYS,
        *TEXT_KEYS,
        *RERANK_SCORE_KEYS,
        *INNER_KEYS,
        *POOL_KEYS,
        *PASSAGE_LISTS,
        *SIGNS_OF_RESULTS,
        *PASSAGE_NAME_KEYS,
        *ROW_CLASSES,
        *CITED_TEXT_KEYS,
        *CITING_KEYS,
        *CITED_ID_KEYS,
        *QUOTE_KEYS,
        *REPLY_KEYS,
        *PARSED_KEYS,
        *REFUSAL_KEYS,
        *_OTHERS,
    }
)
"""Names of fields, roles and types that a masked file leaves as they are: capture reads by them."""
