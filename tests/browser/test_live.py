"""Pages that update while runs are scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.harness import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.conftest import Demo
    from tests.browser.harness import Watched


def test_an_open_page_shows_runs_that_arrive(demo: Demo, tmp_path: Path, watch: Callable[..., Watched]) -> None:
    lines = demo.file.read_text(encoding="utf-8").splitlines(keepends=True)
    growing = tmp_path / "growing.jsonl"
    growing.write_text("".join(lines[:40]), encoding="utf-8")
    with serving(growing) as url:
        page = watch(url).open()
        page.get_by_text("40 runs,").wait_for()
        with growing.open("a", encoding="utf-8") as stream:
            stream.writelines(lines[40:])
        page.get_by_text(f"{len(lines)} runs,").wait_for()
        page.get_by_role("button", name="Pause updates").click()
        with growing.open("a", encoding="utf-8") as stream:
            stream.write(lines[0].replace('"demo-0001"', '"demo-9999"'))
        page.wait_for_timeout(3_000)  # more than one update
        assert page.get_by_text(f"{len(lines)} runs,").count()
