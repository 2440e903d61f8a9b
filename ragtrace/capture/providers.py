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


def provider_named(name: str) -> str:
    """Return the conventional name of a provider that a framework names; one that is not known as it is.

    Example:
        >>> provider_named("azure_openai"), provider_named("openai")
        ('azure.ai.openai', 'openai')
    """
    return _CONVENTIONAL.get(name, name)
