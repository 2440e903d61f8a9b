"""``make dashboards``: writes the committed boards anew."""

from __future__ import annotations

from pathlib import Path

from ragtrace_dashboards.boards import board_files
from ragtrace_dashboards.config import Config

DIST = Path(__file__).resolve().parent.parent / "dist"


def main() -> None:
    """Write every board of the default configuration into ``dashboards/dist``."""
    DIST.mkdir(exist_ok=True)
    for name, text in board_files(Config()).items():
        (DIST / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
