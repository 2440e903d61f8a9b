"""Draw the boards with Grafana's own components over a month in a real Prometheus: docs/images/board-*.png.

Run from the repository's root: ``python -m dashboards.screenshots.render [board ...]``, or `make screenshots`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboards.screenshots.story import END, Story

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"
WIDTH_PX = 1600
METRICS = "faithfulness,answer_relevance,harm_at_k"
BOARDS: dict[str, dict[str, str]] = {
    "overview": {"var-metric": METRICS},
    "investigate": {},
    "retrieval": {},
    "scorer": {},
}
FIRST_SCREEN = "overview"  # once more, 1600 x 900, for the README
MAX_BYTES = 400_000


def main(chosen: list[str]) -> int:
    """Draw the chosen boards, or all; 1 when a program is missing or a picture is too large."""
    missing = [it for it in ("node", "npm", "prometheus", "promtool") if shutil.which(it) is None]
    if chromium() is None:
        missing.append("chromium")
    if missing:
        print(f"screenshots: not on this machine: {', '.join(missing)}", file=sys.stderr)
        return 1
    subprocess.run(["npm", "run", "--silent", "bundle"], cwd=HERE, check=True, timeout=300)
    jobs = [job for name in chosen or BOARDS for job in _jobs(name)]
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder)) as url:
        command = ["node", "shoot.mjs", url, json.dumps(jobs)]
        environment = os.environ | {"CHROMIUM": str(chromium())}
        subprocess.run(command, cwd=HERE, check=True, timeout=900, env=environment)
    sizes = {job["png"]: Path(job["png"]).stat().st_size for job in jobs}
    for png, size in sizes.items():
        print(f"{Path(png).name}: {size / 1000:.0f} kB")
    return int(max(sizes.values()) > MAX_BYTES)


def chromium() -> str | None:
    """Path of the browser, None without one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    """Run a Prometheus over the story's month; its address."""
    with (folder / "month.txt").open("w") as out:
        out.writelines(Story.until(END).text())
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "--max-block-duration=720h", "--quiet"]
    subprocess.run([*blocks, folder / "month.txt", folder / "data"], check=True, capture_output=True, timeout=600)
    (folder / "prometheus.yml").write_text("global: {}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
    ]  # fmt: skip
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process, folder / "log")
            yield url
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):  # noqa: S310 - http on loopback
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"prometheus does not start: {log.read_text()}") from None
            time.sleep(0.1)


def _jobs(name: str) -> Iterator[dict[str, Any]]:
    query = "&".join(f"{key}={value}" for key, value in _address(name).items())
    yield {"query": query, "png": str(IMAGES / f"board-{name}.png"), "width": WIDTH_PX}
    if name == FIRST_SCREEN:
        yield {"query": query, "png": str(IMAGES / "overview.png"), "width": WIDTH_PX, "height": 900}


def _address(name: str) -> dict[str, str]:
    return {"board": f"ragtrace-{name}", "to": str(END), **BOARDS[name]}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
