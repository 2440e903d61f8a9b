"""The shipped rules under `promtool test rules`: rules/*.yaml say what is scraped, and which alerts fire when."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CASES = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
SHIPPED = Path(__file__).resolve().parents[2] / "dashboards" / "ragtrace_dashboards" / "dist" / "rules"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_alerts(case: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    done = subprocess.run([promtool, "test", "rules", str(case)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_writes_the_shipped_rules(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ragtrace", "dashboards", "export", str(tmp_path)]
    subprocess.run(command, capture_output=True, check=True)
    written = {path.name: path.read_text() for path in (tmp_path / "rules").iterdir()}
    assert written == {path.name: path.read_text() for path in SHIPPED.iterdir()}
