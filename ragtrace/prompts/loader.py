"""Reads a judge prompt and its hash from a file."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, TypedDict, cast

from ragtrace.capture.off_loop import off_loop
from ragtrace.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROMPT_IDS = tuple(
    sorted(
        file.name.removesuffix(".toml")
        for file in resources.files("ragtrace.prompts").iterdir()
        if file.name.endswith(".toml")
    )
)


class _PromptFile(TypedDict, total=False):
    """A prompt's file. `length_debias` ends the task; a plain form has the first two fields alone."""

    id: str
    plain_form_of: str
    version: int
    system: str
    task: str
    length_debias: str
    reminder: str
    schema: str
    temperature: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One judge prompt: fixed texts and the JSON schema of the reply.

    Attributes:
        id: name of the prompt, its file and its schema.
        version: raised by hand when the meaning changes; every change of a text changes `hash` anyway.
        system: who the judge is and what a data block is; holds no data.
        task: the instructions; they stand before the data, so that a server can cache them.
        reminder: the instruction repeated after the data.
        schema: JSON schema of the reply.
        temperature: at which the model is asked; 0.0 but for a prompt that wants diversity.
    """

    id: str
    version: int
    system: str
    task: str
    reminder: str
    schema: Mapping[str, object]
    temperature: float = 0.0

    @property
    def hash(self) -> str:
        """8 hex digits over id, version, texts, schema and temperature."""
        parts = (self.id, self.version, self.system, self.task, self.reminder, self.schema, self.temperature)
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


@cache
def load(prompt_id: str) -> Prompt:
    """Return the judge prompt of that id, read once a process.

    Args:
        prompt_id: one of `PROMPT_IDS`.

    Raises:
        ConfigError: there is no such prompt; the message names the nearest one.

    Example:
        >>> load("grades").schema["required"]
        ['grades']
        >>> len(load("audit").hash)
        8
    """
    if prompt_id not in PROMPT_IDS:
        raise ConfigError(f"no judge prompt {prompt_id!r}{nearest(prompt_id, PROMPT_IDS)}")
    own = fields = _read(prompt_id)
    if "plain_form_of" in own:
        fields = _read(own["plain_form_of"]) | {"length_debias": ""}
    return Prompt(
        id=own["id"],
        version=fields["version"],
        system=fields["system"].strip(),
        task=f"{fields['task'].strip()}\n{fields.get('length_debias', '').strip()}".strip(),
        reminder=fields["reminder"].strip(),
        schema=json.loads(fields["schema"]),
        temperature=float(fields.get("temperature", 0.0)),
    )


def plain_forms(prompt_ids: Sequence[str]) -> tuple[str, ...]:
    """Return the prompts without their paragraph on length.

    Prompts without such a paragraph stay as they are. A plain form is a prompt of its own, with its own hash.

    Example:
        >>> plain_forms(("audit", "faithfulness_1to5"))
        ('audit', 'faithfulness_1to5_plain')
    """
    return tuple(f"{name}_plain" if f"{name}_plain" in PROMPT_IDS else name for name in prompt_ids)


@off_loop
def _read(prompt_id: str) -> _PromptFile:
    file = resources.files("ragtrace.prompts").joinpath(f"{prompt_id}.toml")
    return cast("_PromptFile", tomllib.loads(file.read_text(encoding="utf-8")))
