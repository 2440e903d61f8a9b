"""An application whose children ask: ``METHOD`` is how `multiprocessing` starts them; set up by the environment."""

from __future__ import annotations

import sys

import ragtrace

CHILDREN = 3


def ask(question):
    with ragtrace.query(question) as run:
        run.retrieved([{"id": "a", "text": "The lab is in Oslo.", "score": 0.9}])
        run.answered("The lab is in Oslo.")


if __name__ == "__main__":
    ask("parent?")
    import multiprocessing  # after the first capture, which has set ragtrace up

    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=ask, args=(f"{number}?",)) for number in range(CHILDREN)]  # type: ignore[attr-defined]
    for child in children:
        child.start()
    for child in children:
        child.join()
    sys.exit(max(child.exitcode for child in children))
