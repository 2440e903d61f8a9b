"""Command ``ragtrace doctor``, which checks the settings, servers, files and packages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.arguments import AsJson
from ragtrace.cli.io.say import say

if TYPE_CHECKING:
    from ragtrace.cli.doctor.check_result import CheckResult

EPILOG = """\
Run it where the application runs, with the same environment. It exports an empty batch to each OTLP
endpoint and asks an LLM judge one small question (about 600 tokens); it changes nothing, and prints no key.

Exit status: 0 nothing failed (there may be warnings), 1 something failed, 2 usage.
"""


def command(
    *,
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Ask neither the judge nor its server.")] = False,
    as_json: AsJson = False,
) -> int:
    """Check settings, endpoints, judge, disk and packages."""
    from ragtrace.cli.doctor.check_result import worst

    findings = examined(is_judge_asked=not no_judge)
    level = worst(findings)
    if as_json:
        say(json.dumps({"status": level, "checks": [finding.to_json() for finding in findings]}, indent=2))
    else:
        for finding in findings:
            say(finding)
    return 1 if level == "fail" else 0


def examined(*, is_judge_asked: bool) -> list[CheckResult]:
    """Return the result of every check, in order, within half a minute."""
    from ragtrace.cli.doctor.endpoints import check_otlp
    from ragtrace.cli.doctor.packages import check_packages
    from ragtrace.cli.doctor.setup import check_disk, check_ids, check_judge, check_settings

    results, settings = check_settings()
    results += check_otlp()
    if settings is not None:
        results.append(check_judge(settings, is_called=is_judge_asked))
        results += [*check_disk(settings), check_ids(settings)]
    return results + check_packages()
