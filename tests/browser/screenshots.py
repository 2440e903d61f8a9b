"""Pictures of `ragtrace ui` over a demo, for the docs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.browser.conftest import FLAGS, Demo, run_demo
from tests.browser.harness import serving
from tests.command_line import environment

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZE = (1280, 820)
NARROW = (390, 844)
README = Path(__file__).parents[2] / "README.md"
README_WIDTH = 860
"""Width of a README's column on a code host, in pixels; at it the picture's text is as large as the README's."""
MARGIN = 8
MOST_BYTES = 250_000
LABELS = 40
QUESTIONS = 300
STEP_S = 60.0


def shoot(folder: Path) -> None:
    """Run two demos, and write a picture of each page."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("ui-screenshots: chromium is not on this machine")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        after, before = (
            _demo(Path(name) / it, *args) for it, args in (("after", ()), ("before", ("--no-incident",)))
        )
        with (
            playwright.chromium.launch(executable_path=program, args=FLAGS) as browser,
            serving(after.file, "--compare", str(before.file)) as url,
        ):
            _shoot_all(browser, url, folder)
            shoot_bad_answer(browser, folder)
    for path in sorted(folder.glob("ui-*.png")):
        with Image.open(path) as drawn:  # a third of the bytes; lines and text stay as sharp
            drawn.convert("RGB").quantize(160, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{path.name} has {path.stat().st_size} bytes, more than {MOST_BYTES}")


def _demo(folder: Path, *args: str) -> Demo:
    folder.mkdir()
    made = run_demo(folder, *args, questions=QUESTIONS)
    refuse_failures(made.file)
    spread(made.file)
    return made._replace(file=made.file.rename(folder.with_suffix(".jsonl")))


def refuse_failures(file: Path) -> None:
    """Fail where the judge failed, so that no picture shows a demo without scores."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    failed = sum(score["state"] == "error" for row in rows for score in row["scores"].values())
    if failed or len(rows) != QUESTIONS:
        raise SystemExit(f"ui-screenshots: the demo scored {len(rows)} of {QUESTIONS} runs with {failed} errors")


def spread(file: Path) -> None:
    """Set the times of the runs a minute apart, so that a picture shows hours and not seconds."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    end = rows[-1]["ended"]
    for place, row in enumerate(rows):
        row["started"], row["ended"] = (
            end - (len(rows) - place) * STEP_S + it for it in (0.0, row["ended"] - row["started"])
        )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _shoot_all(browser: Browser, url: str, folder: Path) -> None:
    context = browser.new_context(
        viewport={"width": SIZE[0], "height": SIZE[1]}, locale="en-GB", timezone_id="UTC", reduced_motion="reduce"
    )
    page = context.new_page()

    def save(name: str, path: str = "") -> None:
        if path:
            page.goto(url + path)
        page.wait_for_timeout(400)  # charts are drawn
        page.screenshot(path=folder / f"ui-{name}.png")

    page.goto(url)
    page.get_by_text(f"{QUESTIONS} runs").first.wait_for()
    save("overview")
    page.emulate_media(color_scheme="dark")
    save("overview-dark")
    page.emulate_media(color_scheme="light")
    save("investigate", "/investigate")
    save("runs", "/runs?verdict=unsupported")
    page.locator("[data-row]").nth(1).click()
    page.locator("a.claim-mark").last.hover()
    save("run")
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    save("run-narrow")
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
    _label(page, url)
    save("label")
    save("queue", "/queue?metric=faithfulness")
    save("calibrate", "/calibrate?metric=faithfulness")
    save("compare", "/compare?metric=faithfulness")
    context.close()


def shoot_bad_answer(browser: Browser, folder: Path) -> None:
    """Run README's first lines, and write a picture of their answer with its false claim."""
    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(
            [sys.executable, "-c", code], cwd=name, check=True, stderr=subprocess.DEVNULL, env=environment()
        )
        with serving(Path(name) / "scores.sqlite") as url:
            page = browser.new_page(
                viewport={"width": README_WIDTH, "height": SIZE[1]}, device_scale_factor=2, reduced_motion="reduce"
            )
            page.goto(f"{url}/runs")
            page.locator("[data-row]").first.click()
            page.get_by_text("not supported · support 0.00").wait_for()
            begin = page.get_by_role("heading", name="How do I cancel?").bounding_box()
            end = page.get_by_role("region", name="Answer").bounding_box()
            assert begin is not None
            assert end is not None
            top, bottom = begin["y"] - MARGIN, end["y"] + end["height"] + MARGIN
            page.screenshot(
                path=folder / "ui-bad-answer.png",
                clip={"x": 0, "y": top, "width": README_WIDTH, "height": bottom - top},
            )
            page.close()


def _label(page: Page, url: str) -> None:
    """Rate runs as a person who finds each invented sentence bad, and one answer in ten bad without one."""
    page.goto(f"{url}/label?metric=faithfulness")
    for place in range(LABELS):
        before = page.url
        is_bad = bool(re.search(r"\d{4}", page.locator(".answer").inner_text())) or place % 10 == 9
        agrees = page.locator("[data-press=a]", has_text="bad" if is_bad else "good").count()
        page.keyboard.press("a" if agrees else "d")
        page.wait_for_url(lambda address: address != before)  # noqa: B023 - called within the turn
