"""``ragtrace doctor``: does everything stand as this environment says, and if not, what to do?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.io.say import say

if TYPE_CHECKING:
    from ragtrace.cli.doctor.check_result import Finding
    from ragtrace.settings import Settings

HELP = "Check settings, endpoints, judge, clock, disk and packages."
EPILOG = """\
Run it where the application runs, with the same environment. It sends an empty OTLP request to each endpoint and
asks an LLM judge one small question (about 600 tokens); it changes nothing, and prints no key.

Exit status: 0 nothing failed (there may be warnings), 1 something failed, 2 usage.
"""


def command(
    *,
    no_judge: Annotated[bool, typer.Option("--no-judge", help="do not ask the judge, nor its server")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> int:
    """Print one line a check; 1 when one failed."""
    from ragtrace.cli.doctor.check_result import worst

    findings = examined(is_judge_asked=not no_judge)
    level = worst(findings)
    if as_json:
        say(json.dumps({"status": level, "checks": [finding.to_json() for finding in findings]}, indent=2))
    else:
        for finding in findings:
            say(finding)
    return 1 if level == "fail" else 0


def examined(*, is_judge_asked: bool) -> list[Finding]:
    """Return what every check found, in order; takes at most about half a minute."""
    from ragtrace.cli.doctor.endpoints import check_clock, check_otlp
    from ragtrace.cli.doctor.packages import check_packages
    from ragtrace.cli.doctor.setup import check_disk, check_judge, check_settings

    findings, settings = check_settings()
    reached = check_otlp()
    findings += [one.finding for one in reached]
    seen = [(one.finding.check, one.ahead_s) for one in reached if one.ahead_s is not None]
    if settings is not None:
        findings.append(check_judge(settings, is_called=is_judge_asked))
        findings += check_disk(settings)
        seen += _judge_clock(settings) if is_judge_asked else []
    findings.append(check_clock(seen))
    return findings + check_packages()


def _judge_clock(settings: Settings) -> list[tuple[str, float]]:
    """Return how far we are ahead of the judge's server; its root page is asked, without a key."""
    from ragtrace.cli.doctor.endpoints import ahead_of
    from ragtrace.judges.openai.transport import DEFAULT_BASE_URL
    from ragtrace.judges.registry import kinds

    if "openai" not in kinds(settings.judge):
        return []
    ahead_s = ahead_of(settings.judge_base_url or DEFAULT_BASE_URL)
    return [] if ahead_s is None else [("the judge's server", ahead_s)]
