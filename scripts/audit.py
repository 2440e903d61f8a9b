"""Asks the database of vulnerabilities about the packages that ``make sbom`` installed, by pip-audit.

A package that the database does not know was not audited, and an audit without an answer is no pass. Both end as
"not run" with status 0, or with 1 under ``--required``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

OURS = "ragtrace-otel"


def findings(report: str) -> tuple[list[str], list[str]]:
    """Return the vulnerabilities of pip-audit's JSON, and the packages that were not audited.

    Example:
        >>> findings('{"dependencies": [{"name": "a", "skip_reason": "not found"}]}')
        ([], ['a'])
    """
    packages = [it for it in json.loads(report)["dependencies"] if it["name"] != OURS]
    found = [f"{it['name']} {it['version']}: {vuln['id']}" for it in packages for vuln in it.get("vulns", ())]
    return found, [it["name"] for it in packages if "skip_reason" in it]


def main(*, required: bool) -> int:
    """Run the audit and return the exit status."""
    (site,) = Path("build/shipped").glob("lib/python3*/site-packages")
    command = ["build/audit/bin/pip-audit", "--path", str(site), "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found, unknown = findings(done.stdout)
    except ValueError:
        found, unknown = [], ["all"]
    for it in found:
        print(it)
    if unknown:
        some = ", ".join(unknown[:3])
        print(f"audit NOT RUN for {len(unknown)} packages ({some}, ...): the database does not answer")
    elif not found:
        print("no known vulnerabilities")
    return 1 if found or (unknown and required) else 0


if __name__ == "__main__":
    sys.exit(main(required="--required" in sys.argv))
