"""Names of model providers in the words of the GenAI conventions."""

from __future__ import annotations

_CONVENTIONAL = {  # what frameworks call otherwise
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
_IN_NAMES = {  # a word in the name of a class or module, the more particular first
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


def provider_named(name: str) -> str:
    """Return the conventional name of a provider that a framework names; one that is not known as it is.

    Example:
        >>> provider_named("azure_openai"), provider_named("openai")
        ('azure.ai.openai', 'openai')
    """
    return _CONVENTIONAL.get(name, name)


def provider_in(*names: str) -> str | None:
    """Return the provider that the names of a class and its module hold; None where they hold none.

    Example:
        >>> provider_in("MyAzureOpenAI", "shop.models"), provider_in("MockLLM")
        ('azure.ai.openai', None)
    """
    text = " ".join(names).lower()
    return next((provider for word, provider in _IN_NAMES.items() if word in text), None)
