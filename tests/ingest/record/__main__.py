"""Records traces of real instrumentations: ``python -m tests.ingest.record [NAME ...]``, all without a name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.ingest.record.application import shop
from tests.ingest.record.otlp_json import ROOT, otlp_line
from tests.ingest.record.readme import write_readme
from tests.ingest.record.recordings import RECORDINGS
from tests.ingest.record.servers import loopback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.ingest.record.recordings import Recording

APPLICATION = Path(__file__).with_name("application")
FIXTURES = ROOT / "tests" / "ingest" / "fixtures"
ENVIRONMENTS = ROOT / "build" / "fixtures"
MOST_BYTES = 150_000


def interpreter(recording: Recording) -> Path:
    """Return the Python of the recording's environment, made anew when its packages changed."""
    folder = ENVIRONMENTS / recording.environment
    python, made = folder / "bin" / "python", folder / ".packages"
    package = ("--editable", str(ROOT)) if recording.package == "." else (recording.package,)
    packages = (*package, *recording.needs)
    if not made.exists() or made.read_text(encoding="utf-8") != repr(packages):
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--python", str(python), *packages)
        made.write_text(repr(packages), encoding="utf-8")
    return python


def _uv(*arguments: str) -> None:
    subprocess.run([str(Path(sys.executable).with_name("uv")), *arguments, "--quiet"], check=True)


def record(recording: Recording) -> Path:
    """Run the application under one instrumentation; return the file of its export requests."""
    command = _node(recording) if recording.framework == "node" else _python(recording)
    with loopback() as server:
        subprocess.run(
            command,
            input=_shop(),
            text=True,
            env=_environ(server.address) | recording.environ,
            check=True,
            timeout=300,
        )
        lines = [otlp_line(request, loopback=server.address) for request in server.exports]
    text = "".join(line + "\n" for line in lines)
    if not text or len(text.encode()) > MOST_BYTES:
        raise ValueError(f"{recording.name}: {len(text)} characters, of 1 to {MOST_BYTES}")
    path = FIXTURES / recording.dialect / f"{recording.name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _python(recording: Recording) -> list[str]:
    return [str(interpreter(recording)), str(APPLICATION), recording.framework, recording.instrument]


def _node(recording: Recording) -> list[str]:
    folder = ENVIRONMENTS / recording.name
    shutil.copytree(Path(__file__).with_name("node"), folder, dirs_exist_ok=True)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)  # noqa: S607 - npm of the PATH
    return ["node", str(folder / f"{recording.instrument}.mjs")]


def _shop() -> str:
    """Return the help centre as JSON, for applications in other languages."""
    return json.dumps(
        {
            "model": shop.MODEL,
            "top_k": shop.TOP_K,
            "system": shop.SYSTEM,
            "user": shop.USER,
            "articles": {name: asdict(article) for name, article in shop.ARTICLES.items()},
            "questions": [asdict(question) for question in shop.QUESTIONS],
        }
    )


def _environ(address: str) -> dict[str, str]:
    """Nothing of this machine but its PATH: credentials and endpoints have no place in a fixture."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{address}/v1",
        "OPENAI_API_BASE": f"{address}/v1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": address,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}/v1/traces",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "help-centre",
        "TRACELOOP_TELEMETRY": "false",
        "LANGFUSE_HOST": address,
        "LANGFUSE_PUBLIC_KEY": "none",
        "LANGFUSE_SECRET_KEY": "none",
    }


def main(names: Sequence[str]) -> int:
    """Record the named fixtures; return 1 when one could not be recorded."""
    unknown = set(names) - {recording.name for recording in RECORDINGS}
    if unknown:
        sys.stderr.write(f"no such recording: {', '.join(sorted(unknown))}; see tests/ingest/fixtures/README.md\n")
        return 2
    failed = 0
    for recording in RECORDINGS:
        if names and recording.name not in names:
            continue
        try:
            path = record(recording)
        except (subprocess.SubprocessError, ValueError) as error:
            failed += 1
            sys.stderr.write(f"{recording.name}: {error}\n")
        else:
            sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes\n")
    write_readme(FIXTURES)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
