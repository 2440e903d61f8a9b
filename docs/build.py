"""``make docs``: gathers the handbook, the decisions and the reference, and builds the site.

The handbook's pages live in the demo's corpus, since the demo asks questions about them; here they are only copied.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "docs"
METRICS_PAGE = ROOT / "docs" / "reference" / "metrics.md"
API = (
    "ragtrace",
    "ragtrace.model",
    "ragtrace.capture",
    "ragtrace.metrics.base",
    "ragtrace.judges.base",
    "ragtrace.sinks.base",
    "ragtrace.queues.base",
    "ragtrace.errors",
)


def main() -> int:
    """Gather and build; return mkdocs' exit status, which a single warning makes an error.

    With ``--metrics`` only the table of `METRICS_PAGE` is written anew.
    """
    if "--metrics" in sys.argv:
        METRICS_PAGE.write_text(metrics_page())
        return 0
    gather()
    # Not --quiet: it hides warnings from the count that --strict ends with.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(build, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


def gather() -> None:
    """Write every page under `OUT`, with links as they are there."""
    shutil.rmtree(OUT, ignore_errors=True)
    for name in ("handbook", "how-to", "concepts", "decisions", "images", "reference", "runbooks"):
        (OUT / name).mkdir(parents=True)
    for source, folder in (
        ("ragtrace/demo/corpus", "handbook"),
        ("docs/how-to", "how-to"),
        ("docs/concepts", "concepts"),
        ("docs/decisions", "decisions"),
        ("docs/images", "images"),
        ("dashboards/ragtrace_dashboards/dist/runbooks", "runbooks"),
    ):
        for page in sorted((ROOT / source).iterdir()):
            if page.suffix in {".md", ".svg", ".png"}:
                shutil.copy(page, OUT / folder / page.name)
    alerts = OUT / "how-to" / "alerts.md"
    alerts.write_text(
        alerts.read_text().replace("../../dashboards/ragtrace_dashboards/dist/runbooks/", "../runbooks/")
    )
    _front_page()
    _reference()


def metrics_page() -> str:
    """Return the reference of metrics with the table that their specs give now."""
    table = subprocess.run(
        [sys.executable, "-m", "ragtrace", "metrics", "--markdown"], check=True, capture_output=True, text=True
    ).stdout
    text = METRICS_PAGE.read_text()
    begin, end = (text.index(f"<!-- metrics table: {edge}") for edge in ("begin", "end"))
    return f"{text[: text.index(chr(10), begin)]}\n\n{table.strip()}\n\n{text[end:]}"


def command_line() -> str:
    """Return the reference of the commands, as typer writes it from their options."""
    import typer
    from typer.cli import get_docs_for_click

    from ragtrace.cli.main import build_app

    app = build_app(None)
    return get_docs_for_click(obj=app, ctx=typer.Context(app), name="ragtrace", title="Command line")


def _front_page() -> None:
    pages = {f"{name}.md": name.upper() + ".md" for name in ("architecture", "contributing", "changelog")}
    pages |= {"index.md": "README.md", "glossary.md": "docs/glossary.md", "fragments.md": "changes/README.md"}
    pages |= {f"{name}.md": f"integrations/{name}/README.md" for name in ("langchain", "llamaindex")}
    pages["dashboards.md"] = "dashboards/README.md"
    moved = {f"({source}": f"({name}" for name, source in pages.items()}
    moved |= {"(ragtrace/demo/corpus)": "(handbook/overview.md)", "(docs/": "(", "(../docs/": "("}
    for name, source in pages.items():
        text = (ROOT / source).read_text()
        for old, new in moved.items():
            text = text.replace(old, new)
        # The architecture's steps link to source files, which the pages do not hold.
        (OUT / name).write_text(re.sub(r"\[(`[^`]+\.py`)\]\([^)]+\.py\)", r"\1", text))


def _reference() -> None:
    from ragtrace.settings import variables

    folder = OUT / "reference"
    (folder / "metrics.md").write_text(metrics_page())
    for page in ("dialects.md", "telemetry.md"):
        shutil.copy(ROOT / "docs" / "reference" / page, folder)
    rows = "".join(f"| `{n}` | `{v or 'argument only'}` | `{d!r}` | {doc} |\n" for n, v, d, doc in variables())
    head = "# Settings\n\nArgument of `ragtrace.configure`, else the variable, else `OTEL_*`, else the default.\n\n"
    (folder / "settings.md").write_text(f"{head}| setting | variable | default | what |\n|---|---|---|---|\n{rows}")
    (folder / "command-line.md").write_text(command_line())
    (folder / "api.md").write_text("# API\n\n" + "\n".join(f"::: {name}\n" for name in API))


if __name__ == "__main__":
    sys.exit(main())
