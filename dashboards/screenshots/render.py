"""Draw the boards with Grafana's own components over a month in a real Prometheus: docs/images/board-*.png.

Run from the repository's root: ``python -m dashboards.screenshots.render [board ...] [--into DIR]``, or
`make screenshots`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from PIL import Image

from dashboards.screenshots.scene import END
from dashboards.screenshots.story import Story
from ragtrace_dashboards.config import Config
from ragtrace_dashboards.groups import recording_groups
from tests.dashboards.month import DAY
from tests.dashboards.server import backfill, record, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"
BOARDS: dict[str, dict[str, str]] = {
    "overview": {},
    "investigate": {"var-workflow": "docs", "var-metric": "faithfulness"},  # as the alert's link does
    "scorer": {},
}
FIRST = "overview"  # once more on the small screen, for the README
SCREENS = {1920: 1080, 1366: 768}
"""Sizes of the screens for which the boards are made, in pixels."""

MAX_BYTES = 400_000


def main(given: list[str]) -> int:
    """Draw the chosen boards, or all; 1 when a program is missing or a picture is too large."""
    parser = argparse.ArgumentParser()
    parser.add_argument("board", nargs="*", default=list(BOARDS), help="of those in BOARDS; all")
    parser.add_argument("--into", type=Path, help="write NAME-WIDTH.png there, for every screen, and nothing else")
    asked = parser.parse_args(given)
    browser = shutil.which("chromium") or ""
    missing = [it for it in ("node", "npm", "chromium", "prometheus", "promtool") if shutil.which(it) is None]
    if missing:
        print(f"screenshots: not on this machine: {', '.join(missing)}", file=sys.stderr)
        return 1
    subprocess.run(["npm", "run", "--silent", "bundle"], cwd=HERE, check=True, timeout=300)
    jobs = [job for name in asked.board for job in _jobs(name, asked.into)]
    with tempfile.TemporaryDirectory() as folder:
        make_month(Path(folder))
        with serving(Path(folder)) as server:
            command = ["node", "shoot.mjs", server.url, json.dumps(jobs)]
            subprocess.run(command, cwd=HERE, check=True, timeout=900, env=os.environ | {"CHROMIUM": browser})
    for job in jobs:
        with Image.open(job["png"]) as drawn:  # a third of the bytes; lines and text stay as sharp
            drawn.convert("RGB").quantize(160, kmeans=2, dither=Image.Dither.NONE).save(job["png"], optimize=True)
    sizes = {job["png"]: Path(job["png"]).stat().st_size for job in jobs}
    for png, size in sizes.items():
        print(f"{Path(png).name}: {size / 1000:.0f} kB")
    return int(max(sizes.values()) > MAX_BYTES)


def make_month(folder: Path) -> None:
    """Write the story, and what the recording rules make of its last days, as Prometheus' blocks."""
    backfill(folder, Story().text())
    rules = [rule for group in recording_groups(Config()) for rule in group.rules]
    record(folder, rules, END - 9 * DAY, END, 600)


def _jobs(name: str, into: Path | None) -> Iterator[dict[str, str | int]]:
    """Yield a picture of a board for each screen; for docs the large ones, and the overview on the small one."""
    query = urlencode({"board": f"ragtrace-{name}", "to": END, **BOARDS[name]})
    large = max(SCREENS)
    for width, height in SCREENS.items():
        if into is not None:
            png = into / f"{name}-{width}.png"
        elif width == large or name == FIRST:
            png = IMAGES / (f"board-{name}.png" if width == large else f"{name}.png")
        else:
            continue
        yield {"query": query, "png": str(png), "width": width, "height": height}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
