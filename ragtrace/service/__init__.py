"""The only room that builds the object graph from settings.

Owns: the process's one recorder, and what stands behind it. Imports: every room below it.
"""

from ragtrace.service.runtime import configure, current, flush, query, recorder, shutdown

__all__ = ["configure", "current", "flush", "query", "recorder", "shutdown"]
