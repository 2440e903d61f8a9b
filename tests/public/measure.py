"""What of the drawn public applications is read right, wrong with a sign, or wrong in silence.

A sign counts only where it names the fact that is wrong, on the run of which it is wrong.
`python -m tests.public.measure [names]` prints the table, and the share of right applications that carry a sign.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import pkgutil
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module

import ragtrace_langchain
import tests.public
from ragtrace.model import preview
from ragtrace.testing.recording import Recording
from ragtrace_langchain import RagtraceHandler
from ragtrace_llamaindex import instrumented
from tests.public.kit import told


def _gathered(table):
    """Return a table of all draws: each module of this package may have a part of it."""
    names = sorted(it.name for it in pkgutil.iter_modules(tests.public.__path__) if it.name.startswith(_HOLD))
    parts = (getattr(import_module(f"tests.public.{name}"), table, {}) for name in names)
    return {name: value for part in parts for name, value in part.items()}


_HOLD = ("expected", "langchain_", "langgraph_", "llamaindex_", "ninth_")
EXPECTED = _gathered("EXPECTED")
INSTRUMENTED = _gathered("INSTRUMENTED")
IN_BLOCK = _gathered("IN_BLOCK")
WITH_HANDLER = _gathered("WITH_HANDLER")

_EVIDENCE = frozenset({"evidence_unread", "tool_text_guessed", "tool_unused", "own_words_left_out"})
_RUNS = frozenset({"follows_answer", "question_guessed"})
SIGNS_OF = {
    "question": frozenset({"question_guessed"}),
    "answer": frozenset({"answer_guessed", "several_answers"}),
    "pool": _EVIDENCE,
    "prompt": _EVIDENCE,
    "runs": _RUNS,
    "replies": _RUNS,
    "tools": _RUNS,
}
"""The signs that name each fact; "runs" is their number, where that is wrong. No sign names another fact."""


@dataclass(frozen=True)
class Measured:
    """How an application was read.

    Attributes:
        wrong: the facts that are not as a person says.
        silent: those of them that no sign names.
        kept: its recording.
    """

    wrong: frozenset[str]
    silent: frozenset[str]
    kept: Recording

    @property
    def kind(self):
        """Right, signed or silent."""
        return "silent" if self.silent else "signed" if self.wrong else "right"

    @property
    def records(self):
        """The records of its runs."""
        return [run.record for run in self.kept.runs]


def measured(name, **declared):
    """Run an application with what is declared of it, and compare it with what a person says."""
    kept = Recording()
    run(name, kept.recorder, **declared)
    said, expected = told(kept), list(EXPECTED[name])
    if all(one.tokens is None for one in expected):  # its models do not count
        said = [replace(one, tokens=None) for one in said]
    signs = [{sign.name for sign in one.record.signs} for one in kept.runs]
    if len(said) != len(expected):
        pairs = [("runs", set().union(*signs))]
    else:
        pairs = [
            (fact.name, has)
            for one, other, has in zip(said, expected, signs, strict=True)
            for fact in dataclasses.fields(one)
            if getattr(one, fact.name) != getattr(other, fact.name)
        ]
    silent = frozenset(fact for fact, has in pairs if not SIGNS_OF.get(fact, frozenset()) & has)
    return Measured(frozenset(fact for fact, _ in pairs), silent, kept)


def run(name, recorder, **declared):
    """Run an application as its framework is captured: with a handler, in blocks, or instrumented.

    What is asked in blocks builds its index before anything is captured. What an application does side by side is done
    in turns: of threads that race, either would be the first to find its passages.
    """
    if name in INSTRUMENTED:
        with instrumented(recorder, **declared):
            return awaited(INSTRUMENTED[name]())
    if name in IN_BLOCK:
        ask = IN_BLOCK[name]()
        ragtrace_langchain.instrument(recorder, **declared)
        try:
            return awaited(ask(recorder))
        finally:
            ragtrace_langchain.uninstrument()
    return awaited(WITH_HANDLER[name]({"callbacks": [RagtraceHandler(recorder, **declared)], "max_concurrency": 1}))


def awaited(result):
    return asyncio.run(in_turns(result)) if inspect.iscoroutine(result) else result


async def in_turns(result):
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))
    return await result


def main(names):
    """Print how each application is read."""
    kinds, lines, signed, right = Counter(), [], 0, 0
    for name in names or EXPECTED:
        found = measured(name)
        kinds[found.kind] += 1
        if found.kind == "right":
            right += 1
            signed += any(sign.name != "tool_text_guessed" for one in found.records for sign in one.signs)
        lines.append(f"{found.kind:7} {name:34} {' '.join(sorted(found.wrong))}")
        lines += (f"    {line}" for record in found.records if names for line in ("", *preview(record.reading)))
    lines.append(
        f"{', '.join(f'{kinds[kind]} {kind}' for kind in ('right', 'signed', 'silent'))} of {kinds.total()}"
    )
    lines.append(
        f"of {right} that are right {signed} carry a sign beside tool_text_guessed ({signed / max(right, 1):.0%})"
    )
    sys.stdout.write("\n".join((*lines, "")))


if __name__ == "__main__":
    main(sys.argv[1:])
