"""The runner of the applications: what a person expects of each, and what ragtrace recorded of it.

An application is a class with `expected`, written before the first run, and with those of the four forms that it has:
`ask`, `aask`, `stream` and `astream`. Each call builds the application anew. `captures` names the ways in which its
framework is captured, beside ``none``. Modules named ``*_apps.py`` hold applications; `shop.py` holds the passages that
they search.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragtrace.model import content_id
from tests.apps.shop import TEXTS, WEB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from ragtrace.capture import FinishedRun, Recorder

FORMS = ("ask", "aask", "stream", "astream")
_NAMES = {content_id(text): f"#{name}" for name, text in {**TEXTS, **WEB}.items()}


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A run as its author says it is.

    Attributes:
        question: what the user asked.
        pool: ids of the candidates, best first; ``#name`` for the hash of a passage of the shop.
        selection: ids of what was chosen, None where nothing chose.
        ranks: places in the pool of what was chosen, 0 for a passage that is not there.
        prompt: ids of the passages that the answer was made of, in the prompt's order; None where no prompt was seen.
        answer: what the user was told, "" for nothing.
        outcome: how the run ended.
        cited: ids that the answer cites, in its order.
    """

    question: str
    pool: tuple[str, ...]
    selection: tuple[str, ...] | None = None
    ranks: tuple[int, ...] | None = None
    prompt: tuple[str, ...] | None
    answer: str
    outcome: str = "answered"
    cited: tuple[str, ...] = ()


class Application:
    """One application. Subclasses write `expected` and the forms that they have."""

    expected: ClassVar[tuple[Expected, ...]] = ()
    captures: ClassVar[Mapping[str, Any]] = {}
    raises: ClassVar[bool] = False  # it fails, as its author says

    @classmethod
    def forms(cls) -> list[str]:
        """Return the names of the forms that it has."""
        return [form for form in FORMS if getattr(cls, form, None) is not None]

    def capturing(self, way: str, recorder: Recorder) -> AbstractContextManager[Any]:
        """Return the block in which calls are captured; its value is handed to the form."""
        return self.captures[way](recorder)

    def run(self, form: str, given: Any) -> Any:
        """Return what a form returns, or what it raises; of a stream the list of its pieces."""
        try:
            made = getattr(self, form)(given)
            if form in {"aask", "astream"}:
                made = asyncio.run(_awaited(made))
            return plain(list(made) if form == "stream" else made)
        except Exception as error:
            if not self.raises:
                raise
            return type(error), str(error)


async def _awaited(made: Any) -> Any:
    return [piece async for piece in made] if hasattr(made, "__aiter__") else await made


def plain(value: Any) -> Any:
    """Return a result without what differs from call to call: the ids of messages."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tool_calls"):
        return type(value).__name__, value.content, value.tool_calls
    return (type(value).__name__, value.content) if hasattr(value, "content") else value


def recorded(captured: FinishedRun) -> Expected:
    """Return what was recorded of a run, in the words of `Expected`."""
    record = captured.record
    pool = _ids(p.id for p in record.pool("retrieved"))
    stages = {one.stage for one in record.pools}
    selection = _ids(p.id for p in record.pool("reranked")) if "reranked" in stages else None
    return Expected(
        question=record.query or "",
        pool=pool,
        selection=selection,
        ranks=None if selection is None else tuple(pool.index(one) + 1 if one in pool else 0 for one in selection),
        prompt=None if captured.prompt_ids is None else _ids(captured.prompt_ids),
        answer=record.answer,
        outcome=record.outcome,
        cited=_ids(one for part in record.answer_parts or () for one in part.citations),
    )


def _ids(ids: Any) -> tuple[str, ...]:
    return tuple(_NAMES.get(one, one) for one in ids)


@contextmanager
def nothing(_recorder: Recorder) -> Iterator[None]:
    """Capture nothing."""
    yield None
