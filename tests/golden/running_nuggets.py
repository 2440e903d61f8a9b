"""Golden vectors of nuggets: the judge is asked in batches, so its replies are written from what it is shown."""

from __future__ import annotations

import json
import re
from typing import Any

from ragtrace.judges.llm.chat import ChatReply
from ragtrace.judges.llm.judge import LLMJudge
from ragtrace.metrics.eval_context import EvalContext, MetricOptions
from ragtrace.metrics.registry import select
from ragtrace.model import RagRecord
from tests.golden import replies
from tests.golden.running import check, computed, used

KEYS = ("all", "vital", "weighted", "all_strict", "vital_strict", "weighted_strict")


class NuggetChat:
    """Replies from the record's verdicts by the number in each nugget's text.

    Labels stand in the order in which nuggets were made, assignments in that of the list that is looked up.
    A list that is shorter leaves nuggets without a row; one that is longer gives rows with unknown ids.
    """

    name = "golden"

    def __init__(self, verdicts: dict[str, Any], max_scored: int) -> None:
        self._max_scored = max_scored
        self._importance = verdicts.get("importance") or []
        self._assignment = verdicts.get("assignment") or []
        self._listed = verdicts.get("nuggets")
        self._order: list[str] = []

    async def complete(self, *, user: str, schema_name: str, **_: Any) -> ChatReply:
        found = re.search(r"<data-(\d+)>\n(.*)\n</data-\1>", user, re.DOTALL)
        assert found is not None
        data = json.loads(found[2])
        return ChatReply(text=json.dumps(getattr(self, schema_name)(data)))

    def nuggets_create(self, _data: dict[str, Any]) -> dict[str, Any]:
        return {"nuggets": self._texts()}

    def nuggets_label(self, data: dict[str, Any]) -> dict[str, Any]:
        texts = self._texts()
        rows = [
            {"id": int(number), "importance": value}
            for number, text in data["nuggets"].items()
            if (value := at(self._importance, texts.index(text))) is not None
        ]
        return {
            "labels": rows
            + self._extra(self._importance, len(texts), is_last=texts[-1] in data["nuggets"].values())
        }

    def nuggets_assign(self, data: dict[str, Any]) -> dict[str, Any]:
        for text in data["nuggets"].values():
            if text not in self._order:
                self._order.append(text)
        rows = [
            {"id": int(number), "support": value}
            for number, text in data["nuggets"].items()
            if (value := at(self._assignment, self._order.index(text))) is not None
        ]
        n_scored = min(len(self._texts()), self._max_scored)
        return {"assignments": rows + self._extra(self._assignment, n_scored, is_last=len(self._order) == n_scored)}

    def fingerprint(self) -> str:
        return self.name

    async def aclose(self) -> None:
        """Nothing is open."""

    def _texts(self) -> list[str]:
        if isinstance(self._listed, list):
            return self._listed
        number = self._listed if isinstance(self._listed, int) else len(self._importance)
        return [f"nugget {place}" for place in range(1, number + 1)]

    def _extra(self, given: list[Any], known: int, *, is_last: bool) -> list[dict[str, Any]]:
        """Rows about nuggets that were never shown; a full list of more nuggets than are looked up is none."""
        if not is_last or len(given) <= known or len(given) == len(self._texts()):
            return []
        return [{"id": 99, "importance": "okay", "support": "support"}]


def at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


async def nuggets(record: dict[str, Any]) -> None:
    inputs, verdicts = record["inputs"], record["judge_verdicts"]
    contexts = inputs.get("contexts") or inputs.get("passages")
    made = RagRecord(
        id="1",
        query=inputs.get("query", "q") or "",
        answer=inputs.get("answer", "ans") or "",
        pools=used(["What the nuggets are made of."] if contexts is None else contexts),
    )
    options = MetricOptions(max_nuggets=inputs.get("max_scored") or 20)
    judge = replies.judge(record, dict)
    if isinstance(verdicts, dict) and not replies.fails(verdicts):
        judge = LLMJudge(NuggetChat(verdicts, options.max_nuggets))
    results = await computed(select(["nuggets"]), EvalContext(made, judge=judge, options=options))
    expected = record["expected"] or {}
    for key in KEYS:
        if key in expected or record["expected"] is None:
            check(results[f"nuggets_{key}"], expected.get(key), record)


RUNNERS = {"nuggets": nuggets}
