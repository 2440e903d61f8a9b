"""Chat and embeddings over an OpenAI-compatible server."""
