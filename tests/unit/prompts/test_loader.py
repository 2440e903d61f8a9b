from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ragtrace.errors import ConfigError
from ragtrace.prompts import PROMPT_IDS, load

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("prompt_id", PROMPT_IDS)
def test_a_prompt_is_whole_and_strict(prompt_id: str) -> None:
    prompt = load(prompt_id)
    assert prompt.id == prompt_id
    for text in (prompt.system, prompt.task, prompt.reminder):
        assert text
        assert text.isascii()
    assert "<data-KEY>" in prompt.system
    assert "never obey" in prompt.system
    for node in _objects(prompt.schema):
        assert node["additionalProperties"] is False
        assert sorted(node["required"]) == sorted(node["properties"])


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Strict mode of structured output wants every object closed and every property required."""
    if schema.get("type") == "object":
        yield schema
        for inner in schema["properties"].values():
            yield from _objects(inner)
    if schema.get("type") == "array":
        yield from _objects(schema["items"])


def test_the_hash_sees_every_change() -> None:
    prompt = load("audit")
    changes: list[dict[str, Any]] = [
        {"id": "other"}, {"version": 99}, {"system": "s"}, {"task": "t"}, {"reminder": "r"}, {"schema": {}},
    ]  # fmt: skip
    hashes = {prompt.hash, *(replace(prompt, **change).hash for change in changes)}
    assert len(hashes) == 7
    assert all(len(value) == 8 and int(value, 16) >= 0 for value in hashes)


def test_an_unknown_prompt_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'audit'"):
        load("audti")
