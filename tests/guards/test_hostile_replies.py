"""Replies that no judge's server should send: each costs its own score, and no memory, no secret, no other score."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.guards.hostile import (
    BUSY,
    ELSEWHERE,
    KEY,
    LOGIN,
    NUMBERS,
    PASSWORD,
    ROWS,
    SAID,
    SECRETS,
    SOUND,
    TOKEN,
    complaint,
    http,
    large,
    row,
)  # fmt: skip
from tests.guards.raw_server import RawServer
from tests.guards.scoring import score
from tests.guards.setting_up import judge_variables, judged_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.guards.hostile import Row

pytestmark = pytest.mark.slow


class Judged:
    """What answers with replies of a table left, and what their judge saw.

    Attributes:
        done: what the command left.
        asked: how often the server was asked, by the number of the row.
        heads: the first lines of each request.
        sent: bytes that the server sent.
    """

    def __init__(self, folder: Path, rows: Sequence[Row], *, metrics: str = "faithfulness") -> None:
        self.asked: Counter[int] = Counter()
        self._rows = rows
        with serving(self._reply) as server, serving(lambda _: iter([http(200, SOUND)])) as elsewhere:
            self._elsewhere = f"127.0.0.1:{elsewhere.port}"
            url = server.url.replace("http://", f"http://ada:{PASSWORD}@") + f"?api-key={TOKEN}&v=1"
            options = [*judged_by(url), "--metrics", metrics]
            variables = judge_variables(KEY, timeout_s=6.0)
            self.done = score(
                folder, [answer(number) for number in range(len(rows))], *options, variables=variables
            )
            assert elsewhere.requests == [], "no redirect is followed"
        self.heads = [request.partition(b"\r\n\r\n")[0] for request in server.requests]
        self.sent = server.sent

    def wrong(self) -> str:
        """Return what is not as the table says, a line each."""
        found = []
        for number, it in enumerate(self._rows):
            (got,) = self.done.scores[str(number)].values()
            wanted, is_value = (it.state, it.reason, it.requests), got["value"] is not None
            if (got["state"], got["reason"], self.asked[number]) != wanted or is_value != (it.state == "ok"):
                found.append(f"{it.name}: expected {wanted}, got {self.asked[number]} requests and {got}")
        return "\n".join(found)

    def _reply(self, request: bytes) -> Iterator[bytes]:
        found = re.search(rb"row-(\d+)", request)
        assert found is not None
        number = int(found[1])
        self.asked[number] += 1
        for piece in self._rows[number].reply():
            yield piece.replace(ELSEWHERE.encode(), self._elsewhere.encode())


@contextmanager
def serving(reply: Callable[[bytes], Iterator[bytes]]) -> Iterator[RawServer]:
    server = RawServer(reply)
    try:
        yield server
    finally:
        server.stop()


def answer(number: int) -> dict[str, Any]:
    lab = "The lab is in Oslo."
    return {"id": str(number), "query": f"Where is the lab? row-{number}", "answer": lab, "contexts": [lab]}


def no_secret_is_in(folder: Path) -> None:
    for path in folder.iterdir():
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not [secret for secret in SECRETS if secret in text], path.name


def test_each_reply_costs_its_own_score_and_tells_no_secret(tmp_path: Path) -> None:
    judged = Judged(tmp_path, ROWS)
    assert not judged.wrong()
    assert judged.done.status == 0, judged.done.said
    no_secret_is_in(tmp_path)
    assert all(line.isprintable() for line in judged.done.said.splitlines())
    assert "(307), which is not followed: set judge_base_url" in judged.done.said
    assert "refuses the API key (401)" in judged.done.said
    for head in judged.heads:
        assert head.startswith(f"POST /v1/chat/completions?api-key={TOKEN}&v=1 ".encode())
        fields = dict(line.lower().split(b": ", 1) for line in head.splitlines()[1:])
        assert fields[b"authorization"] == f"Basic {LOGIN}".lower().encode(), "a login goes before the key"
        assert fields[b"accept-encoding"] == b"gzip"
        assert b"cookie" not in fields


@pytest.mark.parametrize("busy", BUSY, ids=lambda it: it.name)
def test_a_busy_judge_costs_its_own_score_and_tells_no_secret(tmp_path: Path, busy: Row) -> None:
    judged = Judged(tmp_path, [*ROWS[:11], busy, *ROWS[:11]])
    assert not judged.wrong()
    assert judged.done.status == 0, judged.done.said
    no_secret_is_in(tmp_path)


def test_no_reply_takes_memory(tmp_path: Path) -> None:
    usual = Judged(tmp_path, ROWS[:1])
    judged = Judged(tmp_path, large())
    assert not judged.wrong()
    assert judged.done.peak_mb < usual.done.peak_mb + 20, f"{judged.done.peak_mb} MB, usually {usual.done.peak_mb}"
    assert judged.sent < 200_000_000, "endless replies are left"


def test_a_server_that_asks_for_a_pause_of_hours_is_asked_once(tmp_path: Path) -> None:
    pause = row("too fast, for hours", "judge_unavailable", 1, complaint(429, SAID, f"Retry-After: {'9' * 400}"))
    judged = Judged(tmp_path, [pause])
    assert not judged.wrong()
    no_secret_is_in(tmp_path)


def test_an_embedding_of_other_numbers_has_no_similarity(tmp_path: Path) -> None:
    def vectors(number: str) -> bytes:
        rows = ", ".join(f'{{"index": {place}, "embedding": [{number}, 1.0]}}' for place in range(2))
        return http(200, f'{{"data": [{rows}]}}'.encode())

    sound = row("1.5", None, 1, vectors("1.5"))
    judged = Judged(
        tmp_path,
        [sound, *(row(number[:9], "judge_invalid_output", 1, vectors(number)) for number in NUMBERS)],
        metrics="answer_similarity",
    )
    assert not judged.wrong()
