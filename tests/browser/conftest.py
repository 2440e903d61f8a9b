"""Chromium, and stores and files of a real demo; everything here is slow."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.browser.harness import WIDE, Watched, serving
from tests.command_line import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

HERE = Path(__file__).parent
QUESTIONS = 120
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


class Demo(NamedTuple):
    """A scored file, and the store of the same runs."""

    file: Path
    store: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder as slow."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)


def run_demo(folder: Path, *args: str, questions: int = QUESTIONS) -> Demo:
    """Run a demo, with its store."""
    made = Demo(folder / "demo.jsonl", folder / "demo.sqlite")
    command = [sys.executable, "-m", "ragtrace", "demo", "--fast", "--questions", str(questions), "--port", "0"]
    env = environment(RAGTRACE_STORE=str(made.store), OTEL_TRACES_EXPORTER="none", OTEL_METRICS_EXPORTER="none")
    subprocess.run(
        [*command, "--out", str(made.file), *args], check=True, capture_output=True, env=env, timeout=200
    )
    return made


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The incident of the demo, scored."""
    return run_demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The same questions without the incident."""
    return run_demo(tmp_path_factory.mktemp("calm"), "--no-incident")


@pytest.fixture
def store(demo: Demo, tmp_path: Path) -> Path:
    """A copy of the demo's store, to be written to."""
    return Path(shutil.copy(demo.store, tmp_path / "store.sqlite"))


@pytest.fixture
def demo_copy(demo: Demo, tmp_path: Path) -> Path:
    """A copy of the demo's file, beside which ratings are written."""
    return Path(shutil.copy(demo.file, tmp_path / "demo.jsonl"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    Stopped with its module: while Playwright's synchronous API is open, an event loop runs in this thread, and every
    later test of the process that calls `asyncio.run` would fail.
    """
    if not find_spec("playwright"):
        pytest.skip("playwright is not installed")
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not on this machine")
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=FLAGS) as browser,
    ):
        yield browser


@pytest.fixture
def watch(chromium: Browser) -> Iterator[Callable[..., Watched]]:
    """Open a page on a server: ``watch(url, size=NARROW, is_dark=True, has_scripts=False)``."""
    opened: list[Watched] = []

    def new(base: str, *, size: tuple[int, int] = WIDE, is_dark: bool = False, has_scripts: bool = True) -> Watched:
        context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if is_dark else "light",
            java_script_enabled=has_scripts,
            reduced_motion="reduce",
        )
        context.set_default_timeout(15_000)
        opened.append(Watched(context.new_page(), base))
        return opened[-1]

    yield new
    for watched in opened:
        watched.page.context.close()
    assert not [fault for watched in opened for fault in watched.faults]


@pytest.fixture(scope="session")
def ui(demo: Demo) -> Iterator[str]:
    """The address of `ragtrace ui` over the demo's file."""
    with serving(demo.file, "--read-only") as url:
        yield url
