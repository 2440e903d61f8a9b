"""An application whose children ask: ``METHOD`` is how `multiprocessing` starts them; set up by the environment."""

from __future__ import annotations

import sys

from tests.process.observing import ask

CHILDREN = 3


if __name__ == "__main__":
    ask()
    import multiprocessing  # after the first capture, which has set ragtrace up

    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=ask) for _ in range(CHILDREN)]  # type: ignore[attr-defined]
    for child in children:
        child.start()
    for child in children:
        child.join()
    sys.exit(max(child.exitcode for child in children))
