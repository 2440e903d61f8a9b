"""Asks the help desk two questions of one conversation, prints the streams, and rates the second answer."""

from __future__ import annotations

import json
import sys

import httpx

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"


def ask(question: str) -> str:
    """Print an answer as it comes; return the trace id of its run."""
    print(question, end="\n  ", flush=True)
    trace_id = ""
    with httpx.stream("POST", f"{URL}/ask", json={"question": question, "session": "s-42"}, timeout=60) as reply:
        reply.raise_for_status()
        for line in reply.iter_lines():
            name, _, value = line.partition(": ")
            data = json.loads(value) if name == "data" else {}
            trace_id = data.get("trace_id", trace_id)
            print(data.get("text", ""), end="", flush=True)
    print(f"\n  trace {trace_id}")
    return trace_id


ask("How can I cancel my plan?")
bad = ask("And how long does the refund take?")
rating = {"trace_id": bad, "value": 0, "comment": "My refund of 700 euros took three days."}
httpx.post(f"{URL}/feedback", json=rating).raise_for_status()
print("rated the last answer: bad")
