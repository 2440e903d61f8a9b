"""Draw the boards with Grafana's own components over a month in a real Prometheus: docs/images/board-*.png.

Run from the repository's root: ``python -m dashboards.screenshots.render [board ...]``, or `make screenshots`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from dashboards.screenshots.scene import END
from dashboards.screenshots.story import Story
from tests.dashboards.server import backfill, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"
WIDTH_PX = 1600
METRICS = "faithfulness,context_recall,harm_at_k"
BOARDS: dict[str, dict[str, str]] = {
    "overview": {"var-metric": METRICS},
    "investigate": {"var-workflow": "docs"},  # as the alert's link does
    "retrieval": {},
    "scorer": {},
}
FIRST_SCREEN = "overview"  # once more, 1600 x 900, for the README
MAX_BYTES = 400_000


def main(chosen: list[str]) -> int:
    """Draw the chosen boards, or all; 1 when a program is missing or a picture is too large."""
    browser = shutil.which("chromium") or ""
    missing = [it for it in ("node", "npm", "chromium", "prometheus", "promtool") if shutil.which(it) is None]
    if missing:
        print(f"screenshots: not on this machine: {', '.join(missing)}", file=sys.stderr)
        return 1
    subprocess.run(["npm", "run", "--silent", "bundle"], cwd=HERE, check=True, timeout=300)
    jobs = [job for name in chosen or BOARDS for job in _jobs(name)]
    with tempfile.TemporaryDirectory() as folder:
        backfill(Path(folder), Story().text())
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


def _jobs(name: str) -> Iterator[dict[str, str | int]]:
    query = "&".join(f"{key}={value}" for key, value in _address(name).items())
    yield {"query": query, "png": str(IMAGES / f"board-{name}.png"), "width": WIDTH_PX}
    if name == FIRST_SCREEN:
        yield {"query": query, "png": str(IMAGES / "overview.png"), "width": WIDTH_PX, "height": 900}


def _address(name: str) -> dict[str, str]:
    return {"board": f"ragtrace-{name}", "to": str(END), **BOARDS[name]}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
