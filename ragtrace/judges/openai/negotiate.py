"""Finds a server's request form by its refusals, and remembers it.

The ladder of reply formats is strict JSON schema, plain JSON schema, JSON mode with the schema in the prompt, and
text with the schema in the prompt. A refusal (400 or 422) that names the format steps down one rung; one that
names a parameter leaves the parameter out from then on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Rung = Literal["strict_schema", "schema", "json_object", "text"]
RUNGS: tuple[Rung, ...] = ("strict_schema", "schema", "json_object", "text")

SEED = 42

_FORMAT = re.compile(  # of at most 4,000 characters: a complaint
    r"response_format|json_schema|json_object|structured|guided|grammar|\bschema\b|\bformat\b"
)
_LIMIT = re.compile(r"\bmax_(?:completion_)?tokens\b")  # of at most 4,000 characters: a complaint
_OPTIONAL = {  # of at most 4,000 characters: a complaint
    name: re.compile(rf"\b{name}\b") for name in ("temperature", "top_p", "seed")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Request form that a server accepts.

    Attributes:
        rung: the reply format.
        without: parameters that it refuses.
        limit_field: the name of its output limit; reasoning models refuse ``max_tokens``.
    """

    rung: Rung = "strict_schema"
    without: frozenset[str] = frozenset()
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def body(
        self,
        *,
        system: str,
        user: str,
        schema_name: str,
        schema: Mapping[str, object],
        max_output_tokens: int,
        temperature: float,
        seed: int = SEED,
    ) -> dict[str, object]:
        """Return the request without the model."""
        if self.rung in {"json_object", "text"}:
            text = json.dumps(schema, separators=(",", ":"))
            system = f"{system}\nReply with one JSON object of this JSON schema: {text}"
        optional = {"temperature": temperature, "top_p": 1, "seed": seed}
        return {
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            self.limit_field: max_output_tokens,
            **{name: value for name, value in optional.items() if name not in self.without},
            **self._response_format(schema_name, schema),
        }

    def _response_format(self, schema_name: str, schema: Mapping[str, object]) -> dict[str, object]:
        if self.rung == "text":
            return {}
        if self.rung == "json_object":
            return {"response_format": {"type": "json_object"}}
        named = {"name": schema_name, "schema": schema, "strict": self.rung == "strict_schema"}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def after(self, complaint: str, param: str | None = None) -> Dialect | None:
        """Return the dialect to try after a refusal.

        None when the refusal names nothing.

        Args:
            complaint: the server's message.
            param: the parameter at fault, where the server named it apart.

        Example:
            >>> Dialect().after("response_format json_schema is not supported").rung
            'schema'
            >>> Dialect().after("'max_tokens' is not supported with this model").limit_field
            'max_completion_tokens'
            >>> Dialect().after("boom") is None
            True
        """
        said = (param or complaint).lower()
        if not _FORMAT.search(said):
            if _LIMIT.search(said) and self.limit_field == "max_tokens":
                return replace(self, limit_field="max_completion_tokens")
            for name, pattern in _OPTIONAL.items():
                if name not in self.without and pattern.search(said):
                    return replace(self, without=self.without | {name})
            return None
        return self.down()

    def down(self) -> Dialect | None:
        """Return the dialect one rung below; None on the lowest."""
        place = RUNGS.index(self.rung)
        return replace(self, rung=RUNGS[place + 1]) if place + 1 < len(RUNGS) else None


class Ladder:
    """The known dialect of one server and model.

    Many calls use it at once, on any event loop.

    Attributes:
        current: the dialect of the next call.
        is_settled: whether a call succeeded with it.
    """

    def __init__(self) -> None:
        self.current = Dialect()
        self.is_settled = False

    def adapt(self, used: Dialect, complaint: str, param: str | None = None) -> bool:
        """Learn from a refusal of `used`, and return whether to try again.

        A refusal that names nothing steps down too, until a first call has succeeded: some servers answer an
        unknown format with a bare 400.
        """
        if self.current != used:
            return True
        follower = used.after(complaint, param)
        if follower is None and not self.is_settled:
            follower = used.down()
        self.current = follower or used
        return follower is not None

    def settle(self, used: Dialect) -> None:
        """Remember that a call succeeded."""
        self.is_settled = self.is_settled or used == self.current

    def reset(self) -> None:
        """Forget the steps of a probe in which no rung succeeded. The fault was another one."""
        if not self.is_settled:
            self.current = Dialect()


_LADDERS: dict[tuple[str, str], Ladder] = {}


def ladder_for(base_url: str, model: str) -> Ladder:
    """Return the ladder of a server and model, one a process."""
    key = (base_url, model)
    return _LADDERS.get(key) or _LADDERS.setdefault(key, Ladder())
