"""Render the Helm chart: standard input is a JSON list of values, standard output their manifests or errors.

Runs in an environment of its own (`make test-deploy`), since Helm's library is 70 MB.
"""

from __future__ import annotations

import json
import sys

import helm_python


def main(chart: str) -> None:
    given = json.load(sys.stdin)
    loaded = helm_python.Chart.load(chart)
    found = []
    for values in given:
        try:
            files = loaded.render(values, name="rt", namespace="scoring")
            found.append({"files": files, "lint": helm_python.lint(chart, values, strict=True)["errors"]})
        except helm_python.HelmError as error:
            found.append({"error": str(error)})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
