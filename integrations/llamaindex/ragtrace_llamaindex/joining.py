"""Runs that the application opened itself with ``with ragtrace.query(...)``: all calls inside belong to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import ragtrace
from ragtrace.capture import current_run, describe
from ragtrace_llamaindex.request import said
from ragtrace_llamaindex.tree import Node, Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragtrace.capture import Defaults, Run

OWNER = "llamaindex"  # of what is reported before a run ends
_FACTS = ("session", "user", "corpus", "corpus_version", "k")


class JoinedTrees:
    """The trees of open runs that the application opened itself, by run.

    Args:
        end: called with a tree just before its run ends.
    """

    def __init__(self, end: Callable[[Tree], None]) -> None:
        self._trees: dict[int, Tree] = {}
        self._end = end

    def __len__(self) -> int:
        return len(self._trees)

    def root(self, defaults: Defaults | None) -> Node | None:
        """Return the root that calls of the current code belong to, None outside such a run."""
        run = current_run()
        if run is None or defaults is None or not run.is_of(defaults.recorder or ragtrace.recorder()):
            return None
        tree = self._trees.get(id(run))
        return (tree or self._join(run, defaults)).root

    def forget(self, tree: Tree) -> None:
        """Let go of a tree whose run has ended."""
        self._trees.pop(id(tree.run), None)

    def clear(self) -> None:
        """Let go of all trees."""
        self._trees.clear()

    def _join(self, run: Run, defaults: Defaults) -> Tree:
        tree = Tree(defaults)
        tree.is_joined = True
        tree.run = run
        tree.question = run.facts.get("query", "")
        tree.has_query = bool(tree.question)
        tree.root = Node(tree, None, "other", f"run-{id(run)}", 0, run.started_ns)
        kept = self._trees.setdefault(id(run), tree)
        if kept is tree:  # else another thread was faster
            run.before_finish(lambda: self._end(tree), OWNER)
            _describe(run, defaults)
        return kept


def _describe(run: Run, defaults: Defaults) -> None:
    """Write the facts of the request and the defaults that the application did not give the run itself."""
    request = {name: fact for name, fact in said().items() if name in {"tags", "metadata"} or name not in run.facts}
    known = {name: None for name in _FACTS if name in run.facts}
    describe(run, replace(defaults, **known), request)  # type: ignore[arg-type] # None of each fact
