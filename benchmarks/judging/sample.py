"""A sample to count tokens on: four sentences of answer, five contexts of 120 words, four reference facts."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ragtrace.model import AnswerPart, Passage, Pool, RagRecord

SENTENCE = (
    "The annual maintenance plan covers filters, pumps and valves at each customer site, with travel, labour "
    "and parts up to two hundred euros a visit. Consumables are excluded unless the appendix of the signed "
    "contract lists them, and either side may change the plan with four weeks of notice in writing. "
)
ANSWER_TOKENS, CONTEXT_TOKENS, CONTEXTS = 82, 121, 5


class Vocabulary:
    """Counts o200k_base tokens with the copy that llama-index-core brings, so that no network is needed."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("llama_index")
        places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
        folders = [place / "core/_static/tiktoken_cache" for place in places]
        found = [folder for folder in folders if folder.is_dir()]
        if not found or importlib.util.find_spec("tiktoken") is None:
            raise SystemExit("llama-index-core with tiktoken and its vocabulary is needed: make builds it")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(found[0])
        import tiktoken

        self._encoding = tiktoken.get_encoding("o200k_base")

    def count(self, text: str) -> int:
        return len(self._encoding.encode(text, disallowed_special=()))

    def cut(self, text: str, tokens: int) -> str:
        """Return the longest beginning of so many tokens."""
        return next(text[:end] for end in range(tokens * 8, 0, -1) if self.count(text[:end]) == tokens)


def record(vocabulary: Vocabulary, *, with_citations: bool = True) -> RagRecord:
    """Return the sample, with or without a citation in each sentence of its answer."""
    answer = vocabulary.cut(SENTENCE * 3, ANSWER_TOKENS)
    context = vocabulary.cut(SENTENCE * 4, CONTEXT_TOKENS - 2)  # a number behind each takes two
    passages = tuple(Passage(id=f"doc-{i}", text=f"{context} {i}", rank=i) for i in range(1, CONTEXTS + 1))
    quarter = len(answer) // 4 + 1
    parts = tuple(
        AnswerPart(text=answer[i * quarter : (i + 1) * quarter], citations=(f"doc-{i + 1}",)) for i in range(4)
    )
    return RagRecord(
        id="1",
        query="What does the annual maintenance plan cover?",
        answer=answer,
        reference=vocabulary.cut(SENTENCE * 2, 60),
        pools=(Pool(stage="retrieved", passages=passages), Pool(stage="used", passages=passages)),
        answer_parts=parts if with_citations else (),
    )


def another(given: RagRecord, number: int) -> RagRecord:
    """Return the sample with passages of its own, so that no cache helps."""
    pools = tuple(
        replace(pool, passages=tuple(replace(p, text=f"{p.text[:-6]} {number:05}") for p in pool.passages))
        for pool in given.pools
    )
    return replace(given, id=str(number), pools=pools)


CLAIMS = [f"The plan covers thing {i} at each site of the customer." for i in range(1, 7)]


def verdicts(count: int) -> list[dict[str, Any]]:
    return [
        {"id": i, "verdict": "supported", "sources": [1 + i % CONTEXTS], "reason": ""} for i in range(1, count + 1)
    ]


# What a judge that reads everything and finds nothing wrong replies, by the name of the schema.
REPLIES: dict[str, Any] = {
    "nuggets_create": {"nuggets": [f"the plan covers thing {i} at customer sites" for i in range(1, 11)]},
    "nuggets_label": {
        "labels": [{"id": i, "importance": "vital" if i % 2 else "okay"} for i in range(1, 11)],
    },
    "nuggets_assign": {"assignments": [{"id": i, "support": "support"} for i in range(1, 11)]},
    "audit": {
        "sufficient": True,
        "attempted": True,
        "noncommittal": False,
        "claims": CLAIMS,
        "verdicts": verdicts(6),
        "citations": [{"part": i, "cites": str(i), "support": "full"} for i in range(1, 5)],
    },
    "questions": {"questions": [{"question": f"What does plan {i} cover?", "noncommittal": False} for i in "abc"]},
    "grades": {"grades": [{"id": i, "grade": 4} for i in range(1, CONTEXTS + 1)]},
    "relevance": {"verdicts": [{"id": i, "relevant": True} for i in range(1, CONTEXTS + 1)]},
    "facts": {"facts": CLAIMS[:4], "attributions": [{"id": i, "sources": [1]} for i in range(1, 5)]},
    "claims": {"answer_claims": CLAIMS, "reference_claims": CLAIMS[:4]},
    "claim_verdicts": {"verdicts": [{"id": i, "verdict": "supported"} for i in range(1, 11)]},
    "claim_sources": {"table": [{"id": i, "sources": [1 + i % CONTEXTS]} for i in range(1, 11)]},
    "entities": {
        "reference_entities": ["two hundred euros", "four weeks"],
        "context_entities": ["two hundred euros", "four weeks"],
    },
}
