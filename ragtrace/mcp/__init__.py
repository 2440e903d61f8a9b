"""Read-only tools for agents over a store or a scored file, as a Model Context Protocol server."""
