"""The steps of the workflow in evaluation_in_ci, as the CI service runs them, and the notebook."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from nbclient import NotebookClient

from tests.command_line import environment
from tests.examples.model_server import model_server
from tests.examples.running import EXAMPLES, run, with_model

pytestmark = pytest.mark.slow
FOLDER = EXAMPLES / "evaluation_in_ci"


def steps():
    """Return the environment and the commands of the workflow, without installation."""
    job = yaml.safe_load((FOLDER / "workflow.yaml").read_text(encoding="utf-8"))["jobs"]["score"]
    return job["env"], [step["run"] for step in job["steps"] if "run" in step and "pip " not in step["run"]]


def test_the_workflow_passes_and_shows_the_worst_answer(tmp_path):
    folder = Path(shutil.copytree(FOLDER, tmp_path / "project"))
    more, commands = steps()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    outputs = []
    for command in commands:
        done = subprocess.run(
            ["/bin/bash", "-ec", command], cwd=folder, env=environment(PATH=path, **more),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        outputs.append(done.stdout)
    assert "Barbecues are lit at noon." in "".join(outputs)
    assert "12 pairs: no difference shown" in "".join(outputs)
    assert (folder / "report.html").stat().st_size > 10_000


def test_a_threshold_above_the_mean_fails_with_the_bad_claim(tmp_path):
    folder = Path(shutil.copytree(FOLDER, tmp_path / "project"))
    test = folder / "test_quality.py"
    test.write_text(
        test.read_text(encoding="utf-8").replace("faithfulness=0.85", "faithfulness=0.99"), encoding="utf-8"
    )
    said = run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_quality.py", status=1)
    assert "Barbecues are lit at noon." in said


def test_a_real_server_answers_by_one_flag(tmp_path):
    with model_server(lambda _: "The pool opens at seven.") as model:
        run(tmp_path, FOLDER / "app.py", "--out", "answers.jsonl", *with_model(model.url))
    assert len(model.requests) == 12
    assert (tmp_path / "answers.jsonl").read_text(encoding="utf-8").count('The pool opens at seven."') == 12


def test_the_notebook_runs_and_its_outputs_are_those_stored(tmp_path):
    shutil.copytree(EXAMPLES / "notebook", tmp_path, dirs_exist_ok=True)
    stored = nbformat.read(tmp_path / "quality.ipynb", 4)
    fresh = nbformat.read(tmp_path / "quality.ipynb", 4)
    NotebookClient(fresh, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for old, new in zip(stored.cells, fresh.cells, strict=True):
        assert [texts(one) for one in old.get("outputs", [])] == [texts(one) for one in new.get("outputs", [])]


def texts(output):
    """Return an output without its picture."""
    return output.get("text") or output["data"]["text/plain"]
