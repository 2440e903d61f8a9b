"""Commands without the packages of their extra: one line that names the extra, and exit status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.command_line import environment

HIDDEN = "import sys; sys.modules[sys.argv[1]] = None; from ragtrace.cli import main; sys.exit(main(sys.argv[2:]))"


def without(module, command, folder):
    """Run a command in a process that cannot import a module."""
    return subprocess.run(
        [sys.executable, "-c", HIDDEN, module, *command.split()],
        cwd=folder,
        env=environment(**{f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "command", "package", "extra"),
    [
        ("uvicorn", "serve", "uvicorn", "server"),
        ("grpc", "serve", "grpcio", "server"),
        ("confluent_kafka", "worker --kafka localhost:1 --topic t", "confluent-kafka", "kafka"),
        ("confluent_kafka", "worker --queue kafka://localhost:1/t", "confluent-kafka", "kafka"),
        ("fsspec", "score s3://lake/runs --out s3://lake/scored", "fsspec", "lake"),
        ("fsspec", "score . --out scored", "fsspec", "lake"),
        ("fsspec", "worst s3://lake/scored", "fsspec", "lake"),
    ],
)
def test_the_missing_extra_is_named_in_one_line(tmp_path, module, command, package, extra):
    done = without(module, command, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"{package} is not installed: pip install" in line
    assert line.endswith(f'of a release "ragtrace-otel[{extra}]"')
