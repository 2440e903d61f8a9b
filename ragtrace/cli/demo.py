"""Command ``ragtrace demo``, a real chain that is scored live."""

from __future__ import annotations

import sys
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ragtrace.cli.io.say import say
from ragtrace.demo.options import DEFAULT_OUT, DEFAULT_PORT, STACK_QUESTIONS, STACK_RATE, DemoOptions
from ragtrace.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAIN_WIDTH = 120
STOP_S = 5.0
_USUAL = DemoOptions()
EPILOG = """\
Asks a real LangChain chain questions about ragtrace's own handbook, scores every answer in the background and shows
it live. Half-way an incident begins: in answers through the app the answerer starts to invent facts. The search of
`ragtrace investigate` finds the fall while it runs, and the demo ends with its diagnosis: what fell, since when, at
which stage and where. Needs no key and no network by default."""


def command(
    *,
    questions: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help=f"Number of questions. Default: {_USUAL.questions}, with --stack {STACK_QUESTIONS}.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=1_000,
            metavar="R",
            help=f"Questions a second. Default: {_USUAL.rate:g}, with --stack {STACK_RATE:g}.",
        ),
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Ask without a pause.")] = False,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed, which repeats a run exactly.")] = _USUAL.seed,
    no_incident: Annotated[
        bool, typer.Option("--no-incident", help="Leave the incident out. No fall is found then.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the scored records there.")] = DEFAULT_OUT,
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, metavar="P", help="Port of the OpenMetrics endpoint. 0 takes a free port."),
    ] = DEFAULT_PORT,
    stack: Annotated[
        Literal["local"] | None,
        typer.Option(help="Run Debian's prometheus and alertmanager beside it, and show the alert that fires."),
    ] = None,
    otlp: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Also send everything to this collector, for example http://localhost:4318."
        ),
    ] = None,
    judge: Annotated[
        str, typer.Option(metavar="NAME", help="Judge: overlap (offline) or openai:MODEL.")
    ] = _USUAL.judge,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Let a real model answer. Needs OPENAI_API_KEY or --base-url."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of --model and --judge.")
    ] = None,
    ui: Annotated[
        bool,
        typer.Option("--ui", help="Serve local pages over the scored records, live. Extra: ui."),
    ] = False,
    save_svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the last frame of the view there, as SVG.", hidden=True),
    ] = None,
) -> int:
    """Watch a real chain being scored, with an incident half-way."""
    if find_spec("langchain_core") is None:
        raise MissingExtra("langchain-core", "langchain")
    if sys.stdout.isatty():  # before the imports: they take 15 s where nothing is compiled or cached yet
        say("ragtrace demo: loading LangChain and the handbook; the first time takes some seconds ...", flush=True)
    from ragtrace.demo.console import PlainConsole
    from ragtrace.demo.session import run_demo

    usual = (STACK_QUESTIONS, STACK_RATE) if stack else (_USUAL.questions, _USUAL.rate)
    options = DemoOptions(
        questions=questions or usual[0],
        rate=rate or usual[1],
        is_fast=fast,
        seed=seed,
        has_incident=not no_incident,
        out=out,
        port=port,
        otlp=otlp,
        judge=judge,
        model=model,
        base_url=base_url,
        stack=stack,
        save_svg=save_svg,
    )
    console = PlainConsole()
    # Without a terminal rich assumes 80 columns, which cut the reasons of na off.
    console = console if console.is_terminal else PlainConsole(width=PLAIN_WIDTH)
    with _pages(out) if ui else nullcontext():
        return run_demo(options, console)


@contextmanager
def _pages(out: Path) -> Iterator[None]:
    """Serve pages over the demo's file; after the demo, until Ctrl-C where a person sits at a terminal."""
    from ragtrace.cli.ui import DEFAULT_PORT as UI_PORT
    from ragtrace.cli.ui import LOOPBACK, check_extra, pages
    from ragtrace.demo.processes import free_port

    check_extra()
    out.touch()  # the demo removes an empty file at its end
    with pages(str(out), address=(LOOPBACK, free_port(UI_PORT))) as (server, url):
        say(f"ragtrace ui: {url} shows {out}", flush=True)
        thread = server.start()
        try:
            yield
            if sys.stdin.isatty():
                say(f"ragtrace ui: {url} still answers; Ctrl-C stops", flush=True)
                with suppress(KeyboardInterrupt):
                    thread.join()
        finally:
            server.should_exit = True
            thread.join(STOP_S)
