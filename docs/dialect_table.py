"""``python -m docs.dialect_table``: write the scores of one application, dialect by dialect, into their page."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ragtrace.ingest.dialects.registry import all_dialects
from ragtrace.ingest.reading import LACKS
from ragtrace.judges.offline.embedder import OverlapEmbedder
from ragtrace.judges.offline.judge import OverlapJudge
from ragtrace.metrics.eval_context import EvalContext
from ragtrace.metrics.evaluate import evaluate
from ragtrace.metrics.registry import select
from ragtrace.model import Labels
from tests.ingest.recorded import NAMES, runs_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ragtrace.ingest.reading import ReadRun
    from ragtrace.model import MetricResult, RagRecord

PAGE = Path(__file__).resolve().parent / "reference" / "dialects.md"
BEGIN, END = "<!-- tables: made by docs/dialect_table.py -->\n", "<!-- tables: end -->\n"
METRICS = (
    "faithfulness",
    "invented_specifics",
    "answer_similarity",
    "no_answer",
    "p_at_k",
    "mrr",
    "ndcg",
    "ra_nwg",
)
NUMBERS = ("faithfulness", "invented_specifics", "answer_similarity", "answered", "p_at_k", "mrr", "ndcg_at_k",
           "ra_nwg_at_k", "n_recall4_at_k")  # fmt: skip
GRADES = {"returns": 5, "refunds": 3, "warranty": 2, "shipping": 2, "express": 5, "gift-cards": 1}
FRAMEWORKS = {"LangChain": ("langchain",), "LlamaIndex": ("llamaindex", "llama-index", "llama_index")}


def columns(framework: str) -> list[str]:
    """Return the newest recordings over a framework, our own callback with content first."""
    words = FRAMEWORKS[framework]
    newest: dict[str, str] = {}
    for name in NAMES:  # sorted, so that a later version replaces an earlier one
        package = name.rpartition("-")[0]
        if any(word in name for word in words) and _is_read(name):
            newest[name if name.startswith("ragtrace-") else package] = name
    return sorted(
        newest.values(), key=lambda name: (not name.endswith("-full"), not name.startswith("ragtrace"), name)
    )


def _is_read(name: str) -> bool:
    return name.partition("-")[0] in all_dialects()


def scores_of(runs: Iterable[ReadRun]) -> list[list[MetricResult]]:
    """Return the results of each run, with gold labels and the offline judge."""
    return [_evaluated(run.record) for run in runs]


def _evaluated(record: RagRecord) -> list[MetricResult]:
    labelled = replace(record, labels=Labels(grades=GRADES, label_scope="gold"))
    case = EvalContext(labelled, judge=OverlapJudge(), embedder=OverlapEmbedder())
    return asyncio.run(evaluate(select(METRICS), case))


def score_table(framework: str) -> str:
    """Return one row a number and one column a recording, with the cells of all questions."""
    names = columns(framework)
    found = {name: scores_of(runs_of(name)) for name in names}
    rows = [f"| {framework} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for key in NUMBERS:
        cells = [_cell(key, found[name]) for name in names]
        rows.append(f"| `{key}` | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _cell(key: str, runs: Iterable[list[MetricResult]]) -> str:
    shown = [_shown(next(result for result in results if result.name == key)) for results in runs]
    return shown[0] if len(set(shown)) == 1 else "; ".join(shown)


def _shown(result: MetricResult) -> str:
    return f"{result.value:.2f}" if result.value is not None else f"{result.state} ({result.reason})"


def lacks_table() -> str:
    """Return one row a recording with the names of what its traces lack, and the sentence of each name below."""
    rows = ["| recording | runs | lacks |", "|---|---|---|"]
    for name in filter(_is_read, NAMES):
        runs = runs_of(name)
        lacking = dict.fromkeys(lack for run in runs for lack in run.lacks)
        named = ", ".join(f"`{lack}`" for lack in lacking) or "nothing"
        rows.append(f"| {name} | {len(runs)} | {named if runs else 'all texts'} |")
    rows += ["", "| lack | meaning |", "|---|---|"]
    rows += [f"| `{name}` | {sentence} |" for name, sentence in LACKS.items()]
    rows += ["", "| dialect | may lack | reason |", "|---|---|---|"]
    for name, dialect in all_dialects().items():
        rows += [f"| {name} | `{lack}` | {sentence} |" for lack, sentence in dialect.lacks.items()]
    return "\n".join(rows) + "\n"


def tables() -> str:
    """Return all tables of the page."""
    return "\n".join([*map(score_table, FRAMEWORKS), lacks_table()])


def with_tables(text: str) -> str:
    """Return the page's text with today's tables between the two marks."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}{tables()}{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the tables into the page."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
