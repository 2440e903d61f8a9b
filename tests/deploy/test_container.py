"""The Containerfile: pinned, without a user's name, and with no more than the wheel needs."""

from __future__ import annotations

import re
import tomllib

from tests.deploy.test_lint import CONTAINERFILE, ROOT

TEXT = CONTAINERFILE.read_text(encoding="utf-8")


def test_the_base_has_a_tag_and_a_digest() -> None:
    assert re.search(r"^ARG BASE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}$", TEXT, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)) == {"${BASE}"}


def test_the_image_runs_as_a_number_and_needs_no_shell() -> None:
    last = TEXT.rpartition("FROM ")[2]
    uid, gid = re.search(r"^USER (\d+):(\d+)$", last, re.MULTILINE).groups()
    assert int(uid) > 0
    assert int(gid) > 0
    assert "RUN " not in last
    for instruction in ("ENTRYPOINT", "CMD"):
        assert re.search(rf"^\s*{instruction} \[", last, re.MULTILINE)


def test_everything_that_is_copied_is_let_into_the_build_and_holds_the_wheel() -> None:
    ignored = (CONTAINERFILE.parent / "Containerfile.dockerignore").read_text(encoding="utf-8").split("\n")
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert ignored[1] == "*"
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", TEXT, re.MULTILINE) for name in line.split()
    }
    assert all(any(one == name or one.startswith(f"{name}/") for one in let_in) for name in copied)
    assert all((ROOT / name).exists() for name in let_in)
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"][
        "targets"
    ]
    assert all(package.split("/")[0] in copied for package in wheel["wheel"]["packages"])


def test_the_extras_of_the_image_exist() -> None:
    extras = re.search(r'"\.\[([\w,]+)\]"', TEXT).group(1).split(",")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras) <= set(known)
    assert {"server", "kafka", "openai"} <= set(extras)
