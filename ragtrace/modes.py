"""Words that settings take and mechanisms act upon."""

from __future__ import annotations

from typing import Literal

ContentMode = Literal["none", "full"]
AttachMode = Literal["child", "link"]
Dialect = Literal["genai", "openinference", "both"]
Grading = Literal["direct5", "umbrela", "umbrela_strict"]
Consensus = Literal["mean", "median"]
StoreTexts = Literal["selected", "all"]
ScorerMode = Literal["thread", "worker"]
WebhookForm = Literal["json", "slack"]
