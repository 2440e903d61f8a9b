"""A help desk over HTTP: answers stream as server-sent events, users rate them, and ragtrace scores them.

Run it: ``python app.py``, or with a model: ``python app.py --model gpt-4o-mini [--base-url URL]``.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import uvicorn
from chain import build_chain, chat_model
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

import ragtrace
from ragtrace_langchain import RagtraceHandler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langchain_core.runnables import Runnable

MOST_TURNS = 6
Turn = tuple[str, str]


class Question(BaseModel):
    """A question of a conversation."""

    question: Annotated[str, Field(min_length=1, max_length=2000)]
    session: Annotated[str, Field(min_length=1, max_length=100)]


class Rating(BaseModel):
    """A user's word on an answer: 1 is good, 0 is bad."""

    trace_id: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    value: Annotated[float, Field(ge=0, le=1)]
    comment: Annotated[str, Field(max_length=1000)] | None = None


def event(kind: str, **data: str) -> str:
    """Return one server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"


def create_app(model: str | None = None, base_url: str | None = None) -> FastAPI:
    """Return the application; a server of many processes calls this in each."""
    conversations: dict[str, list[Turn]] = defaultdict(list)  # your database's place

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        ragtrace.configure(sample_rate=1.0, content="full", store="help-desk.sqlite", console=True)
        app.state.chain = build_chain(chat_model(model, base_url))
        yield
        ragtrace.flush(10)  # score what has been captured
        ragtrace.shutdown(10)

    app = FastAPI(title="Help desk", lifespan=lifespan)

    @app.post("/ask")
    async def ask(asked: Question) -> StreamingResponse:
        stream = answer(app.state.chain, asked, conversations[asked.session])
        return StreamingResponse(stream, media_type="text/event-stream")

    @app.post("/feedback", status_code=202)
    def rate(rating: Rating) -> None:
        if not ragtrace.feedback(rating.trace_id, rating.value, rating.comment):
            raise HTTPException(503, "the rating could not be kept")

    return app


async def answer(chain: Runnable, asked: Question, history: list[Turn]) -> AsyncIterator[str]:
    """Stream the answer; the block is the run, and ends as `partial` or `cancelled` where the client leaves."""
    async with ragtrace.query(asked.question, workflow="help-desk", session=asked.session) as run:
        yield event("run", trace_id=run.trace_id)  # for the user's rating
        text = ""
        given = {"question": asked.question, "history": history[-MOST_TURNS:]}
        async for piece in chain.astream(given, config={"callbacks": [RagtraceHandler()]}):
            text += piece
            yield event("piece", text=piece)
    history += [("user", asked.question), ("assistant", text)]
    yield event("end")


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="model on an OpenAI-compatible server; default: a script")
    parser.add_argument("--base-url", help="that server; default: OpenAI's, with OPENAI_API_KEY")
    parser.add_argument("--port", type=int, default=8000)
    args = parser.parse_args()
    for signal in ("TRACES", "METRICS", "LOGS"):  # no collector here; leave this out in an application
        os.environ.setdefault(f"OTEL_{signal}_EXPORTER", "none")
    uvicorn.run(create_app(args.model, args.base_url), host="127.0.0.1", port=args.port, log_level="warning")


if __name__ == "__main__":
    main()
