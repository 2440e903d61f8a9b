"""The key is in nothing that a fault leaves: error, chain of errors, traceback, log."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import openai
import pytest

from ragtrace.errors import JudgeError, JudgeUnavailable
from ragtrace.judges import OpenAIEmbedder
from ragtrace.judges.openai.http_client import HTTP_PACKAGES
from tests.unit.judges.openai.asking import KEY, ONCE, ask, chat_of
from tests.unit.judges.openai.faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.guards.judge_server import JudgeServer

OTHERS = frozenset({"openai", "anyio", "h11", *HTTP_PACKAGES})


def chained(error: BaseException) -> list[BaseException]:
    """Return an error and all that is chained to it."""
    found, waiting = [], [error]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.append(one)
            waiting += [linked for linked in (one.__cause__, one.__context__) if linked is not None]
            waiting += getattr(one, "exceptions", ())
    return found


def frames(error: BaseException) -> Iterator[Any]:
    """Yield the frames of an error's traceback, without those of tests, which name the key."""
    step = error.__traceback__
    while step is not None:
        if not step.tb_frame.f_globals["__name__"].startswith("tests."):
            yield step.tb_frame
        step = step.tb_next


def reachable(error: BaseException) -> str:
    """Return what a person, a log or an error tracker may see of an error: texts, attributes, variables of frames."""
    said = []
    for one in chained(error):
        said += [str(one), repr(one), repr(one.args), repr(vars(one)), repr(getattr(one, "__notes__", ""))]
        said += [repr(value) for frame in frames(one) for value in frame.f_locals.values()]
    return "\n".join(said)


@pytest.fixture
def never() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def fault_of(call: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("kind", ["chat", "embeddings"])
@pytest.mark.parametrize("fault", FAULTS)
async def test_the_key_is_in_no_error_and_no_log(
    judge_server: JudgeServer, never: threading.Event, caplog: pytest.LogCaptureFixture, fault: str, kind: str
) -> None:
    answer = FAULTS[fault](never)
    judge_server.always = lambda _: answer
    settings = {"api_key": KEY, "timeout_s": 1.0, "retry": ONCE}
    for name in (*HTTP_PACKAGES, "openai", "ragtrace"):
        caplog.set_level(logging.DEBUG, name)
    caplog.set_level(logging.DEBUG)
    if kind == "chat":
        model: Any = chat_of(judge_server, **settings)
        error = await fault_of(ask(model))
    else:
        model = OpenAIEmbedder("m", base_url=judge_server.url, **settings)
        error = await fault_of(model.embed(["one"]))
    assert judge_server.requests[0].headers["authorization"] == f"Bearer {KEY}", "else this test says nothing"
    assert (error.__cause__, error.__context__) == (None, None)
    foreign = {frame.f_globals["__name__"].partition(".")[0] for frame in frames(error)} & OTHERS
    assert not foreign, "the client's own error holds its request"
    assert KEY not in reachable(error)
    assert KEY not in repr(model)
    assert KEY not in caplog.text
    assert any(record.name.partition(".")[0] in OTHERS for record in caplog.records)
    for record in caplog.records:
        assert KEY not in repr(vars(record))
        assert record.exc_info is None, "its frames hold the request"


async def test_a_port_where_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else can take it
        error = await fault_of(ask(chat_of(f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retry=ONCE)))
    assert isinstance(error, JudgeUnavailable)
    assert chained(error) == [error]
    assert KEY not in reachable(error)


async def test_a_fault_inside_another_error_brings_no_error_of_the_client(judge_server: JudgeServer) -> None:
    judge_server.always = lambda _: FAULTS["a wrong key"](threading.Event())
    outer = ValueError("of the caller")

    async def call() -> None:
        try:
            raise outer
        except ValueError:
            await ask(chat_of(judge_server, retry=ONCE))

    error = await fault_of(call())
    assert chained(error) == [error, outer]
    assert KEY not in reachable(error)


async def test_the_clients_own_error_has_the_key(judge_server: JudgeServer) -> None:
    """The control: what is looked through above finds the key where it is."""
    judge_server.always = lambda _: FAULTS["a wrong key"](threading.Event())
    client = chat_of(judge_server)._transport._connected()
    with pytest.raises(openai.AuthenticationError) as caught:
        await client.chat.completions.create(model="m", messages=[])
    assert KEY in reachable(caught.value)
    assert {frame.f_globals["__name__"].partition(".")[0] for frame in frames(caught.value)} & OTHERS
    await client.close()
    await asyncio.sleep(0)
