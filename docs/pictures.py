"""Pictures of README and docs, each made by one target of the Makefile.

Run from the repository's root: ``python -m docs.pictures ui-screenshots``, or `make ui-screenshots`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
TARGETS = {
    "pictures": ("calibrate.png", "compare.png", "demo.svg"),
    "screenshots": (
        "board-investigate.png",
        "board-overview.png",
        "board-scorer.png",
        "overview.png",
    ),
    "ui-screenshots": (
        "ui-bad-answer.png",
        "ui-calibrate.png",
        "ui-compare.png",
        "ui-investigate.png",
        "ui-label.png",
        "ui-overview-dark.png",
        "ui-overview.png",
        "ui-queue.png",
        "ui-run-narrow.png",
        "ui-run.png",
        "ui-runs.png",
    ),
    "phoenix-screenshot": ("phoenix.png",),
}
"""Pictures of `IMAGES` by the target that makes them."""
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main(target: str) -> int:
    """Make the pictures of one target."""
    makers = {"pictures": make_plots, "ui-screenshots": make_ui, "phoenix-screenshot": make_phoenix}
    makers[target]()
    for name in TARGETS[target]:
        print(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB")
    return 0


def make_plots() -> None:
    """Make the pictures that commands write: the demo's view, and the plots of two how-to pages."""
    ragtrace = [sys.executable, "-m", "ragtrace"]
    with tempfile.TemporaryDirectory() as folder:
        demo = [*ragtrace, "demo", "--port", "0", "--save-svg", str(IMAGES / "demo.svg")]
        subprocess.run(demo, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for page, picture in (("calibrate.md", "calibrate.png"), ("compare.md", "compare.png")):
            run_example(ROOT / "docs" / "how-to" / page, picture, Path(folder))
            shutil.copy(Path(folder) / picture, IMAGES / picture)


def run_example(page: Path, picture: str, folder: Path) -> None:
    """Run the code blocks of a page up to the commands that write a picture."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, code in _BLOCK.findall(page.read_text(encoding="utf-8")):
        command = [sys.executable, "-c", code] if language == "python" else ["sh", "-ec", code]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PATH": path})
        if picture in code:
            return
    raise SystemExit(f"{page}: no command writes {picture}")


def make_ui() -> None:
    """Make the pictures of `ragtrace ui`."""
    from tests.browser.screenshots import shoot

    shoot(IMAGES)


def make_phoenix() -> None:
    """Make the picture of a run in a real Phoenix."""
    from tests.phoenix.screenshot import shoot

    shoot(IMAGES / "phoenix.png")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
