"""``ragtrace demo``: a real chain, scored live, with an incident half-way."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrace.cli.io.arguments import pace, port, positive
from ragtrace.cli.io.say import say
from ragtrace.demo.options import DEFAULT_OUT, DEFAULT_PORT, STACK_QUESTIONS, STACK_RATE, DemoOptions

if TYPE_CHECKING:
    from typing import Any

PLAIN_WIDTH = 120
_DESCRIPTION = """\
Asks a real LangChain chain questions about ragtrace's own handbook, scores every answer in the background and shows
it live. Half-way an incident begins: the answerer starts to invent facts. The drift detector says when and why
faithfulness fell. Needs no key and no network by default."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command ``demo``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "demo", help="watch a real chain being scored, with an incident half-way", description=_DESCRIPTION
    )
    defaults = DemoOptions()
    add = parser.add_argument
    counts = f"how many to ask ({defaults.questions}; {STACK_QUESTIONS} with --stack)"
    add("--questions", type=positive, metavar="N", help=counts)
    add(
        "--rate",
        type=pace,
        metavar="R",
        help=f"questions a second ({defaults.rate:g}; {STACK_RATE:g} with --stack)",
    )
    add("--fast", action="store_true", help="ask without a pause")
    add("--seed", type=int, default=defaults.seed, metavar="S", help="repeats a run exactly (%(default)s)")
    add("--no-incident", action="store_true", help="leave the incident out: the detector stays quiet")
    add("--out", type=Path, default=DEFAULT_OUT, metavar="FILE", help="scored records (%(default)s)")
    add(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        metavar="P",
        help="OpenMetrics endpoint (%(default)s; 0: any free)",
    )
    add(
        "--stack",
        choices=("local",),
        help="local: Debian's prometheus and alertmanager run beside it; shows the alert that the incident fires",
    )
    add("--otlp", metavar="URL", help="send everything to this collector as well, e.g. http://localhost:4318")
    add("--judge", default=defaults.judge, metavar="NAME", help="overlap (offline) or openai:MODEL (%(default)s)")
    add("--model", metavar="NAME", help="a real model answers; needs OPENAI_API_KEY or --base-url")
    add("--base-url", metavar="URL", help="OpenAI-compatible server of --model and --judge")
    add("--save-svg", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the demo and return its exit status; see `ragtrace.demo.session.run_demo`."""
    if sys.stdout.isatty():  # before the imports: they take 15 s where nothing is compiled or cached yet
        say("ragtrace demo: loading LangChain and the handbook; the first time takes some seconds ...", flush=True)
    from ragtrace.demo.console import PlainConsole
    from ragtrace.demo.session import run_demo

    usual = DemoOptions()
    questions, rate = (STACK_QUESTIONS, STACK_RATE) if args.stack else (usual.questions, usual.rate)
    options = DemoOptions(
        questions=args.questions or questions,
        rate=args.rate or rate,
        is_fast=args.fast,
        seed=args.seed,
        has_incident=not args.no_incident,
        out=args.out,
        port=args.port,
        otlp=args.otlp,
        judge=args.judge,
        model=args.model,
        base_url=args.base_url,
        stack=args.stack,
        save_svg=args.save_svg,
    )
    console = PlainConsole()
    # Without a terminal rich assumes 80 columns, which cut the reasons of na off.
    return run_demo(options, console if console.is_terminal else PlainConsole(width=PLAIN_WIDTH))
