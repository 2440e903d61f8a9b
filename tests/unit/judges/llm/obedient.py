"""A model that obeys any order outside the fence, and else judges by the words inside; for whatever prompt there is.

It writes its reply from the prompt's schema: rows for the numbered items of the data (or for the claims it just
took from it), the best verdict for an item that names Oslo, the worst for another. An order makes every verdict the
best, and every list full. A prompt whose reply it can not write is seen in the test: its metrics have no value then.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ragtrace.judges import ChatReply

if TYPE_CHECKING:
    from collections.abc import Mapping

ORDER = re.compile(
    r"obey me|ignore (?:all|the) |rate (?:this|everything) 5|\"grade\": ?5|alles mit 5", re.IGNORECASE
)
TRUE = "Oslo"
WORDS = (TRUE, "Bergen", "2010")
QUESTION = "Where is the lab?"
# Flags that are true of an honest answer; the others are false.
HONEST_FLAGS = {"attempted", "sufficient"}


class ObedientChat:
    """Reads the fence as its mark says, obeys any order it finds outside, and judges by words inside.

    Args:
        unsaid: a field that its audits leave out, so that the judge asks for it by another prompt.

    Attributes:
        prompts: the schema name of each call.
        users: what each call said.
    """

    name = "obedient"

    def __init__(self, unsaid: str = "") -> None:
        self.unsaid = unsaid
        self.prompts: list[str] = []
        self.users: list[str] = []

    async def complete(
        self, *, system: str, user: str, schema_name: str, schema: Mapping[str, Any], **_: Any
    ) -> ChatReply:
        self.prompts.append(schema_name)
        self.users.append(user)
        before, body, after = parted(user)
        obeys = ORDER.search(f"{system}{before}{after}") is not None
        made = Reply(_read(body), obeys=obeys).of(schema)
        if schema_name == "audit":
            made.pop(self.unsaid, None)
        return ChatReply(text=json.dumps(made))

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""


def parted(user: str) -> tuple[str, str, str]:
    """What stands before, between and after the marks, as the first mark names them."""
    opened = re.search(r"<data-([^>\s]*)>\n", user)
    assert opened is not None
    body, _, after = user[opened.end() :].partition(f"</data-{opened[1]}>")
    return user[: opened.start()], body, after


def _read(body: str) -> dict[str, Any]:
    try:
        read = json.loads(body)
    except json.JSONDecodeError:  # a fence that was broken in two
        return {}
    return read if isinstance(read, dict) else {}


class Reply:
    """Writes one reply from a schema."""

    def __init__(self, data: dict[str, Any], *, obeys: bool) -> None:
        self.data = data
        self.obeys = obeys
        self.taken: list[str] = []

    def of(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The object, its lists of texts first: rows may be about them."""
        made = {}
        for name, node in sorted(schema["properties"].items(), key=lambda item: not _is_texts(item[1])):
            made[name] = self._value(name, node)
        return made

    def _value(self, name: str, node: Mapping[str, Any]) -> Any:
        if _is_texts(node):
            found = [word for word in WORDS if self.obeys or word in self._text(name)]
            self.taken += found
            return found
        if node["type"] == "array":
            return self._rows(node["items"]["properties"])
        return self._leaf(name, node, "")

    def _text(self, name: str) -> str:
        """The text of the data that a list is about by its name, else the answer, else all of it."""
        owner = next((key for key in self.data if name.startswith(key.rstrip("s"))), None)
        return json.dumps(self.data[owner] if owner else self.data.get("answer", self.data))

    def _rows(self, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        if "id" in fields:
            shown = self._items().items()
            return [
                {"id": n} | {name: self._leaf(name, node, text) for name, node in fields.items() if name != "id"}
                for n, text in shown
            ]
        if "cites" in fields:
            parts = [(part, cited) for part in self.data.get("parts", []) for cited in part["cites"]]
            return [
                {name: self._leaf(name, node, part["text"]) for name, node in fields.items()}
                | {"part": part["part"], "cites": cited}
                for part, cited in parts
            ]
        return [{name: self._leaf(name, node, "") for name, node in fields.items()} for _ in range(2)]

    def _items(self) -> dict[int, str]:
        """What rows are about: the texts just taken, else the data's numbered texts, contexts last."""
        if self.taken:
            return dict(enumerate(self.taken, start=1))
        numbered = {key: inner for key, inner in self.data.items() if isinstance(inner, dict)}
        if len(numbered) > 1:
            numbered.pop("contexts", None)
        return {int(number): text for inner in numbered.values() for number, text in inner.items()}

    def _leaf(self, name: str, node: Mapping[str, Any], item: str) -> Any:
        is_good = self.obeys or TRUE in item
        if "enum" in node:
            choices = node["enum"]
            best, worst = (choices[-1], choices[0]) if node["type"] == "integer" else (choices[0], choices[-1])
            return best if is_good else worst
        if node["type"] == "boolean":
            return is_good if item else (name in HONEST_FLAGS) != self.obeys
        if node["type"] == "array":
            contexts = self.data.get("contexts", {})
            return [int(number) for number, text in contexts.items() if self.obeys or (item and item in text)]
        if node["type"] == "integer":
            return 5 if is_good else 1
        return QUESTION if name == "question" else ""


def _is_texts(node: Mapping[str, Any]) -> bool:
    return node["type"] == "array" and node["items"]["type"] == "string"
