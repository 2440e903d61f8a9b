"""Default metrics that the judge can never compute are left out, and one line says so."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from ragtrace.capture import Recorder
from ragtrace.cli import main
from ragtrace.service import build_scorer, left_out_text
from ragtrace.service.build import build
from ragtrace.settings import DEFAULT_METRICS, Settings

if TYPE_CHECKING:
    from pathlib import Path

BESIDE_MODEL = ("answer_relevancy", "citations", "context_sufficiency")
MODEL = {"judge": "openai:m", "judge_base_url": "http://127.0.0.1:9/v1"}


def names(given: dict, environ: dict | None = None) -> tuple[list[str], str]:
    scorer = build_scorer(Settings.resolve(given, environ or {}))
    return [metric.spec.name for metric in scorer.metrics], left_out_text(scorer)


def test_the_offline_judge_is_spared_what_it_cannot_do() -> None:
    chosen, line = names({})
    assert chosen == [name for name in DEFAULT_METRICS if name not in BESIDE_MODEL]
    assert "answer_relevancy, citations, context_sufficiency" in line
    assert "'overlap'" in line


@pytest.mark.parametrize("given", [MODEL, {**MODEL, "judge": "overlap,openai:m"}], ids=["a model", "a panel"])
def test_a_model_keeps_them_all(given: dict) -> None:
    assert names(given) == (list(DEFAULT_METRICS), "")


@pytest.mark.parametrize(
    ("given", "environ"),
    [({"metrics": list(DEFAULT_METRICS)}, {}), ({}, {"RAGTRACE_METRICS": ",".join(DEFAULT_METRICS)})],
    ids=["an argument", "a variable"],
)
def test_what_a_person_chose_is_kept(given: dict, environ: dict) -> None:
    assert names(given, environ) == (list(DEFAULT_METRICS), "")


def test_the_service_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ragtrace"):
        service = build(Settings.resolve({"sample_rate": 1.0}, {}), recorder=Recorder())
    try:
        assert sum("left out of the default metrics" in line for line in caplog.messages) == 1
    finally:
        service.shutdown(1.0)


def test_the_command_says_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    row = {"query": "Where?", "answer": "The lab is in Oslo.", "contexts": ["The lab is in Oslo."]}
    file.write_text("\n".join(json.dumps(row) for _ in range(3)))
    assert main(["score", str(file), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("left out of the default metrics") == 1
    assert "unsupported_by_judge" not in shown
    scores = json.loads(out.read_text().splitlines()[0])["scores"]
    assert {"faithfulness", "invented_specifics"} <= scores.keys()
    assert not [name for name in scores if name.startswith("citation")]
