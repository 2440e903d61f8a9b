"""``make dashboards``: writes the committed files of dashboards/ragtrace_dashboards/dist anew."""

from __future__ import annotations

from pathlib import Path

from ragtrace_dashboards.config import Config
from ragtrace_dashboards.export import generated_files

DIST = Path(__file__).resolve().parent / "dist"


def main() -> None:
    """Write every file of the default configuration into ``dashboards/ragtrace_dashboards/dist``."""
    for name, text in generated_files(Config()).items():
        target = DIST / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
