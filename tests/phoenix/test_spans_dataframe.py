"""Spans of a real Phoenix, exported as a dataframe, give the records that their OTLP gives."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragtrace.batch import Broken, read_rows, reader_of
from ragtrace.batch.parts import plan
from tests.phoenix.server import KEY, Phoenix, phoenix_python, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PYTHON = phoenix_python()  # one skip for the file where there is none
pytestmark = pytest.mark.slow

TRACES = Path(__file__).resolve().parents[1] / "ingest" / "fixtures" / "openinference"
RECORDED = "openinference-langchain-0.1.80"
EXPORT = """
import sys
from phoenix.client import Client
client = Client(base_url=sys.argv[1], api_key=sys.argv[2])
frame = client.spans.get_spans_dataframe(project_identifier=sys.argv[3], limit=1000)
frame.reset_index(drop=True).to_json(sys.argv[4] + ".jsonl", orient="records", lines=True, date_format="iso")
frame.to_parquet(sys.argv[4] + ".parquet")
"""
SAME = ("query", "answer", "contexts", "pool", "session", "user")


def records(path: Path) -> list[Mapping[str, Any]]:
    (part,) = plan(str(path))
    reader, lost = reader_of(part.format), []
    assert reader.records is not None
    found = list(reader.records(read_rows(part, Broken()), lost.append))
    assert not lost
    rounded = [json.loads(json.dumps(record), parse_float=lambda text: round(float(text), 9)) for record in found]
    return sorted(rounded, key=lambda record: str(record["id"]))


def send(phoenix: Phoenix, project: str) -> int:
    """Send the recorded requests; return how many spans they have."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    from ragtrace.batch.readers.otlp import _spans

    request, rows = ExportTraceServiceRequest(), (TRACES / f"{RECORDED}.jsonl").read_text().splitlines()
    attribute = {"attributes": [{"key": "openinference.project.name", "value": {"stringValue": project}}]}
    resource = request.resource_spans.add()
    ParseDict(attribute, resource.resource)
    scope = resource.scope_spans.add()
    scope.spans.extend(raw.span for row in rows for raw in _spans(json.loads(row)))
    sent = urllib.request.Request(  # noqa: S310 - http on loopback
        f"{phoenix.url}/v1/traces",
        data=request.SerializeToString(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-protobuf"},
    )
    urllib.request.urlopen(sent, timeout=20).close()  # noqa: S310
    return len(scope.spans)


@pytest.fixture(scope="module")
def exported(phoenix, tmp_path_factory) -> Path:
    """The folder of both exports. The spans are sent once: Phoenix drops a span whose id it has in any project."""
    folder, project = tmp_path_factory.mktemp("exported"), "export"
    number = send(phoenix, project)
    assert wait_for(lambda: len(phoenix.spans(project)) == number)
    command = [PYTHON, "-c", EXPORT, phoenix.url, KEY, project, str(folder / "spans")]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_dataframe_of_phoenix_gives_the_records_of_its_traces(exported, suffix):
    of_phoenix, sent = records(exported / f"spans.{suffix}"), records(TRACES / f"{RECORDED}.jsonl")
    assert len(sent) == 3
    assert [{name: one.get(name) for name in SAME} for one in of_phoenix] == [
        {name: one.get(name) for name in SAME} for one in sent
    ]
