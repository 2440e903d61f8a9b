"""Input and output on an S3 API: parts, a resume, and credentials that nobody prints."""

from __future__ import annotations

import re
import urllib.request

import pytest

from tests.engines.parts import begin, engines_python, ran, write_lines
from tests.environments import ROOT

engines_python()  # one skip for the file where there is none
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SECRET = "a-secret-of-these-tests-alone"
COMMAND = ["-m", "ragtrace", "score", "s3://lake/in/*.jsonl", "--out", "s3://lake/out", "--metrics", "faithfulness"]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bucket")
    write_lines(folder / "a.jsonl", 30)
    write_lines(folder / "b.jsonl", 20)
    keys = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
    server = begin(ROOT / "tests" / "engines" / "s3_server.py", folder, **keys)
    port = next(line.strip() for line in server.stdout if line.strip().isdigit())
    yield {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    server.terminate()
    server.communicate()


def get(url: str) -> str:
    """What the S3 API answers; moto asks for a signature, and checks none."""
    request = urllib.request.Request(url, headers={"Authorization": "AWS tests:any"})  # noqa: S310 - http on loopback
    with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310
        return reply.read().decode()


def test_a_bucket_is_scored_in_parts_and_resumed(bucket):
    out, err = ran(*COMMAND, **bucket)
    assert "50 scored in s3://lake/out" in out
    assert SECRET not in out + err
    lake = f"{bucket['AWS_ENDPOINT_URL']}/lake"
    names = re.findall(r"<Key>(out/[^<]*jsonl)</Key>", get(f"{lake}?prefix=out/"))
    assert sorted(len(get(f"{lake}/{name}").splitlines()) for name in names) == [20, 30]
    out, _ = ran(*COMMAND, "--resume", **bucket)
    assert "0 scored now in s3://lake/out, 50 there already" in out


def test_a_wrong_bucket_is_one_line_without_keys(bucket):
    out, err = ran("-m", "ragtrace", "score", "s3://nowhere/in", "--out", "s3://lake/x", status=2, **bucket)
    assert not out
    assert "s3://nowhere/in" in err
    assert err.count("\n") == 1
    assert SECRET not in err
